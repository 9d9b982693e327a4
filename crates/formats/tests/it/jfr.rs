//! Recordings of Java: one of the JDK, compared with what `jfr print` says of it, and files of a few events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use borehole_formats::{Error, Limits, ReadOptions, jfr};
use borehole_model::{Context, ProfileSink, Recovery, Sample, Tables};
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::play::{Collect, PlainFrame, PlainLabel, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| jfr::import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

/// The times of samples.
#[derive(Default)]
struct Times(Vec<i64>);

impl ProfileSink for Times {
    fn sample(&mut self, _: Context<'_>, sample: &Sample<'_>) -> std::io::Result<ControlFlow<()>> {
        self.0.extend(sample.time_ns);
        Ok(ControlFlow::Continue(()))
    }
}

/// The value types, by the events of which they are.
const KINDS: [(&str, &str, &str); 10] = [
    ("jdk.ExecutionSample", "samples", "count"),
    ("jdk.NativeMethodSample", "native_samples", "count"),
    ("jdk.ObjectAllocationSample", "alloc", "bytes"),
    ("jdk.ObjectAllocationInNewTLAB", "alloc_in_new_tlab", "bytes"),
    ("jdk.ObjectAllocationOutsideTLAB", "alloc_outside_tlab", "bytes"),
    ("jdk.JavaMonitorEnter", "monitor_enter", "nanoseconds"),
    ("jdk.JavaMonitorWait", "monitor_wait", "nanoseconds"),
    ("jdk.ThreadPark", "park", "nanoseconds"),
    ("jdk.ThreadSleep", "sleep", "nanoseconds"),
    ("jdk.JavaExceptionThrow", "exceptions", "count"),
];

type Sums = BTreeMap<String, BTreeMap<String, i64>>;

fn of_event(kind: &str) -> &'static str {
    KINDS.iter().find(|(_, known, _)| *known == kind).unwrap().0
}

#[test]
fn samples_are_in_the_order_of_time() {
    let profile = read(&read_corpus("jfr/work.jfr"));
    let times: Vec<_> = profile.samples().map(|sample| sample.time_ns.unwrap()).collect();
    assert!(times.len() > 100 && times.is_sorted());
}

#[test]
fn sums_are_those_of_jfr_print() {
    let profile = read(&read_corpus("jfr/work.jfr"));
    let said: Value = serde_json::from_slice(&read_corpus("jfr/work.jfr.json")).unwrap();
    let types = &profile.segments[0].value_types;
    let (mut leaves, mut threads, mut classes) = (Sums::new(), Sums::new(), BTreeMap::<String, i64>::new());
    let mut frames = 0;
    for sample in profile.samples() {
        let column = sample.values.iter().position(|&value| value != 0).unwrap();
        let event = of_event(&types[column].0).to_owned();
        let leaf = sample.frames_leaf_first.first();
        let leaf = leaf.map(|PlainFrame { function, line, .. }| format!("{function}:{}", line.unwrap_or(0)));
        *leaves.entry(event.clone()).or_default().entry(leaf.unwrap_or_default()).or_default() +=
            sample.values[column];
        let named = |number| {
            let mut names = profile.thread_names.iter();
            names.find(|(thread, _)| *thread == number).map_or("", |(_, name)| name)
        };
        let thread = sample.thread.map(|number| format!("{number} {}", named(number))).unwrap_or_default();
        *threads.entry(event).or_default().entry(thread).or_default() += sample.values[column];
        for label in &sample.labels {
            if let PlainLabel::Text(key, class) = label
                && key == "class"
            {
                *classes.entry(class.clone()).or_default() += 1;
            }
        }
        frames += sample.frames_leaf_first.len();
    }
    assert_eq!(leaves, serde_json::from_value::<Sums>(said["leaves"].clone()).unwrap());
    assert_eq!(threads, serde_json::from_value::<Sums>(said["threads"].clone()).unwrap());
    assert_eq!(classes, serde_json::from_value::<BTreeMap<String, i64>>(said["classes"].clone()).unwrap());
    assert_eq!(frames as u64, said["frames"].as_u64().unwrap());
    let units: BTreeSet<_> = types.iter().map(|(kind, unit)| (of_event(kind), &**kind, &**unit)).collect();
    assert!(units.iter().all(|unit| KINDS.contains(unit)), "{units:?}");
    assert!(units.len() >= 8, "{units:?}");
}

/// Writes a chunk of a few events, as async-profiler does.
#[derive(Default)]
struct ChunkWriter {
    strings: Vec<String>,
    events: Vec<u8>,
}

fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [&[3][..], &number(text.len() as u64), text.as_bytes()].concat()
}

/// A type: id, name, and fields with their types; `*` before a type is a constant, `[` a list.
type TypeRow = (u64, &'static str, &'static [(&'static str, &'static str)]);

