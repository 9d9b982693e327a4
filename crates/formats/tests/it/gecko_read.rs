//! Reading processed profiles: those of CPython, of other versions, and our own.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::detect::{Format, detect};
use borehole_formats::gecko::{import, import_with_symbols};
use borehole_formats::registry::Companion;
use borehole_formats::{Error, ReadOptions, chrome_trace, tachyon};
use borehole_model::{Context, Event, LaneId, ProfileSink, Recovery, Sample, Tables, Value as EventValue};
use borehole_testkit::peers::peer;
use borehole_testkit::{Scratch, read_corpus};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::damage::each_change;
use crate::gecko::{exporter, names, recorded, samples};
use crate::play::{Collect, PlainFrame, PlainSample, PlainSegment, any_samples, collected, named, play};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    read_with(bytes, &ReadOptions::default()).unwrap().0
}

/// By thread: the times and stacks of samples in order of time, in the form of `gecko::samples`.
fn seen(collect: &Collect) -> BTreeMap<u64, Vec<(i64, String)>> {
    let base = collect.samples().filter_map(|sample| sample.time_ns).min().unwrap_or(0);
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for sample in collect.samples() {
        let frames = sample.frames_leaf_first.iter().rev().map(|frame| {
            let number = |number: Option<i64>| number.map_or("null".to_owned(), |number| number.to_string());
            let (line, column) = (number(frame.line), number(frame.column.map(i64::from)));
            format!(";{} {}:{line}:{column}", frame.function, frame.file.as_deref().unwrap_or_default())
        });
        let time_us = (sample.time_ns.unwrap() - base + 500).div_euclid(1_000);
        all.entry(sample.thread.unwrap()).or_default().push((time_us, frames.collect()));
    }
    all.values_mut().for_each(|samples| samples.sort());
    all
}

#[test]
fn every_profile_of_cpython_is_read_exactly() {
    let mut compared = 0;
    for name in names() {
        let bytes = read_corpus(&format!("tachyon/corpus/expected/{name}.gecko.json"));
        let (collect, recovery) = read_with(&bytes, &ReadOptions::default()).unwrap();
        let (ours, mut theirs) = (seen(&collect), samples(&recorded(&name, "gecko.json")));
        // Lanes without samples have no facts.
        theirs.retain(|_, samples| !samples.is_empty());
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        for (ours, theirs) in ours.values().zip(theirs.values()) {
            let pair = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
            assert_eq!((pair, ours.len()), (None, theirs.len()), "{name}");
        }
        assert_eq!(recovery.samples, collect.count(), "{name}");
        assert!(collect.segments.iter().all(|segment| segment.has_times), "{name}");
        compared += ours.values().map(Vec::len).sum::<usize>();
    }
    assert!(compared > 80_000, "{compared}");
}

