//! Changes between heaps.

use borehole_heap::compare::{HeapComparison, compare};
use borehole_heap::retention::Follow;
use borehole_heap::{
    AttributeValue, Edge, Graph, GraphBuilder, HeapGraph, HeapSink, LocationType, MemoryLocation, NodeId,
    NodeType, Region, Strength, json,
};

use crate::json::reli;

/// The heap of a program whose global arrays have this many elements, of 256 bytes each.
fn arrays(arrays: &[(&str, u64)]) -> HeapGraph {
    let mut heap = Heap { builder: GraphBuilder::new(), address: 0x1000 };
    let root = heap.add(None, "global_variables", NodeType::GLOBAL_VARIABLES, 0);
    for &(name, count) in arrays {
        let header = heap.add(Some(root), name, NodeType::ARRAY_HEADER, 56);
        let elements = heap.add(Some(header), "array_elements", NodeType::ARRAY_ELEMENTS, 16 * count);
        let key = heap.builder.string(b"#count");
        heap.builder.attribute(elements, key, AttributeValue::Integer(i64::try_from(count).unwrap()));
        for index in 0..count {
            let element = heap.add(Some(elements), &index.to_string(), NodeType::ARRAY_ELEMENT, 0);
            heap.add(Some(element), "value", NodeType::STRING, 256);
        }
    }
    heap.builder.finish().unwrap()
}

struct Heap {
    builder: GraphBuilder,
    address: u64,
}

impl Heap {
    fn add(&mut self, parent: Option<NodeId>, link: &str, node_type: NodeType, size: u64) -> NodeId {
        let link = self.builder.string(link.as_bytes());
        let child = self.builder.node(node_type);
        self.builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
        let location_type =
            if node_type == NodeType::STRING { LocationType::STRING } else { LocationType::ARRAY };
        let location = MemoryLocation::new(location_type, self.address, size);
        self.builder.location(child, &MemoryLocation { region: Some(Region::HEAP), ..location });
        self.address += size.max(16);
        child
    }
}

fn compared(heaps: &[HeapGraph]) -> HeapComparison {
    let graphs: Vec<&dyn Graph> = heaps.iter().map(|heap| heap as &dyn Graph).collect();
    compare(&graphs, Follow::default())
}

fn paths(changes: &borehole_heap::compare::HolderList) -> Vec<(String, i64)> {
    changes
        .rows
        .iter()
        .map(|change| (String::from_utf8(change.path.clone()).unwrap(), change.growth))
        .collect()
}

#[test]
fn growth_is_attributed_to_the_array_that_grew() {
    let found =
        compared(&[arrays(&[("cache", 100), ("other", 50)]), arrays(&[("cache", 300), ("other", 50)])]);
    assert_eq!(paths(&found.holders), [("$cache".to_owned(), 200 * (256 + 16))]);
    assert_eq!(found.holders.rows[0].counts, [Some(100), Some(300)]);
    assert_eq!(found.holders.rows[0].retained, [Some(100 * 272), Some(300 * 272)]);
    assert!(found.added.rows.is_empty() && found.removed.rows.is_empty());
}

#[test]
fn the_outermost_new_or_gone_node_is_named() {
    let found = compared(&[arrays(&[("old", 10), ("kept", 10)]), arrays(&[("kept", 10), ("new", 20)])]);
    assert_eq!(paths(&found.added), [("$new".to_owned(), 56 + 20 * 272)]);
    assert_eq!(paths(&found.removed), [("$old".to_owned(), -(56 + 10 * 272))]);
}

#[test]
fn steady_growth_comes_first_in_a_series() {
    let heaps =
        [(100, 10), (10, 20), (600, 30)].map(|(jumps, grows)| arrays(&[("jumps", jumps), ("grows", grows)]));
    let found = compared(&heaps);
    let order: Vec<(String, bool)> = found
        .holders
        .rows
        .iter()
        .map(|change| (String::from_utf8(change.path.clone()).unwrap(), change.is_steady))
        .collect();
    assert_eq!(order, [("$grows".to_owned(), true), ("$jumps".to_owned(), false)]);
    let strings = found.types.iter().find(|change| change.name == b"ZendStringMemoryLocation").unwrap();
    assert_eq!((strings.counts.as_slice(), strings.growth()), (&[110, 30, 630][..], 520 * 256));
}

#[test]
fn a_heap_does_not_differ_from_itself() {
    let heap = || json::read(&reli("m5_mixed")).unwrap();
    let found = compared(&[heap(), heap()]);
    assert!(found.same_process, "the classes have the same addresses");
    assert!(found.holders.rows.is_empty() && found.added.rows.is_empty() && found.removed.rows.is_empty());
    assert!(
        !found.classes.is_empty()
            && found.classes.iter().chain(&found.types).all(|change| change.growth() == 0)
    );
    assert!(found.metrics.iter().all(|series| series.values[0] == series.values[1]));
}

#[test]
fn empty_heaps_are_compared_too() {
    let found = compared(&[arrays(&[]), arrays(&[])]);
    assert_eq!((found.heaps.len(), found.holders.rows.len()), (2, 0));
    assert_eq!(compared(&[]).heaps.len(), 0);
}
