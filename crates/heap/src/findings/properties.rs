//! Findings about the values of properties, by class.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::sink::{NodeId, StringId};

use super::amounts::{count, each, is_share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Severity};
use super::{MEBIBYTE, MOST, Sum, medium_from_mebibyte};

/// The minimum number of instances: fewer do not scale.
const INSTANCES: u64 = 100;
/// The minimum percentage of repeated values of a property to report.
const REPEATED: u64 = 30;
/// The minimum saving to report, in bytes.
const SAVED: u64 = 64 << 10;
/// The minimum percentage of a class's objects that come with one object of another class.
const OWNED: u64 = 95;
/// The maximum number of steps up to search for an object of the same class: from one to the next through an array takes five.
const ABOVE: usize = 8;
/// The maximum number of properties named in the details of a finding.
const NAMED: usize = 6;

/// The values of a property in all instances of a class.
#[derive(Clone, Debug, Default)]
struct Property {
    /// The number of instances in which the value has its own memory.
    copies: u64,
    /// Values that would be freed with their instance, and their retained memory.
    own: Sum,
    /// The number of values that something else holds too.
    shared: u64,
    /// Strings with more than one copy, and the bytes of all copies but one.
    repeated: Sum,
    /// The class of the objects in it, if they are all of one class.
    class: Option<StringId>,
    is_mixed: bool,
    example: Option<NodeId>,
    /// The value with the largest retained size, and that size.
    largest: (u64, Option<NodeId>),
}

/// The values of the objects of a class.
#[derive(Clone, Debug, Default)]
struct Class {
    instances: u64,
    /// The tables of undeclared properties.
    dynamic: Sum,
    dynamic_example: Option<NodeId>,
    properties: HashMap<StringId, Property>,
}

/// The properties of all classes.
pub(super) struct Properties {
    classes: HashMap<StringId, Class>,
}

impl Properties {
    pub(super) fn of<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Self {
        let mut classes: HashMap<StringId, Class> = HashMap::new();
        for (node, thing) in context.held() {
            if let Thing::Object(class) = thing {
                classes.entry(class).or_default().take(context, node);
            }
        }
        Self { classes }
    }

    pub(super) fn find<G: Graph + ?Sized>(&self, context: &Context<'_, '_, G>) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut classes: Vec<(StringId, &Class)> =
            self.classes.iter().map(|(&name, class)| (name, class)).collect();
        classes.sort_unstable_by_key(|&(name, _)| name);
        for &(name, class) in &classes {
            let class_name = context.text(name);
            findings.extend(scaling(context, &class_name, class));
            findings.extend(dynamic(context, &class_name, class));
            for (property, link) in class.sorted() {
                let label = format!("{class_name}::${}", context.text(link));
                findings.extend(expensive(context, &label, property));
                findings.extend(repeated(context, &label, property));
                findings.extend(fan_in(context, &label, property));
                findings.extend(self.ownership(context, &class_name, &label, property));
            }
        }
        findings
    }

    /// Finds classes whose objects each hold one object of another class, which has no other objects.
    fn ownership<G: Graph + ?Sized>(
        &self,
        context: &Context<'_, '_, G>,
        owner: &str,
        label: &str,
        property: &Property,
    ) -> Option<Finding> {
        let class = property.class.filter(|&class| !property.is_mixed && context.text(class) != owner)?;
        let all = self.classes.get(&class)?.instances;
        let own = property.own;
        if own.count < INSTANCES || own.bytes < MEBIBYTE || !is_share(own.count, OWNED, all) {
            return None;
        }
        let name = context.text(class);
        let text = format!(
            "each {owner} has a {name} of its own in {label}: {} of {}, {} together",
            count(own.count),
            count(all),
            size(own.bytes)
        );
        let finding = Finding::new(Kind::OwnershipPattern, context.weighed(Severity::Medium), text)
            .fact("owner_class", owner)
            .fact("class_name", name)
            .fact("property", label)
            .fact("count", own.count)
            .fact("retained_bytes", own.bytes)
            .likely(Confidence::Medium, "the one could be part of the other, or be made when it is asked for")
            .check("See whether all of them are used")
            .impact(own.bytes)
            .at(property.example.map(|node| context.place(node)));
        Some(finding)
    }
}

