//! Long lists, cycles, and memory that makes no sense.

use borehole_heap::{Edge, HeapSink, Location, NodeId, NodeType, StringId, Value};
use borehole_process::Dump;

use super::graph::{Graph, classes, see, walked};
use crate::attach::{AttachOptions, Php};
use crate::heap::blocks::Blocks;
use crate::heap::live::{self, Copied};
use crate::heap::walk::{View, WalkOptions, walk};
use crate::remote::moved;

/// Counts the nodes and keeps nothing.
#[derive(Default)]
struct Counting {
    strings: u32,
    nodes: u32,
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

    fn edge(&mut self, _: Edge) {}

    fn location(&mut self, _: NodeId, _: &Location) {}

    fn attribute(&mut self, _: NodeId, _: StringId, _: Value<'_>) {}

    fn summary(&mut self, _: &str, _: &str) {}
}

/// The walk of a list goes along it, and not down into it.
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

/// Random numbers, the same ones each time.
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

/// The memory of `copied` with `words` words of it changed.
fn damaged(copied: &Copied, noise: &mut Noise, words: usize) -> Dump {
    let mut ranges: Vec<(u64, Vec<u8>)> =
        copied.dump.ranges().map(|(address, bytes)| (address, bytes.to_vec())).collect();
    let places: Vec<(u64, usize)> = ranges.iter().map(|(address, bytes)| (*address, bytes.len())).collect();
    let heap = copied.dump.ranges().position(|(address, bytes)| {
        let stack =
            View::new(&copied.dump).pointer(copied.executor.globals, copied.php.layout.executor_stack_top);
        (address..address + bytes.len() as u64).contains(&stack)
    });
    for _ in 0..words {
        // Half of the damage is where values are.
        let range = if noise.next().is_multiple_of(2) { heap.unwrap() } else { noise.below(ranges.len()) };
        let bytes = &mut ranges[range].1;
        let at = noise.below(bytes.len() / 8) * 8;
        let value = match noise.next() % 4 {
            0 => noise.next(),
            // Addresses of something lead further into nonsense than wild ones.
            1 | 2 => {
                let (address, length) = places
                    [if noise.next().is_multiple_of(2) { heap.unwrap() } else { noise.below(places.len()) }];
                address + noise.below(length / 8) as u64 * 8
            }
            _ => u64::MAX,
        };
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let mut dump = Dump::default();
    for (address, bytes) in ranges {
        dump.insert(address, bytes);
    }
    dump
}

#[test]
fn calls_that_lead_back_to_themselves_are_counted_once() {
    let file = std::fs::File::open(borehole_testkit::corpus("php/heap/8.4.24.rdump")).unwrap();
    let dump = Dump::read(std::io::BufReader::new(file)).unwrap();
    let php = Php::attach(&dump, &AttachOptions::default()).unwrap();
    let executor = php.executors(&dump).unwrap()[0];
    let view = View::new(&dump);
    let innermost = view.pointer(executor.globals, php.layout.executor_current);
    let before = |&frame: &u64| Some(view.pointer(frame, php.layout.frame_previous)).filter(|&at| at != 0);
    let frames: Vec<u64> = std::iter::successors(Some(innermost), before).collect();
    // The outermost was called by the innermost.
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

#[test]
fn damaged_memory_is_walked_to_an_end() {
    for (name, peer, root) in
        live::phps().into_iter().filter(|(name, ..)| ["php", "php-7.0", "php-8.4"].contains(&name.as_str()))
    {
        let copied = live::copy(&peer, &root, "mem/facts", &[], &[]).unwrap();
        let (mut noise, mut torn) = (Noise(0x9e37_79b9_7f4a_7c15), 0);
        for trial in 0..60 {
            let dump = damaged(&copied, &mut noise, 1 << (trial % 14));
            let mut blocks =
                Blocks::of(&dump, &copied.php, &copied.executor).unwrap_or_else(|_| Blocks::none());
            let mut sink = Counting::default();
            let walked =
                walk(&dump, &copied.php, &copied.executor, &mut blocks, &WalkOptions::default(), &mut sink);
            assert!(u64::from(sink.nodes) <= dump.held_bytes() / 4, "{name} {trial}: {}", sink.nodes);
            torn += walked.torn + walked.missing;
        }
        assert!(torn > 1000, "{name}: {torn}");
    }
}
