//! Findings about objects and arrays that hold each other, which PHP frees only when its cycle collector runs.

use hashbrown::HashMap;

use crate::graph::Child;
use crate::largest::sort_largest_first;
use crate::names::Strength;
use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, share, size};
use super::census::Thing;
use super::finding::{Confidence, FindingKind, FindingPlace, FindingSeverity, HeapFinding};
use super::limits::{MEBIBYTE, MOST};
use super::severity;
use super::strong::strong_cycles;
use super::survey::HeapSurvey;

/// A cycle of more classes is assumed to be a service container, and intended. Source: reli 0.12.
const CONTAINER_CLASSES: usize = 15;
/// The minimum number of cycles to report, unless they are large.
const COUNT: u64 = 10;
const HELD: u64 = 64 << 10;

/// The beginning of the name of a reference that was found by searching memory.
const SEARCHED: &str = "internal+";

/// The cycles of strong references.
pub(super) struct Cycles {
    pub(super) all: Vec<Vec<u32>>,
    groups: Vec<CycleGroup>,
}

/// Cycles with the same number of objects of each class.
pub(super) struct CycleGroup {
    /// The classes, and the number of objects of each; empty for cycles of arrays only.
    pub(super) classes: Vec<(StringId, u64)>,
    pub(super) cycles: u64,
    /// The number of cycles that nothing else holds.
    garbage: u64,
    shallow_bytes: u64,
    retained_bytes: u64,
    /// The retained size and the index of the cycle that retains most.
    largest: (u64, usize),
    /// Whether each cycle is entered at one node only.
    has_one_entry: bool,
}

impl Cycles {
    pub(super) fn of(survey: &HeapSurvey<'_>) -> Self {
        let all = strong_cycles(survey);
        let mut groups: HashMap<Vec<(StringId, u64)>, CycleGroup> = HashMap::new();
        for (number, cycle) in all.iter().enumerate() {
            let classes = classes(survey, cycle);
            let new = || CycleGroup::new(classes.clone());
            groups.entry(classes.clone()).or_insert_with(new).take(survey, cycle, number);
        }
        let mut groups: Vec<CycleGroup> = groups.into_values().collect();
        sort_largest_first(&mut groups, |group| group.retained_bytes, |group| &group.classes);
        Self { all, groups }
    }

    pub(super) fn find(&self, survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
        let told = self.groups.iter().filter(|group| group.cycles >= COUNT || group.retained_bytes >= HELD);
        let clusters = told.take(MOST).map(|group| self.cluster(survey, group));
        clusters.chain(self.garbage(survey)).collect()
    }

    fn cluster(&self, survey: &HeapSurvey<'_>, group: &CycleGroup) -> HeapFinding {
        let bytes = group.retained_bytes;
        let objects: u64 = group.classes.iter().map(|&(_, objects)| objects).sum();
        let (kind, severity) = match bytes {
            _ if group.classes.len() > CONTAINER_CLASSES => {
                (FindingKind::DiContainerCycle, FindingSeverity::Info)
            }
            MEBIBYTE.. => (FindingKind::CycleCluster, FindingSeverity::Medium),
            _ if objects == 2 => (FindingKind::MicroCycle, FindingSeverity::Low),
            _ => (FindingKind::CycleCluster, FindingSeverity::Low),
        };
        let names = names(survey, &group.classes);
        let text = format!(
            "{} cycles of {names}: {} shallow, {} retained",
            count(group.cycles),
            size(group.shallow_bytes),
            size(bytes)
        );
        let mut finding = HeapFinding::new(kind, severity, text)
            .fact("cycles", group.cycles)
            .fact("classes_per_cycle", names)
            .fact("awaiting_collection", group.garbage)
            .fact("shallow_bytes", group.shallow_bytes)
            .fact("retained_bytes", bytes)
            .likely(Confidence::High, "Once dropped, they stay in memory until PHP's cycle collector runs.")
            .impact(bytes);
        if group.has_one_entry {
            finding = finding.fact("entry_points", 1_u64);
        }
        self.advised(survey, group, finding)
    }

