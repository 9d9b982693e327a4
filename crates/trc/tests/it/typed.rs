//! Structs as event types: written and read here, and exchanged with the reference in both directions.

use borehole_derive as macros;
use borehole_testkit::allocations::allocations;
use borehole_trc::{
    Dialect, EventType, FieldKind, FieldType, FieldWriter, PutField, ReadEvent, Reader, Schema, StackFrames,
    TraceEvent, TypedEvents, TypedField, ValueDef, WriteOptions, Writer, schema_of,
};
use dial9_trace_format as newest;
use dial9_trace_format_032 as oldest;
use proptest::prelude::*;

/// A struct with every field type.
#[derive(macros::TraceEvent, Clone, Debug, PartialEq)]
#[traceevent(name = concat!("Every", "Event"))]
struct Every<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    byte: u8,
    short: u16,
    word: u32,
    #[traceevent(unit = "bytes", kind = "gauge")]
    number: u64,
    size: usize,
    signed: i64,
    #[traceevent(name = "float.renamed", role = "span.name")]
    float: f64,
    truth: bool,
    text: &'a str,
    owned: String,
    bytes: &'a [u8],
    owned_bytes: Vec<u8>,
    stack: StackFrames<'a>,
    owned_stack: Vec<u64>,
    map: Vec<(String, String)>,
    #[traceevent(pooled)]
    pooled: &'a str,
    #[traceevent(pooled)]
    pooled_stack: StackFrames<'a>,
    maybe: Option<u16>,
    maybe_text: Option<&'a str>,
    #[traceevent(pooled)]
    maybe_pooled: Option<String>,
    #[traceevent(pooled)]
    maybe_stack: Option<Vec<u64>>,
    r#type: Option<Vec<(String, String)>>,
}

fn every<'a>(at_ns: u64, text: &'a str, stack: &'a [u64]) -> Every<'a> {
    Every {
        at_ns,
        byte: 200,
        short: 60_000,
        word: 4_000_000_000,
        number: u64::MAX,
        size: text.len(),
        signed: -5,
        float: 0.5,
        truth: true,
        text,
        owned: text.repeat(2),
        bytes: text.as_bytes(),
        owned_bytes: vec![0, 255],
        stack: stack.into(),
        owned_stack: stack.to_vec(),
        map: vec![(text.to_owned(), String::new())],
        pooled: text,
        pooled_stack: stack.into(),
        maybe: (text.len() > 2).then_some(7),
        maybe_text: (text.len() > 3).then_some(text),
        maybe_pooled: (text.len() > 1).then(|| text.to_owned()),
        maybe_stack: (stack.len() > 1).then(|| stack.to_vec()),
        r#type: None,
    }
}

fn written<T: TraceEvent>(events: &[T], dialect: Dialect) -> Vec<u8> {
    let mut writer = Writer::with_options(Vec::new(), WriteOptions { dialect, ..WriteOptions::default() });
    events.iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap()
}

