//! Tasks of asyncio, against those that the program prints itself.

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use borehole_model::Tables;
use borehole_process::{Error, ForeignMemory, MemoryPiece, Process};
use borehole_python::{
    Python, SampleOutcome, SampledTasks, StackWalker, Stillness, TaskNames, ThreadNames, WalkOptions,
};
use borehole_testkit::images::Noise;

use crate::programs::{self, Interpreter, Program};

/// How many times a program that has printed its stacks is looked at until it waits.
const PATIENCE: usize = 5000;

/// The constructs of the program, and one more in releases with groups of tasks.
const CONSTRUCTS: usize = 5;

const ALL: WalkOptions =
    WalkOptions { depth: None, tasks: SampledTasks::All, task_names: TaskNames::Given, opcodes: None };

/// The stacks of all running tasks, and those of all waiting ones, in order.
fn stacks(
    process: &Process,
    python: &Python,
    walker: &mut StackWalker,
    tables: &mut Tables,
) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
    let threads = python.threads(process).unwrap().threads;
    let (mut running, mut waiting) = (Vec::new(), Vec::new());
    walker.scan_tasks(process, &threads, tables).unwrap();
    for thread in &threads {
        let sample = walker.sample(process, thread, Stillness::Running, tables).unwrap();
        if let SampleOutcome::Stack { id, .. } = sample.outcome {
            running.push(programs::frames(tables, id));
        }
        let tasks = walker.suspended(process, thread, tables).unwrap();
        waiting.extend(tasks.into_iter().map(|task| programs::frames(tables, task)));
    }
    waiting.sort();
    (running, waiting)
}

#[test]
fn tasks_are_joined_to_those_that_await_them() {
    for interpreter in programs::pythons("tasks") {
        let name = interpreter.name;
        let mut program = Program::start(&mut interpreter.command("tasks/awaiting.py"));
        let (mut tables, mut count) = (Tables::default(), 0);
        let mut walker = None;
        while let Some((construct, printed)) = program.expected() {
            let process = Process::open(program.id()).unwrap();
            let python = Python::attach(&process).unwrap_or_else(|error| panic!("{name}: {error}"));
            let walker = walker.get_or_insert_with(|| StackWalker::new(&python, ALL));
            assert!(!walker.find_tasks(&process).unwrap(), "{name}");
            let mut parts = printed.split(|line| line == "~").map(<[String]>::to_vec);
            let expected = parts.next().unwrap();
            let mut expected_waiting: Vec<_> = parts.collect();
            expected_waiting.sort();
            let mut found = (Vec::new(), Vec::new());
            for _ in 0..PATIENCE {
                found = stacks(&process, &python, walker, &mut tables);
                if found.0.contains(&expected) && found.1 == expected_waiting {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            assert!(found.0.contains(&expected), "{name}, {construct}: {found:#?}\nexpected {expected:#?}");
            assert_eq!(found.1, expected_waiting, "{name}, {construct}");
            count += 1;
            program.go_on();
        }
        assert!(count >= CONSTRUCTS, "{name}: {count}");
    }
}

/// The first construct in which a task awaits another, and its expected stack.
fn first_joined(interpreter: &Interpreter) -> (Program, Vec<String>) {
    let mut program = Program::start(&mut interpreter.command("tasks/awaiting.py"));
    loop {
        let (construct, printed) = program.expected().unwrap();
        if construct == "awaited directly" {
            return (program, printed);
        }
        program.go_on();
    }
}

#[test]
fn a_joined_stack_is_cut_at_its_root() {
    for interpreter in programs::pythons("cut-tasks") {
        let (program, printed) = first_joined(&interpreter);
        let process = Process::open(program.id()).unwrap();
        let python = Python::attach(&process).unwrap();
        for depth in 1..=printed.len() {
            let options = WalkOptions { depth: Some(depth.try_into().unwrap()), ..ALL };
            let mut walker = StackWalker::new(&python, options);
            walker.find_tasks(&process).unwrap();
            let mut tables = Tables::default();
            let mut found = (Vec::new(), Vec::new());
            for _ in 0..PATIENCE {
                found = stacks(&process, &python, &mut walker, &mut tables);
                if found.0.contains(&printed[..depth].to_vec()) {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            assert!(
                found.0.contains(&printed[..depth].to_vec()),
                "{}, {depth}: {found:#?}",
                interpreter.name
            );
        }
    }
}

/// A process whose memory has other numbers in it now and then.
struct Noisy<'p> {
    process: &'p Process,
    noise: RefCell<Noise>,
}

impl ForeignMemory for Noisy<'_> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        let filled = self.process.read_pieces(pieces)?;
        let mut noise = self.noise.borrow_mut();
        for piece in pieces.iter_mut().filter(|piece| piece.into.len() >= 8) {
            if noise.number().is_multiple_of(32) {
                let words = piece.into.len() as u64 / 8;
                let at = 8 * usize::try_from(noise.number() % words).unwrap();
                // Large counts, addresses of the program, and anything.
                let value = match noise.number() % 3 {
                    0 => noise.number(),
                    1 => piece.address.wrapping_add(noise.number() % 4096 * 8),
                    _ => noise.number() % (1 << 40),
                };
                piece.into[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(filled)
    }
}

#[test]
fn damaged_tasks_and_variables_are_read_to_an_end() {
    for interpreter in programs::pythons("damaged-tasks") {
        let (program, _) = first_joined(&interpreter);
        let process = Process::open(program.id()).unwrap();
        let python = Python::attach(&process).unwrap();
        let threads = python.threads(&process).unwrap().threads;
        for seed in 1..25 {
            let memory = Noisy { process: &process, noise: RefCell::new(Noise::new(seed)) };
            let (mut walker, mut tables) = (StackWalker::new(&python, ALL), Tables::default());
            walker.find_tasks(&process).unwrap();
            for _ in 0..4 {
                walker.scan_tasks(&memory, &threads, &mut tables).unwrap();
                for thread in &threads {
                    walker.sample(&memory, thread, Stillness::Still, &mut tables).unwrap();
                    walker.suspended(&memory, thread, &mut tables).unwrap();
                    walker.locals(&memory).unwrap();
                }
            }
            let list = python.threads(&process).unwrap();
            ThreadNames::default().read(&python, &memory, &list).unwrap();
        }
        // What was damaged was the copy: the program still waits.
        assert!(process.is_running(), "{}", interpreter.name);
    }
}
