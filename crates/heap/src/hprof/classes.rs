//! Determines the classes that a graph needs, and the Java object that each node becomes.

use hashbrown::HashMap;

use super::records::{BOOLEAN_TYPE, DOUBLE_TYPE, INT_TYPE, LONG_TYPE, OBJECT_TYPE};
use crate::graph::{Graph, attributes, children, nodes};
use crate::names::{NodeType, Strength};
use crate::sink::{NodeId, StringId, ValueKind};

/// The maximum number of fields of a class. If the nodes of a class together have more names for their references, they
/// have a list of entries instead.
const MOST_FIELDS: usize = 48;

/// The kind of a node, from which its class is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClassKey {
    /// An object of this PHP class.
    Object(StringId),
    /// Any other node, by its type.
    Node(NodeType),
}

/// The Java object that a node becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum JavaForm {
    /// An instance of the class with this index.
    Instance(usize),
    /// A string.
    String,
    Long(i64),
    Double(f64),
    Boolean(bool),
    /// No object; references to it are null.
    Null,
}

/// A class of the exported graph.
#[derive(Debug, Default)]
pub(super) struct JavaClass {
    pub(super) name: Vec<u8>,
    pub(super) shape: InstanceFields,
}

/// The fields of its instances, in addition to address and size.
#[derive(Debug)]
pub(super) enum InstanceFields {
    /// A field for each name.
    Fields(Vec<StringId>),
    /// `entries` and their `names`.
    Entries,
}

impl Default for InstanceFields {
    fn default() -> Self {
        Self::Fields(Vec::new())
    }
}

/// The required classes of Java, with their fields. VisualVM reads the system properties, and the class of references
/// with its field, and fails without them.
pub(super) const JAVA: &[(&str, &[(&str, u8)])] = &[
    ("java/lang/Object", &[]),
    ("java/lang/Class", &[]),
    ("java/lang/String", &[("value", OBJECT_TYPE), ("hash", INT_TYPE)]),
    ("java/lang/Long", &[("value", LONG_TYPE)]),
    ("java/lang/Double", &[("value", DOUBLE_TYPE)]),
    ("java/lang/Boolean", &[("value", BOOLEAN_TYPE)]),
    ("[Ljava/lang/Object;", &[]),
    ("[Ljava/lang/String;", &[]),
    ("[C", &[]),
    ("java/lang/System", &[]),
    ("java/lang/ref/Reference", &[("referent", OBJECT_TYPE)]),
    ("java/util/Properties", &[("defaults", OBJECT_TYPE), ("table", OBJECT_TYPE)]),
    ("java/lang/ref/SoftReference", &[]),
    ("java/lang/ref/WeakReference", &[]),
    ("java/lang/ref/FinalReference", &[]),
    ("java/lang/ref/PhantomReference", &[]),
    ("java/util/Hashtable$Entry", &[("key", OBJECT_TYPE), ("value", OBJECT_TYPE), ("next", OBJECT_TYPE)]),
];

/// The system properties: VisualVM requires that there are some.
pub(super) const PROPERTIES: [(&str, &str); 2] = [("java.vm.name", "PHP"), ("java.version", "1.8")];

// Indexes in `JAVA`.
pub(super) const OBJECT: usize = 0;
pub(super) const STRING: usize = 2;
pub(super) const LONG: usize = 3;
pub(super) const DOUBLE: usize = 4;
pub(super) const BOOLEAN: usize = 5;
pub(super) const OBJECTS: usize = 6;
pub(super) const STRINGS: usize = 7;
pub(super) const SYSTEM: usize = 9;
pub(super) const PROPERTIES_CLASS: usize = 11;
pub(super) const ENTRY: usize = 16;

/// The classes of a graph.
pub(super) struct JavaClasses {
    places: HashMap<ClassKey, usize>,
    pub(super) classes: Vec<JavaClass>,
    /// The object that each table of properties belongs to; the table's references become fields of the object.
    owners: HashMap<u32, u32>,
}

impl JavaClasses {
    pub(super) fn of(graph: &impl Graph) -> Self {
        let mut found = Self { places: HashMap::new(), classes: Vec::new(), owners: owners(graph) };
        let mut seen: HashMap<(usize, StringId), ()> = HashMap::new();
        let mut links = Vec::new();
        for node in nodes(graph.counts().nodes) {
            let JavaForm::Instance(place) = found.form(graph, node) else { continue };
            let place = if place == usize::MAX { found.add(graph, node) } else { place };
            links.clear();
            links.extend(found.members(graph, node).map(|(link, _)| link));
            let class = &mut found.classes[place];
            for &link in &links {
                if let InstanceFields::Fields(fields) = &mut class.shape {
                    if seen.insert((place, link), ()).is_none() {
                        fields.push(link);
                    }
                    if fields.len() > MOST_FIELDS {
                        class.shape = InstanceFields::Entries;
                    }
                }
            }
        }
        found
    }

