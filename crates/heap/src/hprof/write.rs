//! Writes the file: names, classes, roots, then all nodes.

use std::io::{self, Write};

use borehole_text::IntegerDigits;

use super::classes::{
    BOOLEAN, DOUBLE, ENTRY, InstanceFields, JAVA, JavaClasses, JavaForm, LONG, OBJECT, OBJECTS, PROPERTIES,
    PROPERTIES_CLASS, STRING as STRING_CLASS, STRINGS, SYSTEM,
};
use super::records::*;
use crate::graph::{Graph, locations, nodes};
use crate::names::Strength;
use crate::sink::{NodeId, StringId};

// The ids of nodes start at 16, and those of names and classes are far above. The ids of a node's parts follow its id.
const STRIDE: u64 = 16;
const CHARS: u64 = 1;
const ENTRIES: u64 = 2;
const NAMES: u64 = 3;
const FIRST_NAME: u64 = 1 << 40;
const FIRST_FIXED: u64 = 1 << 42;
const FIRST_CLASS: u64 = 1 << 44;

/// The fields of every instance, before those of its class.
const COMMON: [(&str, u8); 2] = [("#address", LONG_TYPE), ("#bytes", LONG_TYPE)];

/// The maximum length of a string; longer ones are truncated, because strings are only displayed.
const MOST_UNITS: usize = 1 << 24;

/// Writes `graph` as a Java heap dump.
///
/// A PHP object becomes an instance of a class with its name, whose fields are its properties; a string becomes a
/// `java.lang.String`, a number a `java.lang.Long` or `Double`. Every other node becomes an instance of `php.` and its
/// type. If a class's references have too many names for fields, as the elements of arrays do, its instances have
/// `entries`, and their `names` unless they count from 0. Node N has the id 16(N + 1). All instances have `#address`,
/// the address of their memory, and `#bytes`, its size, because Java's sizes differ from PHP's. Weak references are
/// left out: readers would take them for references that keep their target alive.
///
#[doc = crate::doc_graph::graph_example!(
    r#"let mut file = Vec::new();
borehole_heap::hprof::write(&graph, &mut file)?;
assert!(file.starts_with(b"JAVA PROFILE"));"#
)]
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, output: impl Write) -> io::Result<()> {
    let classes = JavaClasses::of(graph);
    let records = HprofRecords::new(output)?;
    let names = Vec::new();
    let mut writer =
        HprofWriter { graph, classes, records, names, is_named: vec![false; graph.counts().strings] };
    writer.names()?;
    writer.load_classes()?;
    writer.dump_classes()?;
    writer.properties()?;
    writer.roots()?;
    for node in nodes(graph.counts().nodes) {
        writer.node(node)?;
    }
    writer.records.finish()
}

struct HprofWriter<'a, G, W: Write> {
    graph: &'a G,
    classes: JavaClasses,
    records: HprofRecords<W>,
    /// Names that are not strings of the graph: classes, fixed fields.
    names: Vec<Vec<u8>>,
    /// Whether each string is in the heap as the name of an entry.
    is_named: Vec<bool>,
}

fn id_of(node: NodeId) -> u64 {
    (u64::from(node.0) + 1) * STRIDE
}

fn java(place: usize) -> u64 {
    FIRST_CLASS + place as u64 * STRIDE
}

fn class_id(place: usize) -> u64 {
    java(JAVA.len() + place)
}

