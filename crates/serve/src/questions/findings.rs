//! Findings about a profile: reasons to doubt its numbers, and facts that its views know without a guess.

use borehole::model::{Mode, Status};
use borehole_analysis::{By, GroupValue, SampleSelection, Weight};
use borehole_text::grouped;

use super::profile::{ProfileQuestion, name};
use super::table::{ViewCell, ViewTable};

/// The kinds of findings, in the order in which they are listed.
#[derive(Clone, Copy)]
enum Finding {
    /// Something is missing, so that numbers are too small.
    Loss,
    /// Something that is so in all samples.
    Fact,
    /// Something that the views leave out, and how to see it.
    Hint,
}

impl Finding {
    const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Fact => "fact",
            Self::Hint => "hint",
        }
    }
}

/// The state of a thread that is on a CPU.
///
/// Source: CPython 3.15, `_remote_debugging`, as in [`Status`].
const ON_CPU: Status = Status(2);

impl ProfileQuestion<'_> {
    /// The findings about a profile: losses, facts, hints.
    pub(super) fn findings(&self) -> ViewTable {
        let mut rows = self.losses();
        rows.extend(self.busy_threads());
        rows.extend(self.hints());
        let mut table = self.table("Findings", &["kind", "samples", "finding"]);
        table.all_rows = rows.len();
        table.rows = rows
            .into_iter()
            .take(self.limit())
            .map(|(kind, samples, text)| vec![kind.name().into(), samples, text.into()])
            .collect();
        table.coverage = format!("Shown {} of {} findings.", table.rows.len(), table.all_rows);
        if !self.opened.programs.is_empty() {
            table.next.push("tokio_flags lists what is wrong with the program".to_owned());
        }
        table
    }

    fn losses(&self) -> Vec<(Finding, ViewCell, String)> {
        let summary = self.opened.profile.summary();
        let counted = [
            (summary.at_depth_limit, "samples reach the depth limit and may lack their outer calls"),
            (summary.empty, "samples have an empty stack and are in no call"),
        ];
        let of_file = [
            (summary.lost_bytes, "bytes of the input could not be read; their contents are missing"),
            (summary.warnings, "warnings occurred while reading"),
        ];
        let row = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", grouped(count)));
        let of_file = of_file
            .into_iter()
            .filter_map(|(count, what)| Some((Finding::Loss, "".into(), row(count, what)?)));
        let counted = counted
            .into_iter()
            .filter_map(|(count, what)| Some((Finding::Loss, number(count), row(count, what)?)));
        of_file.chain(counted).collect()
    }

    /// Threads that were on a CPU whenever they were sampled, if samples were taken whether they were or not.
    fn busy_threads(&self) -> Vec<(Finding, ViewCell, String)> {
        let profile = &self.opened.profile;
        let is_of_one_state = matches!(profile.summary().mode, Mode::Cpu | Mode::Gil | Mode::Exception);
        if is_of_one_state || profile.summary().is_valued {
            return Vec::new();
        }
        let mut calls = self.calls.clone();
        calls.weigh(profile, &self.selection, Weight::Samples);
        let threads = |status| {
            let selection = SampleSelection { status, ..self.selection.clone() };
            calls.by(profile, &selection, &By::Thread)
        };
        let busy = threads(ON_CPU);
        let is_busy = |value: &GroupValue, weight: i64| {
            busy.iter().any(|row| row.value.is_same(value) && row.weight == weight)
        };
        let all = threads(Status::default()).into_iter();
        let found = all.filter(|row| row.value != GroupValue::Absent && is_busy(&row.value, row.weight));
        found
            .map(|row| {
                let thread = row.value.text(name).unwrap_or_default();
                (Finding::Fact, row.weight.into(), format!("{thread} was on a CPU in every sample of it"))
            })
            .collect()
    }

    fn hints(&self) -> Vec<(Finding, ViewCell, String)> {
        let summary = self.opened.profile.summary();
        let hidden = summary.hidden.iter().map(|(kind, samples)| {
            let kind = name(kind.to_string().as_bytes());
            (Finding::Hint, number(*samples), format!("not counted: samples of {kind}; choose them by value"))
        });
        let untimed = summary.samples.saturating_sub(summary.timed);
        let untimed = (summary.timed > 0 && untimed > 0).then(|| {
            (Finding::Hint, number(untimed), "samples without a timestamp are in no timeline".to_owned())
        });
        hidden.chain(untimed).collect()
    }
}

fn number(count: u64) -> ViewCell {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}
