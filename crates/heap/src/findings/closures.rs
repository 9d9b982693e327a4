//! Findings about closures that keep the object in which they were created.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::sink::{NodeId, StringId};

use super::amounts::{count, share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind};
use super::{MOST, Sum};

/// The minimum kept memory to report, in bytes.
const KEPT: u64 = 64 << 10;

/// The closures of one function.
struct Group {
    name: String,
    closures: u64,
    /// Objects that only closures hold, and their retained memory.
    kept: Sum,
    /// The closure that keeps most memory, and the number of bytes.
    largest: Option<(u64, NodeId)>,
    class: String,
}

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let closures = closures(context);
    let mut holders: HashMap<NodeId, u64> = HashMap::new();
    for &(_, _, this) in &closures {
        *holders.entry(this).or_default() += 1;
    }
    let mut groups: HashMap<Option<StringId>, Group> = HashMap::new();
    for (object, function, this) in closures {
        let name = name(context, function);
        let group = groups.entry(name).or_insert_with(|| Group {
            name: name.map_or_else(|| "closures".to_owned(), |name| context.text(name)),
            closures: 0,
            kept: Sum::default(),
            largest: None,
            class: String::new(),
        });
        group.closures += 1;
        // If several closures hold an object, the first one is reported.
        let held = holders.remove(&this);
        if held.is_some_and(|held| refcount(context, this) == held) {
            group.take(context, object, this);
        }
    }
    let mut groups: Vec<Group> = groups.into_values().filter(|group| group.kept.bytes >= KEPT).collect();
    groups.sort_by(|left, right| (right.kept.bytes, &left.name).cmp(&(left.kept.bytes, &right.name)));
    groups.iter().take(MOST).filter_map(|group| finding(context, group)).collect()
}

/// The closures that were created in an object: closure, function, and object.
fn closures<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<(NodeId, NodeId, NodeId)> {
    let graph = context.graph();
    let mut found = Vec::new();
    for (node, thing) in context.held() {
        let Thing::Object(class) = thing else { continue };
        if graph.string(class) != b"Closure" {
            continue;
        }
        let part = context.child(node, context.words.closure);
        let this = part.and_then(|part| context.child(part, context.words.this_ptr));
        let function = part.and_then(|part| context.child(part, context.words.func));
        if let (Some(this), Some(function)) = (this, function) {
            found.push((node, function, context.retention.representative(this)));
        }
    }
    found
}

impl Group {
    fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, closure: NodeId, this: NodeId) {
        let bytes = context.retention.retained(this);
        self.kept.add(bytes);
        if self.largest.is_none_or(|(most, _)| bytes > most) {
            self.largest = Some((bytes, closure));
            if let Thing::Object(class) = context.thing(this) {
                self.class = context.text(class);
            }
        }
    }
}

/// The name of a function. Each closure has its own function, but closures of one declaration share the name.
fn name<G: Graph + ?Sized>(context: &Context<'_, '_, G>, function: NodeId) -> Option<StringId> {
    let code = context.child(function, context.words.op_array).unwrap_or(function);
    context.attribute(code, context.words.function_name)
}

fn refcount<G: Graph + ?Sized>(context: &Context<'_, '_, G>, node: NodeId) -> u64 {
    let graph = context.graph();
    let counts = graph.locations(node).filter_map(|row| graph.location(row).refcount);
    counts.max().unwrap_or_default().into()
}

fn finding<G: Graph + ?Sized>(context: &Context<'_, '_, G>, group: &Group) -> Option<Finding> {
    let Sum { count: objects, bytes } = group.kept;
    let severity = context.severity_of(bytes);
    let (_, closure) = group.largest?;
    let place = context.place(closure);
    let text = format!(
        "{} objects of {} are kept by closures alone: {} by {}",
        count(objects),
        group.class,
        size(bytes),
        group.name
    );
    let finding = Finding::new(Kind::ClosureKeepsThis, severity, text)
        .fact("function", group.name.as_str())
        .fact("closures", group.closures)
        .fact("objects", objects)
        .fact("class_name", group.class.as_str())
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, context.used))
        .fact("path", place.path.as_str())
        .likely(
            Confidence::Medium,
            "a closure keeps the $this that it was made with, whether it uses it or not",
        )
        .check("Write `static function` or `static fn` if it does not use $this")
        .check("Otherwise let it use what it needs of the object, not the object")
        .impact(bytes)
        .at(Some(place));
    Some(finding)
}
