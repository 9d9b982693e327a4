//! Commands that write a file and are killed at any moment: there is the file that was there before, or the whole new one.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use borehole_testkit::Scratch;

use crate::program::{corpus, listing, program, run, text};

/// How often each command is killed, at moments spread over the time that it takes.
const KILLS: u32 = 100;

/// Runs the command that `arguments` begin, which writes to what follows them, and kills it a hundred times.
#[track_caller]
fn survives(name: &str, arguments: &[&str]) {
    let scratch = Scratch::new();
    let path = scratch.path(name);
    let whole = [arguments, &["--force", "-o", text(&path)]].concat();
    let begin = Instant::now();
    let code = run(&whole).code;
    let takes = begin.elapsed();
    assert!([0, 3].contains(&code), "{whole:?}: {code}");
    let (old, new) = (b"what was there before".to_vec(), fs::read(&path).unwrap());
    let mut killed = 0;
    for kill in 0..KILLS {
        fs::write(&path, &old).unwrap();
        let mut child = program(&whole).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(takes * kill / KILLS);
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let found = fs::read(&path).unwrap();
        assert!(found == old || found == new, "{whole:?}: {} bytes after {kill} of {KILLS}", found.len());
        clear(scratch.folder(), name);
    }
    assert!(killed > KILLS / 4, "{whole:?}: only {killed} were killed before their end");
}

/// What a killed program could not take away bears our name, and begins with a dot.
fn clear(folder: &Path, name: &str) {
    for left in listing(folder).iter().filter(|left| *left != name) {
        assert!(left.starts_with(".borehole-"), "{left}");
        fs::remove_file(folder.join(left)).unwrap();
    }
}

#[test]
fn a_killed_conversion_leaves_the_old_file_or_the_new_one() {
    let trace = corpus("rbt/realistic_54k_ts.rbt");
    survives("out.pb.gz", &["convert", &trace]);
    survives("out.speedscope.json", &["convert", &trace]);
    survives("out.svg", &["convert", &trace]);
    survives("out.rbt", &["convert", &trace]);
}

#[test]
fn a_killed_recovery_leaves_the_old_file_or_the_new_one() {
    survives("saved.rbt", &["recover", &corpus("rbt/realistic_54k_segmented_corrupt.rbt")]);
}

#[test]
fn a_killed_report_dump_or_diff_leaves_the_old_file_or_the_new_one() {
    let [one, other] = ["rbt/realistic_54k_ts.rbt", "rbt/realistic_54k_cut.rbt"].map(corpus);
    survives("page.html", &["report", &one]);
    survives("dump.jsonl", &["dump", &other]);
    survives("diff.html", &["diff", &one, &other]);
}

#[test]
fn a_killed_analysis_of_a_heap_leaves_the_old_file_or_the_new_one() {
    let heap = corpus("php/heap/8.1.2.rdump");
    survives("heap.json", &["heap", "export", &heap]);
    survives("heap.html", &["heap", "viz", &heap]);
}
