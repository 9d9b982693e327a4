//! Programs of known shares, sampled by the system where it allows that, else by stops.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use borehole_capture::{
    Error, LiveSink, ProgramOptions, ProgramProcess, SampleOptions, SampleStatistics, SampledThreads,
    SamplingSession, SegmentMetadata, SessionControl, Subject as _,
};
use borehole_model::{Context, ProfileSink, Sample, Tables};
use borehole_testkit::peers;
use borehole_testkit::{Scratch, project_file};

use crate::fake::arrived;

/// Which sampler a run of a test must have, where another program has arranged for it.
const EXPECTED: &str = "BOREHOLE_TEST_EXPECTS_SAMPLER";

/// A program that is ended in the end.
pub(crate) struct Busy(Child);

impl Busy {
    pub(crate) fn start(program: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }

    pub(crate) fn id(&self) -> i32 {
        self.0.id().try_into().unwrap()
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
    compiled_by("gcc", scratch, name, options)
}

/// Compiles a program of the corpus; `None` if the compiler is left out.
pub(crate) fn compiled_by(
    compiler: &str,
    scratch: &Scratch,
    name: &str,
    options: &[&str],
) -> Option<PathBuf> {
    let gcc = peers::peer(compiler)?;
    let program = scratch.path(name);
    let source = project_file("corpus/native").join(name).with_extension("c");
    let built = gcc.command().args(["-pthread", "-o"]).args([&program, &source]).args(options).status();
    assert!(built.unwrap().success());
    Some(program)
}

/// The threads and the functions of all samples.
#[derive(Default)]
pub(crate) struct Functions {
    threads: BTreeSet<u64>,
    pub(crate) stacks: Vec<Vec<String>>,
    modules: BTreeSet<Vec<u8>>,
    times_ns: Vec<i64>,
    /// How many periods each sample stands for.
    periods: Vec<u64>,
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
        self.periods.push(sample.count);
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

impl LiveSink for Functions {}

impl Functions {
    /// The periods of samples with a function.
    fn periods_with(&self, function: &str) -> u64 {
        let with = |stack: &[String]| stack.iter().any(|name| name == function);
        self.stacks.iter().zip(&self.periods).filter(|(stack, _)| with(stack)).map(|(_, count)| count).sum()
    }

    /// The samples with a function.
    pub(crate) fn with(&self, function: &str) -> usize {
        self.stacks.iter().filter(|stack| stack.iter().any(|name| name == function)).count()
    }
}

/// Samples a busy program: the sampler, the counts and the stacks.
pub(crate) fn sampled(program: &Busy, samples: u64) -> (String, SampleStatistics, Functions) {
    sampled_as(program, SampledThreads::OnCpu, samples).unwrap()
}

/// Like [`sampled`], of other threads.
fn sampled_as(
    program: &Busy,
    threads: SampledThreads,
    samples: u64,
) -> Result<(String, SampleStatistics, Functions), Error> {
    let period = Some(Duration::from_millis(1));
    let options = ProgramOptions { threads, events: period, ..ProgramOptions::default() };
    let subject = ProgramProcess::attach(program.id(), &options)?;
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
    Ok((sampler, statistics, functions))
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
    without_perf_events(
        "the_functions_of_a_busy_program_have_their_shares_with_and_without_frame_pointers",
        "stops of threads",
    );
}

/// Runs a test of this file without the right to perf events.
fn without_perf_events(test: &str, expected: &str) {
    denied(&[PERF_EVENT_OPEN], test, expected);
}

/// The numbers of system calls on x86-64.
const PERF_EVENT_OPEN: &str = "298";
const PTRACE: &str = "101";

/// Runs a test of this file without the right to some system calls.
fn denied(calls: &[&str], test: &str, expected: &str) {
    let scratch = Scratch::new();
    let Some(deny) = compiled(&scratch, "deny", &[]) else { return };
    let own = std::env::current_exe().unwrap();
    let ran = Command::new(deny)
        .args(calls)
        .arg("--")
        .arg(own)
        .args(["--exact", &format!("program_events::{test}")])
        .env(EXPECTED, expected)
        .output();
    let ran = ran.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_program_is_sampled_or_what_could_not_be_stopped_is_counted() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "shares", &["-O2"]) else { return };
    let busy = Busy::start(&program, &[]);
    let subject = ProgramProcess::attach(busy.id(), &ProgramOptions::default()).unwrap();
    let duration = Some(Duration::from_millis(300));
    let options =
        SampleOptions { period: Some(Duration::from_millis(5)), duration, ..SampleOptions::default() };
    let mut functions = Functions::default();
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut functions, SessionControl::default());
    let statistics = session.run(&arrived(vec![Box::new(subject)])).unwrap();
    let is_denied = std::env::var_os(EXPECTED).is_some_and(|expected| expected == "no stops");
    assert_eq!(
        (functions.stacks.is_empty(), statistics.unstopped > 0),
        (is_denied, is_denied),
        "{statistics:?}"
    );
    // `T` and `t` are stopped states.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", busy.id())).unwrap();
    assert!(stat.contains(") R ") || stat.contains(") S "), "{stat}");
}

