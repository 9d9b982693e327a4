//! What a sink is told, and when nothing more.

use std::io;
use std::ops::ControlFlow;

use borehole_formats::trc::import;
use borehole_formats::{ReadError, ReadOptions};
use borehole_model::{Context, Event, ProfileSink, Sample, Tables, Warning};

use super::stream::Stream;

/// The calls that a sink gets, of which one fails.
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
    let spool = io::Cursor::new(Vec::new());
    import(bytes, &ReadOptions::lenient(), spool, &mut Tables::default(), sink).err()
}

/// A sample, an event that is none, of an input of its own, and damage at the end.
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

#[test]
fn common_labels_are_what_they_were_after_an_error_of_the_sink() {
    let mut tables = Tables::default();
    let spool = io::Cursor::new(Vec::new());
    let mut sink = Calls::new(true, "warning");
    import(damaged().as_slice(), &ReadOptions::lenient(), spool, &mut tables, &mut sink).unwrap_err();
    assert_eq!(tables.set_common_labels(Vec::new()), []);
}

#[test]
fn a_batch_whose_header_is_mended_is_a_segment_of_its_own() {
    let batch = |stream: Stream| stream.schema(1, "E", 0, &[]).untimed(1, &[]);
    let mut stream = batch(batch(Stream::new()).header());
    let second = stream.0.len() / 2 - 2;
    let at = stream.0[second..].iter().position(|&byte| byte == b'T').unwrap() + second;
    stream.0[at + 2] = b'c';
    let mut sink = Calls::new(true, "");
    assert!(told(&stream.0, &mut sink).is_none());
    assert_eq!(sink.calls, ["segment 0", "event", "segment 1", "event", "warning"]);
}
