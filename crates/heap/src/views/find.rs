//! Finds nodes by their properties.

use super::Heap;
use crate::graph::{contains, locations, nodes};
use crate::sink::NodeId;

/// A search criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needle {
    /// Nodes with a location that contains this address.
    Address(u64),
    /// Objects of this class; case is ignored.
    Class(Vec<u8>),
    /// Strings and scalars that contain this text.
    Content(Vec<u8>),
    /// Nodes that a reference of this name leads to.
    Name(Vec<u8>),
}

/// The matching nodes, in order, at most `limit`, and the number of all matches.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::Follow;
use borehole_heap::views::{Heap, Needle, find};

let heap = Heap::new(&graph, Follow::default());
assert_eq!(find(&heap, &Needle::Class(b"app\\cache".to_vec()), 10), (vec![object], 1));"#
)]
#[must_use]
pub fn find(heap: &Heap<'_>, needle: &Needle, limit: usize) -> (Vec<NodeId>, u64) {
    let (mut found, mut count) = (Vec::new(), 0);
    let mut take = |node| {
        count += 1;
        if found.len() < limit {
            found.push(node);
        }
    };
    let all = || nodes(heap.graph().counts().nodes);
    match needle {
        Needle::Name(name) => all().filter(|&node| is_named(heap, node, name)).for_each(&mut take),
        _ => all().filter(|&node| is(heap, node, needle)).for_each(&mut take),
    }
    (found, count)
}

fn is_named(heap: &Heap<'_>, node: NodeId, name: &[u8]) -> bool {
    let graph = heap.graph();
    let links = heap.parents().referrers(node).filter_map(|(_, row)| graph.child(row));
    let mut links = links.map(|child| child.link);
    links.any(|link| graph.string(link) == name)
}

fn is(heap: &Heap<'_>, node: NodeId, needle: &Needle) -> bool {
    let graph = heap.graph();
    let mut locations = locations(graph, node);
    match needle {
        Needle::Address(address) => locations.any(|location| contains(&location, *address)),
        Needle::Class(class) => locations.any(|location| {
            location.class.is_some_and(|name| graph.string(name).eq_ignore_ascii_case(class))
        }),
        Needle::Content(text) => {
            let has =
                |content: &[u8]| text.is_empty() || content.windows(text.len()).any(|part| part == text);
            locations.filter_map(|location| location.string).any(|string| has(graph.string(string)))
                || heap.attribute(node, b"value").is_some_and(has)
        }
        Needle::Name(_) => false,
    }
}
