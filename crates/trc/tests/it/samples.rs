//! Samples made of a trace's events, and profiles converted through a trace.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::rbt;
use borehole_model::{Context, LabelValue, ProfileSink, Sample, Segment, Tables};
use borehole_testkit::read_corpus;
use borehole_trc::ReadOptions;
use borehole_trc::{Event, Export as _, ExportOptions, Exporter, Reader, Value, import};

use super::input;

/// Samples as lines: `root;leaf file:line xCOUNT @time pid tid {labels} period`.
#[derive(Default)]
struct Lines(Vec<String>);

impl ProfileSink for Lines {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let frames = at.tables.frames_leaf_first(sample.stack).map(|frame| {
            let frame = at.tables.frame(frame);
            let line = frame.line.filter(|&line| line > 0);
            // A trace has one field for both.
            let file = frame.file.or(frame.native.map(|native| native.module));
            format!("{} {:?}:{line:?}", text(frame.function), file.map(text).unwrap_or_default())
        });
        let frames: Vec<_> = frames.collect();
        let labels = sample.labels.map(|labels| {
            let value = |value| match value {
                LabelValue::Text(id) => text(id),
                LabelValue::Number { value, .. } => value.to_string(),
            };
            at.tables
                .labels(labels)
                .iter()
                .map(|label| (text(label.key), value(label.value)))
                .collect::<Vec<_>>()
        });
        let process = at.process(sample);
        self.0.push(format!(
            "{} x{} @{:?} {process:?} {:?} {labels:?} {:?}",
            frames.join(";"),
            sample.count,
            sample.time_ns,
            sample.thread,
            at.segment.period_ns
        ));
        Ok(ControlFlow::Continue(()))
    }
}

/// The samples of an `rbt` file, directly and through a trace.
fn through_a_trace(name: &str) -> (Vec<String>, Vec<String>) {
    let bytes = read_corpus(name);
    let options = ReadOptions::default();
    let mut direct = Lines::default();
    rbt::import(bytes.as_slice(), &options, &mut Tables::default(), &mut direct).unwrap();
    let mut trace = Vec::new();
    let mut tables = Tables::default();
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    rbt::import(bytes.as_slice(), &options, &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let mut back = Lines::default();
    import(trace.as_slice(), &options, io::Cursor::new(Vec::new()), &mut Tables::default(), &mut back)
        .unwrap();
    (direct.0, back.0)
}

#[test]
fn a_profile_keeps_stacks_counts_times_processes_labels_and_periods_through_a_trace() {
    let mut samples = 0;
    for name in
        ["annotations", "annotations_ts", "daemon_worker", "native", "pid_samples", "run_of_3", "unicode"]
    {
        let (direct, back) = through_a_trace(&format!("rbt/{name}.rbt"));
        assert_eq!(back, direct, "{name}");
        samples += direct.len();
    }
    assert!(samples > 30, "{samples}");
}

/// The parts of an event that the search below needs.
struct Seen {
    name: String,
    time_ns: u64,
    numbers: BTreeMap<String, u64>,
    texts: BTreeMap<String, String>,
    stack: Vec<u64>,
}

impl Seen {
    fn new(event: &Event<'_>) -> Self {
        let mut seen = Self {
            name: event.name().to_owned(),
            time_ns: event.timestamp_ns().unwrap_or_default(),
            numbers: BTreeMap::new(),
            texts: BTreeMap::new(),
            stack: Vec::new(),
        };
        for (name, value) in event.fields() {
            match value {
                Value::Unsigned(number) => drop(seen.numbers.insert(name.to_owned(), number)),
                Value::PooledText { text: Some(text), .. } => {
                    drop(seen.texts.insert(name.to_owned(), text.to_owned()));
                }
                Value::PooledStack { stack: Some(stack), .. } => seen.stack = stack.addresses().collect(),
                _ => {}
            }
        }
        seen
    }
}

/// The state at `time_ns` in the lane of `key`: the last of `begins` at or before it, unless one of `ends` follows in
/// between.
fn at(events: &[Seen], time_ns: u64, key: (&str, u64), begins: &str, ends: &str, what: &str) -> Option<u64> {
    let in_lane = |event: &&Seen| {
        event.numbers.get(key.0) == Some(&key.1) && (event.name == begins || event.name == ends)
    };
    let before = events.iter().filter(in_lane).filter(|event| event.time_ns <= time_ns);
    let last = before.max_by_key(|event| event.time_ns)?;
    (last.name == begins || last.time_ns == time_ns).then(|| last.numbers.get(what).copied())?
}

#[test]
fn samples_have_the_symbols_worker_and_task_that_a_search_over_all_events_finds() {
    let bytes = input("real_057_blocked.bin.gz");
    let mut events = Vec::new();
    Reader::new(bytes.as_slice()).for_each_event(|event| events.push(Seen::new(event))).unwrap();
    let mut symbols: BTreeMap<u64, BTreeMap<u64, &str>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "SymbolTableEntry") {
        let depth = event.numbers["inline_depth"];
        symbols.entry(event.numbers["addr"]).or_default().insert(depth, &event.texts["symbol_name"]);
    }
    let mut expected = Vec::new();
    for event in events.iter().filter(|event| event.name == "CpuSampleEvent" && event.numbers["source"] == 0)
    {
        let mut frames = Vec::new();
        for address in &event.stack {
            match symbols.get(address) {
                Some(names) => frames.extend(names.values().rev().map(|name| (*name).to_owned())),
                None => frames.push(format!("{address:#x}")),
            }
        }
        let thread = event.numbers["tid"];
        let worker =
            at(&events, event.time_ns, ("tid", thread), "WorkerUnparkEvent", "WorkerParkEvent", "worker_id");
        let poll = |worker| {
            at(&events, event.time_ns, ("worker_id", worker), "PollStartEvent", "PollEndEvent", "task_id")
        };
        expected.push((event.time_ns, thread, frames, worker, worker.and_then(poll)));
    }
    let mut found = Found::default();
    import(
        bytes.as_slice(),
        &ReadOptions::default(),
        io::Cursor::new(Vec::new()),
        &mut Tables::default(),
        &mut found,
    )
    .unwrap();
    assert!(
        expected.iter().any(|sample| sample.3.is_some()) && expected.iter().any(|sample| sample.4.is_some())
    );
    assert_eq!(found.0.len(), expected.len());
    for (found, expected) in found.0.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

/// Time, thread, names (leaf first), worker and task.
type FoundSample = (u64, u64, Vec<String>, Option<u64>, Option<u64>);

#[derive(Default)]
struct Found(Vec<FoundSample>);

impl ProfileSink for Found {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let names =
            at.tables.frames_leaf_first(sample.stack).map(|frame| text(at.tables.frame(frame).function));
        let labels = at.tables.labels(sample.labels.unwrap());
        let label = |key: &str| {
            labels.iter().find(|label| text(label.key) == key).map(|label| match label.value {
                LabelValue::Number { value, .. } => value.cast_unsigned(),
                LabelValue::Text(_) => panic!("{key} is a number"),
            })
        };
        let time_ns = sample.time_ns.unwrap().cast_unsigned();
        self.0.push((time_ns, sample.thread.unwrap(), names.collect(), label("worker"), label("task")));
        Ok(ControlFlow::Continue(()))
    }
}

