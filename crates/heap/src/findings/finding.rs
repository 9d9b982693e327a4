//! The contents of a finding.

use borehole_text::named;
use serde::{Serialize, Serializer};

use crate::serialized::{self, serialized_by_name};
use crate::sink::NodeId;

/// An observation about a heap that may require action.
///
/// Serialized, its facts are one object, and its place becomes the keys `node_id` and `path`. Absent details and places have no
/// key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeapFinding {
    /// The kind of the finding.
    pub kind: FindingKind,
    /// How much it matters.
    pub severity: FindingSeverity,
    /// The certainty of `hypothesis`.
    pub confidence: Confidence,
    /// The finding in one line.
    pub summary: String,
    /// The observations, in order.
    #[serde(serialize_with = "serialized::object")]
    pub facts: Vec<(&'static str, Fact)>,
    /// Further observations, one per line: the largest of many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The likely meaning.
    pub hypothesis: String,
    /// The next things to check.
    pub next_checks: Vec<String>,
    /// The memory concerned in bytes: the most that could be freed. 0: none.
    pub impact_bytes: u64,
    /// The place to act on; `None` if the finding is about the whole heap.
    #[serde(flatten)]
    pub place: Option<FindingPlace>,
    /// The thing that the finding is about, by names only: a class, a property, or the place without lines and keys of lists. It is
    /// the same in each heap of a program; empty if a heap has at most one finding of the kind.
    #[serde(skip)]
    pub subject: String,
}

/// A node and its path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FindingPlace {
    /// The node.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The path in PHP's syntax.
    pub path: String,
}

