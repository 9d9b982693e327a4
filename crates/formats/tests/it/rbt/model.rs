//! Import from and export to `rbt`.

use std::io;
use std::ops::ControlFlow;

use borehole_formats::rbt::{self, ExportOptions, Exporter, Timestamps, import};
use borehole_formats::{Export as _, ReadOptions, Recovery};
use borehole_model::{
    Context, Frame, Label, LabelValue, LabelsId, NameParts, NativeFrame, ProfileSink, Sample, Segment,
    StringId, Tables,
};
use proptest::prelude::*;

use super::build::Trace;
use super::read;
use super::writer::Full;

/// Every call of an importer as text, and the frames.
#[derive(Default)]
struct Log {
    calls: Vec<String>,
    frames: Vec<Frame>,
    /// The number of samples after which it stops.
    enough: Option<usize>,
}

impl ProfileSink for Log {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let tables = at.tables;
        let frames: Vec<_> = tables.frames_leaf_first(sample.stack).map(|id| tables.frame(id)).collect();
        let names: Vec<_> = frames.iter().map(|frame| text(tables, frame.function)).collect();
        self.frames.extend(frames);
        let labels = sample.labels.map(|labels| labels_text(tables, labels));
        let Sample { count, time_ns, delta_us, process, .. } = sample;
        self.calls.push(format!("{names:?} x{count} {time_ns:?} {delta_us:?} {process:?} {labels:?}"));
        let full = self.enough.is_some_and(|enough| self.calls.len() >= enough);
        Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let Segment { format, index, offset, period_ns, has_times, process, metadata, .. } = at.segment;
        let metadata: Vec<_> = metadata
            .iter()
            .map(|&(key, value)| format!("{}={}", text(at.tables, key), text(at.tables, value)))
            .collect();
        self.calls.push(format!(
            "segment {format} {index} {offset:?} {period_ns:?} {has_times} {process:?} {metadata:?}"
        ));
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.calls.push(format!("{} = {}", text(at.tables, key), text(at.tables, value)));
        Ok(())
    }
}

fn text(tables: &Tables, id: StringId) -> String {
    String::from_utf8_lossy(tables.string(id)).into_owned()
}

fn labels_text(tables: &Tables, labels: LabelsId) -> Vec<String> {
    let value = |value| match value {
        LabelValue::Text(value) => text(tables, value),
        LabelValue::Number { value, .. } => value.to_string(),
    };
    tables
        .labels(labels)
        .iter()
        .map(|label| format!("{}={}", text(tables, label.key), value(label.value)))
        .collect()
}

fn import_into(bytes: &[u8], sink: &mut dyn ProfileSink) -> Recovery {
    import(bytes, &ReadOptions::default(), &mut Tables::default(), sink).unwrap()
}

fn log(trace: &Trace) -> Log {
    let mut log = Log::default();
    import_into(&trace.0, &mut log);
    log
}

#[test]
fn samples_keep_count_time_process_and_labels() {
    let trace =
        Trace::timed().sample(&[0, 10]).pid_sample(&[1, 7, 30]).annotation(&[1, 1, 3]).repeat(2).sample(&[0]);
    let expected = [
        "segment rbt 0 Some(0) Some(10000000) true None []",
        r#"["f"] x1 Some(10000) Some(10) None None"#,
        r#"["g", "f"] x3 Some(40000) Some(30) Some(7) Some(["f=g"])"#,
        r#"["f"] x1 None None None None"#,
    ];
    assert_eq!(log(&trace).calls, expected);
}

#[test]
fn an_annotation_of_no_pairs_is_a_set_and_an_empty_stack_is_none() {
    let trace = Trace::compact().stack(&[9, 0]).compact_sample(9).annotation(&[0]);
    assert_eq!(log(&trace).calls[1], "[] x1 None None None Some([])");
}

#[test]
fn frames_keep_the_parts_of_their_names() {
    let trace = Trace::compact()
        .string(4, b"N\\M")
        .string(5, b"C")
        .frame(&[2, 2, 4, 5, 1, 2, -1, 3])
        .frame(&[3, 1, 1, 2, -9])
        .stack(&[2, 2, 2, 3])
        .compact_sample(2);
    let (mut tables, mut found) = (Tables::default(), Log::default());
    import(&*trace.0, &ReadOptions::default(), &mut tables, &mut found).unwrap();
    let mut string = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let parts = NameParts { namespace: string("N\\M"), class: string("C"), method: string("f") };
    let php = Frame {
        parts: Some(parts),
        file: Some(string("/f.php")),
        opcode: Some(string("g")),
        ..Frame::named(string("N\\M\\C::f"))
    };
    let native = NativeFrame { module: string("/f.php"), offset: Some(-9), file_offset: None };
    assert_eq!(found.frames, [php, Frame { native: Some(native), ..Frame::named(string("f")) }]);
}

