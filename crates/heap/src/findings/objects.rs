//! Findings about objects: classes with equal counts, equal objects, empty objects, and objects with very many references.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::{HashMap, HashSet};

use crate::graph::{Child, MemoryTotal};
use crate::largest::sort_largest_first;
use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, each, share, size};
use super::census::Thing;
use super::finding::{Confidence, FindingKind, FindingSeverity, HeapFinding};
use super::limits::{MEBIBYTE, MOST};
use super::severity;
use super::survey::HeapSurvey;

/// The minimum number of instances.
const INSTANCES: u64 = 100;
/// The maximum difference between counts that are taken for equal, in per cent.
const ALIKE: u64 = 1;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;
/// The number of references from which an object counts as shared by many.
const REFERENCES: u64 = 1000;
/// The maximum number of shared objects reported.
const SHARED: usize = 3;

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let mut findings = companions(survey);
    let classes = PlainClasses::of(survey);
    findings.extend(classes.find(survey));
    findings.extend(shared(survey));
    findings
}

/// Finds classes with equal numbers of objects.
fn companions(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let classes = survey.totals.classes.iter();
    let mut classes: Vec<&MemoryTotal> = classes.filter(|class| class.count >= INSTANCES).collect();
    sort_largest_first(&mut classes, |class| class.count, |class| &class.name);
    let is_alike = |left: &&MemoryTotal, right: &&MemoryTotal| {
        left.count.abs_diff(right.count).saturating_mul(100) <= left.count.saturating_mul(ALIKE)
    };
    let severity = FindingSeverity::Medium;
    classes.chunk_by(is_alike).filter_map(|classes| companion(classes, severity)).collect()
}

fn companion(classes: &[&MemoryTotal], severity: FindingSeverity) -> Option<HeapFinding> {
    let bytes = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.memory_usage));
    if classes.len() < 2 || bytes < MEBIBYTE {
        return None;
    }
    let name = |class: &&MemoryTotal| String::from_utf8_lossy(&class.name).into_owned();
    let line = |class: &&MemoryTotal| {
        format!("{}: {}, {}", name(class), count(class.count), size(class.memory_usage))
    };
    let text = format!(
        "{} classes have about {} instances each, {} in total",
        classes.len(),
        count(classes[0].count),
        size(bytes)
    );
    let finding = HeapFinding::new(FindingKind::CompanionCluster, severity, text)
        .fact("classes", classes.iter().map(name).collect::<Vec<_>>())
        .fact("count", classes[0].count)
        .fact("memory_bytes", bytes)
        .details(classes.iter().take(MOST).map(line).collect())
        .likely(
            Confidence::Medium,
            "Their instances are created together. Fewer of one class means fewer of all.",
        )
        .impact(bytes);
    Some(finding)
}

/// The findings about the objects of a class.
#[derive(Debug, Default)]
struct PlainObjects {
    /// Objects without properties, and the bytes of their blocks.
    empty: ByteSum,
    /// Objects whose properties are only scalars, strings or absent, and the bytes of their blocks.
    plain: ByteSum,
    /// Their distinct contents.
    contents: HashSet<u64>,
    example: Option<NodeId>,
}

#[derive(Debug, Default)]
struct PlainClasses(HashMap<StringId, PlainObjects>);

/// The content of an object.
enum ObjectContent {
    /// It has no properties and holds nothing else.
    Empty,
    /// Its values can be shared if they are equal; a hash of them.
    Plain(u64),
    /// It contains other objects or arrays, or is unknown.
    Other,
}

impl PlainClasses {
    /// Collects the classes that have enough objects to matter.
    fn of(survey: &HeapSurvey<'_>) -> Self {
        let crowded = survey.totals.classes.iter();
        let crowded: HashSet<&[u8]> = crowded
            .filter(|class| class.count >= INSTANCES && class.memory_usage >= SAVED)
            .map(|class| class.name.as_slice())
            .collect();
        let is_crowded = |class| crowded.contains(survey.graph().string(class));
        let mut classes = Self::default();
        if crowded.is_empty() {
            return classes;
        }
        for (node, class) in survey.objects().filter(|&(_, class)| is_crowded(class)) {
            classes.0.entry(class).or_default().take(survey, node);
        }
        classes
    }

    fn find(&self, survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
        let mut classes: Vec<(&StringId, &PlainObjects)> = self.0.iter().collect();
        classes.sort_unstable_by_key(|&(name, _)| name);
        let mut findings = Vec::new();
        for (&name, class) in classes {
            findings.extend(duplicate(survey, &survey.text(name), class));
            findings.extend(empty(survey, &survey.text(name), class));
        }
        findings
    }
}

