//! Reading processed profiles: those of CPython, of other versions, and our own.

use std::collections::BTreeMap;

use borehole_formats::detect::{Format, detect};
use borehole_formats::gecko::import;
use borehole_formats::{Error, ReadOptions, tachyon};
use borehole_model::{LaneId, ProfileSink as _, Recovery, Tables};
use borehole_testkit::peers::peer;
use borehole_testkit::{Scratch, read_corpus};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::gecko::{exporter, names, recorded, samples};
use crate::play::{Collect, PlainSample, PlainSegment, any_samples, collected, named, play};

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
                "markers": {"length": 3},
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
    assert_eq!(recovery.notes[0].message, "3 markers are not read");
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
    assert_eq!(recovery.notes[0].message, "2 markers are not read");
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