/// The types of the chunk.
const TYPES: [TypeRow; 14] = [
    (1, "boolean", &[]),
    (2, "int", &[]),
    (3, "long", &[]),
    (4, "java.lang.String", &[]),
    (
        5,
        "java.lang.Thread",
        &[("osName", "4"), ("osThreadId", "3"), ("javaName", "4"), ("javaThreadId", "3")],
    ),
    (6, "jdk.types.Symbol", &[("string", "4")]),
    (7, "java.lang.Class", &[("name", "*6")]),
    (8, "jdk.types.Method", &[("type", "*7"), ("name", "*6")]),
    (9, "jdk.types.FrameType", &[("description", "4")]),
    (10, "jdk.types.StackFrame", &[("method", "*8"), ("lineNumber", "2"), ("type", "*9")]),
    (11, "jdk.types.StackTrace", &[("truncated", "1"), ("frames", "[10")]),
    (12, "jdk.types.ThreadState", &[("name", "4")]),
    (
        101,
        "profiler.WallClockSample",
        &[
            ("startTime", "3"),
            ("sampledThread", "*5"),
            ("stackTrace", "*11"),
            ("state", "*12"),
            ("samples", "2"),
        ],
    ),
    (
        102,
        "jdk.ExecutionSample",
        &[("startTime", "3"), ("sampledThread", "*5"), ("stackTrace", "*11"), ("state", "*12")],
    ),
];

impl ChunkWriter {
    fn string(&mut self, text: &str) -> Vec<u8> {
        let known = self.strings.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            self.strings.push(text.to_owned());
            self.strings.len() - 1
        });
        number(index as u64)
    }

    fn event(&mut self, id: u64, fields: &[Vec<u8>]) {
        let body = [number(id), fields.concat()].concat();
        // As writers do, so many bytes are reserved for the size as may be needed.
        let width = if body.len() < 1 << 13 { 2 } else { 5 };
        let mut size = number((body.len() + width) as u64);
        while size.len() < width {
            *size.last_mut().unwrap() |= 0x80;
            size.push(0);
        }
        self.events.extend(size);
        self.events.extend(body);
    }

    fn element(&mut self, name: &str, attributes: &[(&str, &str)], children: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.string(name);
        bytes.extend(number(attributes.len() as u64));
        for (key, value) in attributes {
            bytes.extend(self.string(key));
            bytes.extend(self.string(value));
        }
        bytes.extend(number(children.len() as u64));
        bytes.extend(children.concat());
        bytes
    }

    fn metadata(&mut self, types: &[TypeRow]) -> Vec<u8> {
        let mut classes = Vec::new();
        for (id, name, fields) in types {
            let mut children = Vec::new();
            for (field, value_type) in *fields {
                let plain = value_type.trim_start_matches(['*', '[']);
                let mut attributes = vec![("name", *field), ("class", plain)];
                attributes.extend(value_type.starts_with('*').then_some(("constantPool", "true")));
                attributes.extend(value_type.starts_with('[').then_some(("dimension", "1")));
                children.push(self.element("field", &attributes, &[]));
            }
            classes.push(self.element("class", &[("id", &id.to_string()), ("name", name)], &children));
        }
        let metadata = self.element("metadata", &[], &classes);
        let root = self.element("root", &[], &[metadata]);
        let strings: Vec<u8> = self.strings.iter().flat_map(|string| text(string)).collect();
        [vec![0, 0, 0], number(self.strings.len() as u64), strings, root].concat()
    }

    /// A file of one chunk that begins 5 s after 1970, with a clock of 1 MHz.
    fn finish(mut self, types: &[TypeRow]) -> Vec<u8> {
        let metadata = self.metadata(types);
        self.event(0, &[metadata]);
        let size = self.events.len() as u64 + 68;
        let head = [size, 0, 0, 5_000_000_000, 0, 1_000, 1_000_000].map(u64::to_be_bytes).concat();
        [&b"FLR\0\0\x02\0\x01"[..], &head, &[0, 0, 0, 1], &self.events].concat()
    }
}