/// A sample whose clock begins when that of a trace stands at 60 s, in a trace with those events: its time, the number of clocks in
/// the trace, and the losses.
fn merged(is_profile_first: bool) -> (Option<u64>, usize, String) {
    const LATER_NS: i64 = 60_000_000_000;
    let bytes = input("real_057_blocked.bin.gz");
    let mut reader = Reader::new(bytes.as_slice());
    let start_unix_ns = loop {
        let event = reader.next_event().unwrap().unwrap();
        if let (Some(Value::Unsigned(unix_ns)), Some(time_ns)) =
            (event.value_of("realtime_ns"), event.timestamp_ns())
        {
            break i64::try_from(unix_ns - time_ns).unwrap();
        }
    };
    let (mut trace, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    let put_profile = |exporter: &mut Exporter<_>, tables: &mut Tables| {
        let segment =
            Segment { start_unix_ns: Some(start_unix_ns + LATER_NS), has_times: true, ..Segment::default() };
        let at = Context { tables, segment: &segment };
        exporter.segment(at).unwrap();
        let sample = Sample { count: 77, time_ns: Some(5), thread: Some(7), ..Sample::default() };
        let _ = exporter.sample(at, &sample).unwrap();
    };
    if is_profile_first {
        put_profile(&mut exporter, &mut tables);
    }
    let spool = io::Cursor::new(Vec::new());
    import(bytes.as_slice(), &ReadOptions::default(), spool, &mut tables, &mut exporter).unwrap();
    if !is_profile_first {
        put_profile(&mut exporter, &mut tables);
    }
    exporter.finish(&tables).unwrap();
    let losses = format!("{:?}", exporter.losses());
    drop(exporter);
    let (mut reader, mut found, mut clocks) = (Reader::new(trace.as_slice()), None, 0);
    while let Some(event) = reader.next_event().unwrap() {
        clocks += usize::from(event.name() == "ClockSyncEvent");
        if matches!(event.value_of("count"), Some(Value::Unsigned(77))) {
            found = event.timestamp_ns();
        }
    }
    (found, clocks, losses)
}

#[test]
fn samples_of_a_profile_are_on_the_clock_of_the_events_before_them() {
    let (time_ns, clocks, losses) = merged(false);
    assert_eq!((time_ns, losses.contains("clocks")), (Some(60_000_000_005), false), "{losses}");
    let (time_ns, with_own, losses) = merged(true);
    assert_eq!((time_ns, with_own, losses.contains("clocks")), (Some(5), clocks + 1, true), "{losses}");
}
