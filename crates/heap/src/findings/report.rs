//! The report on a heap.

use hashbrown::HashMap;
use serde::{Serialize, Serializer};

use crate::contradiction::contradiction;
use crate::graph::{GraphCounts, MemoryTotal};
use crate::views::Heap;

use super::arrays::{Arrays, LargeArray};
use super::blame::{self, RootBlame};
use super::finding::{FindingKind, FindingSeverity, HeapFinding};
use super::limits::MOST;
use super::overview::HeapOverview;
use super::properties::PropertyValues;
use super::rankings::{self, LargeString};
use super::severity::Scale;
use super::survey::HeapSurvey;
use super::{allocator, bottleneck, closures, cycles, dominance, objects, resources, strings, subject, told};

/// The report on a heap.
///
/// Serialized, its head is in `meta`: counts, versions and what the graph contains. What else the overview has is a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct HeapReport {
    /// The number of items of each kind in the graph.
    pub counts: GraphCounts,
    /// The heap as a whole.
    pub overview: HeapOverview,
    /// The reason why no size can be trusted; `None` if the sizes fit. If there is one, nothing that rests on sizes is reported.
    pub contradiction: Option<String>,
    /// The findings, by severity and then by impact, the most important first.
    pub findings: Vec<HeapFinding>,
    /// Memory by location type, the largest first.
    pub types: Vec<MemoryTotal>,
    /// Memory of objects by class, the largest first.
    pub classes: Vec<MemoryTotal>,
    /// The arrays with the largest retained sizes.
    pub arrays: Vec<LargeArray>,
    /// The longest strings.
    pub strings: Vec<LargeString>,
    /// The memory of each root.
    pub roots: Vec<RootBlame>,
    /// The bytes in use, on which percentages are based.
    pub used_bytes: u64,
}

/// The keys of a [`HeapReport`], in reli's shape.
#[derive(Serialize)]
struct ReportKeys<'a> {
    meta: MetaKeys<'a>,
    findings: &'a [HeapFinding],
    types: &'a [MemoryTotal],
    classes: &'a [MemoryTotal],
    arrays: &'a [LargeArray],
    strings: &'a [LargeString],
    roots: &'a [RootBlame],
}

#[derive(Serialize)]
struct MetaKeys<'a> {
    node_count: usize,
    edge_count: usize,
    php_version: &'a str,
    heap_memory_analyzed_percentage: Option<f64>,
    captured_at: &'a str,
    contradiction: Option<&'a str>,
}

impl Serialize for HeapReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let meta = MetaKeys {
            node_count: self.counts.nodes,
            edge_count: self.counts.edges,
            php_version: &self.overview.php_version,
            heap_memory_analyzed_percentage: self.overview.analyzed_percentage,
            captured_at: &self.overview.captured_at,
            contradiction: self.contradiction.as_deref(),
        };
        let Self { findings, types, classes, arrays, strings, roots, .. } = self;
        ReportKeys { meta, findings, types, classes, arrays, strings, roots }.serialize(serializer)
    }
}

/// Kinds of general findings about memory, the more specific ones first. Findings that give a reason take precedence over them.
const GENERAL: [FindingKind; 4] = [
    FindingKind::ChokePoint,
    FindingKind::BottleneckPath,
    FindingKind::DominantClass,
    FindingKind::DominantType,
];

/// The percentage of a general finding's impact that another finding must explain.
const EXPLAINED: u128 = 50;

/// Analyses a whole heap.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{findings::report, retention::Follow, views::Heap};

