//! A heap graph for the tests to query.

use std::collections::BTreeMap;

use borehole_heap::{LocationType, MemoryLocation, NodeId, NodeType};
use borehole_process::Dump;
use hashbrown::HashMap;

use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::blocks::HeapBlocks;
use crate::heap::collected::Collected;
use crate::heap::live::CopiedProgram;
use crate::heap::walk::{HeapWalkOptions, Walked, walk};

/// The results of walking a program's heap.
pub(super) struct WalkedHeap {
    pub(super) heap: Collected,
    pub(super) walked: Walked,
    pub(super) blocks: HeapBlocks,
}

pub(super) fn see(copied: &CopiedProgram) -> WalkedHeap {
    walked(&copied.dump, &copied.php, &copied.executor)
}

pub(super) fn walked(dump: &Dump, php: &Php, executor: &Executor) -> WalkedHeap {
    walked_as(dump, php, executor, &HeapWalkOptions::default())
}

pub(super) fn walked_as(
    dump: &Dump,
    php: &Php,
    executor: &Executor,
    options: &HeapWalkOptions,
) -> WalkedHeap {
    let mut blocks = HeapBlocks::of(dump, php, executor).unwrap();
    let mut heap = Collected::default();
    let walked = walk(dump, php, executor, &mut blocks, options, &mut heap);
    WalkedHeap { heap, walked, blocks }
}

/// The links from a root to `node`.
pub(super) fn path(heap: &Collected, node: NodeId) -> String {
    format!("{} ({})", heap.path(node), NodeType::NAMES[usize::from(heap.nodes[node.0 as usize].number())])
}

/// A heap to query.
pub(super) struct Graph<'h> {
    pub(super) heap: &'h Collected,
    pub(super) children: HashMap<Option<NodeId>, Vec<(String, NodeId)>>,
    pub(super) locations: HashMap<NodeId, Vec<&'h MemoryLocation>>,
    pub(super) attributes: HashMap<(NodeId, String), String>,
}

impl<'h> Graph<'h> {
    pub(super) fn new(heap: &'h Collected) -> Self {
        let mut graph =
            Self { heap, children: HashMap::new(), locations: HashMap::new(), attributes: HashMap::new() };
        for edge in &heap.edges {
            graph.children.entry(edge.parent).or_default().push((heap.text(edge.link), edge.child));
        }
        for (node, location) in &heap.locations {
            graph.locations.entry(*node).or_default().push(location);
        }
        for &(node, key, ref value) in &heap.attributes {
            graph.attributes.insert((node, heap.text(key)), value.clone());
        }
        graph
    }

    pub(super) fn links(&self, node: impl Into<Option<NodeId>>) -> Vec<&str> {
        let children = self.children.get(&node.into());
        children.into_iter().flatten().map(|(link, _)| link.as_str()).collect()
    }

    pub(super) fn child(&self, node: impl Into<Option<NodeId>>, link: &str) -> NodeId {
        let node = node.into();
        let found = self.children.get(&node).into_iter().flatten().find(|(name, _)| name == link);
        let place = || node.map_or("root".to_owned(), |node| path(self.heap, node));
        found.unwrap_or_else(|| panic!("no {link} in {} but {:?}", place(), self.links(node))).1
    }

    /// The node at the end of a path of links.
    pub(super) fn at(&self, path: &[&str]) -> NodeId {
        path.iter().fold(None, |node, link| Some(self.child(node, link))).unwrap()
    }

    /// The value of a global variable, past references.
    pub(super) fn global(&self, name: &str) -> NodeId {
        self.plain(self.at(&["global_variables", "array_elements", name, "value"]))
    }

    /// The target of a reference.
    pub(super) fn plain(&self, node: NodeId) -> NodeId {
        let is_reference = self.heap.nodes[node.0 as usize] == NodeType::PHP_REFERENCE;
        if is_reference { self.child(node, "referenced") } else { node }
    }

    /// The value of an element of an array.
    pub(super) fn element(&self, array: NodeId, key: &str) -> NodeId {
        self.plain(self.child(self.child(self.child(array, "array_elements"), key), "value"))
    }

    pub(super) fn property(&self, object: NodeId, name: &str) -> NodeId {
        self.plain(self.child(self.child(object, "object_properties"), name))
    }

    pub(super) fn attribute(&self, node: NodeId, key: &str) -> &str {
        &self.attributes[&(node, key.to_owned())]
    }

    pub(super) fn scalar(&self, node: NodeId) -> &str {
        self.attribute(node, "value")
    }

    pub(super) fn location(&self, node: NodeId) -> &MemoryLocation {
        self.locations[&node][0]
    }

    pub(super) fn string(&self, node: NodeId) -> String {
        self.heap.text(self.location(node).string.unwrap())
    }

    pub(super) fn class(&self, node: NodeId) -> String {
        self.heap.text(self.location(node).class.unwrap())
    }

    pub(super) fn count(&self, node: NodeId) -> usize {
        self.attribute(node, "#count").parse().unwrap()
    }
}

/// The number and the total size of the objects of each class.
pub(super) fn classes(heap: &Collected) -> BTreeMap<String, (u64, u64)> {
    let mut classes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, location) in heap.locations.iter().filter(|(_, location)| location.region.is_some()) {
        if let Some(class) = location.class {
            let sum = classes.entry(heap.text(class)).or_default();
            sum.0 += 1;
            sum.1 += location.size;
        }
    }
    classes
}

/// The number and the total size of the locations of each type in PHP's own memory.
pub(super) fn types(heap: &Collected) -> BTreeMap<String, (u64, u64)> {
    let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, location) in heap.locations.iter().filter(|(_, location)| location.region.is_some()) {
        let name = LocationType::NAMES[usize::from(location.location_type.number())];
        let sum = types.entry(name.to_owned()).or_default();
        sum.0 += 1;
        sum.1 += location.size;
    }
    types
}
