//! Tables that DuckDB reads, compared with the samples that they were made of.

use std::collections::BTreeMap;
use std::path::Path;

use borehole_formats::{Export as _, ReadError, ReadOptions, chrome_trace, dhat, folded, parquet};
use borehole_model::{ProfileSink, Recovery, Tables};
use borehole_testkit::peers::peer;
use borehole_testkit::{Scratch, read_corpus};
use serde_json::{Value, json};

use crate::play::{Collect, collected};

/// The file of what `import` passes on.
fn written(
    import: impl FnOnce(&mut Tables, &mut dyn ProfileSink) -> Result<Recovery, ReadError>,
) -> (Vec<u8>, String) {
    let (mut tables, mut file) = (Tables::default(), Vec::new());
    let mut exporter = parquet::Exporter::new(&mut file);
    import(&mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (file, losses)
}

/// The rows of DuckDB's answer; `FILE` in the query stands for the file. `None` if it is skipped.
fn ask(file: &Path, query: &str) -> Option<Vec<Value>> {
    let query = query.replace("FILE", &format!("'{}'", file.display()));
    let output = peer("duckdb")?.command().arg(query).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.pop();
    Some(rows)
}

/// The sums of a value by stack, from the root on.
fn sums(collect: &Collect, value: usize) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in collect.samples() {
        let names = sample.frames_leaf_first.iter().rev().map(|frame| frame.function.as_str());
        *sums.entry(names.collect::<Vec<_>>().join(";")).or_default() += sample.values[value];
    }
    sums
}

const BY_STACK: &str = "SELECT array_to_string(list_reverse(list_transform(stack, lambda frame: frame.function)), ';') AS stack, \
     sum(measures['KEY'])::BIGINT AS sum FROM FILE GROUP BY 1";

#[test]
fn sums_by_stack_are_those_of_the_samples() {
    let scratch = Scratch::new();
    let (trace, heap) = (read_corpus("chrome/viztracer.json"), read_corpus("dhat/alloc.json"));
    let options = ReadOptions::default();
    let of_trace = |tables: &mut Tables, sink: &mut dyn ProfileSink| {
        chrome_trace::import(&trace[..], &options, tables, sink)
    };
    let of_heap =
        |tables: &mut Tables, sink: &mut dyn ProfileSink| dhat::import(&heap[..], &options, tables, sink);
    let cases = [
        (
            written(of_trace).0,
            collected(|tables, sink| of_trace(tables, sink)).unwrap().0,
            "wall/nanoseconds",
            0,
        ),
        (
            written(of_heap).0,
            collected(|tables, sink| of_heap(tables, sink)).unwrap().0,
            "peak_space/bytes",
            5,
        ),
    ];
    for (file, collect, key, value) in cases {
        let path = scratch.write("profile.parquet", &file);
        let Some(rows) = ask(&path, &BY_STACK.replace("KEY", key)) else { return };
        let theirs: BTreeMap<_, _> = rows
            .iter()
            .map(|row| (row["stack"].as_str().unwrap().to_owned(), row["sum"].as_i64().unwrap()))
            .collect();
        assert!(theirs.len() >= 2);
        assert_eq!(theirs, sums(&collect, value));
    }
}

#[test]
fn rows_have_times_lanes_labels_and_places() {
    let scratch = Scratch::new();
    let trace = read_corpus("chrome/viztracer.json");
    let (file, losses) =
        written(|tables, sink| chrome_trace::import(&trace[..], &ReadOptions::default(), tables, sink));
    assert_eq!(losses, "metadata entries dropped: 1");
    let path = scratch.write("profile.parquet", &file);
    let query = "SELECT thread_name, count(DISTINCT process) AS processes, count(time_ns) = count(*) AS has_times, \
                 max(stack[1].line) AS line FROM FILE WHERE stack[1].function = 'leaf' GROUP BY 1 ORDER BY 1";
    let Some(rows) = ask(&path, query) else { return };
    let row = |name: &str| json!({"thread_name": name, "processes": 1, "has_times": true, "line": 5});
    assert_eq!(rows, [row("MainThread"), row("calls worker")]);
    let heap = read_corpus("dhat/alloc.json");
    let (file, _) = written(|tables, sink| dhat::import(&heap[..], &ReadOptions::default(), tables, sink));
    let path = scratch.write("heap.parquet", &file);
    let rows =
        ask(&path, "SELECT DISTINCT stack[1].module AS module, len(stack) AS frames FROM FILE").unwrap();
    let module = "/usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so";
    assert_eq!(rows, [json!({"module": module, "frames": 3})]);
}

#[test]
fn rows_are_written_in_groups_and_a_profile_without_samples_is_a_table_without_rows() {
    let scratch = Scratch::new();
    let text = "main;query 2\nmain 1\n".repeat(40_000);
    let (file, losses) =
        written(|tables, sink| folded::import(text.as_bytes(), &ReadOptions::default(), tables, sink));
    assert_eq!(losses, "");
    let path = scratch.write("large.parquet", &file);
    let Some(rows) = ask(&path, "SELECT count(*) AS n, sum(count)::BIGINT AS samples FROM FILE") else {
        return;
    };
    assert_eq!(rows, [json!({"n": 80_000, "samples": 120_000})]);
    let groups = ask(&path, "SELECT count(DISTINCT row_group_id) AS n FROM parquet_metadata(FILE)").unwrap();
    assert_eq!(groups, [json!({"n": 2})]);
    let (file, _) = written(|_, _| Ok(Recovery::default()));
    let path = scratch.write("empty.parquet", &file);
    assert_eq!(ask(&path, "SELECT count(*) AS n FROM FILE").unwrap(), [json!({"n": 0})]);
}