impl Class {
    fn take<G: Graph + ?Sized>(&mut self, context: &Context<'_, '_, G>, object: NodeId) {
        self.instances += 1;
        for child in context.children(object) {
            if child.link == context.words.object_properties {
                for property in context.children(child.node) {
                    let thing = context.thing(property.node);
                    if thing != Thing::Other {
                        let entry = self.properties.entry(property.link).or_default();
                        entry.take(context, property.node, thing, [child.node, object]);
                    }
                }
            } else if child.link == context.words.dynamic_properties {
                let table = context.child(child.node, context.words.array_elements);
                let elements = table.and_then(|table| context.number(table, context.words.count));
                if elements.is_some_and(|elements| elements > 0) {
                    self.dynamic.add(context.array_bytes(child.node));
                    self.dynamic_example.get_or_insert(object);
                }
            }
        }
    }

    /// The properties, in order of the numbers of their names.
    fn sorted(&self) -> Vec<(&Property, StringId)> {
        let mut properties: Vec<_> =
            self.properties.iter().map(|(&link, property)| (property, link)).collect();
        properties.sort_unstable_by_key(|&(_, link)| link);
        properties
    }
}

impl Property {
    fn take<G: Graph + ?Sized>(
        &mut self,
        context: &Context<'_, '_, G>,
        value: NodeId,
        thing: Thing,
        owners: [NodeId; 2],
    ) {
        self.copies += 1;
        self.example.get_or_insert(value);
        match thing {
            Thing::Object(class) => {
                self.is_mixed |= self.class.is_some_and(|known| known != class);
                self.class = Some(class);
            }
            _ => self.is_mixed = true,
        }
        let dominator = context.retention.dominator(value);
        if !dominator.is_some_and(|dominator| owners.contains(&dominator)) {
            self.shared += 1;
            return;
        }
        let bytes = context.retention.retained(value);
        // The retained size of an object of the same class above includes this one: count a list only once.
        let is_counted = !matches!(thing, Thing::String(_)) && is_within_class(context, owners[1]);
        self.own.add(if is_counted { 0 } else { bytes });
        if self.largest.1.is_none() || bytes > self.largest.0 {
            self.largest = (bytes, Some(value));
        }
        if let Thing::String(content) = thing {
            let copies = context.census.copies(content);
            if copies.count > 1 {
                self.repeated.add(each(copies.saved(), copies.count.into()));
            }
        }
    }
}

/// Whether `object` is below another object of its class, as in a list or a tree.
fn is_within_class<G: Graph + ?Sized>(context: &Context<'_, '_, G>, object: NodeId) -> bool {
    let class = context.thing(object);
    let mut above = object;
    for _ in 0..ABOVE {
        match context.retention.dominator(above) {
            Some(dominator) if context.thing(dominator) == class => return true,
            Some(dominator) => above = dominator,
            None => return false,
        }
    }
    false
}

fn scaling<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    class_name: &str,
    class: &Class,
) -> Option<Finding> {
    let mut own: Vec<_> = class.sorted().into_iter().filter(|(property, _)| property.own.count > 0).collect();
    let bytes = own.iter().fold(0_u64, |sum, (property, _)| sum.saturating_add(property.own.bytes));
    // A single property is reported as `expensive_property`.
    if class.instances < INSTANCES || bytes < MEBIBYTE || own.len() < 2 {
        return None;
    }
    own.sort_by_key(|(property, _)| std::cmp::Reverse(property.own.bytes));
    let line = |(property, link): &(&Property, StringId)| {
        let Sum { count: values, bytes } = property.own;
        format!(
            "{class_name}::${}: {} of {} each, {}",
            context.text(*link),
            count(values),
            size(each(bytes, values)),
            size(bytes)
        )
    };
    let shared = class.properties.values().filter(|property| property.own.count == 0).count();
    let text = format!(
        "{class_name} ({} instances): each holds {} in {} properties of its own",
        count(class.instances),
        size(each(bytes, class.instances)),
        own.len()
    );
    let example = own.first().and_then(|(property, _)| property.largest.1);
    let finding = Finding::new(Kind::PropertyScaling, context.weighed(Severity::Medium), text)
        .fact("class_name", class_name)
        .fact("instances", class.instances)
        .fact("per_instance_properties", own.len())
        .fact("shared_properties", shared)
        .fact("retained_bytes", bytes)
        .fact("bytes_per_instance", each(bytes, class.instances))
        .details(own.iter().take(NAMED).map(line).collect())
        .likely(Confidence::High, "each further instance costs so much")
        .check("Make what is rarely needed when it is asked for; share what is the same in all")
        .impact(bytes)
        .at(example.map(|node| context.place(node)));
    Some(finding)
}