/// Reads all events, checks them and counts them.
fn count_read(trace: &[u8], expected: &[Every<'_>]) -> usize {
    let mut reader = Reader::new(trace);
    let mut typed = TypedEvents::default();
    let mut count = 0;
    while let Some(event) = reader.next_event().unwrap() {
        let found: Every<'_> = typed.read(&event).unwrap().unwrap();
        assert!(found == expected[count], "{found:?}\n{:?}", expected[count]);
        count += 1;
    }
    count
}

proptest! {
    #[test]
    fn written_samples_are_read_back(
        events in prop::collection::vec((any::<u64>(), ".{0,5}", prop::collection::vec(any::<u64>(), 0..4)), 1..20),
        old in any::<bool>(),
    ) {
        let events: Vec<_> = events.iter().map(|(at, text, stack)| every(*at, text, stack)).collect();
        let trace = written(&events, if old { Dialect::V032 } else { Dialect::Newest });
        prop_assert_eq!(count_read(&trace, &events), events.len());
    }
}

/// These values, written by the checked writer.
fn checked(writer: &mut Writer<Vec<u8>>, event: &Every<'_>) {
    let addresses: Vec<u64> = event.stack.addresses().collect();
    let schema = schema_of::<Every<'_>>().unwrap();
    let map = [(event.map[0].0.as_str(), "")];
    let or_absent = |value: Option<ValueDef<'static>>| value.unwrap_or(ValueDef::Absent);
    let text_or_absent = |there: bool| if there { ValueDef::Text(event.text) } else { ValueDef::Absent };
    let values = [
        ValueDef::Unsigned(event.byte.into()),
        ValueDef::Unsigned(event.short.into()),
        ValueDef::Unsigned(event.word.into()),
        ValueDef::Unsigned(event.number),
        ValueDef::Unsigned(event.size as u64),
        ValueDef::Signed(event.signed),
        ValueDef::Float(event.float),
        ValueDef::Bool(event.truth),
        ValueDef::Text(event.text),
        ValueDef::Text(&event.owned),
        ValueDef::Bytes(event.bytes),
        ValueDef::Bytes(&event.owned_bytes),
        ValueDef::Stack(&addresses),
        ValueDef::Stack(&addresses),
        ValueDef::TextMap(&map),
        ValueDef::Text(event.pooled),
        ValueDef::Stack(&addresses),
        or_absent(event.maybe.map(|value| ValueDef::Unsigned(value.into()))),
        text_or_absent(event.maybe_text.is_some()),
        text_or_absent(event.maybe_pooled.is_some()),
        if event.maybe_stack.is_some() { ValueDef::Stack(&addresses) } else { ValueDef::Absent },
        ValueDef::Absent,
    ];
    writer.write_event(schema, event.at_ns, &values).unwrap();
}

#[test]
fn typed_and_checked_writing_give_the_same_bytes() {
    for dialect in [Dialect::Newest, Dialect::V032] {
        let events = [every(5, "text", &[1, 2]), every(9, "", &[]), every(3, "text", &[1, 2])];
        let options = WriteOptions { dialect, ..WriteOptions::default() };
        let mut writer = Writer::with_options(Vec::new(), options);
        events.iter().for_each(|event| checked(&mut writer, event));
        assert_eq!(written(&events, dialect), writer.finish().unwrap());
    }
}

#[test]
fn the_schema_says_what_the_attributes_say() {
    let schema = schema_of::<Every<'_>>().unwrap();
    assert_eq!(schema.name(), "EveryEvent");
    let field = |name| schema.field_index(name).unwrap();
    assert_eq!(schema.annotation(field("number"), "unit"), Some("bytes"));
    assert_eq!(schema.annotation(field("number"), "kind"), Some("gauge"));
    assert_eq!(schema.annotation(field("float.renamed"), "dial9.role"), Some("span.name"));
    assert_eq!(schema.annotations().len(), 3);
    let type_of = |name| schema.fields()[field(name)].field_type;
    assert_eq!(type_of("type"), FieldType::optional(FieldKind::StringMap));
    assert_eq!(type_of("maybe_pooled"), FieldType::optional(FieldKind::PooledString));
    assert_eq!(type_of("pooled_stack"), FieldType::required(FieldKind::PooledStack));
}

#[derive(macros::TraceEvent, Debug, PartialEq)]
struct Grown {
    #[traceevent(timestamp)]
    at_ns: u64,
    worker: u64,
    later: Option<u64>,
}

#[derive(macros::TraceEvent, Debug, PartialEq)]
#[traceevent(name = "Grown")]
struct Early {
    #[traceevent(timestamp)]
    at_ns: u64,
    gone: u8,
    worker: u8,
}

#[derive(macros::ReadEvent, Debug, PartialEq)]
enum Any<'a> {
    Early(Early),
    Named(Named<'a>),
}

#[derive(macros::TraceEvent, Debug, PartialEq)]
struct Named<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    name: &'a str,
}