    fn add(&mut self, graph: &impl Graph, node: NodeId) -> usize {
        let key = key(graph, node);
        let name = match key {
            ClassKey::Object(class) => class_name(graph.string(class)),
            ClassKey::Node(_) => {
                let name = graph.node_type_name(node);
                [b"php/", name.strip_suffix(b"Context").unwrap_or(name)].concat()
            }
        };
        self.classes.push(JavaClass { name, shape: InstanceFields::default() });
        self.places.insert(key, self.classes.len() - 1);
        self.classes.len() - 1
    }

    /// The Java object that `node` becomes; the class index is the maximum while its class is unknown.
    pub(super) fn form(&self, graph: &impl Graph, node: NodeId) -> JavaForm {
        match graph.node_type(node) {
            NodeType::OBJECT_PROPERTIES if self.owners.contains_key(&node.0) => JavaForm::Null,
            NodeType::STRING => JavaForm::String,
            NodeType::SCALAR_VALUE => scalar(graph, node),
            _ => JavaForm::Instance(self.places.get(&key(graph, node)).copied().unwrap_or(usize::MAX)),
        }
    }

    /// The references of an object that keep their target alive, with their names, including those in its table of
    /// properties. All references in Java keep their target alive, so the others are left out; otherwise the table of
    /// objects would hold everything.
    pub(super) fn members<'a>(
        &'a self,
        graph: &'a impl Graph,
        node: NodeId,
    ) -> impl Iterator<Item = (StringId, NodeId)> + 'a {
        let holding = |row| graph.child(row).filter(|child| child.strength != Strength::Weak);
        let children = graph.children(Some(node)).filter_map(holding);
        children.flat_map(move |child| {
            let is_own = self.owner(graph, child.node) == Some(node);
            let inner = if is_own { graph.children(Some(child.node)) } else { 0..0 };
            let inner = inner.filter_map(holding).map(|child| (child.link, child.node));
            inner.chain((!is_own).then_some((child.link, child.node)))
        })
    }

    /// Whether `node` becomes no object.
    pub(super) fn is_null(&self, graph: &impl Graph, node: NodeId) -> bool {
        match graph.node_type(node) {
            NodeType::SCALAR_VALUE => scalar(graph, node) == JavaForm::Null,
            _ => self.owner(graph, node).is_some(),
        }
    }

    /// The node that a reference to `node` leads to in the export.
    pub(super) fn target(&self, graph: &impl Graph, node: NodeId) -> NodeId {
        self.owner(graph, node).unwrap_or(node)
    }

    /// The object whose table of properties `node` is. Checks the type first, because most nodes are not such a table.
    fn owner(&self, graph: &impl Graph, node: NodeId) -> Option<NodeId> {
        if graph.node_type(node) != NodeType::OBJECT_PROPERTIES {
            return None;
        }
        self.owners.get(&node.0).map(|&owner| NodeId(owner))
    }
}

fn owners(graph: &impl Graph) -> HashMap<u32, u32> {
    let mut owners = HashMap::new();
    for node in nodes(graph.counts().nodes) {
        if graph.node_type(node) != NodeType::OBJECT {
            continue;
        }
        for child in children(graph, Some(node)) {
            if child.is_tree && graph.node_type(child.node) == NodeType::OBJECT_PROPERTIES {
                owners.entry(child.node.0).or_insert(node.0);
            }
        }
    }
    owners
}

fn key(graph: &impl Graph, node: NodeId) -> ClassKey {
    let node_type = graph.node_type(node);
    let first = graph.locations(node).next().filter(|_| node_type == NodeType::OBJECT);
    let class = first.and_then(|row| graph.location(row).class);
    class.map_or(ClassKey::Node(node_type), ClassKey::Object)
}

/// The name of a PHP class, with a prefix if it is empty or readers would take it for an array or a class of Java.
fn class_name(name: &[u8]) -> Vec<u8> {
    let is_misleading = name.is_empty() || name.starts_with(b"[") || name.starts_with(b"java");
    if is_misleading { [b"php/object/", name].concat() } else { name.to_vec() }
}

fn scalar(graph: &impl Graph, node: NodeId) -> JavaForm {
    let Some(found) = attributes(graph, node).next() else {
        return JavaForm::Null;
    };
    let text = std::str::from_utf8(graph.string(found.value)).unwrap_or_default();
    match found.kind {
        ValueKind::Integer => text.parse().map_or(JavaForm::Null, JavaForm::Long),
        ValueKind::Float => text.parse().map_or(JavaForm::Null, JavaForm::Double),
        ValueKind::Bool => JavaForm::Boolean(text == "1"),
        ValueKind::Json if text.contains("nan") => JavaForm::Double(f64::NAN),
        ValueKind::Json if text.contains("infinity") => JavaForm::Double(f64::INFINITY),
        _ => JavaForm::Null,
    }
}
