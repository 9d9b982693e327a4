//! perf script: its real output, compared with the sums of perf report, and read by another program.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::perf_script::{self, Exporter, MOST_EVENTS};
use borehole_formats::{Export as _, OnDamage, Position, ReadError, ReadOptions};
use borehole_model::{
    Context, LabelValue, ProfileSink, Recovery, Sample, Segment, StringId, Tables, Thread, ThreadNames,
};
use borehole_testkit::read_corpus;

/// A sample without tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PerfSample {
    name: String,
    process: Option<i64>,
    thread: Option<u64>,
    cpu: Option<i64>,
    time_ns: Option<i64>,
    /// Its values that are not 0.
    values: Vec<(String, i64)>,
    /// `FUNCTION+OFFSET MODULE FILE:LINE`, as far as it is known.
    frames_leaf_first: Vec<String>,
}

#[derive(Default)]
struct Collect {
    samples: Vec<PerfSample>,
    names: ThreadNames,
    segments: u64,
}

impl ProfileSink for Collect {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let tables = at.tables;
        let text = |id: StringId| String::from_utf8_lossy(tables.string(id)).into_owned();
        let frame_text = |id| {
            let frame = tables.frame(id);
            let offset = frame.native.and_then(|native| native.offset);
            let offset = offset.map_or(String::new(), |offset| format!("+{offset:#x}"));
            let module = frame.native.map_or(String::new(), |native| format!(" {}", text(native.module)));
            let line = frame.line.map_or(String::new(), |line| format!(":{line}"));
            let file = frame.file.map_or(String::new(), |file| format!(" {}{line}", text(file)));
            format!("{}{offset}{module}{file}", text(frame.function))
        };
        let labels = sample.labels.map_or(&[][..], |labels| tables.labels(labels));
        let number = |value: LabelValue| match value {
            LabelValue::Number { value, .. } => Some(value),
            LabelValue::Text(_) => None,
        };
        let kinds = at.segment.value_types.iter().map(ToString::to_string);
        let values = kinds.zip(sample.values.iter().copied()).filter(|&(_, value)| value != 0);
        let name = at.thread(sample).and_then(|thread| self.names.of(thread));
        self.samples.push(PerfSample {
            name: name.map_or(String::new(), |&name| text(name)),
            process: sample.process,
            thread: sample.thread,
            cpu: labels.iter().find_map(|label| number(label.value)),
            time_ns: sample.time_ns,
            values: values.collect(),
            frames_leaf_first: tables.frames_leaf_first(sample.stack).map(frame_text).collect(),
        });
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, _at: Context<'_>) -> io::Result<()> {
        self.segments += 1;
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.names.name(thread, name);
        Ok(())
    }
}

fn read_with(text: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), ReadError> {
    let mut collect = Collect::default();
    let recovery = perf_script::import(text, options, &mut Tables::default(), &mut collect)?;
    Ok((collect, recovery))
}

