//! Findings about closures that keep the object in which they were created.

use hashbrown::HashMap;

use crate::graph::locations;
use crate::largest::sort_largest_first;
use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, share, size};
use super::finding::{Confidence, FindingKind, HeapFinding};
use super::limits::MOST;
use super::severity;
use super::survey::HeapSurvey;

/// The minimum kept memory to report, in bytes.
const KEPT: u64 = 64 << 10;

/// The closures of one function.
struct ClosureGroup {
    name: String,
    closures: u64,
    /// Objects that only closures hold, and their retained memory.
    kept: ByteSum,
    /// The closure that keeps most memory, and the number of bytes.
    largest: Option<(u64, NodeId)>,
    class: String,
}

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let closures = closures(survey);
    let mut holders: HashMap<NodeId, u64> = HashMap::new();
    for &(_, _, this) in &closures {
        *holders.entry(this).or_default() += 1;
    }
    let mut groups: HashMap<Option<StringId>, ClosureGroup> = HashMap::new();
    for (object, function, this) in closures {
        let name = name(survey, function);
        let group = groups.entry(name).or_insert_with(|| ClosureGroup {
            name: name.map_or_else(|| "closures".to_owned(), |name| survey.text(name)),
            closures: 0,
            kept: ByteSum::default(),
            largest: None,
            class: String::new(),
        });
        group.closures += 1;
        // If several closures hold an object, the first one is reported.
        let held = holders.remove(&this);
        if held.is_some_and(|held| refcount(survey, this) == held) {
            group.take(survey, object, this);
        }
    }
    let mut groups: Vec<ClosureGroup> =
        groups.into_values().filter(|group| group.kept.bytes >= KEPT).collect();
    sort_largest_first(&mut groups, |group| group.kept.bytes, |group| &group.name);
    groups.iter().take(MOST).filter_map(|group| finding(survey, group)).collect()
}

/// The closures that were created in an object: closure, function, and object.
fn closures(survey: &HeapSurvey<'_>) -> Vec<(NodeId, NodeId, NodeId)> {
    let graph = survey.graph();
    let mut found = Vec::new();
    for (node, _) in survey.objects().filter(|&(_, class)| graph.string(class) == b"Closure") {
        let part = survey.child(node, survey.words.closure);
        let this = part.and_then(|part| survey.child(part, survey.words.this_ptr));
        let function = part.and_then(|part| survey.child(part, survey.words.func));
        if let (Some(this), Some(function)) = (this, function) {
            found.push((node, function, survey.retention.representative(this)));
        }
    }
    found
}

impl ClosureGroup {
    fn take(&mut self, survey: &HeapSurvey<'_>, closure: NodeId, this: NodeId) {
        let bytes = survey.retention.retained(this);
        self.kept.add(bytes);
        if self.largest.is_none_or(|(most, _)| bytes > most) {
            self.largest = Some((bytes, closure));
            if let Some(class) = survey.thing(this).class() {
                self.class = survey.text(class);
            }
        }
    }
}

/// The name of a function. Each closure has its own function, but closures of one declaration share the name.
fn name(survey: &HeapSurvey<'_>, function: NodeId) -> Option<StringId> {
    let code = survey.child(function, survey.words.op_array).unwrap_or(function);
    survey.attribute(code, survey.words.function_name)
}

fn refcount(survey: &HeapSurvey<'_>, node: NodeId) -> u64 {
    let graph = survey.graph();
    let counts = locations(graph, node).filter_map(|location| location.refcount);
    counts.max().unwrap_or_default().into()
}

fn finding(survey: &HeapSurvey<'_>, group: &ClosureGroup) -> Option<HeapFinding> {
    let ByteSum { count: objects, bytes } = group.kept;
    let severity = severity::by_share(bytes, survey.used);
    let (_, closure) = group.largest?;
    let place = survey.place(closure);
    let text = format!(
        "only closures hold {} objects of {}, which retain {}: {}",
        count(objects),
        group.class,
        size(bytes),
        group.name
    );
    let finding = HeapFinding::new(FindingKind::ClosureKeepsThis, severity, text)
        .fact("function", group.name.as_str())
        .fact("closures", group.closures)
        .fact("objects", objects)
        .fact("class_name", group.class.as_str())
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, survey.used))
        .fact("path", place.path.as_str())
        .likely(
            Confidence::Medium,
            "A closure keeps the $this of the method that created it, even if it does not use it.",
        )
        .check("Declare the closure with `static function` or `static fn` if it does not use $this.")
        .check("Otherwise pass it the values that it needs instead of the object.")
        .impact(bytes)
        .at(Some(place));
    Some(finding)
}
