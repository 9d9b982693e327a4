//! Values, lanes and kinds of profiles of other programs, as the command shows them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::{corpus, run};

/// The numbers of folded stacks by leaf function.
fn by_leaf(file: &str, more: &[&str]) -> BTreeMap<String, u64> {
    let file = corpus(file);
    let text = run(&[&["convert", &file, "--to", "folded", "-o", "-"], more].concat()).done();
    let mut sums = BTreeMap::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let (stack, number) = line.rsplit_once(' ').unwrap();
        let leaf = stack.rsplit(';').next().unwrap().split(' ').next().unwrap();
        *sums.entry(leaf.to_owned()).or_default() += number.parse::<u64>().unwrap();
    }
    sums
}

/// The share of a function, in thousandths.
fn share(sums: &BTreeMap<String, u64>, name: &str) -> u64 {
    sums[name] * 1000 / sums.values().sum::<u64>()
}

#[test]
fn events_weigh_their_duration() {
    assert_eq!(share(&by_leaf("speedscope/values-evented.speedscope.json", &[]), "slow"), 990);
}

#[test]
fn a_heap_profile_weighs_the_value_that_go_shows_or_the_one_asked_for() {
    let file = "pprof/go-heap-in-use.pb.gz";
    assert_eq!(share(&by_leaf(file, &[]), "main.alloc"), 958);
    let others = by_leaf(file, &["--value", "inuse_objects"]);
    assert_ne!(share(&others, "main.alloc"), 958);
    let unknown = run(&["convert", &corpus(file), "--to", "folded", "-o", "-", "--value", "wall"]).failed();
    let expected = "expected one of alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes, found wall";
    assert!(unknown.contains(expected), "{unknown}");
}

#[test]
fn cpu_time_weighs_with_and_without_times() {
    for file in ["otlp/cpu-only.otlp", "otlp/cpu-and-times.otlp"] {
        let sums = by_leaf(file, &[]);
        let (most, all) = (sums.values().max().unwrap(), sums.values().sum::<u64>());
        assert_eq!((most * 10_000 / all + 5) / 10, 999, "{file}: {most} of {all}");
    }
}

#[test]
fn a_change_of_cpu_time_between_the_same_records_crosses_the_threshold() {
    let [before, after] = ["otlp/diff-before.otlp", "otlp/diff-after.otlp"].map(corpus);
    let ended = run(&["diff", &before, &after, "--fail-over", "5%"]);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("slow a.cs (self) grew by 80%"), "{}", ended.stderr);
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.starts_with("before: 1.00 s cpu in 2 records"), "{text}");
}

#[test]
fn sides_that_measure_different_things_are_refused() {
    let [cpu, heap] = ["otlp/cpu-only.otlp", "pprof/go-heap-in-use.pb.gz"].map(corpus);
    let error = run(&["diff", &cpu, &heap]).failed();
    assert!(error.contains("expected cpu on both sides, found inuse_space on the second"), "{error}");
}

#[test]
fn services_of_one_request_are_separated() {
    let json = run(&["report", "--json", "--by", "service.name", &corpus("otlp/two-services.otlp")]).done();
    let text = String::from_utf8(json).unwrap();
    assert!(text.contains("checkout") && text.contains("search"), "{text}");
}

/// Milliseconds by function on each lane of the written speedscope document.
fn lanes(file: &str) -> Vec<(String, BTreeMap<String, f64>)> {
    let file = corpus(file);
    let text = run(&["convert", &file, "--to", "speedscope", "-o", "-"]).done();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let name = |frame: &Value| {
        let place = usize::try_from(frame.as_u64().unwrap()).unwrap();
        document["shared"]["frames"][place]["name"].as_str().unwrap().to_owned()
    };
    let profiles = document["profiles"].as_array().unwrap().iter().map(|profile| {
        let scale = match profile["unit"].as_str().unwrap() {
            "nanoseconds" => 1e-6,
            "milliseconds" => 1.0,
            "seconds" => 1e3,
            other => panic!("unit of no time: {other}"),
        };
        let mut sums = BTreeMap::new();
        let samples = profile["samples"].as_array().unwrap().iter();
        for (sample, weight) in samples.zip(profile["weights"].as_array().unwrap()) {
            if let Some(leaf) = sample.as_array().unwrap().last() {
                *sums.entry(name(leaf)).or_default() += weight.as_f64().unwrap() * scale;
            }
        }
        (profile["name"].as_str().unwrap().to_owned(), sums)
    });
    profiles.collect()
}

fn sums(rows: &[(&str, f64)]) -> BTreeMap<String, f64> {
    rows.iter().map(|&(name, ms)| (name.to_owned(), ms)).collect()
}

#[test]
fn lanes_durations_and_gaps_survive() {
    let two = lanes("speedscope/lanes-two-threads.speedscope.json");
    let [(main, _), (worker, _)] = &two[..] else { panic!("expected two lanes, found {two:?}") };
    assert_eq!((&**main, &**worker), ("Thread 100 \"MainThread\"", "Thread 101 \"worker-0\""));
    assert_eq!(two[0].1, sums(&[("main", 40.0)]));
    assert_eq!(two[1].1, sums(&[("worker", 20.0), ("idle", 20.0)]));
    let last = lanes("speedscope/values-last-stretch.speedscope.json");
    assert_eq!(last[0].1, sums(&[("boot", 13.0), ("query", 9000.0)]));
    let interpreters = lanes("tachyon/made/interpreters.bin");
    let totals: Vec<f64> = interpreters.iter().map(|(_, sums)| sums.values().sum::<f64>().round()).collect();
    assert_eq!(totals, [1000.0, 1000.0]);
    let gaps = lanes("tachyon/made/cpu_mode.bin");
    let idle: f64 = gaps.iter().filter_map(|(_, sums)| sums.get("idle")).sum();
    assert_eq!(idle.round(), 10.0);
}
