//! All that the walk tells of recorded heaps, counted by kind: what no fact of a program covers must not change unseen either.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use borehole_heap::{LocationType, NodeType, Region};
use borehole_testkit::assert_golden;

use super::facts::recordings;
use super::graph::walked;
use crate::attach::{AttachOptions, Php};
use crate::heap::collected::Collected;

/// A mark of texts in their order: FNV-1a.
struct Mark(u64);

impl Mark {
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Default for Mark {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

/// How many things there are of one kind, the sum of their sizes, and a mark of all that is told of them.
#[derive(Default)]
struct Shape {
    count: u64,
    bytes: u64,
    mark: Mark,
}

impl Shape {
    fn add(&mut self, bytes: u64, text: &str) {
        self.count += 1;
        self.bytes += bytes;
        self.mark.add(text);
    }
}

fn name_of(names: &[&'static str], number: u16) -> &'static str {
    names[usize::from(number)]
}

fn shapes(heap: &Collected) -> BTreeMap<String, Shape> {
    let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
    let mut add = |kind: String, bytes, text: &str| shapes.entry(kind).or_default().add(bytes, text);
    for edge in &heap.edges {
        let kind = name_of(NodeType::NAMES, heap.nodes[edge.child.0 as usize].number());
        let facts = (edge.parent, edge.child, heap.text(edge.link), edge.is_tree, edge.strength);
        add(format!("edge to {kind}"), 0, &format!("{facts:?}"));
    }
    for (node, at) in &heap.locations {
        let kind = name_of(LocationType::NAMES, at.location_type.number());
        let region = at.region.map_or("elsewhere", |region| name_of(Region::NAMES, region.number()));
        let texts = [at.class, at.string].map(|text| text.map(|text| heap.text(text)));
        let facts = (node, at.address, at.size, at.refcount, at.type_info, at.bin_overhead, texts);
        add(format!("{kind} in {region}"), at.size + u64::from(at.bin_overhead), &format!("{facts:?}"));
    }
    for (node, key, text) in &heap.attributes {
        add(format!("attribute {}", heap.text(*key)), 0, &format!("{node:?} {text}"));
    }
    shapes
}

#[test]
fn recorded_heaps_are_walked_as_before() {
    for (name, _, dump) in recordings() {
        let php = Php::attach(&dump, &AttachOptions::default()).unwrap();
        let executor = php.executors(&dump).unwrap()[0];
        let seen = walked(&dump, &php, &executor);
        let mut text = String::new();
        for (key, value) in seen.heap.summary.iter().filter(|(key, _)| *key != "analyzer") {
            let _ = writeln!(text, "{key}: {value}");
        }
        let _ = writeln!(text, "missing, torn: {:?}\n", (seen.walked.missing, seen.walked.torn));
        for (kind, Shape { count, bytes, mark }) in shapes(&seen.heap) {
            let _ = writeln!(text, "{kind}: {count}, {bytes} bytes, {:016x}", mark.0);
        }
        assert_golden(format!("tests/golden/heap/{name}.txt"), text.as_bytes());
    }
}
