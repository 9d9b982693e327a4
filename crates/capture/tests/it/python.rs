//! Real Python programs, sampled by sessions.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use borehole_capture::{
    LiveSink, PythonOptions, PythonProcess, SampleOptions, SampleStatistics, SampledTasks, SampledThreads,
    SamplingSession, SegmentMetadata, SessionControl, SubjectOptions, attach,
};
use borehole_model::{Context, ProfileSink, Sample};
use borehole_testkit::{Scratch, peers};

use crate::fake::arrived;

/// A program that ends when its input does.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Starts the program of the corpus, and waits for its first line.
    fn start(command: &mut Command, program: &str) -> Self {
        let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/python")).join(program);
        // New releases have a root file system of their own. The text takes the place of the file.
        let is_elsewhere = Path::new(command.get_program()).ends_with("chroot");
        let command = match is_elsewhere {
            true => command.arg("-c").arg(fs::read_to_string(file).unwrap()),
            false => command.arg(file),
        };
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(next_line(&mut output), "ready");
        Self { child, output }
    }

    fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// Ends its input, and returns what it prints then.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn next_line(output: &mut impl io::BufRead) -> String {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

/// The samples by what they show.
#[derive(Default)]
struct Tally {
    /// Samples with a function anywhere in their stack, by its name.
    functions: BTreeMap<String, u64>,
    /// Samples by thread.
    threads: BTreeMap<u64, u64>,
    /// Samples by the names of their states.
    states: BTreeMap<&'static str, u64>,
    /// The metadata of the end.
    facts: BTreeMap<String, String>,
    names: BTreeMap<u64, String>,
}

impl ProfileSink for Tally {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let frames = at.tables.frames_leaf_first(sample.stack);
        let names = frames.map(|frame| at.tables.string(at.tables.function(frame)));
        for name in names {
            *self.functions.entry(String::from_utf8_lossy(name).into_owned()).or_default() += 1;
        }
        // Threads that have just begun or ended have no number.
        if let Some(thread) = sample.thread {
            *self.threads.entry(thread).or_default() += 1;
        }
        for state in sample.status.unwrap().names() {
            *self.states.entry(state).or_default() += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn metadata(
        &mut self,
        at: Context<'_>,
        key: borehole_model::StringId,
        value: borehole_model::StringId,
    ) -> io::Result<()> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        self.facts.insert(text(key), text(value));
        Ok(())
    }

    fn thread(
        &mut self,
        at: Context<'_>,
        thread: borehole_model::Thread,
        name: borehole_model::StringId,
    ) -> io::Result<()> {
        let name = String::from_utf8_lossy(at.tables.string(name)).into_owned();
        self.names.insert(thread.number, name);
        Ok(())
    }

    fn finish(&mut self, _tables: &borehole_model::Tables) -> io::Result<()> {
        Ok(())
    }
}

impl LiveSink for Tally {}

fn sample(process: i32, options: SampleOptions, threads: SampledThreads) -> (SampleStatistics, Tally) {
    let python = PythonOptions { threads, ..PythonOptions::default() };
    let subject = attach(process, &SubjectOptions { python, ..SubjectOptions::default() }).unwrap();
    let mut tally = Tally::default();
    let control = SessionControl::default();
    let session = SamplingSession::new(options, SegmentMetadata::default(), &mut tally, control);
    let statistics = session.run(&arrived(vec![subject])).unwrap();
    (statistics, tally)
}