/// The constants: two threads, of which one is virtual, and a stack of a native function below one of Java.
fn constants() -> Vec<Vec<u8>> {
    let pool =
        |id: u64, entries: &[Vec<u8>]| [number(id), number(entries.len() as u64), entries.concat()].concat();
    let entry = |key: u64, fields: &[Vec<u8>]| [number(key), fields.concat()].concat();
    vec![
        vec![0, 0, 0, 0],
        number(7),
        pool(
            5,
            &[
                entry(7, &[text("C1"), number(70), vec![0], number(0)]),
                entry(8, &[vec![0], number(0), text("virtual"), number(36)]),
            ],
        ),
        pool(
            6,
            &[
                entry(1, &[text("app/Main")]),
                entry(2, &[text("run")]),
                entry(3, &[text("do_syscall_64")]),
                entry(4, &[vec![1]]),
            ],
        ),
        pool(7, &[entry(1, &[number(1)]), entry(2, &[number(4)])]),
        pool(8, &[entry(1, &[number(1), number(2)]), entry(2, &[number(2), number(3)])]),
        pool(9, &[entry(1, &[text("JIT compiled")]), entry(2, &[text("Kernel")])]),
        pool(
            11,
            &[entry(
                1,
                &[vec![1], number(2), number(2), number(0), number(2), number(1), number(7), number(1)],
            )],
        ),
        pool(12, &[entry(1, &[text("STATE_RUNNABLE")]), entry(2, &[text("STATE_SLEEPING")])]),
    ]
}

fn wall_clock() -> Vec<u8> {
    let mut chunk = ChunkWriter::default();
    chunk.event(101, &[number(3_000), number(8), number(1), number(2), number(40)]);
    chunk.event(102, &[number(2_000), number(7), number(1), number(1)]);
    chunk.event(1, &constants());
    chunk.finish(&TYPES)
}

#[test]
fn samples_of_async_profiler_have_states_and_counts() {
    let profile = read(&wall_clock());
    let segment = &profile.segments[0];
    let types: Vec<_> = segment.value_types.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(types, ["samples", "wall_samples"]);
    assert_eq!(segment.start_unix_ns, Some(5_000_000_000));
    let [running, waiting] = &segment.samples[..] else { panic!("two samples") };
    assert_eq!((&waiting.values[..], waiting.time_ns), (&[0, 40][..], Some(2_000_000)));
    assert_eq!(
        (&running.values[..], running.time_ns, running.thread),
        (&[1, 0][..], Some(1_000_000), Some(70))
    );
    let state = |state: &str| vec![PlainLabel::Text("state".to_owned(), state.to_owned())];
    assert_eq!((&waiting.labels, &running.labels), (&state("STATE_SLEEPING"), &state("STATE_RUNNABLE")));
    let [kernel, java] = &running.frames_leaf_first[..] else { panic!("two frames") };
    assert_eq!((&*kernel.function, &kernel.native), ("do_syscall_64", &Some(("[kernel]".to_owned(), None))));
    assert_eq!((&*java.function, java.line), ("app.Main.run", Some(7)));
    let names: BTreeSet<_> = profile.thread_names.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["C1", "virtual"]));
    assert!(waiting.thread.is_some() && waiting.thread != running.thread);
}

#[test]
fn chunks_share_a_clock_and_damage_costs_one_of_them() {
    let chunk = wall_clock();
    let mut later = chunk.clone();
    later[32..40].copy_from_slice(&6_000_000_000_u64.to_be_bytes());
    let profile = read(&[chunk.clone(), later.clone()].concat());
    let times: Vec<_> = profile.samples().map(|sample| sample.time_ns.unwrap()).collect();
    assert_eq!(times, [1_000_000, 2_000_000, 1_001_000_000, 1_002_000_000]);

    // An event without a size ends its chunk.
    let mut damaged = chunk;
    damaged[68] = 0;
    let whole = [damaged, later].concat();
    let error = read_with(&whole, &ReadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "truncated: the chunk has no metadata, without which nothing of it can be read (jfr, at byte 0x0)"
    );
    let (profile, recovery) = read_with(&whole, &ReadOptions::lenient()).unwrap();
    assert_eq!((profile.samples().count(), recovery.is_clean()), (2, false));
}

#[test]
fn the_events_of_a_chunk_are_sorted_a_million_at_a_time() {
    const SORTED: u64 = 1 << 20;
    for (count, first) in [(SORTED - 1, 1), (SORTED, 1), (SORTED + 1, 2)] {
        let mut chunk = ChunkWriter::default();
        for later in (1..=count).rev() {
            chunk.event(102, &[number(1_000 + later), number(7), number(1), number(1)]);
        }
        chunk.event(1, &constants());
        let mut times = Times::default();
        let mut tables = Tables::default();
        jfr::import(&chunk.finish(&TYPES)[..], &ReadOptions::default(), &mut tables, &mut times).unwrap();
        assert_eq!(times.0.len() as u64, count);
        let sorted = times.0.iter().take_while(|&&time_ns| time_ns >= times.0[0]).count();
        assert_eq!((times.0[0], sorted as u64), (first * 1_000, count.min(SORTED)));
    }
}

#[test]
fn missing_constants_are_counted() {
    let mut chunk = ChunkWriter::default();
    chunk.event(102, &[number(2_000), number(70), number(10), number(1)]);
    chunk.event(1, &constants());
    let (profile, recovery) = read_with(&chunk.finish(&TYPES), &ReadOptions::default()).unwrap();
    let sample = profile.samples().next().unwrap();
    assert_eq!((sample.thread, sample.frames_leaf_first.len(), sample.labels.len()), (None, 0, 1));
    assert_eq!(recovery.notes[0].message, "2 threads, stacks or classes are not in the recording");
}

