//! Trace events of other programs, compared with speedscope's importer, and our own output.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::{Error, ReadOptions, chrome_trace, cpuprofile};
use borehole_model::{Context, Event, ProfileSink, Recovery, Sample, Tables, Value as EventValue};
use borehole_testkit::peers::speedscope_import;
use borehole_testkit::{Scratch, read_corpus};

use crate::damage::each_change;
use crate::play::{Collect, PlainFrame, PlainSample, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| chrome_trace::import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> (Collect, Recovery) {
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    (collect, recovery)
}

/// The self times of a lane by frame, in nanoseconds.
fn self_times(collect: &Collect, lane: usize, name: impl Fn(&PlainFrame) -> String) -> BTreeMap<String, i64> {
    let mut own = BTreeMap::new();
    for sample in &collect.segments[lane].samples {
        *own.entry(name(&sample.frames_leaf_first[0])).or_insert(0) += sample.values[0];
    }
    own.retain(|_, time| *time > 0);
    own
}

/// Compares the self times of each thread with those of speedscope, within `tolerance_ns` for each function.
fn compare(file: &str, name: impl Fn(&PlainFrame) -> String, tolerance_ns: i64) {
    let bytes = read_corpus(&format!("chrome/{file}"));
    let (collect, _) = read(&bytes);
    let scratch = Scratch::new();
    let Some(import) = speedscope_import(&scratch.write(file, &bytes)) else { return };
    let profiles = import.unwrap().profiles;
    assert_eq!(profiles.len(), collect.segments.len());
    for lane in 0..collect.segments.len() {
        let own = self_times(&collect, lane, &name);
        let is_it = |weights: &BTreeMap<String, f64>| {
            let weights: BTreeMap<_, _> = weights.iter().filter(|(_, weight)| **weight > 0.0).collect();
            weights.keys().map(|key| key.as_str()).eq(own.keys().map(String::as_str))
                && own
                    .iter()
                    .all(|(name, time)| (*time as f64 - weights[name] * 1000.0).abs() <= tolerance_ns as f64)
        };
        let shown = || profiles.iter().map(|profile| &profile.self_weights).collect::<Vec<_>>();
        assert!(profiles.iter().any(|profile| is_it(&profile.self_weights)), "{own:#?}\n{:#?}", shown());
    }
}

#[test]
fn self_times_of_viztracer_are_those_of_speedscope() {
    let name = |frame: &PlainFrame| match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({file}:{line})", frame.function),
        _ => frame.function.clone(),
    };
    // Its times are doubles of microseconds since the machine started.
    compare("viztracer.json", name, 5);
}

#[test]
fn self_times_of_py_spy_are_those_of_speedscope() {
    let name = |frame: &PlainFrame| {
        let (file, line) = (frame.file.as_deref().unwrap_or_default(), frame.line.unwrap_or(0));
        format!("{} {{\"filename\":\"{file}\",\"line\":{line}}}", frame.function)
    };
    compare("py-spy.json", name, 0);
}

#[test]
fn frames_have_files_and_lines_and_threads_their_names() {
    let (collect, _) = read(&read_corpus("chrome/viztracer.json"));
    let leaf = |frame: &&PlainFrame| frame.function == "leaf" && frame.line == Some(5);
    for segment in &collect.segments {
        assert!(
            segment.samples.iter().flat_map(|sample| &sample.frames_leaf_first).any(|frame| leaf(&frame))
        );
    }
    let mut names: Vec<_> = collect.thread_names.iter().map(|(_, name)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["MainThread", "calls worker"]);
    assert_eq!(collect.segments[0].metadata, [("process_name".to_owned(), "MainProcess".to_owned())]);
}