/// The interpreters of this machine; at least one, unless all are left out.
pub(crate) fn pythons() -> Vec<(&'static str, peers::Peer)> {
    let names =
        ["python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];
    let of_machine = names.into_iter().filter_map(|name| Some((name, peers::optional(name)?)));
    let free_threaded = peers::peer("python3.13t").map(|peer| ("python3.13t", peer));
    of_machine.chain(free_threaded).collect()
}

const FAST: SampleOptions = SampleOptions {
    period: Some(Duration::from_micros(1000)),
    max_retries: 10,
    stop: borehole_capture::StopMode::WhenTorn,
    idle: borehole_capture::Idle::Skip,
    duration: None,
    samples: Some(3000),
    rotate: None,
    grouping: borehole_capture::Grouping::Segments,
    oracle: Some(20),
};

#[test]
fn shares_of_cpu_time_are_those_that_the_program_measures() {
    for (name, peer) in pythons() {
        let program = Program::start(&mut peer.command(), "truth/shares.py");
        let (statistics, tally) = sample(program.id(), FAST, SampledThreads::OnCpu);
        let said = program.end();
        let spent: BTreeMap<&str, f64> = said
            .lines()
            .map(|line| line.split_once('\t').unwrap())
            .map(|(function, seconds)| (function, seconds.parse().unwrap()))
            .collect();
        let whole: f64 = spent.values().sum();
        let count = |function: &str| {
            let plain = function.rsplit('.').next().unwrap();
            let found = tally.functions.get(function).or_else(|| tally.functions.get(plain));
            f64::from(u32::try_from(found.copied().unwrap_or_default()).unwrap())
        };
        let counted: f64 = spent.keys().map(|function| count(function)).sum();
        assert!(counted > 2500.0, "{name}: {counted} of {statistics:?}");
        for (function, seconds) in spent {
            let (expected, found) = (seconds / whole, count(function) / counted);
            // Five times the binomial error, as if of three neighbouring samples one counted: a program that does not get a
            // CPU for some milliseconds has the same stack in each of them.
            let error = 5.0 * (3.0 * expected * (1.0 - expected) / counted).sqrt();
            assert!((found - expected).abs() < error, "{name}: {function} {found} for {expected} (±{error})");
        }
    }
}

#[test]
fn a_recording_says_how_far_it_is_from_stopped_samples_and_loses_next_to_nothing() {
    for (name, peer) in pythons() {
        let program = Program::start(&mut peer.command(), "truth/shares.py");
        let (statistics, tally) = sample(program.id(), FAST, SampledThreads::OnCpu);
        drop(program);
        let SampleStatistics { taken, torn, failed, gone, reference, truth, .. } = statistics;
        assert!(reference >= 50, "{name}: {statistics:?}");
        assert!((torn + failed + gone) * 1000 <= taken, "{name}: {statistics:?}");
        let [distance, noise] = [truth.distance_millionths, truth.noise_millionths].map(Option::unwrap);
        assert!(distance < 300_000 && noise < 500_000, "{name}: {truth:?}");
        assert!(tally.facts["oracle.distance"].starts_with("0."), "{name}: {:?}", tally.facts);
        assert_eq!(tally.facts["samples.reference"], reference.to_string(), "{name}");
    }
}

#[test]
fn threads_have_numbers_names_and_states() {
    for (name, peer) in pythons() {
        let program = Program::start(&mut peer.command(), "truth/shares.py");
        let options = SampleOptions { samples: Some(400), ..FAST };
        let (_, all) = sample(program.id(), options, SampledThreads::All);
        let main = u64::try_from(program.id()).unwrap();
        // The main thread computes, and the other waits for input.
        assert_eq!(
            (all.threads.len(), all.threads.contains_key(&main)),
            (2, true),
            "{name}: {:?}",
            all.threads
        );
        assert_eq!(all.names.len(), 2, "{name}: {:?}", all.names);
        // The names are those of the program, which the kernel does not know.
        assert_eq!(all.names[&main], "MainThread", "{name}");
        assert!(all.names.values().any(|name| name.starts_with("Thread-1")), "{name}: {:?}", all.names);
        let count = |state| all.states.get(state).copied().unwrap_or_default();
        // Without a global lock, nobody has it.
        let has_lock = !name.ends_with('t');
        let halves = [count("main_thread"), count("on_cpu"), count("has_gil")];
        let halves = &halves[..if has_lock { 3 } else { 2 }];
        assert!(halves.iter().all(|count| (150..=250).contains(count)), "{name}: {:?}", all.states);
        if !has_lock {
            assert_eq!(count("has_gil"), 0, "{name}");
            let options = PythonOptions { threads: SampledThreads::HoldingGil, ..PythonOptions::default() };
            let refused =
                attach(program.id(), &SubjectOptions { python: options, ..SubjectOptions::default() });
            let refused = refused.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("has no global lock"), "{name}: {refused}");
            continue;
        }
        let (_, holders) = sample(program.id(), options, SampledThreads::HoldingGil);
        assert_eq!(Vec::from_iter(holders.threads.keys().copied()), [main], "{name}");
        assert_eq!(holders.states["has_gil"], 400, "{name}");
    }
}

/// Samples the tasks of a program, until there are `samples`.
fn sample_tasks(process: i32, tasks: SampledTasks, samples: u64) -> (SampleStatistics, Tally) {
    let python = PythonOptions { tasks, ..PythonOptions::default() };
    let subject = attach(process, &SubjectOptions { python, ..SubjectOptions::default() }).unwrap();
    let mut tally = Tally::default();
    let options = SampleOptions { samples: Some(samples), ..FAST };
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut tally, SessionControl::default());
    let statistics = session.run(&arrived(vec![subject])).unwrap();
    (statistics, tally)
}