#[test]
fn without_the_right_to_stop_threads_or_to_perf_events_nothing_is_made_up() {
    let test = "a_program_is_sampled_or_what_could_not_be_stopped_is_counted";
    denied(&[PTRACE, PERF_EVENT_OPEN], test, "no stops");
}

/// The program waits for 30 ms in one function and for 10 ms in another, and takes little CPU time.
#[test]
fn waits_have_their_share_of_the_time_off_the_cpu_or_are_refused_with_the_reason() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "waits", &["-O2", "-fno-optimize-sibling-calls"]) else { return };
    let sampled = sampled_as(&Busy::start(&program, &[]), SampledThreads::OffCpu, 1200);
    let is_refused = std::env::var_os(EXPECTED).is_some_and(|expected| expected == "refused");
    let (sampler, statistics, functions) = match sampled {
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("unsupported mode off-cpu: cannot open perf events"), "{said}");
            return;
        }
        Ok(sampled) => sampled,
    };
    assert!(!is_refused, "{sampler}");
    let [long, short] = ["naps", "dozes"].map(|name| functions.periods_with(name));
    let all: u64 = functions.periods.iter().sum();
    assert!((long * 100).abs_diff((long + short) * 75) <= (long + short) * 10, "{long} and {short} of {all}");
    assert!((long + short) * 10 >= all * 9, "{long} and {short} of {all}: {:?}", statistics.native);
    // Of the time between the first and the last sample, all was spent off the CPU, but for what it takes to begin to wait.
    let lasted_ms = functions.times_ns.last().unwrap().abs_diff(functions.times_ns[0]) / 1_000_000;
    assert!(all * 10 >= lasted_ms * 8 && all <= lasted_ms + 40, "{all} of {lasted_ms} ms");
    assert!(functions.times_ns.is_sorted());
}

#[test]
fn without_the_right_to_perf_events_time_off_the_cpu_is_refused() {
    without_perf_events(
        "waits_have_their_share_of_the_time_off_the_cpu_or_are_refused_with_the_reason",
        "refused",
    );
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

/// Each thread ends some milliseconds after its beginning. Of 120 samples, a share of 75% is within 20 points in all but one of 10^6
/// runs.
#[test]
fn threads_that_are_shorter_than_a_period_have_their_shares() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "shares", &["-O2", "-fno-optimize-sibling-calls"]) else { return };
    let program = Busy::start(&program, &["threads"]);
    let period = Some(Duration::from_millis(20));
    let options =
        ProgramOptions { threads: SampledThreads::OnCpu, events: period, ..ProgramOptions::default() };
    let subject = ProgramProcess::attach(program.id(), &options).unwrap();
    let is_stopped = subject.facts().iter().any(|(key, _)| key == "native.no_perf_events");
    let (samples, duration) = (Some(150), Some(Duration::from_secs(120)));
    let options = SampleOptions { period, samples, duration, ..SampleOptions::default() };
    let mut functions = Functions::default();
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut functions, SessionControl::default());
    let statistics = session.run(&arrived(vec![Box::new(subject)])).unwrap();
    if !is_stopped {
        let [spin, three] = ["spin", "three"].map(|name| functions.with(name));
        assert!(spin >= 120 && functions.threads.len() > 50, "{spin}: {statistics:?}");
        assert!((three * 100).abs_diff(spin * 75) <= spin * 20, "{three} of {spin}: {statistics:?}");
        // Each stands for the whole period still.
        let lasted_ms = functions.times_ns.last().unwrap().abs_diff(functions.times_ns[0]) / 1_000_000;
        assert!(lasted_ms >= 150 * 20 / 2, "{lasted_ms}: {statistics:?}");
    }
}

#[test]
fn assembly_without_tables_has_its_callers() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "assembly", &["-O2"]) else { return };
    let (sampler, statistics, functions) = sampled(&Busy::start(&program, &[]), 600);
    let said = format!("{sampler}: {:?}", statistics.native);
    let [spins, three, one, main] = ["spins", "three", "one", "main"].map(|name| functions.with(name));
    assert!(spins * 10 >= functions.stacks.len() * 9, "{spins}, {said}");
    assert!((three + one) * 100 >= spins * 99 && main >= three + one, "{three}, {one} of {main}, {said}");
    assert!((three * 100).abs_diff(spins * 75) <= spins * 10, "{three} of {spins}, {said}");
    assert!(statistics.native.searched * 10 >= statistics.native.stacks * 9, "{said}");
    assert_eq!(statistics.native.whole, statistics.native.stacks, "{said}");
}

#[test]
fn code_that_a_program_makes_has_its_name_and_its_callers() {
    let scratch = Scratch::new();
    let Some(program) = compiled(&scratch, "made", &["-O2"]) else { return };
    let busy = Busy::start(&program, &[]);
    let (sampler, statistics, functions) = sampled(&busy, 200);
    drop(std::fs::remove_file(format!("/tmp/perf-{}.map", busy.id())));
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
