//! Queries on heaps of programs whose source determines the answers.

use borehole_heap::retention::Follow;
use borehole_heap::views::{Heap, Needle, classes, cycles, find};
use borehole_heap::{HeapGraph, NodeId, json};

use crate::json::reli;

fn objects() -> HeapGraph {
    json::read(&reli("m1_objects")).unwrap()
}

fn one(heap: &Heap<'_>, needle: &Needle) -> NodeId {
    let (found, count) = find(heap, needle, 10);
    assert_eq!(count, 1, "{needle:?}");
    found[0]
}

#[test]
fn classes_show_their_objects_and_the_largest() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let found = classes(&heap);
    let of = |name: &[u8]| found.iter().find(|class| class.name == name).unwrap();
    assert_eq!(of(b"Shop\\Product").count, 50);
    assert_eq!(of(b"Shop\\Status").count, 2);
    let bag = of(b"Shop\\Bag");
    assert_eq!((bag.count, heap.path(bag.largest)), (1, b"<main>:3::$bag".to_vec()));
    assert!(bag.shallow_bytes > 0 && bag.retained_bytes > 2 * bag.shallow_bytes, "{bag:?}");
}

#[test]
fn a_list_linked_both_ways_is_one_cycle() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let found = cycles(&heap);
    let largest =
        found.iter().max_by_key(|cycle| cycle.classes.iter().map(|class| class.1).sum::<u64>()).unwrap();
    assert_eq!(largest.classes, [(b"Shop\\Product".to_vec(), 50)]);
    assert!(largest.entries > 1 && largest.retained_bytes >= largest.shallow_bytes);
}

#[test]
fn nodes_are_found_by_class_content_name_and_address() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let bag = one(&heap, &Needle::Class(b"shop\\bag".to_vec()));
    let view = heap.node(bag).unwrap();
    assert_eq!(
        (view.class.as_deref(), view.path.as_slice()),
        (Some(&b"Shop\\Bag"[..]), &b"<main>:3::$bag"[..])
    );
    assert_eq!(one(&heap, &Needle::Address(view.address.unwrap() + 8)), bag);
    let text = one(&heap, &Needle::Content(b"t17".to_vec()));
    assert_eq!(heap.node(text).unwrap().value.as_deref(), Some(&b"t17"[..]));
    let named = one(&heap, &Needle::Name(b"dyn7".to_vec()));
    assert_eq!(heap.path(named), b"<main>:3::$bag->dyn7");
    assert_eq!(heap.node(NodeId(u32::MAX)), None);
}

#[test]
fn paths_lead_from_a_root_to_the_node() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let deep = one(&heap, &Needle::Name(b"deep".to_vec()));
    let (way, shortest) = (heap.way(deep), heap.shortest_way(deep));
    assert!(shortest.len() <= way.len());
    for way in [way, shortest] {
        assert!(heap.references(None).any(|root| root.to == way[0].node && root.link == way[0].link));
        assert_eq!(way.last().map(|step| step.node), Some(deep));
        for pair in way.windows(2) {
            let is_step = |from| from == Some(pair[0].node);
            assert!(
                heap.referrers(pair[1].node).any(|found| is_step(found.from) && found.link == pair[1].link)
            );
        }
    }
}