#[test]
fn metadata_before_the_samples_is_of_the_segment_and_names_its_process() {
    let trace = Trace::compact().metadata(b"pid", b"473").metadata(b"host", b"web1").compact_sample(0);
    let trace = trace.metadata(b"note", b"late").end().then(&Trace::bare().metadata(b"pid", b"no number"));
    let calls = log(&trace).calls;
    assert_eq!(calls[0], r#"segment rbt 0 Some(0) Some(10000000) false Some(473) ["pid=473", "host=web1"]"#);
    assert_eq!(calls[2], "note = late");
    assert!(calls[3].ends_with(r#"Some(10000000) false None ["pid=no number"]"#), "{calls:?}");
}

#[test]
fn a_period_of_zero_is_unknown() {
    assert_eq!(log(&Trace::default().header(0, 0)).calls, ["segment rbt 0 Some(0) None false None []"]);
}

#[test]
fn time_runs_on_over_segments() {
    let one = Trace::timed().sample(&[0, 10]).sample(&[0, 5]);
    let calls = log(&one.clone().then(&Trace::compact().compact_sample(0)).then(&one)).calls;
    let times: Vec<_> = calls
        .iter()
        .filter_map(|call| call.split(' ').find(|word| word.starts_with("Some(") && call.starts_with('[')))
        .collect();
    assert_eq!(times, ["Some(10000)", "Some(15000)", "Some(25000)", "Some(30000)"]);
}

/// A segment with a wall clock, without its definitions' strings in the metadata.
fn clocked(has_timestamps: bool, clock: &[u8]) -> Trace {
    let definitions = Trace::compact().0[16..].to_vec();
    let header = Trace::default().header(u8::from(has_timestamps), 10_000).metadata(b"host", b"a");
    header.metadata(b"start_unix_ns", clock).raw(&definitions)
}

/// The wall time of each sample: of its segment's clock, plus its own time.
fn wall_times_ns(bytes: &[u8]) -> Vec<i64> {
    #[derive(Default)]
    struct WallTimes(Vec<i64>);
    impl ProfileSink for WallTimes {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push(at.segment.start_unix_ns.unwrap() + sample.time_ns.unwrap_or(0));
            Ok(ControlFlow::Continue(()))
        }
    }
    let mut found = WallTimes::default();
    import_into(bytes, &mut found);
    found.0
}

#[test]
fn segments_are_placed_by_their_wall_clocks() {
    let first = clocked(true, b"5000000000").sample(&[0, 0]).sample(&[0, 7]).end();
    // Later by more than the difference says, as after a pause; then one that was recorded at the same time as the first.
    let later = clocked(true, b"6000000000").sample(&[0, 3]).end();
    let concurrent = clocked(true, b"4999000000").sample(&[0, 0]).sample(&[0, 3000]).end();
    let all = first.then(&later).then(&concurrent);
    assert_eq!(
        wall_times_ns(&all.0),
        [5_000_000_000, 5_000_007_000, 6_000_003_000, 4_999_000_000, 5_002_000_000]
    );
    assert_eq!(wall_times_ns(&export(&all, ExportOptions::default()).0), wall_times_ns(&all.0));
    // One origin for all, and the entry is no metadata of the user's.
    assert!(log(&all).calls.iter().all(|call| !call.contains("start_unix_ns")));
}

#[test]
fn segments_without_timestamps_keep_when_they_began() {
    let one = clocked(false, b"5000000000").compact_sample(0).end();
    let both = one.then(&clocked(false, b"6000000000").compact_sample(0).end());
    assert_eq!(wall_times_ns(&both.0), [5_000_000_000, 6_000_000_000]);
    let (bytes, losses) = export(&both, ExportOptions::default());
    assert_eq!((wall_times_ns(&bytes), &*losses), (vec![5_000_000_000, 6_000_000_000], ""));
}

#[test]
fn a_wall_clock_that_is_no_number_or_late_is_metadata() {
    for trace in [
        Trace::bare().metadata(b"start_unix_ns", b"noon"),
        Trace::compact().compact_sample(0).metadata(b"start_unix_ns", b"5"),
    ] {
        assert!(log(&trace).calls.last().unwrap().contains("start_unix_ns"), "{:?}", log(&trace).calls);
    }
}

#[test]
fn a_trace_with_wall_clocks_is_written_as_it_was_read() {
    let begin = |clock: &[u8]| Trace::default().header(1, 500).metadata(b"start_unix_ns", clock);
    let first = define(begin(b"1700000000123456789")).sample(&[0, 0]).sample(&[0, 40]).checkpoint(1, 1, 2);
    let second = define(begin(b"1700000000123496789")).sample(&[0, 9]).checkpoint(1, 1, 1);
    let trace = first.end().then(&second.end());
    let (bytes, losses) = export(&trace, ExportOptions::default());
    assert_eq!((bytes, &*losses), (trace.0, ""));
}

#[test]
fn samples_without_a_time_among_timed_ones_are_counted() {
    let (bytes, losses) = export(&Trace::timed().sample(&[0, 5]).sample(&[0]), ExportOptions::default());
    let written = read(&bytes);
    let second = written.samples()[1];
    assert!(second.contains("+0us"), "{second}");
    assert_eq!(losses, "unknown timestamps, written as 0, dropped: 1");
}

#[test]
fn a_sink_that_has_enough_ends_the_reading() {
    let many = (0..100).fold(Trace::compact(), |trace, index| trace.compact_sample(index % 2));
    let mut log = Log { enough: Some(4), ..Log::default() };
    let recovery = import_into(&many.0, &mut log);
    assert!(recovery.stopped);
    assert_eq!(log.calls.len(), 4);
}

/// Adds a stack with one frame.
fn define(trace: Trace) -> Trace {
    trace.string(0, b"").string(1, b"f").string(2, b"/f.php").frame(&[0, 0, 0, 0, 1, 2, 3]).stack(&[0, 1, 0])
}

fn export(trace: &Trace, options: ExportOptions) -> (Vec<u8>, String) {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes, options);
    import_into(&trace.0, &mut exporter);
    exporter.finish(&Tables::default()).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (bytes, losses)
}

/// A trace with everything that the format knows, in the order of the writer.
fn everything() -> Trace {
    let first = define(Trace::default().header(1, 500).metadata(b"pid", b"7").metadata(b"host", b"a"));
    let first = first.sample(&[0, 10]).string(3, b"k").annotation(&[1, 3, 1]).pid_sample(&[0, 9, 20]);
    let first = first.checkpoint(1, 1, 2).end();
    let second = define(Trace::default().header(0, 0)).compact_sample(0).repeat(4).metadata(b"late", b"");
    let second = second.string(3, b"X").frame(&[1, 2, 0, 0, 1, 2, -1, 3]).frame(&[2, 1, 1, 2, 77]);
    first.then(&second.stack(&[1, 2, 1, 2]).compact_sample(1).checkpoint(3, 2, 6).end())
}

#[test]
fn everything_survives_the_model() {
    let trace = everything();
    let (bytes, losses) = export(&trace, ExportOptions::default());
    let mut expected = trace.0;
    // An unknown period becomes reli's default.
    let second = memchr::memmem::rfind(&expected, b"RELI").unwrap();
    expected[second + 8..second + 12].copy_from_slice(&10_000_u32.to_le_bytes());
    assert_eq!(read(&bytes).lines, read(&expected).lines);
    assert_eq!(bytes, expected);
    assert_eq!(losses, "");
}

#[test]
fn timestamps_are_left_out_or_added_when_asked() {
    let never = ExportOptions { timestamps: Timestamps::Never, ..ExportOptions::default() };
    let (bytes, losses) = export(&everything(), never);
    assert_eq!(losses, "timestamps dropped: 2");
    assert!(read(&bytes).lines.iter().all(|line| !line.contains("timed") && !line.contains("us @")));
    let always =
        ExportOptions { timestamps: Timestamps::Always, period_us: Some(250), ..ExportOptions::default() };
    let (bytes, losses) = export(&everything(), always);
    assert_eq!(losses, "");
    let reading = read(&bytes);
    assert_eq!(
        reading.lines.iter().filter(|line| line.starts_with("segment")).collect::<Vec<_>>(),
        ["segment timed 500us", "segment timed 250us"]
    );
    assert!(reading.samples().iter().all(|line| line.contains("us @")), "{:?}", reading.lines);
}

#[test]
fn no_segment_at_all_is_an_empty_trace() {
    let mut bytes = Vec::new();
    Exporter::new(&mut bytes, ExportOptions::default()).finish(&Tables::default()).unwrap();
    assert_eq!(bytes, Trace::bare().checkpoint(0, 0, 0).end().0);
}

#[test]
fn a_sample_before_any_segment_is_refused() {
    let (tables, segment) = (Tables::default(), Segment::default());
    let at = Context { tables: &tables, segment: &segment };
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default());
    let error = exporter.sample(at, &Sample { count: 1, ..Sample::default() }).unwrap_err();
    assert_eq!(error.to_string(), "expected a segment before its samples");
}

