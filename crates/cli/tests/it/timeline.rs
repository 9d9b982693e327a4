//! Timelines, read by Perfetto's own trace processor; selected and sorted events.
//!
//! The trace processor reads both formats, the JSON with its importer for Chrome's traces. It represents ui.perfetto.dev,
//! whose engine it is. chrome://tracing is no longer maintained and is not tested.

use std::collections::{BTreeMap, BTreeSet};

use borehole_testkit::Scratch;
use borehole_testkit::peers::perfetto_rows;
use serde_json::Value;

use crate::program::{corpus, run};

const TRACES: [&str; 2] = ["trc/in/real_057_blocked.bin.gz", "trc/in/real_032_cpu.bin.gz"];

/// The lines of one type of an input as JSON, converted with `options`.
fn lines(input: &str, kind: &str, options: &[&str]) -> Vec<Value> {
    let command = [&["convert", "--to", "jsonl", input], options].concat();
    let text = String::from_utf8(run(&command).done()).unwrap();
    let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.filter(|line| line["type"] == kind).collect()
}

fn events(input: &str, options: &[&str]) -> Vec<Value> {
    lines(input, "event", options)
}

fn field(event: &Value, name: &str) -> Option<u64> {
    let fields = event["fields"].as_array().unwrap();
    fields.iter().find(|field| field[0] == name).and_then(|field| field[1].as_u64())
}

/// The answers to `queries` on an input converted to `format`, after a check that the import has no errors.
fn ask(input: &str, format: &str, queries: &[&str]) -> Option<Vec<Vec<BTreeMap<String, Value>>>> {
    let folder = Scratch::new();
    let file = folder.path("timeline");
    run(&["convert", input, "--to", format, "-o", file.to_str().unwrap()]).done();
    let wrong = "select name, value from stats where value > 0 and severity != 'info'";
    let unfinished = "select name from slice where dur < 0";
    let mut answers = perfetto_rows(&file, &[&[wrong, unfinished], queries].concat())?;
    assert_eq!((&answers[0], &answers[1]), (&Vec::new(), &Vec::new()), "{input} as {format}");
    Some(answers.split_off(2))
}

/// The number of polls and their total duration, from pairs of sorted events of each worker.
fn polls(input: &str) -> (u64, u64) {
    let mut open = BTreeMap::new();
    let (mut count, mut total_ns) = (0, 0);
    for event in events(input, &["--event", "Poll*", "--sort-by-time"]) {
        let (worker, time_ns) = (field(&event, "worker_id"), event["time_ns"].as_u64());
        if event["name"] == "PollStartEvent" {
            count += 1;
            open.insert(worker, time_ns.unwrap());
        } else if let Some(start_ns) = open.remove(&worker) {
            total_ns += time_ns.unwrap() - start_ns;
        }
    }
    (count, total_ns)
}

#[test]
fn a_timeline_without_anything_on_it_is_not_written() {
    let folder = Scratch::new();
    for (format, input) in [
        ("perfetto", "rbt/pid_samples.rbt"),
        ("chrome-trace", "rbt/pid_samples.rbt"),
        ("perfetto", "trc/tokio/header_only.bin"),
    ] {
        let file = folder.path(format);
        let refused = run(&["convert", &corpus(input), "--to", format, "-o", file.to_str().unwrap()]);
        let message = "nothing to draw: expected samples or events with times, found none\n";
        assert!(refused.code == 2 && refused.stderr.ends_with(message), "{refused:?}");
        assert!(!file.exists(), "{format}");
    }
}

#[test]
fn polls_parks_wakes_and_counters_have_their_times() {
    for trace in TRACES {
        let input = corpus(trace);
        let (polls, polled_ns) = polls(&input);
        let all = events(&input, &[]);
        let count = |name: &str| all.iter().filter(|event| event["name"] == name).count() as u64;
        for format in ["perfetto", "chrome-trace"] {
            let queries = [
                "select count(*) n, sum(dur) ns from slice where name glob '*.rs:*:*'",
                "select count(*) n from slice where name = 'parked'",
                "select count(*) n from slice where name = 'wake'",
                "select count(*) n from counter join counter_track t on t.id = track_id where t.name glob 'global_queue*'",
                "select count(*) n from flow",
            ];
            let Some(answers) = ask(&input, format, &queries) else { return };
            let number = |answer: usize, column: &str| answers[answer][0][column].as_u64().unwrap();
            assert_eq!(number(0, "n"), polls, "{trace} {format}");
            assert!(number(0, "ns").abs_diff(polled_ns) < polled_ns / 50, "{trace} {format}");
            assert_eq!(number(1, "n"), count("WorkerParkEvent"), "{trace} {format}");
            assert_eq!(number(2, "n"), count("WakeEventEvent"), "{trace} {format}");
            let queues = count("RuntimeMetricsEvent") + count("QueueSampleEvent");
            assert_eq!(number(3, "n"), queues, "{trace} {format}");
            assert!(polls > 0 && number(4, "n") > 0 && number(4, "n") <= count("WakeEventEvent"));
        }
    }
}

