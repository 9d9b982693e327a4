//! Real programs, sampled with their native frames.

use std::io::{self, BufRead as _, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use borehole_capture::{
    LiveSink, NativeCounts, NativeFrames, PhpOptions, ProgramOptions, PythonOptions, SampleOptions,
    SampledTasks, SamplingSession, SegmentMetadata, SessionControl, Subject, SubjectOptions, attach,
};
use borehole_model::{Context, NativeFrame, ProfileSink, Sample, Tables};
use borehole_testkit::peers;
use borehole_testkit::{Scratch, project_file};

use crate::fake::arrived;

/// A program that ends when its input does.
struct Program(Child);

impl Program {
    /// Starts it, and waits for its first line.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self::reading(child)
    }

    /// A program that has said `ready`. It goes on for a moment after it has said so.
    fn reading(child: Child) -> Self {
        let call = format!("/proc/{}/syscall", child.id());
        while !std::fs::read_to_string(&call).unwrap().starts_with("0 0x0 ") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Self(child)
    }

    fn attach(&self, native: NativeFrames) -> Box<dyn Subject> {
        attach(self.0.id().try_into().unwrap(), &options(native)).unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn options(native: NativeFrames) -> SubjectOptions {
    SubjectOptions {
        php: PhpOptions { native, ..PhpOptions::default() },
        python: PythonOptions { native, ..PythonOptions::default() },
        program: native.is_any().then(ProgramOptions::default),
        ..SubjectOptions::default()
    }
}

pub(crate) fn corpus(path: &str) -> PathBuf {
    project_file("corpus").join(path)
}

/// Between the module and the name of a function that is inlined into its caller.
const INLINED_MARK: &str = "(inlined)";

/// The stacks, the leaf first: names of functions, with the module of native ones before them.
#[derive(Default)]
pub(crate) struct Stacks(pub(crate) Vec<Vec<String>>);

impl ProfileSink for Stacks {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let name = |frame| {
            let frame = at.tables.frame(frame);
            let function = text(frame.function);
            match frame.native {
                None => function,
                Some(NativeFrame { module, offset: Some(_), .. }) => format!("{}:{function}", text(module)),
                Some(NativeFrame { module, offset: None, .. }) => {
                    format!("{}:{INLINED_MARK}:{function}", text(module))
                }
            }
        };
        self.0.push(at.tables.frames_leaf_first(sample.stack).map(name).collect());
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

impl LiveSink for Stacks {}

/// Takes this many samples.
fn sampled(subject: Box<dyn Subject>, samples: u64) -> (NativeCounts, Vec<Vec<String>>) {
    let options = SampleOptions { period: None, samples: Some(samples), ..SampleOptions::default() };
    let mut stacks = Stacks::default();
    let session =
        SamplingSession::new(options, SegmentMetadata::default(), &mut stacks, SessionControl::default());
    let statistics = session.run(&arrived(vec![subject])).unwrap();
    assert_eq!(statistics.unstopped, 0);
    (statistics.native, stacks.0)
}

/// Checks that these names are in the stack, in this order, others between them.
fn assert_in_order(stack: &[String], names: &[&str]) {
    let mut rest = stack.iter();
    for name in names {
        let is_there = rest.any(|frame| is_named(frame, name));
        assert!(is_there, "{name} at its place in {stack:#?}");
    }
}

/// Whether a frame is of a function called so, in any class or module.
pub(crate) fn is_named(frame: &str, name: &str) -> bool {
    frame.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with([':', '.']))
}

/// The names of the script's frames.
fn script(stack: &[String]) -> Vec<&String> {
    stack.iter().filter(|name| !name.contains(':') || name.contains("::")).collect()
}

#[test]
fn c_is_between_the_functions_of_php_that_call_it_and_that_it_calls() {
    let Some(php) = peers::peer("php") else { return };
    let program = Program::start(php.command().arg(corpus("native/nested.php")));
    const SAMPLES: u64 = 1000;
    let (counts, stacks) = sampled(program.attach(NativeFrames::WithScript), SAMPLES);
    // It sleeps: once it does so again behind a stop, what that has shown stays true.
    assert!(counts.stacks < SAMPLES && counts.whole == counts.stacks && counts.unjoined == 0, "{counts:?}");
    assert!(stacks.iter().all(|stack| *stack == stacks[0]));
    let names = [
        "read",
        "fgets",
        "wait_for_end",
        "Sorter::__invoke",
        "zend_call_function",
        "usort",
        "Sorter::sorted",
        "inner",
        "outer",
        "iterator_to_array",
        "mapped",
        "zend_call_function",
        "array_map",
        "<main>",
        "zend_execute_scripts",
        "_start",
    ];
    assert_in_order(&stacks[0], &names);
    let (_, plain) = sampled(program.attach(NativeFrames::None), 1);
    assert_eq!(script(&stacks[0]), plain[0].iter().collect::<Vec<_>>());
    assert!(!stacks[0].iter().any(|name| name.ends_with(":execute_ex")), "{:?}", stacks[0]);
}

#[test]
fn c_is_between_the_functions_of_python_that_call_it_and_that_it_calls() {
    let source = std::fs::read_to_string(corpus("native/nested.py")).unwrap();
    for python in crate::python::pythons().into_iter().map(|(_, peer)| peer).chain(peers::peer("python")) {
        let program = Program::start(python.command().args(["-c", &source]));
        let (counts, stacks) = sampled(program.attach(NativeFrames::WithScript), 3);
        assert_eq!((counts.whole, counts.unjoined), (counts.stacks, 0), "{counts:?}");
        let names = ["read", "wait_for_end", "__lt__", "generated", "reduced", "main", "<module>", "_start"];
        assert_in_order(&stacks[0], &names);
        let between = |callee: &str, caller: &str| {
            let at = |name: &str| stacks[0].iter().position(|frame| is_named(frame, name)).unwrap();
            stacks[0][at(callee) + 1..at(caller)].to_vec()
        };
        for (callee, caller) in [("__lt__", "generated"), ("generated", "reduced"), ("reduced", "main")] {
            let frames = between(callee, caller);
            assert!(!frames.is_empty() && frames.iter().all(|name| name.contains(':')), "{frames:?}");
        }
        let (_, plain) = sampled(program.attach(NativeFrames::None), 1);
        assert_eq!(script(&stacks[0]), plain[0].iter().collect::<Vec<_>>());
    }
}

/// A stack that a program has printed itself: `Ok` is a function of Python; `Err` is a module of C, and a function if the loader knows
/// one.
type PrintedStack = Vec<Result<String, (String, Option<String>)>>;

/// The lines that the module of `printer.c` prints. A function of Python takes the place of the interpreter's, with those that the
/// same call runs.
fn printed_stack(lines: &[String], runs_inlined: bool) -> PrintedStack {
    let words = |kind: &'static str| {
        let words = lines.iter().map(|line| line.split('\t').collect::<Vec<_>>());
        words.filter(move |words| words[0] == kind)
    };
    let mut functions = words("python").map(|words| words[1].to_owned());
    let mut stack = Vec::new();
    for frame in words("c") {
        let module = frame[1].rsplit('/').next().unwrap();
        if frame[2] != "_PyEval_EvalFrameDefault" {
            let function = Some(frame[2]).filter(|name| *name != "?").map(str::to_owned);
            stack.push(Err((module.to_owned(), function)));
            continue;
        }
        let function = functions.next().unwrap();
        let is_inlined = runs_inlined && function.starts_with("inlined");
        stack.push(Ok(function));
        if is_inlined {
            stack.push(Ok(functions.next().unwrap()));
        }
    }
    assert_eq!(functions.next(), None, "{lines:#?}");
    stack
}

#[test]
fn a_stack_of_python_and_c_is_the_one_that_the_program_prints_itself() {
    let Some(gcc) = peers::peer("gcc") else { return };
    for name in ["python3.8", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13"] {
        let Some(python) = peers::optional(name) else { continue };
        let scratch = Scratch::new();
        let include = python.stdout(&["-c", "import sysconfig; print(sysconfig.get_path('include'))"]);
        let mut build = gcc.command();
        build.args(["-shared", "-fPIC", "-O1", "-I", include.trim(), "-o"]);
        let built = build.arg(scratch.path("printer.so")).arg(corpus("native/printer.c")).status();
        assert!(built.unwrap().success(), "{name}");
        let mut command = python.command();
        let mut child = command
            .arg(corpus("native/printer.py"))
            .arg(scratch.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let lines: Vec<_> = lines.take_while(|line| line != "ready").collect();
        let program = Program::reading(child);
        let (counts, stacks) = sampled(program.attach(NativeFrames::WithScript), 1);
        assert_eq!((counts.whole, counts.unjoined), (counts.stacks, 0), "{name}: {counts:?}");
        // It prints its stack before it reads, and knows of no function that is inlined.
        let found = stacks[0].iter().skip_while(|frame| *frame != "printer.so:printed");
        let found: Vec<_> = found.filter(|frame| !frame.contains(INLINED_MARK)).collect();
        let printed = printed_stack(&lines, !matches!(name, "python3.8" | "python3.9" | "python3.10"));
        let is_equal = |(found, printed): (&&String, &Result<String, (String, Option<String>)>)| match printed
        {
            Ok(function) => is_named(found, function) && !found.contains(':'),
            Err((module, function)) => found.split_once(':').is_some_and(|found| {
                // Of several names of one function, such as `__libc_start_main_impl`, the loader knows another.
                found.0 == module && function.as_ref().is_none_or(|function| found.1.starts_with(&**function))
            }),
        };
        let equal = found.iter().zip(&printed).take_while(|pair| is_equal(*pair)).count();
        assert!(printed.len() > 30, "{name}: {lines:#?}");
        assert!(
            equal == found.len() && equal == printed.len(),
            "{name}: {:#?}\n{:#?}",
            &found[equal.min(found.len())..],
            &printed[equal.min(printed.len())..],
        );
    }
}

#[test]
fn native_frames_in_stacks_of_tasks_are_refused() {
    let Some(python) = peers::peer("python") else { return };
    let source = std::fs::read_to_string(corpus("native/nested.py")).unwrap();
    let program = Program::start(python.command().args(["-c", &source]));
    for tasks in [SampledTasks::Running, SampledTasks::All] {
        let mut options = options(NativeFrames::WithScript);
        options.python.tasks = tasks;
        let refused = attach(program.0.id().try_into().unwrap(), &options).err().unwrap();
        assert!(refused.to_string().contains("expected native frames or tasks, found both"), "{refused}");
    }
}

/// The program makes several million calls a second, so that samples meet the moments between a call and its frame.
#[test]
fn all_but_few_calls_of_a_busy_program_are_joined() {
    let Some(php) = peers::peer("php") else { return };
    let mut child = php.command().arg(corpus("php/trace/pairs.php")).arg("60").spawn().unwrap();
    let id = child.id().try_into().unwrap();
    // On a busy machine, PHP may take seconds to start.
    let attach = || borehole_capture::attach_when_ready(id, &options(NativeFrames::WithScript)).ok();
    let subject = std::iter::repeat_with(attach).take(60).flatten().next().unwrap();
    let (counts, stacks) = sampled(subject, 3000);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(counts.unjoined * 1000 <= counts.joined, "{counts:?}");
    assert!(counts.whole * 1000 >= counts.stacks * 999, "{counts:?}");
    assert!(stacks.iter().any(|stack| stack.len() > 5));
}

#[test]
fn a_program_of_c_has_the_stacks_of_all_its_threads() {
    let Some(gcc) = peers::peer("gcc") else { return };
    let scratch = Scratch::new();
    let path = scratch.path("nested");
    let source = corpus("native/nested.c");
    let built =
        gcc.command().args(["-O2", "-pthread", "-rdynamic", "-o"]).args([&path, &source]).status().unwrap();
    assert!(built.success());
    let program = Program::start(&mut Command::new(&path));
    let (counts, stacks) = sampled(program.attach(NativeFrames::WithScript), 2);
    assert_eq!((counts.stacks, counts.whole), (2, 2), "{counts:?}");
    let (main, second): (Vec<_>, Vec<_>) =
        stacks.iter().partition(|stack| stack.iter().any(|name| name.ends_with(":main")));
    assert_in_order(main[0], &["read", "raise", "qsort_r", "main", "_start"]);
    assert_in_order(second[0], &["pause"]);
    let refused = attach(program.0.id().try_into().unwrap(), &options(NativeFrames::None)).err().unwrap();
    assert!(refused.is_other_program(), "{refused}");
}

/// A function of a class that calls one that is inlined into it.
const INLINED: &str = r#"
#include <stdio.h>
#include <unistd.h>

namespace outer {
struct Waiter {
    char byte = 0;
    __attribute__((always_inline)) inline long inlined() { return read(0, &byte, 1) + byte; }
    __attribute__((noinline)) long waits() { return inlined() * 2; }
};
}

int main() {
    puts("ready");
    fflush(stdout);
    return outer::Waiter().waits() > 9;
}
"#;

#[test]
fn a_program_that_was_replaced_keeps_its_names_and_its_inlined_functions() {
    if peers::peer("gcc").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (path, source) = (scratch.path("waits"), scratch.write("waits.cpp", INLINED.as_bytes()));
    let built = Command::new("g++").args(["-O2", "-g", "-o"]).args([&path, &source]).status().unwrap();
    assert!(built.success());
    let program = Program::start(&mut Command::new(&path));
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "another file").unwrap();
    let (_, stacks) = sampled(program.attach(NativeFrames::WithScript), 1);
    let names = ["read", "outer::Waiter::inlined()", "outer::Waiter::waits()", "main", "_start"];
    assert_in_order(&stacks[0], &names);
}
