//! The lines of `dump`, compared with the samples of reli's reader.

use std::collections::HashMap;
use std::process::Command;

use borehole_testkit::manifest::CorpusManifest;
use borehole_testkit::{Scratch, read_corpus};
use serde_json::Value;

use crate::program::{corpus, piped, run};

/// Larger files are for `cargo xtask bench` and the tests of the format.
const SMALL_BYTES: u64 = 100_000;

/// A sample and the number of equal ones in a row.
type Runs = Vec<(String, u64)>;

fn lines(text: &[u8]) -> impl Iterator<Item = Value> {
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap())
}

fn push(runs: &mut Runs, sample: String, count: i64) {
    let Ok(count) = u64::try_from(count) else { return };
    match runs.last_mut() {
        _ if count == 0 => {}
        Some((last, sum)) if *last == sample => *sum += count,
        _ => runs.push((sample, count)),
    }
}

/// A frame in a form that both sides can be converted to.
fn frame(frame: &Value, keys: [&str; 6]) -> String {
    let [function, module, offset, opcode, line, native] = keys.map(|key| &frame[key]);
    if native.as_bool() == Some(true) {
        return format!("native {function} {module} {}", offset.as_i64().unwrap_or(0));
    }
    let file = frame["file"].as_str().unwrap_or("");
    format!("{function} {file:?} {} {opcode}", line.as_i64().unwrap_or(-1))
}

fn stack(line: &Value, keys: [&str; 6]) -> String {
    let frames = line["frames"].as_array().unwrap().iter();
    frames.map(|found| frame(found, keys)).collect::<Vec<_>>().join(", ")
}

fn sample(stack: &str, delta: &Value, pid: &Value, labels: &Value) -> String {
    // Reli writes an empty list for samples without annotations too.
    let labels = if labels.as_array().is_some_and(Vec::is_empty) { &Value::Null } else { labels };
    format!("[{stack}] {delta} {pid} {labels}")
}

fn reference(path: &str) -> Runs {
    let mut text = read_corpus(path);
    if path.ends_with(".gz") {
        text = decompressed(&text);
    }
    let keys = ["fn", "module", "off", "op", "line", "native"];
    let (mut runs, mut stacks) = (Runs::new(), HashMap::new());
    for line in lines(&text) {
        if let Some(id) = line["def"].as_u64() {
            stacks.insert(id, stack(&line, keys));
        } else if let Some(id) = line["s"].as_u64() {
            let sample = sample(&stacks[&id], &line["d"], &line["pid"], &line["ann"]);
            push(&mut runs, sample, line["n"].as_i64().unwrap_or(1));
        }
    }
    runs
}

