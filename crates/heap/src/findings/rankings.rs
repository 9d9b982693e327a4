//! The rankings at the end of a report: types, classes, arrays and strings by size.

use serde::Serialize;

use crate::graph::MemoryTotal;

use super::amounts::{each, share};
use super::census::Thing;
use super::finding::{Fact, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
use super::shapes::{AlikeValues, ShapeSums};
use super::survey::HeapSurvey;

/// The number of classes ranked.
pub(super) const CLASSES: usize = 20;

/// The number of rows of the ranking of strings.
const STRINGS: usize = 20;

/// A row of the ranking of strings: a string, or strings that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargeString {
    /// The longest string, and the path of all of them: `[]` stands for the keys of lists.
    #[serde(flatten)]
    pub place: FindingPlace,
    /// The number of strings.
    pub count: u64,
    /// The bytes of their blocks.
    pub shallow_bytes: u64,
    /// The beginning of the content of the longest.
    pub preview: String,
}

/// The strings that take most; those that are alike in one row.
pub(super) fn strings(survey: &HeapSurvey<'_>) -> Vec<LargeString> {
    let mut alike = ShapeSums::default();
    for (node, thing) in survey.census.all() {
        let bytes = if matches!(thing, Thing::String(_)) { survey.shallow(node) } else { 0 };
        if bytes > 0 {
            alike.add(survey.shape(node), node, bytes);
        }
    }
    let row = |alike: &AlikeValues| LargeString {
        place: survey.alike_place(alike),
        count: alike.sum.count,
        shallow_bytes: alike.sum.bytes,
        preview: survey.string_preview(alike.largest.1),
    };
    alike.largest_first(STRINGS).iter().map(row).collect()
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
