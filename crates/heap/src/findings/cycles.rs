//! Findings about objects and arrays that hold each other, which PHP frees only when its cycle collector runs.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::sink::{NodeId, StringId};

use super::amounts::{count, share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Place, Severity};
use super::strong::strong_cycles;
use super::{MEBIBYTE, MOST, Sum};

/// A cycle of more classes is assumed to be a service container, and intended. Source: reli 0.12.
const CONTAINER_CLASSES: usize = 15;
/// The minimum number of cycles to report, unless they are large.
const COUNT: u64 = 10;
const HELD: u64 = 64 << 10;

/// The cycles of strong references.
pub(super) struct Cycles {
    pub(super) all: Vec<Vec<u32>>,
    groups: Vec<Group>,
}

/// Cycles with the same number of objects of each class.
pub(super) struct Group {
    /// The classes, and the number of objects of each; empty for cycles of arrays only.
    pub(super) classes: Vec<(StringId, u64)>,
    pub(super) cycles: u64,
    /// The number of cycles that nothing else holds.
    garbage: u64,
    own_bytes: u64,
    retained_bytes: u64,
    /// The retained size and the index of the cycle that retains most.
    largest: (u64, usize),
    /// Whether each cycle is entered at one node only.
    has_one_entry: bool,
}

impl Cycles {
    pub(super) fn of<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Self {
        let all = strong_cycles(context);
        let mut groups: HashMap<Vec<(StringId, u64)>, Group> = HashMap::new();
        for (number, cycle) in all.iter().enumerate() {
            let classes = classes(context, cycle);
            let new = || Group::new(classes.clone());
            groups.entry(classes.clone()).or_insert_with(new).take(context, cycle, number);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by(|left, right| {
            (right.retained_bytes, &left.classes).cmp(&(left.retained_bytes, &right.classes))
        });
        Self { all, groups }
    }

    pub(super) fn find<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Vec<Finding> {
        let told = self.groups.iter().filter(|group| group.cycles >= COUNT || group.retained_bytes >= HELD);
        let clusters = told.take(MOST).map(|group| self.cluster(context, group));
        clusters.chain(self.garbage(context)).collect()
    }

    fn cluster<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>, group: &Group) -> Finding {
        let bytes = group.retained_bytes;
        let objects: u64 = group.classes.iter().map(|&(_, objects)| objects).sum();
        let (kind, severity) = match bytes {
            _ if group.classes.len() > CONTAINER_CLASSES => (Kind::DiContainerCycle, Severity::Info),
            MEBIBYTE.. => (Kind::CycleCluster, Severity::Medium),
            _ if objects == 2 => (Kind::MicroCycle, Severity::Low),
            _ => (Kind::CycleCluster, Severity::Low),
        };
        let names = names(context, &group.classes);
        let text = format!(
            "{} cycles of {names}: {} of their own, {} retained",
            count(group.cycles),
            size(group.own_bytes),
            size(bytes)
        );
        let mut finding = Finding::new(kind, context.weighed(severity), text)
            .fact("cycles", group.cycles)
            .fact("classes_per_cycle", names)
            .fact("awaiting_collection", group.garbage)
            .fact("own_bytes", group.own_bytes)
            .fact("retained_bytes", bytes)
            .likely(Confidence::High, "when they are let go of, they stay until PHP looks for cycles")
            .impact(bytes);
        if group.has_one_entry {
            finding = finding.fact("entry_points", 1_u64);
        }
        self.advised(context, group, finding)
    }

    /// Adds the reference to break, if there is one.
    fn advised<G: Graph + ?Sized>(
        &self,
        context: &Context<'_, '_, G>,
        group: &Group,
        finding: Finding,
    ) -> Finding {
        let Some((reference, place)) = self.breaking(context, group) else { return finding };
        finding
            .fact("back_reference", reference.as_str())
            .fact("path", place.path.as_str())
            .check(format!("Break {reference}: with a WeakReference, or by letting go of it in the end"))
            .at(Some(place))
    }

    /// The reference that closes the largest cycle of a group, and its place.
    fn breaking<G: Graph + ?Sized>(
        &self,
        context: &Context<'_, '_, G>,
        group: &Group,
    ) -> Option<(String, Place)> {
        let cycle = self.all.get(group.largest.1)?;
        let is_object = |node: &&u32| matches!(context.thing(NodeId(**node)), Thing::Object(_));
        let head = NodeId(*cycle.iter().find(is_object).or(cycle.first())?);
        for &parent in cycle {
            let parent = NodeId(parent);
            let Some(closing) = context.children(parent).find(|child| child.node == head) else { continue };
            let from = context.label(context.owner_by(parent, closing.link, parent));
            let to = match context.thing(head) {
                Thing::Object(class) => context.text(class),
                _ => "array".to_owned(),
            };
            return Some((format!("{from} -> {to}"), context.place(parent)));
        }
        None
    }

