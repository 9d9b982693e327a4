use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use borehole_heap::{Edge, HeapSink, Location, LocationType, NodeId, NodeType, StringId, Value};
use hashbrown::HashMap;

use super::*;
use crate::heap::live::{self, Copied};

/// A heap held whole.
#[derive(Default)]
struct Collected {
    strings: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    nodes: Vec<NodeType>,
    edges: Vec<Edge>,
    locations: Vec<(NodeId, Location)>,
    attributes: Vec<(NodeId, StringId, String)>,
}

impl HeapSink for Collected {
    fn string(&mut self, string: &[u8]) -> StringId {
        if let Some(&number) = self.numbers.get(string) {
            return StringId(number);
        }
        let number = u32::try_from(self.strings.len()).unwrap();
        self.strings.push(string.to_vec());
        self.numbers.insert(string.to_vec(), number);
        StringId(number)
    }

    fn node(&mut self, node_type: NodeType) -> NodeId {
        self.nodes.push(node_type);
        NodeId(u32::try_from(self.nodes.len() - 1).unwrap())
    }

    fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    fn location(&mut self, node: NodeId, location: &Location) {
        self.locations.push((node, *location));
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: Value<'_>) {
        self.attributes.push((node, key, format!("{value:?}")));
    }

    fn summary(&mut self, _: &str, _: &str) {}
}

impl Collected {
    fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(&self.strings[string.0 as usize]).into_owned()
    }
}

/// What became of a program's heap.
struct Seen {
    heap: Collected,
    walked: Walked,
    blocks: Blocks,
}

fn see(copied: &Copied) -> Seen {
    let mut blocks = Blocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
    let mut heap = Collected::default();
    let walked = walk(&copied.dump, &copied.php, &copied.executor, &mut blocks, &mut heap);
    Seen { heap, walked, blocks }
}

/// Counts.
#[derive(Default)]
struct Counting {
    strings: u32,
    nodes: u32,
    edges: u64,
    locations: u64,
    bytes: u64,
    attributes: u64,
}

impl HeapSink for Counting {
    fn string(&mut self, _: &[u8]) -> StringId {
        self.strings += 1;
        StringId(self.strings)
    }

    fn node(&mut self, _: NodeType) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    fn edge(&mut self, _: Edge) {
        self.edges += 1;
    }

    fn location(&mut self, _: NodeId, location: &Location) {
        self.locations += 1;
        self.bytes += location.size;
    }

    fn attribute(&mut self, _: NodeId, _: StringId, _: Value<'_>) {
        self.attributes += 1;
    }

    fn summary(&mut self, _: &str, _: &str) {}
}

#[test]
fn look() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let program = std::env::var("PROGRAM").unwrap_or("mem/m1_objects".into());
    for (name, peer, root) in live::phps() {
        if !only.is_empty() && only != name {
            continue;
        }
        let Some(copied) = live::copy(&peer, &root, &program, &[], &[]) else {
            println!("{name}: not run");
            continue;
        };
        let seen = see(&copied);
        let heap = &seen.heap;
        let total: u64 = seen.blocks.sums().bytes();
        let reached: u64 =
            seen.blocks.iter().filter(|b| seen.walked.reached.contains(b.index)).map(|b| b.bytes).sum();
        println!(
            "{name}: {} nodes {} edges {} locations {} attributes, missing {} torn {} reached {reached} of {total} {:.2}%",
            heap.nodes.len(),
            heap.edges.len(),
            heap.locations.len(),
            heap.attributes.len(),
            seen.walked.missing,
            seen.walked.torn,
            reached as f64 * 100.0 / total as f64
        );
        if !only.is_empty() {
            let mut bins = BTreeMap::new();
            for block in seen.blocks.iter().filter(|b| !seen.walked.reached.contains(b.index)) {
                *bins.entry(block.bytes).or_insert(0) += 1;
                if std::env::var("BLOCKS").is_ok() {
                    println!(
                        "  {:x} {} {:x?}",
                        block.address,
                        block.bytes,
                        copied.dump.bytes(block.address, (block.bytes as usize).min(64)).map(|b| b
                            .chunks(8)
                            .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
                            .collect::<Vec<_>>())
                    );
                }
            }
            println!("unreached {bins:?}");
            let mut types: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for (_, location) in heap.locations.iter().filter(|(_, l)| l.region.is_some()) {
                let sum = types
                    .entry(LocationType::NAMES[usize::from(location.location_type.number())])
                    .or_default();
                sum.0 += 1;
                sum.1 += location.size;
            }
            println!("{types:#?}");
            let damaged = heap.attributes.iter().filter(|(_, key, _)| heap.text(*key) == "#damage");
            for (node, _, value) in damaged.take(20) {
                println!("damage {} {} {}", node.0, value, path(heap, *node));
            }
        }
    }
}

/// The links from a root to `node`.
fn path(heap: &Collected, node: NodeId) -> String {
    let parents: HashMap<NodeId, &Edge> =
        heap.edges.iter().filter(|e| e.is_tree).map(|e| (e.child, e)).collect();
    let mut links = Vec::new();
    let mut at = Some(node);
    while let Some(edge) = at.and_then(|node| parents.get(&node)) {
        links.push(heap.text(edge.link));
        at = edge.parent;
    }
    links.reverse();
    format!("{} ({})", links.join(" -> "), NodeType::NAMES[usize::from(heap.nodes[node.0 as usize].number())])
}