#[test]
fn a_hundred_tasks_are_sampled_each_and_none_is_left_out() {
    for (name, peer) in pythons() {
        let program = Program::start(&mut peer.command(), "tasks/hundred.py");
        let (statistics, tally) = sample_tasks(program.id(), SampledTasks::All, 20_000);
        drop(program);
        // Each point in time has two threads and a hundred tasks that wait.
        assert!(statistics.tasks >= 49 * statistics.taken, "{name}: {statistics:?}");
        assert_eq!(statistics.cut_tasks, 0, "{name}: {statistics:?}");
        let count = |function: &str| tally.functions.get(function).copied().unwrap_or_default();
        // The task that computes waits now and then.
        assert!(
            count("<task waiter>") >= statistics.tasks - statistics.tasks / 50,
            "{name}: {:?}",
            tally.functions
        );
        assert!(count("<task root>") >= statistics.tasks, "{name}: {:?}", tally.functions);
        // A sample in which the task stops running while it is read keeps the stack of its thread.
        let unjoined = count("busy").saturating_sub(count("<task busy>"));
        assert!(count("compute") > 0 && unjoined * 20 <= count("busy"), "{name}: {:?}", tally.functions);
    }
}

#[test]
fn running_tasks_are_below_those_that_await_them() {
    for (name, peer) in pythons() {
        let program = Program::start(&mut peer.command(), "tasks/hundred.py");
        let (statistics, tally) = sample_tasks(program.id(), SampledTasks::Running, 1000);
        drop(program);
        let count = |function: &str| tally.functions.get(function).copied().unwrap_or_default();
        let [busy, root, loops] = ["<task busy>", "<task root>", "BaseEventLoop._run_once"].map(count);
        assert_eq!((statistics.tasks, count("<task waiter>")), (0, 0), "{name}");
        assert!(busy > 250 && busy.saturating_sub(root) * 20 <= busy, "{name}: {:?}", tally.functions);
        // A joined stack has no frames of the loop. The other thread has the other half of the samples.
        assert!(busy + loops <= statistics.taken / 2 + 25, "{name}: {:?}", tally.functions);
    }
}

#[test]
fn a_program_that_is_not_python_is_refused_by_name() {
    let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
    let id = i32::try_from(sleep.id()).unwrap();
    let refused = PythonProcess::attach(id, &PythonOptions::default()).err().unwrap();
    let either = attach(id, &SubjectOptions::default()).err().unwrap();
    drop(sleep.kill());
    drop(sleep.wait());
    assert!(refused.is_other_program() && either.is_other_program(), "{refused} {either}");
    assert!(either.to_string().starts_with("no PHP or Python found: "), "{either}");
}

#[test]
fn pypy_is_refused_by_its_name() {
    let scratch = Scratch::new();
    let program = scratch.program("pypy3.10", "/bin/sleep");
    let mut running = Command::new(&program).arg("60").spawn().unwrap();
    let id = i32::try_from(running.id()).unwrap();
    let refused = PythonProcess::attach_when_ready(id, &PythonOptions::default()).err().unwrap();
    drop(running.kill());
    drop(running.wait());
    assert_eq!(refused.to_string(), "unsupported Python: expected CPython 3.8 to 3.15, found PyPy");
}

#[test]
fn threads_that_come_and_go_are_lost_or_sampled_but_nothing_fails() {
    let script = "import sys, threading\ndef busy():\n  sum(range(2000))\ndef churn():\n  while True:\n    \
                  threads = [threading.Thread(target=busy) for _ in range(8)]\n    \
                  [thread.start() for thread in threads]\n    [thread.join() for thread in threads]\n\
                  threading.Thread(target=churn, daemon=True).start()\nprint('ready', flush=True)\nsys.stdin.read()";
    for (name, peer) in pythons() {
        let mut command = peer.command();
        let mut child =
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(next_line(&mut output), "ready");
        let program = Program { child, output };
        let (statistics, tally) = sample(program.id(), FAST, SampledThreads::All);
        let SampleStatistics { taken, torn, failed, asked, idle, gone, missed, .. } = statistics;
        assert_eq!(asked, taken + idle + torn + gone + failed + missed, "{name}: {statistics:?}");
        assert!(taken >= 3000 && failed * 100 <= taken && torn * 20 <= taken, "{name}: {statistics:?}");
        assert!(tally.functions.contains_key("churn"), "{name}: {:?}", tally.functions);
        // It ends by itself when its input does.
        program.end();
    }
}