    /// Adds the reference to break, if there is one.
    fn advised(&self, survey: &HeapSurvey<'_>, group: &CycleGroup, finding: HeapFinding) -> HeapFinding {
        let Some((reference, place)) = self.breaking(survey, group) else { return finding };
        finding
            .fact("back_reference", reference.as_str())
            .fact("path", place.path.as_str())
            .check(format!("Break {reference}: use a WeakReference, or unset it when you are done."))
            .at(Some(place))
    }

    /// The reference that closes the largest cycle of a group, and its place.
    fn breaking(&self, survey: &HeapSurvey<'_>, group: &CycleGroup) -> Option<(String, FindingPlace)> {
        let cycle = self.all.get(group.largest.1)?;
        let is_object = |node: &&u32| matches!(survey.thing(NodeId(**node)), Thing::Object(_));
        let head = NodeId(*cycle.iter().find(is_object).or(cycle.first())?);
        let closing = |is_wanted: &dyn Fn(&Child) -> bool| {
            let mut parents = cycle.iter().map(|&parent| NodeId(parent));
            parents.find_map(|parent| Some((parent, survey.children(parent).find(is_wanted)?)))
        };
        let is_strong = |child: &Child| child.strength == Strength::Strong;
        // Programs cannot change the references that only extensions know of.
        let (parent, closing) = closing(&|child| child.node == head && is_strong(child))
            .or_else(|| {
                let is_inner = |node: NodeId| cycle.binary_search(&node.0).is_ok() && is_object(&&node.0);
                closing(&|child| is_strong(child) && is_inner(child.node))
            })
            .or_else(|| closing(&|child| child.node == head))?;
        let from = survey.label(survey.owner_by(parent, closing.link, parent));
        let class = survey.thing(closing.node).class();
        let to = class.map_or_else(|| "array".to_owned(), |class| survey.text(class));
        Some((format!("{from} -> {to}"), survey.place(parent)))
    }

    /// The finding about all garbage together; `None` if no cycle is seen in it: then it was not proved to be garbage.
    fn garbage(&self, survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
        let bytes = garbage_bytes(survey);
        let group = self.groups.iter().find(|group| group.garbage > 0)?;
        if bytes < HELD {
            return None;
        }
        let severity = severity::by_share(bytes, survey.used);
        let cycles: u64 = self.groups.iter().map(|group| group.garbage).sum();
        let classes = garbage_classes(survey);
        let line =
            |(class, sum): &(String, ByteSum)| format!("{class}: {}, {}", count(sum.count), size(sum.bytes));
        let hold = if cycles == 1 { "cycle holds" } else { "cycles hold" };
        let text = format!("only {} {hold} {}, which awaits collection", count(cycles), size(bytes));
        let finding = HeapFinding::new(FindingKind::GarbageCycles, severity, text)
            .fact("retained_bytes", bytes)
            .fact("cycles", cycles)
            .fact("objects", classes.iter().map(|(_, sum)| sum.count).sum::<u64>())
            .fact("percentage_of_heap", share(bytes, survey.used))
            .details(classes.iter().take(MOST).map(line).collect())
            .likely(
                Confidence::High,
                "PHP's cycle collector runs when 10,000 values may be in cycles, whatever their size. Until then, or \
                 forever if it is off, they stay.",
            )
            .check("Call gc_collect_cycles() between jobs until the cycles are gone from the code.")
            .impact(bytes);
        let finding = match possible_holder(survey) {
            Some(holder) => finding.fact("possible_reference", holder.as_str()).check(format!(
                "The memory of {holder} has the address of one of them. By their reference counts, that is no reference."
            )),
            None => finding,
        };
        Some(self.advised(survey, group, finding))
    }
}

impl CycleGroup {
    fn new(classes: Vec<(StringId, u64)>) -> Self {
        let (cycles, garbage, shallow_bytes, retained_bytes) = (0, 0, 0, 0);
        Self { classes, cycles, garbage, shallow_bytes, retained_bytes, largest: (0, 0), has_one_entry: true }
    }

