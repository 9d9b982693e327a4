//! Tests of long lists, cycles, and damaged memory.

use borehole_heap::{AttributeValue, Edge, HeapSink, MemoryLocation, NodeId, NodeType, StringId};
use borehole_process::{Dump, ForeignProcess as _};
use borehole_testkit::allocations::allocations;

use super::graph::{Graph, classes, see, walked};
use crate::attach::{AttachOptions, Php};
use crate::executor::Executor;
use crate::heap::allocator;
use crate::heap::blocks::HeapBlocks;
use crate::heap::layout::HeapLayout;
use crate::heap::live;
use crate::heap::view::DumpView;
use crate::heap::walk::{HeapWalkOptions, Walked, walk};
use crate::layout::fixed;
use crate::remote::moved;

/// The maximum memory in use at a time, for each byte of the walked memory.
const MOST_TIMES: u64 = 6;

/// Counts the nodes and keeps nothing.
#[derive(Default)]
struct Counting {
    strings: u32,
    nodes: u32,
    /// Edges and attributes.
    others: u64,
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
        self.others += 1;
    }

    fn location(&mut self, _: NodeId, _: &MemoryLocation) {}

    fn attribute(&mut self, _: NodeId, _: StringId, _: AttributeValue<'_>) {
        self.others += 1;
    }

    fn summary(&mut self, _: &str, _: &str) {}
}

/// The walk follows a list without recursion.
#[test]
fn lists_and_nests_a_million_deep_and_cycles_end() {
    let (_, peer, root) = live::phps().remove(0);
    let count = 300_000;
    let copied =
        live::copy(&peer, &root, "mem/deep", &["-d", "memory_limit=2G"], &[&count.to_string()]).unwrap();
    let seen = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || see(&copied))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!((seen.walked.missing, seen.walked.torn, seen.walked.is_stopped), (0, 0, false));
    assert_eq!(classes(&seen.heap)["Link"], (count + 1, (count + 1) * 56));
    let arrays = seen.heap.nodes.iter().filter(|kind| **kind == NodeType::ARRAY_HEADER).count();
    assert!(arrays as u64 > count, "{arrays}");
}

/// Random numbers with a fixed seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

/// A recording of `corpus/php/heap`.
struct Recorded {
    dump: Dump,
    php: Php,
    executor: Executor,
}

impl Recorded {
    fn of(version: &str) -> Self {
        let file =
            std::fs::File::open(borehole_testkit::corpus(&format!("php/heap/{version}.rdump"))).unwrap();
        let dump = Dump::read(std::io::BufReader::new(file)).unwrap();
        let php = Php::attach(&dump, &AttachOptions::default()).unwrap();
        let executor = php.executors(&dump).unwrap()[0];
        Self { dump, php, executor }
    }

    /// A copy of its memory, to be changed.
    fn ranges(&self) -> Vec<(u64, Vec<u8>)> {
        self.dump.ranges().map(|(address, bytes)| (address, bytes.to_vec())).collect()
    }

    /// A dump with `ranges` instead of its own memory.
    fn with(&self, ranges: Vec<(u64, Vec<u8>)>) -> Dump {
        let mut dump = Dump::default();
        dump.set_mappings(self.dump.mappings().clone());
        for (address, bytes) in ranges {
            dump.insert(address, bytes);
        }
        dump
    }