let report = report(&Heap::new(&graph, Follow::default()));
assert_eq!((report.counts.nodes, report.contradiction), (2, None));"#
)]
#[must_use]
pub fn report(heap: &Heap<'_>) -> HeapReport {
    let survey = HeapSurvey::new(heap);
    if let Some(contradiction) = contradiction(&survey.graph()) {
        return without_sizes(&survey, contradiction);
    }
    let overview = HeapOverview::of(&survey);
    let roots = blame::blame(&survey);
    let arrays = Arrays::of(&survey);
    let mut findings = all(&survey, &arrays);
    keep_largest(&mut findings);
    give_way(&mut findings);
    told::once(&survey, &mut findings);
    for finding in &mut findings {
        finding.subject = subject::of(&survey, finding);
    }
    findings.extend(overview.findings(&survey));
    findings.push(rankings::of_types(&survey.totals.location_types, survey.used));
    findings.push(rankings::of_classes(&survey.totals.classes, survey.used));
    findings.push(blame::finding(&roots));
    // The sort is stable: equal findings stay in the order of the passes.
    findings.sort_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.impact_bytes)));
    HeapReport {
        counts: survey.graph().counts(),
        overview,
        contradiction: None,
        findings,
        arrays: arrays.ranking(&survey),
        strings: rankings::strings(&survey),
        roots,
        used_bytes: survey.used,
        types: survey.totals.location_types,
        classes: survey.totals.classes,
    }
}

/// A report on a heap whose sizes contradict each other: what the allocator counts, and the calls.
fn without_sizes(survey: &HeapSurvey<'_>, contradiction: String) -> HeapReport {
    let overview = HeapOverview::of(survey);
    let mut findings = allocator::find(survey);
    let is_of_sizes = |finding: &HeapFinding| finding.kind == FindingKind::RetainedExact;
    findings.extend(overview.findings(survey).into_iter().filter(|finding| !is_of_sizes(finding)));
    findings.sort_by_key(|finding| (finding.severity, std::cmp::Reverse(finding.impact_bytes)));
    HeapReport {
        counts: survey.graph().counts(),
        overview,
        contradiction: Some(contradiction),
        findings,
        types: Vec::new(),
        classes: Vec::new(),
        arrays: Vec::new(),
        strings: Vec::new(),
        roots: Vec::new(),
        used_bytes: survey.used,
    }
}

fn all(survey: &HeapSurvey<'_>, arrays: &Arrays) -> Vec<HeapFinding> {
    let cycles = cycles::Cycles::of(survey);
    let mut findings = allocator::find(survey);
    findings.extend(cycles.find(survey));
    findings.extend(resources::find(survey, &cycles));
    let about_sizes = [
        closures::find(survey),
        strings::find(survey),
        arrays.find(survey),
        bottleneck::find(survey),
        dominance::find(survey),
        PropertyValues::of(survey).find(survey),
        objects::find(survey),
    ];
    findings.extend(about_sizes.into_iter().flatten());
    Scale::of(&survey.summary, survey.used).rated(findings)
}

/// Keeps the findings of each kind with the largest impact, up to the maximum number.
fn keep_largest(findings: &mut Vec<HeapFinding>) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.impact_bytes));
    let mut counts: HashMap<FindingKind, usize> = HashMap::new();
    findings.retain(|finding| {
        let seen = counts.entry(finding.kind).or_default();
        *seen += 1;
        *seen <= MOST
    });
}

/// Lowers the severity of a general finding if a finding with a reason explains most of its impact. The type of most of
/// the memory is of no use then, and is removed.
fn give_way(findings: &mut Vec<HeapFinding>) {
    let is_reason = |finding: &&HeapFinding| !GENERAL.contains(&finding.kind);
    let is_high = |finding: &HeapFinding| finding.severity == FindingSeverity::High;
    let told = findings.iter().filter(|finding| is_high(finding)).filter(is_reason);
    let mut told: Vec<u64> = told.map(|finding| finding.impact_bytes).collect();
    for kind in GENERAL {
        findings.retain_mut(|finding| {
            if finding.kind != kind {
                return true;
            }
            let explains =
                |&bytes: &u64| u128::from(bytes) * 100 >= u128::from(finding.impact_bytes) * EXPLAINED;
            let is_explained = told.iter().any(explains);
            if is_explained && is_high(finding) {
                finding.severity = FindingSeverity::Medium;
            } else if kind == FindingKind::BottleneckPath {
                told.push(finding.impact_bytes);
            }
            !(is_explained && kind == FindingKind::DominantType)
        });
    }
}
