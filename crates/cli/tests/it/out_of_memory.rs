//! Allocations that fail, at any point of a command: a limit of its address space from hardly enough to start up to enough. The
//! command ends with an error or with its work done, and leaves neither temporary files nor a stopped process.

use std::fs;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Command, Stdio};

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::capture::Busy;
use crate::program::{corpus, listing, piped, text, wait_for};

/// The number of limits that each command runs under.
const POINTS: u32 = 40;

/// The least address space in which the command says its version, in KiB. In less, the kernel or the loader of programs ends it.
fn least_kib() -> f64 {
    // The loader of programs needs more or less, by the addresses that it is given.
    let starts = |kib: &u32| (0..8).all(|_| run_within(&["--version"], u64::from(*kib)).code == Some(0));
    f64::from((10_000..).step_by(500).find(starts).unwrap())
}

/// The outcome of a command under a limit.
pub(crate) struct Limited {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

/// Runs the command with `kib` of address space.
pub(crate) fn run_within(arguments: &[&str], kib: u64) -> Limited {
    let script = format!("ulimit -v {kib} && ulimit -c 0 && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_borehole")]).args(arguments);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    Limited { code: output.status.code(), said: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// The limits from the least to `most_kib`, evenly on a logarithmic scale.
fn limits(most_kib: f64) -> impl Iterator<Item = u64> {
    let least_kib = least_kib();
    let step = (most_kib / least_kib).powf(1.0 / f64::from(POINTS - 1));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some gigabytes at most")]
    (0..POINTS).map(move |point| (least_kib * step.powi(point.cast_signed())) as u64)
}

/// Runs the command that begins with `arguments` and writes `name` under each limit. `looks_on` is called after each.
#[track_caller]
fn ends_well(name: &str, arguments: &[&str], most_kib: f64, looks_on: impl Fn()) {
    let (scratch, old) = (Scratch::new(), b"what was there before".to_vec());
    let path = scratch.path(name);
    let whole = [arguments, &["--force", "-o", text(&path)]].concat();
    let (mut failed, mut done) = (0, 0);
    for kib in limits(most_kib) {
        fs::write(&path, &old).unwrap();
        let Limited { code, said } = run_within(&whole, kib);
        if is_end_of_a_thread_that_begins(&said) {
            assert!(fs::read(&path).unwrap() == old || is_live(&path), "{whole:?} within {kib} KiB: {said}");
            fs::remove_dir_all(scratch.folder()).and_then(|()| fs::create_dir(scratch.folder())).unwrap();
            continue;
        }
        assert!(matches!(code, Some(0 | 2 | 3)), "{whole:?} within {kib} KiB: {code:?}, {said}");
        assert_eq!(listing(scratch.folder()), [name], "{whole:?} within {kib} KiB: {said}");
        let found = fs::read(&path).unwrap();
        if code == Some(2) {
            failed += 1;
            assert!(said.contains("error: ") || said.is_empty(), "{whole:?} within {kib} KiB: {said}");
            assert!(
                found == old || is_live(&path),
                "{whole:?} within {kib} KiB: {} bytes, {said}",
                found.len()
            );
        } else {
            done += 1;
            assert!(found != old, "{whole:?} within {kib} KiB");
        }
        looks_on();
    }
    assert!(failed > 0 && done > 0, "{whole:?}: {failed} failed, {done} succeeded");
}

/// Whether the C library ended the program, as it does if it gets no memory for a thread that begins: `SECURITY.md` says so.
fn is_end_of_a_thread_that_begins(said: &str) -> bool {
    said.contains("Fatal glibc error: failed to register TLS destructor")
}

/// Whether recordings write the file in place.
fn is_live(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rbt")
}

#[test]
fn a_command_line_that_takes_more_than_there_is_ends_with_an_error() {
    let names: Vec<_> = (0..15_000).map(|number| format!("trace-{number:040}.rbt")).collect();
    let words: Vec<_> = ["report"].into_iter().chain(names.iter().map(String::as_str)).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some megabytes")]
    let least_kib = least_kib() as u64;
    for kib in (least_kib + 1000..).step_by(500).take(8) {
        let Limited { code, said } = run_within(&words, kib);
        assert_eq!(code, Some(2), "within {kib} KiB: {said}");
    }
}

#[test]
fn a_conversion_without_memory_leaves_the_old_file_or_the_new_one() {
    let trace = corpus("rbt/realistic_54k_ts.rbt");
    for (name, format) in
        [("o.pb", "pprof"), ("o.bin", "tachyon"), ("o.json", "speedscope"), ("o.svg", "flamegraph")]
    {
        ends_well(name, &["convert", &trace, "--to", format], 60_000.0, || {});
    }
}

#[test]
fn a_report_or_recovery_without_memory_leaves_the_old_file_or_the_new_one() {
    ends_well("o.html", &["report", &corpus("rbt/realistic_54k_ts.rbt")], 60_000.0, || {});
    ends_well("o.rbt", &["recover", &corpus("rbt/realistic_54k_segmented_corrupt.rbt")], 60_000.0, || {});
}

#[test]
fn an_analysis_of_a_heap_without_memory_leaves_the_old_file_or_the_new_one() {
    let heap = corpus("php/heap/8.1.2.rdump");
    ends_well("o.json", &["heap", "export", &heap], 2_000_000.0, || {});
    ends_well("o.rmem", &["heap", "analyze", &heap], 2_000_000.0, || {});
}

#[test]
fn a_recording_or_capture_without_memory_lets_the_process_run() {
    let Some(busy) = Busy::start("without-memory") else { return };
    // The kernel lets it run on as the command ends.
    let runs = || {
        wait_for(|| {
            let stat = fs::read_to_string(format!("/proc/{}/stat", busy.id())).unwrap();
            let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
            (!matches!(state, Some('T' | 't'))).then_some(())
        });
    };
    let process = busy.id();
    ends_well("o.pb", &["record", "-p", &process, "-d", "100ms"], 2_000_000.0, runs);
    ends_well("o.rbt", &["record", "-p", &process, "-d", "100ms"], 2_000_000.0, runs);
    ends_well("o.rmem", &["heap", "capture", "-p", &process], 2_000_000.0, runs);
}

#[test]
fn what_takes_more_than_the_budget_names_the_option_and_what_came_before_is_given_out() {
    // Each sample has a stack of its own.
    let folded: String = (0..400_000).map(|number| format!("main;f{number};g{number} 1\n")).collect();
    for command in ["report", "info", "check", "dump"] {
        let ended = piped(&[command, "--from", "folded", "--max-memory", "40M"], folded.as_bytes());
        let said = &ended.stderr;
        assert_eq!(ended.code, 2, "{command}: {said}");
        assert!(said.contains("standard input: needs more than 40 MiB of memory"), "{command}: {said}");
        assert!(said.contains("hint: allow more with --max-memory"), "{command}: {said}");
        if command == "dump" {
            let lines: Vec<_> = ended.stdout.lines().map(Result::unwrap).collect();
            let objects = lines.iter().filter(|line| serde_json::from_str::<Value>(line).is_ok());
            assert!(lines.len() > 10_000 && objects.count() == lines.len(), "{} lines", lines.len());
        }
    }
}