impl PlainObjects {
    fn take(&mut self, survey: &HeapSurvey<'_>, object: NodeId) {
        match content(survey, object) {
            ObjectContent::Empty => self.empty.add(survey.shallow(object)),
            ObjectContent::Plain(content) => {
                self.plain.add(survey.shallow(object));
                self.contents.insert(content);
            }
            ObjectContent::Other => return,
        }
        self.example.get_or_insert(object);
    }
}

fn content(survey: &HeapSurvey<'_>, object: NodeId) -> ObjectContent {
    let words = &survey.words;
    let (mut hasher, mut is_empty) = (DefaultHasher::new(), true);
    for child in survey.children(object).filter(|child| child.link != words.object_handlers) {
        // Data of PHP's internal classes other than properties is not analysed.
        if child.link != words.object_properties {
            return ObjectContent::Other;
        }
        let is_compound =
            |property: Child| matches!(survey.thing(property.node), Thing::Array | Thing::Object(_));
        // This check is fast, and avoids reading the values.
        if survey.children(child.node).any(is_compound) {
            return ObjectContent::Other;
        }
        for property in survey.children(child.node) {
            is_empty = false;
            property.link.hash(&mut hasher);
            match survey.thing(property.node) {
                Thing::String(content) => (1, content).hash(&mut hasher),
                Thing::Array | Thing::Object(_) => return ObjectContent::Other,
                Thing::Other => match survey.attribute(property.node, words.value) {
                    Some(value) => (2, value).hash(&mut hasher),
                    None => return ObjectContent::Other,
                },
            }
        }
    }
    if is_empty { ObjectContent::Empty } else { ObjectContent::Plain(hasher.finish()) }
}

fn duplicate(survey: &HeapSurvey<'_>, class_name: &str, class: &PlainObjects) -> Option<HeapFinding> {
    let ByteSum { count: objects, bytes } = class.plain;
    let contents = class.contents.len() as u64;
    let saved = each(bytes, objects).saturating_mul(objects.saturating_sub(contents));
    let severity = severity::by_size(saved);
    if objects < INSTANCES || saved < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} objects of {} B have only {} distinct contents",
        count(objects),
        each(bytes, objects),
        count(contents)
    );
    let finding = HeapFinding::new(FindingKind::StructuralDuplicate, severity, text)
        .fact("class_name", class_name)
        .fact("count", objects)
        .fact("contents", contents)
        .fact("memory_bytes", bytes)
        .fact("saved_bytes", saved)
        .likely(
            Confidence::Medium,
            "If nothing modifies them, one object for each distinct content is enough.",
        )
        .check("Check whether they are ever modified. If not, share one object for each content.")
        .impact(saved)
        .at(class.example.map(|node| survey.place(node)));
    Some(finding)
}

fn empty(survey: &HeapSurvey<'_>, class_name: &str, class: &PlainObjects) -> Option<HeapFinding> {
    let ByteSum { count: objects, bytes } = class.empty;
    let severity = severity::by_size(bytes);
    if objects < INSTANCES || bytes < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} objects of {} B have no properties, {} in total",
        count(objects),
        each(bytes, objects),
        size(bytes)
    );
    let finding = HeapFinding::new(FindingKind::EmptyObject, severity, text)
        .fact("class_name", class_name)
        .fact("count", objects)
        .fact("memory_bytes", bytes)
        .likely(Confidence::Medium, "All are equal. One is enough, or none.")
        .check("Check whether null or one shared object can replace them.")
        .impact(bytes)
        .at(class.example.map(|node| survey.place(node)));
    Some(finding)
}

/// Finds objects with very many references to them, which are usually services, and intended.
fn shared(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let most = survey.census.most_shared.sorted();
    let shared = most.into_iter().filter(|&(references, _)| references >= REFERENCES).take(SHARED);
    let finding = |(references, node): (u64, NodeId)| {
        let (name, place) = (survey.text(survey.thing(node).class()?), survey.place(node));
        let bytes = survey.retention.retained(node);
        let finding = HeapFinding::new(
            FindingKind::SharedSingleton,
            FindingSeverity::Info,
            format!("{name}: {} references to one object: {}", count(references), place.path),
        )
        .fact("class_name", name)
        .fact("references", references)
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, survey.used))
        .at(Some(place));
        Some(finding)
    };
    shared.filter_map(finding).collect()
}
