//! Addresses that get functions: whatever the document, and whatever the functions are.

use borehole_formats::Compression;
use std::sync::Arc;

use borehole_formats::{
    AddressSymbols, Error, FilledAddresses, FilledLine, Limits, ReadOptions, StatedMapping, otlp, pprof,
};
use borehole_model::{Context, Frame, NativeFrame, NativeModule, ProfileSink, Sample, Segment, Tables};
use borehole_testkit::raw_profiles::{MappedFile, raw_otlp, raw_pprof};

/// Knows two functions at each address of a file: one is inlined into the other.
#[derive(Default)]
struct Known {
    asked: Vec<(String, String, u64)>,
}

impl AddressSymbols for Known {
    fn find(&mut self, mapping: &StatedMapping<'_>, file_offset: u64, lines: &mut Vec<FilledLine>) -> bool {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let build_id = text(mapping.build_id.unwrap_or_default());
        self.asked.push((text(mapping.path), build_id, file_offset));
        for name in ["inner".to_owned(), format!("outer_{file_offset:x}")] {
            let file = Some(Arc::from("/src/a.c"));
            lines.push(FilledLine { function: name.into(), file, line: 7, ..FilledLine::default() });
        }
        // The last address is unknown.
        file_offset != 0x1030
    }
}

const FILE: MappedFile<'_> =
    MappedFile { path: "/bin/a", build_id: "c0ffee", start: 0x5000, end: 0x6000, file_offset: 0x1000 };

const ADDRESSES: [u64; 6] = [0x5010, 0x5000, 0x5030, 0x6000, 0x4fff, 0x5010];

type Filled = Result<(Vec<u8>, FilledAddresses), Error>;

fn filled_pprof(document: &[u8], symbols: &mut Known) -> Filled {
    pprof::fill_symbols(document, &Limits::default(), symbols)
}

fn filled_otlp(document: &[u8], symbols: &mut Known) -> Filled {
    otlp::fill_symbols(document, &Limits::default(), symbols)
}

/// Collects the functions of each sample, leaf first.
#[derive(Default)]
struct Stacks(Vec<Vec<String>>);

impl ProfileSink for Stacks {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<std::ops::ControlFlow<()>> {
        let name = |id| String::from_utf8_lossy(at.tables.string(at.tables.frame(id).function)).into_owned();
        self.0.push(at.tables.frames_leaf_first(sample.stack).map(name).collect());
        Ok(std::ops::ControlFlow::Continue(()))
    }
}

#[test]
fn addresses_in_mappings_get_functions_and_others_stay() {
    let mut stacks = [Stacks::default(), Stacks::default()];
    let options = ReadOptions::default();
    let (document, filled) = filled_pprof(&raw_pprof(&FILE, &ADDRESSES), &mut Known::default()).unwrap();
    pprof::import(&document[..], &options, &mut Tables::default(), &mut stacks[0]).unwrap();
    let mut symbols = Known::default();
    let (document, same) = filled_otlp(&raw_otlp(&FILE, &ADDRESSES), &mut symbols).unwrap();
    otlp::import(&document[..], &options, &mut Tables::default(), &mut stacks[1]).unwrap();
    assert_eq!(filled, same);
    assert_eq!((filled.filled, filled.not_found, filled.unmapped, filled.had_functions), (3, 1, 2, 0));
    let asked = |offset| ("/bin/a".to_owned(), "c0ffee".to_owned(), offset);
    assert_eq!(symbols.asked, [0x1000, 0x1010, 0x1010, 0x1030].map(asked));
    let expected = [
        vec!["inner", "outer_1010"],
        vec!["inner", "outer_1000"],
        vec!["0x1030"],
        vec!["0x6000"],
        vec!["0x4fff"],
        vec!["inner", "outer_1010"],
    ];
    assert_eq!(stacks[0].0, expected);
    assert_eq!(stacks[1].0, expected);
}

/// Fills a document.
type Fill = fn(&[u8], &mut Known) -> Filled;

/// A second pass finds nothing to do.
#[test]
fn filled_documents_stay_as_they_are() {
    let ways: [(Vec<u8>, Fill); 2] =
        [(raw_pprof(&FILE, &[0x5010]), filled_pprof), (raw_otlp(&FILE, &[0x5010]), filled_otlp)];
    for (raw, fill) in ways {
        let (once, _) = fill(&raw, &mut Known::default()).unwrap();
        let (twice, filled) = fill(&once, &mut Known::default()).unwrap();
        assert!(once.len() > raw.len() && once == twice);
        assert_eq!((filled.filled, filled.had_functions), (0, 1));
    }
}

