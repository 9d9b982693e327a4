//! Programs of PHP and Python that say when they call C.

use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use borehole_capture::{
    LiveSink, NativeCounts, NativeFrames, PhpOptions, PythonOptions, SampleOptions, SamplingSession,
    SegmentMetadata, SessionControl, SubjectOptions, attach,
};
use borehole_model::{Context, ProfileSink, Sample, Tables};
use borehole_testkit::peers;

use crate::fake::arrived;
use crate::native::{Stacks, corpus, is_named};

/// The number of samples, one a millisecond.
const SAMPLES: u64 = 2000;

/// A program, and the lines that it prints.
struct Caller(Child, Option<JoinHandle<Vec<String>>>);

impl Caller {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let reads = std::thread::spawn(|| output.lines().map(Result::unwrap).collect());
        Self(child, Some(reads))
    }

    /// Ends it: the functions, and from when to when they called C.
    fn stretches(mut self) -> Vec<(String, i64, i64)> {
        drop(self.0.stdin.take());
        let lines = self.1.take().unwrap().join().unwrap();
        let stretch = |line: &String| {
            let words: Vec<_> = line.split('\t').collect();
            (words[0].to_owned(), words[1].parse().unwrap(), words[2].parse().unwrap())
        };
        lines.iter().map(stretch).collect()
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The stacks, and when they were taken, in nanoseconds since 1970.
#[derive(Default)]
struct TimedStacks {
    stacks: Stacks,
    times_ns: Vec<i64>,
}

impl ProfileSink for TimedStacks {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.times_ns.push(at.segment.start_unix_ns.unwrap() + sample.time_ns.unwrap());
        self.stacks.sample(at, sample)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

impl LiveSink for TimedStacks {}

fn sampled(program: &Caller) -> (NativeCounts, TimedStacks) {
    let native = NativeFrames::WithScript;
    let options = SubjectOptions {
        php: PhpOptions { native, ..PhpOptions::default() },
        python: PythonOptions { native, ..PythonOptions::default() },
        ..SubjectOptions::default()
    };
    let subject = attach(program.0.id().try_into().unwrap(), &options).unwrap();
    let period = Some(Duration::from_millis(1));
    let options = SampleOptions { period, samples: Some(SAMPLES), ..SampleOptions::default() };
    let mut stacks = TimedStacks::default();
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut stacks, SessionControl::default());
    let statistics = session.run(&arrived(vec![subject])).unwrap();
    (statistics.native, stacks)
}

/// Checks that samples which were taken while the program says that a function calls C have that C above the function, and others do
/// not. The C is known by a part of the name of one of its functions, with its module.
fn assert_called(name: &str, command: &mut Command, calls: &[(&str, &str)]) {
    let program = Caller::start(command);
    let (counts, TimedStacks { stacks, times_ns }) = sampled(&program);
    let stretches = program.stretches();
    let called_at = |time_ns: i64| {
        let behind = stretches.partition_point(|stretch| stretch.1 <= time_ns);
        let last = stretches.get(behind.checked_sub(1)?)?;
        (time_ns < last.2).then_some(&*last.0)
    };
    for (function, of_c) in calls {
        let is_in_c = |stack: &Vec<String>| {
            let caller = stack.iter().position(|frame| is_named(frame, function));
            caller.is_some_and(|caller| stack[..caller].iter().any(|frame| frame.contains(of_c)))
        };
        let (mut called, mut found, mut both) = (0, 0, 0);
        for (stack, time_ns) in stacks.0.iter().zip(&times_ns) {
            let (is_called, is_found) = (called_at(*time_ns) == Some(function), is_in_c(stack));
            called += u64::from(is_called);
            found += u64::from(is_found);
            both += u64::from(is_called && is_found);
        }
        let said = format!("{name}: {function}: {both} of {called} and {found}: {counts:?}");
        // The quotas are shares of 17% and more.
        assert!(called >= SAMPLES / 20, "{said}");
        assert!(both * 100 >= called * 90 && both * 100 >= found * 98, "{said}");
    }
}

#[test]
fn c_that_php_calls_is_above_it() {
    let Some(php) = peers::peer("php-extensions") else { return };
    let mut command = php.command();
    command.arg(corpus("native/calls.php"));
    // Regular expressions are compiled: their own code is in no module.
    let calls =
        [("compressed", "libz."), ("matched", "libpcre2-8."), ("queried", "libsqlite3."), ("hashed", "php")];
    assert_called("php", &mut command, &calls);
}

#[test]
fn c_that_python_calls_is_above_it() {
    // Regular expressions are in the program itself, or in `libpython`.
    const CALLS: [(&str, &str); 3] =
        [("compressed", "libz."), ("matched", "python"), ("queried", "libsqlite3.")];
    let source = std::fs::read_to_string(corpus("native/calls.py")).unwrap();
    let names = ["python3.8", "python3.10", "python3.12", "python3.13", "python3.14"];
    let optional = names.into_iter().filter_map(|name| Some((name, peers::optional(name)?)));
    for (name, python) in optional.chain(peers::peer("python").map(|python| ("python", python))) {
        assert_called(name, python.command().args(["-c", &source]), &CALLS);
    }
    let Some(python) = peers::peer("python-servers") else { return };
    let calls = [&CALLS[..], &[("computed", "_multiarray_umath")]].concat();
    assert_called("numpy", python.command().args(["-c", &source]), &calls);
}
