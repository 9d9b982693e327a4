//! Local variables of real programs, against those that the programs print.

use borehole_model::Tables;
use borehole_process::Process;
use borehole_python::{LocalVariable, Python, StackWalker, Stillness, ThreadNames, WalkOptions};

use crate::programs::{self, Program};

/// The lines of the variables of the frame of `function`.
fn lines(variables: &[LocalVariable]) -> Vec<String> {
    let line = |variable: &LocalVariable| {
        format!("{} = {}", String::from_utf8_lossy(&variable.name), variable.value)
    };
    variables.iter().map(line).collect()
}

#[test]
fn variables_have_the_values_that_the_program_prints() {
    for interpreter in programs::pythons("variables") {
        let mut program = Program::start(&mut interpreter.command("locals/variables.py"));
        let lines_of_program = std::iter::from_fn(|| program.line()).take_while(|line| line != b".");
        let mut printed: Vec<String> =
            lines_of_program.map(|line| String::from_utf8_lossy(&line).into_owned()).collect();
        assert!(printed.len() > 20, "{printed:?}");
        // Names of values that end in `values` and `lines` are the program's own.
        printed.sort();
        let process = Process::open(program.id()).unwrap();
        let python = Python::attach(&process).unwrap();
        let thread = python.threads(&process).unwrap().threads[0];
        let mut walker = StackWalker::new(&python, WalkOptions::default());
        let mut tables = Tables::default();
        walker.sample(&process, &thread, Stillness::Running, &mut tables).unwrap();
        let frames = walker.locals(&process).unwrap();
        assert_eq!(frames.len(), 3, "{}", interpreter.name);
        let mut found = lines(&frames[1]);
        found.retain(|line| !line.starts_with("values = ") && !line.starts_with("lines = "));
        found.sort();
        assert_eq!(found.join("\n"), printed.join("\n"), "{}", interpreter.name);
    }
}

#[test]
fn threads_have_the_names_that_the_program_gives_them() {
    for interpreter in programs::pythons("thread-names") {
        let mut program = Program::start(&mut interpreter.command("stacks/constructs.py"));
        let mut names = Vec::new();
        while let Some((construct, _)) = program.expected() {
            if construct == "recursion" {
                let process = Process::open(program.id()).unwrap();
                let python = Python::attach(&process).unwrap();
                let list = python.threads(&process).unwrap();
                let named = ThreadNames::default().read(&python, &process, &list).unwrap();
                names = named.into_iter().map(|(_, name)| String::from_utf8(name).unwrap()).collect();
                names.sort();
                if names.len() > 1 {
                    break;
                }
            }
            program.go_on();
        }
        assert_eq!(names, ["MainThread", "worker"], "{}", interpreter.name);
    }
}