/// The id of a string of the graph as the name of a field.
fn field_name(name: StringId) -> u64 {
    u64::from(name.0) + 1
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl<G: Graph, W: Write> HprofWriter<'_, G, W> {
    /// The id of a name that is not a string of the graph.
    fn name(&mut self, name: &[u8]) -> u64 {
        let place = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_vec());
            self.names.len() - 1
        });
        FIRST_NAME + place as u64
    }

    fn names(&mut self) -> io::Result<()> {
        let mut fields: Vec<StringId> = Vec::new();
        for class in &self.classes.classes {
            if let InstanceFields::Fields(links) = &class.shape {
                fields.extend(links);
            }
        }
        fields.sort_unstable();
        fields.dedup();
        for name in fields {
            self.put_name(field_name(name), self.graph.string(name))?;
        }
        for (name, fields) in JAVA {
            self.name(name.as_bytes());
            for (field, _) in *fields {
                self.name(field.as_bytes());
            }
        }
        for field in [COMMON[0].0, COMMON[1].0, "entries", "names", "props"] {
            self.name(field.as_bytes());
        }
        let first = self.names.len();
        self.names.extend(self.classes.classes.iter().map(|class| class.name.clone()));
        for (place, name) in std::mem::take(&mut self.names).iter().enumerate() {
            self.put_name(FIRST_NAME + place as u64, name)?;
            if place < first {
                self.names.push(name.clone());
            }
        }
        Ok(())
    }

    fn put_name(&mut self, id: u64, name: &[u8]) -> io::Result<()> {
        let mut body = Vec::new();
        body.u64(id).extend_from_slice(String::from_utf8_lossy(name).as_bytes());
        self.records.record(STRING, &body)
    }

    fn load_classes(&mut self) -> io::Result<()> {
        let mut trace = Vec::new();
        trace.u32(TRACE).u32(0).u32(0);
        self.records.record(STACK_TRACE, &trace)?;
        let fixed = self.names.len();
        for place in 0..JAVA.len() + self.classes.classes.len() {
            let name = match JAVA.get(place) {
                Some((name, _)) => self.name(name.as_bytes()),
                None => FIRST_NAME + (fixed + place - JAVA.len()) as u64,
            };
            let mut body = Vec::new();
            body.u32(count(place + 1)).u64(java(place)).u32(TRACE).u64(name);
            self.records.record(LOAD_CLASS, &body)?;
        }
        Ok(())
    }

    fn dump_classes(&mut self) -> io::Result<()> {
        for (place, (_, fields)) in JAVA.iter().enumerate() {
            let fields: Vec<(u64, u8)> =
                fields.iter().map(|&(name, kind)| (self.name(name.as_bytes()), kind)).collect();
            self.dump_class(java(place), if place == OBJECT { 0 } else { java(OBJECT) }, &fields)?;
        }
        for place in 0..self.classes.classes.len() {
            let mut fields: Vec<(u64, u8)> =
                COMMON.iter().map(|&(name, kind)| (self.name(name.as_bytes()), kind)).collect();
            match &self.classes.classes[place].shape {
                InstanceFields::Fields(links) => {
                    fields.extend(links.iter().map(|&link| (field_name(link), OBJECT_TYPE)));
                }
                InstanceFields::Entries => {
                    fields.extend([(self.name(b"entries"), OBJECT_TYPE), (self.name(b"names"), OBJECT_TYPE)]);
                }
            }
            self.dump_class(class_id(place), java(OBJECT), &fields)?;
        }
        Ok(())
    }

    fn dump_class(&mut self, id: u64, parent: u64, fields: &[(u64, u8)]) -> io::Result<()> {
        let properties = (id == java(SYSTEM)).then(|| self.name(b"props"));
        let size: u32 = fields.iter().map(|&(_, kind)| field_bytes(kind)).sum();
        let heap = self.records.heap()?;
        heap.u8(CLASS).u64(id).u32(TRACE).u64(parent);
        // The loader, signers, the domain, and two reserved ids.
        heap.extend_from_slice(&[0; 5 * ID_BYTES as usize]);
        heap.u32(size).u16(0).u16(u16::from(properties.is_some()));
        if let Some(name) = properties {
            heap.u64(name).u8(OBJECT_TYPE).u64(FIRST_FIXED);
        }
        heap.u16(u16::try_from(fields.len()).unwrap_or(u16::MAX));
        for &(name, kind) in fields {
            heap.u64(name).u8(kind);
        }
        Ok(())
    }

    /// Writes the system properties in the structure of Java 8.
    fn properties(&mut self) -> io::Result<()> {
        let part = |place: usize, part: u64| FIRST_FIXED + (place as u64 + 1) * STRIDE + part * 4;
        for (place, (key, value)) in PROPERTIES.iter().enumerate() {
            self.text(part(place, 1), Some(key))?;
            self.text(part(place, 2), Some(value))?;
            let fields = [part(place, 1), part(place, 2), 0].map(u64::to_be_bytes).concat();
            self.boxed(part(place, 0), ENTRY, &fields)?;
        }
        let entries: Vec<u64> = (0..PROPERTIES.len()).map(|place| part(place, 0)).collect();
        self.array(FIRST_FIXED + ENTRIES, OBJECTS, &entries)?;
        let fields = [0, FIRST_FIXED + ENTRIES].map(u64::to_be_bytes).concat();
        self.boxed(FIRST_FIXED, PROPERTIES_CLASS, &fields)
    }

    fn roots(&mut self) -> io::Result<()> {
        for row in self.graph.children(None) {
            if let Some(child) = self.graph.child(row).filter(|child| child.strength != Strength::Weak) {
                let target = self.reference(child.node);
                if target != 0 {
                    self.records.heap()?.u8(ROOT_UNKNOWN).u64(target);
                }
            }
        }
        Ok(())
    }

    /// The id that references to `node` have.
    fn reference(&self, node: NodeId) -> u64 {
        let target = self.classes.target(self.graph, node);
        if self.classes.is_null(self.graph, target) { 0 } else { id_of(target) }
    }

    fn node(&mut self, node: NodeId) -> io::Result<()> {
        let id = id_of(node);
        match self.classes.form(self.graph, node) {
            JavaForm::Null => Ok(()),
            JavaForm::String => {
                let text = locations(self.graph, node).next().and_then(|location| location.string);
                self.string(id, text)
            }
            JavaForm::Long(number) => self.boxed(id, LONG, &number.to_be_bytes()),
            JavaForm::Double(number) => self.boxed(id, DOUBLE, &number.to_be_bytes()),
            JavaForm::Boolean(value) => self.boxed(id, BOOLEAN, &[u8::from(value)]),
            JavaForm::Instance(place) => self.instance(node, place),
        }
    }

    fn boxed(&mut self, id: u64, class: usize, value: &[u8]) -> io::Result<()> {
        let heap = self.records.heap()?;
        heap.u8(INSTANCE)
            .u64(id)
            .u32(TRACE)
            .u64(java(class))
            .u32(count(value.len()))
            .extend_from_slice(value);
        Ok(())
    }

    fn string(&mut self, id: u64, text: Option<StringId>) -> io::Result<()> {
        let graph = self.graph;
        let text = text.map(|text| String::from_utf8_lossy(graph.string(text)));
        self.text(id, text.as_deref())
    }

    fn text(&mut self, id: u64, text: Option<&str>) -> io::Result<()> {
        let units: Option<Vec<u16>> = text.map(|text| text.encode_utf16().take(MOST_UNITS).collect());
        let heap = self.records.heap()?;
        if let Some(units) = &units {
            heap.u8(PRIMITIVE_ARRAY).u64(id + CHARS).u32(TRACE).u32(count(units.len())).u8(CHAR_TYPE);
            for &unit in units {
                heap.u16(unit);
            }
        }
        let value = if units.is_some() { id + CHARS } else { 0 };
        heap.u8(INSTANCE).u64(id).u32(TRACE).u64(java(STRING_CLASS)).u32(12).u64(value).u32(0);
        Ok(())
    }

    fn instance(&mut self, node: NodeId, place: usize) -> io::Result<()> {
        let locations = || locations(self.graph, node);
        let address = locations().next().map_or(0, |location| location.address);
        let size = locations().map(|location| location.size).fold(0, u64::saturating_add);
        let mut values = Vec::new();
        values.u64(address).u64(size);
        let members: Vec<(StringId, NodeId)> = self.classes.members(self.graph, node).collect();
        match self.classes.classes.get(place).map(|class| &class.shape) {
            Some(InstanceFields::Fields(fields)) => {
                for field in fields {
                    let found = members.iter().find(|(link, _)| link == field);
                    values.u64(found.map_or(0, |&(_, child)| self.reference(child)));
                }
            }
            Some(InstanceFields::Entries) => {
                let names = self.entries(id_of(node), &members)?;
                values.u64(id_of(node) + ENTRIES).u64(names);
            }
            None => return Ok(()),
        }
        let heap = self.records.heap()?;
        heap.u8(INSTANCE).u64(id_of(node)).u32(TRACE).u64(class_id(place));
        heap.u32(count(values.len())).extend_from_slice(&values);
        Ok(())
    }

    /// Writes the targets of a node's references as an array, and their names as another; returns the id of the latter.
    fn entries(&mut self, id: u64, members: &[(StringId, NodeId)]) -> io::Result<u64> {
        let targets: Vec<u64> = members.iter().map(|&(_, child)| self.reference(child)).collect();
        self.array(id + ENTRIES, OBJECTS, &targets)?;
        let counts = |(place, &(link, _)): (usize, &(StringId, NodeId))| {
            self.graph.string(link) == IntegerDigits::of_unsigned(place as u64).text()
        };
        if members.iter().enumerate().all(counts) {
            return Ok(0);
        }
        let mut names = Vec::with_capacity(members.len());
        for &(link, _) in members {
            let name = FIRST_NAME + u64::from(link.0) * STRIDE;
            if self.is_named.get_mut(link.0 as usize).is_some_and(|named| !std::mem::replace(named, true)) {
                self.string(name, Some(link))?;
            }
            names.push(name);
        }
        self.array(id + NAMES, STRINGS, &names)?;
        Ok(id + NAMES)
    }

    fn array(&mut self, id: u64, class: usize, items: &[u64]) -> io::Result<()> {
        let heap = self.records.heap()?;
        heap.u8(OBJECT_ARRAY).u64(id).u32(TRACE).u32(count(items.len())).u64(java(class));
        for &item in items {
            heap.u64(item);
        }
        Ok(())
    }
}

const fn field_bytes(kind: u8) -> u32 {
    match kind {
        BOOLEAN_TYPE => 1,
        INT_TYPE => 4,
        _ => 8,
    }
}