fn list_of(value: &Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

fn without(table: &mut Value, names: &[&str]) {
    names.iter().for_each(|name| drop(table.as_object_mut().unwrap().remove(*name)));
}

/// Callers by distance, since version 66.
fn modern_stacks(mut stacks: Value) -> Value {
    let rows = list_of(&stacks["prefix"]).into_iter().enumerate();
    let offsets = rows.map(|(row, prefix)| json!(prefix.as_u64().map_or(0, |prefix| row as u64 - prefix)));
    stacks["prefixOffset"] = offsets.collect();
    without(&mut stacks, &["prefix", "category", "subcategory"]);
    stacks
}

/// Flags for known values, since version 71.
fn modern_frames(mut frames: Value) -> Value {
    let flags = |row: usize| {
        [("line", 16), ("column", 32), ("category", 4)]
            .map(|(name, bit)| if frames[name][row].is_null() { 0 } else { bit })
    };
    let count = list_of(&frames["func"]).len();
    let flags: Vec<i64> = (0..count).map(|row| flags(row).iter().sum()).collect();
    for name in ["line", "column"] {
        frames[name] = list_of(&frames[name]).iter().map(|value| value.as_i64().unwrap_or(0)).collect();
    }
    frames["flags"] = json!(flags);
    for name in ["lib", "address", "nativeSymbol", "innerWindowID", "originalLocation"] {
        frames[name] = json!(vec![0; count]);
    }
    without(&mut frames, &["inlineDepth", "implementation", "optimizations"]);
    frames
}

/// Functions and their sources, since versions 58 and 75. Each function has its own source, which is valid and simple.
fn modern_functions(mut functions: Value) -> (Value, Value) {
    let files = list_of(&functions["fileName"]);
    let count = files.len();
    functions["flags"] = files.iter().map(|file| 4 + if file.is_null() { 0 } else { 8 }).collect();
    functions["source"] = (0..count).collect();
    for name in ["lineNumber", "columnNumber", "originalLocation"] {
        functions[name] = json!(vec![0; count]);
    }
    without(&mut functions, &["isJS", "relevantForJS", "fileName"]);
    let all = |value: Value| Value::Array(vec![value; count]);
    let sources = json!({
        "length": count, "filename": files.iter().map(|file| file.as_u64().unwrap_or(0)).collect::<Vec<_>>(),
        "id": all(Value::Null), "startLine": all(json!(1)), "startColumn": all(json!(1)),
        "sourceMapURL": all(Value::Null), "content": all(Value::Null),
    });
    (functions, sources)
}

/// A document of version 75 with one thread: all tables are shared.
fn modern(mut document: Value) -> Value {
    let mut thread = document["threads"][0].take();
    let (functions, sources) = modern_functions(thread["funcTable"].take());
    let mut resources = thread["resourceTable"].take();
    without(&mut resources, &["lib"]);
    for (name, table) in [
        ("stackTable", modern_stacks(thread["stackTable"].take())),
        ("frameTable", modern_frames(thread["frameTable"].take())),
        ("funcTable", functions),
        ("resourceTable", resources),
        ("nativeSymbols", thread["nativeSymbols"].take()),
        ("sources", sources),
        ("sourceLocationTable", json!({"source": [], "line": [], "column": [], "length": 0})),
    ] {
        without(&mut thread, &[name]);
        document["shared"][name] = table;
    }
    let times = list_of(&thread["samples"]["time"]);
    let times: Vec<f64> = times.iter().map(|time| time.as_f64().unwrap()).collect();
    let before = std::iter::once(0.0).chain(times.iter().copied());
    thread["samples"]["timeDeltas"] = times.iter().zip(before).map(|(time, before)| time - before).collect();
    without(&mut thread["samples"], &["time", "eventDelay"]);
    document["threads"][0] = thread;
    document["meta"]["preprocessedProfileVersion"] = json!(75);
    document
}

#[test]
fn a_profile_of_the_newest_version_is_read_as_an_older_one() {
    let old = recorded("15_unicode", "gecko.json");
    let new = serde_json::to_vec(&modern(old.clone())).unwrap();
    assert_eq!(seen(&read(&new)), seen(&read(&serde_json::to_vec(&old).unwrap())));
    // Firefox Profiler accepts the document made by hand.
    let Some(profiler) = peer("firefox-profiler") else { return };
    let scratch = Scratch::new();
    let file = scratch.write("new.json", &new);
    let answer: Value = serde_json::from_str(&profiler.stdout(&["load", &file.to_string_lossy()])).unwrap();
    assert!(answer["error"].is_null(), "{answer}");
}

#[test]
fn libraries_addresses_and_weights_are_understood() {
    let document = json!({
        "meta": {"preprocessedProfileVersion": 40, "interval": 2.5, "startTime": 1_700_000_000_000_u64, "product": "work"},
        "libs": [{"name": "libwork.so", "path": "/usr/lib/libwork.so"}],
        "threads": [
            {
                "name": "worker", "pid": "4711", "tid": "12",
                "stringArray": ["poll", "main", "libwork.so", "/src/main.rs"],
                "samples": {"stack": [1, null, 0], "time": [1.5, 2, 3.25], "weight": [2, 1, 3], "weightType": "samples"},
                "stackTable": {"frame": [1, 0], "prefix": [null, 0]},
                "frameTable": {"func": [0, 1], "address": [1056, -1], "line": [null, 9], "nativeSymbol": [0, null]},
                "funcTable": {"name": [0, 1], "resource": [0, -1], "fileName": [null, 3]},
                "resourceTable": {"lib": [0], "name": [2]},
                "nativeSymbols": {"address": [1024]},
            },
            {
                "name": "heap", "pid": 4711, "tid": 13, "stringArray": ["alloc"],
                "samples": {"stack": [0], "time": [4], "weight": [-64], "weightType": "bytes"},
                "stackTable": {"frame": [0], "prefix": [null]},
                "frameTable": {"func": [0]}, "funcTable": {"name": [0]},
            },
        ],
    });
    let (collect, recovery) =
        read_with(&serde_json::to_vec(&document).unwrap(), &ReadOptions::default()).unwrap();
    assert!(recovery.notes.is_empty());
    assert_eq!(collect.thread_names, [(12, "worker".to_owned()), (13, "heap".to_owned())]);
    let [worker, heap] = &collect.segments[..] else { panic!() };
    assert_eq!((worker.period_ns, worker.start_unix_ns), (Some(2_500_000), Some(1_700_000_000_000_000_000)));
    let counts: Vec<_> = worker.samples.iter().map(|sample| (sample.time_ns, sample.count)).collect();
    assert_eq!(counts, [(Some(1_500_000), 2), (Some(2_000_000), 1), (Some(3_250_000), 3)]);
    let leaf = &worker.samples[0].frames_leaf_first[0];
    assert_eq!(
        (&*leaf.function, leaf.native.clone()),
        ("poll", Some(("/usr/lib/libwork.so".to_owned(), Some(32))))
    );
    let root = &worker.samples[2].frames_leaf_first[0];
    assert_eq!((root.file.as_deref(), root.line), (Some("/src/main.rs"), Some(9)));
    assert!(worker.samples[1].frames_leaf_first.is_empty());
    assert!(collect.samples().all(|sample| sample.process == Some(4711)));
    assert_eq!((heap.value_types[0].1.as_str(), &heap.samples[0].values[..]), ("bytes", &[-64][..]));
}

/// Self samples of each process by function, or by library for addresses, as Firefox's profiler has them.
fn self_samples(profile: &Collect) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut sums: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for sample in profile.samples() {
        let leaf = &sample.frames_leaf_first[0];
        let library = leaf.native.as_ref().map(|(module, _)| module.rsplit('/').next().unwrap());
        let is_address = library.is_none() && leaf.function.starts_with("0x");
        let name = library.unwrap_or(if is_address { "?" } else { &leaf.function });
        let process = sums.entry(sample.process.unwrap().to_string()).or_default();
        *process.entry(name.to_owned()).or_default() += 1;
    }
    sums
}

