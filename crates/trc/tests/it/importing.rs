//! The calls that a sink gets, and when they stop.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, Label, LabelValue, ProfileSink, Recovery, Sample, Segment, StringId, Tables, Tee,
    Thread, Warning,
};
use borehole_trc::{Export as _, ReadError, ReadOptions};
use borehole_trc::{ExportOptions, Exporter, import};

use super::stream::Stream;

/// A sink that records calls, one of which fails.
struct Calls {
    keeps_events: bool,
    fails_at: &'static str,
    calls: Vec<String>,
}

impl Calls {
    fn new(keeps_events: bool, fails_at: &'static str) -> Self {
        Self { keeps_events, fails_at, calls: Vec::new() }
    }

    fn call(&mut self, name: &str, detail: &str) -> io::Result<()> {
        self.calls.push(format!("{name}{detail}"));
        if name == self.fails_at { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl ProfileSink for Calls {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.call("sample", "")?;
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, _: Context<'_>, _: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.call("event", "")?;
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        self.keeps_events
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.call("source", &format!(" {name:?}"))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.call("segment", &format!(" {}", at.segment.index))
    }

    fn warning(&mut self, _: &Warning) -> io::Result<()> {
        self.call("warning", "")
    }
}

fn told(bytes: &[u8], sink: &mut Calls) -> Option<ReadError> {
    told_of(bytes, sink).err()
}

fn told_of(bytes: &[u8], sink: &mut dyn ProfileSink) -> Result<Recovery, ReadError> {
    let spool = io::Cursor::new(Vec::new());
    import(bytes, &ReadOptions::lenient(), spool, &mut Tables::default(), sink)
}

/// A sample and another event of one input, and damage at the end.
fn damaged() -> Vec<u8> {
    let stream =
        Stream::new().schema(1, "borehole:input", 0, &[("input", 4)]).schema(2, "AllocEvent", 0, &[]);
    let input = stream.schema(3, "E", 0, &[]).untimed(1, &[1, 0, 0, 0, b'a']);
    input.untimed(2, &[]).untimed(3, &[]).bytes(&[0xee; 9]).0
}

#[test]
fn after_an_error_of_the_sink_it_gets_nothing_more() {
    let mut whole = Calls::new(true, "");
    assert!(told(&damaged(), &mut whole).is_none());
    let all = ["segment 0", "source \"a\"", "event", "event", "warning", "source \"\""];
    assert_eq!(whole.calls, all);
    for (fails_at, calls) in [("segment", 1), ("source", 2), ("event", 3), ("warning", 5)] {
        let mut sink = Calls::new(true, fails_at);
        assert!(matches!(told(&damaged(), &mut sink), Some(ReadError::Sink(_))), "{fails_at}");
        assert_eq!(sink.calls, all[..calls], "{fails_at}");
    }
    let mut sink = Calls::new(false, "event");
    assert!(matches!(told(&damaged(), &mut sink), Some(ReadError::Sink(_))));
    assert_eq!(sink.calls.last().unwrap(), "event");
}

/// Two samples and another event.
fn samples_and_an_event() -> Vec<u8> {
    let (tables, mut trace) = (Tables::default(), Vec::new());
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    let segment = Segment::default();
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    for time_ns in [5, 6] {
        let sample = Sample { count: 1, time_ns: Some(time_ns), ..Sample::default() };
        let _ = exporter.sample(at, &sample).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    trace.extend(Stream::new().schema(1, "E", 0, &[]).untimed(1, &[]).0);
    trace
}

#[test]
fn other_sinks_get_samples_beside_a_sink_of_events() {
    let trace = samples_and_an_event();
    let mut alone = Calls::new(false, "");
    told_of(&trace, &mut alone).unwrap();
    assert_eq!(alone.calls.iter().filter(|call| *call == "sample").count(), 2, "{:?}", alone.calls);
    for keeps_events in [[true, false], [false, true]] {
        let [first, second] = keeps_events.map(|keeps_events| Calls::new(keeps_events, ""));
        let mut tee = Tee::new(first, second);
        told_of(&trace, &mut tee).unwrap();
        let (first, second) = tee.into_parts();
        assert_eq!([&first.calls, &second.calls], [&alone.calls; 2]);
    }
}

#[test]
fn only_events_passed_to_the_sink_are_counted() {
    for (trace, kept, otherwise) in [(samples_and_an_event(), None, 1), (damaged(), Some(2), 1)] {
        for (keeps_events, expected) in [(true, kept), (false, Some(otherwise))] {
            let mut sink = Calls::new(keeps_events, "");
            let recovery = told_of(&trace, &mut sink).unwrap();
            let got = sink.calls.iter().filter(|call| *call == "event").count() as u64;
            assert_eq!(recovery.events, got, "{:?}", sink.calls);
            assert_eq!(got, expected.unwrap_or(got));
        }
    }
}

#[test]
fn common_labels_are_what_they_were_after_an_error_of_the_sink() {
    let mut tables = Tables::default();
    let spool = io::Cursor::new(Vec::new());
    let mut sink = Calls::new(true, "warning");
    import(damaged().as_slice(), &ReadOptions::lenient(), spool, &mut tables, &mut sink).unwrap_err();
    assert_eq!(tables.set_common_labels(Vec::new()), []);
}

#[test]
fn a_batch_with_a_repaired_header_is_a_segment() {
    let batch = |stream: Stream| stream.schema(1, "E", 0, &[]).untimed(1, &[]);
    let mut stream = batch(batch(Stream::new()).header());
    let second = stream.0.len() / 2 - 2;
    let at = stream.0[second..].iter().position(|&byte| byte == b'T').unwrap() + second;
    stream.0[at + 2] = b'c';
    let mut sink = Calls::new(true, "");
    assert!(told(&stream.0, &mut sink).is_none());
    assert_eq!(sink.calls, ["segment 0", "event", "segment 1", "event", "warning"]);
}

/// The times, threads and names of samples after a round trip.
#[derive(Default)]
struct Back {
    samples: Vec<(Option<i64>, Option<u64>)>,
    names: Vec<(u64, String)>,
    starts: Vec<Option<i64>>,
    /// The values of each sample's segment.
    metadata: Vec<Vec<String>>,
}

impl ProfileSink for Back {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.starts.push(at.segment.start_unix_ns);
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        self.metadata.push(at.segment.metadata.iter().map(|&(_, value)| text(value)).collect());
        self.samples.push((sample.time_ns, sample.thread));
        Ok(ControlFlow::Continue(()))
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.names.push((thread.number, String::from_utf8_lossy(at.tables.string(name)).into_owned()));
        Ok(())
    }
}

fn back(trace: &[u8]) -> Back {
    let mut back = Back::default();
    let spool = io::Cursor::new(Vec::new());
    import(trace, &ReadOptions::default(), spool, &mut Tables::default(), &mut back).unwrap();
    back
}

#[test]
fn inputs_written_one_after_the_other_have_the_clock_of_the_first() {
    const SECOND: i64 = 1_000_000_000;
    let tables = Tables::default();
    let mut trace = Vec::new();
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    for (start, times) in [(100, [5, 6]), (160, [-7, 8]), (90, [3, 10 * SECOND])] {
        let segment = Segment { start_unix_ns: Some(start * SECOND), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        for time_ns in times {
            let sample = Sample { count: 1, time_ns: Some(time_ns), ..Sample::default() };
            let _ = exporter.sample(at, &sample).unwrap();
        }
    }
    exporter.finish(&tables).unwrap();
    assert_eq!(exporter.losses().to_string(), "times before the clock's origin dropped: 1");
    drop(exporter);
    let back = back(&trace);
    assert_eq!(back.starts, [Some(100 * SECOND); 6]);
    let times: Vec<_> = back.samples.iter().map(|(time_ns, _)| *time_ns).collect();
    let later = [60 * SECOND - 7, 60 * SECOND + 8].map(Some);
    assert_eq!(times, [Some(5), Some(6), later[0], later[1], None, Some(0)]);
}

#[test]
fn segments_keep_their_metadata() {
    let mut tables = Tables::default();
    let [key, a, b] = [b"host", b"a---", b"b---"].map(|text| tables.intern_string(text).unwrap());
    let hosts = [[vec![a], vec![b], vec![]], [vec![], vec![a], vec![a, b]]];
    let cases = hosts.into_iter().flat_map(|hosts| [Some(7), None].map(|process| (hosts.clone(), process)));
    for (hosts, process) in cases {
        let mut trace = Vec::new();
        let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
        for (index, hosts) in (0..).zip(&hosts) {
            let metadata = hosts.iter().map(|&host| (key, host)).collect();
            let segment = Segment { index, process, metadata, ..Segment::default() };
            exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
            // A sample without a process does not end other facts.
            for process in [process, None] {
                let segment = Segment { process, ..segment.clone() };
                let at = Context { tables: &tables, segment: &segment };
                let _ = exporter.sample(at, &Sample { count: 1, ..Sample::default() }).unwrap();
            }
        }
        exporter.finish(&tables).unwrap();
        drop(exporter);
        let found = back(&trace).metadata;
        let text = |id| String::from_utf8_lossy(tables.string(id)).into_owned();
        let expected = hosts.iter().flat_map(|hosts| vec![hosts.iter().copied().map(text).collect(); 2]);
        assert_eq!(found, expected.collect::<Vec<Vec<String>>>());
    }
}

#[test]
fn sources_kept_apart_have_clocks_of_their_own() {
    let tables = Tables::default();
    let mut trace = Vec::new();
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    for (name, start) in [("a", 1000), ("b", 500)] {
        exporter.source(name).unwrap();
        let segment = Segment { start_unix_ns: Some(start), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &Sample { count: 1, time_ns: Some(5), ..Sample::default() }).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let back = back(&trace);
    assert_eq!(back.starts, [Some(1000), Some(500)]);
    assert!(back.samples.iter().all(|sample| sample.0 == Some(5)));
}

#[test]
fn thread_names_survive_and_losses_are_counted_in_samples() {
    let mut tables = Tables::default();
    let segment = Segment::default();
    let mut string = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let (name, key, unit) = (string("worker"), string("size"), string("bytes"));
    let broken = tables.intern_string(b"caf\xe9").unwrap();
    let frame = Frame { column: Some(3), end_line: Some(9), ..Frame::named(broken) };
    let frame = tables.intern_frame(&frame).unwrap();
    let stack = tables.intern_stack_leaf_first(&[frame]).unwrap();
    let value = LabelValue::Number { value: 5, unit: Some(unit) };
    let labels = Some(tables.intern_labels(&[Label { key, value }]).unwrap());
    let mut trace = Vec::new();
    let mut exporter = Exporter::new(&mut trace, ExportOptions::default());
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    exporter.thread(at, Thread { process: None, number: 7 }, name).unwrap();
    exporter.metadata(at, key, unit).unwrap();
    for thread in [7, 1 << 40] {
        let facts =
            Sample { stack, count: 3, thread: Some(thread), interpreter: Some(1), ..Sample::default() };
        let _ = exporter.sample(at, &Sample { time_ns: Some(-1), values: &[1], labels, ..facts }).unwrap();
    }
    exporter.finish(&tables).unwrap();
    let losses = [
        "times before the clock's origin dropped: 6",
        "thread ids dropped: 3",
        "interpreter ids dropped: 6",
        "measured values dropped: 6",
        "units of labels dropped: 6",
        "columns dropped: 1",
        "ends of expressions dropped: 1",
        "bytes outside UTF-8 (in names) dropped: 1",
        "metadata entries dropped: 1",
    ];
    assert_eq!(exporter.losses().to_string(), losses.join(", "));
    drop(exporter);
    let back = back(&trace);
    assert_eq!(back.names, [(7, "worker".to_owned())]);
    assert_eq!(back.samples, [(None, Some(7)), (None, None)]);
}

/// The values of all events, as bytes or text.
#[derive(Default)]
struct Values(Vec<String>);

impl ProfileSink for Values {
    fn event(&mut self, _: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.0.extend(event.values.iter().map(|value| format!("{value:?}")));
        Ok(ControlFlow::Continue(()))
    }

    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }
}

#[test]
fn text_that_is_not_utf8_is_counted_and_kept_in_maps() {
    let map = borehole_testkit::read_corpus("damage/trc-map-not-utf8.trc");
    let text = Stream::new().schema(1, "T", 0, &[("s", 4)]).untimed(1, &[2, 0, 0, 0, b'a', 0xe9]);
    let list = Stream::new().schema(1, "L", 0, &[("l", 14)]);
    let list = list.untimed(1, &[1, 0, 0, 0, 4, 2, 0, 0, 0, b'a', 0xe9]);
    let bytes = Stream::new().schema(1, "B", 0, &[("b", 5)]).untimed(1, &[2, 0, 0, 0, b'a', 0xe9]);
    for (bytes, holds, said) in [
        (map, "233", Some("invalid text in B: expected UTF-8, found other bytes in 3 texts, kept as bytes")),
        (
            text.0,
            "a\u{fffd}",
            Some("invalid text in T: expected UTF-8, found other bytes in 1 text, replaced with U+FFFD"),
        ),
        (
            list.0,
            "a\u{fffd}",
            Some("invalid text in L: expected UTF-8, found other bytes in 1 text, replaced with U+FFFD"),
        ),
        (bytes.0, "233", None),
    ] {
        let mut values = Values::default();
        let recovery = told_of(&bytes, &mut values).unwrap();
        let warnings: Vec<_> = recovery.warnings.iter().map(|warning| &*warning.message).collect();
        assert_eq!(warnings, Vec::from_iter(said));
        assert!(values.0.iter().any(|value| value.contains(holds)), "{:?}", values.0);
    }
}

#[test]
fn text_that_is_not_utf8_is_dropped_and_counted() {
    let map = borehole_testkit::read_corpus("damage/trc-map-not-utf8.trc");
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default());
    told_of(&map, &mut exporter).unwrap();
    assert_eq!(exporter.losses().to_string(), "bytes outside UTF-8 (in texts) dropped: 3");
}
