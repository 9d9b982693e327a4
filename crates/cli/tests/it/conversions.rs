//! Converts every readable format to every writable one.

use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::program::{piped, run, samples_in};

fn formats(ability: &str) -> Vec<String> {
    let formats: Value = serde_json::from_slice(&run(&["formats", "--json"]).quietly()).unwrap();
    assert_eq!(formats["schema_version"], 1);
    let formats = formats["formats"].as_array().unwrap().iter().filter(|format| format[ability] == true);
    formats.map(|format| format["name"].as_str().unwrap().to_owned()).collect()
}

/// The formats that are read, and that a trace without times can be written as. Sums of functions and calls are not samples: other
/// tests compare them.
fn readable() -> Vec<String> {
    let writable = formats("write");
    let others = ["chrome-trace", "pstats", "callgrind"];
    let is_both = |format: &String| !others.contains(&format.as_str()) && writable.contains(format);
    formats("read").into_iter().filter(is_both).collect()
}

fn converted(profile: &[u8], format: &str) -> Vec<u8> {
    piped(&["convert", "--to", format], profile).done()
}

/// Converts a profile and counts its samples, also if it has times of its own as values.
fn counted(profile: &[u8], format: &str) -> Vec<u8> {
    piped(&["convert", "--to", format, "--value", "samples"], profile).done()
}

/// Formats without a number of samples as text: two of times, one of functions, and one of columns. Other tests check them with
/// the programs that read them.
const WITHOUT_COUNTS: [&str; 4] = ["perfetto", "chrome-trace", "pstats", "parquet"];

/// The number of executing samples in all lines of a table.
fn samples_executing(output: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(output).into_owned();
    let lines = text.lines().skip(2).take_while(|line| !line.is_empty());
    lines.map(|line| line.trim_start().split('/').next().unwrap().parse::<u64>().unwrap()).sum()
}

/// The number of executing samples in a processed profile: entries, or their weights.
fn samples_of_lanes(output: &[u8]) -> u64 {
    let profile: Value = serde_json::from_slice(output).unwrap();
    let lanes = profile["threads"].as_array().unwrap().iter().map(|thread| &thread["samples"]);
    let count = |samples: &Value| match samples["weight"].as_array() {
        Some(weights) => weights.iter().map(|weight| weight.as_u64().unwrap()).sum(),
        None => samples["length"].as_u64().unwrap(),
    };
    lanes.map(count).sum()
}

/// The number of samples that an output that cannot be read back claims.
fn samples_said(format: &str, output: &[u8]) -> u64 {
    if format == "collapsed" {
        // The reader of folded stacks reads these too.
        return samples_in(output);
    }
    let text = String::from_utf8_lossy(output).into_owned();
    let (before, after) = match format {
        "callgrind" => ("summary: ", [' ', '\n']),
        "tachyon-jsonl" => ("\"samples_total\":", ['}', ',']),
        "pstats-text" => return samples_executing(output),
        "gecko" => return samples_of_lanes(output),
        _ => ("<title>all (", [' ', ')']),
    };
    let (_, rest) = text.split_once(before).unwrap();
    rest.split(after).next().unwrap().replace(',', "").parse().unwrap()
}

#[test]
fn every_readable_format_becomes_every_writable_one_with_all_samples() {
    let (readable, writable) = (readable(), formats("write"));
    assert!(readable.len() >= 6 && writable.len() >= 8);
    for (trace, samples) in [("daemon_worker.rbt", 30), ("annotations_ts.rbt", 6), ("native.rbt", 4)] {
        let trace = read_corpus(&format!("rbt/{trace}"));
        for from in &readable {
            let profile = converted(&trace, from);
            assert_eq!(samples_in(&profile), samples, "{from}");
            for to in writable.iter().filter(|to| !WITHOUT_COUNTS.contains(&to.as_str())) {
                if (from.as_str(), to.as_str()) == ("trc", "jsonl") {
                    // JSON Lines keep the events of a trace as events.
                    continue;
                }
                if from == "tachyon-jsonl" && ["folded", "collapsed"].contains(&to.as_str()) {
                    // Stacks of one frame cannot be distinguished from other text with numbers.
                    continue;
                }
                let output = counted(&profile, to);
                let found =
                    if readable.contains(to) { samples_in(&output) } else { samples_said(to, &output) };
                assert_eq!(found, samples, "{from} to {to}");
            }
        }
    }
}

#[test]
fn stacks_survive_every_round_trip() {
    let trace = read_corpus("rbt/daemon_worker.rbt");
    let folded = converted(&trace, "folded");
    // Sums of frames have no stacks.
    for format in readable().into_iter().filter(|format| format != "tachyon-jsonl") {
        assert_eq!(counted(&converted(&trace, &format), "folded"), folded, "{format}");
    }
}

#[test]
fn compressed_outputs_read_as_plain_ones() {
    for format in readable().iter().filter(|format| *format != "pprof") {
        let trace = read_corpus("rbt/daemon_worker.rbt");
        let compressed = piped(&["convert", "--compress", "--to", format], &trace).done();
        assert!(compressed.starts_with(b"\x1f\x8b"), "{format}");
        assert_eq!(samples_in(&compressed), 30, "{format}");
    }
}

#[test]
fn equal_inputs_give_equal_outputs() {
    let trace = read_corpus("rbt/realistic_54k_ts.rbt");
    for format in formats("write") {
        assert!(converted(&trace, &format) == converted(&trace, &format), "{format}");
    }
}
