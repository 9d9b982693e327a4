//! Written lines are read back equal, and every line is JSON for an independent parser.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

use borehole_formats::ReadOptions;
use borehole_formats::jsonl::{Exporter, import};
use borehole_model::{Measure, Mode, Recovery, Tables, Thread, ValueType, Warning};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

use super::plain::{Bytes, Call, PlainFrame, PlainLabel, PlainSample, PlainSegment, Recorder, play};
use super::plain_event::{PlainEvent, PlainValue};
use super::{FLAT, TABLES, export, read_strictly};

/// Strings with everything that could break JSON or the splitting of names.
fn string() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        prop::sample::select(vec![
            b"".to_vec(),
            b"App\\Db::query".to_vec(),
            b"A\\B\\c".to_vec(),
            b"\\::".to_vec(),
            b"{\"hex\":\"00\"}".to_vec(),
            b"\0\x1f\x7f\"\\/\n\r\t".to_vec(),
            b"cut \xe3\x82".to_vec(),
            "\u{2028}\u{10ffff}é".as_bytes().to_vec(),
        ]),
        "[a-c\\\\:\"\\\\n]{0,6}".prop_map(String::into_bytes),
        ".{0,8}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..6),
    ]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![prop::sample::select(vec![i64::MIN, -1, 0, 1, (1 << 53) + 1, i64::MAX]), any::<i64>()]
}

fn natural() -> impl Strategy<Value = u64> {
    prop_oneof![prop::sample::select(vec![0, 1, 1000, 1 << 40, u64::MAX]), any::<u64>()]
}

prop_compose! {
    fn frame()(
        function in string(),
        split in any::<bool>(),
        parts in option::of([string(), string(), string()]),
        file in option::of(string()),
        [line, end_line] in [option::of(number()), option::of(number())],
        [column, end_column] in [option::of(any::<u32>()), option::of(any::<u32>())],
        opcode in option::of(string()),
        native in option::weighted(0.2, (string(), option::of(number()))),
    ) -> PlainFrame {
        let parts = if split { Some(split_name(&function)) } else { parts };
        PlainFrame { function, parts, file, line, end_line, column, end_column, opcode, native }
    }
}

/// The parts of a name, split by code independent of the tested one.
fn split_name(name: &[u8]) -> [Bytes; 3] {
    let colons = (1..name.len()).rev().find(|&at| &name[at - 1..=at] == b"::");
    let (class, method) = match colons {
        Some(1) => (None, &name[2..]),
        Some(at) => (Some(&name[..at - 1]), &name[at + 1..]),
        None => (None, name),
    };
    let whole = class.unwrap_or(method);
    let backslash = whole.iter().rposition(|&byte| byte == b'\\');
    let (namespace, last) = backslash.map_or((&whole[..0], whole), |at| (&whole[..at], &whole[at + 1..]));
    match class {
        Some(_) => [namespace, last, method].map(<[u8]>::to_vec),
        None => [namespace, b"", last].map(<[u8]>::to_vec),
    }
}

fn label() -> impl Strategy<Value = (Bytes, PlainLabel)> {
    let value = prop_oneof![
        string().prop_map(PlainLabel::Text),
        (number(), option::of(string())).prop_map(|(value, unit)| PlainLabel::Number(value, unit)),
    ];
    (string(), value)
}

prop_compose! {
    fn sample()(
        frames in vec(frame(), 0..4),
        count in natural(),
        [time_ns, delta_us, process] in [option::of(number()), option::of(number()), option::of(number())],
        [thread, interpreter] in [option::of(natural()), option::of(natural())],
        status in option::of(any::<u8>()),
        labels in option::of(vec(label(), 0..3)),
        values in vec(number(), 0..3),
    ) -> PlainSample {
        PlainSample { frames, count, time_ns, delta_us, process, thread, interpreter, status, labels, values }
    }
}

/// A value as lines hold it: a signed integer that is not negative is read as unsigned.
fn value() -> impl Strategy<Value = PlainValue> {
    let leaf = prop_oneof![
        Just(PlainValue::Absent),
        natural().prop_map(PlainValue::Unsigned),
        (i64::MIN..0).prop_map(PlainValue::Signed),
        any::<u64>().prop_map(f64::from_bits).prop_map(float),
        prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e300]).prop_map(float),
        any::<bool>().prop_map(PlainValue::Bool),
        any::<String>().prop_map(PlainValue::Text),
        vec(any::<u8>(), 0..6).prop_map(PlainValue::Bytes),
        vec(natural(), 0..4).prop_map(|addresses| PlainValue::stack(&addresses)),
        any::<u32>().prop_map(PlainValue::Unresolved),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(PlainValue::List),
            vec((inner.clone(), inner), 0..4).prop_map(PlainValue::Map),
        ]
    })
}