#[test]
fn fields_may_come_and_go_and_widths_may_change() {
    let trace = written(&[Early { at_ns: 1, gone: 2, worker: 3 }], Dialect::Newest);
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    let mut typed = TypedEvents::default();
    assert_eq!(typed.read(&event).unwrap(), Some(Grown { at_ns: 1, worker: 3, later: None }));
    assert_eq!(typed.read::<Named<'_>>(&event).unwrap(), None);
    assert_eq!(typed.read(&event).unwrap(), Some(Any::Early(Early { at_ns: 1, gone: 2, worker: 3 })));
}

#[derive(macros::ReadEvent, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "created once, on the stack of a test")]
enum Nested<'a> {
    Every(Every<'a>),
    Any(Any<'a>),
}

#[test]
fn an_enum_may_hold_an_enum() {
    let trace = written(&[Named { at_ns: 1, name: "n" }], Dialect::Newest);
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    let read = TypedEvents::default().read(&event).unwrap();
    assert_eq!(read, Some(Nested::Any(Any::Named(Named { at_ns: 1, name: "n" }))));
}

#[test]
fn an_enum_is_the_variant_that_has_the_name() {
    let mut writer = Writer::new(Vec::new());
    writer.write(&Named { at_ns: 1, name: "n" }).unwrap();
    writer.write(&every(2, "", &[])).unwrap();
    writer.end_batch().unwrap();
    writer.write(&every(2, "", &[])).unwrap();
    writer.write(&Named { at_ns: 3, name: "m" }).unwrap();
    let trace = writer.finish().unwrap();
    let mut reader = Reader::new(trace.as_slice());
    let mut typed = TypedEvents::default();
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        match typed.read(&event).unwrap() {
            Some(Any::Named(named)) => found.push((named.at_ns, named.name.to_owned())),
            Some(Any::Early(early)) => panic!("{early:?}"),
            None => found.push((2, "other".to_owned())),
        }
    }
    let expected = [(1, "n"), (2, "other"), (2, "other"), (3, "m")];
    assert!(found.iter().map(|(at, name)| (*at, name.as_str())).eq(expected), "{found:?}");
}

/// The result of reading a `T` from events of `schema` with `values`.
fn mismatch<T: for<'a> ReadEvent<'a> + std::fmt::Debug>(
    schema: &Schema,
    at_ns: Option<u64>,
    values: &[ValueDef<'_>],
) -> String {
    let mut writer = Writer::new(Vec::new());
    writer.write_event(schema, at_ns, values).unwrap();
    let trace = writer.finish().unwrap();
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    let error = TypedEvents::default().read::<T>(&event).unwrap_err();
    assert!(error.is_malformed() && error.offset() == Some(event.offset()));
    error.message().to_owned()
}

#[test]
fn mismatched_types_are_errors() {
    let number = FieldType::required(FieldKind::Varint);
    let schema = Schema::new("Grown", [("gone", number), ("worker", number)]).unwrap();
    assert_eq!(
        mismatch::<Early>(&schema, Some(1), &[ValueDef::Unsigned(1), ValueDef::Unsigned(256)]),
        "Grown: field worker: expected an unsigned integer of 8 bits, found 256"
    );
    let schema = Schema::new("Grown", [("worker", FieldType::required(FieldKind::String))]).unwrap();
    assert_eq!(
        mismatch::<Grown>(&schema, Some(1), &[ValueDef::Text("two")]),
        "Grown: field worker: expected an unsigned integer, found \"two\""
    );
    assert_eq!(
        mismatch::<Early>(&schema, Some(1), &[ValueDef::Text("two")]),
        "Grown: missing field gone: expected an unsigned integer of 8 bits"
    );
    let mut definition = schema.definition().clone();
    definition.has_timestamp = false;
    let schema = Schema::define(definition).unwrap();
    assert_eq!(
        mismatch::<Grown>(&schema, None, &[ValueDef::Text("two")]),
        "Grown: expected a timestamp, found none"
    );
}

#[test]
fn a_value_that_does_not_fit_is_shown_by_its_kind() {
    use FieldKind::{
        Bool, Bytes, F64, I64, List, Map, PooledStack, PooledString, Stack, String, StringMap, U8,
    };
    let (one, pair) = (ValueDef::Unsigned(1), (ValueDef::Bool(true), ValueDef::Float(2.0)));
    let cases: [(FieldKind, ValueDef<'_>, &str); 13] = [
        (U8, ValueDef::Absent, "no value"),
        (I64, ValueDef::Signed(-7), "the signed integer -7"),
        (F64, ValueDef::Float(1.5), "the floating-point number 1.5"),
        (Bool, ValueDef::Bool(false), "false"),
        (Bool, ValueDef::Bool(true), "true"),
        (String, ValueDef::Text("a\n"), "\"a\\n\""),
        (PooledString, ValueDef::Text("b\n"), "\"b\\n\""),
        (Bytes, ValueDef::Bytes(b"c"), "bytes"),
        (Stack, ValueDef::Stack(&[1]), "a stack"),
        (PooledStack, ValueDef::Stack(&[1]), "a stack"),
        (StringMap, ValueDef::TextMap(&[("a", "b")]), "pairs of text"),
        (List, ValueDef::List(&[one]), "a list"),
        (Map, ValueDef::Map(&[pair]), "a map"),
    ];
    for (kind, value, shown) in cases {
        let schema = Schema::new("Grown", [("worker", FieldType::optional(kind))]).unwrap();
        let expected = format!("Grown: field worker: expected an unsigned integer, found {shown}");
        assert_eq!(mismatch::<Grown>(&schema, Some(1), &[value]), expected);
    }
}

#[test]
fn a_plan_of_another_type_is_an_error() {
    let trace = written(&[Early { at_ns: 1, gone: 2, worker: 3 }], Dialect::Newest);
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    let plan = Early::plan(event.schema()).unwrap();
    assert!(Any::read(&event, &plan).is_err() && Any::read(&event, &plan.of_variant(2)).is_err());
}

/// Lengths with which an event ends before, at and after the end of the available memory.
fn lengths() -> impl Iterator<Item = usize> {
    [0, 1 << 13, (1 << 14) - 120, 1 << 14, 1 << 16]
        .into_iter()
        .flat_map(|len| len..len + 100)
        .chain([1 << 22])
}

#[test]
fn an_event_without_room_is_put_together_again_and_defines_once_what_it_uses() {
    for len in lengths() {
        let text = "x".repeat(len);
        let request =
            |at_ns, route| Request { at_ns, route, status: 200, stack: [7, 8].as_slice().into(), took: 1 };
        // The long text is written before the event, and so decides its position.
        let requests = [request(1, &text), request(2, "short"), request(3, &text)];
        let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
        let mut writer = Writer::with_options(Vec::new(), options);
        requests.iter().for_each(|request| writer.write(request).unwrap());
        let trace = writer.finish().unwrap();
        assert!(trace.len() < len + 300, "{len}: {}", trace.len());
        let mut typed = TypedEvents::default();
        let mut found = Vec::new();
        Reader::new(trace.as_slice())
            .for_each_event(|event| {
                let request: Request<'_> = typed.read(event).unwrap().unwrap();
                found.push((request.at_ns, request.route.len(), request.stack.len()));
            })
            .unwrap();
        assert_eq!(found, [(1, len, 2), (2, 5, 2), (3, len, 2)]);
        let events = [every(5, &text, &[1, 2, 3]), every(6, "short", &[])];
        assert_eq!(count_read(&written(&events, Dialect::Newest), &events), 2);
    }
}

#[test]
fn after_warm_up_neither_writing_nor_reading_allocates() {
    let route = Box::leak("GET /carts".to_owned().into_boxed_str());
    let request =
        |at_ns| Request { at_ns, route, status: 200, stack: [1, 2, 3].as_slice().into(), took: at_ns };
    let mut writer = Writer::new(Vec::with_capacity(1 << 20));
    let many = |writer: &mut Writer<Vec<u8>>| (0..10_000).for_each(|at| writer.write(&request(at)).unwrap());
    many(&mut writer);
    writer.end_batch().unwrap();
    let ((), writing) = allocations(|| many(&mut writer));
    // The schema and the pools of the new batch, in available memory.
    assert!(writing.count <= 4, "{writing:?}");
    let trace = writer.finish().unwrap();
    let mut reader = Reader::new(trace.as_slice());
    let mut typed = TypedEvents::default();
    let mut read = |count: u64| {
        for _ in 0..count {
            let event = reader.next_event().unwrap().unwrap();
            assert_eq!(typed.read::<Request<'_>>(&event).unwrap().unwrap().route, "GET /carts");
        }
    };
    read(5_000);
    assert_eq!(allocations(|| read(4_000)).1.count, 0);
}

#[derive(macros::TraceEvent)]
#[traceevent(wire_slot)]
struct Request<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    route: &'a str,
    status: u16,
    #[traceevent(pooled)]
    stack: StackFrames<'a>,
    took: u64,
}

#[test]
fn a_slot_is_the_same_in_every_batch_and_writer() {
    let mut ids = Vec::new();
    for others in [0, 1] {
        let mut writer = Writer::new(Vec::new());
        for _ in 0..2 {
            (0..others).for_each(|at_ns| writer.write(&Named { at_ns, name: "" }).unwrap());
            let stack = StackFrames::Native(&[]);
            writer.write(&Request { at_ns: 1, route: "", status: 0, stack, took: 0 }).unwrap();
            writer.end_batch().unwrap();
        }
        let trace = writer.finish().unwrap();
        let mut reader = Reader::new(trace.as_slice());
        while let Some(event) = reader.next_event().unwrap() {
            if event.name() == "Request" {
                ids.push(event.type_id());
            } else {
                assert!(event.type_id() >= 256);
            }
        }
    }
    assert!(ids.len() == 4 && ids.iter().all(|id| *id == ids[0] && (1..256).contains(id)), "{ids:?}");
}

/// A hand-written implementation, with a name that no schema can have.
struct TooLong;

impl TraceEvent for TooLong {
    const NAME: &'static str = {
        static BYTES: [u8; 65_536] = [b'x'; 65_536];
        match std::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => panic!("x is ASCII"),
        }
    };
    const FIELDS: &'static [TypedField] =
        &[TypedField { name: "v", field_type: <u8 as PutField>::TYPE, annotations: &[] }];

    fn event_type() -> &'static EventType {
        static TYPE: EventType = EventType::new();
        &TYPE
    }

    fn timestamp_ns(&self) -> u64 {
        0
    }

    fn put_fields(&self, out: &mut FieldWriter<'_>) {
        1_u8.put(out);
    }
}

