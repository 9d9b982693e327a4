//! Findings about arrays: large arrays, arrays with oversized tables, and arrays with equal content.

use hashbrown::HashMap;
use serde::Serialize;

use crate::largest::Largest;
use crate::sink::NodeId;

use super::amounts::{ByteSum, count, share, size};
use super::array::Array;
use super::census::Thing;
use super::content::Contents;
use super::finding::{Confidence, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
use super::limits::{MEBIBYTE, MOST};
use super::owner::{Owner, OwnerSums};
use super::severity;
use super::shapes::{AlikeValues, Shape, ShapeSums};
use super::survey::HeapSurvey;

/// The number of rows of the ranking.
const KEPT: usize = 20;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;
/// The minimum percentage of the heap that a large array retains.
const LARGE: u64 = 10;
/// The maximum percentage of used slots in a sparse array.
const SPARSE: u64 = 25;

/// The findings about all arrays.
pub(super) struct Arrays {
    largest: Largest,
    /// The retained sizes, by shape.
    alike: ShapeSums,
    /// The tables and the elements, by shape.
    tables: HashMap<Shape, [u64; 2]>,
    sparse: Largest,
    /// The excess of tables.
    overallocated: OwnerSums,
    contents: Contents,
}

/// A row of the ranking: an array, or arrays that are alike. Of those, all numbers are sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LargeArray {
    /// The array that retains most, and the path of all of them: `[]` stands for the keys of lists.
    #[serde(flatten)]
    pub place: FindingPlace,
    /// The number of arrays.
    pub count: u64,
    /// The retained size in bytes.
    pub retained_bytes: u64,
    /// The bytes of its table.
    pub table_bytes: u64,
    /// The number of elements.
    pub elements: u64,
}

impl Arrays {
    pub(super) fn of(survey: &HeapSurvey<'_>) -> Self {
        let mut arrays = Self {
            largest: Largest::new(MOST),
            alike: ShapeSums::default(),
            tables: HashMap::new(),
            sparse: Largest::new(MOST),
            overallocated: OwnerSums::default(),
            contents: Contents::default(),
        };
        // Nested arrays come later in the walk, so this order visits them before the arrays that contain them.
        for (node, _) in survey.held().rev().filter(|&(_, thing)| thing == Thing::Array) {
            if let Some(mut array) = survey.array(node).filter(|_| !survey.is_variable_table(node)) {
                array.could_be_list = !array.is_list && survey.is_ordered(array.elements_node);
                arrays.take(survey, array);
            }
        }
        arrays
    }

    fn take(&mut self, survey: &HeapSurvey<'_>, array: Array) {
        let (retained, shape) = (survey.retention.retained(array.node), survey.shape(array.node));
        self.largest.push(retained, array.node);
        self.alike.add(shape, array.node, retained);
        let [bytes, elements] = self.tables.entry(shape).or_default();
        *bytes = bytes.saturating_add(array.table_bytes);
        *elements = elements.saturating_add(array.elements);
        let excess = array.excess();
        if is_sparse(array) {
            self.sparse.push(excess, array.node);
        } else if excess > 0 {
            self.overallocated.add(survey.owner(array.node), array.node, excess);
        }
        self.contents.take(survey, &array);
    }

    /// The arrays with the largest retained sizes; those that are alike in one row.
    pub(super) fn ranking(&self, survey: &HeapSurvey<'_>) -> Vec<LargeArray> {
        let row = |alike: &AlikeValues| {
            let shape = survey.shape(alike.largest.1);
            let [table_bytes, elements] = self.tables.get(&shape).copied().unwrap_or_default();
            let (count, retained_bytes) = (alike.sum.count, alike.sum.bytes);
            LargeArray { place: survey.alike_place(alike), count, retained_bytes, table_bytes, elements }
        };
        self.alike.largest_first(KEPT).iter().map(row).collect()
    }

