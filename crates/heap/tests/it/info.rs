//! Summaries of graphs.

use borehole_heap::{
    Edge, GraphBuilder, HeapSink as _, LocationType, MemoryLocation, MemoryTotal, NodeType, References,
    Region, Strength, TotalsScope, info, json, totals,
};
use borehole_testkit::allocations::allocations;

use crate::graphs::small;
use crate::json::reli;

fn total(name: &str, count: u64, memory_usage: u64) -> MemoryTotal {
    MemoryTotal { name: name.as_bytes().to_vec(), count, memory_usage }
}

#[test]
fn a_small_heap_is_counted() {
    let found = info(&small());
    assert_eq!((found.counts.nodes, found.counts.edges, found.counts.locations), (6, 7, 4));
    assert_eq!(found.references, References { roots: 1, strong: 7, weak: 0, structural: 0, shared: 1 });
    assert_eq!(found.own_memory.location_types[0], total("ZendArrayTableMemoryLocation", 1, 320));
    assert_eq!(found.own_memory.classes, [total("Shop\\Order", 1, 40)]);
    assert_eq!(found.regions, [total("zend_mm_heap", 4, 40 + 32 + 56 + 320)]);
    assert_eq!((found.overhead_bytes, found.duplicates), (32, 0));
    assert_eq!(found.summary[0], ("php_version".to_owned(), "v82".to_owned()));
    assert_eq!(found.node_types.len(), 6);
}

#[test]
fn counts_of_reli_are_kept() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let found = info(&graph);
    let products = total("Shop\\Product", 50, 7600);
    assert_eq!(found.own_memory.classes[0], products);
    assert_eq!(found.own_memory.location_types[0], total("ZendArrayTableOverheadMemoryLocation", 65, 37_520));
    // Its nodes agree about objects, all of which are in PHP's own memory.
    let mut everything = totals(&graph, TotalsScope::Everything).classes;
    let mut own = found.own_memory.classes;
    everything.sort_by(|left, right| left.name.cmp(&right.name));
    own.sort_by(|left, right| left.name.cmp(&right.name));
    assert_eq!(everything, own);
}

/// A second node of the same string, one outside PHP's own memory, and a table of its own.
#[test]
fn shared_memory_counts_once() {
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"link");
    let string = |address, region| MemoryLocation {
        refcount: Some(1),
        type_info: Some(6),
        region,
        ..MemoryLocation::new(LocationType::STRING, address, 32)
    };
    for (address, region) in [(16, Some(Region::HEAP)), (16, Some(Region::HEAP)), (48, None)] {
        let child = builder.node(NodeType::STRING);
        builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
        builder.location(child, &string(address, region));
        let table = MemoryLocation {
            location_type: LocationType::ARRAY_TABLE,
            ..string(1000 + u64::from(child.0), region)
        };
        builder.location(child, &table);
    }
    let graph = builder.finish().unwrap();
    let own = [total("ZendArrayTableMemoryLocation", 2, 64), total("ZendStringMemoryLocation", 1, 32)];
    assert_eq!(totals(&graph, TotalsScope::OwnMemory).location_types, own);
    let all = [total("ZendArrayTableMemoryLocation", 3, 96), total("ZendStringMemoryLocation", 3, 96)];
    assert_eq!(totals(&graph, TotalsScope::Everything).location_types, all);
    assert_eq!(info(&graph).duplicates, 1);
}

/// A node takes at most 64 bytes and a reference 16, including locations, facts and strings.
#[test]
fn a_graph_takes_little_memory() {
    for name in ["m1_objects", "m3_closures", "m4_generators", "m5_mixed"] {
        let graph = json::read(&reli(name)).unwrap();
        let found = info(&graph);
        let (_copy, held) = allocations(|| graph.clone());
        let limit = (found.counts.nodes * 64 + found.counts.edges * 16) as u64;
        assert!(held.peak_bytes < limit, "{name}: {} of {limit}", held.peak_bytes);
        // The reported size is that of a copy of the graph, apart from names and totals.
        let said = graph.memory_bytes() as u64;
        assert!(held.peak_bytes.abs_diff(said) < said / 50, "{name}: {} of {said}", held.peak_bytes);
    }
}
