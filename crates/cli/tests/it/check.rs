//! `check`: detection of damage in files.

use std::process::Stdio;
use std::{fs, thread};

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::program::{corpus, named_pipe, program, run, text, wait_for};

fn objects(stdout: &[u8]) -> Vec<Value> {
    let lines = stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

#[test]
fn sound_files_print_one_line() {
    let [python, php] = ["tachyon/corpus/25_multiline.bin", "rbt/daemon_worker.rbt"].map(corpus);
    let said = String::from_utf8(run(&["check", &python, &php]).quietly()).unwrap();
    assert_eq!(said, format!("{python}: sound (tachyon, 2,257 samples)\n{php}: sound (rbt, 30 samples)\n"));
}

#[test]
fn inconsistencies_are_reported_with_positions() {
    for (file, finding) in [
        ("tachyon/corrupt/ftr_filesize_wrong.bin", "expected a file of"),
        ("tachyon/corrupt/threads_zero.bin", "expected 0 threads, found more"),
        ("tachyon/corrupt/truncated_half.bin", "(at byte "),
        (
            "rbt/bitflip_middle.rbt",
            "undefined string 5; 9 bytes lost, 12 samples recovered after it (at byte 0x12a)",
        ),
    ] {
        let ended = run(&["check", &corpus(file)]);
        let said = String::from_utf8(ended.stdout).unwrap();
        assert_eq!((ended.code, &*ended.stderr), (3, ""), "{file}");
        assert!(said.contains(": inconsistent (") && said.contains(finding), "{said}");
    }
}

#[test]
fn a_damaged_pipe_is_read_once_and_has_a_verdict() {
    let damaged = b"main;f 3\nmain;g 2\nno count\nmain;h 1\n";
    let scratch = Scratch::new();
    let pipe = named_pipe(scratch.path("pipe"));
    let verdict = thread::scope(|scope| {
        scope.spawn(|| fs::write(&pipe, damaged).unwrap());
        let mut child =
            program(&["check", "--from", "folded", text(&pipe)]).stdout(Stdio::piped()).spawn().unwrap();
        let ended = wait_for(|| child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(3));
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    });
    assert!(
        verdict.starts_with(&format!("{}: inconsistent (folded, 5 samples)\n", text(&pipe))),
        "{verdict}"
    );
}

#[test]
fn every_file_has_a_verdict_despite_errors_in_others() {
    let [sound, damaged] = ["tachyon/corpus/24_idle.bin", "tachyon/corrupt/truncated_32.bin"].map(corpus);
    let ended = run(&["check", "--json", &damaged, "nowhere.bin", &sound]);
    let verdicts = objects(&ended.stdout);
    let words: Vec<_> = verdicts.iter().map(|verdict| verdict["verdict"].as_str().unwrap()).collect();
    assert_eq!((ended.code, &words[..]), (2, &["inconsistent", "sound"][..]));
    assert!(ended.stderr.contains("error: nowhere.bin: no such file or directory\n"), "{}", ended.stderr);
    assert!(!verdicts[0]["findings"].as_array().unwrap().is_empty() && verdicts[0]["schema_version"] == 1);
    assert_eq!(run(&["check", "--json", &damaged, &sound]).code, 3);
}

#[test]
fn events_are_counted_as_events() {
    let scratch = Scratch::new();
    let trace = scratch.path("trace.trc");
    run(&["convert", &corpus("rbt/daemon_worker.rbt"), "-o", text(&trace)]).done();
    let said = String::from_utf8(run(&["check", text(&trace)]).quietly()).unwrap();
    let events = said.split_once(": sound (trc, ").and_then(|(_, rest)| rest.strip_suffix(" events)\n"));
    let events = events.unwrap_or_else(|| panic!("{said}")).parse::<u64>().unwrap();
    assert!(events > 0, "{said}");
    let verdict = &objects(&run(&["check", "--json", text(&trace)]).quietly())[0];
    assert_eq!((&verdict["samples"], &verdict["events"]), (&Value::from(0), &Value::from(events)));
}

#[test]
fn an_empty_file_is_sound_only_with_a_given_format() {
    let scratch = Scratch::new();
    for name in ["empty.bin", "empty.rbt"] {
        let file = scratch.write(name, b"");
        let ended = run(&["check", text(&file)]);
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.code == 3 && said.contains(": inconsistent ("), "{said}");
        assert!(name == "empty.bin" || said.contains("expected rbt, found an empty file"), "{said}");
        run(&["check", "--from", "rbt", text(&file)]).quietly();
    }
    for (name, format) in [("empty.bin", "tachyon"), ("empty.pb", "pprof"), ("empty.jsonl", "jsonl")] {
        let file = scratch.write(name, b"");
        let ended = run(&["check", text(&file)]);
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(
            ended.code == 3 && said.contains(&format!("expected {format}, found an empty file")),
            "{said}"
        );
    }
}

#[test]
fn names_and_contents_are_escaped_for_terminals() {
    let scratch = Scratch::new();
    let names = ["esc\x1b[31mred.jsonl", "line\nx.rbt: sound (rbt, 5 samples).jsonl", "bidi\u{202e}.jsonl"];
    let warning = r#"{"type":"end","samples":1,"events":1,"lost_bytes":5,"warnings":[{"message":"\u001b[33mwarn\nerror: x"}]}"#;
    for name in names {
        let path = scratch.path(name);
        fs::write(&path, format!("{warning}\n")).unwrap();
        let checked = run(&["check", text(&path)]);
        let lines = String::from_utf8(checked.stdout).unwrap();
        let report = run(&["report", "--lenient", text(&path)]).stderr;
        let missing = run(&["report", &format!("{}?", text(&path))]).failed();
        for said in [&lines, &report, &missing] {
            assert!(!said.contains(['\x1b', '\u{202e}']), "{said:?}");
            assert!(
                !said.lines().any(|line| line.starts_with("x.rbt") || line.starts_with("error: x")),
                "{said:?}"
            );
        }
        assert!(lines.contains(r"\x1b[33mwarn\x0aerror: x"), "{lines:?}");
    }
}
