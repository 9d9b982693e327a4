//! All of a report.

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

/// What there is to say of a heap.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How much of each sort the graph has.
    pub counts: Counts,
    /// The heap as a whole.
    pub overview: Overview,
    /// What was found, what matters most first: by severity, and then by impact.
    pub findings: Vec<Finding>,
    /// Memory by type of location, the most first.
    pub types: Vec<Total>,
    /// Memory of objects by class, the most first.
    pub classes: Vec<Total>,
    /// The arrays that retain most.
    pub arrays: Vec<LargeArray>,
    /// The longest strings.
    pub strings: Vec<LargeString>,
    /// What each root holds.
    pub roots: Vec<RootBlame>,
    /// Bytes in use: what shares are of.
    pub used_bytes: u64,
}

/// Findings that are about memory in general, the more particular first: those that say why come before them.
const GENERAL: [Kind; 4] = [Kind::ChokePoint, Kind::BottleneckPath, Kind::DominantClass, Kind::DominantType];

/// How much of what a general finding is about another has to explain, in per cent.
const EXPLAINED: u128 = 50;

/// Looks at all of a heap.
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
    // Stable: what is equal stays in the order of the passes.
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

/// Where a finding that says why is about most of what a general one is about, the general one matters less; and what the
/// bottleneck says of an array or a string is not said again.
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