#[test]
fn profiles_of_firefox_have_the_sums_of_its_profiler() {
    let bytes = read_corpus("firefox/shutdown.json");
    assert_eq!(detect(&bytes), Some(Format::Gecko));
    let profile = read(&bytes);
    let theirs: BTreeMap<String, BTreeMap<String, u64>> =
        serde_json::from_slice(&read_corpus("firefox/shutdown.self.json")).unwrap();
    assert_eq!(theirs.len(), 4);
    assert_eq!(self_samples(&profile), theirs);
    let inner = profile.samples().find(|sample| sample.frames_leaf_first[0].function == "inner").unwrap();
    let frame = &inner.frames_leaf_first[0];
    assert_eq!(frame.file.as_deref(), Some("file:///app/page.html"));
    assert!(frame.line == Some(2) && frame.column.is_some(), "{frame:?}");
    assert_eq!(profile.thread_names.len(), 4);
}

#[test]
fn the_processes_of_a_profile_share_its_clock() {
    let thread = |pid: u32, time: &str| {
        format!(
            r#"{{"name":"GeckoMain","processName":"Tab","pid":{pid},"tid":{pid},
            "samples":{{"schema":{{"stack":0,"time":1}},"data":[[0,{time}],[null,{time}],[7,{time}]]}},
            "stackTable":{{"schema":{{"prefix":0,"frame":1}},"data":[[null,0],[0,1]]}},
            "frameTable":{{"schema":{{"location":0,"line":4}},"data":[[0],[1,true,null,"x",7]]}},
            "markers":{{"schema":{{"name":0}},"data":[[0,{{"a":1}}]]}},"stringTable":["(root)","f (a.js:3:4)"]}}"#
        )
    };
    let document = |start: u32, thread: &str, children: &str| {
        format!(
            r#"{{"meta":{{"version":34,"interval":1,"startTime":{start}}},"libs":[],"threads":[{thread}],
            "processes":[{children}]}}"#
        )
    };
    let child = document(1500, &thread(8, "2"), "");
    let whole = document(1000, &thread(7, "1.5"), &child);
    let error = read_with(whole.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.message(), "unknown stack in sample 2 of a thread");
    let (profile, recovery) = read_with(whole.as_bytes(), &ReadOptions::lenient()).unwrap();
    let times: Vec<_> = profile.samples().map(|sample| (sample.process, sample.time_ns)).collect();
    let [first, second] = [(Some(7), Some(1_500_000)), (Some(8), Some(502_000_000))];
    assert_eq!(times, [first, first, second, second]);
    assert_eq!(recovery.notes[0].message, "2 markers without a time are not read");
    let error = read_with(br#"{"meta":{}}"#, &ReadOptions::default()).unwrap_err();
    assert_eq!(error.message(), "expected a profile of Firefox, found one without a version");
    for end in 0..whole.len() {
        let _ = read_with(&whole.as_bytes()[..end], &ReadOptions::lenient());
        for byte in [b'9', b'"', b'['] {
            let mut changed = whole.clone().into_bytes();
            changed[end] = byte;
            let _ = read_with(&changed, &ReadOptions::lenient());
        }
    }
}

