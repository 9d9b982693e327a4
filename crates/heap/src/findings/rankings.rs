//! The rankings at the end of a report: types, classes, arrays and strings by size.

use crate::graph::MemoryTotal;

use super::amounts::{each, share};
use super::finding::{Fact, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
use super::survey::HeapSurvey;

/// The number of classes ranked.
pub(super) const CLASSES: usize = 20;

/// A row of the ranking of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeString {
    /// The string.
    pub place: FindingPlace,
    /// The bytes of its block.
    pub size_bytes: u64,
    /// The beginning of its content.
    pub preview: String,
}

/// The longest strings.
pub(super) fn strings(survey: &HeapSurvey<'_>) -> Vec<LargeString> {
    let row = |(size_bytes, node)| LargeString {
        place: survey.place(node),
        size_bytes,
        preview: survey.string_preview(node),
    };
    survey.census.longest_strings.sorted().into_iter().map(row).collect()
}

/// The ranking of types as a finding, for programs that read findings.
pub(super) fn of_types(types: &[MemoryTotal], used: u64) -> HeapFinding {
    let row = |total: &MemoryTotal| {
        vec![
            ("type", name(total)),
            ("count", Fact::from(total.count)),
            ("memory_bytes", Fact::from(total.memory_usage)),
            ("percentage_of_heap", Fact::from(share(total.memory_usage, used))),
        ]
    };
    ranking(FindingKind::TypeRanking, "types", types, row)
}

/// The ranking of classes as a finding.
pub(super) fn of_classes(classes: &[MemoryTotal], used: u64) -> HeapFinding {
    let row = |total: &MemoryTotal| {
        vec![
            ("class_name", name(total)),
            ("count", Fact::from(total.count)),
            ("avg_size", Fact::from(each(total.memory_usage, total.count))),
            ("memory_bytes", Fact::from(total.memory_usage)),
            ("percentage_of_heap", Fact::from(share(total.memory_usage, used))),
        ]
    };
    ranking(FindingKind::ClassRanking, "classes", &classes[..classes.len().min(CLASSES)], row)
}

fn name(total: &MemoryTotal) -> Fact {
    Fact::from(String::from_utf8_lossy(&total.name).into_owned())
}

fn ranking(
    kind: FindingKind,
    fact: &'static str,
    totals: &[MemoryTotal],
    row: impl Fn(&MemoryTotal) -> Vec<(&'static str, Fact)>,
) -> HeapFinding {
    let text = totals.first().map(|total| String::from_utf8_lossy(&total.name).into_owned());
    HeapFinding::new(kind, FindingSeverity::Info, text.unwrap_or_default())
        .fact(fact, Fact::Rows(totals.iter().map(row).collect()))
}
