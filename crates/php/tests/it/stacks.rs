//! PHP's own stacks, compared with those seen from outside.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use borehole_model::Tables;
use borehole_php::{AttachOptions, Executor, Php, SampleOutcome, StackWalker, WalkOptions};
use borehole_process::Process;
use borehole_testkit::Scratch;
use borehole_testkit::engine_modes::{CODE_MODES, EngineMode, OTHER_MODES};

use crate::programs::{self, Program};

/// The time limit for a program to pause where it said it would.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program whose stacks are read.
struct Walked {
    process: Process,
    executor: Executor,
    walker: StackWalker,
    tables: Tables,
}

impl Walked {
    fn attach(id: i32) -> Self {
        let process = Process::open(id).unwrap();
        let php = Php::attach(&process, &AttachOptions::default()).unwrap();
        let executor = php.executors(&process).unwrap()[0];
        Self {
            process,
            executor,
            walker: StackWalker::new(&php, WalkOptions::default()),
            tables: Tables::default(),
        }
    }

    /// The stack as soon as it is `expected`, or else the last one.
    fn settle(&mut self, expected: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let outcome = self.walker.sample(&self.process, &self.executor, &mut self.tables).unwrap();
            if let SampleOutcome::Stack(stack) = outcome {
                found = programs::frames(&self.tables, stack.id);
                if programs::are_printed_as(&found, expected) {
                    break;
                }
            }
        }
        found
    }
}

/// Runs `program` and compares each stack that it prints with the one that we read; returns their number.
fn compare(command: &mut Command, program: &Path, context: &str) -> usize {
    let mut program = Program::start(command.arg(program));
    let (mut walked, mut compared) = (None, 0);
    while let Some((construct, expected)) = program.expected() {
        let walked = walked.get_or_insert_with(|| Walked::attach(program.id()));
        let found = walked.settle(&expected);
        assert!(
            programs::are_printed_as(&found, &expected),
            "{context}: {construct}: {found:#?} {expected:#?}"
        );
        compared += 1;
        program.go_on();
    }
    compared
}

/// Runs `program` with the installed PHP in these modes.
fn in_modes(program: &str, modes: &[EngineMode]) {
    let scratch = Scratch::new();
    let expected = PROGRAMS.iter().find(|(name, ..)| *name == program).unwrap().2;
    let path = programs::corpus(&format!("php/stacks/{program}.php"));
    for mode in modes {
        let Some(mut command) = mode.command(&scratch) else { return };
        assert_eq!(compare(&mut command, &path, mode.name), expected, "{}", mode.name);
    }
}

/// The programs, the first release that supports each, and the number of stacks that each shows.
const PROGRAMS: &[(&str, (u8, u8), usize)] = &[
    ("functions", (7, 0), 52),
    ("generators", (7, 0), 25),
    ("files", (7, 0), 21),
    ("php80", (8, 0), 14),
    ("php81", (8, 1), 18),
    ("php84", (8, 4), 13),
    ("preloaded", (7, 4), 9),
];

#[test]
fn functions_methods_closures_and_calls_by_php() {
    in_modes("functions", &CODE_MODES);
}

#[test]
fn generators() {
    in_modes("generators", &CODE_MODES);
}

#[test]
fn code_of_files_and_of_eval() {
    in_modes("files", &CODE_MODES);
}

#[test]
fn features_of_php_8_0() {
    in_modes("php80", &CODE_MODES);
}

#[test]
fn fibers_enums_and_first_class_callables() {
    in_modes("php81", &CODE_MODES);
}

#[test]
fn functions_in_other_modes_of_the_engine() {
    in_modes("functions", &OTHER_MODES);
}

#[test]
fn generators_in_other_modes_of_the_engine() {
    in_modes("generators", &OTHER_MODES);
}

#[test]
fn code_that_was_preloaded() {
    in_modes("preloaded", &OTHER_MODES);
}

/// Runs every program that `release` supports, in every mode.
fn other_release(release: (u8, u8)) {
    other(&format!("php-{}.{}", release.0, release.1), release, &CODE_MODES);
}

fn other(name: &str, release: (u8, u8), modes: &[EngineMode]) {
    let Some(other) = programs::Other::find(name) else { return };
    let scratch = Scratch::new();
    for (program, since, expected) in PROGRAMS.iter().filter(|(_, since, _)| *since <= release) {
        for mode in modes {
            let path = other.corpus.join(format!("{program}.php"));
            let context = format!("{name}, {program} since {since:?}, {}", mode.name);
            let compared = compare(other.command().args(mode.options(&scratch)), &path, &context);
            assert_eq!(compared, *expected, "{context}");
        }
    }
}

#[test]
fn php_7_0() {
    other_release((7, 0));
}

#[test]
fn php_7_2() {
    other_release((7, 2));
}

#[test]
fn php_7_4() {
    other_release((7, 4));
}

#[test]
fn php_8_1() {
    other_release((8, 1));
}

#[test]
fn php_8_3() {
    other_release((8, 3));
}

#[test]
fn php_8_4() {
    other_release((8, 4));
}

#[test]
fn php_8_5() {
    other_release((8, 5));
}

#[test]
fn php_8_6() {
    other_release((8, 6));
}

#[test]
fn php_8_4_with_threads() {
    // Built without opcache.
    other("php-8.4-zts", (8, 4), &CODE_MODES[..1]);
}
