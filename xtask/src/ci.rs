//! `cargo xtask ci`: the tasks that must pass before a change goes in.

mod builds;
mod packages;
mod toy_format;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::{command, formatting, interface, mutants, peers, testing, tidy, web};

/// A task with a name.
struct Task {
    name: &'static str,
    /// One line.
    about: &'static str,
    /// How long it takes on 2 cores, once everything else has been built.
    time: &'static str,
    /// Whether it runs only if it is named.
    is_optional: bool,
    run: fn(&Surroundings<'_>) -> Result<TaskOutcome>,
}

/// How a task that did not fail ended.
#[derive(Debug, PartialEq)]
enum TaskOutcome {
    Passed,
    /// Why it showed nothing, and how that can be changed.
    Skipped(String),
}

/// The surroundings that a task may need to know.
struct Surroundings<'a> {
    root: &'a Path,
    /// The peers that are left out.
    without: &'a [String],
}

/// All tasks, the quick ones first. The tests come last, so that their results end the output.
const TASKS: &[Task] = &[
    Task {
        name: "fmt",
        about: "the format of all sources, as rustfmt has it",
        time: "2 s",
        is_optional: false,
        run: |at| passed(formatting::run(at.root, true)),
    },
    Task {
        name: "tidy",
        about: "the rules on dependencies, sizes, names and texts",
        time: "5 s",
        is_optional: false,
        run: |at| passed(tidy::run(at.root)),
    },
    Task {
        name: "interface",
        about: "the public interface of the library, which docs/interface.txt lists and examples show",
        time: "1 s",
        is_optional: false,
        run: |at| passed(interface::check(at.root)),
    },
    Task {
        name: "web",
        about: "the scripts of the pages: types, tests, and that what is committed is what they make",
        time: "30 s",
        is_optional: false,
        run: |at| passed(web::check(at.root)),
    },
    Task {
        name: "clippy",
        about: "no warnings in any crate, test or example, with all features",
        time: "1 min; 10 min at first",
        is_optional: false,
        run: |at| {
            cargo(at, &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
        },
    },
    Task {
        name: "features",
        about: "the formats, and the facade, with no feature and with each one alone",
        time: "2 min",
        is_optional: false,
        run: builds::features,
    },
    Task {
        name: "toy-format",
        about: "the page on adding a format, followed in a copy of the project",
        time: "20 s; 1 min at first",
        is_optional: false,
        run: toy_format::run,
    },
    Task {
        name: "packages",
        about: "the packages that are published, their order, and programs that are built of them",
        time: "1 min; 3 min at first",
        is_optional: false,
        run: packages::run,
    },
    Task {
        name: "msrv",
        about: "a build with the oldest Rust that Cargo.toml allows, where rustup has it",
        time: "20 s; 2 min at first",
        is_optional: false,
        run: builds::msrv,
    },
    Task {
        name: "32-bit",
        about: "the formats and views for a 32-bit machine, where rustup has the target",
        time: "10 s; 30 s at first",
        is_optional: false,
        run: builds::narrow,
    },
    Task {
        name: "other-systems",
        about: "the facade for Windows, macOS and WebAssembly, where rustup has the target",
        time: "30 s; 2 min at first",
        is_optional: false,
        run: builds::other_systems,
    },
    Task {
        name: "big-endian",
        about: "the tests of the crates that know bytes, on s390x in an emulator; needs some packages",
        time: "15 min",
        is_optional: true,
        run: builds::big_endian,
    },
    Task {
        name: "mutants",
        about: "which changes to the code no test notices, in a sample that is another one every day; fails on none",
        time: "1 h",
        is_optional: true,
        run: |at| passed(mutants::nightly(at.root, mutants::NIGHTLY_SAMPLE, today())),
    },
    Task {
        name: "doc",
        about: "the API documentation, without warnings",
        time: "1 min",
        is_optional: false,
        run: doc,
    },
    Task {
        name: "peers",
        about: "the reference programs that tests compare with, set up",
        time: "10 s; 10 min at first",
        is_optional: false,
        run: |at| passed(peers::run(at.without, &[])),
    },
    Task {
        name: "deny",
        about: "licences, sources, duplicates and known vulnerabilities of the dependencies",
        time: "10 s",
        is_optional: false,
        run: deny,
    },
    Task {
        name: "tokio-unstable",
        about: "the tests of the Tokio recorder with the hooks that see every task",
        time: "30 s; 2 min at first",
        is_optional: false,
        run: |at| passed(testing::tokio_unstable(at.root)),
    },
    Task {
        name: "test",
        about: "every test, with the reference programs",
        time: "15 min; 30 min at first",
        is_optional: false,
        run: |at| passed(testing::workspace(at.root, at.without)),
    },
];

/// The peer that knows the packages that we are built of.
const DENY: &str = "cargo-deny";

/// Prints each task with its usual time and what it does.
pub(crate) fn list() {
    for task in TASKS {
        let optional = if task.is_optional { " (only with --only)" } else { "" };
        println!("{:<15} {:<24} {}{optional}", task.name, task.time, task.about);
    }
}

/// Runs the tasks called `only`, or all that are not optional; goes on after a failure, names all that failed, and says how
/// long each took.
///
/// # Errors
/// When a task fails, or `only` is none.
pub(crate) fn run(root: &Path, only: &[String], without: &[String]) -> Result<()> {
    let at = Surroundings { root, without };
    let mut failed = Vec::new();
    let mut times = String::from("== times");
    for task in chosen(only)? {
        eprintln!("== {}: {} ({})", task.name, task.about, task.time);
        let begin = Instant::now();
        let outcome = (task.run)(&at);
        let word = match outcome {
            Ok(TaskOutcome::Passed) => "passed".to_owned(),
            Ok(TaskOutcome::Skipped(reason)) => {
                eprintln!("== {} skipped: {reason}", task.name);
                format!("skipped: {reason}")
            }
            Err(error) => {
                eprintln!("== {} failed: {error:#}", task.name);
                failed.push(task.name);
                "failed".to_owned()
            }
        };
        times.push_str(&format!("\n{:<15} {:>8}  {word}", task.name, shown(begin.elapsed())));
    }
    eprintln!("{times}");
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// A time to the tenth of a second, from a minute on to the second.
fn shown(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Task>> {
    if only.is_empty() {
        return Ok(TASKS.iter().filter(|task| !task.is_optional).collect());
    }
    let find = |name: &String| {
        let known = || TASKS.iter().map(|task| task.name).collect::<Vec<_>>().join(", ");
        let found = TASKS.iter().find(|task| task.name == name);
        found.with_context(|| format!("unknown task: expected one of {}, found {name}", known()))
    };
    only.iter().map(find).collect()
}

fn passed(result: Result<()>) -> Result<TaskOutcome> {
    result.map(|()| TaskOutcome::Passed)
}

fn cargo(at: &Surroundings<'_>, arguments: &[&str]) -> Result<TaskOutcome> {
    let (chore, rest) = arguments.split_first().context("no chore for cargo")?;
    passed(command::run(command::cargo(at.root).args([chore, "--locked"]).args(rest)))
}

/// The manifests whose dependencies are judged: that of the workspace, and that of the fuzzer, which stands outside.
const JUDGED: [&str; 2] = ["Cargo.toml", "fuzz/Cargo.toml"];

/// The dependencies, by the rules of `deny.toml`. The database of known vulnerabilities is fetched anew each time; where that
/// cannot be done, the rest is checked all the same, and the task counts as skipped.
fn deny(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    if at.without.iter().any(|name| name == DENY) {
        return Ok(TaskOutcome::Skipped(format!("without {DENY}, nothing judges the dependencies")));
    }
    let peer =
        peers::ready(DENY)?.with_context(|| format!("missing {DENY}: `cargo xtask peers` sets it up"))?;
    let deny = |manifest: &str, arguments: &[&str]| {
        let mut program = Command::new(&peer.command[0]);
        program.args(&peer.command[1..]).args(["--locked", "--manifest-path", manifest]);
        program.args(["--config", "deny.toml"]).args(arguments).current_dir(at.root);
        program
    };
    for manifest in JUDGED {
        command::run(&mut deny(manifest, &["check", "bans", "licenses", "sources"]))?;
    }
    if let Err(error) = command::output(&mut deny(JUDGED[0], &["fetch", "db"])) {
        return Ok(TaskOutcome::Skipped(without_advisories(&error)));
    }
    for manifest in JUDGED {
        command::run(&mut deny(manifest, &["check", "advisories"]))?;
    }
    Ok(TaskOutcome::Passed)
}

/// The reason for skipping the look-up of known vulnerabilities.
fn without_advisories(error: &anyhow::Error) -> String {
    format!(
        "licences, sources and duplicates are right, but NO KNOWN VULNERABILITY WAS LOOKED UP: the RustSec database could not be \
         fetched; run `cargo xtask ci --only deny` where github.com can be reached ({})",
        error.root_cause().to_string().lines().last().unwrap_or_default().trim()
    )
}

/// The days since 1970.
fn today() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() / 86_400)
}

fn doc(at: &Surroundings<'_>) -> Result<TaskOutcome> {
    let mut cargo = command::cargo(at.root);
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings");
    passed(command::run(&mut cargo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_alone_in_the_order_asked_for() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(&only).map(|tasks| tasks.iter().map(|task| task.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["tidy", "fmt"]).unwrap(), ["tidy", "fmt"]);
        assert_eq!(names(&[]).unwrap().last(), Some(&"test"));
        let error = names(&["lint"]).unwrap_err().to_string();
        assert!(error.starts_with("unknown task: expected one of fmt, tidy, "), "{error}");
    }

    #[test]
    fn optional_tasks_run_only_when_they_are_named() {
        let is_optional = |task: &&Task| task.name == "big-endian";
        assert!(!chosen(&[]).unwrap().iter().any(is_optional));
        assert!(chosen(&["big-endian".to_owned()]).unwrap().iter().any(is_optional));
    }

    #[test]
    fn contributors_are_told_of_every_task() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
        for Task { name, time, about, .. } in TASKS {
            let row = format!("| `{name}` | {time} | {about} |\n");
            assert!(text.contains(&row), "CONTRIBUTING.md: missing {row}");
        }
    }

    #[test]
    fn times_read_well() {
        assert_eq!(shown(Duration::from_millis(1240)), "1.2 s");
        assert_eq!(shown(Duration::from_secs(125)), "2 min 05 s");
    }
}