/// The bytes, compressed by `gzip`.
fn decompressed(compressed: &[u8]) -> Vec<u8> {
    let scratch = Scratch::new();
    let output = Command::new("gzip").arg("-dc").arg(scratch.write("lines.gz", compressed)).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn dumped(dump: &[u8]) -> Runs {
    let keys = ["function", "module", "offset", "opcode", "line", "native"];
    let (mut runs, mut stacks) = (Runs::new(), HashMap::new());
    for line in lines(dump) {
        match line["type"].as_str().unwrap() {
            "stack" => drop(stacks.insert(line["id"].as_u64().unwrap(), stack(&line, keys))),
            "sample" => {
                let frames = match line["stack"].as_u64() {
                    Some(id) => stacks[&id].clone(),
                    None => stack(&line, keys),
                };
                let sample = sample(&frames, &line["delta_us"], &line["pid"], &line["labels"]);
                push(&mut runs, sample, line["count"].as_i64().unwrap());
            }
            _ => {}
        }
    }
    runs
}

#[test]
fn every_trace_that_reli_reads_is_dumped_sample_for_sample() {
    let mut compared = 0;
    for trace in CorpusManifest::rbt().files {
        if trace.strict.error.is_some() || trace.bytes > SMALL_BYTES || trace.has_tag("bomb") {
            continue;
        }
        // Reli ignores a raw segment after a gzip member.
        if trace.name == "gzip_then_raw.rbt.gz" {
            continue;
        }
        let expected = reference(&format!("rbt/{}", trace.strict.expected));
        let file = corpus(&format!("rbt/{}", trace.name));
        for options in [&["dump"][..], &["dump", "--flat"]] {
            let ended = run(&[options, &[&file]].concat());
            assert!(ended.code == 0 || ended.code == 3, "{}: {}", trace.name, ended.stderr);
            assert!(dumped(&ended.stdout) == expected, "{} {options:?}", trace.name);
        }
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn the_first_line_has_the_version_and_the_last_says_how_far_the_reader_came() {
    let dump = run(&["dump", &corpus("rbt/daemon_worker.rbt")]).quietly();
    let lines: Vec<_> = lines(&dump).collect();
    let [first, last] = [&lines[0], &lines[lines.len() - 1]];
    assert_eq!((&first["type"], &first["schema_version"]), (&"file".into(), &1.into()));
    assert_eq!((&first["format"], &first["period_us"]), (&"rbt".into(), &10_000.into()));
    let end: [(_, Value); 3] = [("type", "end".into()), ("samples", 30.into()), ("lost_bytes", 0.into())];
    assert!(end.iter().all(|(key, value)| &last[key] == value), "{last}");
    assert_eq!(lines.iter().filter(|line| line["type"] == "segment").count(), 3);
}

#[test]
fn the_last_line_of_a_dump_names_the_losses() {
    let ended = run(&["dump", "--lenient", &corpus("rbt/length_swallows_next.rbt")]);
    let end = lines(&ended.stdout).last().unwrap();
    assert_eq!(ended.code, 3);
    assert!(!end["warnings"].as_array().unwrap().is_empty(), "{end}");
}

#[test]
fn raw_lines_are_the_records_at_their_offsets() {
    let bytes = read_corpus("rbt/annotations_ts.rbt");
    let raw = run(&["dump", "--raw", &corpus("rbt/annotations_ts.rbt")]).quietly();
    let raw: Vec<_> = lines(&raw).collect();
    let count = |name: &str| raw.iter().filter(|line| line["type"] == name).count();
    assert_eq!((count("HEADER"), count("SAMPLE"), count("SAMPLE_ANNOTATION")), (1, 6, 4));
    let types = [("STRING_DEF", 0x0a), ("SAMPLE", 3), ("SEGMENT_END", 5), ("CHECKPOINT", 4)];
    for (name, byte) in types {
        for line in raw.iter().filter(|line| line["type"] == name) {
            let offset = usize::try_from(line["offset"].as_u64().unwrap()).unwrap();
            assert_eq!(bytes[offset], byte, "{line}");
        }
    }
    assert_eq!(raw.last().unwrap()["type"], "SEGMENT_END");
}

#[test]
fn only_formats_with_records_have_raw_lines() {
    let error = piped(&["dump", "--raw"], b"a;b 1\n").failed();
    let expected = "expected rbt or trc for raw records, found folded";
    assert_eq!(error, format!("error: standard input: unsupported input: {expected}\n"));
}

#[test]
fn a_dump_is_a_profile_again() {
    let trace = corpus("rbt/annotations_ts.rbt");
    let dump = run(&["dump", &trace]).quietly();
    let again = piped(&["convert", "--to", "rbt"], &dump).quietly();
    let direct = run(&["convert", &trace, "--to", "rbt"]).quietly();
    assert!(again == direct);
}

#[test]
fn the_name_of_the_output_says_whether_it_is_compressed() {
    let scratch = Scratch::new();
    let trace = corpus("rbt/daemon_worker.rbt");
    for raw in [&["--raw"][..], &[]] {
        let [plain, packed] = ["a.jsonl", "a.jsonl.gz"].map(|name| scratch.path(name));
        for path in [&plain, &packed] {
            run(&[&["dump", &*trace, "--force", "-o", path.to_str().unwrap()], raw].concat()).done();
        }
        let unpacked = Command::new("gzip").arg("-dc").arg(&packed).output().unwrap();
        assert_eq!(unpacked.stdout, std::fs::read(&plain).unwrap());
    }
    let said = run(&["dump", &trace, "-o", scratch.path("a.jsonl.zst").to_str().unwrap()]).failed();
    assert!(said.contains("unsupported compression"), "{said}");
}

#[test]
fn a_stream_has_everything_before_an_error() {
    let trace = |name: &str| (corpus(&format!("damage/{name}")), "event", 1);
    let text = Scratch::new();
    let folded = text.write("a.folded", b"a;b 1\na;c 2\nnothing\n");
    let rbt = (corpus("rbt/bitflip_middle.rbt"), "sample", 6);
    let folded = (folded.to_str().unwrap().to_owned(), "sample", 2);
    for (file, kind, count) in [trace("trc-strict-before-error.trc"), rbt, folded] {
        for command in [&["dump"][..], &["convert", "--to", "jsonl"]] {
            let ended = run(&[command, &[&file]].concat());
            assert!(ended.code == 2 && ended.stderr.starts_with("error: "), "{file} {}", ended.stderr);
            let lines: Vec<_> = lines(&ended.stdout).collect();
            let found = lines.iter().filter(|line| line["type"] == kind).count();
            assert_eq!(found, count, "{file}");
            let end = lines.last().unwrap();
            let said = end["warnings"][0]["message"].as_str().unwrap();
            assert!(end["type"] == "end" && ended.stderr.contains(said), "{end} {}", ended.stderr);
        }
    }
}

#[test]
fn no_partial_file_is_left() {
    let scratch = Scratch::new();
    let output = scratch.path("a.jsonl");
    let ended = run(&["dump", &corpus("damage/trc-strict-before-error.trc"), "-o", output.to_str().unwrap()]);
    assert!(ended.code == 2 && !output.exists(), "{}", ended.stderr);
}
