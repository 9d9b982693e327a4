//! `report`, compared with the table that `go tool pprof -top` prints for the same file.

use std::collections::BTreeMap;

use borehole_testkit::Scratch;
use borehole_testkit::peers::{Peer, peer};
use serde_json::Value;

use crate::program::{corpus, run};

/// Self and total by function.
type Counts = BTreeMap<String, (i64, i64)>;

fn column<'a>(table: &'a Value, number: &'a str) -> impl Iterator<Item = (String, i64)> + 'a {
    let row = move |row: &Value| (row["frame"].as_str().unwrap().to_owned(), row[number].as_i64().unwrap());
    table["rows"].as_array().unwrap().iter().map(row)
}

fn reported(file: &str, number: &str, more: &[&str]) -> Counts {
    let report = run(&[&["report", "--json", "--all", "--no-line", file], more].concat()).done();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let mut counts = Counts::new();
    column(&report["self"], number).for_each(|(name, count)| counts.entry(name).or_default().0 = count);
    column(&report["total"], number).for_each(|(name, count)| counts.entry(name).or_default().1 = count);
    counts.retain(|_, counts| *counts != (0, 0));
    counts
}

/// Rows are `flat flat% sum% cum cum% name`. Names may contain spaces, and end in ` (inline)` if they were inlined.
fn topped(pprof: &Peer, file: &str, kind: &str, unit: &str) -> Counts {
    let [kind, in_unit] =
        [("sample_index", kind), ("unit", unit)].map(|(key, value)| format!("-{key}={value}"));
    let options = [
        "-top",
        "-functions",
        "-nodecount=1000000",
        "-nodefraction=0",
        "-edgefraction=0",
        &kind,
        &in_unit,
        file,
    ];
    let text = pprof.stdout(&options);
    let rows = text.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut number = || words.next().unwrap().to_owned();
        let [own, _, _, total, _] = [number(), number(), number(), number(), number()];
        let name = words.collect::<Vec<_>>().join(" ");
        let name = name.strip_suffix(" (inline)").or(name.strip_suffix(" (partial-inline)")).unwrap_or(&name);
        // Counts have no unit.
        let number = |text: String| text.trim_end_matches(char::is_alphabetic).parse().unwrap();
        (name.to_owned(), (number(own), number(total)))
    };
    rows.map(row).collect()
}

#[test]
fn self_and_total_of_each_function_are_those_that_pprof_prints() {
    let Some(pprof) = peer("pprof") else { return };
    let folder = Scratch::new();
    let mut compared = 0;
    for trace in [
        "rbt/daemon_worker.rbt",
        "rbt/deep_500.rbt",
        "rbt/rle_heavy.rbt",
        "rbt/realistic_54k.rbt.gz",
        "tachyon/corpus/02_cpu_zstd.bin",
        "tachyon/corpus/26_realapp_zstd.bin",
        "pprof/go-cpu.pb.gz",
    ] {
        let file = folder.path("profile.pb.gz");
        // Reports omit the frames of Python's own profiler.
        let hide = ["--hide", r"_sync_coordinator\.py"];
        run(&[&["convert", "--force", &corpus(trace), "-o", file.to_str().unwrap()], &hide[..]].concat())
            .done();
        let ours = reported(&corpus(trace), "count", &[]);
        let theirs = topped(&pprof, file.to_str().unwrap(), "samples", "count");
        assert_eq!(ours, theirs, "{trace}");
        compared += ours.len();
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn each_value_type_of_a_profile_has_the_sums_that_pprof_prints() {
    let Some(pprof) = peer("pprof") else { return };
    let heap = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"];
    for (file, kinds) in [
        ("pprof/go-heap.pb.gz", &heap[..]),
        ("pprof/go-heap-in-use.pb.gz", &heap),
        ("pprof/go-cpu.pb.gz", &["samples/count", "cpu/nanoseconds"]),
    ] {
        let path = corpus(file);
        let default = reported(&path, "value", &[]);
        for kind in kinds {
            let (name, unit) = kind.split_once('/').unwrap();
            let ours = reported(&path, "value", &["--value", kind]);
            assert_eq!(ours, topped(&pprof, &path, name, unit), "{file} {kind}");
            assert!(ours.values().any(|&(own, total)| own > 0 && total > 0), "{file} {kind}");
            if Some(kind) == kinds.last() {
                assert_eq!(default, ours, "{file}");
            }
        }
    }
}
