//! What whole programs' heaps look like.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use borehole_heap::{Edge, HeapSink, Location, LocationType, NodeId, NodeType, Strength, StringId, Value};
use hashbrown::HashMap;

use crate::heap::blocks::Blocks;
use crate::heap::live::{self, Copied};
use crate::heap::walk::walk;

/// A heap held whole.
#[derive(Default)]
struct Collected {
    strings: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    nodes: Vec<NodeType>,
    edges: Vec<Edge>,
    /// The tree edge of each node.
    tree: HashMap<NodeId, usize>,
    locations: Vec<(NodeId, Location)>,
    attributes: Vec<(NodeId, StringId, String)>,
    summary: BTreeMap<String, String>,
    /// How often memory was not there, and contradicted itself.
    damage: (u64, u64),
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
        if edge.is_tree {
            assert_eq!(self.tree.insert(edge.child, self.edges.len()), None, "a second tree edge");
            assert!(edge.parent.is_none_or(|parent| parent < edge.child));
        }
        self.edges.push(edge);
    }

    fn location(&mut self, node: NodeId, location: &Location) {
        self.locations.push((node, *location));
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: Value<'_>) {
        self.attributes.push((node, key, format!("{value:?}")));
    }

    fn summary(&mut self, key: &str, value: &str) {
        assert_eq!(self.summary.insert(key.to_owned(), value.to_owned()), None, "{key}");
    }
}

impl Collected {
    fn of(copied: &Copied) -> Self {
        let mut blocks = Blocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
        let mut heap = Self::default();
        let walked = walk(&copied.dump, &copied.php, &copied.executor, &mut blocks, &mut heap);
        heap.damage = (walked.missing, walked.torn);
        assert!(!walked.is_stopped);
        heap
    }

    fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(&self.strings[string.0 as usize]).into_owned()
    }

    /// The links from a root to `node`.
    fn path(&self, node: NodeId) -> String {
        let mut links = Vec::new();
        let mut at = Some(node);
        while let Some(&edge) = at.and_then(|node| self.tree.get(&node)) {
            links.push(self.text(self.edges[edge].link));
            at = self.edges[edge].parent;
        }
        links.reverse();
        links.join(" -> ")
    }

    /// The root that `node` is under.
    fn root(&self, node: NodeId) -> String {
        self.path(node).split(" -> ").next().unwrap().to_owned()
    }

    fn number(&self, key: &str) -> u64 {
        self.summary.get(key).unwrap_or_else(|| panic!("{key}")).parse().unwrap()
    }

    fn share(&self) -> f64 {
        self.summary["heap_memory_analyzed_percentage"].parse().unwrap()
    }

    /// What is in the heap under each root, by type.
    fn report(&self) -> String {
        let mut text = String::new();
        let mut roots: BTreeMap<String, BTreeMap<&str, (u64, u64)>> = BTreeMap::new();
        for (node, location) in self.locations.iter().filter(|(_, location)| location.region.is_some()) {
            let name = LocationType::NAMES[usize::from(location.location_type.number())];
            let sum = roots.entry(self.root(*node)).or_default().entry(name).or_default();
            sum.0 += 1;
            sum.1 += location.size + u64::from(location.bin_overhead);
        }
        for (root, types) in &roots {
            let all: u64 = types.values().map(|sum| sum.1).sum();
            writeln!(text, "{root}: {all}").unwrap();
            for (name, (count, bytes)) in types {
                writeln!(text, "    {name} {count} {bytes}").unwrap();
            }
        }
        text
    }
}

#[test]
fn show() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let program = std::env::var("PROGRAM").unwrap_or_default();
    for (name, peer, root) in live::phps().into_iter().filter(|php| only.is_empty() || php.0 == only) {
        for program in live::PROGRAMS.into_iter().filter(|one| one.contains(&program)) {
            let Some(copied) = live::copy(&peer, &root, program, &[], &[]) else { continue };
            let heap = Collected::of(&copied);
            println!("== {name} {program} {:.3} % {}", heap.share(), heap.nodes.len());
            if !only.is_empty() {
                println!("{}{:#?} {:?}", heap.report(), heap.summary, heap.damage);
                for (node, key, value) in &heap.attributes {
                    if heap.text(*key) == "#damage" {
                        println!("damage {value} {}", heap.path(*node));
                    }
                }
                for (node, location) in &heap.locations {
                    let root = heap.root(*node);
                    let kind = LocationType::NAMES[usize::from(location.location_type.number())];
                    let is_raw = location.location_type == LocationType::INTERNAL_DATA;
                    if ["modules", "unattributed", "garbage", "objects_store"].contains(&root.as_str())
                        || is_raw
                    {
                        let words = copied
                            .dump
                            .bytes(location.address, usize::try_from(location.size.min(64)).unwrap());
                        let words: Vec<_> = words
                            .unwrap_or_default()
                            .chunks_exact(8)
                            .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                            .collect();
                        println!(
                            "{} {kind} {:x} {} {words:x?}",
                            heap.path(*node),
                            location.address,
                            location.size
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rest() {
    let program = std::env::var("PROGRAM").unwrap_or_default();
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, peer, root) in live::phps().into_iter().filter(|php| only.is_empty() || php.0 == only) {
        for program in live::PROGRAMS.into_iter().filter(|one| one.contains(&program)) {
            let Some(copied) = live::copy(&peer, &root, program, &[], &[]) else { continue };
            let heap = Collected::of(&copied);
            let of = |wanted: &str| {
                let mut sum = 0;
                for (node, location) in
                    heap.locations.iter().filter(|(_, location)| location.region.is_some())
                {
                    if heap.path(*node).starts_with(wanted) {
                        sum += location.size + u64::from(location.bin_overhead);
                    }
                }
                sum
            };
            println!(
                "== {name} {program} {:.3} % unattributed {} modules {} stack {} garbage {} store {}",
                heap.share(),
                of("unattributed"),
                of("modules"),
                of("modules -> stack"),
                of("garbage"),
                of("objects_store")
            );
        }
    }
}