/// JSON has only one value for all NaNs.
fn float(value: f64) -> PlainValue {
    PlainValue::Float(if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
}

prop_compose! {
    fn event()(
        name in string(),
        type_id in option::of(any::<u32>()),
        time_ns in option::of(natural()),
        fields in vec((string(), value()), 0..4),
    ) -> PlainEvent {
        PlainEvent { name, type_id, time_ns, fields }
    }
}

prop_compose! {
    fn segment()(
        format in prop::sample::select(vec!["rbt", "trc", "folded", "pprof", "jsonl"]),
        index in natural(),
        [offset, period_ns] in [option::of(natural()), option::of(natural())],
        [has_times, is_ordered] in any::<[bool; 2]>(),
        [start_unix_ns, began_ns, process] in [option::of(number()), option::of(number()), option::of(number())],
        depth_limit in option::of(any::<u32>()),
        metadata in vec((string(), string()), 0..3),
        value_types in vec(("\\PC{0,4}", "\\PC{0,4}").prop_map(|(kind, unit)| ValueType { kind, unit }), 0..3),
        mode in prop::sample::select(Mode::ALL.to_vec()),
        default_measure in option::of(prop_oneof![
            Just(Measure::Count), Just(Measure::Time), (0..3_usize).prop_map(Measure::Value)
        ]),
        is_uncounted in any::<bool>(),
    ) -> PlainSegment {
        PlainSegment {
            format,
            index,
            offset,
            period_ns,
            has_times,
            is_ordered,
            start_unix_ns,
            began_ns,
            depth_limit,
            process,
            metadata,
            mode,
            value_types,
            default_measure,
            is_uncounted,
        }
    }
}

/// A segment and what may follow it. Some samples occur twice, so that stacks are reused.
fn calls() -> impl Strategy<Value = Vec<Call>> {
    let inner = prop_oneof![
        1 => (string(), string()).prop_map(|(key, value)| vec![Call::Metadata(key, value)]),
        1 => (option::of(any::<i64>()), natural(), string())
            .prop_map(|(process, number, name)| vec![Call::Thread(Thread { process, number }, name)]),
        4 => sample().prop_map(|sample| vec![Call::Sample(sample.clone()), Call::Sample(sample)]),
        4 => sample().prop_map(|sample| vec![Call::Sample(sample)]),
        3 => event().prop_map(|event| vec![Call::Event(event)]),
    ];
    let source = option::of("\\PC{0,4}".prop_map(Call::Source));
    let stretch = (source, segment(), vec(inner, 0..6)).prop_map(|(source, segment, inner)| {
        let begin = source.into_iter().chain([Call::Segment(segment)]);
        begin.chain(inner.into_iter().flatten()).collect::<Vec<_>>()
    });
    vec(stretch, 0..4).prop_map(|stretches| stretches.concat())
}

fn warning() -> impl Strategy<Value = Warning> {
    (option::of(natural()), any::<String>(), natural(), option::of(natural())).prop_map(
        |(offset, message, lost_bytes, saved_samples)| {
            Warning::new(message).at(offset).losing(lost_bytes).saving(saved_samples)
        },
    )
}

fn recovery_of(calls: &[Call], warnings: &[Warning]) -> Recovery {
    let mut recorder = Recorder::default();
    play(calls, warnings, &mut recorder);
    recorder.outcome
}

proptest! {
    #[test]
    fn written_lines_are_read_back_equal(calls in calls(), warnings in vec(warning(), 0..3)) {
        for options in [TABLES, FLAT] {
            let lines = export(&calls, &warnings, options);
            let (found, recovery) = read_strictly(&lines);
            prop_assert_eq!(&found, &calls);
            prop_assert_eq!(recovery, recovery_of(&calls, &warnings));
        }
    }

    #[test]
    fn read_lines_are_written_back_byte_for_byte(calls in calls()) {
        let lines = export(&calls, &[], TABLES);
        let mut exporter = Exporter::new(Vec::new(), TABLES);
        let mut tables = Tables::default();
        import(&*lines, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
        borehole_model::ProfileSink::finish(&mut exporter, &tables).unwrap();
        // The lines between the first and the last. Without a segment there is no format to repeat.
        prop_assert_eq!(exporter.into_inner(), lines);
    }

    #[test]
    fn every_line_is_one_json_object_with_a_type(calls in calls(), warnings in vec(warning(), 0..3)) {
        for options in [TABLES, FLAT] {
            let lines = String::from_utf8(export(&calls, &warnings, options)).unwrap();
            prop_assert!(lines.ends_with('\n'));
            let types: Vec<_> = lines.split_terminator('\n').map(line_type).collect();
            prop_assert_eq!(&types[0], "file");
            prop_assert_eq!(types.iter().filter(|name| *name == "end").count(), 1);
            prop_assert_eq!(types.last().unwrap(), "end");
            let samples = calls.iter().filter(|call| matches!(call, Call::Sample(_))).count();
            prop_assert_eq!(types.iter().filter(|name| *name == "sample").count(), samples);
            prop_assert!(!options.flat || !types.iter().any(|name| name == "stack"));
        }
    }

    #[test]
    fn stack_ids_are_dense_in_order_of_first_use_and_defined_before(calls in calls()) {
        let lines = export(&calls, &[], TABLES);
        let mut defined = 0;
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let line: Value = serde_json::from_slice(line).unwrap();
            match line["type"].as_str().unwrap() {
                "stack" => {
                    defined += 1;
                    prop_assert_eq!(line["id"].as_u64(), Some(defined));
                }
                "sample" => prop_assert!((1..=defined).contains(&line["stack"].as_u64().unwrap())),
                _ => {}
            }
        }
    }
}

fn line_type(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    value.as_object().unwrap()["type"].as_str().unwrap().to_owned()
}

#[test]
fn outputs_one_after_the_other_are_one_input() {
    let sample = |name: &[u8]| {
        let frame = PlainFrame { function: name.to_vec(), ..PlainFrame::default() };
        Call::Sample(PlainSample { frames: vec![frame], count: 2, ..PlainSample::default() })
    };
    let segment = Call::Segment(PlainSegment { format: "folded", ..PlainSegment::default() });
    let first = [segment.clone(), sample(b"a"), sample(b"b")];
    let second = [segment, sample(b"b"), sample(b"a")];
    let lines = [export(&first, &[], TABLES), export(&second, &[], TABLES)].concat();
    let (calls, recovery) = read_strictly(&lines);
    assert_eq!(calls, [first, second].concat());
    assert_eq!((recovery.samples, recovery.segments, recovery.is_clean()), (8, 2, true));
}

#[test]
fn warnings_beyond_the_bound_are_counted_there_and_back() {
    let warning = Warning::new("odd").at(3).losing(2).saving(0);
    let warnings = vec![warning; Recovery::MAX_WARNINGS + 5];
    let lines = export(&[], &warnings, TABLES);
    let (_, recovery) = read_strictly(&lines);
    assert_eq!(recovery, recovery_of(&[], &warnings));
    assert_eq!((recovery.more_warnings, recovery.lost_bytes), (5, 2010));
}

/// An output that counts writes, and accepts a limited number of bytes.
struct Meter {
    writes: Rc<Cell<usize>>,
    room: usize,
}

impl Write for Meter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes.set(self.writes.get() + 1);
        self.room = self.room.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn output_streams_in_few_writes_and_a_full_disk_is_an_error() {
    let lines = b"{\"type\":\"sample\",\"tid\":1}\n".repeat(20_000);
    let copy = |room| {
        let writes = Rc::new(Cell::new(0));
        let mut exporter = Exporter::new(Meter { writes: Rc::clone(&writes), room }, TABLES);
        let outcome = import(&*lines, &ReadOptions::default(), &mut Tables::default(), &mut exporter);
        (outcome, writes.get())
    };
    let (outcome, writes) = copy(usize::MAX);
    assert_eq!(outcome.unwrap().samples, 20_000);
    assert!((5..20).contains(&writes), "{writes} writes of some 900 KB");
    let (outcome, _) = copy(100_000);
    assert!(matches!(outcome, Err(borehole_formats::ReadError::Sink(_))));
}
