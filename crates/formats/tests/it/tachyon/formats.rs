//! Conversion through the model and back.

use borehole_formats::Compression;
use std::io::{self, Cursor};
use std::ops::ControlFlow;

use borehole_formats::registry::Document;
use borehole_formats::tachyon::{
    ByteOrder, ExportOptions, Exporter, HeaderLayout, Reader, import, import_document,
};
use borehole_formats::{Export, ReadOptions, otlp, pstats, rbt, tachyon_jsonl};
use borehole_model::{Context, Frame, ProfileSink, Sample, Segment, Status, Tables, Tee};
use borehole_testkit::allocations::allocations;

use super::{comparable, functions, read_well, real, real_names};
use crate::play::collected;

/// Converts a file through the model into another.
fn convert(bytes: &[u8], options: ExportOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, options, || Ok(Cursor::new(Vec::new())));
    let mut tables = Tables::default();
    let recovery = import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    assert!(recovery.is_clean());
    exporter.finish(&tables).unwrap();
    // The old header has no fields for mode and features.
    let dropped = exporter.losses();
    let may_drop = options.layout == HeaderLayout::Old;
    assert!(
        dropped.is_empty() || (may_drop && dropped.to_string() == "metadata entries dropped: 2"),
        "{dropped}"
    );
    drop(exporter);
    out
}

#[test]
fn every_file_comes_back_from_the_model_byte_for_byte() {
    for name in real_names() {
        let bytes = real(&name);
        let again = convert(&bytes, ExportOptions::default());
        assert!(comparable(&again) == comparable(&bytes), "{name}");
    }
}

#[test]
fn a_file_is_swapped_recompressed_and_taken_to_the_old_layout_and_back() {
    for name in ["05_threads20_none", "06_threads20_zstd", "37_config_unknown_nostats"] {
        let bytes = real(name);
        let options = ExportOptions {
            compression: Some(if name.ends_with("zstd") { Compression::None } else { Compression::Zstd }),
            byte_order: ByteOrder::Big,
            ..ExportOptions::default()
        };
        let other = convert(&bytes, options);
        assert!(other.starts_with(b"TACH"));
        let compression = Some(if name.ends_with("zstd") { Compression::Zstd } else { Compression::None });
        let back = convert(&other, ExportOptions { compression, ..ExportOptions::default() });
        assert!(comparable(&back) == comparable(&bytes), "{name}");
        let old = convert(&bytes, ExportOptions { layout: HeaderLayout::Old, ..ExportOptions::default() });
        assert_eq!(read_well(&old), read_well(&bytes), "{name}");
    }
}

