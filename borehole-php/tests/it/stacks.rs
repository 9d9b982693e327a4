//! What PHP itself says of its stacks, and what we see of them from outside.

use std::process::Command;

use borehole_model::Tables;
use borehole_php::{AttachOptions, Outcome, Php, WalkOptions, Walker};
use borehole_process::Process;
use borehole_testkit::peers;

use crate::programs::{self, Program};

/// How often a stack may be torn while the program comes to rest.
const PATIENCE: usize = 1000;

/// Runs `program` and compares each stack that it says it has with the one that we see; the number of them.
fn compare(command: &mut Command, program: &str) -> usize {
    let mut program = Program::start(command.arg(programs::corpus(&format!("php/stacks/{program}.php"))));
    let (mut tables, mut walker, mut compared) = (Tables::default(), None, 0);
    let (mut process, mut executor) = (None, None);
    while let Some((construct, expected)) = program.expected() {
        let process = process.get_or_insert_with(|| Process::open(program.id()).unwrap());
        let walker = walker.get_or_insert_with(|| {
            let php = Php::attach(process, &AttachOptions::default()).unwrap();
            executor = php.executors(process).unwrap().first().copied();
            Walker::new(&php, WalkOptions::default())
        });
        // The program has said where it will wait, and may still be on its way there.
        let mut found = Vec::new();
        for _ in 0..PATIENCE {
            let outcome = walker.sample(process, executor.as_ref().unwrap(), &mut tables).unwrap();
            if let Outcome::Stack(stack) = outcome {
                found = programs::frames(&tables, stack.id);
                if found == expected {
                    break;
                }
            }
        }
        assert_eq!(found, expected, "{construct}");
        compared += 1;
        program.go_on();
    }
    compared
}

fn php() -> Option<Command> {
    Some(peers::peer("php")?.command())
}

#[test]
fn functions_methods_closures_and_what_php_calls_by_itself() {
    let Some(mut php) = php() else { return };
    assert_eq!(compare(&mut php, "functions"), 53);
}

#[test]
fn generators() {
    let Some(mut php) = php() else { return };
    assert_eq!(compare(&mut php, "generators"), 25);
}

#[test]
fn code_of_files_and_of_eval() {
    let Some(mut php) = php() else { return };
    assert_eq!(compare(&mut php, "files"), 21);
}

#[test]
fn what_came_with_php_8() {
    let Some(mut php) = php() else { return };
    compare(&mut php, "php80");
    compare(&mut php, "php81");
}
