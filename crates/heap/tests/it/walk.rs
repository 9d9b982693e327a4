//! The queries of explorers and pages.

use borehole_heap::retention::Follow;
use borehole_heap::views::{
    BlockLimits, DominatorBlock, DominatorBlocks, Heap, HeapPage, Instances, Needle, NodeKind, NodeSearch,
    SearchTarget, classes, find, largest,
};
use borehole_heap::{
    Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation, NodeId, NodeType,
    Region, Strength, json,
};
use proptest::prelude::*;

use crate::graphs::{graph, small};
use crate::json::reli;

fn objects() -> HeapGraph {
    json::read(&reli("m1_objects")).unwrap()
}

fn bag(heap: &Heap<'_>) -> NodeId {
    find(heap, &Needle::Class(b"Shop\\Bag".to_vec()), 1).0[0]
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn fields_are_those_that_the_program_has() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let fields = heap.fields(Some(bag(&heap)));
    let all: Vec<_> = (0..fields.len()).map(|place| heap.field(&fields, place).unwrap()).collect();
    let named = |name: &str| all.iter().find(|field| field.name == name.as_bytes());
    let dynamic = all.iter().find(|field| text(&field.name).contains("dyn")).or(named(".dynamic_properties"));
    assert!(dynamic.is_some(), "{all:?}");
    assert!(all.iter().all(|field| !field.name.is_empty()));
    assert_eq!(heap.field(&fields, fields.len()), None);
}

#[test]
fn referrers_have_the_node_as_a_field() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let mut checked = 0;
    for node in Instances::of(&heap).class(b"Shop\\Product") {
        for place in 0..heap.holder_count(*node) {
            let holder = heap.holder(*node, place).unwrap();
            let fields = heap.fields(holder.node);
            let mut all = (0..fields.len()).filter_map(|place| heap.field(&fields, place));
            let is_it =
                |field: &borehole_heap::views::NodeField| field.node == *node && field.name == holder.by;
            checked += usize::from(all.any(|field| is_it(&field)));
        }
    }
    assert!(checked >= 50, "{checked}");
}

#[test]
fn instances_are_all_objects_of_a_class_and_the_first_retains_most() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let instances = Instances::of(&heap);
    for class in classes(&heap) {
        let nodes = instances.class(&class.name);
        assert_eq!(nodes.len() as u64, class.count);
        let retained: Vec<u64> = nodes.iter().map(|&node| heap.retention().retained(node)).collect();
        assert!(retained.is_sorted_by(|left, right| left >= right));
        assert_eq!(retained[0], heap.retention().retained(class.largest));
    }
    assert!(instances.class(b"Shop\\Nothing").is_empty());
    let top = largest(&heap, 5);
    assert_eq!(top.len(), 5);
    assert!(top.is_sorted_by_key(|&node| std::cmp::Reverse(heap.retention().retained(node))));
}

fn search(heap: &Heap<'_>, sought: SearchTarget, work: usize) -> Vec<NodeId> {
    let mut search = NodeSearch::new(sought);
    while search.advance(heap, work) {}
    assert_eq!(search.count(), search.found().len() as u64);
    search.found().to_vec()
}

#[test]
fn searches_find_classes_contents_names_paths_and_addresses_in_steps_of_any_size() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let words = |text: &str| SearchTarget::Text(text.as_bytes().to_vec());
    for (sought, class) in [("shop\\bag", &b"Shop\\Bag"[..]), ("$bag", b"Shop\\Bag"), ("bag", b"Shop\\Bag")] {
        let found = search(&heap, words(sought), 7);
        assert!(found.contains(&bag(&heap)), "{sought}");
        assert_eq!(found, search(&heap, words(sought), usize::MAX), "{}", text(class));
    }
    let found = search(&heap, words("<main>:3::$bag->dyn7"), 100);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(heap.near_path(found[0]), b"<main>:3::$bag->dyn7");
    let t17 = search(&heap, words("T17"), 100);
    assert!(
        t17.iter().any(|&node| heap.brief(node).kind == NodeKind::String && heap.brief(node).text == b"t17")
    );
    let address = heap.node(bag(&heap)).unwrap().address.unwrap();
    assert_eq!(search(&heap, SearchTarget::Address(address + 8), 100), [bag(&heap)]);
    assert!(search(&heap, words(""), 100).is_empty());
}

