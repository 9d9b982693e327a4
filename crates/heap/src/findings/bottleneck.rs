//! Findings about the paths to the largest part of the memory.

use hashbrown::{HashMap, HashSet};

use crate::graph::Graph;
use crate::retention::Retention;
use crate::sink::NodeId;

use super::amounts::{is_share, share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Severity};
use super::{MEBIBYTE, MOST};

/// Percentages of the heap.
const HIGH: u64 = 30;
const MEDIUM: u64 = 10;

/// The path is followed as long as the next value retains at least this percentage of the first one's retained size;
/// beyond, the memory branches.
const TOGETHER: u64 = 50;

/// The maximum own size of a small object, in bytes.
const SMALL: u64 = 4096;

/// Of two choke points one above the other, the upper one is reported if the lower one retains less than this
/// percentage of the upper one's size.
const SAME: u64 = 80;

/// No node.
const NONE: u32 = u32::MAX;

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let Some(start) = heaviest_value(context) else { return Vec::new() };
    let end = followed(context, start);
    let mut findings = Vec::new();
    findings.extend(bottleneck(context, start, end));
    findings.extend(choke_points(context, end));
    findings
}

/// The value of the program with the largest retained size; of equal ones, the outermost.
fn heaviest_value<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Option<NodeId> {
    let mut heaviest = None;
    for node in context.retention.nodes() {
        let retained = context.retention.retained(node);
        if heaviest.is_none_or(|(_, most)| retained > most) && is_value(context, node) {
            heaviest = Some((node, retained));
        }
    }
    heaviest.map(|(node, _)| node)
}

fn is_value<G: Graph + ?Sized>(context: &Context<'_, '_, G>, node: NodeId) -> bool {
    context.thing(node) != Thing::Other && !context.is_symbol_table(node)
}

/// The last value below `start` that still retains most of what `start` retains.
fn followed<G: Graph + ?Sized>(context: &Context<'_, '_, G>, start: NodeId) -> NodeId {
    let retention = context.retention;
    let heaviest = heaviest_dominated(context.graph().counts().nodes, retention);
    let (mut node, mut value) = (start, start);
    while let Some(&below) = heaviest.get(node.0 as usize).filter(|&&below| below != NONE) {
        node = NodeId(below);
        if !is_share(retention.retained(node), TOGETHER, retention.retained(start)) {
            break;
        }
        if is_value(context, node) {
            value = node;
        }
    }
    value
}

/// For each node, the node with the largest retained size that it immediately dominates.
fn heaviest_dominated(count: usize, retention: &Retention) -> Vec<u32> {
    let mut heaviest = vec![NONE; count];
    for node in retention.nodes() {
        let Some(above) = retention.dominator(node) else { continue };
        let Some(entry) = heaviest.get_mut(above.0 as usize) else { continue };
        if *entry == NONE || retention.retained(node) > retention.retained(NodeId(*entry)) {
            *entry = node.0;
        }
    }
    heaviest
}

fn severity<G: Graph + ?Sized>(context: &Context<'_, '_, G>, bytes: u64) -> Option<Severity> {
    let severity = match bytes {
        0..MEBIBYTE => return None,
        _ if is_share(bytes, HIGH, context.used) => Severity::High,
        _ if is_share(bytes, MEDIUM, context.used) => Severity::Medium,
        _ => Severity::Low,
    };
    Some(context.weighed(severity))
}

fn bottleneck<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    start: NodeId,
    end: NodeId,
) -> Option<Finding> {
    let bytes = context.retention.retained(end);
    let severity = severity(context, bytes).filter(|_| is_share(bytes, MEDIUM, context.used))?;
    let place = context.place(end);
    let text = format!("{} ({}, {:.1}% of the heap)", place.path, size(bytes), share(bytes, context.used));
    let mut finding = Finding::new(Kind::BottleneckPath, severity, text)
        .fact("path", place.path.as_str())
        .fact("what", what(context, end))
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, context.used));
    if let Some(elements) = elements(context, end) {
        finding = finding.fact("elements", elements);
    }
    if start != end {
        let above = context.place(start);
        finding = finding.fact("held_through", above.path);
    }
    let finding = finding
        .likely(Confidence::High, "most memory hangs on this: without it, it would be freed")
        .check("See whether it grows with work done; if so, bound it, or let go of it between jobs")
        .impact(bytes)
        .at(Some(place));
    Some(finding)
}

/// The kind of a value, in a word.
fn what<G: Graph + ?Sized>(context: &Context<'_, '_, G>, node: NodeId) -> String {
    match context.thing(node) {
        Thing::Object(class) => context.text(class),
        Thing::Array => "array".to_owned(),
        Thing::String(_) => "string".to_owned(),
        Thing::Other => String::from_utf8_lossy(context.graph().node_type_name(node)).into_owned(),
    }
}

/// The number of elements of an array.
fn elements<G: Graph + ?Sized>(context: &Context<'_, '_, G>, node: NodeId) -> Option<u64> {
    let table = context.child(node, context.words.array_elements)?;
    context.number(table, context.words.count)
}

/// Small objects that retain much, except those on the path to `end`, which is already reported.
fn choke_points<G: Graph + ?Sized>(context: &Context<'_, '_, G>, end: NodeId) -> Vec<Finding> {
    let mut points = lowest_large_objects(context);
    let upwards = std::iter::successors(Some(end), |&node| context.retention.dominator(node));
    let told: HashSet<NodeId> = upwards.filter(|&node| context.thing(node) != Thing::Other).collect();
    points.retain(|(node, _)| !told.contains(node));
    points.sort_by_key(|&(node, bytes)| (std::cmp::Reverse(bytes), node));
    let is_small = |node| context.own(node) <= SMALL;
    let small = points.into_iter().filter(|&(node, _)| is_small(node)).take(MOST);
    small.filter_map(|(node, bytes)| choke_point(context, node, bytes)).collect()
}

/// The objects that retain at least [`MEBIBYTE`] and have no object below that retains nearly as much.
fn lowest_large_objects<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<(NodeId, u64)> {
    let retention = context.retention;
    let large: Vec<NodeId> = retention.nodes().filter(|&node| retention.retained(node) >= MEBIBYTE).collect();
    let mut below: HashMap<NodeId, u64> = HashMap::new();
    let mut points = Vec::new();
    // This order visits nodes before their dominators.
    for &node in large.iter().rev() {
        let bytes = retention.retained(node);
        let largest_below = below.remove(&node).unwrap_or_default();
        let is_object = matches!(context.thing(node), Thing::Object(_));
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

fn choke_point<G: Graph + ?Sized>(context: &Context<'_, '_, G>, node: NodeId, bytes: u64) -> Option<Finding> {
    let severity = severity(context, bytes)?;
    let (place, class) = (context.place(node), what(context, node));
    let own = context.own(node);
    let text = format!("{class} ({own} B) holds {}: {}", size(bytes), place.path);
    let finding = Finding::new(Kind::ChokePoint, severity, text)
        .fact("class_name", class)
        .fact("own_bytes", own)
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, context.used))
        .fact("path", place.path.as_str())
        .likely(Confidence::High, "without this one object, all of it would be freed")
        .check("See who still needs it, and whether it has to hold all of this")
        .impact(bytes)
        .at(Some(place));
    Some(finding)
}
