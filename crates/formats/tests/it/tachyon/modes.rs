//! The modes and processes of samples.

use borehole_formats::Compression;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::tachyon::layout::Config;
use borehole_formats::tachyon::{self, Exporter, Reader, WriterOptions};
use borehole_formats::{ReadOptions, jsonl, tachyon_jsonl};
use borehole_model::{Context, Mode, ProfileSink, Sample, Segment, Tables};
use borehole_testkit::read_corpus;

use super::{Memory, define, finish, statistics, thread, writer};
use crate::play::{Collect, collected};

/// The processes and numbers of samples, and the facts of the segments.
#[derive(Default)]
struct Seen {
    by_lane: BTreeMap<(Option<u64>, Option<u64>), u64>,
    by_leaf: BTreeMap<String, u64>,
    segments: Vec<Segment>,
}

impl ProfileSink for Seen {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        *self.by_lane.entry((sample.thread, sample.interpreter)).or_default() += sample.count;
        let leaf = at.tables.frame(at.tables.leaf(sample.stack.unwrap())).function;
        *self.by_leaf.entry(String::from_utf8_lossy(at.tables.string(leaf)).into_owned()).or_default() +=
            sample.count;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.segments.push(at.segment.clone());
        Ok(())
    }
}

fn seen(bytes: &[u8]) -> Seen {
    let mut seen = Seen::default();
    tachyon::import(bytes, &ReadOptions::default(), &mut Tables::default(), &mut seen).unwrap();
    seen
}

/// A file with this configuration word.
fn of_config(config: u32) -> Vec<u8> {
    let mut writer = writer(WriterOptions { config: Config(config), ..WriterOptions::default() });
    let frames = define(&mut writer, &["f"]);
    let slot = thread(&mut writer, 7);
    writer.write_sample(slot, 1000, 1, &frames).unwrap();
    finish(writer)
}

#[test]
fn the_configuration_word_holds_the_mode() {
    let modes = [Mode::Wall, Mode::Wall, Mode::Cpu, Mode::Gil, Mode::Wall, Mode::Exception];
    for (number, mode) in (0..).zip(modes) {
        assert_eq!(seen(&of_config(number | 0x48)).segments[0].mode, mode, "{number}");
    }
}

/// The result of `export` for samples of a source with only a mode.
fn written(mode: Mode) -> (Vec<u8>, Vec<u8>) {
    let mut tables = Tables::default();
    let name = tables.intern_string(b"f").unwrap();
    let frame = tables.intern_frame(&borehole_model::Frame::named(name)).unwrap();
    let stack = tables.intern_stack(None, frame).unwrap();
    let segment = Segment { mode, period_ns: Some(1_000_000), ..Segment::default() };
    let at = Context { tables: &tables, segment: &segment };
    let (mut binary, mut sums) = (Vec::new(), Vec::new());
    let mut exporter = Exporter::new(&mut binary, Default::default(), || Ok(Memory::default()));
    let mut sums_exporter = tachyon_jsonl::Exporter::new(&mut sums);
    for sink in [&mut exporter as &mut dyn ProfileSink, &mut sums_exporter] {
        sink.segment(at).unwrap();
        let _ = sink.sample(at, &Sample { stack: Some(stack), count: 2, ..Sample::default() }).unwrap();
        sink.finish(&tables).unwrap();
    }
    drop((exporter, sums_exporter));
    (binary, sums)
}

#[test]
fn modes_other_than_wall_time_are_written() {
    for &mode in Mode::ALL {
        let (binary, sums) = written(mode);
        assert_eq!(seen(&binary).segments[0].mode, mode);
        let named = Reader::new(&binary).unwrap().header().config.mode();
        assert_eq!(named, Some(mode.name()).filter(|_| mode != Mode::Wall));
        let said = format!("\"mode\":\"{}\"", mode.name());
        assert_eq!(String::from_utf8(sums).unwrap().contains(&said), mode != Mode::Wall);
    }
}

#[test]
fn a_mode_goes_through_lines_and_comes_back_in_the_same_bytes() {
    let bytes = read_corpus("tachyon/made/cpu_mode.bin");
    let mut lines = Vec::new();
    let mut tables = Tables::default();
    let mut exporter = jsonl::Exporter::new(&mut lines, jsonl::ExportOptions::default());
    tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let (mut again, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = Exporter::new(&mut again, Default::default(), || Ok(Memory::default()));
    jsonl::import(&lines[..], &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    assert!(again == bytes);
}

#[test]
fn a_profile_that_names_no_mode_has_the_samples_and_the_period_that_it_was_given() {
    let seen = seen(&read_corpus("tachyon/made/cpu_mode.bin"));
    assert_eq!(seen.segments.len(), 1);
    // The mode is not in its header.
    assert_eq!((seen.segments[0].mode, seen.segments[0].period_ns), (Mode::Wall, Some(1_000_000)));
    assert_eq!(seen.by_leaf["idle"], 10);
    assert_eq!(seen.by_leaf.values().sum::<u64>(), 1010);
}

#[test]
fn threads_of_two_interpreters_are_separated() {
    let seen = seen(&read_corpus("tachyon/made/interpreters.bin"));
    assert_eq!(seen.by_lane.values().copied().collect::<Vec<_>>(), [1000, 1000]);
    let interpreters: Vec<_> = seen.by_lane.keys().map(|lane| lane.1.unwrap()).collect();
    assert!(interpreters[0] != interpreters[1], "{interpreters:?}");
    assert_eq!(seen.segments[0].period_ns, Some(1_000_000));
}

#[test]
fn the_facts_of_a_header_are_metadata_and_come_back() {
    for (word, mode_and_features) in [
        (0, &[][..]),
        (9, &[("mode", "wall"), ("features", "")]),
        (1 << 4 | 9, &[("mode", "wall"), ("features", "all_threads")]),
        (0x1f << 4 | 10, &[("mode", "cpu"), ("features", "all_threads,native,gc,opcodes,blocking")]),
        (8, &[("features", "")]),
    ] {
        let options = WriterOptions {
            config: Config(word),
            python: [3, 15, 2],
            start_us: 1234,
            interval_us: 1000,
            compression: Compression::None,
            ..WriterOptions::default()
        };
        let mut writer = writer(options);
        writer.set_statistics(Some(statistics()));
        let bytes = finish(writer);
        let convert = |tables: &mut Tables, sink: &mut Collect| {
            tachyon::import(&bytes, &ReadOptions::default(), tables, sink)
        };
        let metadata = collected(convert).unwrap().0.segments[0].metadata.clone();
        let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [
            &[("python_version", "3.15.2")],
            mode_and_features,
            &[
                ("start_time_us", "1234"),
                ("compression", "none"),
                ("duration_s", "1.5"),
                ("sample_rate", "999.5"),
            ],
            &[("error_rate", "0.25"), ("missed_samples", "-1")],
        ];
        assert_eq!(metadata, expected.concat());
        let (mut again, mut tables) = (Vec::new(), Tables::default());
        let mut exporter = Exporter::new(&mut again, Default::default(), || Ok(Memory::default()));
        tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
        exporter.finish(&tables).unwrap();
        drop(exporter);
        assert!(again == bytes, "{word:#x}");
    }
}