#[test]
fn a_linked_list_is_one_block() {
    let graph = objects();
    let heap = Heap::new(&graph, Follow::default());
    let page = HeapPage::new(&heap, BlockLimits::default());
    assert_eq!(page.total_bytes, heap.retention().total());
    assert!(page.classes.iter().any(|class| class.name == b"Shop\\Bag"));
    assert!(page.blocks.names.iter().any(|name| name == b"Shop\\Bag"), "{:?}", page.blocks.names);
}

/// Properties of the blocks of every heap.
fn check(blocks: &DominatorBlocks, heap: &Heap<'_>, limits: BlockLimits) {
    let mut below = vec![0_u64; blocks.blocks.len()];
    let mut whole = 0_u64;
    for (place, block) in blocks.blocks.iter().enumerate() {
        assert!(block.count > 0 && block.name.is_none_or(|name| name < blocks.names.len()));
        match block.above {
            Some(above) => {
                assert!(above < place);
                below[above] = below[above].saturating_add(block.retained_bytes);
            }
            None => whole = whole.saturating_add(block.retained_bytes),
        }
    }
    for (block, below) in blocks.blocks.iter().zip(below) {
        assert!(below <= block.retained_bytes, "{block:?}: {below}");
    }
    assert_eq!(whole, heap.retention().total());
    assert!(blocks.blocks.len() <= limits.blocks + limits.beside + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_graph_is_walked(graph in graph(), blocks in 1..50_usize, beside in 1..5_usize) {
        let heap = Heap::new(&graph, Follow::default());
        for limits in [BlockLimits::default(), BlockLimits { blocks, beside, depth: 3, parts: 10 }] {
            check(&DominatorBlocks::of(&heap, limits), &heap, limits);
        }
        for number in 0..u32::try_from(graph.counts().nodes).unwrap() {
            let node = NodeId(number);
            let fields = heap.fields(Some(node));
            prop_assert!((0..fields.len()).all(|place| heap.field(&fields, place).is_some()));
            prop_assert!((0..heap.holder_count(node)).all(|place| heap.holder(node, place).is_some()));
            let (all, count) = heap.held(Some(node), usize::MAX);
            prop_assert_eq!(all.len(), count);
            if count <= 8 {
                let (some, same) = heap.held(Some(node), 2);
                prop_assert_eq!((&some[..], same), (&all[..count.min(2)], count));
            }
            prop_assert!(all.iter().all(|held| held.retained_bytes <= heap.retention().retained(node)));
            let _ = (heap.brief(node), heap.name(node));
        }
    }
}

#[test]
fn missing_nodes_have_no_rows() {
    let graph = small();
    let heap = Heap::new(&graph, Follow::default());
    let none = NodeId(u32::MAX);
    assert!(heap.fields(Some(none)).is_empty());
    assert_eq!((heap.holder_count(none), heap.holder(none, 0)), (0, None));
    assert_eq!(heap.held(Some(none), 10), (Vec::new(), 0));
    assert_eq!(heap.brief(none).retained_bytes, 0);
    assert_eq!(heap.class(none), None);
}

/// Nodes of 16 bytes, each held by the previous one, or all by the first.
fn many(count: u32, is_chain: bool) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let (link, class) = (builder.string(b"next"), builder.string(b"Link"));
    for number in 0..count {
        let node = builder.node(NodeType::OBJECT);
        let above = if is_chain { number.checked_sub(1) } else { (number > 0).then_some(0) };
        let edge =
            Edge { parent: above.map(NodeId), child: node, link, is_tree: true, strength: Strength::Strong };
        builder.edge(edge);
        let address = 16 * u64::from(number + 1);
        let location = MemoryLocation {
            class: Some(class),
            region: Some(Region::HEAP),
            ..MemoryLocation::new(LocationType::OBJECT, address, 16)
        };
        builder.location(node, &location);
    }
    builder.finish().unwrap()
}

#[test]
fn extreme_graphs_have_few_blocks() {
    for is_chain in [true, false] {
        let graph = many(300_000, is_chain);
        let heap = Heap::new(&graph, Follow::default());
        let page = HeapPage::new(&heap, BlockLimits::default());
        let whole = DominatorBlock { above: None, name: Some(0), count: 300_000, retained_bytes: 4_800_000 };
        assert_eq!(page.blocks.blocks, [whole], "{is_chain}");
        assert!(heap.near_path(NodeId(299_999)).len() < 1_000);
    }
    let nothing = HeapPage::new(&Heap::new(&many(0, true), Follow::default()), BlockLimits::default());
    assert_eq!((nothing.total_bytes, nothing.blocks.blocks.len(), nothing.classes.len()), (0, 0, 0));
}
