//! Findings about the paths to the largest part of the memory.

use hashbrown::{HashMap, HashSet};

use crate::retention::Retention;
use crate::sink::{NodeId, StringId};

use super::amounts::{count, is_share, share, size};
use super::census::Thing;
use super::finding::{Confidence, Fact, FindingKind, FindingSeverity, HeapFinding};
use super::limits::{MEBIBYTE, MOST};
use super::properties::is_within_class;
use super::severity;
use super::survey::HeapSurvey;

/// Severities by the percentage of the heap.
const LEVELS: [(u64, FindingSeverity); 2] = [(30, FindingSeverity::High), (10, FindingSeverity::Medium)];

/// The path is followed as long as the next value retains at least this percentage of the first one's retained size;
/// beyond, the memory branches.
const TOGETHER: u64 = 50;

/// The maximum shallow size of a small object, in bytes.
const SMALL: u64 = 4096;

/// Of two choke points one above the other, the upper one is reported if the lower one retains less than this
/// percentage of the upper one's size.
const SAME: u64 = 80;

/// No node.
const NONE: u32 = u32::MAX;

/// The number of values of one class or arrays on the heaviest path from which it is a list or a tree, whose head is named.
const RECURRING: usize = 16;

/// The maximum number of steps in the chain of a finding: the outermost, and the nearest.
const OUTERMOST: usize = 4;
const NEAREST: usize = 8;

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let Some(start) = heaviest_value(survey) else { return Vec::new() };
    let way = HeaviestWay::of(survey.graph().counts().nodes, survey.retention);
    let values = way.values(survey, start);
    let list = list_head(survey, &values);
    let end = list.or(values.last().copied()).unwrap_or(start);
    let mut findings = Vec::new();
    findings.extend(bottleneck(survey, end, list.map(|head| way.list_length(survey, head))));
    findings.extend(choke_points(survey, end));
    findings
}

/// The value of the program with the largest retained size; of equal ones, the outermost.
fn heaviest_value(survey: &HeapSurvey<'_>) -> Option<NodeId> {
    let mut heaviest = None;
    for node in survey.retention.nodes() {
        let retained = survey.retention.retained(node);
        if heaviest.is_none_or(|(_, most)| retained > most) && is_value(survey, node) {
            heaviest = Some((node, retained));
        }
    }
    heaviest.map(|(node, _)| node)
}

fn is_value(survey: &HeapSurvey<'_>, node: NodeId) -> bool {
    survey.thing(node) != Thing::Other && !survey.is_variable_table(node)
}

/// For each node, the node with the largest retained size that it immediately dominates.
struct HeaviestWay(Vec<u32>);

impl HeaviestWay {
    fn of(count: usize, retention: &Retention) -> Self {
        let mut heaviest = vec![NONE; count];
        for node in retention.nodes() {
            let Some(above) = retention.dominator(node) else { continue };
            let Some(entry) = heaviest.get_mut(above.0 as usize) else { continue };
            if *entry == NONE || retention.retained(node) > retention.retained(NodeId(*entry)) {
                *entry = node.0;
            }
        }
        Self(heaviest)
    }

    /// The nodes from `start` down, each the heaviest below the one before.
    fn down(&self, start: NodeId) -> impl Iterator<Item = NodeId> {
        let below = |node: &NodeId| self.0.get(node.0 as usize).filter(|&&below| below != NONE);
        std::iter::successors(Some(start), move |node| below(node).map(|&below| NodeId(below)))
    }

    /// The values from `start` down that still retain most of what `start` retains.
    fn values(&self, survey: &HeapSurvey<'_>, start: NodeId) -> Vec<NodeId> {
        let retention = survey.retention;
        let is_most =
            |node: &NodeId| is_share(retention.retained(*node), TOGETHER, retention.retained(start));
        let most = self.down(start).take_while(|node| *node == start || is_most(node));
        most.filter(|&node| is_value(survey, node)).collect()
    }

    /// The number of values like `head` from it down.
    fn list_length(&self, survey: &HeapSurvey<'_>, head: NodeId) -> usize {
        let thing = survey.thing(head);
        self.down(head).filter(|&node| survey.thing(node) == thing).count()
    }
}

/// The first of these values, each below the one before, that is followed by many of its kind.
fn list_head(survey: &HeapSurvey<'_>, values: &[NodeId]) -> Option<NodeId> {
    let mut objects: HashMap<StringId, usize> = HashMap::new();
    for class in values.iter().filter_map(|&node| survey.thing(node).class()) {
        *objects.entry(class).or_default() += 1;
    }
    let recurs = |class: StringId| objects.get(&class).is_some_and(|&count| count >= RECURRING);
    let arrays = values.iter().filter(|&&node| survey.thing(node) == Thing::Array).count();
    let mut heads = values.iter().copied();
    let head = heads.find(|&node| survey.thing(node).class().is_some_and(recurs));
    let of_arrays = || values.iter().copied().find(|&node| survey.thing(node) == Thing::Array);
    head.or_else(|| of_arrays().filter(|_| arrays >= RECURRING))
}

