//! Copies a graph into memory.

use borehole_text::Error;

use super::{Graph, GraphBuilder, HeapGraph, nodes, strings};
use crate::names::{LocationType, NodeType, Region};
use crate::sink::{Edge, HeapSink as _, MemoryLocation, NodeId, StringId};

/// Maps the numbers of the source to those of the copy.
struct Copier<'a, G: ?Sized> {
    graph: &'a G,
    builder: GraphBuilder,
    strings: Vec<StringId>,
    node_types: Vec<NodeType>,
    location_types: Vec<LocationType>,
    regions: Vec<Region>,
}

/// Copies `graph` into memory.
///
/// # Errors
/// As [`GraphBuilder::finish`].
pub(super) fn copy(graph: &(impl Graph + ?Sized)) -> Result<HeapGraph, Error> {
    let mut builder = GraphBuilder::new();
    let strings = strings(graph).map(|string| builder.string(graph.string(string))).collect();
    let vocabulary = graph.vocabulary();
    let names = |list: &[StringId]| -> Vec<Vec<u8>> {
        list.iter().map(|&name| graph.string(name).to_vec()).collect()
    };
    let node_types = names(&vocabulary.node_types).iter().map(|name| builder.node_type(name)).collect();
    let location_types =
        names(&vocabulary.location_types).iter().map(|name| builder.location_type(name)).collect();
    let regions = names(&vocabulary.regions).iter().map(|name| builder.region(name)).collect();
    Copier { graph, builder, strings, node_types, location_types, regions }.copy()
}

impl<G: Graph + ?Sized> Copier<'_, G> {
    fn copy(mut self) -> Result<HeapGraph, Error> {
        let count = self.graph.counts().nodes;
        for node in nodes(count) {
            let number = usize::from(self.graph.node_type(node).number());
            // A type without a name, as in damaged files, gets an empty name.
            let known = self.node_types.get(number).copied();
            let node_type = known.unwrap_or_else(|| self.builder.node_type(b""));
            self.builder.node(node_type);
        }
        self.edges(None);
        for node in nodes(count) {
            self.edges(Some(node));
            self.facts(node);
        }
        for &(key, value) in self.graph.summary() {
            let fact = (self.string(key), self.string(value));
            self.builder.summary_strings(fact.0, fact.1);
        }
        self.builder.set_created(self.graph.created());
        if let Some(totals) = self.graph.totals() {
            self.builder.set_totals(totals.clone());
        }
        self.builder.finish()
    }

    fn string(&self, string: StringId) -> StringId {
        self.strings.get(string.0 as usize).copied().unwrap_or_default()
    }

    fn edges(&mut self, parent: Option<NodeId>) {
        for row in self.graph.children(parent) {
            let Some(child) = self.graph.child(row) else { continue };
            let link = self.string(child.link);
            let edge =
                Edge { parent, child: child.node, link, is_tree: child.is_tree, strength: child.strength };
            self.builder.edge(edge);
        }
    }

    fn facts(&mut self, node: NodeId) {
        for row in self.graph.locations(node) {
            let found = self.graph.location(row);
            let number = usize::from(found.location_type.number());
            let known = self.location_types.get(number).copied();
            let location = MemoryLocation {
                location_type: known.unwrap_or_else(|| self.builder.location_type(b"")),
                class: found.class.map(|class| self.string(class)),
                string: found.string.map(|string| self.string(string)),
                region: found
                    .region
                    .and_then(|region| self.regions.get(usize::from(region.number())).copied()),
                ..found
            };
            self.builder.location(node, &location);
        }
        for row in self.graph.attributes(node) {
            let found = self.graph.attribute(row);
            let (key, value) = (self.string(found.key), self.string(found.value));
            self.builder.attribute_strings(node, key, value, found.kind);
        }
    }
}