    /// A copy of the memory with `words` words changed.
    fn damaged(&self, noise: &mut Noise, words: usize) -> Dump {
        let mut ranges = self.ranges();
        let places: Vec<(u64, usize)> =
            ranges.iter().map(|(address, bytes)| (*address, bytes.len())).collect();
        let stack =
            DumpView::new(&self.dump).pointer(self.executor.globals, self.php.layout.executor_stack_top);
        let heap = places.iter().position(|&(start, length)| (start..start + length as u64).contains(&stack));
        for _ in 0..words {
            // Half of the damage is where values are.
            let range =
                if noise.next().is_multiple_of(2) { heap.unwrap() } else { noise.below(ranges.len()) };
            let bytes = &mut ranges[range].1;
            let at = noise.below(bytes.len() / 8) * 8;
            let value = match noise.next() % 4 {
                0 => noise.next(),
                // Valid addresses lead further into nonsense than random ones.
                1 | 2 => {
                    let (address, length) = places[if noise.next().is_multiple_of(2) {
                        heap.unwrap()
                    } else {
                        noise.below(places.len())
                    }];
                    address + noise.below(length / 8) as u64 * 8
                }
                _ => u64::MAX,
            };
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        self.with(ranges)
    }

    /// Walks `dump`, a changed copy, and checks that the memory in use is a small multiple of the dump's.
    fn walk_within(&self, what: &str, dump: &Dump) -> (Counting, Walked) {
        let mut sink = Counting::default();
        let (walked, taken) = allocations(|| {
            let mut blocks =
                HeapBlocks::of(dump, &self.php, &self.executor).unwrap_or_else(|_| HeapBlocks::default());
            walk(dump, &self.php, &self.executor, &mut blocks, &HeapWalkOptions::default(), &mut sink)
        });
        let held = dump.held_bytes();
        assert!(taken.peak_bytes <= MOST_TIMES * held, "{what}: {taken:?} for {held} bytes");
        assert!(u64::from(sink.nodes) <= held / 4, "{what}: {} nodes", sink.nodes);
        assert!(sink.others <= 2 * held, "{what}: {} edges and attributes", sink.others);
        (sink, walked)
    }
}

#[test]
fn calls_that_lead_back_to_themselves_are_counted_once() {
    let Recorded { dump, php, executor } = Recorded::of("8.4.24");
    let view = DumpView::new(&dump);
    let innermost = view.pointer(executor.globals, php.layout.executor_current);
    let before = |&frame: &u64| Some(view.pointer(frame, php.layout.frame_previous)).filter(|&at| at != 0);
    let frames: Vec<u64> = std::iter::successors(Some(innermost), before).collect();
    // The innermost frame becomes the caller of the outermost.
    let place = moved(*frames.last().unwrap(), php.layout.frame_previous);
    let mut circle = Dump::default();
    for (address, bytes) in dump.ranges() {
        let mut bytes = bytes.to_vec();
        if (address..address + bytes.len() as u64).contains(&place) {
            let at = usize::try_from(place - address).unwrap();
            bytes[at..at + 8].copy_from_slice(&innermost.to_le_bytes());
        }
        circle.insert(address, bytes);
    }
    let seen = walked(&circle, &php, &executor);
    let graph = Graph::new(&seen.heap);
    let calls = graph.at(&["call_frames"]);
    assert_eq!((graph.count(calls), graph.links(calls).len()), (frames.len(), frames.len()));
}

/// The seed of each trial follows from its number, so a failure names it; the memory is that of the corpus.
#[test]
fn damaged_memory_is_walked_to_an_end() {
    for version in ["7.0.4-7ubuntu2", "8.2.36", "8.4.24"] {
        let recorded = Recorded::of(version);
        let mut torn = 0;
        for trial in 0..60 {
            let seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(trial + 1);
            let dump = recorded.damaged(&mut Noise(seed), 1 << (trial % 14));
            let walked = recorded.walk_within(&format!("{version}, seed {seed:#x}"), &dump).1;
            torn += walked.torn + walked.missing;
        }
        assert!(torn > 1000, "{version}: {torn}");
    }
}

/// An address that is free in all recordings.
const FREE: u64 = 0x1234_0000_0000;

/// Writes `words` at `address`.
fn put(ranges: &mut [(u64, Vec<u8>)], address: u64, words: &[u64]) {
    let is_there =
        |(start, bytes): &&mut (u64, Vec<u8>)| (*start..*start + bytes.len() as u64).contains(&address);
    let (start, bytes) = ranges.iter_mut().find(is_there).unwrap();
    let at = usize::try_from(address - *start).unwrap();
    for (word, place) in words.iter().zip(bytes[at..].chunks_exact_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

impl Recorded {
    /// A dump whose first global variable is the constant expression `parts`. The root comes first, at [`FREE`] + 16.
    fn with_expression(&self, parts: &[u64]) -> Dump {
        let view = DumpView::new(&self.dump);
        let layout = HeapLayout::of(self.php.identity.release);
        let globals = moved(self.executor.globals, fixed::EXECUTOR_VARIABLES);
        let bucket = view.pointer(globals, fixed::TABLE_BUCKETS);
        let mut ranges = self.ranges();
        let is_apart = layout.header_kind == 0xff;
        // Before 7.3 the address of the root follows the header; since then, the root itself.
        let address = if is_apart { FREE } else { FREE + 8 };
        put(&mut ranges, bucket, &[address, layout.kind_expression.into()]);
        let words = [&[1 | 0x11 << 32, FREE + 16][..], parts].concat();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !is_apart {
            bytes[8..16].copy_from_slice(&(1_u64 | 0x11 << 32).to_le_bytes());
        }
        ranges.push((FREE, bytes));
        self.with(ranges)
    }
}

/// The kind of a list; its addresses follow.
const LIST: u64 = 1 << 7;
/// The kind of a value.
const VALUE: u64 = 64;

#[test]
fn parts_of_an_expression_that_have_each_other_as_children_are_met_once() {
    for version in ["7.0.4-7ubuntu2", "8.4.24"] {
        let recorded = Recorded::of(version);
        let untouched = recorded.walk_within(version, &recorded.with(recorded.ranges()));
        let count = 512;
        let part = |number: u64| FREE + 16 + number * (16 + count * 8);
        let list = |children: Vec<u64>| [vec![LIST, count], children].concat();
        let all: Vec<u64> = (0..count).map(part).collect();
        let same = |_| part(count);
        let mut of_all: Vec<u64> = (0..count).flat_map(|_| list(all.clone())).collect();
        of_all.extend([VALUE, 7, 4]);
        let mut of_one: Vec<u64> = list((1..=count).map(part).collect());
        of_one.extend((1..count).flat_map(|_| list((0..count).map(same).collect())));
        of_one.extend([VALUE, 7, 4]);
        for (what, parts, values) in [("children of all", of_all, 0), ("one value", of_one, 1)] {
            let dump = recorded.with_expression(&parts);
            let (sink, walked) = recorded.walk_within(&format!("{version}, {what}"), &dump);
            assert!(walked.torn > untouched.1.torn, "{version}, {what}: {walked:?}");
            assert!(!walked.is_stopped, "{version}, {what}");
            // The variable had another value before, which nothing else leads to.
            assert!(sink.nodes + 100 > untouched.0.nodes + values, "{version}, {what}: {}", sink.nodes);
        }
    }
}

#[test]
fn values_in_an_expression_are_in_order() {
    for version in ["7.0.4-7ubuntu2", "8.4.24"] {
        let recorded = Recorded::of(version);
        let at = |word: u64| FREE + 16 + word * 8;
        let value = |number| [VALUE, number, 4];
        // A list of a value, of an operator with two, and of a value; the kind of an operator contains its number of children.
        let mut parts = vec![LIST, 3, at(5), at(8), at(11)];
        parts.extend(value(10));
        parts.extend([2 << 8, at(14), at(17)]);
        parts.extend(value(40));
        parts.extend([value(20), value(30)].as_flattened());
        let dump = recorded.with_expression(&parts);
        let seen = walked(&dump, &recorded.php, &recorded.executor);
        let expression = seen.heap.nodes.iter().position(|kind| *kind == NodeType::CONSTANT_EXPRESSION);
        let expression = NodeId(u32::try_from(expression.unwrap()).unwrap());
        let graph = Graph::new(&seen.heap);
        let values: Vec<_> =
            ["0", "1", "2", "3"].map(|name| graph.scalar(graph.child(expression, name)).to_owned()).into();
        assert_eq!(values, ["10", "20", "30", "40"], "{version}");
        assert_eq!(graph.links(expression).len(), 4, "{version}");
    }
}

#[test]
fn chunks_of_which_only_the_first_page_is_there_take_no_memory_for_their_blocks() {
    let recorded = Recorded::of("8.4.24");
    let blocks = HeapBlocks::of(&recorded.dump, &recorded.php, &recorded.executor).unwrap();
    let (main, fields) = (blocks.allocator().unwrap().chunks[0], blocks.allocator().unwrap().layout);
    let mut page = recorded.dump.bytes(main, 4096).unwrap().to_vec();
    // Blocks of 8 bytes on all pages except that of the header.
    page[fields.free_map..fields.map].fill(0xff);
    for number in 1..allocator::PAGES {
        page[fields.map + number * 4..][..4].copy_from_slice(&0x8000_0000_u32.to_le_bytes());
    }
    let mut ranges = recorded.ranges();
    let chunks: Vec<u64> = (0..8).map(|number| FREE + number * allocator::CHUNK_BYTES).collect();
    put(&mut ranges, main + 8, &chunks[..1]);
    for (number, &chunk) in chunks.iter().enumerate() {
        let next = chunks.get(number + 1).copied().unwrap_or(main);
        page[8..16].copy_from_slice(&next.to_le_bytes());
        ranges.push((chunk, page.clone()));
    }
    let dump = recorded.with(ranges);
    let found = HeapBlocks::of(&dump, &recorded.php, &recorded.executor).unwrap();
    assert!(found.sums.blocks > 2_000_000, "{:?}", found.sums);
    let walked = recorded.walk_within("chunks without memory", &dump).1;
    assert!(walked.is_stopped, "they are more than can be listed");
}
