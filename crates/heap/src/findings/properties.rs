//! Findings about the values of properties, by class.

use hashbrown::HashMap;

use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, each, is_share, size};
use super::census::Thing;
use super::finding::{Confidence, FindingKind, FindingSeverity, HeapFinding};
use super::limits::MEBIBYTE;
use super::severity;
use super::survey::HeapSurvey;

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
    own: ByteSum,
    /// The number of values that something else holds too.
    shared: u64,
    /// Strings with more than one copy, and the bytes of all copies but one.
    repeated: ByteSum,
    /// The class of the objects in it, if they are all of one class.
    class: Option<StringId>,
    is_mixed: bool,
    example: Option<NodeId>,
    /// The value with the largest retained size, and that size.
    largest: (u64, Option<NodeId>),
}

/// The tables that objects of a class have beside their properties.
#[derive(Clone, Debug, Default)]
struct PropertyTables {
    sum: ByteSum,
    example: Option<NodeId>,
}

/// The values of the objects of a class.
#[derive(Clone, Debug, Default)]
struct ClassValues {
    instances: u64,
    /// The tables that hold undeclared properties.
    dynamic: PropertyTables,
    /// The tables that hold declared properties only.
    declared: PropertyTables,
    properties: HashMap<StringId, Property>,
}

/// The properties of all classes.
pub(super) struct PropertyValues {
    classes: HashMap<StringId, ClassValues>,
}

impl PropertyValues {
    pub(super) fn of(survey: &HeapSurvey<'_>) -> Self {
        let mut classes: HashMap<StringId, ClassValues> = HashMap::new();
        for (node, class) in survey.objects() {
            classes.entry(class).or_default().take(survey, node);
        }
        Self { classes }
    }

    pub(super) fn find(&self, survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
        let mut findings = Vec::new();
        let mut classes: Vec<(StringId, &ClassValues)> =
            self.classes.iter().map(|(&name, class)| (name, class)).collect();
        classes.sort_unstable_by_key(|&(name, _)| name);
        for &(name, class) in &classes {
            let class_name = survey.text(name);
            findings.extend(scaling(survey, &class_name, class));
            findings.extend(dynamic(survey, &class_name, class));
            findings.extend(declared(survey, &class_name, class));
            for (property, link) in class.sorted() {
                let label = format!("{class_name}::${}", survey.text(link));
                findings.extend(expensive(survey, &label, property));
                findings.extend(repeated(survey, &label, property));
                findings.extend(fan_in(survey, &label, property));
                findings.extend(self.ownership(survey, &class_name, &label, property));
            }
        }
        findings
    }

    /// Finds classes whose objects each hold one object of another class, which has no other objects.
    fn ownership(
        &self,
        survey: &HeapSurvey<'_>,
        owner: &str,
        label: &str,
        property: &Property,
    ) -> Option<HeapFinding> {
        let class = property.class.filter(|&class| !property.is_mixed && survey.text(class) != owner)?;
        let all = self.classes.get(&class)?.instances;
        let own = property.own;
        if own.count < INSTANCES || own.bytes < MEBIBYTE || !is_share(own.count, OWNED, all) {
            return None;
        }
        let name = survey.text(class);
        let text = format!(
            "each {owner} owns one {name} in {label}: {} of {} instances, {} in total",
            count(own.count),
            count(all),
            size(own.bytes)
        );
        let finding = HeapFinding::new(FindingKind::OwnershipPattern, FindingSeverity::Medium, text)
            .fact("owner_class", owner)
            .fact("class_name", name)
            .fact("property", label)
            .fact("count", own.count)
            .fact("retained_bytes", own.bytes)
            .likely(
                Confidence::Medium,
                "One class could become part of the other, or its objects could be created on demand.",
            )
            .check("Check whether all of them are used.")
            .impact(own.bytes)
            .at(property.example.map(|node| survey.place(node)));
        Some(finding)
    }
}

impl ClassValues {
    fn take(&mut self, survey: &HeapSurvey<'_>, object: NodeId) {
        self.instances += 1;
        for child in survey.children(object) {
            if child.link == survey.words.object_properties {
                for property in survey.children(child.node) {
                    let thing = survey.thing(property.node);
                    if thing != Thing::Other {
                        let entry = self.properties.entry(property.link).or_default();
                        entry.take(survey, property.node, thing, [child.node, object]);
                    }
                }
            } else if child.link == survey.words.dynamic_properties {
                self.take_table(survey, object, child.node);
            }
        }
    }