    /// The finding about all garbage together.
    fn garbage<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Option<Finding> {
        let bytes = garbage_bytes(context);
        if bytes < HELD {
            return None;
        }
        let severity = context.severity_of(bytes);
        let group = self.groups.iter().find(|group| group.garbage > 0);
        let cycles: u64 = self.groups.iter().map(|group| group.garbage).sum();
        let classes = garbage_classes(context);
        let line =
            |(class, sum): &(String, Sum)| format!("{class}: {}, {}", count(sum.count), size(sum.bytes));
        let text = format!(
            "{} are held by nothing but {} cycles, and wait to be collected",
            size(bytes),
            count(cycles)
        );
        let finding = Finding::new(Kind::GarbageCycles, severity, text)
            .fact("retained_bytes", bytes)
            .fact("cycles", cycles)
            .fact("objects", classes.iter().map(|(_, sum)| sum.count).sum::<u64>())
            .fact("percentage_of_heap", share(bytes, context.used))
            .details(classes.iter().take(MOST).map(line).collect())
            .likely(
                Confidence::High,
                "PHP looks for cycles when 10,000 values may be in some, however large: until then, or for good where \
                 the collector is off, they stay",
            )
            .check("Call gc_collect_cycles() between jobs as long as there are such cycles")
            .impact(bytes);
        Some(match group {
            Some(group) => self.advised(context, group, finding),
            None => finding,
        })
    }
}

impl Group {
    fn new(classes: Vec<(StringId, u64)>) -> Self {
        let (cycles, garbage, own_bytes, retained_bytes) = (0, 0, 0, 0);
        Self { classes, cycles, garbage, own_bytes, retained_bytes, largest: (0, 0), has_one_entry: true }
    }

    fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, cycle: &[u32], number: usize) {
        let nodes = || cycle.iter().map(|&node| NodeId(node));
        let own = nodes().map(|node| context.own(node)).fold(0, u64::saturating_add);
        let entries: Vec<NodeId> = nodes()
            .filter(|&node| {
                let above = context.retention.dominator(node);
                above.is_none_or(|above| cycle.binary_search(&above.0).is_err())
            })
            .collect();
        let retained = entries.iter().map(|&node| context.retention.retained(node));
        let retained = retained.fold(0, u64::saturating_add);
        self.has_one_entry &= entries.len() == 1;
        self.garbage += u64::from(entries.first().is_some_and(|&node| context.is_garbage(node)));
        if self.cycles == 0 || retained > self.largest.0 {
            self.largest = (retained, number);
        }
        self.cycles += 1;
        self.own_bytes = self.own_bytes.saturating_add(own);
        self.retained_bytes = self.retained_bytes.saturating_add(retained);
    }
}

/// The number of objects of each class in a cycle.
fn classes<G: Graph + ?Sized>(context: &Context<'_, '_, G>, cycle: &[u32]) -> Vec<(StringId, u64)> {
    let mut classes: HashMap<StringId, u64> = HashMap::new();
    for &node in cycle {
        if let Thing::Object(class) = context.thing(NodeId(node)) {
            *classes.entry(class).or_default() += 1;
        }
    }
    let mut classes: Vec<(StringId, u64)> = classes.into_iter().collect();
    classes.sort_unstable();
    classes
}

/// Lists classes like `1 x Import\Job + 1 x Import\Dispatcher`.
pub(super) fn names<G: Graph + ?Sized>(context: &Context<'_, '_, G>, classes: &[(StringId, u64)]) -> String {
    let name = |&(class, objects): &(StringId, u64)| format!("{} x {}", count(objects), context.text(class));
    let shown: Vec<String> = classes.iter().take(MOST).map(name).collect();
    match classes.len() {
        0 => "arrays".to_owned(),
        all if all > shown.len() => format!("{} and {} more classes", shown.join(" + "), all - shown.len()),
        _ => shown.join(" + "),
    }
}

/// The retained size of all garbage: that of the garbage nodes that no other garbage node dominates.
fn garbage_bytes<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> u64 {
    let retention = context.retention;
    let is_outermost = |&node: &NodeId| {
        context.is_garbage(node)
            && retention.dominator(node).is_none_or(|dominator| !context.is_garbage(dominator))
    };
    let outermost = retention.nodes().filter(is_outermost);
    outermost.map(|node| retention.retained(node)).fold(0, u64::saturating_add)
}

/// Garbage objects by class, the most memory first.
fn garbage_classes<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<(String, Sum)> {
    let mut classes: HashMap<StringId, Sum> = HashMap::new();
    for (node, thing) in context.census.all() {
        if let Thing::Object(class) = thing
            && context.is_garbage(node)
        {
            classes.entry(class).or_default().add(context.retention.retained(node));
        }
    }
    let mut classes: Vec<(String, Sum)> =
        classes.into_iter().map(|(class, sum)| (context.text(class), sum)).collect();
    classes.sort_by(|left, right| (right.1.bytes, &left.0).cmp(&(left.1.bytes, &right.0)));
    classes
}
