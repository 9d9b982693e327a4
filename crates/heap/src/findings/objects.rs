//! Findings about objects: classes with equal counts, equal objects, empty objects, and objects with very many references.

use std::hash::{DefaultHasher, Hash, Hasher};

use hashbrown::{HashMap, HashSet};

use crate::graph::{Child, Graph, Total};
use crate::sink::{NodeId, StringId};

use super::amounts::{count, each, share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Severity};
use super::{MEBIBYTE, MOST, Sum, medium_from_mebibyte};

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

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let mut findings = companions(context);
    let classes = Classes::of(context);
    findings.extend(classes.find(context));
    findings.extend(shared(context));
    findings
}

/// Finds classes with equal numbers of objects.
fn companions<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let classes = context.totals.classes.iter();
    let mut classes: Vec<&Total> = classes.filter(|class| class.count >= INSTANCES).collect();
    classes.sort_by(|left, right| (right.count, &left.name).cmp(&(left.count, &right.name)));
    let is_alike = |left: &&Total, right: &&Total| {
        left.count.abs_diff(right.count).saturating_mul(100) <= left.count.saturating_mul(ALIKE)
    };
    let severity = context.weighed(Severity::Medium);
    classes.chunk_by(is_alike).filter_map(|classes| companion(classes, severity)).collect()
}

fn companion(classes: &[&Total], severity: Severity) -> Option<Finding> {
    let bytes = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.memory_usage));
    if classes.len() < 2 || bytes < MEBIBYTE {
        return None;
    }
    let name = |class: &&Total| String::from_utf8_lossy(&class.name).into_owned();
    let line =
        |class: &&Total| format!("{}: {}, {}", name(class), count(class.count), size(class.memory_usage));
    let text = format!(
        "{} classes have about {} instances each: {} together",
        classes.len(),
        count(classes[0].count),
        size(bytes)
    );
    let finding = Finding::new(Kind::CompanionCluster, severity, text)
        .fact("classes", classes.iter().map(name).collect::<Vec<_>>())
        .fact("count", classes[0].count)
        .fact("memory_bytes", bytes)
        .details(classes.iter().take(MOST).map(line).collect())
        .likely(Confidence::Medium, "they are made together: fewer of one are fewer of all")
        .impact(bytes);
    Some(finding)
}

/// The findings about the objects of a class.
#[derive(Debug, Default)]
struct Class {
    /// Objects without properties, and the bytes of their blocks.
    empty: Sum,
    /// Objects whose properties are only scalars, strings or absent, and the bytes of their blocks.
    plain: Sum,
    /// Their distinct contents.
    contents: HashSet<u64>,
    example: Option<NodeId>,
}

#[derive(Debug, Default)]
struct Classes(HashMap<StringId, Class>);

/// The content of an object.
enum Content {
    /// It has no properties and holds nothing else.
    Empty,
    /// Its values can be shared if they are equal; a hash of them.
    Plain(u64),
    /// It contains other objects or arrays, or is unknown.
    Other,
}

impl Classes {
    /// Collects the classes that have enough objects to matter.
    fn of<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Self {
        let crowded = context.totals.classes.iter();
        let crowded: HashSet<&[u8]> = crowded
            .filter(|class| class.count >= INSTANCES && class.memory_usage >= SAVED)
            .map(|class| class.name.as_slice())
            .collect();
        let mut classes = Self::default();
        if crowded.is_empty() {
            return classes;
        }
        for (node, thing) in context.held() {
            match thing {
                Thing::Object(class) if crowded.contains(context.graph().string(class)) => {
                    classes.0.entry(class).or_default().take(context, node);
                }
                _ => {}
            }
        }
        classes
    }

    fn find<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Vec<Finding> {
        let mut classes: Vec<(&StringId, &Class)> = self.0.iter().collect();
        classes.sort_unstable_by_key(|&(name, _)| name);
        let mut findings = Vec::new();
        for (&name, class) in classes {
            findings.extend(duplicate(context, &context.text(name), class));
            findings.extend(empty(context, &context.text(name), class));
        }
        findings
    }
}

