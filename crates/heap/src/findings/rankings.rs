//! The rankings at the end of a report: types, classes, arrays and strings by size.

use crate::graph::{Graph, Total};

use super::amounts::{each, share};
use super::context::Context;
use super::finding::{Fact, Finding, Kind, Place, Severity};

/// The number of classes ranked.
pub(super) const CLASSES: usize = 20;

/// A row of the ranking of strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeString {
    /// The string.
    pub place: Place,
    /// The bytes of its block.
    pub size_bytes: u64,
    /// The beginning of its content.
    pub preview: String,
}

/// The longest strings.
pub(super) fn strings<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<LargeString> {
    let row = |(size_bytes, node)| LargeString {
        place: context.place(node),
        size_bytes,
        preview: context.string_preview(node),
    };
    context.census.longest_strings.sorted().into_iter().map(row).collect()
}

/// The ranking of types as a finding, for programs that read findings.
pub(super) fn of_types(types: &[Total], used: u64) -> Finding {
    let row = |total: &Total| {
        vec![
            ("type", name(total)),
            ("count", Fact::from(total.count)),
            ("memory_bytes", Fact::from(total.memory_usage)),
            ("percentage_of_heap", Fact::from(share(total.memory_usage, used))),
        ]
    };
    ranking(Kind::TypeRanking, "types", types, row)
}

/// The ranking of classes as a finding.
pub(super) fn of_classes(classes: &[Total], used: u64) -> Finding {
    let row = |total: &Total| {
        vec![
            ("class_name", name(total)),
            ("count", Fact::from(total.count)),
            ("avg_size", Fact::from(each(total.memory_usage, total.count))),
            ("memory_bytes", Fact::from(total.memory_usage)),
            ("percentage_of_heap", Fact::from(share(total.memory_usage, used))),
        ]
    };
    ranking(Kind::ClassRanking, "classes", &classes[..classes.len().min(CLASSES)], row)
}

fn name(total: &Total) -> Fact {
    Fact::from(String::from_utf8_lossy(&total.name).into_owned())
}

fn ranking(
    kind: Kind,
    fact: &'static str,
    totals: &[Total],
    row: impl Fn(&Total) -> Vec<(&'static str, Fact)>,
) -> Finding {
    let text = totals.first().map(|total| String::from_utf8_lossy(&total.name).into_owned());
    Finding::new(kind, Severity::Info, text.unwrap_or_default())
        .fact(fact, Fact::Rows(totals.iter().map(row).collect()))
}
