//! Programs of Rust and Go, and with another C library, beside what `perf` says of them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use borehole_testkit::peers::{self, Peer};
use borehole_testkit::{Scratch, project_file};

use crate::program_events::{Busy, Functions, compiled_by, sampled};

/// Of so many samples, a share is within ten points of the truth in all but one of 10^6 runs.
const SAMPLES: u64 = 600;

fn source(name: &str) -> PathBuf {
    project_file("corpus/native").join(name)
}

/// Compiles the program in Rust, with the compiler of these tests.
fn rust(scratch: &Scratch, options: &[&str]) -> PathBuf {
    let program = scratch.path("shares");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut compile = Command::new(compiler);
    compile.args(["--edition", "2024", "-C", "opt-level=2", "-o"]).arg(&program).args(options);
    assert!(compile.arg(source("shares.rs")).status().unwrap().success());
    program
}

/// Compiles the program in Go; `None` if it is left out.
fn go(scratch: &Scratch) -> Option<PathBuf> {
    let program = scratch.path("shares");
    let mut compile = peers::peer("go")?.command();
    compile.args(["build", "-o"]).arg(&program).arg(source("shares.go"));
    // Nothing of the user's Go set-up, and nothing that is to be fetched.
    compile.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")).env("GOENV", "off");
    compile.env("GO111MODULE", "off").env("GOFLAGS", "").env("GOPROXY", "off").env("CGO_ENABLED", "0");
    assert!(compile.status().unwrap().success());
    Some(program)
}

/// Whether a part of a whole is as large as it should be, in percent.
#[track_caller]
fn assert_share(part: usize, whole: usize, percent: usize, said: &str) {
    assert!(whole >= 200, "{said}: {whole} samples");
    assert!((part * 100).abs_diff(whole * percent) <= whole * 10, "{said}: {part} of {whole}");
}

/// The stacks that have their share: of the functions below `deep`, three quarters are in `three`.
#[track_caller]
fn assert_shares(functions: &Functions, package: &str, said: &str) {
    let [three, one, deep, main] =
        ["three", "one", "deep", "main"].map(|name| functions.with(&format!("{package}{name}")));
    assert_share(three, three + one, 75, said);
    assert!((three + one) * 10 >= main * 9, "{said}: {three} and {one} of {main}");
    assert!(deep * 10 >= main * 9 && main * 10 >= functions.stacks.len() * 9, "{said}: {deep} of {main}");
}

#[test]
fn functions_of_rust_have_their_shares_with_and_without_frame_pointers() {
    for frame_pointers in ["no", "yes"] {
        let scratch = Scratch::new();
        let program = rust(&scratch, &["-C", &format!("force-frame-pointers={frame_pointers}")]);
        let (sampler, statistics, functions) = sampled(&Busy::start(&program, &[]), SAMPLES);
        assert_eq!(statistics.native.whole, statistics.native.stacks, "{sampler}: {:?}", statistics.native);
        assert_shares(&functions, "shares::", &sampler);
    }
}

#[test]
fn functions_of_go_have_their_shares() {
    let scratch = Scratch::new();
    let Some(program) = go(&scratch) else { return };
    let (sampler, _, functions) = sampled(&Busy::start(&program, &[]), SAMPLES);
    assert_shares(&functions, "main.", &sampler);
}

/// Its functions have no tables, so stacks end in it: each is counted, and the functions up to there are true.
#[test]
fn stacks_end_in_the_c_library_musl_and_are_counted() {
    for option in ["-static", "-Wl,--eh-frame-hdr"] {
        let scratch = Scratch::new();
        let options = ["-O2", "-fno-optimize-sibling-calls", option];
        let Some(program) = compiled_by("musl-gcc", &scratch, "searches", &options) else { return };
        let (sampler, statistics, functions) = sampled(&Busy::start(&program, &[]), SAMPLES);
        let native = statistics.native;
        let said = format!("{sampler}, {option}: {native:?}");
        assert_eq!(native.stacks, native.whole + native.bare + native.cut + native.corrupted, "{said}");
        assert_eq!((native.whole, functions.with("_start")), (0, 0), "{said}");
        let [spin, compare, direct, main] =
            ["spin", "compare", "direct", "main"].map(|name| functions.with(name));
        assert_share(compare, compare + direct, 50, &said);
        assert!((compare + direct) * 10 >= spin * 9, "{said}: {compare} and {direct} of {spin}");
        // The library called `compare`, and the caller of that is not known.
        assert!(direct * 9 <= main * 10 && main * 9 <= direct * 10, "{said}: {direct} of {main}");
        assert!(functions.with("bsearch") * 10 >= compare * 9, "{said}");
    }
}

/// A recording of `perf` that ends when it is told to.
struct PerfRecording(Child, PathBuf);

impl PerfRecording {
    /// Begins to record a process, and waits until it does.
    fn start(perf: &Peer, scratch: &Scratch, process: i32, call_graph: &str) -> Self {
        let file = scratch.path("perf.data");
        let mut command = perf.command();
        command.args(["record", "-q", "-e", "cpu-clock:u", "-F", "997", "--call-graph", call_graph]);
        command.args(["-p", &process.to_string(), "-o"]).arg(&file);
        // It records until the command ends, and starts it once it records.
        command.args(["--", "sh", "-c", "echo recording; cat"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "recording\n");
        Self(child, file)
    }

    /// The functions of all samples, each of which has a function once.
    fn end(mut self, perf: &Peer) -> BTreeMap<String, usize> {
        drop(self.0.stdin.take());
        assert!(self.0.wait().unwrap().success());
        let script = ["script", "--no-inline", "-F", "ip,sym", "-i", self.1.to_str().unwrap()];
        let mut counts = BTreeMap::new();
        for sample in perf.stdout(&script).split("\n\n") {
            let words = sample.lines().filter_map(|line| line.trim().split_once(' '));
            let mut functions: Vec<_> = words.map(|(_, function)| function.trim().to_owned()).collect();
            functions.sort_unstable();
            functions.dedup();
            functions.into_iter().for_each(|function| *counts.entry(function).or_default() += 1);
        }
        counts
    }
}

#[test]
fn shares_are_those_of_perf_in_the_same_run() {
    let Some(perf) = peers::peer("perf") else { return };
    for (frame_pointers, call_graph) in [("yes", "fp"), ("no", "dwarf,8192")] {
        let scratch = Scratch::new();
        let program = rust(&scratch, &["-C", &format!("force-frame-pointers={frame_pointers}")]);
        let busy = Busy::start(&program, &[]);
        let recording = PerfRecording::start(&perf, &scratch, busy.id(), call_graph);
        let (sampler, _, functions) = sampled(&busy, SAMPLES);
        let theirs = recording.end(&perf);
        let [three, one, main] = ["three", "one", "main"]
            .map(|name| theirs.get(&format!("shares::{name}")).copied().unwrap_or_default());
        assert_share(three, three + one, 75, "perf");
        assert!((three + one) * 10 >= main * 9, "perf: {three} and {one} of {main}");
        assert_shares(&functions, "shares::", &sampler);
    }
}