impl Class {
    fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, object: NodeId) {
        match content(context, object) {
            Content::Empty => self.empty.add(context.own(object)),
            Content::Plain(content) => {
                self.plain.add(context.own(object));
                self.contents.insert(content);
            }
            Content::Other => return,
        }
        self.example.get_or_insert(object);
    }
}

fn content<G: Graph + ?Sized>(context: &Context<'_, '_, G>, object: NodeId) -> Content {
    let words = &context.words;
    let (mut hasher, mut is_empty) = (DefaultHasher::new(), true);
    for child in context.children(object).filter(|child| child.link != words.object_handlers) {
        // Data of PHP's internal classes other than properties is not analysed.
        if child.link != words.object_properties {
            return Content::Other;
        }
        let is_compound =
            |property: Child| matches!(context.thing(property.node), Thing::Array | Thing::Object(_));
        // This check is fast, and avoids reading the values.
        if context.children(child.node).any(is_compound) {
            return Content::Other;
        }
        for property in context.children(child.node) {
            is_empty = false;
            property.link.hash(&mut hasher);
            match context.thing(property.node) {
                Thing::String(content) => (1, content).hash(&mut hasher),
                Thing::Array | Thing::Object(_) => return Content::Other,
                Thing::Other => match context.attribute(property.node, words.value) {
                    Some(value) => (2, value).hash(&mut hasher),
                    None => return Content::Other,
                },
            }
        }
    }
    if is_empty { Content::Empty } else { Content::Plain(hasher.finish()) }
}

fn duplicate<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    class_name: &str,
    class: &Class,
) -> Option<Finding> {
    let Sum { count: objects, bytes } = class.plain;
    let contents = class.contents.len() as u64;
    let saved = each(bytes, objects).saturating_mul(objects.saturating_sub(contents));
    let severity = context.weighed(medium_from_mebibyte(saved));
    if objects < INSTANCES || saved < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} objects of {} B say {} different things",
        count(objects),
        each(bytes, objects),
        count(contents)
    );
    let finding = Finding::new(Kind::StructuralDuplicate, severity, text)
        .fact("class_name", class_name)
        .fact("count", objects)
        .fact("contents", contents)
        .fact("memory_bytes", bytes)
        .fact("saved_bytes", saved)
        .likely(
            Confidence::Medium,
            "one object for each thing that is said would do, if nobody writes to them",
        )
        .check("See whether they are ever changed; if not, keep one of each and share it")
        .impact(saved)
        .at(class.example.map(|node| context.place(node)));
    Some(finding)
}

fn empty<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    class_name: &str,
    class: &Class,
) -> Option<Finding> {
    let Sum { count: objects, bytes } = class.empty;
    let severity = context.weighed(medium_from_mebibyte(bytes));
    if objects < INSTANCES || bytes < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} objects of {} B have no properties: {}",
        count(objects),
        each(bytes, objects),
        size(bytes)
    );
    let finding = Finding::new(Kind::EmptyObject, severity, text)
        .fact("class_name", class_name)
        .fact("count", objects)
        .fact("memory_bytes", bytes)
        .likely(Confidence::Medium, "all are alike: one would do, or none")
        .check("See whether null, or one shared object, says the same")
        .impact(bytes)
        .at(class.example.map(|node| context.place(node)));
    Some(finding)
}

/// Finds objects with very many references to them, which are usually services, and intended.
fn shared<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let most = context.census.most_shared.sorted();
    let shared = most.into_iter().filter(|&(references, _)| references >= REFERENCES).take(SHARED);
    let finding = |(references, node): (u64, NodeId)| {
        let Thing::Object(class) = context.thing(node) else { return None };
        let (name, place) = (context.text(class), context.place(node));
        let bytes = context.retention.retained(node);
        let finding = Finding::new(
            Kind::SharedSingleton,
            Severity::Info,
            format!("{name}: {} references to one object: {}", count(references), place.path),
        )
        .fact("class_name", name)
        .fact("references", references)
        .fact("retained_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, context.used))
        .at(Some(place));
        Some(finding)
    };
    shared.filter_map(finding).collect()
}
