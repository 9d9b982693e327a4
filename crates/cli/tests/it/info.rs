//! `info`: the format and contents of files.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::{corpus, piped, run};

fn objects(stdout: &[u8]) -> Vec<Value> {
    let lines = stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn a_file_is_described_in_one_object() {
    let info = run(&["info", "--json", &corpus("rbt/annotations_ts.rbt")]).quietly();
    let [info] = &objects(&info)[..] else { panic!("expected one object") };
    let expected = [
        ("schema_version", 1.into()),
        ("format", "rbt".into()),
        ("size_bytes", 408.into()),
        ("samples", 6.into()),
        ("segments", 1.into()),
        ("time_ns", vec![10_000_000, 60_000_000].into()),
        ("warnings", Value::Array(Vec::new())),
        ("notes", Value::Array(Vec::new())),
    ];
    assert!(expected.iter().all(|(key, value)| &info[key] == value), "{info}");
    assert_eq!((&info["records"]["SAMPLE"], &info["label_keys"]["n"]), (&6.into(), &4.into()));
    assert_eq!(info["first_segments"][0]["period_ns"], 10_000_000);
}

#[test]
fn a_recording_of_samply_is_described_as_its_process_is_called_there() {
    let path = corpus("gecko/samply.json.gz");
    let info = &objects(&run(&["info", "--json", &path]).done())[0];
    assert_eq!(info["samples"], 100);
    // A process and thread that have had the number of the one that started them.
    let lanes = serde_json::json!(["6571.1"]);
    assert_eq!([&info["processes"], &info["threads"]], [&lanes, &lanes]);
    let text = String::from_utf8(run(&["info", &path]).done()).unwrap();
    assert!(
        text.contains("processes      1: 6571.1\n") && text.contains("threads        1: 6571.1\n"),
        "{text}"
    );
}

#[test]
fn a_recording_of_samply_has_the_shares_that_perf_reports() {
    let folded = run(&["convert", &corpus("gecko/samply.json.gz"), "--to", "folded"]).done();
    let mut counts = BTreeMap::<_, u64>::new();
    for line in String::from_utf8(folded).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let leaf = stack.rsplit(';').next().unwrap();
        let address =
            leaf.strip_prefix("0x").and_then(|leaf| u64::from_str_radix(leaf.split(' ').next()?, 16).ok());
        // Where the functions are in the program.
        let function = match address {
            Some(0x1139..0x115c) => "one",
            Some(0x115c..0x117f) => "three",
            _ => leaf,
        };
        *counts.entry(function.to_owned()).or_default() += count.parse::<u64>().unwrap();
    }
    let counts: Vec<_> = counts.iter().map(|(function, &count)| (&**function, count)).collect();
    assert_eq!(counts, [("do_syscall_64 [kernel.kallsyms]:0", 1), ("one", 34), ("three", 65)]);
}

