//! The targets that read what other people's processes and programs leave: ELF files, core files, lists of mappings, databases.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use borehole_capture::heap::of_core;
use borehole_heap::{Graph as _, GraphBuilder, info};
use borehole_php::{AnalyzeOptions, AttachOptions, analyze};
use borehole_process::{CoreFile, ElfSymbols, ForeignMemory as _, ForeignProcess, Mappings, MemoryMapping};
use borehole_sql::Database;
use borehole_symbols::{AddressNames, CodeAddress, Module, SymbolSettings, Symbolizer};

use crate::Scratch;

/// Reads the bytes as an ELF file that a process has mapped at several offsets: its symbols have names, and no more memory than
/// the limit for them allows.
pub(super) fn elf(bytes: &[u8]) {
    let scratch = Scratch::new();
    let file = File::open(scratch.write("mapped.so", bytes)).expect("it was written");
    for file_offset in [0, 0x1000, 0x2000] {
        let mapping = MemoryMapping { file_offset, ..mapping(0x7f00_0000_0000) };
        let Ok(symbols) = ElfSymbols::of_file(&file, &mapping) else { continue };
        for (name, symbol) in symbols.iter() {
            assert!(!name.is_empty() && !name.contains(&0), "{name:?}");
            let found = std::str::from_utf8(name).ok().map(|name| symbols.find(name));
            assert!(found.is_none_or(|found| found == Some(symbol)));
        }
        let _ = symbols.thread_local_block().map(|block| block.below_thread_pointer());
    }
}

fn mapping(start: u64) -> MemoryMapping {
    MemoryMapping {
        start,
        end: start + 0x1000,
        file_offset: 0,
        readable: true,
        writable: false,
        executable: false,
        shared: false,
        path: b"/lib/mapped.so".to_vec(),
        deleted: false,
    }
}

/// Reads the bytes as a core file: it holds no more memory than the file has, whatever its headers say, and whatever PHP may be in
/// it is analyzed to an end. The files that it names are looked for in an empty folder.
pub(super) fn core(bytes: &[u8]) {
    let scratch = Scratch::new();
    let path = scratch.write("core", bytes);
    let root = scratch.path("root");
    std::fs::create_dir(&root).expect("the folder is ours");
    let Ok(core) = CoreFile::open(&path, &root) else { return };
    let held: usize = core.spans(true).iter().map(|span| span.length).sum();
    assert!(held <= bytes.len(), "{held} bytes of memory in {} bytes", bytes.len());
    let _ = core.missing_bytes();
    for mapping in core.mappings() {
        let mut word = [0; 8];
        let _ = core.read(mapping.start, &mut word);
        let _ = core.symbols(mapping);
    }
    for thread in core.threads().expect("they were read") {
        let _ = core.thread_pointer(thread);
    }
    let Ok(captured) = of_core(&core, &AttachOptions::default()) else { return };
    let mut builder = GraphBuilder::new();
    if analyze(&captured.dump, &AnalyzeOptions::default(), &mut builder).is_ok() {
        let _ = info(&builder.finish().expect("a walk makes a graph"));
    }
}

/// Reads the bytes as the list of a process's mappings: they are in order, and each that is found at an address contains it.
pub(super) fn maps(bytes: &[u8]) {
    let Ok(mappings) = Mappings::parse(bytes) else { return };
    assert!(mappings.iter().is_sorted_by_key(|mapping| mapping.start));
    for mapping in &mappings {
        for address in [mapping.start, mapping.end.wrapping_sub(1), mapping.end, 0, u64::MAX] {
            let found = mappings.at(address);
            assert!(found.is_none_or(|found| (found.start..found.end).contains(&address)), "{address:#x}");
        }
    }
}

/// Reads the bytes as an SQLite file: each of its runs is a graph or an error.
pub(super) fn sqlite(bytes: &[u8]) {
    let scratch = Scratch::new();
    read_runs(&scratch.write("heap.sqlite3", bytes));
}

fn read_runs(path: &Path) {
    let Ok(mut database) = Database::read(path) else { return };
    database.set_timeout(Duration::from_secs(2));
    let Ok(runs) = database.runs() else { return };
    for run in runs.iter().take(4) {
        if let Ok(graph) = database.graph(run.id) {
            assert!(graph.counts().nodes <= 1 << 20, "a file this small has no more");
            let _ = info(&graph);
        }
    }
}

/// Reads the bytes as an ELF file with symbols and debug information: each address has functions or a reason why not.
pub(super) fn symbols(bytes: &[u8]) {
    let module = Module { memory: Some(bytes.into()), ..Module::new("/lib/loaded.so") };
    let mut symbolizer = Symbolizer::new(SymbolSettings::default());
    let id = symbolizer.module(module);
    let mut frames = Vec::new();
    for place in [0, 0x40, 0x1000, 0x1009, 0x2000, 0x40_1000, 0x40_1009, u64::MAX] {
        for address in [CodeAddress::Stated(place), CodeAddress::FileOffset(place)] {
            let found = symbolizer.resolve(id, address, &mut frames);
            assert_eq!(found.is_ok(), !frames.is_empty());
            assert!(frames.iter().rev().skip(1).all(|frame| frame.is_inlined));
        }
    }
    assert!(symbolizer.reports().count() == 1);
}

/// Reads the bytes as names of addresses: what is found begins at or before the address.
pub(super) fn address_names(bytes: &[u8]) {
    for names in [AddressNames::parse_perf_map(bytes), AddressNames::parse_kallsyms(bytes)] {
        for address in [0, 0x1000, 0x7f00_0000_1000, u64::MAX] {
            assert!(names.find(address).is_none_or(|(name, offset)| !name.is_empty() && offset <= address));
        }
    }
}