/// An observation. Serialized, it is a number, a text, or a list of texts or of objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Fact {
    /// A count, or a number of bytes.
    Number(u64),
    /// A percentage, or another number with a fraction; always valid in JSON.
    Share(f64),
    /// A name or a path.
    Text(String),
    /// Several texts.
    List(Vec<String>),
    /// A table: each row names its cells.
    #[serde(serialize_with = "rows")]
    Rows(Vec<Vec<(&'static str, Fact)>>),
}

serialized_by_name!(FindingKind, FindingSeverity, Confidence);

fn rows<S: Serializer>(rows: &[Vec<(&'static str, Fact)>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().map(|row| FactRow(row)))
}

/// A row of a table, serialized as an object.
#[derive(Serialize)]
#[serde(transparent)]
struct FactRow<'a>(#[serde(serialize_with = "serialized::object")] &'a [(&'static str, Fact)]);

impl From<u64> for Fact {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Fact {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<f64> for Fact {
    fn from(number: f64) -> Self {
        Self::Share(if number.is_finite() { number } else { 0.0 })
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<String>> for Fact {
    fn from(list: Vec<String>) -> Self {
        Self::List(list)
    }
}

/// How much a finding matters, in descending order.
///
/// Source: reli 0.12, `FindingSeverity` and the order of its report.
///
/// # Examples
///
/// ```
/// use borehole_heap::findings::FindingSeverity;
///
/// assert_eq!("high".parse(), Ok(FindingSeverity::High));
/// assert!(FindingSeverity::High < FindingSeverity::Info, "the first comes first");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingSeverity {
    /// Look at it first.
    High,
    /// A coming fault, or a doubt about the other findings.
    Warning,
    /// Worth a look if memory matters.
    Medium,
    /// Small, or normal.
    Low,
    /// No action needed.
    Info,
}

impl FindingSeverity {
    /// All of them, in order.
    pub const ALL: &'static [Self] = &[Self::High, Self::Warning, Self::Medium, Self::Low, Self::Info];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Warning => "warning",
            Self::Medium => "medium",
            Self::Low => "low",
            Self::Info => "info",
        }
    }
}

named!(FindingSeverity, "severity");

/// The certainty of a finding.
///
/// # Examples
///
/// ```
/// use borehole_heap::findings::Confidence;
///
/// assert_eq!(Confidence::Medium.to_string(), "medium");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Confidence {
    /// It follows from the heap.
    High,
    /// It is usually so.
    Medium,
    /// It may be so.
    Low,
}

impl Confidence {
    /// All of them, in order.
    pub const ALL: &'static [Self] = &[Self::High, Self::Medium, Self::Low];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

named!(Confidence, "certainty");
named!(FindingKind, "kind of finding");

/// Declares the kinds with their names.
macro_rules! kinds {
    ($($kind:ident = $name:literal: $doc:literal,)+) => {
        /// The kind of a finding. Kinds that reli has too have reli's names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FindingKind {
            $(#[doc = $doc] $kind,)+
        }

        impl FindingKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }
    };
}

kinds! {
    BottleneckPath = "bottleneck_path": "The path to the value that retains the most.",
    ChokePoint = "choke_point": "A small object that retains much.",
    DominantClass = "dominant_class": "A class that takes most of the memory of objects.",
    DominantType = "dominant_type": "A type that takes most of the heap.",
    GarbageCycles = "garbage_cycles": "Values that only cycles hold, and that have not been collected.",
    CycleCluster = "cycle_cluster": "Cycles of objects of the same classes.",
    MicroCycle = "micro_cycle": "Cycles of two objects.",
    DiContainerCycle = "di_container_cycle": "A cycle of many classes, as in a service container.",
    ResourceLeakRisk = "resource_leak_risk": "Connections that a cycle holds.",
    ClosureKeepsThis = "closure_keeps_this": "Objects held only by closures that were created in them.",
    DuplicateStrings = "duplicate_strings": "Strings with equal content.",
    DuplicateArrays = "duplicate_arrays": "Arrays with equal content.",
    OverallocatedArrays = "overallocated_arrays": "Arrays with oversized tables.",
    SparseArray = "sparse_array": "An array with mostly free slots.",
    LargeArray = "large_array": "An array that retains much.",
    LargeString = "large_string": "A long string.",
    PropertyScaling = "property_scaling": "The cost of each instance of a class.",
    ExpensiveProperty = "expensive_property": "A property whose values retain much in all instances together.",
    OwnershipPattern = "ownership_pattern": "Objects of a class that each belong to one object of another class.",
    CompanionCluster = "companion_cluster": "Classes with equal numbers of instances.",
    DynamicPropertiesOverhead = "dynamic_properties_overhead": "Tables of undeclared properties.",
    PropertyTables = "property_tables": "Tables of declared properties, made by a loop or a cast.",
    StructuralDuplicate = "structural_duplicate": "Objects of a class with equal content.",
    EmptyObject = "empty_object": "Objects without properties.",
    DedupCandidate = "dedup_candidate": "A property with equal strings in many instances.",
    SharedSingleton = "shared_singleton": "An object with very many references to it.",
    SharedFanin = "shared_fanin": "A property by which many instances refer to shared objects.",
    NearMemoryLimit = "near_memory_limit": "Memory use close to the limit.",
    CoverageGap = "coverage_gap": "Memory that no known root leads to.",
    CacheBloat = "zendmm_cache_bloat": "Many cached chunks.",
    CacheExpansionImminent = "zendmm_cache_expansion_imminent": "PHP is about to cache more chunks.",
    ChunksPinned = "zendmm_chunks_pinned_by_fragmentation": "Chunks that are nearly empty but cannot be released.",
    HeapFragmentation = "zendmm_heap_fragmentation_high": "More free than used memory in chunks.",
    ChunkHeuristicState = "zendmm_chunk_heuristic_state": "The counters of chunks.",
    ChunkFragmentationState = "zendmm_chunk_fragmentation_state": "The free memory in chunks.",
    Overview = "overview": "The heap as a whole.",
    CallStack = "call_stack": "The executing calls.",
    TypeRanking = "type_ranking": "Memory by type.",
    ClassRanking = "class_ranking": "Memory by class.",
    RootBlame = "root_blame": "Memory by the root that holds it.",
    StaticGrowth = "static_growth": "A static variable that grows.",
    RetainedExact = "retained_exact": "The method of computing retained sizes.",
}

impl HeapFinding {
    pub(crate) fn new(kind: FindingKind, severity: FindingSeverity, summary: impl Into<String>) -> Self {
        Self {
            kind,
            severity,
            confidence: Confidence::High,
            summary: summary.into(),
            facts: Vec::new(),
            details: Vec::new(),
            hypothesis: String::new(),
            next_checks: Vec::new(),
            impact_bytes: 0,
            place: None,
            subject: String::new(),
        }
    }

    pub(crate) fn fact(mut self, name: &'static str, fact: impl Into<Fact>) -> Self {
        self.facts.push((name, fact.into()));
        self
    }

    pub(super) fn details(mut self, details: Vec<String>) -> Self {
        self.details = details;
        self
    }

    pub(crate) fn likely(mut self, confidence: Confidence, hypothesis: &str) -> Self {
        self.confidence = confidence;
        hypothesis.clone_into(&mut self.hypothesis);
        self
    }

    pub(crate) fn check(mut self, check: impl Into<String>) -> Self {
        self.next_checks.push(check.into());
        self
    }

    pub(super) fn impact(mut self, bytes: u64) -> Self {
        self.impact_bytes = bytes;
        self
    }

    pub(super) fn at(mut self, place: Option<FindingPlace>) -> Self {
        self.place = place;
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn kinds_have_distinct_names() {
        let names: HashSet<_> = FindingKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), FindingKind::ALL.len());
    }

    /// Whether each of `all` is parsed from what it displays.
    fn are_read_back<T: Copy + PartialEq + std::fmt::Display + std::str::FromStr>(all: &[T]) -> bool {
        all.iter().all(|one| one.to_string().parse().is_ok_and(|read: T| read == *one))
    }

    #[test]
    fn names_are_read_back() {
        assert!(are_read_back(FindingKind::ALL));
        assert!(are_read_back(FindingSeverity::ALL));
        assert!(are_read_back(Confidence::ALL));
        assert!(are_read_back(crate::Strength::ALL));
        let error = "severe".parse::<FindingSeverity>().unwrap_err().to_string();
        assert_eq!(error, "unknown severity: expected one of high, warning, medium, low, info, found severe");
    }

    #[test]
    fn shares_are_valid_json_numbers() {
        for share in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Fact::from(share), Fact::Share(0.0));
        }
    }
}
