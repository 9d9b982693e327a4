//! Programs that exceeded their memory limit.

use borehole_php::{AttachOptions, FailedCall, Failure, Php};
use borehole_process::Process;
use borehole_testkit::peers;

use crate::programs::{self, Other, Program};

/// What the program says of its failure, and what is found of it.
fn failed(mut program: Program, change: impl FnOnce(&mut Failure<'_>)) -> (usize, Option<FailedCall>) {
    let said = program.line().unwrap();
    let [file, line, depth] = said.split('\t').collect::<Vec<_>>()[..] else { panic!("{said}") };
    programs::rest(program.id());
    let process = Process::open(program.id()).unwrap();
    let php = Php::attach(&process, &AttachOptions::default()).unwrap();
    let executor = php.executors(&process).unwrap()[0];
    let mut failure = Failure { file: file.as_bytes(), line: line.parse().unwrap(), max_depth: 30_000 };
    change(&mut failure);
    let found = php.failed_call(&process, &executor, &failure).unwrap();
    program.go_on();
    assert_eq!(program.line().as_deref(), Some("done"));
    // With `before` and the program itself.
    (depth.parse::<usize>().unwrap() + 2, found)
}

fn start(depth: &str) -> Option<Program> {
    let mut command = peers::peer("php")?.command();
    command.args(["-d", "memory_limit=12M"]).arg(programs::corpus("php/failed/limit.php")).arg(depth);
    Some(Program::start(&mut command))
}

/// What Debian's PHP of the machine executes at the end overwrites the outer frames: this many, of the inner ones none.
const MOST_OVERWRITTEN: usize = 6;

#[test]
fn the_call_that_exceeded_the_memory_limit_is_found_where_it_was_left() {
    for depth in ["20", "300", "800"] {
        let Some(program) = start(depth) else { return };
        let (calls, found) = failed(program, |_| {});
        let found = found.unwrap();
        assert!((calls - MOST_OVERWRITTEN..=calls).contains(&found.depth), "{calls}: {found:?}");
        assert_eq!(found.is_whole, found.depth == calls);
    }
}

#[test]
fn what_did_not_fail_there_is_not_found() {
    let found = |depth, change: fn(&mut Failure<'_>)| failed(start(depth)?, change).1;
    assert_eq!(found("50", |failure| failure.line += 1000), None);
    assert_eq!(found("50", |failure| failure.file = b"/else.php"), None);
    assert_eq!(found("50", |failure| failure.max_depth = 10), None);
}

#[test]
fn it_is_found_in_every_release() {
    for name in ["php-7.0", "php-7.2", "php-7.4", "php-8.1", "php-8.3", "php-8.4", "php-8.5", "php-8.6"] {
        let folder = format!("/tmp/borehole-failed-{}-{name}", std::process::id());
        let Some(other) = Other::with("php/failed", name, folder.as_ref()) else { continue };
        // The last two fill more than a page of the stack.
        for depth in ["0", "5", "3000", "10000"] {
            let mut command = other.command();
            command.args(["-d", "memory_limit=12M"]).arg(other.corpus.join("limit.php")).arg(depth);
            let (calls, found) = failed(Program::start(&mut command), |_| {});
            let found = found.map(|found| (found.depth, found.is_whole));
            assert_eq!(found, Some((calls, true)), "{name} at {depth}");
        }
    }
}