/// A struct whose name and types come from the caller of a macro.
macro_rules! event {
    ($name:ident, $at:ty, $number:tt, $text:ty) => {
        #[derive(macros::TraceEvent, Debug, PartialEq)]
        struct $name<'a> {
            #[traceevent(timestamp)]
            at_ns: $at,
            number: $number,
            text: Option<$text>,
            #[traceevent(pooled)]
            event: &'a str,
        }
    };
}

event!(Generated, u64, u32, String);

#[test]
fn a_macro_may_write_what_is_derived_for() {
    let generated = Generated { at_ns: 7, number: 3, text: Some("t".to_owned()), event: "e" };
    let mut writer = Writer::new(Vec::new());
    writer.write(&generated).unwrap();
    let trace = writer.finish().unwrap();
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    assert_eq!(TypedEvents::default().read(&event).unwrap(), Some(generated));
}

/// A struct that cannot be read, because events do not live that long.
#[derive(macros::TraceEvent)]
#[traceevent(name = "Phase")]
struct StaticPhase {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    name: Option<&'static str>,
}

#[derive(macros::ReadEvent, Debug, PartialEq)]
struct Phase {
    #[traceevent(timestamp)]
    at_ns: u64,
    name: Option<String>,
}

#[test]
fn static_borrows_can_be_written() {
    let mut writer = Writer::new(Vec::new());
    writer.write(&StaticPhase { at_ns: 7, name: Some("load") }).unwrap();
    let trace = writer.finish().unwrap();
    let mut reader = Reader::new(trace.as_slice());
    let event = reader.next_event().unwrap().unwrap();
    let phase = Phase { at_ns: 7, name: Some("load".to_owned()) };
    assert_eq!(TypedEvents::default().read(&event).unwrap(), Some(phase));
}

