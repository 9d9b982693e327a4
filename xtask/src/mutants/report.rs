//! The outcome of a run in words.

use std::collections::BTreeMap;

use super::build::Candidate;
use super::change::Kind;
use super::measure::Verdict;

/// The facts of a run that are not about single changes.
pub(super) struct Head<'a> {
    pub(super) package: &'a str,
    pub(super) seed: u64,
    /// So many changes were compiled.
    pub(super) drawn: usize,
    /// Tests that fail without a change, and were not used.
    pub(super) failing: &'a [String],
}

/// The score, the score of each kind of change, and each change that was not noticed.
pub(super) fn text(head: &Head<'_>, outcomes: &[(&Candidate, Verdict)]) -> String {
    let Head { package, seed, drawn, failing } = head;
    let (noticed, tried) = score(outcomes.iter());
    let mut out = format!(
        "{package}, seed {seed}: noticed {noticed} of {tried} changes ({} %)",
        percent(noticed, tried)
    );
    if tried < *drawn {
        out.push_str(&format!("; {} more do not compile", drawn - tried));
    }
    if !failing.is_empty() {
        out.push_str(&format!("\nnot used, because they fail without a change: {}", failing.join(", ")));
    }
    let mut kinds: BTreeMap<Kind, Vec<&(&Candidate, Verdict)>> = BTreeMap::new();
    for outcome in outcomes {
        kinds.entry(outcome.0.change.kind).or_default().push(outcome);
    }
    for (kind, outcomes) in kinds {
        let (noticed, tried) = score(outcomes.iter().copied());
        out.push_str(&format!("\n\n{}: {noticed} of {tried}", kind.name()));
        for (candidate, verdict) in outcomes {
            let unreached = match verdict {
                Verdict::Noticed => continue,
                Verdict::Unreached => "reached by no test: ",
                Verdict::Unnoticed => "",
            };
            let (file, change) = (candidate.file.display(), &candidate.change);
            out.push_str(&format!(
                "\n  {file}:{} {}: {unreached}{}",
                change.line, change.function, change.about
            ));
        }
    }
    out
}

fn score<'a>(outcomes: impl Iterator<Item = &'a (&'a Candidate, Verdict)>) -> (usize, usize) {
    outcomes.fold((0, 0), |(noticed, tried), (_, verdict)| {
        (noticed + usize::from(*verdict == Verdict::Noticed), tried + 1)
    })
}

/// `part` of `whole` in whole percent, rounded down: 99.9 % noticed is not all.
fn percent(part: usize, whole: usize) -> usize {
    (part * 100).checked_div(whole).unwrap_or(100)
}
