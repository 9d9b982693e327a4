//! Graphs at a glance.

use borehole_heap::{References, Scope, Total, info, json, totals};

use crate::graphs::small;
use crate::json::reli;

fn total(name: &str, count: u64, memory_usage: u64) -> Total {
    Total { name: name.as_bytes().to_vec(), count, memory_usage }
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
fn what_reli_counted_itself_is_kept() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let found = info(&graph);
    let products = total("Shop\\Product", 50, 7600);
    assert_eq!(found.own_memory.classes[0], products);
    assert_eq!(found.own_memory.location_types[0], total("ZendArrayTableOverheadMemoryLocation", 65, 37_520));
    // Its nodes say the same of objects, all of which are in its own memory.
    let mut everything = totals(&graph, Scope::Everything).classes;
    let mut own = found.own_memory.classes;
    everything.sort_by(|left, right| left.name.cmp(&right.name));
    own.sort_by(|left, right| left.name.cmp(&right.name));
    assert_eq!(everything, own);
}