#[derive(macros::TraceEvent)]
#[allow(non_camel_case_types, reason = "fields may have the names of keywords")]
struct r#type {
    #[traceevent(timestamp)]
    at_ns: u64,
}

#[test]
fn a_struct_that_is_called_as_a_keyword_makes_events_of_that_name() {
    assert_eq!(<r#type as TraceEvent>::NAME, "type");
    assert_eq!(r#type { at_ns: 1 }.timestamp_ns(), 1);
}

#[test]
fn a_type_that_cannot_be_defined_is_an_error_and_leaves_no_trace() {
    let mut writer = Writer::new(Vec::new());
    writer.write(&Named { at_ns: 1, name: "" }).unwrap();
    let error = writer.write(&TooLong).unwrap_err();
    assert_eq!(error.to_string(), "event name too large: expected at most 65535, found 65536");
    assert!(schema_of::<TooLong>().is_err());
    let trace = writer.finish().unwrap();
    assert_eq!(trace, written(&[Named { at_ns: 1, name: "" }], Dialect::Newest));
}

/// The implementation that the reference derives, written out, because its macro looks for a crate name that two releases
/// share here.
struct Poll(u64, newest::InternedString, newest::InternedStackFrames);

impl newest::TraceEvent for Poll {
    fn event_name() -> &'static str {
        "Poll"
    }

    fn field_defs() -> Vec<newest::schema::FieldDef> {
        use newest::types::FieldType;
        let fields = [
            ("worker", FieldType::U8),
            ("delay", FieldType::Varint),
            ("queue", FieldType::U32),
            ("signed", FieldType::I64),
            ("float", FieldType::F64),
            ("truth", FieldType::Bool),
            ("text", FieldType::String),
            ("bytes", FieldType::Bytes),
            ("location", FieldType::PooledString),
            ("stack", FieldType::StackFrames),
            ("pooled_stack", FieldType::PooledStackFrames),
            ("map", FieldType::StringMap),
            ("absent", FieldType::OptionalU16),
            ("present", FieldType::OptionalString),
        ];
        fields.into_iter().map(|(name, field_type)| newest::schema::FieldDef::new(name, field_type)).collect()
    }

    fn timestamp(&self) -> u64 {
        self.0
    }

    fn encode_fields<W: std::io::Write>(
        &self,
        out: &mut newest::types::EventEncoder<'_, W>,
    ) -> std::io::Result<()> {
        out.write_u8(255)?;
        out.write_u64(u64::MAX)?;
        out.write_u32(70_000)?;
        out.write_i64(i64::MIN)?;
        out.write_f64(-0.0)?;
        out.write_bool(true)?;
        out.write_string("text é")?;
        out.write_bytes(&[0, 1, 255])?;
        out.write_interned(self.1)?;
        out.write_stack_frames(&newest::StackFrames(vec![1, u64::MAX]))?;
        out.write_interned_stack_frames(self.2)?;
        out.write_string_map(&[("k".to_owned(), "v".to_owned())])?;
        newest::types::TraceField::encode(&None::<u16>, out)?;
        newest::types::TraceField::encode(&Some("there".to_owned()), out)
    }
}

/// These events with our derive macro.
#[derive(macros::TraceEvent, Debug, PartialEq)]
#[traceevent(name = "Poll")]
struct OurPoll<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    worker: u8,
    #[traceevent(unit = "ns")]
    delay: u64,
    queue: u32,
    signed: i64,
    float: f64,
    truth: bool,
    text: &'a str,
    bytes: &'a [u8],
    #[traceevent(pooled)]
    location: &'a str,
    stack: StackFrames<'a>,
    #[traceevent(pooled)]
    pooled_stack: StackFrames<'a>,
    map: Vec<(String, String)>,
    absent: Option<u16>,
    present: Option<&'a str>,
}