#[test]
fn the_process_of_a_segment_is_written_as_metadata() {
    let (tables, segment) = (Tables::default(), Segment { process: Some(5), ..Segment::default() });
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes, ExportOptions::default());
    exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    assert_eq!(read(&bytes).lines, ["segment 10000us", "pid = 5"]);
}

#[test]
fn a_full_output_is_the_sinks_error() {
    for room in [0, 20, 100] {
        let mut exporter = Exporter::new(Full(room), ExportOptions::default());
        let mut tables = Tables::default();
        let imported = import(&*everything().0, &ReadOptions::default(), &mut tables, &mut exporter);
        let outcome = imported.map(drop).and_then(|()| Ok(exporter.finish(&tables)?));
        let error = outcome.unwrap_err();
        assert!(
            matches!(&error, borehole_formats::ReadError::Sink(error) if error.kind() == io::ErrorKind::StorageFull),
            "{error}"
        );
    }
}

/// A profile of what `rbt` can hold, as plain data. Per segment: whether it is timed, its period, and samples of stack,
/// count, difference, process and labels.
type PlainSample = (Vec<usize>, u64, i64, Option<i64>, Option<Vec<(u8, u8)>>);
type PlainSegment = (bool, u32, Vec<PlainSample>);

fn segments() -> impl Strategy<Value = Vec<PlainSegment>> {
    let labels =
        prop_oneof![2 => Just(None), 1 => prop::collection::vec((0..3_u8, 0..3_u8), 0..3).prop_map(Some)];
    let count = prop_oneof![3 => 1..5_u64, 1 => 1..1_u64 << 41];
    let process = prop_oneof![3 => Just(None), 1 => any::<i64>().prop_map(Some)];
    let sample = (prop::collection::vec(0..6_usize, 0..4), count, -5..100_000_i64, process, labels);
    let segment = (any::<bool>(), 1..u32::MAX, prop::collection::vec(sample, 0..10));
    // Runs with timestamps are written one by one.
    let with_short_runs = |(timed, period_us, mut samples): PlainSegment| {
        samples.iter_mut().filter(|_| timed).for_each(|sample| sample.1 = (sample.1 - 1) % 4 + 1);
        (timed, period_us, samples)
    };
    prop::collection::vec(segment.prop_map(with_short_runs), 1..4)
}