/// Passes samples of `functions`, root first, to an exporter.
fn export(samples: &[Sample<'_>], depths: &[usize], segment: &Segment) -> (Vec<u8>, String) {
    let mut tables = Tables::default();
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    exporter.segment(Context { tables: &tables, segment }).unwrap();
    for (sample, &depth) in samples.iter().zip(depths) {
        let mut stack = None;
        for level in 0..depth {
            let function = tables.intern_string(format!("f{level}").as_bytes()).unwrap();
            let frame = tables.intern_frame(&Frame::named(function)).unwrap();
            stack = Some(tables.intern_stack(stack, frame).unwrap());
        }
        let at = Context { tables: &tables, segment };
        assert_eq!(exporter.sample(at, &Sample { stack, ..*sample }).unwrap(), ControlFlow::Continue(()));
    }
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (out, losses)
}

#[test]
fn samples_whose_source_states_no_compression_are_compressed() {
    let (bytes, _) = export(&[Sample { count: 1, ..Sample::default() }], &[1], &Segment::default());
    // Zstandard, as CPython writes.
    assert_eq!(Reader::new(&bytes).unwrap().header().compression, 1);
}

#[test]
fn samples_without_times_follow_each_other_by_the_period() {
    let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
    let sample = Sample { count: 3, ..Sample::default() };
    let (bytes, losses) = export(&[sample, sample], &[1, 2], &segment);
    let samples = read_well(&bytes);
    let times: Vec<_> = samples.iter().map(|sample| sample.time_us).collect();
    assert_eq!(times, [10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    assert!(samples.iter().all(|sample| (sample.thread, sample.status) == (0, 4)));
    assert_eq!(functions(&samples[5]), ["f1", "f0"]);
    assert_eq!(losses, "");
}

#[test]
fn samples_without_a_period_last_that_of_the_document() {
    let (mut out, tables) = (Vec::new(), Tables::default());
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    for period_ns in [Some(10_000_000), None] {
        let segment = Segment { period_ns, ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &Sample { count: 2, ..Sample::default() }).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let times: Vec<_> = read_well(&out).iter().map(|sample| sample.time_us).collect();
    assert_eq!(times, [10_000, 20_000, 30_000, 40_000]);
}

#[test]
fn a_fraction_of_a_microsecond_is_counted_in_times_and_in_periods() {
    for (period_ns, time_ns, losses) in [
        (1_000_000, 5_000, ""),
        (1_000_000, 5_001, "fractions of microseconds dropped: 3"),
        (333_333, 5_000, "fractions of microseconds dropped: 3"),
    ] {
        let segment = Segment { period_ns: Some(period_ns), has_times: true, ..Segment::default() };
        let sample = Sample { count: 3, time_ns: Some(time_ns), ..Sample::default() };
        assert_eq!(export(&[sample], &[1], &segment).1, losses, "{period_ns} {time_ns}");
        let tables = Tables::default();
        let mut exporter = rbt::Exporter::new(Vec::new(), rbt::ExportOptions::default());
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &sample).unwrap();
        assert_eq!(exporter.losses().to_string(), losses, "{period_ns} {time_ns}");
    }
}

#[test]
fn a_period_becomes_that_of_the_nearest_microsecond_and_never_none() {
    for (period_ns, nearest_us) in [(10_000_001, 10_000), (10_101_010, 10_101), (333_500, 334), (1, 1)] {
        let segment = Segment { period_ns: Some(period_ns), has_times: true, ..Segment::default() };
        let sample = Sample { count: 1, time_ns: Some(0), ..Sample::default() };
        let (bytes, _) = export(&[sample], &[1], &segment);
        let (from_tachyon, _) =
            collected(|tables, sink| import(&bytes, &ReadOptions::default(), tables, sink)).unwrap();
        let tables = Tables::default();
        let mut exporter = rbt::Exporter::new(Vec::new(), rbt::ExportOptions::default());
        exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
        let bytes = exporter.into_output().unwrap().unwrap();
        let (from_rbt, _) =
            collected(|tables, sink| rbt::import(&bytes[..], &ReadOptions::default(), tables, sink)).unwrap();
        for collect in [from_tachyon, from_rbt] {
            assert_eq!(collect.segments[0].period_ns, Some(nearest_us * 1000), "{period_ns}");
        }
    }
}

#[test]
fn too_deep_stacks_keep_the_leaf_part_below_a_mark() {
    let sample = Sample { count: 1, status: Some(Status(1)), ..Sample::default() };
    let (bytes, losses) = export(&[sample], &[300], &Segment::default());
    let samples = read_well(&bytes);
    let names = functions(&samples[0]);
    assert_eq!((names.len(), names[0], names[254], names[255]), (256, "f299", "f45", "<truncated>"));
    assert_eq!(losses, "outer frames of stacks deeper than 256 dropped: 1");
}

#[test]
fn a_too_long_run_is_refused_with_a_hint() {
    let (tables, segment) = (Tables::default(), Segment::default());
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    let _ = exporter.sample(at, &Sample { count: 1, values: &[1], ..Sample::default() }).unwrap();
    let run = Sample { count: u64::MAX, values: &[1], ..Sample::default() };
    let error = exporter.sample(at, &run).unwrap_err();
    assert!(error.to_string().contains("; write rbt or pprof instead"), "{error}");
}

#[test]
fn a_profile_of_nothing_is_a_file() {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    exporter.finish(&Tables::default()).unwrap();
    drop(exporter);
    assert!(read_well(&out).is_empty());
}

/// A profile of one function, sampled `count` times with `period_ns`.
struct Run {
    function: &'static str,
    count: u64,
    period_ns: u64,
    facts: [(&'static str, &'static str); 4],
}

/// Two profilers' runs of one program, with different rates and modes.
const RUNS: [Run; 2] = [
    Run {
        function: "fast",
        count: 1000,
        period_ns: 1_000_000,
        facts: [("start_time_us", "5"), ("mode", "wall"), ("duration_s", "1"), ("sample_rate", "1000")],
    },
    Run {
        function: "slow",
        count: 1000,
        period_ns: 10_000_000,
        facts: [("start_time_us", "9"), ("mode", "cpu"), ("duration_s", "10"), ("sample_rate", "100")],
    },
];

/// Passes both runs to a sink.
fn play(sink: &mut dyn ProfileSink) {
    let mut tables = Tables::default();
    for Run { function, count, period_ns, facts } in RUNS {
        let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
        let metadata = facts.map(|(key, value)| (text(key), text(value))).to_vec();
        let function = text(function);
        let (period_ns, began_ns) = (Some(period_ns), Some(5_000));
        let segment = Segment { period_ns, began_ns, metadata, ..Segment::default() };
        let frame = tables.intern_frame(&Frame::named(function)).unwrap();
        let stack = Some(tables.intern_stack(None, frame).unwrap());
        let at = Context { tables: &tables, segment: &segment };
        sink.segment(at).unwrap();
        let _ = sink.sample(at, &Sample { stack, count, ..Sample::default() }).unwrap();
    }
    sink.finish(&tables).unwrap();
}

#[test]
fn the_header_of_merged_runs_has_common_facts_and_counts_losses() {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    play(&mut exporter);
    let losses = exporter.losses().to_string();
    assert_eq!(losses, "sampling periods dropped: 1000, metadata entries dropped: 6");
    drop(exporter);
    let reader = Reader::new(&out).unwrap();
    assert_eq!(
        (reader.header().interval_us, reader.header().config.mode(), reader.statistics()),
        (1000, None, None)
    );
    let mut jsonl = tachyon_jsonl::Exporter::new(Vec::new());
    play(&mut jsonl);
    assert!(jsonl.losses().to_string().contains("sampling periods dropped: 1000"));
}

#[test]
fn times_of_statistics_are_those_of_each_runs_period() {
    let mut text = Vec::new();
    let mut exporter = pstats::Exporter::text(&mut text, pstats::TextOptions::default());
    play(&mut exporter);
    drop(exporter);
    let text = String::from_utf8(text).unwrap();
    let row = |function: &str| {
        text.lines().find(|line| line.contains(function)).unwrap().split_whitespace().nth(2).unwrap()
    };
    assert_eq!((row("(fast)"), row("(slow)")), ("1.000", "10.000"), "{text}");
}

#[test]
fn statistics_of_many_periods_take_memory_for_what_was_sampled_of_each() {
    const RUNS: u64 = 1000;
    let mut tables = Tables::default();
    let mut stacks = Vec::new();
    for number in 0..RUNS {
        let function = tables.intern_string(format!("f{number}").as_bytes()).unwrap();
        let frame = tables.intern_frame(&Frame::named(function)).unwrap();
        stacks.push(tables.intern_stack(None, frame).unwrap());
    }
    let mut text = Vec::new();
    let mut exporter = pstats::Exporter::text(&mut text, pstats::TextOptions::default());
    let ((), held) = allocations(|| {
        for (number, &stack) in (1..).zip(&stacks) {
            let segment = Segment { period_ns: Some(number * 1_000_000), ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            exporter.segment(at).unwrap();
            for stack in [Some(stack), stacks.last().copied()] {
                let _ = exporter.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
            }
        }
    });
    exporter.finish(&tables).unwrap();
    drop(exporter);
    // A column of all stacks for each period would take eight megabytes.
    assert!(held.peak_bytes < 1 << 20, "{held:?}");
    let text = String::from_utf8(text).unwrap();
    let seconds = RUNS * (RUNS + 1) / 2 + RUNS;
    let last = text.lines().find(|line| line.contains("(f999)")).unwrap();
    assert_eq!(last.split_whitespace().nth(2), Some(&*format!("{}.{:03}", seconds / 1000, seconds % 1000)));
}

#[test]
fn times_before_the_clocks_origin_come_back() {
    let samples = [-5_000_000, 0, 7_000].map(|ns| Sample {
        count: 1,
        time_ns: Some(ns),
        thread: Some(1),
        ..Sample::default()
    });
    let (bytes, _) = export(&samples, &[1, 1, 1], &Segment::default());
    let mut times = Times::default();
    import(bytes.as_slice(), &ReadOptions::default(), &mut Tables::default(), &mut times).unwrap();
    assert_eq!(times.0, [-5_000_000, 0, 7_000]);
}

#[derive(Default)]
struct Times(Vec<i64>);

impl ProfileSink for Times {
    fn sample(&mut self, _at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<ControlFlow<()>> {
        self.0.extend(sample.time_ns);
        Ok(ControlFlow::Continue(()))
    }
}

/// For each segment, the guarantees of its source about samples.
#[derive(Default)]
struct Guarantees(Vec<(Option<i64>, Option<u32>)>);

impl ProfileSink for Guarantees {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.0.push((at.segment.began_ns, at.segment.depth_limit));
        Ok(())
    }
}

#[test]
fn the_start_of_profiling_survives_conversions_that_keep_the_clock() {
    let bytes = real("05_threads20_none");
    let start_us = Reader::new(&bytes).unwrap().header().start_us;
    let began_ns = Some(i64::try_from(start_us).unwrap() * 1000);
    let mut converted = Vec::new();
    let exporter = otlp::Exporter::new(&mut converted, || Ok(Box::new(Cursor::new(Vec::new()))));
    let (options, mut tables) = (ReadOptions::default(), Tables::default());
    let mut both = Tee::new(Guarantees::default(), exporter);
    import(&bytes, &options, &mut tables, &mut both).unwrap();
    both.finish(&tables).unwrap();
    let (found, _) = both.into_parts();
    assert_eq!(found.0, [(began_ns, Some(256))]);
    let mut found = Guarantees::default();
    otlp::import(&converted[..], &options, &mut Tables::default(), &mut found).unwrap();
    assert_eq!(found.0, [(began_ns, None)]);
}

/// A sample in a segment, converted to a file, and the losses.
fn began(mut exporter: impl Export, tables: &Tables, segment: &Segment) -> String {
    let at = Context { tables, segment };
    exporter.segment(at).unwrap();
    let _ = exporter.sample(at, &Sample { count: 1, time_ns: Some(9_000_000), ..Sample::default() }).unwrap();
    exporter.finish(tables).unwrap();
    exporter.losses().to_string()
}

#[test]
fn the_start_of_profiling_comes_from_the_segment() {
    let mut tables = Tables::default();
    let said = ("start_time_us", "1629382960000000");
    let [key, value] = [said.0, said.1].map(|text| tables.intern_string(text.as_bytes()).unwrap());
    for (segment, start_us, dropped) in [
        // Like a profile that was stored with its own times, and one that was redacted.
        (
            Segment { metadata: vec![(key, value)], ..Segment::default() },
            9_000,
            "metadata entries dropped: 1",
        ),
        (Segment { began_ns: Some(7_000_000), ..Segment::default() }, 7_000, ""),
    ] {
        let (mut tachyon, mut otlp) = (Vec::new(), Vec::new());
        let spool = || Ok(Cursor::new(Vec::new()));
        let losses = began(Exporter::new(&mut tachyon, ExportOptions::default(), spool), &tables, &segment);
        assert_eq!((Reader::new(&tachyon).unwrap().header().start_us, &*losses), (start_us, dropped));
        began(otlp::Exporter::new(&mut otlp, || Ok(Box::new(Cursor::new(Vec::new())))), &tables, &segment);
        let mut found = Guarantees::default();
        otlp::import(&otlp[..], &ReadOptions::default(), &mut Tables::default(), &mut found).unwrap();
        assert_eq!(found.0, [(segment.began_ns, None)]);
    }
}

#[test]
fn metadata_that_a_header_cannot_hold_are_counted() {
    let mut tables = Tables::default();
    let said = [
        ("python_version", "3.15"),
        ("mode", "wall"),
        ("mode", "cpu"),
        ("features", "gc"),
        ("compression", "lz4"),
        ("duration_s", "1.5"),
        ("error_rate", "0.5"),
    ];
    let mut intern = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let metadata = said.map(|(key, value)| (intern(key), intern(value))).to_vec();
    let segment = Segment { metadata, began_ns: Some(0), ..Segment::default() };
    let losses = began(
        Exporter::new(Vec::new(), ExportOptions::default(), || Ok(Cursor::new(Vec::new()))),
        &tables,
        &segment,
    );
    // The version is too short, a mode occurs twice, lz4 is not a compression of the format, and a duration without a rate
    // is not statistics.
    assert_eq!(losses, "metadata entries dropped: 5");
}

#[test]
fn lines_and_columns_that_the_format_cannot_hold_are_counted() {
    let mut tables = Tables::default();
    let function = tables.intern_string(b"f").unwrap();
    let limit = i64::from(i32::MAX);
    let frames = [
        Frame { line: Some(limit), column: Some(i32::MAX.unsigned_abs()), ..Frame::named(function) },
        Frame { line: Some(limit + 1), ..Frame::named(function) },
        Frame { end_column: Some(u32::MAX), ..Frame::named(function) },
    ];
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    let mut stack = None;
    for frame in &frames {
        let frame = tables.intern_frame(frame).unwrap();
        stack = Some(tables.intern_stack(stack, frame).unwrap());
    }
    let segment = Segment::default();
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    let _ = exporter.sample(at, &Sample { count: 1, stack, ..Sample::default() }).unwrap();
    assert_eq!(exporter.losses().to_string(), "lines and columns above 2147483647 dropped: 2");
}

#[test]
fn each_part_that_the_format_cannot_hold_is_counted_by_its_name() {
    let mut tables = Tables::default();
    let labels = Some(tables.intern_labels(&[]).unwrap());
    let one = Sample { count: 1, ..Sample::default() };
    for (name, sample) in [
        ("annotations", Sample { labels, ..one }),
        ("measured values", Sample { values: &[1], ..one }),
        ("process ids", Sample { process: Some(7), ..one }),
        ("fractions of microseconds", Sample { time_ns: Some(1), ..one }),
    ] {
        for count in 0..3 {
            let losses = export(&[Sample { count, ..sample }], &[1], &Segment::default()).1;
            let expected = if count == 0 { String::new() } else { format!("{name} dropped: {count}") };
            assert_eq!(losses, expected);
        }
    }
    for (depth, expected) in
        [(255, ""), (256, ""), (257, "outer frames of stacks deeper than 256 dropped: 2")]
    {
        assert_eq!(export(&[Sample { count: 2, ..one }], &[depth], &Segment::default()).1, expected);
    }
}

#[test]
fn metadata_of_further_segments_are_counted_where_they_differ() {
    let losses = |first: &[(&str, &str)], second: &[(&str, &str)], later: usize| {
        let mut tables = Tables::default();
        let mut exporter =
            Exporter::new(Vec::new(), ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
        for said in [first, second] {
            let mut intern = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
            let metadata = said.iter().map(|(key, value)| (intern(key), intern(value))).collect();
            let segment = Segment { metadata, began_ns: Some(0), ..Segment::default() };
            exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
        }
        let text = tables.intern_string(b"more").unwrap();
        let segment = Segment::default();
        for _ in 0..later {
            exporter.metadata(Context { tables: &tables, segment: &segment }, text, text).unwrap();
        }
        exporter.losses().iter().map(|(_, count)| count).sum::<u64>()
    };
    let python = |version| [("python_version", version)];
    assert_eq!(losses(&python("3.15.2"), &python("3.15.2"), 0), 0);
    assert_eq!(losses(&python("3.15.2"), &python("3.15.1"), 0), 1);
    assert_eq!(losses(&python("3.15.2"), &[("mode", "wall")], 0), 1, "the mode is lost, the version is not");
    let mode = |mode| [("mode", mode), ("features", "gc")];
    assert_eq!(losses(&mode("cpu"), &mode("cpu"), 0), 0);
    assert_eq!(losses(&mode("cpu"), &mode("gil"), 0), 2);
    let ran = |seconds| [("duration_s", seconds), ("sample_rate", "100")];
    assert_eq!(losses(&ran("1"), &ran("1"), 0), 0);
    assert_eq!(losses(&ran("1"), &ran("2"), 0), 4);
    assert_eq!(losses(&[], &[], 2), 2);
}

/// The strings and samples of a file without tables come from another run of the program, or from the journal of its writer.
#[test]
fn a_document_takes_names_from_its_sibling() {
    let whole = real("03_rec300_none");
    let strings = usize::try_from(Reader::new(&whole).unwrap().header().strings_offset).unwrap();
    let names = |bytes: &[u8], sibling: Option<&[u8]>| {
        let (collect, recovery) = collected(|tables, sink| {
            let document = Document { bytes, sibling, on_passed: None };
            import_document(document, &ReadOptions::lenient(), tables, sink)
        })
        .unwrap();
        let said: Vec<String> = recovery.warnings.into_iter().map(|warning| warning.message).collect();
        let frames = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
        (frames.map(|frame| frame.function.clone()).collect::<Vec<_>>(), said)
    };
    let (own, none_said) = names(&whole, None);
    assert!(!own.is_empty() && none_said.is_empty());
    let (numbers, _) = names(&whole[..strings], None);
    assert!(numbers.len() == own.len() && numbers.iter().all(|name| name.starts_with("frame#")));
    let (borrowed, said) = names(&whole[..strings], Some(&whole));
    assert_eq!(borrowed, own);
    assert!(said.iter().any(|said| said.starts_with("names borrowed from another file for ")), "{said:?}");
    let (kept, said) = names(&whole, Some(&whole));
    assert_eq!((kept, &said[..]), (own, &["no names borrowed: this file has its own tables".to_owned()][..]));
}