fn our_poll(at_ns: u64) -> OurPoll<'static> {
    OurPoll {
        at_ns,
        worker: 255,
        delay: u64::MAX,
        queue: 70_000,
        signed: i64::MIN,
        float: -0.0,
        truth: true,
        text: "text é",
        bytes: &[0, 1, 255],
        location: "src/main.rs:1",
        stack: StackFrames::Native(&[1, u64::MAX]),
        pooled_stack: StackFrames::Native(&[7]),
        map: vec![("k".to_owned(), "v".to_owned())],
        absent: None,
        present: Some("there"),
    }
}

const TIMES: [u64; 4] = [5, 5_000_000_000, 5_000_000_001, 4];

#[test]
fn structs_of_the_reference_are_read_as_ours() {
    let mut encoder = newest::encoder::Encoder::new();
    for at_ns in TIMES {
        let location = encoder.intern_string("src/main.rs:1").unwrap();
        let pooled_stack = encoder.intern_stack_frames(&[7]).unwrap();
        encoder.write(&Poll(at_ns, location, pooled_stack)).unwrap();
    }
    let trace = encoder.finish();
    let mut reader = Reader::new(trace.as_slice());
    let mut typed = TypedEvents::default();
    for at_ns in TIMES {
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(typed.read(&event).unwrap(), Some(our_poll(at_ns)));
        assert_eq!(event.schema().fields(), schema_of::<OurPoll<'_>>().unwrap().fields());
    }
    assert!(reader.next_event().unwrap().is_none());
}

#[test]
fn the_reference_reads_our_structs() {
    use newest::decoder::{DecodedFrame, Decoder};
    use newest::types::FieldValue;

    let trace = written(&TIMES.map(our_poll), Dialect::Newest);
    let mut decoder = Decoder::new(&trace).unwrap();
    let mut times = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        let DecodedFrame::Event { timestamp_ns, values, .. } = frame else { continue };
        times.push(timestamp_ns);
        assert_eq!(values.len(), 14);
        assert_eq!(
            values[..3],
            [FieldValue::Varint(255), FieldValue::Varint(u64::MAX), FieldValue::Varint(70_000)]
        );
        assert_eq!(values[3..6], [FieldValue::I64(i64::MIN), FieldValue::F64(-0.0), FieldValue::Bool(true)]);
        assert_eq!(values[6], FieldValue::String("text é".to_owned()));
        assert_eq!(values[7], FieldValue::Bytes(vec![0, 1, 255]));
        assert_eq!(values[9], FieldValue::StackFrames(newest::StackFrames(vec![1, u64::MAX])));
        assert_eq!(values[11], FieldValue::StringMap(vec![(b"k".to_vec(), b"v".to_vec())]));
        assert_eq!(values[12..], [FieldValue::None, FieldValue::String("there".to_owned())]);
        let FieldValue::PooledString(location) = values[8] else { panic!("{:?}", values[8]) };
        assert_eq!(decoder.string_pool().get(location), Some("src/main.rs:1"));
        let FieldValue::PooledStackFrames(stack) = values[10] else { panic!("{:?}", values[10]) };
        assert_eq!(decoder.stack_pool().get(stack).map(<[u64]>::to_vec), Some(vec![7]));
    }
    assert_eq!((times.as_slice(), decoder.position()), (TIMES.as_slice(), trace.len()));
}

