//! Programs of known shares, sampled by the system where it allows that, else by stops.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use borehole_capture::{
    LiveSink, ProgramOptions, ProgramProcess, SampleOptions, SampleStatistics, SampledThreads,
    SamplingSession, SegmentMetadata, SessionControl, Subject as _,
};
use borehole_model::{Context, ProfileSink, Sample, Tables};
use borehole_testkit::peers;
use borehole_testkit::{Scratch, project_file};

use crate::fake::arrived;

/// Which sampler a run of a test must have, where another program has arranged for it.
const EXPECTED: &str = "BOREHOLE_TEST_EXPECTS_SAMPLER";

/// A program that is ended in the end.
struct Busy(Child);

impl Busy {
    fn start(program: &PathBuf, arguments: &[&str]) -> Self {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Compiles a program of the corpus; `None` if there is no compiler.
fn compiled(scratch: &Scratch, name: &str, options: &[&str]) -> Option<PathBuf> {
    let gcc = peers::peer("gcc")?;
    let program = scratch.path(name);
    let source = project_file("corpus/native").join(name).with_extension("c");
    let built = gcc.command().args(["-pthread", "-o"]).args([&program, &source]).args(options).status();
    assert!(built.unwrap().success());
    Some(program)
}

/// The threads and the functions of all samples.
#[derive(Default)]
struct Functions {
    threads: BTreeSet<u64>,
    stacks: Vec<Vec<String>>,
    modules: BTreeSet<Vec<u8>>,
    times_ns: Vec<i64>,
}

impl ProfileSink for Functions {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let name = |frame| String::from_utf8_lossy(at.tables.string(at.tables.function(frame))).into_owned();
        self.stacks.push(at.tables.frames_leaf_first(sample.stack).map(name).collect());
        let native = |frame| at.tables.frame(frame).native;
        let modules = at.tables.frames_leaf_first(sample.stack).filter_map(native);
        self.modules.extend(modules.map(|native| at.tables.string(native.module).to_vec()));
        self.threads.extend(sample.thread);
        self.times_ns.extend(sample.time_ns);
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

impl LiveSink for Functions {}

impl Functions {
    /// The samples with a function.
    fn with(&self, function: &str) -> usize {
        self.stacks.iter().filter(|stack| stack.iter().any(|name| name == function)).count()
    }
}

/// Samples a busy program: the sampler, the counts and the stacks.
fn sampled(program: &Busy, samples: u64) -> (String, SampleStatistics, Functions) {
    let period = Some(Duration::from_millis(1));
    let options =
        ProgramOptions { threads: SampledThreads::OnCpu, events: period, ..ProgramOptions::default() };
    let subject = ProgramProcess::attach(program.0.id().try_into().unwrap(), &options).unwrap();
    let facts = subject.facts();
    let sampler = facts.iter().find(|(key, _)| key == "native.sampler").unwrap().1.clone();
    assert_eq!(sampler.starts_with("stops"), facts.iter().any(|(key, _)| key == "native.no_perf_events"));
    if let Some(expected) = std::env::var_os(EXPECTED) {
        assert_eq!(*expected, *sampler);
    }
    let options = SampleOptions { period, samples: Some(samples), ..SampleOptions::default() };
    let mut functions = Functions::default();
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut functions, SessionControl::default());
    let statistics = session.run(&arrived(vec![Box::new(subject)])).unwrap();
    assert_eq!(sampler.starts_with("stops"), statistics.stopped > 0, "{statistics:?}");
    (sampler, statistics, functions)
}

/// Of 600 samples, a share of 75% is within 10 points in all but one of 10^8 runs.
#[test]
fn the_functions_of_a_busy_program_have_their_shares_with_and_without_frame_pointers() {
    for option in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
        let scratch = Scratch::new();
        let options = ["-O2", "-fno-optimize-sibling-calls", option];
        let Some(program) = compiled(&scratch, "shares", &options) else { return };
        let (sampler, statistics, functions) = sampled(&Busy::start(&program, &[]), 600);
        let native = statistics.native;
        assert_eq!(native.whole, native.stacks, "{sampler}: {native:?}");
        let [spin, three, deep, main] = ["spin", "three", "deep", "main"].map(|name| functions.with(name));
        assert!(spin * 10 >= main * 9 && deep * 10 >= main * 9, "{sampler}: {spin} and {deep} of {main}");
        assert!((three * 100).abs_diff(spin * 75) <= spin * 10, "{sampler}: {three} of {spin}");
        assert!(functions.times_ns.is_sorted(), "{sampler}");
    }
}

#[test]
fn without_the_right_to_perf_events_threads_are_stopped() {
    const PERF_EVENT_OPEN: &str = "298";
    let scratch = Scratch::new();
    let Some(deny) = compiled(&scratch, "deny", &[]) else { return };
    let own = std::env::current_exe().unwrap();
    let name =
        "program_events::the_functions_of_a_busy_program_have_their_shares_with_and_without_frame_pointers";
    let ran = Command::new(deny)
        .args([PERF_EVENT_OPEN, "--"])
        .arg(own)
        .args(["--exact", name])
        .env(EXPECTED, "stops of threads")
        .output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn threads_that_start_later_are_sampled_by_the_system() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "shares", &["-O2"]) else { return };
    let (sampler, _, functions) = sampled(&Busy::start(&program, &["threads"]), 200);
    if sampler.starts_with("perf events") {
        // Each thread lives for some milliseconds.
        assert!(functions.threads.len() > 10, "{:?}", functions.threads);
        assert!(functions.with("in_thread") * 2 > functions.stacks.len());
    }
}

#[test]
fn code_that_a_program_makes_has_its_name_and_its_callers() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "made", &["-O2"]) else { return };
    let busy = Busy::start(&program, &[]);
    let (sampler, statistics, functions) = sampled(&busy, 200);
    drop(std::fs::remove_file(format!("/tmp/perf-{}.map", busy.0.id())));
    assert!(functions.with("made_loop") * 10 > functions.stacks.len() * 8, "{sampler}");
    let made = functions.stacks.iter().filter(|stack| stack.iter().any(|name| name == "made_loop"));
    let joined = made
        .filter(|stack| ["calls_made", "main"].iter().all(|name| stack.iter().any(|known| known == name)));
    assert!(joined.count() * 10 > functions.with("made_loop") * 9, "{sampler}: {:?}", statistics.native);
    assert!(statistics.native.searched > 0, "{sampler}: {:?}", statistics.native);
}

#[test]
fn five_hundred_libraries_are_unwound_and_told_apart() {
    const LIBRARIES: usize = 500;
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "modules", &["-O2"]) else { return };
    let apart = Scratch::new();
    let library = compiled(&apart, "modules", &["-O2", "-shared", "-fPIC"]);
    let Some(library) = library.map(|library| std::fs::read(library).unwrap()) else { return };
    for number in 0..LIBRARIES {
        std::fs::write(scratch.path(&format!("m{number}.so")), &library).unwrap();
    }
    let folder = scratch.path("").display().to_string();
    let (sampler, statistics, functions) =
        sampled(&Busy::start(&program, &[&folder, &LIBRARIES.to_string()]), 600);
    let native = statistics.native;
    assert_eq!(native.whole, native.stacks, "{sampler}: {native:?}");
    assert!(functions.with("work") * 10 > functions.stacks.len() * 9, "{sampler}");
    assert!(functions.modules.len() > 100, "{sampler}: {} modules", functions.modules.len());
}