#[test]
fn every_beginning_and_every_changed_byte_is_filled_or_refused() {
    let ways: [(Vec<u8>, Fill); 2] =
        [(raw_pprof(&FILE, &ADDRESSES), filled_pprof), (raw_otlp(&FILE, &ADDRESSES), filled_otlp)];
    for (raw, fill) in ways {
        for end in 0..raw.len() {
            let _ = fill(&raw[..end], &mut Known::default());
        }
        let mut changed = raw.clone();
        for at in 0..raw.len() {
            for bit in 0..8 {
                changed[at] = raw[at] ^ 1 << bit;
                if let Ok((document, filled)) = fill(&changed, &mut Known::default()) {
                    // Nothing is lost: only lines, functions and strings are added.
                    assert!(document.len() >= changed.len(), "byte {at}, bit {bit}");
                    assert_eq!(document.len() > changed.len(), filled.filled > 0, "byte {at}, bit {bit}");
                }
            }
            changed[at] = raw[at];
        }
    }
}

/// A recording of native code with a function and an address without one, and the file that it states.
fn recorded(modules: &[&str]) -> Vec<u8> {
    let mut tables = Tables::default();
    let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let (unnamed, named, module, key) =
        (text("[libx.so]"), text("main"), text("libx.so"), text(NativeModule::KEY));
    let metadata = modules.iter().map(|module| (key, text(module))).collect();
    let mut frame = |function, offset| {
        let native = Some(NativeFrame { module, offset: Some(offset), file_offset: None });
        tables.intern_frame(&Frame { native, ..Frame::named(function) }).unwrap()
    };
    let (leaf, root) = (frame(unnamed, 0x1234), frame(named, 8));
    let root = tables.intern_stack(None, root).unwrap();
    let stack = Some(tables.intern_stack(Some(root), leaf).unwrap());
    let segment = Segment { metadata, ..Segment::default() };
    let at = Context { tables: &tables, segment: &segment };
    let mut document = Vec::new();
    let mut exporter = pprof::Exporter::new(&mut document, Compression::None).unwrap();
    exporter.segment(at).unwrap();
    let _ = exporter.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    document
}

#[test]
fn addresses_of_a_recording_are_found_in_the_file_that_it_states() {
    let mut symbols = Known::default();
    let document = recorded(&["c0ffee 1000-9000 /lib/libx.so"]);
    let (document, filled) = filled_pprof(&document, &mut symbols).unwrap();
    assert_eq!((filled.filled, filled.had_functions), (1, 1));
    assert_eq!(symbols.asked, [("/lib/libx.so".to_owned(), "c0ffee".to_owned(), 0x1234)]);
    let mut stacks = Stacks::default();
    pprof::import(&document[..], &ReadOptions::default(), &mut Tables::default(), &mut stacks).unwrap();
    assert_eq!(stacks.0, [["inner", "outer_1234", "main"]]);
}

#[test]
fn a_file_of_which_there_are_two_or_that_does_not_reach_so_far_is_not_guessed() {
    for modules in [
        &["c0ffee 1000-9000 /lib/libx.so", "beef 1000-9000 /opt/libx.so"][..],
        &["c0ffee 1000-1234 /lib/libx.so"],
        &["c0ffee 1000-9000 /lib/liby.so"],
        &[],
    ] {
        let mut symbols = Known::default();
        let (_, filled) = filled_pprof(&recorded(modules), &mut symbols).unwrap();
        assert_eq!((filled.filled, filled.had_functions, symbols.asked.len()), (0, 2, 0), "{modules:?}");
    }
}

/// Notes the functions of all stacks and the files that segments state.
#[derive(Default)]
struct Stated(Vec<String>, Vec<String>);

impl ProfileSink for Stated {
    fn segment(&mut self, at: Context<'_>) -> std::io::Result<()> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let modules = at.segment.metadata.iter().filter(|(key, _)| text(*key) == NativeModule::KEY);
        self.1.extend(modules.map(|&(_, value)| text(value)));
        Ok(())
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<std::ops::ControlFlow<()>> {
        let name = |id| String::from_utf8_lossy(at.tables.string(at.tables.frame(id).function)).into_owned();
        self.0.extend(at.tables.frames_leaf_first(sample.stack).map(name));
        Ok(std::ops::ControlFlow::Continue(()))
    }
}

#[test]
fn addresses_are_offsets_in_files_with_a_build_id_wherever_they_are_loaded() {
    let options = ReadOptions::default();
    for is_otlp in [false, true] {
        let stated = |file: &MappedFile<'_>, address| {
            let mut stated = Stated::default();
            let mut tables = Tables::default();
            if is_otlp {
                otlp::import(&raw_otlp(file, &[address])[..], &options, &mut tables, &mut stated).unwrap();
            } else {
                pprof::import(&raw_pprof(file, &[address])[..], &options, &mut tables, &mut stated).unwrap();
            }
            stated
        };
        let elsewhere = MappedFile { start: 0x7000, end: 0x8000, ..FILE };
        for (file, address) in [(FILE, 0x5010), (elsewhere, 0x7010)] {
            let Stated(functions, modules) = stated(&file, address);
            assert_eq!(functions, ["0x1010"]);
            assert_eq!(modules, ["c0ffee 1000-2000 /bin/a"]);
        }
        let unknown = MappedFile { build_id: "", ..FILE };
        assert_eq!(stated(&unknown, 0x5010).0, ["0x5010"], "the file may be any");
        assert_eq!(stated(&FILE, 0x6000).0, ["0x6000"], "behind the file");
    }
}