fn play(segments: &[PlainSegment], sink: &mut dyn ProfileSink) {
    let mut tables = Tables::default();
    let mut string = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let names = ["", "f", "N\\f", "C::m", "N\\C::m", "{closure:N\\C::m():12}"].map(&mut string);
    let native = Some(NativeFrame { module: names[1], offset: Some(-3), file_offset: None });
    let file = Some(string("/f.php"));
    let texts = ["k", "v", "\u{fffd}"].map(&mut string);
    let frames: Vec<_> = (1..)
        .zip(names)
        .map(|(line, name)| match name == names[0] {
            true => Frame { native, ..Frame::named(name) },
            false => Frame { file, line: (line != 3).then_some(line), ..Frame::named(name) },
        })
        .map(|frame| tables.intern_frame(&frame).unwrap())
        .collect();
    let mut time_us = 0;
    for (index, (timed, period_us, samples)) in (0..).zip(segments) {
        let period_ns = Some(u64::from(*period_us) * 1000);
        let segment = Segment { format: "rbt", index, period_ns, has_times: *timed, ..Segment::default() };
        sink.segment(Context { tables: &tables, segment: &segment }).unwrap();
        for (stack, count, delta_us, process, labels) in samples {
            let stack: Vec<_> = stack.iter().map(|&at| frames[at]).collect();
            let stack = tables.intern_stack_leaf_first(&stack).unwrap();
            let labels = labels.as_ref().map(|labels| {
                let mut labels = labels.clone();
                labels.dedup_by_key(|(key, _)| *key);
                labels.sort_unstable();
                labels.dedup_by_key(|(key, _)| *key);
                let text = |at: u8| texts[usize::from(at)];
                let label =
                    |&(key, value): &(u8, u8)| Label { key: text(key), value: LabelValue::Text(text(value)) };
                tables.intern_labels(&labels.iter().map(label).collect::<Vec<_>>()).unwrap()
            });
            time_us += if *timed { delta_us } else { &0 };
            let (time_ns, delta_us) =
                if *timed { (Some(time_us * 1000), Some(*delta_us)) } else { (None, None) };
            let sample = Sample {
                stack,
                count: *count,
                time_ns,
                delta_us,
                process: *process,
                labels,
                ..Sample::default()
            };
            let _ = sink.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
        }
    }
    sink.finish(&tables).unwrap();
}

