//! Sampled allocations of this program.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hint::black_box;

use borehole_recorder::trc::{ReadEvent, Reader, TypedEvents};
use borehole_recorder::{AllocEvent, FreeEvent, Recorder, SampledAllocator, SymbolTableEntry};

use super::scratch::Scratch;

#[global_allocator]
static ALLOCATOR: SampledAllocator = SampledAllocator::new();

#[derive(ReadEvent, Debug)]
enum MemoryEvent<'a> {
    Alloc(AllocEvent<'a>),
    Free(FreeEvent),
    Symbol(SymbolTableEntry<'a>),
}

/// A size that nothing else in this program has.
const BLOCK_BYTES: usize = 100_003;

#[inline(never)]
fn function_that_allocates() -> Vec<u8> {
    black_box(Vec::with_capacity(BLOCK_BYTES))
}

#[test]
fn samples_have_stacks_with_names_and_are_freed() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    recorder.handle().sample_allocations(10_000).unwrap();
    assert!(recorder.handle().sample_allocations(10_000).is_err(), "one recording samples");
    // Nearly all of them are sampled: the gap is 10,000 in the mean.
    for _ in 0..10 {
        let blocks: Vec<_> = (0..20).map(|_| function_that_allocates()).collect();
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(blocks);
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    recorder.finish().unwrap();
    let (mut stacks, mut frees, mut names) = (Vec::new(), 0, BTreeMap::<u64, Vec<String>>::new());
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
        let mut typed = TypedEvents::default();
        while let Some(event) = reader.next_event().unwrap() {
            match typed.read(&event).unwrap() {
                Some(MemoryEvent::Alloc(alloc)) if alloc.size == BLOCK_BYTES as u64 => {
                    assert!(alloc.addr > 0 && alloc.tid > 0);
                    stacks.push(alloc.callchain.addresses().collect::<Vec<_>>());
                }
                Some(MemoryEvent::Free(free)) if free.size == BLOCK_BYTES as u64 => {
                    assert!(free.alloc_timestamp_ns < free.timestamp_ns);
                    frees += 1;
                }
                Some(MemoryEvent::Symbol(symbol)) => {
                    // Functions that were inlined at the address have symbols of their own.
                    names.entry(symbol.addr).or_default().push(symbol.symbol_name.to_owned());
                }
                _ => {}
            }
        }
    }
    assert!(stacks.len() > 150 && stacks.len() <= 200 && frees > 100, "{} {frees}", stacks.len());
    for stack in &stacks {
        let names: Vec<_> = stack.iter().filter_map(|address| names.get(address)).flatten().collect();
        let has = |function: &str| names.iter().any(|name| name.contains(function));
        assert!(has("function_that_allocates") && !has("visit_stack"), "{names:#?}");
    }
}
