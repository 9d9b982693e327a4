//! Which tests reach a change, and whether one of them notices it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::TestProgram;
use crate::{command, peers};

/// The variable with the number of the switch that is on.
const SWITCH_VARIABLE: &str = "BOREHOLE_SWITCH";

/// The variable with the file that gets the numbers of switches that were asked for.
const REACHED_VARIABLE: &str = "BOREHOLE_SWITCHES_REACHED";

/// The address space of a test, in KiB: a change may make it ask for any amount.
const MOST_MEMORY_KIB: u64 = 8_000_000;

/// The time that tests get whatever they took without a change: other programs may keep the machine busy.
const LEAST_TIME: Duration = Duration::from_secs(20);

/// Tests with a change may take so many times as long as without.
const TIMES_LONGER: u32 = 5;

/// Tests with a change run in groups that double in size, the quickest first: most changes are noticed by the first group.
const FIRST_GROUP: usize = 8;

/// A test that passes without a change.
#[derive(Debug)]
pub(super) struct Test {
    program: usize,
    name: String,
    time: Duration,
    /// The switches that it asks for.
    reached: BTreeSet<usize>,
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No test reaches it.
    Unreached,
    /// All tests pass.
    Unnoticed,
    Noticed,
}

/// The tests of `programs` that pass and whose name holds `text`, quickest first, and the names of those that fail. `scratch` is a
/// folder for files.
///
/// # Errors
/// When a program does not run.
pub(super) fn tests(
    programs: &[TestProgram],
    text: &str,
    scratch: &Path,
) -> Result<(Vec<Test>, Vec<String>)> {
    fs::create_dir_all(scratch).with_context(|| format!("{}", scratch.display()))?;
    let mut named = Vec::new();
    for (index, program) in programs.iter().enumerate() {
        let list =
            command::output(at(program, Command::new(&program.path)).args(["--list", "--format", "terse"]))?;
        let names =
            list.lines().filter_map(|line| line.strip_suffix(": test")).filter(|name| name.contains(text));
        named.extend(names.map(|name| (index, name.to_owned())));
    }
    eprintln!("{} tests: which switches each of them reaches", named.len());
    let outcomes = in_parallel(named.len(), |at| {
        let (program, name) = &named[at];
        let file = scratch.join(format!("{at}"));
        let _ = fs::remove_file(&file);
        let begin = Instant::now();
        let mut command = test_command(&programs[*program], &[name]);
        let passed = passes(command.env(REACHED_VARIABLE, &file), Duration::from_secs(600));
        let time = begin.elapsed();
        let text = fs::read_to_string(&file).unwrap_or_default();
        let _ = fs::remove_file(&file);
        let reached = text.lines().filter_map(|line| line.parse().ok()).collect();
        (passed, Test { program: *program, name: name.clone(), time, reached })
    });
    let (passed, failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(passed, _)| *passed);
    let mut tests: Vec<Test> = passed.into_iter().map(|(_, test)| test).collect();
    tests.sort_by_key(|test| test.time);
    Ok((tests, failed.into_iter().map(|(_, test)| test.name).collect()))
}

/// The verdict on each of the changes `numbers`.
pub(super) fn verdicts(programs: &[TestProgram], tests: &[Test], numbers: &[usize]) -> Vec<Verdict> {
    let done = AtomicUsize::new(0);
    in_parallel(numbers.len(), |at| {
        let verdict = verdict(programs, tests, numbers[at]);
        let done = 1 + done.fetch_add(1, Ordering::Relaxed);
        if done.is_multiple_of(50) {
            eprintln!("{done} of {} changes tried", numbers.len());
        }
        verdict
    })
}

fn verdict(programs: &[TestProgram], tests: &[Test], number: usize) -> Verdict {
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reached.contains(&number)).collect();
    if reaching.is_empty() {
        return Verdict::Unreached;
    }
    let mut size = FIRST_GROUP;
    while !reaching.is_empty() {
        let rest = reaching.split_off(size.min(reaching.len()));
        let group = std::mem::replace(&mut reaching, rest);
        for (index, program) in programs.iter().enumerate() {
            let own: Vec<&&Test> = group.iter().filter(|test| test.program == index).collect();
            if own.is_empty() {
                continue;
            }
            let names: Vec<&str> = own.iter().map(|test| test.name.as_str()).collect();
            let usual: Duration = own.iter().map(|test| test.time).sum();
            let mut command = test_command(program, &names);
            if !passes(command.env(SWITCH_VARIABLE, number.to_string()), LEAST_TIME + usual * TIMES_LONGER) {
                return Verdict::Noticed;
            }
        }
        size *= 2;
    }
    Verdict::Unnoticed
}

/// `command` where cargo would run the tests of `program`, with the peers that there are.
fn at(program: &TestProgram, mut command: Command) -> Command {
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    if let Ok(folder) = peers::folder() {
        command.env(peers::FOLDER_VARIABLE, folder);
    }
    command
}

/// The tests `names` of `program`, in bounded memory.
fn test_command(program: &TestProgram, names: &[&str]) -> Command {
    let mut command = at(program, Command::new("sh"));
    command.args(["-c", &format!("ulimit -v {MOST_MEMORY_KIB}; exec \"$0\" \"$@\"")]).arg(&program.path);
    command.args(["--quiet", "--exact", "--test-threads", "1"]).args(names);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A group of its own: it is ended with the programs that it started.
    command.process_group(0);
    command
}

/// Whether `command` succeeds within `limit`.
fn passes(command: &mut Command, limit: Duration) -> bool {
    let Ok(mut child) = command.spawn() else { return false };
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if begin.elapsed() < limit => thread::sleep(pause),
            Ok(None) | Err(_) => {
                end(&mut child);
                return false;
            }
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Ends `child` and all of its group.
fn end(child: &mut Child) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    let _ = child.kill();
    let _ = child.wait();
}

/// The values of `work` for each number below `count`, on all processors.
fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        break;
                    }
                    let result = work(at);
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}