#[test]
fn every_file_is_described_despite_errors_in_others() {
    let [sound, damaged, cut] = ["daemon_worker.rbt", "bitflip_middle.rbt", "truncated_varint.rbt"]
        .map(|name| corpus(&format!("rbt/{name}")));
    let ended = run(&["info", "--json", &damaged, "nowhere.rbt", &sound, &cut]);
    let samples: Vec<_> =
        objects(&ended.stdout).iter().map(|info| info["samples"].as_u64().unwrap()).collect();
    assert_eq!((ended.code, samples), (2, vec![18, 30, 2]));
    assert!(ended.stderr.contains("error: nowhere.rbt: no such file or directory\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("warning: {damaged}: invalid FRAME_DEF")), "{}", ended.stderr);
    assert_eq!(run(&["info", &sound, &cut]).code, 3);
    assert_eq!(run(&["info", &sound]).code, 0);
}

#[test]
fn the_text_has_the_facts_of_the_json() {
    let text = String::from_utf8(run(&["info", &corpus("rbt/daemon_worker.rbt")]).quietly()).unwrap();
    for row in [
        "format         rbt (reli binary trace: call-stack samples of PHP)",
        "samples        30 in 6 runs",
        "processes      3: 100, 200, 300",
        "      1   0x160       10  10.0 ms  pid=200",
    ] {
        assert!(text.lines().any(|line| line == row), "expected {row:?} in\n{text}");
    }
}

#[test]
fn control_characters_in_names_are_escaped() {
    let hostile = [
        r#"{"type":"file","schema_version":1,"format":"rbt","metadata":[["c\u001b[2J","line1\nsamples       999999"]]}"#,
        r#"{"type":"segment","index":0,"format":"rbt","metadata":[["c\u001b[2J","line1\nsamples       999999"]]}"#,
        r#"{"type":"stack","id":1,"frames":[{"function":"f"}]}"#,
        r#"{"type":"sample","stack":1,"count":1,"labels":[["k\u001b[31m","\u202ev"]]}"#,
        r#"{"type":"end","samples":1,"events":0,"lost_bytes":0,"warnings":[]}"#,
    ]
    .join("\n");
    let said = piped(&["info", "--from", "jsonl"], hostile.as_bytes());
    let text = String::from_utf8(said.stdout).unwrap();
    assert!(
        text.contains(r"c\x1b[2J=line1\x0asamples ") && text.contains(r"k\x1b[31m (on 1 sample)"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("samples ")).count(), 1, "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn info_and_check_refuse_label_inputs() {
    for command in ["info", "check"] {
        let refused = run(&[command, "--label-inputs", &corpus("rbt/native.rbt")]).failed();
        assert!(refused.contains("unexpected argument '--label-inputs'"), "{refused}");
    }
}

#[test]
fn texts_and_documents_are_described_too() {
    for (file, format, samples) in [
        ("rbt/text/two_traces.txt", "phpspy", 2),
        ("pprof/go-cpu.pb.gz", "pprof", 57),
        ("rbt/expected/conv/daemon_worker.rbt.folded", "folded", 30),
        ("rbt/expected/conv/daemon_worker.rbt.speedscope.json", "speedscope", 30),
    ] {
        let info = &objects(&run(&["info", "--json", &corpus(file)]).done())[0];
        assert_eq!((&info["format"], &info["samples"]), (&format.into(), &samples.into()), "{file}");
    }
}

#[test]
fn info_shows_ticks_rates_interpreters_and_compression() {
    // The numbers come from CPython's reader and from the command zstd.
    for (file, rows) in [
        (
            "06_threads20_zstd",
            &[
                "interpreters   1: 0",
                "ticks          495, 325.9 per second (500.0 requested)",
                "compression    4.27:1, 33,655 bytes of samples in 7,889",
            ][..],
        ),
        (
            "09_subinterp",
            &["interpreters   4: 0, 1, 2, 3", "ticks          552, 1144.0 per second (2000.0 requested)"],
        ),
    ] {
        let ended = run(&["info", &corpus(&format!("tachyon/corpus/{file}.bin"))]);
        let text = String::from_utf8(ended.done()).unwrap();
        for row in rows {
            assert!(text.lines().any(|line| line == *row), "expected {row:?} in\n{text}");
        }
        assert_eq!(text.contains("compression    "), file.ends_with("zstd"), "{text}");
    }
}

#[test]
fn json_has_ticks_and_compression_if_known() {
    let numbers = |file: &str| {
        let info = &objects(&run(&["info", "--json", &corpus(file)]).stdout)[0];
        ["ticks", "compressed_bytes", "decompressed_bytes"].map(|key| info[key].as_u64())
    };
    let compressed = numbers("tachyon/corpus/02_cpu_zstd.bin");
    assert_eq!(compressed, [Some(1496), Some(4338), Some(22_885)]);
    assert_eq!(numbers("tachyon/corpus/05_threads20_none.bin"), [Some(1102), None, None]);
    assert_eq!(numbers("rbt/annotations_ts.rbt"), [None; 3]);
}