#[test]
fn our_own_timeline_reads_as_the_same_stacks() {
    let text = b"[{\"ph\":\"B\",\"name\":\"a\",\"pid\":7,\"tid\":8,\"ts\":1,\"args\":{\"file\":\"/a.php\",\"line\":3}},
        {\"ph\":\"X\",\"name\":\"b\",\"pid\":7,\"tid\":8,\"ts\":2.5,\"dur\":2},
        {\"ph\":\"E\",\"pid\":7,\"tid\":8,\"ts\":10}]";
    let mut output = Vec::new();
    let mut exporter = chrome_trace::Exporter::new(&mut output);
    let mut tables = Tables::default();
    chrome_trace::import(&text[..], &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let samples = |bytes: &[u8]| read(bytes).0.samples().cloned().collect::<Vec<_>>();
    assert_eq!(samples(&output), samples(text));
    let times: Vec<_> =
        samples(text).iter().map(|sample| (sample.frames_leaf_first.len(), sample.values[0])).collect();
    assert_eq!(times, [(1, 1500), (2, 2000), (1, 5500)]);
}

#[test]
fn our_own_timeline_is_the_same_to_speedscope() {
    let mut output = Vec::new();
    let mut exporter = chrome_trace::Exporter::new(&mut output);
    let mut tables = Tables::default();
    let bytes = read_corpus("chrome/viztracer.json");
    chrome_trace::import(&bytes[..], &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let scratch = Scratch::new();
    let Some(import) = speedscope_import(&scratch.write("ours.json", &output)) else { return };
    let (collect, _) = read(&bytes);
    let ours: BTreeMap<_, i64> = (0..collect.segments.len())
        .flat_map(|lane| self_times(&collect, lane, |frame| frame.function.clone()))
        .fold(BTreeMap::new(), |mut all, (name, time)| {
            *all.entry(name).or_insert(0) += time;
            all
        });
    let mut theirs = BTreeMap::<_, f64>::new();
    for (name, weight) in import.unwrap().profiles.iter().flat_map(|profile| &profile.self_weights) {
        let name = name.split(" {").next().unwrap().to_owned();
        *theirs.entry(name).or_default() += weight * 1000.0;
    }
    theirs.retain(|_, time| *time > 0.0);
    assert!(ours.len() > 3, "{ours:?}");
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
    let is_same = |(name, time): (&String, &i64)| (theirs[name] - *time as f64).abs() < 1000.0;
    assert!(ours.iter().all(is_same), "{theirs:?} {ours:?}");
}

#[test]
fn a_list_that_is_cut_off_is_read_up_to_the_cut() {
    let bytes = read_corpus("chrome/py-spy.json");
    let (whole, _) = read(&bytes);
    let (cut, recovery) = read_with(&bytes[..bytes.len() - 2], &ReadOptions::default()).unwrap();
    assert!(!recovery.is_clean());
    assert_eq!(cut.segments.len(), whole.segments.len());
    let error = read_with(&bytes[..5], &ReadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), borehole_formats::ErrorKind::Truncated);
}

#[test]
fn what_is_not_a_call_is_counted() {
    let text = b"{\"traceEvents\":[{\"ph\":\"s\",\"name\":\"arrow\",\"pid\":1,\"ts\":1,\"id\":5},
        {\"ph\":\"X\",\"name\":\"f\",\"pid\":\"gpu\",\"tid\":\"stream 7\",\"ts\":1,\"dur\":3,\"args\":[1]},
        {\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":4},{\"ph\":\"B\",\"name\":\"g\",\"pid\":1,\"tid\":2,\"ts\":5}]}";
    let (collect, recovery) = read(text);
    let notes: Vec<_> = recovery.notes.iter().map(|note| &*note.message).collect();
    assert_eq!(
        notes,
        [
            "1 ends and steps of flow arrows are not read",
            "1 calls without an end last until the last event (thread 2 of process 1)",
            "1 ends without a call are ignored (thread 2 of process 1)",
        ]
    );
    assert_eq!(collect.samples().map(|sample| sample.values[0]).collect::<Vec<_>>(), [3000, 0]);
}

/// The notes about events of these phases.
fn notes_of(phases: &str) -> Vec<String> {
    let event = |phase| format!("{{\"ph\":\"{phase}\",\"name\":\"x\",\"pid\":1,\"tid\":2,\"ts\":5}}");
    let events: Vec<_> = phases.chars().map(event).collect();
    let (_, recovery) = read(format!("[{}]", events.join(",")).as_bytes());
    recovery.notes.iter().map(|note| note.message.clone()).collect()
}

#[test]
fn each_kind_of_unread_events_has_a_note() {
    for (phases, what) in [
        ("stf", "ends and steps of flow arrows are not read"),
        ("NOD", "events about objects (created, snapshot, deleted) are not read"),
        ("vV", "memory dumps are not read"),
        ("cP", "other events are not read: their phase is unknown, or they have no time"),
    ] {
        assert_eq!(notes_of(&format!("{phases}iM")), [format!("{} {what}", phases.len())]);
        assert_eq!(notes_of(&phases[..1]), [format!("1 {what}")]);
    }
    assert_eq!(notes_of("vsON").len(), 3);
    assert!(notes_of("Mi").is_empty());
}

/// The events of an input as text: time, process, name and fields.
#[derive(Default)]
struct EventTexts(Vec<String>);

impl ProfileSink for EventTexts {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let shape = at.tables.shape(event.shape);
        let fields = shape.fields.iter().zip(event.values).filter(|(_, value)| **value != EventValue::Absent);
        let fields: Vec<_> = fields.map(|(field, value)| format!("{}={value:?}", text(field.name))).collect();
        let process = at.segment.process.unwrap();
        self.0.push(format!(
            "{} {process} {} {}",
            event.time_ns.unwrap(),
            text(shape.name),
            fields.join(" ")
        ));
        Ok(ControlFlow::Continue(()))
    }
}

fn events(bytes: &[u8]) -> (Vec<String>, Recovery) {
    let mut texts = EventTexts::default();
    let recovery =
        chrome_trace::import(bytes, &ReadOptions::default(), &mut Tables::default(), &mut texts).unwrap();
    assert_eq!(recovery.events, texts.0.len() as u64);
    (texts.0, recovery)
}

/// Spans of two processes, of one id; a counter of several numbers; an instant whose arguments come before its phase.
const EVENTS: &[u8] = br#"[
    {"ph":"e","cat":"net","id":1,"name":"fetch","pid":7,"tid":9,"ts":9},
    {"ph":"b","cat":"net","id":"1","name":"fetch","pid":7,"tid":8,"ts":3,"args":{"url":"/cart"}},
    {"ph":"b","cat":"net","id2":{"local":"1"},"name":"dns","pid":7,"tid":8,"ts":4},
    {"ph":"e","cat":"net","id":"1","pid":7,"tid":8,"ts":5},
    {"ph":"b","cat":"net","id":1,"name":"other","pid":6,"tid":8,"ts":3.5},
    {"ph":"e","cat":"net","id":1,"name":"fetch","pid":7,"tid":9,"ts":6},
    {"ph":"C","name":"memory","pid":7,"ts":4.5,"args":{"heap":5,"stack":2.5,"note":"x"}},
    {"ph":"C","name":"queue","id":"a","pid":7,"tid":1,"ts":5.5,"args":{"value":3}},
    {"args":{"depth":[1,null]},"cat":"gc","name":"collect","ph":"i","pid":7,"s":"t","tid":8,"ts":7}
]"#;

#[test]
fn instants_asynchronous_events_and_counters_are_events() {
    let (texts, recovery) = events(EVENTS);
    let enter = |time: u64, process: u64, name: &str, span: u64| {
        format!(
            "{time} {process} SpanEnter:{name} span_id=Unsigned({span}) span_name=Text(\"{name}\") tid=Unsigned(8) category=Text(\"net\")"
        )
    };
    let exit =
        |time: u64, name: &str, span: u64| format!("{time} 7 SpanExit:{name} span_id=Unsigned({span})");
    let expected = [
        enter(3500, 6, "other", 3),
        enter(3000, 7, "fetch", 1) + " data=Map([(Text(\"url\"), Text(\"/cart\"))])",
        enter(4000, 7, "dns", 2),
        "4500 7 memory memory heap=Float(5.0) memory stack=Float(2.5)".to_owned(),
        exit(5000, "dns", 2),
        "5500 7 queue queue=Float(3.0) id=Text(\"a\")".to_owned(),
        exit(6000, "fetch", 1),
        "7000 7 collect tid=Unsigned(8) category=Text(\"gc\") data=Map([(Text(\"depth\"), List([Unsigned(1), Absent]))])".to_owned(),
    ];
    assert_eq!(texts, expected);
    assert_eq!(recovery.notes[0].message, "1 ends of spans without a beginning are ignored");
}

#[test]
fn spans_instants_and_counters_come_back_from_our_own_timeline() {
    let mut output = Vec::new();
    let (mut exporter, mut tables) = (chrome_trace::Exporter::new(&mut output), Tables::default());
    chrome_trace::import(EVENTS, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let (before, after) = (events(EVENTS).0, events(&output).0);
    // Time and name: timelines have no process of an event.
    let heads = |texts: &[String]| {
        let head = |text: &String| {
            let words: Vec<_> = text.split(' ').collect();
            format!("{} {}", words[0], words[2])
        };
        texts.iter().map(head).collect::<std::collections::BTreeSet<_>>()
    };
    let (mut before, after) = (heads(&before), heads(&after));
    // Each number of a counter has a track, named by its field and the texts of the event.
    assert!(before.remove("4500 memory") && after.contains("4500 memory"), "{after:#?}");
    assert!(before.is_subset(&after), "{before:#?} {after:#?}");
    let document: serde_json::Value = serde_json::from_slice(&output).unwrap();
    let counters = document["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "C");
    let names: Vec<_> = counters.map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["memory heap", "memory stack", "queue a"]);
}

#[test]
fn every_changed_byte_of_events_is_survived() {
    for cut in 0..EVENTS.len() {
        let _ = read_with(&EVENTS[..cut], &ReadOptions::lenient());
    }
    each_change(EVENTS, 1, &[b'0', b'"', b'9', b',', 0xff], |changed, _| {
        let _ = read_with(changed, &ReadOptions::lenient());
    });
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    for file in ["py-spy.json", "viztracer.json"] {
        let bytes = read_corpus(&format!("chrome/{file}"));
        let bytes = &bytes[..bytes.len().min(3000)];
        for cut in 0..bytes.len() {
            let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
        }
        each_change(bytes, 1, &[b'0', b'"', b'9', b',', 0xff], |changed, _| {
            let _ = read_with(changed, &ReadOptions::lenient());
        });
    }
}

#[test]
fn a_profile_in_chunks_is_the_profile_that_v8_returns() {
    let (ours, recovery) = collected(|tables, sink| {
        let bytes = read_corpus("chrome/devtools.json");
        chrome_trace::import(&bytes[..], &ReadOptions::default(), tables, sink)
    })
    .unwrap();
    let (theirs, _) = collected(|tables, sink| {
        let bytes = read_corpus("chrome/devtools.cpuprofile");
        cpuprofile::import(&bytes[..], &ReadOptions::default(), tables, sink)
    })
    .unwrap();
    // A profile has addresses of files, and a trace paths.
    let without_lane = |sample: &PlainSample| {
        let mut sample = PlainSample { thread: None, process: None, ..sample.clone() };
        for file in sample.frames_leaf_first.iter_mut().filter_map(|frame| frame.file.as_mut()) {
            *file = file.trim_start_matches("file://").to_owned();
        }
        sample
    };
    let samples = |profile: &Collect| profile.samples().map(without_lane).collect::<Vec<_>>();
    assert!(theirs.samples().count() > 100);
    assert!(samples(&ours) == samples(&theirs));
    assert!(recovery.notes[0].message.ends_with("calls are not read: the samples of the same time are"));
    assert!(ours.samples().all(|sample| sample.thread.is_some()));
}

#[test]
fn profiles_of_several_processes_are_kept_apart() {
    let chunk = |pid: u64, id: &str, name: &str, data: &str| {
        format!(
            r#"{{"args":{{"data":{data}}},"ph":"P","name":"{name}","pid":{pid},"tid":{pid}1,"id":"{id}"}}"#
        )
    };
    let nodes = |name: &str| {
        format!(
            r#"{{"cpuProfile":{{"nodes":[{{"id":1,"callFrame":{{"functionName":"(root)"}}}},
            {{"id":2,"parent":1,"callFrame":{{"functionName":"{name}"}}}}],"samples":[2]}},"timeDeltas":[5]}}"#
        )
    };
    let events = [
        chunk(7, "0x1", "Profile", r#"{"startTime":100}"#),
        chunk(8, "0x1", "Profile", r#"{"startTime":200}"#),
        chunk(8, "0x1", "ProfileChunk", &nodes("b")),
        chunk(7, "0x1", "ProfileChunk", &nodes("a")),
        chunk(7, "0x1", "ProfileChunk", r#"{"cpuProfile":{"samples":[2]},"timeDeltas":[10],"endTime":140}"#),
        r#"{"args":{"data":[3]},"ph":"I","name":"other","pid":7,"tid":71}"#.to_owned(),
    ];
    let text = format!("[{}]", events.join(","));
    let (collect, _) = collected(|tables, sink| {
        chrome_trace::import(text.as_bytes(), &ReadOptions::default(), tables, sink)
    })
    .unwrap();
    let found: Vec<_> = collect
        .samples()
        .map(|sample| (&*sample.frames_leaf_first[0].function, sample.time_ns.unwrap(), sample.values[0]))
        .collect();
    assert_eq!(found, [("a", 105_000, 10_000), ("a", 115_000, 25_000), ("b", 205_000, 0)]);
}