fn bottleneck(survey: &HeapSurvey<'_>, end: NodeId, list_length: Option<usize>) -> Option<HeapFinding> {
    let bytes = survey.retention.retained(end);
    let severity = severity::reached(bytes, survey.used, &LEVELS).filter(|_| bytes >= MEBIBYTE)?;
    let place = survey.place(end);
    let what = what(survey, end);
    let list = list_length.map(|length| format!(", a chain of {} x {what}", count(length as u64)));
    let text = format!(
        "{} ({}, {:.1}% of the heap{})",
        place.path,
        size(bytes),
        share(bytes, survey.used),
        list.unwrap_or_default()
    );
    let mut finding = HeapFinding::new(FindingKind::BottleneckPath, severity, text)
        .fact("path", place.path.as_str())
        .fact("what", what)
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, survey.used));
    if let Some(elements) = elements(survey, end) {
        finding = finding.fact("elements", elements);
    }
    if let Some(length) = list_length {
        finding = finding.fact("chain_length", length);
    }
    let finding = finding
        .fact("chain", Fact::Rows(chain(survey, end)))
        .likely(Confidence::High, "This value keeps most of the heap alive. Dropping it frees that memory.")
        .check("Check whether it grows with each job. If so, bound it, or drop it between jobs.")
        .impact(bytes)
        .at(Some(place));
    Some(finding)
}

/// The root that leads to `end`, the values that hold it, and itself, each with its retained size. Other roots may lead to
/// `end` too: then the root has no size. The middle of a long chain is left out.
fn chain(survey: &HeapSurvey<'_>, end: NodeId) -> Vec<Vec<(&'static str, Fact)>> {
    let upwards = std::iter::successors(Some(end), |&node| survey.retention.dominator(node));
    let mut values: Vec<NodeId> = upwards.filter(|&node| is_value(survey, node)).collect();
    if values.len() > OUTERMOST + NEAREST {
        values.drain(NEAREST..values.len() - OUTERMOST);
    }
    let tree = survey.heap.tree();
    let root = std::iter::successors(Some(end), |&node| tree.parent(node)).last();
    values.extend(root.filter(|&root| root != end));
    let row = |&node: &NodeId| {
        let is_root = Some(node) == root;
        let name = tree.link(node).filter(|_| is_root).map(|link| survey.text(link));
        let retained = survey.retention.retained(node);
        let holds_all = retained >= survey.retention.retained(end);
        let mut row = vec![
            ("path", Fact::from(name.unwrap_or_else(|| survey.place(node).path))),
            ("node_id", Fact::from(u64::from(node.0))),
        ];
        row.extend(holds_all.then(|| ("retained_bytes", Fact::from(retained))));
        row
    };
    values.iter().rev().map(row).collect()
}

/// The kind of a value, in a word.
fn what(survey: &HeapSurvey<'_>, node: NodeId) -> String {
    match survey.thing(node) {
        Thing::Object(class) => survey.text(class),
        Thing::Array => "array".to_owned(),
        Thing::String(_) => "string".to_owned(),
        Thing::Other => String::from_utf8_lossy(survey.graph().node_type_name(node)).into_owned(),
    }
}

/// The number of elements of an array.
fn elements(survey: &HeapSurvey<'_>, node: NodeId) -> Option<u64> {
    let table = survey.child(node, survey.words.array_elements)?;
    survey.number(table, survey.words.count)
}

/// Small objects that retain much, except those on the path to `end`, which is already reported.
fn choke_points(survey: &HeapSurvey<'_>, end: NodeId) -> Vec<HeapFinding> {
    let mut points = lowest_large_objects(survey);
    let upwards = std::iter::successors(Some(end), |&node| survey.retention.dominator(node));
    let told: HashSet<NodeId> = upwards.filter(|&node| survey.thing(node) != Thing::Other).collect();
    points.retain(|(node, _)| !told.contains(node));
    points.sort_by_key(|&(node, bytes)| (std::cmp::Reverse(bytes), node));
    // The end of a list is no more than the list.
    let is_small = |node| survey.shallow(node) <= SMALL && !is_within_class(survey, node);
    let small = points.into_iter().filter(|&(node, _)| is_small(node)).take(MOST);
    small.map(|(node, bytes)| choke_point(survey, node, bytes)).collect()
}

/// The objects that retain at least [`MEBIBYTE`] and have no object below that retains nearly as much.
fn lowest_large_objects(survey: &HeapSurvey<'_>) -> Vec<(NodeId, u64)> {
    let retention = survey.retention;
    let large: Vec<NodeId> = retention.nodes().filter(|&node| retention.retained(node) >= MEBIBYTE).collect();
    let mut below: HashMap<NodeId, u64> = HashMap::new();
    let mut points = Vec::new();
    // This order visits nodes before their dominators.
    for &node in large.iter().rev() {
        let bytes = retention.retained(node);
        let largest_below = below.remove(&node).unwrap_or_default();
        let is_object = matches!(survey.thing(node), Thing::Object(_));
        if is_object && !is_share(largest_below, SAME, bytes) {
            points.push((node, bytes));
        }
        if let Some(above) = retention.dominator(node) {
            let largest = if is_object { bytes } else { largest_below };
            let entry = below.entry(above).or_default();
            *entry = largest.max(*entry);
        }
    }
    points
}

fn choke_point(survey: &HeapSurvey<'_>, node: NodeId, bytes: u64) -> HeapFinding {
    let severity = severity::reached(bytes, survey.used, &LEVELS).unwrap_or(FindingSeverity::Low);
    let (place, class) = (survey.place(node), what(survey, node));
    let shallow_bytes = survey.shallow(node);
    let text = format!("{class} ({shallow_bytes} B) retains {}: {}", size(bytes), place.path);
    HeapFinding::new(FindingKind::ChokePoint, severity, text)
        .fact("class_name", class)
        .fact("shallow_bytes", shallow_bytes)
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, survey.used))
        .fact("path", place.path.as_str())
        .likely(Confidence::High, "This object alone keeps that memory alive. Dropping it frees all of it.")
        .check("Check what still needs it, and whether it must hold all of this.")
        .impact(bytes)
        .at(Some(place))
}