    /// Adds the table of properties of `object`.
    fn take_table(&mut self, survey: &HeapSurvey<'_>, object: NodeId, table: NodeId) {
        let elements = survey.child(table, survey.words.array_elements);
        let count = elements.and_then(|elements| survey.number(elements, survey.words.count));
        let Some(elements) = elements.filter(|_| count.is_some_and(|count| count > 0)) else { return };
        let is_declared = has_declared_only(survey, object, elements);
        let tables = if is_declared { &mut self.declared } else { &mut self.dynamic };
        tables.sum.add(survey.array_bytes(table));
        tables.example.get_or_insert(object);
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
    fn take(&mut self, survey: &HeapSurvey<'_>, value: NodeId, thing: Thing, owners: [NodeId; 2]) {
        self.copies += 1;
        self.example.get_or_insert(value);
        match thing {
            Thing::Object(class) => {
                self.is_mixed |= self.class.is_some_and(|known| known != class);
                self.class = Some(class);
            }
            _ => self.is_mixed = true,
        }
        let dominator = survey.retention.dominator(value);
        if !dominator.is_some_and(|dominator| owners.contains(&dominator)) {
            self.shared += 1;
            return;
        }
        let bytes = survey.retention.retained(value);
        // The retained size of an object of the same class above includes this one: count a list only once.
        let is_counted = !matches!(thing, Thing::String(_)) && is_within_class(survey, owners[1]);
        self.own.add(if is_counted { 0 } else { bytes });
        if self.largest.1.is_none() || bytes > self.largest.0 {
            self.largest = (bytes, Some(value));
        }
        if let Thing::String(content) = thing {
            let copies = survey.census.copies(content);
            if copies.count > 1 {
                self.repeated.add(each(copies.saved(), copies.count.into()));
            }
        }
    }
}

/// Whether `object` is below another object of its class, as in a list or a tree.
pub(super) fn is_within_class(survey: &HeapSurvey<'_>, object: NodeId) -> bool {
    let class = survey.thing(object);
    let mut above = object;
    for _ in 0..ABOVE {
        match survey.retention.dominator(above) {
            Some(dominator) if survey.thing(dominator) == class => return true,
            Some(dominator) => above = dominator,
            None => return false,
        }
    }
    false
}

fn scaling(survey: &HeapSurvey<'_>, class_name: &str, class: &ClassValues) -> Option<HeapFinding> {
    let mut own: Vec<_> = class.sorted().into_iter().filter(|(property, _)| property.own.count > 0).collect();
    let bytes = own.iter().fold(0_u64, |sum, (property, _)| sum.saturating_add(property.own.bytes));
    // A single property is reported as `expensive_property`.
    if class.instances < INSTANCES || bytes < MEBIBYTE || own.len() < 2 {
        return None;
    }
    own.sort_by_key(|(property, _)| std::cmp::Reverse(property.own.bytes));
    let line = |(property, link): &(&Property, StringId)| {
        let ByteSum { count: values, bytes } = property.own;
        format!(
            "{class_name}::${}: {} of {} each, {}",
            survey.text(*link),
            count(values),
            size(each(bytes, values)),
            size(bytes)
        )
    };
    let shared = class.properties.values().filter(|property| property.own.count == 0).count();
    let text = format!(
        "{class_name} ({} instances): each retains {} in {} properties",
        count(class.instances),
        size(each(bytes, class.instances)),
        own.len()
    );
    let example = own.first().and_then(|(property, _)| property.largest.1);
    let finding = HeapFinding::new(FindingKind::PropertyScaling, FindingSeverity::Medium, text)
        .fact("class_name", class_name)
        .fact("instances", class.instances)
        .fact("per_instance_properties", own.len())
        .fact("shared_properties", shared)
        .fact("retained_bytes", bytes)
        .fact("bytes_per_instance", each(bytes, class.instances))
        .details(own.iter().take(NAMED).map(line).collect())
        .likely(Confidence::High, "Each further instance costs that much memory.")
        .check("Create rarely needed values on demand, and share values that are equal in all instances.")
        .impact(bytes)
        .at(example.map(|node| survey.place(node)));
    Some(finding)
}

fn expensive(survey: &HeapSurvey<'_>, label: &str, property: &Property) -> Option<HeapFinding> {
    let ByteSum { count: values, bytes } = property.own;
    if bytes < MEBIBYTE {
        return None;
    }
    let text = format!("{label}: {} of {} each, {}", count(values), size(each(bytes, values)), size(bytes));
    let finding = HeapFinding::new(FindingKind::ExpensiveProperty, FindingSeverity::Medium, text)
        .fact("property", label)
        .fact("count", values)
        .fact("retained_bytes", bytes)
        .fact("largest_bytes", property.largest.0)
        .likely(Confidence::High, "The values of this property are the main cost of its class.")
        .check("Check whether all of them are still needed.")
        .impact(bytes)
        .at(property.largest.1.map(|node| survey.place(node)));
    Some(finding)
}

fn repeated(survey: &HeapSurvey<'_>, label: &str, property: &Property) -> Option<HeapFinding> {
    let Property { copies, repeated, .. } = *property;
    if repeated.bytes < SAVED || !is_share(repeated.count, REPEATED, copies) {
        return None;
    }
    let text = format!(
        "{label}: {} of {} values occur more than once; the copies waste {}",
        count(repeated.count),
        count(copies),
        size(repeated.bytes)
    );
    let finding = HeapFinding::new(FindingKind::DedupCandidate, FindingSeverity::Low, text)
        .fact("property", label)
        .fact("count", copies)
        .fact("repeated", repeated.count)
        .fact("saved_bytes", repeated.bytes)
        .likely(Confidence::High, "Each instance creates its own copy of the same text.")
        .check("Keep each text once in a table, and reuse it.")
        .impact(repeated.bytes)
        .at(property.example.map(|node| survey.place(node)));
    Some(finding)
}

fn fan_in(survey: &HeapSurvey<'_>, label: &str, property: &Property) -> Option<HeapFinding> {
    let class = property.class.filter(|_| !property.is_mixed && property.own.count == 0)?;
    if property.shared < INSTANCES {
        return None;
    }
    let name = survey.text(class);
    let text = format!("{label}: {} references to shared objects of {name}", count(property.shared));
    let finding = HeapFinding::new(FindingKind::SharedFanin, FindingSeverity::Info, text)
        .fact("property", label)
        .fact("class_name", name)
        .fact("references", property.shared)
        .at(property.example.map(|node| survey.place(node)));
    Some(finding)
}

/// Whether all keys of a table are names of properties that the class of `object` declares.
fn has_declared_only(survey: &HeapSurvey<'_>, object: NodeId, elements: NodeId) -> bool {
    let Some(properties) = survey.child(object, survey.words.object_properties) else { return false };
    let declared: Vec<StringId> = survey.children(properties).map(|property| property.link).collect();
    let is_name = |key: &[u8]| declared.iter().any(|&name| plain_name(survey.graph().string(name)) == key);
    let mut keys = survey.children(elements).map(|element| element.link).peekable();
    let has_keys = keys.peek().is_some();
    has_keys && keys.all(|key| declared.contains(&key) || is_name(plain_name(survey.graph().string(key))))
}

/// The name of a property without its class, which PHP puts before names of private properties in tables, and the walk
/// before hidden ones.
fn plain_name(name: &[u8]) -> &[u8] {
    let start = name.iter().rposition(|&byte| byte == 0 || byte == b':');
    start.map_or(name, |start| &name[start + 1..])
}

/// A finding about the tables of a class, if they are large enough.
fn tables(
    kind: FindingKind,
    what: &str,
    survey: &HeapSurvey<'_>,
    class_name: &str,
    (class, tables): (&ClassValues, &PropertyTables),
) -> Option<HeapFinding> {
    let ByteSum { count: objects, bytes } = tables.sum;
    if bytes < SAVED {
        return None;
    }
    let text = format!(
        "{class_name}: {} of {} instances have a table of {what} properties, {} in total",
        count(objects),
        count(class.instances),
        size(bytes)
    );
    let finding = HeapFinding::new(kind, severity::by_size(bytes), text)
        .fact("class_name", class_name)
        .fact("count", objects)
        .fact("instances", class.instances)
        .fact("table_bytes", bytes)
        .impact(bytes)
        .at(tables.example.map(|node| survey.place(node)));
    Some(finding)
}

fn dynamic(survey: &HeapSurvey<'_>, class_name: &str, class: &ClassValues) -> Option<HeapFinding> {
    let kind = FindingKind::DynamicPropertiesOverhead;
    let finding = tables(kind, "undeclared", survey, class_name, (class, &class.dynamic))?;
    let finding = finding
        .likely(Confidence::High, "Such a table takes several times the memory of declared properties.")
        .check("Declare the properties in the class.");
    Some(finding)
}

fn declared(survey: &HeapSurvey<'_>, class_name: &str, class: &ClassValues) -> Option<HeapFinding> {
    let kind = FindingKind::PropertyTables;
    let finding = tables(kind, "declared", survey, class_name, (class, &class.declared))?;
    let finding = finding
        .likely(
            Confidence::High,
            "foreach over the object, get_object_vars(), var_dump(), print_r() or var_export() created the table, in \
             older releases also an (array) cast. PHP keeps it as long as the object.",
        )
        .check("Read the properties by name in long-lived objects, or loop over a clone.");
    Some(finding)
}
