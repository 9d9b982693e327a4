//! Sampling programs that run.

use std::time::{Duration, Instant};

use borehole_model::{StackId, Tables};
use borehole_php::{AttachOptions, Php, SampleOutcome, StackWalker, WalkOptions};
use borehole_process::Process;
use borehole_testkit::peers;

use crate::programs::{self, Program};

/// A program that makes several million calls a second.
const ACCEPTED: usize = 20_000;
/// The minimum number of distinct stacks; samples of one moment have fewer.
const MANY: usize = 50;

/// The functions of `pairs.php` in a stack, root first: `a_N` calls `b_N`, which calls `c_N`.
fn pairs(tables: &Tables, stack: StackId) -> Vec<String> {
    let name = |line: &String| line.split('\t').next().unwrap_or_default().to_owned();
    let mut names: Vec<_> = programs::frames(tables, stack).iter().map(name).collect();
    names.reverse();
    names.retain(|name| name.len() > 2 && name.as_bytes()[1] == b'_');
    names
}

/// Whether these calls are possible: `a_7`, `b_7`, `c_7`, or the first of them.
fn is_possible(names: &[String]) -> bool {
    let number = |name: &str| name.split_once('_').map(|(_, number)| number.to_owned());
    let same = names.windows(2).all(|pair| number(&pair[0]) == number(&pair[1]));
    let order = names.iter().zip([b'a', b'b', b'c']).all(|(name, letter)| name.as_bytes()[0] == letter);
    same && order && names.len() <= 3
}

#[test]
fn stacks_of_a_busy_program_are_possible() {
    let Some(php) = peers::peer("php") else { return };
    let program = Program::start(php.command().arg(programs::corpus("php/trace/pairs.php")).arg("60"));
    let (process, php) = attach(program.id());
    let tables = &mut Tables::default();
    let executor = php.executors(&process).unwrap()[0];
    let mut walker = StackWalker::new(&php, WalkOptions::default());
    let (mut accepted, mut checked) = (0, Vec::new());
    let end = Instant::now() + Duration::from_secs(50);
    // While others use the processor, all samples are of one moment.
    while accepted < ACCEPTED || tables.stack_count() <= MANY {
        assert!(Instant::now() < end, "{accepted} samples of {} stacks in time", tables.stack_count());
        let SampleOutcome::Stack(stack) = walker.sample(&process, &executor, tables).unwrap() else {
            continue;
        };
        accepted += 1;
        if checked.len() <= stack.id.index() {
            checked.resize(stack.id.index() + 1, false);
        }
        if !std::mem::replace(&mut checked[stack.id.index()], true) {
            let names = pairs(tables, stack.id);
            assert!(is_possible(&names), "{names:?}");
        }
    }
}

/// The options of both compilers that opcache has.
const COMPILERS: [&str; 2] = ["opcache.jit=1205", "opcache.jit=1254"];

#[test]
fn the_function_that_executes_in_compiled_code_is_seen() {
    let Some(php) = peers::peer("php") else { return };
    for compiler in COMPILERS {
        let options = ["-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d", compiler];
        let mut command = php.command();
        let program = command.args(options).arg(programs::corpus("php/trace/busy.php")).arg("60");
        let program = Program::start(program);
        let (process, php) = attach(program.id());
        let tables = &mut Tables::default();
        let executor = php.executors(&process).unwrap()[0];
        let mut walker = StackWalker::new(&php, WalkOptions::default());
        let (mut stacks, mut leaves, mut torn) = (0, 0, 0);
        let end = Instant::now() + Duration::from_secs(50);
        // The loop takes most of the time in every mode; while others use the processor, all samples are of one moment.
        while stacks < 5000 || leaves <= stacks / 4 {
            assert!(Instant::now() < end, "{compiler}: {leaves} of {stacks} stacks in time, {torn} torn");
            match walker.sample(&process, &executor, tables).unwrap() {
                SampleOutcome::Stack(stack) => {
                    stacks += 1;
                    let function = tables.frame(tables.leaf(stack.id)).function;
                    leaves += usize::from(tables.string(function) == b"leaf");
                }
                SampleOutcome::Torn => torn += 1,
                SampleOutcome::Idle => {}
            }
        }
    }
}

/// The process, once it runs PHP and PHP has started.
fn attach(id: i32) -> (Process, Php) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let process = Process::open(id).unwrap();
        match Php::attach(&process, &AttachOptions::default()) {
            Ok(php) => return (process, php),
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    }
}

#[test]
fn impossible_calls_are_noticed() {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert!(is_possible(&names(&["a_1", "b_1", "c_1"])) && is_possible(&[]));
    assert!(!is_possible(&names(&["a_1", "b_2"])) && !is_possible(&names(&["a_1", "c_1"])));
    assert!(!is_possible(&names(&["b_1"])));
}

#[test]
fn a_stack_of_a_hundred_thousand_frames_is_truncated_and_marked() {
    let Some(php) = peers::peer("php") else { return };
    let mut program = Program::start(php.command().arg(programs::corpus("php/stacks/deep.php")));
    program.expected().unwrap();
    programs::rest(program.id());
    let (process, php) = attach(program.id());
    let tables = &mut Tables::default();
    let executor = php.executors(&process).unwrap()[0];
    for (depth, kept, omitted) in [(None, 65_536, 1), (Some(10), 10, 65_527)] {
        let mut walker = StackWalker::new(&php, WalkOptions { depth, ..WalkOptions::default() });
        let outcome = walker.sample(&process, &executor, tables).unwrap();
        let SampleOutcome::Stack(stack) = outcome else { panic!("{outcome:?}") };
        assert_eq!((tables.depth(stack.id), stack.omitted), (kept, omitted));
    }
}

#[test]
fn a_program_that_ends_is_an_error_of_the_process() {
    let Some(php) = peers::peer("php") else { return };
    let program = Program::start(php.command().arg(programs::corpus("php/trace/busy.php")).arg("60"));
    let (process, php) = attach(program.id());
    let executor = php.executors(&process).unwrap()[0];
    let (mut walker, mut tables) = (StackWalker::new(&php, WalkOptions::default()), Tables::default());
    drop(program);
    let error = walker.sample(&process, &executor, &mut tables).unwrap_err();
    assert_eq!(error.kind(), borehole_php::ErrorKind::Process, "{error}");
    assert_eq!(error.process().unwrap().kind(), borehole_process::ErrorKind::Gone, "{error}");
}