#[test]
fn samples_become_calls_of_their_functions() {
    for file in ["tachyon/corpus/09_subinterp.bin", "rbt/annotations_ts.rbt"] {
        let input = corpus(file);
        let stacks = lines(&input, "stack", &[]);
        let frames = stacks.iter().flat_map(|stack| stack["frames"].as_array().unwrap());
        let functions: BTreeSet<_> = frames.map(|frame| frame["function"].as_str().unwrap()).collect();
        for format in ["perfetto", "chrome-trace"] {
            let Some(answers) = ask(&input, format, &["select distinct name from slice"]) else { return };
            let names: BTreeSet<_> =
                answers[0].iter().map(|row| row["name"].as_str().unwrap().replace(r"\\", r"\")).collect();
            // The trace processor does not decode JSON escapes in names.
            let names: BTreeSet<_> = names.iter().map(String::as_str).collect();
            assert!(!functions.is_empty() && functions.is_subset(&names), "{file} {format}: {names:?}");
        }
    }
}

#[test]
fn events_are_chosen_by_name_and_keep_symbols_metadata_and_clocks() {
    let input = corpus(TRACES[0]);
    let (all, chosen) =
        (events(&input, &[]), events(&input, &["--event", "PollStart*", "--event", "WakeEven?Event"]));
    let stays =
        ["SymbolTableEntry", "SegmentMetadataEvent", "ClockSyncEvent", "PollStartEvent", "WakeEventEvent"];
    let expected = all.iter().filter(|event| stays.contains(&event["name"].as_str().unwrap()));
    assert_eq!(expected.collect::<Vec<_>>(), chosen.iter().collect::<Vec<_>>());
    assert!(chosen.len() < all.len());
    assert!(stays.iter().all(|name| chosen.iter().any(|event| event["name"] == *name)));
}

#[test]
fn events_are_chosen_by_task_and_worker() {
    let input = corpus(TRACES[0]);
    let names = ["--event", "Poll*"];
    let is_poll = |event: &Value| event["name"].as_str().unwrap().starts_with("Poll");
    let task = events(&input, &names).iter().find_map(|event| field(event, "task_id")).unwrap().to_string();
    let of_task = events(&input, &[&names[..], &["--task", &task, "--sort-by-time"]].concat());
    let polls: Vec<_> = of_task.iter().filter(|event| is_poll(event)).collect();
    assert!(polls.len() >= 2 && polls.len() % 2 == 0);
    for pair in polls.chunks(2) {
        assert_eq!(
            (field(pair[0], "task_id"), &pair[1]["name"]),
            (task.parse().ok(), &"PollEndEvent".into())
        );
        assert_eq!(field(pair[0], "worker_id"), field(pair[1], "worker_id"));
    }
    let of_worker = events(&input, &[&names[..], &["--worker", "1"]].concat());
    let mut polls = of_worker.iter().filter(|event| is_poll(event)).peekable();
    assert!(polls.peek().is_some() && polls.all(|event| field(event, "worker_id") == Some(1)));
}

#[test]
fn events_are_chosen_by_time_and_sorted() {
    let input = corpus(TRACES[0]);
    let all = events(&input, &[]);
    let times =
        |events: &[Value]| events.iter().filter_map(|event| event["time_ns"].as_u64()).collect::<Vec<_>>();
    let start_ns = times(&all).into_iter().find(|&time_ns| time_ns > 0).unwrap();
    let slice = events(&input, &["--after", "0.1", "--before", "0.2", "--event", "Poll*", "--sort-by-time"]);
    let polls: Vec<_> =
        slice.into_iter().filter(|event| event["name"].as_str().unwrap().starts_with("Poll")).collect();
    let range = start_ns + 100_000_000..=start_ns + 200_000_000;
    assert!(!polls.is_empty() && times(&polls).iter().all(|time_ns| range.contains(time_ns)));
    let sorted = events(&input, &["--sort-by-time"]);
    assert!(times(&sorted).is_sorted() && !times(&all).is_sorted());
    assert_eq!(sorted.len(), all.len());
}

/// Requirements on the JSON that the trace processor does not check.
#[test]
fn trace_events_are_strict_json_and_what_begins_ends_on_its_track() {
    for file in [TRACES[0], "tachyon/corpus/09_subinterp.bin", "rbt/annotations_ts.rbt"] {
        let text = run(&["convert", &corpus(file), "--to", "chrome-trace"]).done();
        let document: Value = serde_json::from_slice(&text).unwrap();
        let mut depths = BTreeMap::new();
        let (mut arrows_from, mut arrows_to) = (BTreeSet::new(), BTreeSet::new());
        for event in document["traceEvents"].as_array().unwrap() {
            let kind = event["ph"].as_str().unwrap();
            assert!(event["pid"].is_i64() && event["tid"].is_u64(), "{event}");
            assert!(kind == "M" || event["ts"].as_f64().is_some_and(|time| time >= 0.0), "{event}");
            assert!(kind == "E" || event["name"].is_string(), "{event}");
            let depth: &mut i64 = depths.entry((event["pid"].as_i64(), event["tid"].as_u64())).or_default();
            match kind {
                "B" | "b" => *depth += 1,
                "E" | "e" => *depth -= 1,
                "s" => assert!(arrows_from.insert(event["id"].as_u64())),
                "f" => assert!(arrows_to.insert(event["id"].as_u64())),
                "i" | "C" | "M" => {}
                kind => panic!("{kind}"),
            }
            assert!(*depth >= 0, "{event}");
        }
        assert!(depths.values().all(|&depth| depth == 0) && arrows_to.is_subset(&arrows_from), "{file}");
    }
}

#[test]
fn every_format_with_times_draws_the_same_calls() {
    let folder = Scratch::new();
    let query = "select name, count(*) n, sum(dur) ns from slice group by name order by name";
    for format in ["perfetto", "chrome-trace"] {
        let Some(expected) = ask(&corpus("rbt/annotations_ts.rbt"), format, &[query]) else { return };
        assert!(expected[0].len() > 3, "{expected:?}");
        for between in ["jsonl", "tachyon", "trc", "speedscope", "gecko", "otlp"] {
            let file = folder.path(between);
            let path = file.to_str().unwrap();
            run(&["convert", "--force", &corpus("rbt/annotations_ts.rbt"), "--to", between, "-o", path])
                .done();
            assert_eq!(ask(path, format, &[query]).unwrap(), expected, "{between} to {format}");
        }
    }
}

#[test]
fn rows_without_threads_have_unused_thread_ids() {
    let folder = Scratch::new();
    // Threads as numbered in a container, one of them in a process without a known id.
    let mut lines = String::from("{\"type\":\"file\",\"schema_version\":1,\"format\":\"tachyon\"}\n");
    lines += "{\"type\":\"segment\",\"index\":0,\"format\":\"tachyon\",\"has_times\":true,\"period_ns\":1000000}\n";
    for time_ns in (0..12_000_000).step_by(1_000_000) {
        for (thread, process) in [(1, "7"), (2, "7"), (3, "7"), (4, "7"), (3, "1"), (3, "null")] {
            lines += &format!(
                "{{\"type\":\"sample\",\"count\":1,\"time_ns\":{time_ns},\"pid\":{process},\"tid\":{thread},\"status\":[\"has_gil\",\"on_cpu\"],\"frames\":[{{\"function\":\"f{thread}\"}}]}}\n"
            );
        }
    }
    lines += "{\"type\":\"end\",\"samples\":72,\"events\":0,\"lost_bytes\":0,\"warnings\":[]}\n";
    let input = folder.write("container.jsonl", lines.as_bytes());
    let text = run(&["convert", input.to_str().unwrap(), "--to", "chrome-trace"]).done();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let mut names = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap() {
        if event["name"] == "thread_name" {
            let row = (event["pid"].as_i64(), event["tid"].as_u64());
            let known = names.insert(row, event["args"]["name"].clone());
            assert_eq!(known, None, "{event}");
        }
    }
    assert!(names.len() >= 6 && names.values().any(|name| name == "CPU"), "{names:?}");
}

#[test]
fn losses_of_timelines_are_counted() {
    let trace = corpus("rbt/annotations_ts.rbt");
    for format in ["perfetto", "chrome-trace"] {
        let ended = run(&["convert", &trace, "--to", format]);
        assert_eq!(ended.code, 0);
        assert!(ended.stderr.contains("cannot hold everything: annotations dropped: 4"), "{}", ended.stderr);
    }
}