    pub(super) fn find(&self, survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
        let largest = self.largest.sorted().into_iter().filter(|&(bytes, _)| bytes >= MEBIBYTE);
        let mut findings: Vec<HeapFinding> =
            largest.filter_map(|(bytes, node)| Some(large(survey, bytes, &survey.array(node)?))).collect();
        let arrays = self.sparse.sorted().into_iter().filter_map(|(_, node)| survey.array(node));
        findings.extend(arrays.map(|array| sparse(survey, array)));
        findings.extend(self.overallocation(survey));
        findings.extend(self.contents.find(survey));
        findings
    }

    fn overallocation(&self, survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
        let owners = self.overallocated.largest_first();
        let all = owners.iter().fold(ByteSum::default(), |all, (_, sum, _)| all.with(*sum));
        if all.bytes < SAVED {
            return None;
        }
        let severity = severity::by_size(all.bytes);
        let line = |&(owner, sum, _): &(Owner, ByteSum, NodeId)| {
            format!("{}: {} arrays, {}", survey.label(owner), count(sum.count), size(sum.bytes))
        };
        let text =
            format!("{} arrays have oversized tables, which waste {}", count(all.count), size(all.bytes));
        let place = owners.first().map(|&(owner, _, node)| survey.owner_place(owner, node));
        let finding = HeapFinding::new(FindingKind::OverallocatedArrays, severity, text)
            .fact("arrays", all.count)
            .fact("saved_bytes", all.bytes)
            .fact("percentage_of_heap", share(all.bytes, survey.used))
            .details(owners.iter().take(MOST).map(line).collect())
            .likely(
                Confidence::High,
                "Elements were removed, or lists were not filled in order. PHP never shrinks the table of an array.",
            )
            .check("Rebuild the arrays: array_values($list), or array_slice($array, 0, null, true) to keep the keys.")
            .impact(all.bytes)
            .at(place);
        Some(finding)
    }
}

fn large(survey: &HeapSurvey<'_>, bytes: u64, array: &Array) -> HeapFinding {
    let severity = severity::reached(bytes, survey.used, &[(LARGE, FindingSeverity::Medium)]);
    let place = survey.place(array.node);
    let text = format!(
        "{} in {} elements (table {}): {}",
        size(bytes),
        count(array.elements),
        size(array.table_bytes),
        place.path
    );
    HeapFinding::new(FindingKind::LargeArray, severity.unwrap_or(FindingSeverity::Low), text)
        .fact("path", place.path.as_str())
        .fact("retained_bytes", bytes)
        .fact("table_bytes", array.table_bytes)
        .fact("elements", array.elements)
        .fact("percentage_of_heap", share(bytes, survey.used))
        .likely(Confidence::Medium, "It is a complete list of something, or a cache.")
        .check("Check whether it grows with the input, and whether all of it is needed at once.")
        .impact(bytes)
        .at(Some(place))
}

fn is_sparse(array: Array) -> bool {
    let used = array.elements.saturating_mul(100);
    array.excess() >= SAVED && used <= array.slots().saturating_mul(SPARSE)
}

fn sparse(survey: &HeapSurvey<'_>, array: Array) -> HeapFinding {
    let excess = array.excess();
    let place = survey.place(array.node);
    let (used, slots) = (array.elements, array.slots());
    let text = format!(
        "{} of {} slots used in a table of {}: {}",
        count(used),
        count(slots),
        size(array.table_bytes),
        place.path
    );
    let severity = severity::by_size(excess);
    HeapFinding::new(FindingKind::SparseArray, severity, text)
        .fact("path", place.path.as_str())
        .fact("elements", used)
        .fact("slots", slots)
        .fact("table_bytes", array.table_bytes)
        .fact("saved_bytes", excess)
        .likely(Confidence::High, "Most elements were removed. PHP never shrinks the table of an array.")
        .check(
            "Rebuild the array: array_values($list), or array_slice($array, 0, null, true) to keep the keys.",
        )
        .impact(excess)
        .at(Some(place))
}