fn read(text: &[u8]) -> Vec<PerfSample> {
    let (collect, recovery) = read_with(text, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect.samples
}

fn rewritten(text: &[u8], asked: Option<&str>) -> (Vec<u8>, String) {
    let mut output = Vec::new();
    let mut exporter = Exporter::new(&mut output, asked);
    let mut tables = Tables::default();
    perf_script::import(text, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (output, losses)
}

/// Periods and samples by event, thread name, file name of the module, and function, as `perf report` prints them.
type ReportSums = BTreeMap<(String, String, String, String), (i64, u64)>;

fn report_sums(name: &str) -> ReportSums {
    let text = String::from_utf8(read_corpus(&format!("perf/{name}.report.txt")).to_vec()).unwrap();
    let mut sums = ReportSums::new();
    let mut event = String::new();
    for line in text.lines() {
        if let Some((_, name)) = line.split_once(" of event '") {
            event = name.trim_end_matches('\'').to_owned();
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ([period, samples, name, module, symbol], false) = (&cells[..], line.starts_with('#')) {
            let symbol = symbol.split_once("] ").unwrap().1;
            let key = (event.clone(), (*name).to_owned(), (*module).to_owned(), symbol.to_owned());
            sums.insert(key, (period.parse().unwrap(), samples.parse().unwrap()));
        }
    }
    assert!(!sums.is_empty(), "{name}");
    sums
}

fn own_sums(samples: &[PerfSample]) -> ReportSums {
    let mut sums = ReportSums::new();
    for sample in samples {
        let (kind, value) = &sample.values[0];
        let (function, module) = sample.frames_leaf_first[0].rsplit_once(' ').unwrap();
        let function = function.split_once("+0x").map_or(function, |(function, _)| function);
        let module = module.rsplit('/').next().unwrap();
        let event = kind.rsplit_once('/').unwrap().0;
        let key = [event, &sample.name, module, function].map(str::to_owned);
        let sum = sums.entry(key.into()).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    sums
}

#[test]
fn sums_are_those_of_perf_report() {
    for name in ["threads", "flat", "switches"] {
        let samples = read(&read_corpus(&format!("perf/{name}.perf")));
        assert_eq!(own_sums(&samples), report_sums(name), "{name}");
    }
}

#[test]
fn clocks_are_times_and_other_events_are_counted() {
    let (collect, _) = read_with(&read_corpus("perf/threads.perf"), &ReadOptions::default()).unwrap();
    let kinds = |kind: &str| {
        let has_kind = |sample: &&PerfSample| sample.values[0].0 == kind;
        collect.samples.iter().filter(has_kind).count()
    };
    assert_eq!((kinds("cpu-clock/nanoseconds"), kinds("page-faults/count")), (63, 5));
    assert_eq!(collect.segments, 1);
}

#[test]
fn inlined_functions_have_lines_and_no_module() {
    let samples = read(&read_corpus("perf/inlined.perf"));
    let first = &samples[0];
    let facts = (first.process, first.thread, first.cpu, first.time_ns);
    assert_eq!(facts, (Some(11974), Some(11974), Some(1), Some(1_846_080_496_000)));
    assert_eq!(
        first.frames_leaf_first,
        [
            "mix work.c:5",
            "hot+0x34 /tmp/perfwork/work work.c:6",
            "main+0x2b /tmp/perfwork/work work.c:11",
            "__libc_start_call_main+0x79 /usr/lib/x86_64-linux-gnu/libc.so.6 libc-start.c:58",
            "__libc_start_main_impl libc-start.c:360",
            "_start+0x20 /tmp/perfwork/work",
        ]
    );
}

#[test]
fn written_samples_read_as_the_same_ones() {
    for name in ["threads", "inlined", "flat", "switches"] {
        let text = read_corpus(&format!("perf/{name}.perf"));
        let (output, losses) = rewritten(&text, None);
        let read_again = read(&output);
        assert_eq!(read_again, read(&text), "{name}");
        assert_eq!(losses, "", "{name}");
    }
}

#[test]
fn one_event_can_be_asked_for() {
    let text = read_corpus("perf/threads.perf");
    let (output, losses) = rewritten(&text, Some("page-faults"));
    assert_eq!(read(&output).len(), 5);
    assert_eq!(losses, "other values of samples dropped: 63");
}

#[test]
#[cfg(feature = "flamegraph")]
fn another_reader_folds_the_written_text_as_perfs_own() {
    use inferno::collapse::Collapse as _;
    let fold = |text: &[u8]| {
        let mut folded = Vec::new();
        inferno::collapse::perf::Folder::default().collapse(text, &mut folded).unwrap();
        String::from_utf8(folded).unwrap()
    };
    let text = read_corpus("perf/threads.perf");
    let (output, _) = rewritten(&text, None);
    assert_eq!(fold(&output), fold(&text));
    // Of perf's own text of these samples it makes two stacks, because it takes their switches for something else.
    let (output, _) = rewritten(&read_corpus("perf/switches.perf"), None);
    let counts = fold(&output);
    let counts = counts.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 44);
}

#[test]
fn samples_that_count_are_written_that_often() {
    let mut output = Vec::new();
    let mut exporter = Exporter::new(&mut output, None);
    let mut tables = Tables::default();
    let name = tables.intern_string(b"a 1 2.0: cycles: x").unwrap();
    let segment = Segment { period_ns: Some(5), ..Segment::default() };
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    exporter.thread(at, Thread { process: Some(7), number: 8 }, name).unwrap();
    let sample = Sample { count: 2, process: Some(7), thread: Some(8), ..Sample::default() };
    let _ = exporter.sample(at, &sample).unwrap();
    let too_many = Sample { count: perf_script::LONGEST_RUN + 1, ..sample };
    let error = exporter.sample(at, &too_many).unwrap_err().to_string();
    assert!(error.starts_with("too many equal samples for perf-script text"), "{error}");
    exporter.finish(&tables).unwrap();
    assert_eq!(exporter.losses().to_string(), "special characters in names dropped: 1");
    drop(exporter);
    let samples = read(&output);
    assert_eq!(samples.len(), 2);
    assert_eq!((&*samples[0].name, samples[0].thread), ("a_1_2.0:_cycles:_x", Some(8)));
    assert_eq!(samples[0].values, [("wall-clock/nanoseconds".to_owned(), 5)]);
}

#[test]
fn events_beyond_the_limit_only_count() {
    let mut text = String::new();
    for event in 0..=MOST_EVENTS {
        text += &format!("php 7 [000] 1.0: 5 event{event}: \n\t 1 f+0x1 (/php)\n\n");
    }
    let samples = read(text.as_bytes());
    let without_values = samples.iter().filter(|sample| sample.values.is_empty()).count();
    assert_eq!((samples.len(), without_values), (MOST_EVENTS + 1, 1));
    assert_eq!(samples[MOST_EVENTS - 1].values, [(format!("event{}/count", MOST_EVENTS - 1), 5)]);
}

#[test]
fn damage_is_located_and_costs_a_line() {
    let text = b"php 7 1.0: 5 cycles: \n\t 1 f+0x1 (/php)\nnonsense\n\t 2 g (/php)\n\n";
    let Err(ReadError::Input(error)) = read_with(text, &ReadOptions::default()) else { panic!() };
    assert_eq!(error.position(), Position::Line(3));
    let options = ReadOptions { on_damage: OnDamage::ReadOn, ..ReadOptions::default() };
    let (collect, recovery) = read_with(text, &options).unwrap();
    assert_eq!(collect.samples[0].frames_leaf_first, ["f+0x1 /php", "g /php"]);
    assert_eq!((recovery.warnings.len(), recovery.lost_bytes), (1, 8));
}

#[test]
fn every_prefix_and_changed_byte_is_read() {
    let text = read_corpus("perf/threads.perf");
    let text = &text[..1200];
    let options = ReadOptions { on_damage: OnDamage::ReadOn, ..ReadOptions::default() };
    let whole = read_with(text, &options).unwrap().0.samples.len();
    for cut in 0..text.len() {
        let (collect, _) = read_with(&text[..cut], &options).unwrap();
        assert!(collect.samples.len() <= whole);
    }
    for at in 0..text.len() {
        for byte in [0, b' ', b'\n', b':', b'9', 0xff] {
            let mut changed = text.to_vec();
            changed[at] = byte;
            let (collect, recovery) = read_with(&changed, &options).unwrap();
            assert!(collect.samples.len() + recovery.warnings.len() + 1 >= whole, "{at} {byte}");
        }
    }
}