#[test]
fn invalid_indexes_cost_one_sample_each() {
    let mut document = recorded("21_slow_10hz", "gecko.json");
    let whole = read(&serde_json::to_vec(&document).unwrap()).count();
    document["threads"][0]["samples"]["stack"][1] = json!(100_000);
    let bytes = serde_json::to_vec(&document).unwrap();
    let error = read_with(&bytes, &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("unknown stack 100000 in sample 1 of thread 0"), "{error}");
    let (collect, recovery) = read_with(&bytes, &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.count(), recovery.warnings.len()), (whole - 1, 1));
    // A caller after its callee would be a cycle.
    document["threads"][0]["stackTable"]["prefix"][1] = json!(1);
    let error = read_with(&serde_json::to_vec(&document).unwrap(), &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("invalid stack 1: missing caller or frame"), "{error}");
}

#[test]
fn every_beginning_and_every_changed_byte_is_read_or_refused() {
    let bytes = read_corpus("tachyon/corpus/expected/23_short.gecko.json");
    for end in 0..bytes.len() {
        assert!(read_with(&bytes[..end], &ReadOptions::default()).is_err(), "{end}");
        assert_eq!(read_with(&bytes[..end], &ReadOptions::lenient()).unwrap().0.count(), 0, "{end}");
    }
    for place in 0..bytes.len() {
        for change in [0x01, 0x10, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let _ = read_with(&changed, &ReadOptions::default());
            read_with(&changed, &ReadOptions::lenient()).unwrap();
        }
    }
}

/// Counts by process, thread, time and functions.
fn totals(samples: impl Iterator<Item = PlainSample>) -> BTreeMap<String, u64> {
    let mut totals = BTreeMap::new();
    for sample in samples {
        let names: Vec<_> = sample.frames_leaf_first.iter().map(|frame| &frame.function).collect();
        let PlainSample { process, thread, interpreter, time_ns, .. } = &sample;
        *totals
            .entry(format!("{process:?} {thread:?} {interpreter:?} {time_ns:?} {names:?}"))
            .or_insert(0) += sample.count;
    }
    totals
}