#[test]
fn memory_for_types_and_constants_is_limited() {
    let limits = Limits { memory_bytes: 1000, ..Limits::default() };
    let error = read_with(&wall_clock(), &ReadOptions { limits, ..ReadOptions::lenient() }).unwrap_err();
    assert!(error.is_memory(), "{error}");
}

#[test]
fn what_cannot_be_read_says_so() {
    let cases: [(&[u8], &str); 4] = [
        (b"FLR\0\0\x02", "truncated: 2 bytes missing (jfr, at byte 0x0)"),
        (
            &[b"FLR\0\0\x02\0\0".as_slice(), &[0; 60]].concat(),
            "unsupported: numbers are not compressed (jfr, at byte 0x0)",
        ),
        (b"nothing", "expected a chunk (FLR) (jfr, at byte 0x0)"),
        (b"", "expected a profile, found an empty input (jfr, at byte 0x0)"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(read_with(bytes, &ReadOptions::default()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn types_inside_of_themselves_are_refused() {
    let mut types = TYPES;
    types[5].2 = &[("string", "6")];
    let mut chunk = ChunkWriter::default();
    chunk.event(102, &[number(2_000), number(7), number(1), number(1)]);
    chunk.event(1, &constants());
    let error = read_with(&chunk.finish(&types), &ReadOptions::default()).unwrap_err();
    assert!(error.message().starts_with("invalid type jdk.types.Symbol"), "{error}");
}

#[test]
fn a_long_class_does_not_stand_in_the_names_of_many_methods() {
    const METHODS: u64 = 200;
    let pool = |id: u64, entries: Vec<Vec<u8>>| {
        [number(id), number(entries.len() as u64), entries.concat()].concat()
    };
    let methods = || 1..=METHODS;
    let symbols = methods().map(|key| [number(1 + key), text(&format!("m{key}"))].concat());
    let class = [number(1), text(&"c".repeat(400_000))].concat();
    let frames = methods().map(|key| [number(key), number(7), number(1)].concat());
    let constants = [
        vec![0, 0, 0, 0],
        number(4),
        pool(6, std::iter::once(class).chain(symbols).collect()),
        pool(7, vec![[number(1), number(1)].concat()]),
        pool(8, methods().map(|key| [number(key), number(1), number(1 + key)].concat()).collect()),
        pool(11, vec![[number(1), vec![0], number(METHODS), frames.collect::<Vec<_>>().concat()].concat()]),
    ];
    let mut chunk = ChunkWriter::default();
    chunk.event(102, &[number(2_000), number(0), number(1), number(0)]);
    chunk.event(1, &constants);
    let error = read_with(&chunk.finish(&TYPES), &ReadOptions::lenient()).unwrap_err();
    assert!(error.is_limit() && error.message().starts_with("names too long"), "{error}");
}

#[test]
fn types_that_are_nested_too_deep_are_refused_in_any_order() {
    const DEPTH: u64 = 10_000;
    let nested = (0..DEPTH).map(|depth| -> TypeRow {
        let inner = if depth == 0 { "3".to_owned() } else { (999 + depth).to_string() };
        (1_000 + depth, "Nested", vec![("f", &*inner.leak())].leak())
    });
    let inside_first: Vec<_> = TYPES.into_iter().chain(nested).collect();
    let mut outside_first = inside_first.clone();
    outside_first.reverse();
    for types in [inside_first, outside_first] {
        let mut chunk = ChunkWriter::default();
        let pool = [number(999 + DEPTH), number(1), number(1), number(7)].concat();
        chunk.event(1, &[vec![0, 0, 0, 0], number(1), pool]);
        let error = read_with(&chunk.finish(&types), &ReadOptions::default()).unwrap_err();
        assert!(error.message().starts_with("invalid type Nested"), "{error}");
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = wall_clock();
    for end in 0..bytes.len() {
        let _ = read_with(&bytes[..end], &ReadOptions::default());
        let (_, recovery) = read_with(&bytes[..end], &ReadOptions::lenient()).unwrap_or_default();
        assert!(!recovery.is_clean() || end < 68, "{end}");
        for change in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[end] = change;
            let _ = read_with(&changed, &ReadOptions::default());
            let _ = read_with(&changed, &ReadOptions::lenient());
        }
    }
    let recording = read_corpus("jfr/work.jfr");
    for end in (0..recording.len()).step_by(997) {
        let _ = read_with(&recording[..end], &ReadOptions::default());
        let mut changed = recording.clone();
        changed[end] ^= 0x55;
        let _ = read_with(&changed, &ReadOptions::lenient());
    }
}