fn expensive<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    label: &str,
    property: &Property,
) -> Option<Finding> {
    let Sum { count: values, bytes } = property.own;
    if bytes < MEBIBYTE {
        return None;
    }
    let text = format!("{label}: {} of {} each, {}", count(values), size(each(bytes, values)), size(bytes));
    let finding = Finding::new(Kind::ExpensiveProperty, context.weighed(Severity::Medium), text)
        .fact("property", label)
        .fact("count", values)
        .fact("retained_bytes", bytes)
        .fact("largest_bytes", property.largest.0)
        .likely(Confidence::High, "the values of this one property are what its class costs")
        .check("See whether all of them are still needed when they are held")
        .impact(bytes)
        .at(property.largest.1.map(|node| context.place(node)));
    Some(finding)
}

fn repeated<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    label: &str,
    property: &Property,
) -> Option<Finding> {
    let Property { copies, repeated, .. } = *property;
    if repeated.bytes < SAVED || !is_share(repeated.count, REPEATED, copies) {
        return None;
    }
    let text = format!(
        "{label}: {} of {} values are there more than once, {} too much",
        count(repeated.count),
        count(copies),
        size(repeated.bytes)
    );
    let finding = Finding::new(Kind::DedupCandidate, Severity::Low, text)
        .fact("property", label)
        .fact("count", copies)
        .fact("repeated", repeated.count)
        .fact("saved_bytes", repeated.bytes)
        .likely(Confidence::High, "the same text was made anew for each instance")
        .check("Keep each text once, in a table, and give out what is there")
        .impact(repeated.bytes)
        .at(property.example.map(|node| context.place(node)));
    Some(finding)
}

fn fan_in<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    label: &str,
    property: &Property,
) -> Option<Finding> {
    let class = property.class.filter(|_| !property.is_mixed && property.own.count == 0)?;
    if property.shared < INSTANCES {
        return None;
    }
    let name = context.text(class);
    let text = format!("{label}: {} references to shared objects of {name}", count(property.shared));
    let finding = Finding::new(Kind::SharedFanin, Severity::Info, text)
        .fact("property", label)
        .fact("class_name", name)
        .fact("references", property.shared)
        .at(property.example.map(|node| context.place(node)));
    Some(finding)
}

fn dynamic<G: Graph + ?Sized>(
    context: &Context<'_, '_, G>,
    class_name: &str,
    class: &Class,
) -> Option<Finding> {
    let Sum { count: tables, bytes } = class.dynamic;
    let severity = context.weighed(medium_from_mebibyte(bytes));
    if bytes < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} of {} instances have a table for properties that the class does not declare, {}",
        count(tables),
        count(class.instances),
        size(bytes)
    );
    let finding = Finding::new(Kind::DynamicPropertiesOverhead, severity, text)
        .fact("class_name", class_name)
        .fact("count", tables)
        .fact("instances", class.instances)
        .fact("table_bytes", bytes)
        .likely(Confidence::High, "each such table takes several times what declared properties do")
        .check("Declare the properties in the class; of PHP's own classes, do not look at objects with var_dump() or (array)")
        .impact(bytes)
        .at(class.dynamic_example.map(|node| context.place(node)));
    Some(finding)
}

/// Keeps the findings of each kind with the largest impact, up to the maximum number.
pub(super) fn largest(findings: &mut Vec<Finding>) {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.impact_bytes));
    let mut counts: HashMap<Kind, usize> = HashMap::new();
    findings.retain(|finding| {
        let seen = counts.entry(finding.kind).or_default();
        *seen += 1;
        *seen <= MOST
    });
}
