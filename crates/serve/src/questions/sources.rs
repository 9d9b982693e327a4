//! The lines of a source file, with their weights.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use borehole_analysis::{Calls, Query, SortBy};
use borehole_text::percent_of;

use super::ask::Ask;
use super::profile::name;
use super::table::{ViewCell, ViewTable};
use crate::desk::Desk;
use crate::limits::AnswerLimits;
use crate::opened::OpenedProfile;
use crate::refusal::Refusal;

/// The lines of a file that have samples, with the text of those around them if the file can be read.
pub(super) fn lines(opened: &OpenedProfile, ask: &Ask, desk: &Desk) -> Result<ViewTable, Refusal> {
    let Some(file) = &ask.file else {
        return Err(Refusal::invalid("missing file").with_help("top names the file of each function"));
    };
    let query = Query { lines: borehole_analysis::LineRows::Apart, ..ask.query()? };
    let weight = opened.profile.default_weight();
    let calls = Calls::new(&opened.profile, &query, &ask.selection()?, weight);
    let mut weights: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    for row in calls.top(SortBy::TotalWeight) {
        let frame = calls.frame(row.frame);
        if frame.file.as_deref() == Some(file.as_bytes())
            && let Some(line) = frame.line
        {
            let sums = weights.entry(line).or_default();
            *sums = (sums.0.saturating_add(row.self_weight), sums.1.saturating_add(row.total_weight));
        }
    }
    if weights.is_empty() {
        return Err(Refusal::missing(format!("no lines with samples in {}", name(file.as_bytes())))
            .with_help("name the file as it is in the profile; top shows it"));
    }
    let text = read(Path::new(file), &desk.sources);
    let known: Vec<&str> = text.as_deref().unwrap_or_default().lines().collect();
    let shown = around(weights.keys().copied(), known.len());
    let columns = ["line", "self", "self %", "total", "text"].map(str::to_owned).to_vec();
    let rows = shown.iter().take(AnswerLimits::MOST_ROWS).map(|&line| {
        let place = usize::try_from(line).ok().and_then(|line| line.checked_sub(1));
        let text = place.and_then(|place| known.get(place)).copied().unwrap_or_default();
        let (own, total) = weights.get(&line).copied().unwrap_or_default();
        vec![
            line.into(),
            own.into(),
            ViewCell::Percent(percent_of(own, calls.total())),
            total.into(),
            name(text.as_bytes()).into(),
        ]
    });
    let is_read =
        if text.is_some() { "" } else { "; the file itself was not found below a folder of --source" };
    Ok(ViewTable {
        title: format!("Lines of {}{is_read}", name(file.as_bytes())),
        unit: opened.profile.value_type(weight).unit,
        total: calls.total(),
        columns,
        rows: rows.collect(),
        all_rows: shown.len(),
        ..ViewTable::default()
    })
}

/// The lines with samples, and of a file with so many lines also those around them.
fn around(sampled: impl Iterator<Item = i64>, lines: usize) -> BTreeSet<i64> {
    let last = i64::try_from(lines).unwrap_or(i64::MAX);
    let near = |line: i64| {
        let (from, to) = (line.saturating_sub(AROUND_LINES), line.saturating_add(AROUND_LINES));
        (from.max(1)..=to.min(last)).chain([line])
    };
    sampled.flat_map(near).collect()
}

/// How many lines are shown before and after one with samples.
const AROUND_LINES: i64 = 3;

/// The text of a source file below one of the folders: the profile's path, or the longest end of it that is there.
fn read(file: &Path, folders: &[PathBuf]) -> Option<String> {
    let parts: Vec<_> =
        file.components().filter(|part| matches!(part, std::path::Component::Normal(_))).collect();
    if file.components().any(|part| part == std::path::Component::ParentDir) {
        return None;
    }
    let ends = (0..parts.len()).map(|from| parts[from..].iter().collect::<PathBuf>());
    let found = ends.flat_map(|end| folders.iter().map(move |folder| (folder, folder.join(&end))));
    let path = found.into_iter().find_map(|(folder, path)| {
        let (real, folder) = (path.canonicalize().ok()?, folder.canonicalize().ok()?);
        (real.starts_with(&folder) && real.is_file()).then_some(real)
    })?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(AnswerLimits::SOURCE_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_with_those_around_them_as_far_as_the_file_goes() {
        assert_eq!(Vec::from_iter(around([2, 9].into_iter(), 10)), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(Vec::from_iter(around([20, 30].into_iter(), 40)).len(), 14);
        // Without the text, there is nothing to see around a line.
        assert_eq!(Vec::from_iter(around([2, 9, i64::MAX].into_iter(), 0)), [2, 9, i64::MAX]);
    }
}