#[test]
fn every_interpreter_of_python_comes_back() {
    let bytes = read_corpus("tachyon/corpus/09_subinterp.bin");
    let by_interpreter = |samples: &mut dyn Iterator<Item = &PlainSample>| {
        let mut counts = BTreeMap::new();
        for sample in samples.filter(|sample| !sample.frames_leaf_first.is_empty()) {
            *counts.entry(sample.interpreter).or_insert(0) += sample.count;
        }
        counts
    };
    let (original, _) =
        collected(|tables, sink| tachyon::import(&bytes, &ReadOptions::default(), tables, sink)).unwrap();
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let written = by_interpreter(&mut original.samples());
    assert_eq!(written.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
    assert_eq!(by_interpreter(&mut read(&out).samples()), written);
}

proptest! {
    #[test]
    fn written_samples_survive_a_round_trip(samples in any_samples(), step in 1..1_000_000_i64) {
        let samples: Vec<_> = (0..).zip(samples).map(|(index, sample)| PlainSample {
            time_ns: Some(index * step),
            count: sample.count.min(1 << 40),
            // Number 0 stands for an unknown one, and an empty stack for no sample.
            process: sample.process.filter(|&process| process > 0),
            thread: sample.thread.map(|thread| thread % 1_000 + 1),
            frames_leaf_first: [&sample.frames_leaf_first[..], &[named("root")]].concat(),
            ..sample
        }).collect();
        let segment = PlainSegment { has_times: true, samples: samples.clone(), ..PlainSegment::default() };
        let mut bytes = Vec::new();
        play(&[segment], &mut exporter(&mut bytes));
        let back = read(&bytes);
        let written = samples.into_iter().map(|sample| PlainSample { ..sample });
        prop_assert_eq!(totals(back.samples().cloned()), totals(written));
        prop_assert_eq!(borehole_formats::detect::detect(&bytes).map(borehole_formats::detect::Format::name), Some("gecko"));
    }
}

fn rewritten(bytes: &[u8]) -> Value {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn reused_thread_and_process_numbers_stay_distinct() {
    let bytes = read_corpus("gecko/lanes-suffixed-tid.gecko.json");
    let collect = read(&bytes);
    let lanes: std::collections::BTreeSet<_> =
        collect.samples().map(|sample| (sample.process.unwrap(), sample.thread.unwrap())).collect();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let ids = |document: &Value| {
        let threads = document["threads"].as_array().unwrap().iter();
        let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        threads.map(|thread| (text(&thread["pid"]), text(&thread["tid"]))).collect::<Vec<_>>()
    };
    assert_eq!(lanes.len(), ids(&document).len());
    assert_eq!(collect.thread_names.len(), lanes.len());
    assert_eq!(ids(&rewritten(&bytes)), ids(&document));
}

#[test]
fn threads_and_processes_without_numbers_stay_apart() {
    let thread = |pid: Value, tid: Value| {
        json!({
            "name": "worker", "pid": pid, "tid": tid, "stringArray": ["f"],
            "samples": {"stack": [0], "time": [4]}, "stackTable": {"frame": [0], "prefix": [null]},
            "frameTable": {"func": [0]}, "funcTable": {"name": [0]},
        })
    };
    let threads = [
        thread(json!("web"), json!(1)),
        thread(json!("jobs"), json!(1)),
        thread(json!("web"), json!(2)),
        thread(Value::Null, Value::Null),
        thread(Value::Null, json!("x")),
    ];
    let document = json!({"meta": {"preprocessedProfileVersion": 40}, "threads": threads});
    let collect = read(document.to_string().as_bytes());
    let id = |place| LaneId::Profile(place);
    let lanes: Vec<_> = collect.samples().map(|sample| (sample.process, sample.thread.unwrap())).collect();
    assert_eq!(
        lanes,
        [
            (Some(id(0).to_process()), 1),
            (Some(id(1).to_process()), 1),
            (Some(id(0).to_process()), 2),
            (None, id(3).to_u64()),
            (None, id(4).to_u64()),
        ]
    );
}

#[test]
fn weights_of_times_and_bytes_survive() {
    let thread = |tid: u64, kind: &str, weights: Value| {
        json!({
            "name": "worker", "pid": 7, "tid": tid, "stringArray": ["f"],
            "samples": {"stack": [0, 0], "time": [4, 5], "weight": weights, "weightType": kind},
            "stackTable": {"frame": [0], "prefix": [null]}, "frameTable": {"func": [0]}, "funcTable": {"name": [0]},
        })
    };
    let threads = [
        thread(1, "tracing-ms", json!([1.5, 1000])),
        thread(2, "bytes", json!([-64, 4096])),
        thread(3, "samples", json!([2, 3])),
    ];
    let document = json!({"meta": {"preprocessedProfileVersion": 40}, "threads": threads});
    let bytes = document.to_string().into_bytes();
    let collect = read(&bytes);
    let types: Vec<_> = collect.segments.iter().map(|segment| segment.value_types.clone()).collect();
    let value_type = |kind: &str, unit: &str| vec![(kind.to_owned(), unit.to_owned())];
    assert_eq!(types, [value_type("wall", "nanoseconds"), value_type("weight", "bytes"), vec![]]);
    let after = rewritten(&bytes);
    for (index, thread) in threads.iter().enumerate() {
        for member in ["weight", "weightType"] {
            assert_eq!(
                after["threads"][index]["samples"][member], thread["samples"][member],
                "{index} {member}"
            );
        }
    }
}

/// The events of an input as text.
#[derive(Default)]
struct EventTexts(Vec<String>);

impl ProfileSink for EventTexts {
    fn sample(&mut self, _at: Context<'_>, _sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let shape = at.tables.shape(event.shape);
        let fields = shape.fields.iter().zip(event.values).filter(|(_, value)| **value != EventValue::Absent);
        let fields: Vec<_> = fields.map(|(field, value)| format!("{}={value:?}", text(field.name))).collect();
        let (time, process) = (event.time_ns.unwrap(), at.segment.process.unwrap());
        self.0.push(format!("{time} {process} {} {}", text(shape.name), fields.join(" ")));
        Ok(ControlFlow::Continue(()))
    }
}

fn events(bytes: &[u8]) -> (Vec<String>, Recovery) {
    let (mut tables, mut texts) = (Tables::default(), EventTexts::default());
    let recovery = import(bytes, &ReadOptions::default(), &mut tables, &mut texts).unwrap();
    assert_eq!(recovery.events, texts.0.len() as u64);
    (texts.0, recovery)
}

#[test]
fn markers_are_events_and_spans_with_their_data() {
    let document = json!({
        "meta": {
            "preprocessedProfileVersion": 40,
            "categories": [{"name": "Other"}, {"name": "Network"}],
            "markerSchema": [{"name": "Fetch", "data": [{"key": "url", "format": "unique-string"}, {"key": "size"}]}],
        },
        "threads": [{
            "pid": 7, "tid": 8, "stringArray": ["fetch", "/cart", "tick", "open", "late"],
            "markers": {
                "name": [0, 2, 3, 3, 4, 99, 2],
                "startTime": [1, 2.5, 3, null, null, 1, null],
                "endTime": [4, null, null, 5, 0.5, 1, null],
                "phase": [1, 0, 2, 3, 3, 0, 0], "category": [1, 0, 0, 0, 0, 0, 0],
                "data": [
                    {"type": "Fetch", "url": 1, "size": 12, "cause": {"stack": 0}},
                    {"deep": [1, {"a": null}]}, null, null, null, null, null,
                ],
                "length": 7,
            },
        }],
    });
    let (texts, recovery) = events(&serde_json::to_vec(&document).unwrap());
    let fetch = [
        "(Text(\"cause\"), Map([(Text(\"stack\"), Unsigned(0))]))",
        "(Text(\"size\"), Unsigned(12))",
        "(Text(\"type\"), Text(\"Fetch\"))",
        "(Text(\"url\"), Text(\"/cart\"))",
    ];
    let fetch = format!("category=Text(\"Network\") data=Map([{}])", fetch.join(", "));
    let deep = "data=Map([(Text(\"deep\"), List([Unsigned(1), Map([(Text(\"a\"), Absent)])]))])";
    let other = "tid=Unsigned(8) category=Text(\"Other\")";
    let enter = |time: u64, name: &str, span: u64| {
        format!("{time} 7 SpanEnter:{name} span_id=Unsigned({span}) span_name=Text(\"{name}\")")
    };
    let exit =
        |time: u64, name: &str, span: u64| format!("{time} 7 SpanExit:{name} span_id=Unsigned({span})");
    let expected = [
        format!("{} {other}", enter(500_000, "late", 3)),
        exit(500_000, "late", 3),
        format!("{} tid=Unsigned(8) {fetch}", enter(1_000_000, "fetch", 1)),
        format!("2500000 7 tick {other} {deep}"),
        format!("{} {other}", enter(3_000_000, "open", 2)),
        exit(4_000_000, "fetch", 1),
        exit(5_000_000, "open", 2),
    ];
    assert_eq!(texts, expected);
    let notes: Vec<_> = recovery.notes.iter().map(|note| &*note.message).collect();
    assert_eq!(
        notes,
        [
            "1 markers without a time are not read",
            "1 markers without a name are not read",
            "1 stacks of markers are not in the profile"
        ]
    );
}

#[test]
fn stacks_of_markers_are_lists_of_functions() {
    let tables = json!({
        "stringArray": ["main", "load", "/a.js", "fetch"],
        "samples": {"stack": [], "time": []},
        "stackTable": {"frame": [0, 1], "prefix": [null, 0]},
        "frameTable": {"func": [0, 1], "line": [null, 7]},
        "funcTable": {"name": [0, 1], "fileName": [null, 2]},
    });
    let inner = json!({"samples": {"schema": {"stack": 0, "time": 1}, "data": [[1, 0.5]]}});
    for (data, expected) in [
        (json!({"cause": {"time": 0.5, "stack": 1}}), "cause"),
        (json!({"stack": 1}), "stack"),
        (json!({"stack": inner}), "stack"),
    ] {
        let mut thread = tables.clone();
        thread["pid"] = json!(7);
        thread["markers"] =
            json!({"name": [3], "startTime": [1], "endTime": [null], "phase": [0], "data": [data]});
        let document = json!({"meta": {"preprocessedProfileVersion": 40}, "threads": [thread]});
        let (texts, recovery) = events(&serde_json::to_vec(&document).unwrap());
        let stack = format!("(Text(\"{expected}\"), List([Text(\"load (/a.js:7)\"), Text(\"main\")]))");
        assert_eq!(texts, [format!("1000000 7 fetch data=Map([{stack}])")]);
        assert!(recovery.notes.is_empty());
    }
}

#[test]
fn counters_are_events_with_their_value_at_each_time() {
    let counter = json!({
        "name": "malloc", "category": "Memory", "pid": "7", "mainThreadIndex": 0,
        "samples": {"time": [1, 2.5, 4], "number": [0, 2, 1], "count": [1024, 16, -1000], "length": 3},
    });
    let document = json!({"meta": {"preprocessedProfileVersion": 56}, "threads": [], "counters": [counter]});
    let expected = [
        "1000000 7 malloc malloc=Float(1024.0)",
        "2500000 7 malloc malloc=Float(1040.0)",
        "4000000 7 malloc malloc=Float(40.0)",
    ];
    assert_eq!(events(&serde_json::to_vec(&document).unwrap()).0, expected);
    let mut output = Vec::new();
    let (mut timeline, mut tables) = (chrome_trace::Exporter::new(&mut output), Tables::default());
    import(&serde_json::to_vec(&document).unwrap()[..], &ReadOptions::default(), &mut tables, &mut timeline)
        .unwrap();
    timeline.finish(&tables).unwrap();
    drop(timeline);
    let document: Value = serde_json::from_slice(&output).unwrap();
    let drawn = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
    let drawn: Vec<_> = drawn.map(|event| format!("{} {}", event["name"], event["args"]["value"])).collect();
    assert_eq!(drawn, [1024.0, 1040.0, 40.0].map(|value| format!("\"malloc\" {value:?}")));
}

/// A profile in the layout of samply whose addresses have no names.
fn nameless_profile() -> Vec<u8> {
    let document = json!({
        "meta": {"preprocessedProfileVersion": 49, "interval": 1, "product": "work", "symbolicated": false},
        "libs": [{"name": "work", "path": "/app/work", "debugName": "work", "breakpadId": "DFB8E43AF2423D73A453AEB6A777EF750"}],
        "threads": [{
            "name": "work", "pid": "7", "tid": "8", "stringArray": ["0x5e", "0x1046", "0x1050", "work", "named"],
            "samples": {"stack": [3, 2, 1], "time": [1, 2, 3]},
            "stackTable": {"frame": [0, 1, 2, 3], "prefix": [null, 0, 0, 1]},
            "frameTable": {"func": [0, 1, 2, 3], "address": [94, 4166, 4176, 4166]},
            "funcTable": {"name": [0, 1, 2, 4], "resource": [0, 0, 0, 0], "fileName": [null, null, null, null]},
            "resourceTable": {"lib": [0], "name": [3]},
        }],
    });
    serde_json::to_vec(&document).unwrap()
}

/// The file of symbols that samply writes beside it.
fn symbols_beside() -> Vec<u8> {
    let document = json!({
        "string_table": ["main", "work::order", "/src/main.rs", "work::price", "/src/price.rs"],
        "data": [{
            "debug_name": "work", "debug_id": "dfb8e43a-f242-3d73-a453-aeb6a777ef75", "code_id": "3ae4b8df",
            "symbol_table": [
                {"rva": 64, "size": 64, "symbol": 0},
                {"rva": 4096, "size": 256, "symbol": 1, "frames": [
                    {"function": 3, "file": 4, "line": 12}, {"function": 1, "file": 2, "line": 40},
                ]},
            ],
            "known_addresses": [[94, 0], [4166, 1]],
        }],
    });
    serde_json::to_vec(&document).unwrap()
}

fn read_pair(symbols: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    let profile = nameless_profile();
    collected(|tables, sink| {
        let companion = Companion { name: "work.syms.json", input: &mut { symbols } };
        import_with_symbols(&profile[..], Some(companion), options, tables, sink)
    })
}

#[test]
fn addresses_have_the_functions_of_the_file_beside_the_profile() {
    let (collect, recovery) = read_pair(&symbols_beside(), &ReadOptions::default()).unwrap();
    let shown = |sample: &PlainSample| {
        let frames = sample.frames_leaf_first.iter().map(|frame| {
            let place =
                (frame.file.as_deref(), frame.line, frame.native.as_ref().and_then(|native| native.1));
            (frame.function.clone(), place.0.map(str::to_owned), place.1, place.2)
        });
        frames.collect::<Vec<_>>()
    };
    let stacks: Vec<_> = collect.samples().map(shown).collect();
    let at = |name: &str, file: Option<&str>, line, offset| {
        (name.to_owned(), file.map(str::to_owned), line, offset)
    };
    let main = at("main", None, None, Some(30));
    let price = at("work::price", Some("/src/price.rs"), Some(12), None);
    let order = at("work::order", Some("/src/main.rs"), Some(40), Some(70));
    // A function with a name keeps it, and an address that samply does not know stays an address.
    let named = at("named", None, None, None);
    assert_eq!(stacks[0], [named, price.clone(), order.clone(), main.clone()]);
    assert_eq!(stacks[1], [at("0x1050", None, None, None), main.clone()]);
    assert_eq!(stacks[2], [price, order, main]);
    assert_eq!(recovery.notes[0].message, "2 addresses have the names in work.syms.json");
    let mut modules = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    assert!(modules.all(|frame| frame.native.as_ref().is_some_and(|(module, _)| module == "/app/work")));
}

#[test]
fn a_damaged_file_of_symbols_is_an_error_or_a_warning() {
    let symbols = symbols_beside();
    let error = read_pair(&symbols[..20], &ReadOptions::default()).err().unwrap();
    assert!(error.message().starts_with("work.syms.json has no symbols that can be read: "), "{error}");
    let (collect, recovery) = read_pair(&symbols[..20], &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.count(), recovery.warnings.len()), (3, 1));
    for end in 0..symbols.len() {
        let _ = read_pair(&symbols[..end], &ReadOptions::lenient());
    }
    each_change(&symbols, 1, b"0\"9,\xff", |changed, _| drop(read_pair(changed, &ReadOptions::lenient())));
}

/// By thread of the profiler: the number of its markers.
fn marker_counts(answer: &Value) -> BTreeMap<u64, u64> {
    let threads = answer["loaded"]["threads"].as_array().unwrap();
    threads
        .iter()
        .map(|thread| (thread["tid"].as_u64().unwrap(), thread["markerCount"].as_u64().unwrap()))
        .collect()
}

#[test]
fn markers_of_firefox_are_as_many_as_in_its_profiler() {
    let bytes = read_corpus("firefox/shutdown.json");
    let (texts, _) = events(&bytes);
    let mut ours = BTreeMap::<u64, u64>::new();
    for text in texts.iter().filter(|text| !text.contains(" SpanExit:")) {
        *ours.entry(text.split(' ').nth(1).unwrap().parse().unwrap()).or_default() += 1;
    }
    let Some(profiler) = peer("firefox-profiler") else { return };
    let scratch = Scratch::new();
    let mut document: Value = serde_json::from_slice(&bytes).unwrap();
    // It would ask a server for the names of addresses in them.
    document["libs"] = json!([]);
    document["processes"].as_array_mut().unwrap().iter_mut().for_each(|process| process["libs"] = json!([]));
    let file = scratch.write("shutdown.json", &serde_json::to_vec(&document).unwrap());
    let answer: Value = serde_json::from_str(&profiler.stdout(&["load", &file.to_string_lossy()])).unwrap();
    let mut theirs = marker_counts(&answer);
    // The profiler adds markers named Jank, for samples in which a main thread did not respond.
    for (process, jank) in [(1822, 2), (10128, 1), (10150, 2)] {
        *theirs.get_mut(&process).unwrap() -= jank;
    }
    assert_eq!(ours, theirs);
}

#[test]
fn markers_are_in_timelines() {
    let bytes = read_corpus("firefox/shutdown.json");
    let mut output = Vec::new();
    let mut timeline = chrome_trace::Exporter::new(&mut output);
    let mut tables = Tables::default();
    import(&bytes[..], &ReadOptions::default(), &mut tables, &mut timeline).unwrap();
    timeline.finish(&tables).unwrap();
    drop(timeline);
    let document: Value = serde_json::from_slice(&output).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let is_read_ahead = |event: &&Value| event["ph"] == "b" && event["name"] == "ReadAheadLib";
    let found: Vec<_> = events.iter().filter(is_read_ahead).collect();
    assert_eq!(found.len(), 5);
    // Markers are on the clock of the samples.
    assert_eq!(found[0]["ts"], json!(22_690.144));
    assert_eq!(found[0]["args"]["category"], "Other");
    let ends = events.iter().filter(|event| event["ph"] == "e" && event["name"] == "ReadAheadLib");
    assert_eq!(ends.count(), 5);
}

#[test]
fn a_start_of_0_is_unknown() {
    let bytes = read_corpus("gecko/lanes-suffixed-tid.gecko.json");
    for (start, known) in [(0.0, None), (0.001, Some(1000)), (-1.0, None)] {
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        document["meta"]["startTime"] = json!(start);
        let collect = read(document.to_string().as_bytes());
        assert!(!collect.segments.is_empty());
        assert!(collect.segments.iter().all(|segment| segment.start_unix_ns == known), "{start}");
    }
}

#[test]
fn frames_that_look_the_same_are_one_row() {
    let at_offset =
        |offset| PlainFrame { native: Some(("libx.so".to_owned(), Some(offset))), ..named("work") };
    let samples = [1, 2].map(|offset| PlainSample {
        frames_leaf_first: vec![at_offset(offset), named("main")],
        count: 1,
        ..PlainSample::default()
    });
    let mut bytes = Vec::new();
    play(&[PlainSegment { samples: samples.to_vec(), ..PlainSegment::default() }], &mut exporter(&mut bytes));
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let rows = |table: &str, column: &str| list_of(&document["threads"][0][table][column]).len();
    assert_eq!([rows("frameTable", "func"), rows("stackTable", "prefix")], [2, 2]);
    assert_eq!(list_of(&document["threads"][0]["samples"]["stack"]), [json!(1), json!(1)]);
}
