//! Profiles of a lake keep what it knows of their samples, as other programs read them.

use borehole_testkit::Scratch;
use borehole_testkit::peers::peer;
use serde_json::{Value, json};

use crate::lake::lines;
use crate::program::{corpus, run, text};

/// A lake with a trace that has times and labels, and with a heap profile.
fn lake() -> (Scratch, String) {
    let scratch = Scratch::new();
    let lake = text(&scratch.path("lake")).to_owned();
    for (file, service) in [("rbt/annotations.rbt", "shop"), ("pprof/go-heap-in-use.pb.gz", "heap")] {
        let more = ["--service", service, "--label", "version=1.4", "--at", "2026-11-01T12:00Z"];
        run(&[&["lake", "add", &lake, &corpus(file)][..], &more].concat()).done();
    }
    (scratch, lake)
}

fn asked(lake: &str, sql: &str) -> Vec<Value> {
    let rows = lines(run(&["lake", "query", lake, sql, "--json"]).done());
    rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect()
}

/// The profile of a service in a file of this name.
fn exported(scratch: &Scratch, lake: &str, service: &str, name: &str, more: &[&str]) -> String {
    let path = text(&scratch.path(name)).to_owned();
    run(&[&["lake", "top", lake, "--service", service, "-o", &path][..], more].concat()).done();
    path
}

#[test]
fn pprof_shows_the_kind_the_time_and_the_labels_of_what_a_lake_exports() {
    let Some(pprof) = peer("pprof") else { return };
    let (scratch, lake) = lake();
    let raw = |service: &str, name: &str, more: &[&str]| {
        pprof.stdout(&["-raw", "-symbolize=none", &exported(&scratch, &lake, service, name, more)])
    };
    let shown = raw("shop", "shop.pb.gz", &[]);
    assert!(shown.contains("Time: 2026-11-01 12:00:0"), "{shown}");
    assert!(shown.contains("samples/count"), "{shown}");
    // A line for each label of each sample.
    let label = |key: &str| shown.matches(&format!("{key}:[")).count();
    let stacks = "SELECT DISTINCT stack_id, labels['query'] AS query FROM samples WHERE service = 'shop'";
    let with = asked(&lake, stacks).iter().filter(|row| row["query"].is_string()).count();
    assert!(with > 1 && label("query") == with, "{with}: {shown}");
    assert_eq!(label("version"), asked(&lake, stacks).len());
    let span = "SELECT CAST(max(time) AS BIGINT) - CAST(min(time) AS BIGINT) AS us FROM samples WHERE service = 'shop'";
    let duration_us = asked(&lake, span)[0]["us"].as_i64().unwrap();
    assert_eq!(shown.contains("Duration: "), duration_us > 0, "{shown}");
    let heap = raw("heap", "heap.pb.gz", &["--value", "inuse_space"]);
    assert!(heap.contains("inuse_space/bytes") && heap.contains("version:[1.4]"), "{heap}");
    let sums = raw("shop", "sums.pb.gz", &["--sums"]);
    assert!(!sums.contains("version:["), "{sums}");
}

#[test]
fn duckdb_finds_each_time_thread_and_label_in_a_table_that_a_lake_exports() {
    let Some(duckdb) = peer("duckdb") else { return };
    let (scratch, lake) = lake();
    let path = exported(&scratch, &lake, "shop", "shop.parquet", &[]);
    let ours = asked(
        &lake,
        "SELECT CAST(time AS BIGINT) AS us, process, labels['query'] AS query, labels['version'] AS version, \
         leaf(stack) AS leaf, CAST(sum(value) AS BIGINT) AS n FROM samples JOIN stacks USING (stack_id) \
         WHERE service = 'shop' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5, 6",
    );
    let theirs = format!(
        "SELECT epoch_us(CAST(time AS TIMESTAMPTZ)) AS us, process, labels['query'] AS query, labels['version'] AS version, \
         stack[1].function AS leaf, CAST(sum(count) AS BIGINT) AS n FROM '{path}' GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5, 6"
    );
    let answer = duckdb.command().arg(theirs).output().unwrap();
    let mut found: Vec<Value> =
        lines(answer.stdout).iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert!(found.pop().is_some(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(ours.len() > 3 && ours.iter().any(|row| row["query"].is_string()), "{ours:?}");
    assert_eq!(found, ours);
    let heap = exported(&scratch, &lake, "heap", "heap.parquet", &["--value", "inuse_space"]);
    let kinds =
        format!("SELECT DISTINCT map_keys(measures) AS kinds, labels['version'] AS version FROM '{heap}'");
    let answer = lines(duckdb.command().arg(kinds).output().unwrap().stdout);
    let row: Value = serde_json::from_str(&answer[0]).unwrap();
    assert_eq!((&row["kinds"], &row["version"]), (&json!(["inuse_space/bytes"]), &json!("1.4")));
}

#[test]
fn a_focus_chooses_stacks_of_an_export() {
    let scratch = Scratch::new();
    let lake = text(&scratch.path("lake")).to_owned();
    let stacks = scratch.write("stacks.folded", b"main;query 3\nmain;render 4\n");
    run(&["lake", "add", &lake, text(&stacks), "--service", "shop", "--at", "2026-11-01"]).done();
    let folded = |name: &str, more: &[&str]| {
        let path = exported(&scratch, &lake, "shop", name, &[more, &["--focus", "^render$"]].concat());
        lines(run(&["convert", &path, "--to", "folded"]).done())
    };
    for (name, more) in [("sums.pb.gz", &["--sums"][..]), ("labels.pb.gz", &[]), ("all.jsonl", &[])] {
        assert_eq!(folded(name, more), ["main;render 4"], "{name}");
    }
}
