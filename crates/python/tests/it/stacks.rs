//! Stacks of real programs, against those that the programs print themselves.

use std::borrow::Cow;
use std::thread;
use std::time::Duration;

use borehole_model::Tables;
use borehole_process::Process;
use borehole_python::{
    Python, PythonThread, PythonVersion, SampleOutcome, StackWalker, Stillness, WalkOptions,
};

use crate::programs::{self, Program};

/// The constructs that the program stops in, and a few more in new releases.
const CONSTRUCTS: usize = 32;

/// The mark of a collection of garbage.
const COLLECTION: &str = "<GC>\t~\t-1";

/// How many times a program that has printed its stack is looked at until it waits.
const PATIENCE: usize = 5000;

/// The stack as a program prints it: Python does not tell a program that it collects garbage.
fn stack(outcome: &SampleOutcome, tables: &Tables) -> Option<Vec<String>> {
    let printed = |frames: Vec<String>| frames.into_iter().filter(|frame| frame != COLLECTION).collect();
    match outcome {
        SampleOutcome::Stack { id, .. } => Some(printed(programs::frames(tables, *id))),
        SampleOutcome::Idle | SampleOutcome::Torn | SampleOutcome::Ended => None,
    }
}

/// Compares the stacks that a program prints with those of the threads that are `wanted`. Returns the number of stacks of each
/// interpreter.
fn compare(
    program: &str,
    use_of: &str,
    wanted: impl Fn(&PythonThread) -> bool,
) -> Vec<(&'static str, usize)> {
    let mut counts = Vec::new();
    for interpreter in programs::pythons(use_of) {
        let name = interpreter.name;
        let mut program = Program::start(&mut interpreter.command(program));
        let (mut tables, mut walker, mut count) = (Tables::default(), None, 0);
        while let Some((construct, expected)) = program.expected() {
            let process = Process::open(program.id()).unwrap();
            let python = Python::attach(&process).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(
                python.identity().to_string().contains(interpreter.version()),
                "{name}: {}",
                python.identity()
            );
            let walker = walker.get_or_insert_with(|| StackWalker::new(&python, WalkOptions::default()));
            let threads = python.threads(&process).unwrap().threads;
            let mut found = Vec::new();
            // The program prints its stack right before it waits.
            for _ in 0..PATIENCE {
                let mut sample = |thread| walker.sample(&process, thread, Stillness::Running, &mut tables);
                let samples: Vec<_> = threads
                    .iter()
                    .filter(|thread| wanted(thread))
                    .map(|thread| sample(thread).unwrap().outcome)
                    .collect();
                found = samples.iter().filter_map(|outcome| stack(outcome, &tables)).collect();
                if found.contains(&expected) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            assert!(found.contains(&expected), "{name}, {construct}: {found:#?}\nexpected {expected:#?}");
            count += 1;
            program.go_on();
        }
        counts.push((name, count));
    }
    counts
}

#[test]
fn each_construct_has_the_stack_that_the_program_prints() {
    let counts = compare("stacks/constructs.py", "constructs", |_| true);
    assert!(counts.iter().all(|&(_, count)| count >= CONSTRUCTS), "{counts:?}");
}

/// Names an instruction by its number.
fn number(_: PythonVersion, opcode: u8) -> Cow<'static, str> {
    opcode.to_string().into()
}

#[test]
fn frames_have_the_instructions_that_the_program_prints() {
    for interpreter in programs::pythons("instructions") {
        let mut program = Program::start(&mut interpreter.command("stacks/instructions.py"));
        let (mut tables, mut stops) = (Tables::default(), 0);
        let options = WalkOptions { opcodes: Some(number), ..WalkOptions::default() };
        let mut walker = None;
        while let Some((_, expected)) = program.expected() {
            let process = Process::open(program.id()).unwrap();
            let python = Python::attach(&process).unwrap();
            let walker = walker.get_or_insert_with(|| StackWalker::new(&python, options));
            let thread = python.threads(&process).unwrap().threads[0];
            let sample = walker.sample(&process, &thread, Stillness::Running, &mut tables).unwrap();
            let SampleOutcome::Stack { id, .. } = sample.outcome else { panic!("{sample:?}") };
            let text = |id| String::from_utf8_lossy(tables.string(id)).into_owned();
            let frames = tables.frames_leaf_first(Some(id)).skip(1);
            let found: Vec<_> =
                frames.map(|id| tables.frame(id).opcode.map_or_else(String::new, text)).collect();
            // Their frames do not point to instructions.
            let is_told = !matches!(python.identity().version.minor, 11 | 12);
            let expected = if is_told { expected } else { vec![String::new(); expected.len()] };
            assert_eq!(found, expected, "{}", interpreter.name);
            stops += 1;
            program.go_on();
        }
        assert_eq!(stops, 20, "{}", interpreter.name);
    }
}

#[test]
fn a_collection_of_garbage_stands_between_who_began_it_and_what_it_calls() {
    for interpreter in programs::pythons("collecting") {
        let mut program = Program::start(&mut interpreter.command("stacks/collecting.py"));
        let (_, mut expected) = program.expected().unwrap();
        assert_eq!(expected, ["__del__", "collect", "<module>"], "{}", interpreter.name);
        let process = Process::open(program.id()).unwrap();
        let python = Python::attach(&process).unwrap();
        let (mut tables, mut walker) = (Tables::default(), StackWalker::new(&python, WalkOptions::default()));
        let thread = python.threads(&process).unwrap().threads[0];
        let sample = walker.sample(&process, &thread, Stillness::Running, &mut tables).unwrap();
        let SampleOutcome::Stack { id, .. } = sample.outcome else { panic!("{sample:?}") };
        let frames = programs::frames(&tables, id);
        // Names are qualified from 3.11 on.
        let name = |frame: &String| frame.split('\t').next().unwrap().replace("Cycle.", "");
        let found: Vec<String> = frames.iter().skip(1).map(name).collect();
        // Earlier releases do not tell which frame began the collection.
        if python.identity().version.minor >= 15 {
            expected.insert(1, "<GC>".to_owned());
            assert_eq!(frames[2], COLLECTION);
        }
        assert_eq!(found, expected, "{}", interpreter.name);
    }
}

#[test]
fn each_interpreter_of_a_process_has_stacks_of_its_own() {
    let counts = compare("stacks/interpreters.py", "interpreters", |thread| thread.interpreter > 0);
    assert!(counts.iter().all(|&(_, count)| count == 2), "{counts:?}");
}