/// The calls of a log, without what the format need not keep: the positions of segments, empty label sets, the grouping
/// of equal neighbours without times, and runs with times.
fn comparable(log: &Log) -> Vec<(String, u64)> {
    let mut rows: Vec<(String, u64)> = Vec::new();
    for call in &log.calls {
        if let Some(segment) = call.strip_prefix("segment rbt ") {
            let words: Vec<_> = segment.split(' ').collect();
            rows.push((format!("segment {} {} {}", words[0], words[2], words[3]), 0));
            continue;
        }
        let (frames, rest) = call.split_once("] x").unwrap();
        let (count, rest) = rest.split_once(' ').unwrap();
        let row = format!("{frames} {}", rest.replace("Some([])", "None"));
        match rows.last_mut() {
            Some((last, total)) if *last == row && row.contains(" None None None ") => {
                *total += count.parse::<u64>().unwrap();
            }
            _ if rest.starts_with("None") => rows.push((row, count.parse().unwrap())),
            _ => rows.extend(singles(&row, count.parse().unwrap())),
        }
    }
    rows
}

/// The samples of a run with times: all but the first take no time.
fn singles(row: &str, count: u64) -> Vec<(String, u64)> {
    // The frames, the time, and from the difference on.
    let (frames, times) = row.split_once(" Some(").unwrap();
    let (time, rest) = times.split_once(' ').unwrap();
    let (_, rest) = rest.split_once(' ').unwrap();
    let later = format!("{frames} Some({time} Some(0) {rest}");
    let first = std::iter::once((row.to_owned(), 1));
    first.chain((1..count).map(|_| (later.clone(), 1))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_profile_survives_a_round_trip(segments in segments()) {
        let (mut wanted, mut found, mut bytes) = (Log::default(), Log::default(), Vec::new());
        play(&segments, &mut wanted);
        let mut exporter = Exporter::new(&mut bytes, ExportOptions::default());
        play(&segments, &mut exporter);
        prop_assert_eq!(exporter.losses().to_string(), "");
        drop(exporter);
        let recovery = import_into(&bytes, &mut found);
        prop_assert!(recovery.is_clean(), "{:?}", recovery.warnings);
        prop_assert_eq!(comparable(&found), comparable(&wanted));
    }
}

#[test]
fn the_last_of_labels_with_equal_keys_is_kept_and_the_others_are_counted() {
    let mut tables = Tables::default();
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default());
    let segment = Segment::default();
    exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
    for keys in [["a", "b"], ["a", "a"]] {
        let mut intern = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
        let labels = keys.map(|key| Label { key: intern(key), value: LabelValue::Text(intern("x")) });
        let labels = Some(tables.intern_labels(&labels).unwrap());
        let at = Context { tables: &tables, segment: &segment };
        let _ = exporter.sample(at, &Sample { count: 3, labels, ..Sample::default() }).unwrap();
    }
    assert_eq!(exporter.losses().to_string(), "annotations with repeated keys dropped: 3");
}

#[test]
fn a_long_class_does_not_stand_in_the_names_of_many_methods() {
    let class = "c".repeat(400_000);
    let names: Vec<_> = (0..200).map(|number| format!("{class}::m{number}")).collect();
    let header = rbt::Header { has_timestamps: false, period_us: 0 };
    let mut writer = rbt::Writer::new(Vec::new(), header).unwrap();
    for name in &names {
        writer.write_trace(&[rbt::FrameDef::php(name, "/a.php", 1)]).unwrap();
    }
    let bytes = writer.finish().unwrap();
    assert!(bytes.len() < 500_000);
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        let (mut tables, mut log) = (Tables::default(), Log::default());
        let error = import(&bytes[..], &options, &mut tables, &mut log).unwrap_err().to_string();
        assert!(error.starts_with("names too long: expected at most 67108864 bytes"), "{error}");
        assert!(error.contains("at byte 0x6"), "{error}");
        // Stacks before that are read.
        assert_eq!(log.calls.len(), 1 + 167);
    }
}
