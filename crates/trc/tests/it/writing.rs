//! Events that a writer refuses, of which nothing is written, and the remains when the output fails.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use borehole_trc::ReadOptions;
use borehole_trc::{
    Definition, Dialect, FieldKind, FieldType, Invalid, Reader, Schema, ValueDef, WriteOptions, Writer,
};

use super::stream::read;

fn refused(outcome: io::Result<()>) -> String {
    let error = outcome.expect_err("it is refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Invalid>())
        .expect("the error has a reason")
        .to_string()
}

/// A value of each kind.
const VALUES: [(ValueDef<'static>, &[FieldKind]); 10] = [
    (ValueDef::Absent, &[]),
    (ValueDef::Unsigned(255), &[FieldKind::Varint, FieldKind::U8, FieldKind::U16, FieldKind::U32]),
    (ValueDef::Signed(-1), &[FieldKind::I64]),
    (ValueDef::Float(0.5), &[FieldKind::F64]),
    (ValueDef::Bool(true), &[FieldKind::Bool]),
    (ValueDef::Text("text"), &[FieldKind::String, FieldKind::PooledString]),
    (ValueDef::Bytes(b"bytes"), &[FieldKind::Bytes]),
    (ValueDef::Stack(&[1, 2]), &[FieldKind::Stack, FieldKind::PooledStack]),
    (ValueDef::TextMap(&[("k", "v")]), &[FieldKind::StringMap]),
    (ValueDef::List(&[ValueDef::Unsigned(1)]), &[FieldKind::List]),
];

fn one_field(field_type: FieldType) -> Schema {
    Schema::new("E", [("before", FieldType::required(FieldKind::String)), ("v", field_type)]).unwrap()
}

/// Writes an event, runs `attempt`, and writes another event. Returns the result of `attempt`. The stream contains the two
/// events.
fn between(attempt: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> String {
    let mark = Schema::new("Mark", [("n", FieldType::required(FieldKind::U8))]).unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.write_event(&mark, 10, &[ValueDef::Unsigned(1)]).unwrap();
    let said = refused(attempt(&mut writer));
    writer.write_event(&mark, 12, &[ValueDef::Unsigned(2)]).unwrap();
    let (events, error, recovery) = read(&writer.finish().unwrap(), ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean(), "{said}: {error:?}");
    assert_eq!(events, [r#"Mark @10 n={"uint":1}"#, r#"Mark @12 n={"uint":2}"#], "{said}");
    said
}

#[test]
fn a_value_of_another_type_is_refused_and_nothing_of_its_event_is_written() {
    let mut refusals = 0;
    for &kind in FieldKind::ALL {
        for (value, fits) in VALUES {
            if fits.contains(&kind) {
                continue;
            }
            let schema = one_field(FieldType::required(kind));
            let said = between(|writer| writer.write_event(&schema, 1 << 40, &[ValueDef::Text("b"), value]));
            assert!(said.starts_with(&format!("E: field v: expected {}, found ", kind.name())), "{said}");
            refusals += 1;
        }
    }
    assert_eq!(refusals, 15 * 10 - 14);
}

#[test]
fn a_number_wider_than_its_field_is_refused() {
    for (kind, bits) in [(FieldKind::U8, 8), (FieldKind::U16, 16), (FieldKind::U32, 32)] {
        for field_type in [FieldType::required(kind), FieldType::optional(kind)] {
            let schema = one_field(field_type);
            for number in [1_u64 << bits, u64::MAX] {
                let values = [ValueDef::Text("b"), ValueDef::Unsigned(number)];
                let said = between(|writer| writer.write_event(&schema, 5, &values));
                assert_eq!(said, format!("E: field v: expected {}, found {number}", kind.name()));
            }
        }
    }
}

#[test]
fn too_few_and_too_many_values_are_refused() {
    let schema = one_field(FieldType::optional(FieldKind::Varint));
    let text = ValueDef::Text("b");
    let say = |values: &[ValueDef<'_>]| between(|writer| writer.write_event(&schema, 5, values));
    assert_eq!(say(&[]), "E: missing values: expected 2, found 0");
    assert_eq!(say(&[text]), "E: missing values: expected 2, found 1");
    assert_eq!(say(&[text, ValueDef::Absent, text]), "E: too many values: expected 2, found more");
    assert_eq!(
        say(&[text, ValueDef::Absent, ValueDef::Absent]),
        "E: too many values: expected 2, found more"
    );
}

#[test]
fn a_time_that_the_schema_does_not_ask_for_is_refused_and_a_missing_one_too() {
    let untimed = Schema::define(Definition { name: "N".into(), ..Definition::default() }).unwrap();
    assert_eq!(between(|writer| writer.write_event(&untimed, 5, &[])), "N: expected no timestamp, found one");
    let timed = Schema::new("T", []).unwrap();
    assert_eq!(
        between(|writer| writer.write_event(&timed, None, &[])),
        "T: expected a timestamp, found none"
    );
}

#[test]
fn times_at_both_ends_of_the_clock_are_read_as_they_were_written() {
    let schema = Schema::new("T", []).unwrap();
    // The wrapping distance from the largest 64-bit number to the smallest is short, but events may not wrap.
    let times = [u64::MAX - 91, 1_000_007, u64::MAX, 0, 0, u64::MAX, u64::MAX, 16_777_214, 16_777_213];
    let mut writer = Writer::new(Vec::new());
    for time_ns in times {
        writer.write_event(&schema, time_ns, &[]).unwrap();
    }
    let (events, error, recovery) = read(&writer.finish().unwrap(), ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean(), "{error:?}");
    assert_eq!(events, times.map(|time_ns| format!("T @{time_ns}")));
}

#[test]
fn absent_elements_and_lists_too_deep_are_refused() {
    let schema = one_field(FieldType::required(FieldKind::List));
    let say = |value| between(|writer| writer.write_event(&schema, 5, &[ValueDef::Text("b"), value]));
    let absent = say(ValueDef::List(&[ValueDef::Unsigned(1), ValueDef::Absent]));
    assert_eq!(absent, "E: element of a list: expected a value, found none");
    let nested = |levels: usize| {
        let empty: &'static [ValueDef<'static>] = &[];
        (1..levels).fold(ValueDef::List(empty), |inner, _| ValueDef::List(Box::leak(Box::new([inner]))))
    };
    assert_eq!(say(nested(33)), "E: too many nested lists: expected at most 32");
    let mut writer = Writer::new(Vec::new());
    writer.write_event(&schema, 5, &[ValueDef::Text("b"), nested(32)]).unwrap();
    let (events, error, _) = read(&writer.finish().unwrap(), ReadOptions::default());
    assert!(events.len() == 1 && error.is_none(), "{error:?}");
}

#[test]
fn an_event_that_is_not_finished_leaves_no_trace() {
    let schema = one_field(FieldType::required(FieldKind::PooledString));
    let mut writer = Writer::new(Vec::new());
    writer.write_event(&schema, 1, &[ValueDef::Text("a"), ValueDef::Text("x")]).unwrap();
    drop(writer.begin_event(&schema, 1 << 50).text("b").text("y"));
    writer.write_event(&schema, 2, &[ValueDef::Text("c"), ValueDef::Text("y")]).unwrap();
    let (events, error, recovery) = read(&writer.finish().unwrap(), ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean());
    let line = |at, text, id, name| format!(r#"E @{at} before="{text}" v={{"is":"{name}","pstr":{id}}}"#);
    assert_eq!(events, [line(1, "a", 0, "x"), line(2, "c", 1, "y")]);
}

#[test]
fn definitions_of_a_refused_event_come_before_the_next_event_or_never() {
    let schema = Schema::new(
        "E",
        [("v", FieldType::required(FieldKind::PooledString)), ("w", FieldType::required(FieldKind::U8))],
    )
    .unwrap();
    let mut writer = Writer::new(Vec::new());
    let values = |text, number| [ValueDef::Text(text), ValueDef::Unsigned(number)];
    refused(writer.write_event(&schema, 1, &values("x", 256)));
    writer.end_batch().unwrap();
    refused(writer.write_event(&schema, 2, &values("y", 256)));
    writer.write_event(&schema, 3, &values("y", 255)).unwrap();
    let trace = writer.finish().unwrap();
    assert!(!trace.contains(&b'x'));
    let (events, error, _) = read(&trace, ReadOptions::default());
    assert!(error.is_none());
    assert_eq!(events, [r#"E @3 v={"is":"y","pstr":0} w={"uint":255}"#]);
}

#[test]
fn returned_batches_equal_written_ones() {
    let schema = one_field(FieldType::required(FieldKind::PooledString));
    let write = |writer: &mut Writer<Vec<u8>>, at| {
        writer.write_event(&schema, at, &[ValueDef::Text("a"), ValueDef::Text("pooled")]).unwrap();
    };
    let mut writer = Writer::new(Vec::new());
    let mut batch = vec![1; 100_000];
    writer.exchange_batch(&mut batch);
    assert!(batch.is_empty());
    let mut handed_out = Vec::new();
    for at in 1..4 {
        write(&mut writer, at);
        let len = writer.pending_bytes();
        writer.exchange_batch(&mut batch);
        assert_eq!((batch.len(), writer.pending_bytes()), (len, 0));
        handed_out.extend_from_slice(&batch);
    }
    assert!(writer.finish().unwrap().is_empty());
    let mut writer = Writer::new(Vec::new());
    (1..4).for_each(|at| {
        write(&mut writer, at);
        writer.end_batch().unwrap();
    });
    assert_eq!(writer.finish().unwrap(), handed_out);
}

#[test]
fn a_reference_of_an_earlier_batch_is_refused() {
    let schema = one_field(FieldType::required(FieldKind::PooledString));
    between(|writer| {
        let string = writer.intern_string("s")?;
        writer.end_batch()?;
        writer.write_event(&schema, 5, &[ValueDef::Text("b"), ValueDef::Pooled(string)])
    });
}

#[test]
fn when_type_ids_are_exhausted_the_next_type_is_refused_and_known_ones_go_on() {
    let mut writer =
        Writer::with_options(Vec::new(), WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() });
    let schemas: Vec<_> = (0..65_536).map(|number| Schema::new(&number.to_string(), []).unwrap()).collect();
    schemas.iter().for_each(|schema| writer.write_event(schema, 1, &[]).unwrap());
    let one_more = Schema::new("one more", []).unwrap();
    let said = refused(writer.write_event(&one_more, 2, &[]));
    assert_eq!(said, "too many event types in one batch: expected at most 65536, no room for one more");
    writer.write_event(&schemas[0], 3, &[]).unwrap();
    let (events, error, _) = read(&writer.finish().unwrap(), ReadOptions::default());
    assert!(error.is_none(), "{error:?}");
    assert_eq!((events.len(), events[65_536].as_str()), (65_537, "0 @3"));
}

#[test]
fn the_old_dialect_refuses_what_its_readers_do_not_know() {
    for kind in [FieldKind::List, FieldKind::Map] {
        let options = WriteOptions { dialect: Dialect::V032, ..WriteOptions::default() };
        let mut writer = Writer::with_options(Vec::new(), options);
        let schema = Schema::new("E", [("v", FieldType::required(kind))]).unwrap();
        let said = refused(writer.write_event(&schema, 1, &[ValueDef::List(&[])]));
        assert_eq!(
            said,
            format!("unsupported field type in E: expected one of 0.3.2, found {}", kind.name())
        );
        assert_eq!(writer.finish().unwrap(), b"TRC\0\x01");
    }
}

/// An output that accepts a number of bytes, in whole writes.
struct Disk {
    written: Rc<RefCell<Vec<u8>>>,
    room: usize,
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= bytes.len();
        self.written.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_and_holds_whole_batches() {
    let schema = one_field(FieldType::required(FieldKind::PooledString));
    for room in 0..4000 {
        let written = Rc::default();
        let options = WriteOptions { batch_bytes: 300, ..WriteOptions::default() };
        let mut writer = Writer::with_options(Disk { written: Rc::clone(&written), room }, options);
        let mut at = 0;
        let failed = loop {
            at += 1;
            match writer.write_event(&schema, at, &[ValueDef::Text("text"), ValueDef::Text("pooled")]) {
                Ok(()) if at == 1000 => break None,
                Ok(()) => {}
                Err(error) => break Some(error),
            }
        };
        assert_eq!(failed.expect("the disk is full").kind(), io::ErrorKind::StorageFull);
        let (events, error, recovery) = read(&written.borrow(), ReadOptions::default());
        assert!(error.is_none() && recovery.lost_bytes == 0, "{room}: {recovery:?}");
        assert!(events.len() * 40 >= room.saturating_sub(600), "{room}: {}", events.len());
    }
}

/// A stream of one event with a pooled string.
fn one_event(at: u64) -> (Schema, Vec<u8>) {
    let schema = one_field(FieldType::required(FieldKind::PooledString));
    let mut writer = Writer::new(Vec::new());
    writer.write_event(&schema, at, &[ValueDef::Text("a"), ValueDef::Text("pooled")]).unwrap();
    (schema, writer.finish().unwrap())
}

fn read_to_the_end(stream: &[u8]) -> Reader<&[u8]> {
    let mut reader = Reader::new(stream);
    while reader.next_frame().unwrap().is_some() {}
    reader
}

#[test]
fn a_continued_stream_defines_nothing_again() {
    let (schema, stream) = one_event(1);
    let reader = read_to_the_end(&stream);
    let mut writer = Writer::continuing(stream.clone(), reader, WriteOptions::default()).unwrap();
    writer.write_event(&schema, 2, &[ValueDef::Text("b"), ValueDef::Text("pooled")]).unwrap();
    let joined = writer.finish().unwrap();
    // One tag, three bytes of type and time, a text, and the number of the string.
    assert_eq!(joined.len() - stream.len(), 1 + 2 + 3 + 5 + 4);
    let (events, error, recovery) = read(&joined, ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean() && recovery.segments == 1, "{error:?}");
    let line = |at, text| format!(r#"E @{at} before="{text}" v={{"is":"pooled","pstr":0}}"#);
    assert_eq!(events, [line(1, "a"), line(2, "b")]);
}

#[test]
fn incomplete_streams_cannot_be_continued() {
    let (_, stream) = one_event(1);
    let refusal =
        |reader| Writer::continuing(Vec::new(), reader, WriteOptions::default()).err().unwrap().to_string();
    let said = refusal(Reader::new(stream.as_slice()));
    assert_eq!(said, "expected a stream that was read to its end, found unread data");
    let said = refusal(read_to_the_end(&stream[..stream.len() - 1]));
    assert_eq!(said, "expected an undamaged stream to continue, found a damaged one");
}

#[test]
fn foreign_batches_keep_their_place() {
    let (schema, stream) = one_event(2);
    let mut writer = Writer::new(Vec::new());
    let values = [ValueDef::Text("a"), ValueDef::Text("pooled")];
    writer.write_event(&schema, 1, &values).unwrap();
    let said = refused(writer.write_raw(&stream[5..]));
    assert!(said.starts_with("expected batches that begin with a header, found "), "{said}");
    writer.write_raw(&stream).unwrap();
    writer.write_event(&schema, 3, &values).unwrap();
    let joined = writer.finish().unwrap();
    let (events, error, recovery) = read(&joined, ReadOptions::default());
    assert!(error.is_none() && recovery.is_clean() && recovery.segments == 3, "{error:?}");
    assert_eq!(events, [1, 2, 3].map(|at| format!(r#"E @{at} before="a" v={{"is":"pooled","pstr":0}}"#)));
}

#[test]
fn a_writer_that_is_reset_writes_what_a_new_one_would() {
    let (schema, stream) = one_event(1);
    let mut writer = Writer::new(Vec::new());
    writer
        .write_event(
            &one_field(FieldType::required(FieldKind::U8)),
            9,
            &[ValueDef::Text("x"), ValueDef::Unsigned(1)],
        )
        .unwrap();
    let before = writer.reset_to(Vec::new()).unwrap();
    assert_eq!(read(&before, ReadOptions::default()).0, [r#"E @9 before="x" v={"uint":1}"#]);
    writer.write_event(&schema, 1, &[ValueDef::Text("a"), ValueDef::Text("pooled")]).unwrap();
    assert_eq!(writer.reset_to(Vec::new()).unwrap(), stream);
    assert_eq!(writer.finish().unwrap(), b"TRC\0\x01");
}
