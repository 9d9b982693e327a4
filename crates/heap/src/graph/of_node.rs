//! Iterates over what a graph has for a node.

use super::{Child, Graph, NodeAttribute, nodes};
use crate::sink::{MemoryLocation, NodeId, StringId};

/// `None` for the graph itself, which refers to the roots, and then each node.
pub(crate) fn parents<G: Graph + ?Sized>(graph: &G) -> impl Iterator<Item = Option<NodeId>> + use<G> {
    std::iter::once(None).chain(nodes(graph.counts().nodes).map(Some))
}

/// All strings of a graph, in order.
pub(crate) fn strings<G: Graph + ?Sized>(graph: &G) -> impl Iterator<Item = StringId> + use<G> {
    (0..u32::try_from(graph.counts().strings).unwrap_or(u32::MAX)).map(StringId)
}

/// The references of a node, in the order of the walk; for `None`, the roots.
pub(crate) fn children<G: Graph + ?Sized>(
    graph: &G,
    parent: Option<NodeId>,
) -> impl Iterator<Item = Child> + use<'_, G> {
    graph.children(parent).filter_map(|row| graph.child(row))
}

/// The target of the reference of `node` with this name.
pub(crate) fn child<G: Graph + ?Sized>(graph: &G, node: NodeId, link: &[u8]) -> Option<NodeId> {
    let found = children(graph, Some(node)).find(|child| graph.string(child.link) == link)?;
    Some(found.node)
}

/// The locations of a node.
pub(crate) fn locations<G: Graph + ?Sized>(
    graph: &G,
    node: NodeId,
) -> impl Iterator<Item = MemoryLocation> + use<'_, G> {
    graph.locations(node).map(|row| graph.location(row))
}

/// The attributes of a node.
pub(crate) fn attributes<G: Graph + ?Sized>(
    graph: &G,
    node: NodeId,
) -> impl Iterator<Item = NodeAttribute> + use<'_, G> {
    graph.attributes(node).map(|row| graph.attribute(row))
}

/// The text of the attribute of `node` called `key`.
pub(crate) fn attribute<'g, G: Graph + ?Sized>(graph: &'g G, node: NodeId, key: &[u8]) -> Option<&'g [u8]> {
    let found = attributes(graph, node).find(|attribute| graph.string(attribute.key) == key)?;
    Some(graph.string(found.value))
}

/// The number of elements or properties, or of bytes of a string, stored in a node.
pub(crate) fn stored_count(graph: &(impl Graph + ?Sized), node: NodeId) -> Option<u64> {
    std::str::from_utf8(attribute(graph, node, b"#count")?).ok()?.parse().ok()
}

/// Whether this memory contains `address`.
pub(crate) fn contains(location: &MemoryLocation, address: u64) -> bool {
    (location.address..location.address.saturating_add(location.size.max(1))).contains(&address)
}
