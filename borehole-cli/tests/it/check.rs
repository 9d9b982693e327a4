//! `check`: whether files are sound.

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
fn sound_files_are_said_to_be_and_that_is_all() {
    let [python, php] = ["tachyon/corpus/25_multiline.bin", "rbt/daemon_worker.rbt"].map(corpus);
    let said = String::from_utf8(run(&["check", &python, &php]).quietly()).unwrap();
    assert_eq!(said, format!("{python}: sound (tachyon, 2257 samples)\n{php}: sound (rbt, 30 samples)\n"));
}

#[test]
fn what_is_inconsistent_is_said_with_its_place() {
    for (file, finding) in [
        ("tachyon/corrupt/ftr_filesize_wrong.bin", "expected a file of"),
        ("tachyon/corrupt/threads_zero.bin", "expected 0 threads, found more"),
        ("tachyon/corrupt/truncated_half.bin", "(at byte "),
        (
            "rbt/bitflip_middle.rbt",
            "found string 5; 9 bytes lost, 12 samples saved behind it (at byte 0x12a)",
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
fn every_file_has_a_verdict_whatever_the_others_are() {
    let [sound, damaged] = ["tachyon/corpus/24_idle.bin", "tachyon/corrupt/truncated_32.bin"].map(corpus);
    let ended = run(&["check", "--json", &damaged, "nowhere.bin", &sound]);
    let verdicts = objects(&ended.stdout);
    let words: Vec<_> = verdicts.iter().map(|verdict| verdict["verdict"].as_str().unwrap()).collect();
    assert_eq!((ended.code, &words[..]), (2, &["inconsistent", "sound"][..]));
    assert!(ended.stderr.contains("error: nowhere.bin: no such file or directory\n"), "{}", ended.stderr);
    assert!(!verdicts[0]["findings"].as_array().unwrap().is_empty() && verdicts[0]["schema_version"] == 1);
    assert_eq!(run(&["check", "--json", &damaged, &sound]).code, 3);
}
