//! Programs that exceeded their memory limit.

use borehole_php::{AttachOptions, FailedCall, FatalError, Php};
use borehole_process::Process;
use borehole_testkit::peers;

use crate::programs::{self, Other, Program};

/// The message of the failed program, and the calls that are found.
fn failed(mut program: Program, change: impl FnOnce(&mut FatalError<'_>)) -> (usize, Option<FailedCall>) {
    let said = program.line().unwrap();
    let [file, line, depth] = said.split('\t').collect::<Vec<_>>()[..] else { panic!("{said}") };
    programs::rest(program.id());
    let process = Process::open(program.id()).unwrap();
    let php = Php::attach(&process, &AttachOptions::default()).unwrap();
    let executor = php.executors(&process).unwrap()[0];
    let mut failure = FatalError { file: file.as_bytes(), line: line.parse().unwrap(), max_depth: 30_000 };
    change(&mut failure);
    let found = php.failed_call(&process, &executor, &failure).unwrap();
    program.go_on();
    assert_eq!(program.line().as_deref(), Some("done"));
    // This includes `near`, `before` and the program itself.
    (depth.parse::<usize>().unwrap() + 11 + 2, found)
}

fn start(depth: &str) -> Option<Program> {
    let mut command = peers::peer("php")?.command();
    command.args(["-d", "memory_limit=12M"]).arg(programs::corpus("php/failed/limit.php")).arg(depth);
    Some(Program::start(&mut command))
}

/// If PHP reset the stack, code that runs at the end overwrites the outer frames: at most this many, and no inner ones.
const MOST_OVERWRITTEN: usize = 3;

/// The number of the program's calls on the first page of a stack. If PHP reset the stack, no other page is left.
const ON_FIRST_PAGE: usize = 900;

/// Asserts that all calls of a program that can be found are found.
#[track_caller]
fn assert_found(name: &str, calls: usize, found: FailedCall) {
    let least = if found.is_whole { calls } else { calls.min(ON_FIRST_PAGE) - MOST_OVERWRITTEN };
    assert!((least..=calls).contains(&found.depth), "{name} with {calls}: {found:?}");
    assert_eq!(found.is_whole, found.depth == calls, "{name} with {calls}: {found:?}");
}

#[test]
fn the_call_that_exceeded_the_memory_limit_is_found_where_it_was_left() {
    for depth in ["20", "300", "800"] {
        let Some(program) = start(depth) else { return };
        let (calls, found) = failed(program, |_| {});
        assert_found("php", calls, found.unwrap());
    }
}

#[test]
fn other_positions_find_no_failed_call() {
    let found = |depth, change: fn(&mut FatalError<'_>)| failed(start(depth)?, change).1;
    assert_eq!(found("50", |failure| failure.line += 1000), None);
    assert_eq!(found("50", |failure| failure.file = b"/else.php"), None);
    assert_eq!(found("50", |failure| failure.max_depth = 10), None);
}

#[test]
fn the_failed_call_is_found_in_every_release() {
    let releases = ["7.0", "7.2", "7.4", "8.1", "8.3", "8.4", "8.5", "8.6"];
    // Releases that get no more fixes leave the stack as it is.
    let is_final = |release| !["8.4", "8.5", "8.6"].contains(&release);
    for release in releases {
        let name = format!("php-{release}");
        let folder = format!("/tmp/borehole-failed-{}-{name}", std::process::id());
        let Some(other) = Other::with("php/failed", &name, folder.as_ref()) else { continue };
        // The last two fill more than a page of the stack.
        for depth in ["0", "5", "3000", "10000"] {
            let mut command = other.command();
            command.args(["-d", "memory_limit=12M"]).arg(other.corpus.join("limit.php")).arg(depth);
            let (calls, found) = failed(Program::start(&mut command), |_| {});
            let found = found.unwrap();
            assert_found(&name, calls, found);
            assert!(found.is_whole || !is_final(release), "{name} with {calls}: {found:?}");
        }
    }
}
