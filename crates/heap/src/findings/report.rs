//! The report on a heap.

use crate::graph::{Counts, Graph, Total};
use crate::views::Heap;

use super::arrays::{Arrays, LargeArray};
use super::blame::{self, RootBlame};
use super::context::Context;
use super::finding::{Finding, Kind, Severity};
use super::overview::Overview;
use super::properties::{self, Properties};
use super::rankings::{self, LargeString};
use super::{allocator, bottleneck, closures, cycles, dominance, objects, resources, strings};

/// The report on a heap.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The number of items of each kind in the graph.
    pub counts: Counts,
    /// The heap as a whole.
    pub overview: Overview,
    /// The findings, by severity and then by impact, the most important first.
    pub findings: Vec<Finding>,
    /// Memory by location type, the largest first.
    pub types: Vec<Total>,
    /// Memory of objects by class, the largest first.
    pub classes: Vec<Total>,
    /// The arrays with the largest retained sizes.
    pub arrays: Vec<LargeArray>,
    /// The longest strings.
    pub strings: Vec<LargeString>,
    /// The memory of each root.
    pub roots: Vec<RootBlame>,
    /// The bytes in use, on which percentages are based.
    pub used_bytes: u64,
}

/// Kinds of general findings about memory, the more specific ones first. Findings that give a reason take precedence over them.
const GENERAL: [Kind; 4] = [Kind::ChokePoint, Kind::BottleneckPath, Kind::DominantClass, Kind::DominantType];

/// The percentage of a general finding's impact that another finding must explain.
const EXPLAINED: u128 = 50;

/// Analyses a whole heap.
#[must_use]
pub fn report<G: Graph + ?Sized>(heap: &Heap<'_, G>) -> Report {
    let context = Context::new(heap);
    let overview = Overview::of(&context);
    let roots = blame::blame(&context);
    let arrays = Arrays::of(&context);
    let mut findings = all(&context, &arrays);
    properties::largest(&mut findings);
    give_way(&mut findings);
    findings.extend(overview.findings(&context));
    findings.push(rankings::of_types(&context.totals.location_types, context.used));
    findings.push(rankings::of_classes(&context.totals.classes, context.used));
    findings.push(blame::finding(&roots));
    // The sort is stable: equal findings stay in the order of the passes.
    findings.sort_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.impact_bytes)));
    Report {
        counts: context.graph().counts(),
        overview,
        findings,
        arrays: arrays.ranking(&context),
        strings: rankings::strings(&context),
        roots,
        used_bytes: context.used,
        types: context.totals.location_types,
        classes: context.totals.classes,
    }
}

fn all<G: Graph + ?Sized>(context: &Context<'_, '_, G>, arrays: &Arrays) -> Vec<Finding> {
    let cycles = cycles::Cycles::of(context);
    let mut findings = allocator::find(context);
    findings.extend(cycles.find(context));
    findings.extend(resources::find(context, &cycles));
    findings.extend(closures::find(context));
    findings.extend(strings::find(context));
    findings.extend(arrays.find(context));
    findings.extend(bottleneck::find(context));
    findings.extend(dominance::find(context));
    findings.extend(Properties::of(context).find(context));
    findings.extend(objects::find(context));
    findings
}

/// Lowers the severity of a general finding if a finding with a reason explains most of its impact, and removes
/// findings about an array or a string that repeat the bottleneck.
fn give_way(findings: &mut Vec<Finding>) {
    let mut told: Vec<u64> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::High && !GENERAL.contains(&finding.kind))
        .map(|finding| finding.impact_bytes)
        .collect();
    for kind in GENERAL {
        let of_kind = findings.iter_mut().filter(|finding| finding.kind == kind);
        for finding in of_kind.filter(|finding| finding.severity == Severity::High) {
            let explains =
                |&bytes: &u64| u128::from(bytes) * 100 >= u128::from(finding.impact_bytes) * EXPLAINED;
            if told.iter().any(explains) {
                finding.severity = Severity::Medium;
            } else if kind == Kind::BottleneckPath {
                told.push(finding.impact_bytes);
            }
        }
    }
    let bottleneck = findings.iter().find(|finding| finding.kind == Kind::BottleneckPath);
    let bottleneck = bottleneck.and_then(|finding| finding.place.as_ref()).map(|place| place.node);
    findings.retain(|finding| {
        let is_listed = matches!(finding.kind, Kind::LargeArray | Kind::LargeString);
        let node = finding.place.as_ref().map(|place| place.node);
        !is_listed || bottleneck.is_none() || node != bottleneck
    });
}