#[test]
fn the_reference_of_the_specification_reads_our_structs_in_its_dialect() {
    use oldest::decoder::{DecodedFrame, Decoder};
    use oldest::types::FieldValue;

    let trace = written(&TIMES.map(our_poll), Dialect::V032);
    let mut decoder = Decoder::new(&trace).unwrap();
    let mut times = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        let DecodedFrame::Event { timestamp_ns, values, .. } = frame else { continue };
        times.extend(timestamp_ns);
        assert_eq!(values[0], FieldValue::Varint(255));
        assert_eq!(
            values[9..11],
            [FieldValue::StackFrames(vec![1, u64::MAX]), FieldValue::StackFrames(vec![7])]
        );
        let FieldValue::PooledString(location) = values[8] else { panic!("{:?}", values[8]) };
        assert_eq!(decoder.string_pool().get(location), Some("src/main.rs:1"));
        assert_eq!(values[12..], [FieldValue::None, FieldValue::String("there".to_owned())]);
    }
    assert_eq!(times, TIMES);
}

#[test]
fn events_of_the_specifications_release_are_read_as_ours() {
    use oldest::schema::FieldDef;
    use oldest::types::{FieldType, FieldValue};

    let mut encoder = oldest::encoder::Encoder::new();
    let field = |name: &str, field_type| FieldDef { name: name.to_owned(), field_type };
    let fields = vec![field("extra", FieldType::F64), field("name", FieldType::PooledString)];
    let schema = encoder.register_schema("Named", fields).unwrap();
    let name = encoder.intern_string("pooled").unwrap();
    for at_ns in TIMES {
        let values = [FieldValue::Varint(at_ns), FieldValue::F64(1.0), FieldValue::PooledString(name)];
        encoder.write_event(&schema, &values).unwrap();
    }
    let trace = encoder.finish();
    let mut reader = Reader::new(trace.as_slice());
    let mut typed = TypedEvents::default();
    for at_ns in TIMES {
        let event = reader.next_event().unwrap().unwrap();
        assert_eq!(typed.read(&event).unwrap(), Some(Named { at_ns, name: "pooled" }));
    }
}