    fn take(&mut self, survey: &HeapSurvey<'_>, cycle: &[u32], number: usize) {
        let nodes = || cycle.iter().map(|&node| NodeId(node));
        let shallow_bytes = nodes().map(|node| survey.shallow(node)).fold(0, u64::saturating_add);
        let entries: Vec<NodeId> = nodes()
            .filter(|&node| {
                let above = survey.retention.dominator(node);
                above.is_none_or(|above| cycle.binary_search(&above.0).is_err())
            })
            .collect();
        let retained = entries.iter().map(|&node| survey.retention.retained(node));
        let retained = retained.fold(0, u64::saturating_add);
        self.has_one_entry &= entries.len() == 1;
        self.garbage += u64::from(entries.first().is_some_and(|&node| survey.is_garbage(node)));
        if self.cycles == 0 || retained > self.largest.0 {
            self.largest = (retained, number);
        }
        self.cycles += 1;
        self.shallow_bytes = self.shallow_bytes.saturating_add(shallow_bytes);
        self.retained_bytes = self.retained_bytes.saturating_add(retained);
    }
}

/// The number of objects of each class in a cycle.
fn classes(survey: &HeapSurvey<'_>, cycle: &[u32]) -> Vec<(StringId, u64)> {
    let mut classes: HashMap<StringId, u64> = HashMap::new();
    for &node in cycle {
        if let Some(class) = survey.thing(NodeId(node)).class() {
            *classes.entry(class).or_default() += 1;
        }
    }
    let mut classes: Vec<(StringId, u64)> = classes.into_iter().collect();
    classes.sort_unstable();
    classes
}

/// Lists classes like `1 x Import\Job + 1 x Import\Dispatcher`.
pub(super) fn names(survey: &HeapSurvey<'_>, classes: &[(StringId, u64)]) -> String {
    let name = |&(class, objects): &(StringId, u64)| format!("{} x {}", count(objects), survey.text(class));
    let shown: Vec<String> = classes.iter().take(MOST).map(name).collect();
    match classes.len() {
        0 => "arrays".to_owned(),
        all if all > shown.len() => format!("{} and {} more classes", shown.join(" + "), all - shown.len()),
        _ => shown.join(" + "),
    }
}

/// The retained size of all garbage: that of the garbage nodes that no other garbage node dominates.
fn garbage_bytes(survey: &HeapSurvey<'_>) -> u64 {
    let retention = survey.retention;
    let is_outermost = |&node: &NodeId| {
        survey.is_garbage(node)
            && retention.dominator(node).is_none_or(|dominator| !survey.is_garbage(dominator))
    };
    let outermost = retention.nodes().filter(is_outermost);
    outermost.map(|node| retention.retained(node)).fold(0, u64::saturating_add)
}

/// The path of a reference to garbage that was found by searching memory, if there is one.
fn possible_holder(survey: &HeapSurvey<'_>) -> Option<String> {
    let graph = survey.graph();
    let mut garbage = survey.retention.nodes().filter(|&node| survey.is_garbage(node));
    garbage.find_map(|node| {
        let mut referrers = survey.heap.parents().referrers(node);
        referrers.find_map(|(from, row)| {
            let link = graph.child(row).filter(|child| child.strength == Strength::Weak)?.link;
            let name = survey.text(link);
            let from = from.filter(|&from| name.starts_with(SEARCHED) && !survey.is_garbage(from))?;
            Some(format!("{}.{name}", survey.place(from).path))
        })
    })
}

/// Garbage objects by class, the most memory first.
fn garbage_classes(survey: &HeapSurvey<'_>) -> Vec<(String, ByteSum)> {
    let mut classes: HashMap<StringId, ByteSum> = HashMap::new();
    for (node, class) in survey.census.objects().filter(|&(node, _)| survey.is_garbage(node)) {
        classes.entry(class).or_default().add(survey.retention.retained(node));
    }
    let mut classes: Vec<(String, ByteSum)> =
        classes.into_iter().map(|(class, sum)| (survey.text(class), sum)).collect();
    sort_largest_first(&mut classes, |(_, sum)| sum.bytes, |(name, _)| name);
    classes
}
