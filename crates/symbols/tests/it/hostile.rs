//! Damaged programs, and debug information made to take time or memory.

use std::sync::Arc;

use borehole_symbols::{Module, SymbolSettings, Unresolved};

use crate::program::{Asked, C, compiled};

/// A program of a few kilobytes with all kinds of debug information.
const SMALL: &str = "
volatile int seen;
static inline __attribute__((always_inline)) void inner(int value) { seen = value; seen = value * 3; }
void outer(int value) { inner(value); inner(value + 1); }
void _start(void) { outer(1); for (;;) ; }
";

fn of_bytes(bytes: &[u8]) -> Asked {
    let module = Module { memory: Some(Arc::from(bytes)), ..Module::new("/damaged") };
    Asked::of(module, SymbolSettings::default())
}

/// Looks at some addresses, whatever comes of it.
fn look(bytes: &[u8], addresses: &[u64]) -> usize {
    let mut asked = of_bytes(bytes);
    let found =
        addresses.iter().chain(&[0, 1, u64::MAX - 1, u64::MAX]).filter_map(|&address| asked.at(address).ok());
    found.map(|frames| frames.len()).sum()
}

#[test]
fn every_beginning_and_every_changed_byte_is_resolved_or_refused() {
    let program = compiled("gcc", SMALL, &["-O1", "-g", "-nostdlib", "-static", "-Wl,--build-id=none"]);
    let bytes = std::fs::read(&program.path).unwrap();
    let functions = program.functions();
    let addresses: Vec<u64> = functions.values().flat_map(|&(start, end)| (start..end).step_by(3)).collect();
    let whole = look(&bytes, &addresses);
    assert!(whole > addresses.len(), "some are inlined");
    for end in (0..bytes.len()).step_by(5) {
        assert!(look(&bytes[..end], &addresses) <= whole * 16);
    }
    let mut changed = bytes.clone();
    // Padding between the parts of the file says nothing.
    let places = (0..bytes.len()).filter(|&at| bytes[at] != 0 || at % 16 == 0);
    for at in places {
        for value in [!bytes[at], bytes[at] ^ 1, 0x80] {
            changed[at] = value;
            look(&changed, &addresses);
        }
        changed[at] = bytes[at];
    }
}

/// Entries of debug information as assembler: a unit with a function at `_start`, and `entries` in it.
fn assembler(entries: &str, ranges: &str) -> String {
    format!(
        "# assembler
.text
.globl _start
.type _start, @function
_start: .skip 64
.size _start, 64
.section .debug_abbrev,\"\",@progbits
.uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .byte 0; .byte 0
.uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .byte 0; .byte 0
.uleb128 3; .uleb128 0x1d; .byte 1; .byte 0; .byte 0
.uleb128 4; .uleb128 0x1d; .byte 0; .uleb128 0x55; .uleb128 0x17; .byte 0; .byte 0
.byte 0
.section .debug_info,\"\",@progbits
.long end - begin
begin:
.short 4
.long .debug_abbrev
.byte 8
.uleb128 1; .quad _start; .long 64
.uleb128 2; .asciz \"deep\"; .quad _start; .long 64
{entries}
.byte 0
end:
.section .debug_ranges,\"\",@progbits
{ranges}
.quad 0; .quad 0
"
    )
}

const BARE: &[&str] = &["-nostdlib", "-static", "-Wl,--build-id=none"];

/// addr2line calls itself for each level; threads of tests have 2 MiB of stack.
#[test]
fn entries_nested_without_end_do_not_overflow_the_stack() {
    for (depth, is_read) in [(300, true), (100_000, false)] {
        let nested = format!(".rept {depth}\n.uleb128 3\n.endr\n.rept {depth}\n.byte 0\n.endr");
        let program = compiled("gcc", &assembler(&nested, ""), BARE);
        let start = program.functions()["_start"].0;
        let mut asked = Asked::of(program.module(), SymbolSettings::default());
        let frames = asked.at(start).unwrap();
        let expected = if is_read { "deep" } else { "_start" };
        assert_eq!(frames[0].function.as_deref(), Some(expected), "{depth}");
        let report = asked.symbolizer.reports().next().unwrap();
        assert_eq!(report.complaint.is_some_and(|text| text.contains("nested deeper than")), !is_read);
    }
}

/// 20,000 functions of 5 bytes share a list of 20,000 ranges: 400 million ranges in a file of half a megabyte.
#[test]
fn lists_that_many_functions_share_take_no_more_than_a_multiple_of_the_file() {
    let sharing = ".rept 20000\n.uleb128 4\n.long 0\n.endr";
    let ranges = ".rept 20000\n.quad 1; .quad 2\n.endr";
    let program = compiled("gcc", &assembler(sharing, ranges), BARE);
    let start = program.functions()["_start"].0;
    let mut asked = Asked::of(program.module(), SymbolSettings::default());
    let frames = asked.at(start).unwrap();
    assert_eq!(frames[0].function.as_deref(), Some("_start"), "from the symbol table");
    let report = asked.symbolizer.reports().next().unwrap();
    assert_eq!(report.complaint, Some("debug information refers to itself too often"));
}

#[test]
fn files_larger_than_allowed_are_named_and_those_used_least_recently_make_room() {
    let programs = [C, SMALL].map(|source| {
        let options: &[&str] =
            if source == C { &["-O2", "-g"] } else { &["-O1", "-g", "-nostdlib", "-static"] };
        compiled("gcc", source, options)
    });
    let start = programs[1].functions()["outer"].0;
    let mut settings = SymbolSettings::default();
    settings.loaded_bytes = 1000;
    let mut asked = Asked::of(programs[0].module(), settings.clone());
    assert_eq!(asked.at(start), Err(Unresolved::TooLarge));
    // Enough for either, not for both.
    settings.loaded_bytes = 24 << 10;
    let mut symbolizer = borehole_symbols::Symbolizer::new(settings);
    let ids = [0, 1].map(|at: usize| symbolizer.module(programs[at].module()));
    let work = programs[0].functions()["work"].0;
    let mut frames = Vec::new();
    for _ in 0..3 {
        for (id, address, name) in [(ids[0], work, "work"), (ids[1], start, "outer")] {
            symbolizer.resolve(id, borehole_symbols::CodeAddress::Stated(address), &mut frames).unwrap();
            assert_eq!(frames.last().unwrap().function.as_deref(), Some(name));
        }
    }
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "#!/bin/sh\n").unwrap();
    for (path, expected) in [
        (text.to_str().unwrap(), Unresolved::Damaged),
        (folder.path().to_str().unwrap(), Unresolved::Damaged),
        ("/dev/zero", Unresolved::Damaged),
        ("/nowhere", Unresolved::NoFile),
        ("/dev/null/none", Unresolved::NoFile),
    ] {
        let mut asked = Asked::of(Module::new(path), SymbolSettings::default());
        assert_eq!(asked.at(0), Err(expected), "{path}");
    }
}
