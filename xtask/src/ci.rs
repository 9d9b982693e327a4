//! `cargo xtask ci`: what has to pass before a change goes in.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{command, peers, testing, tidy};

/// A check with a name.
struct Check {
    name: &'static str,
    run: fn(&Surroundings<'_>) -> Result<()>,
}

/// What a check may need to know.
struct Surroundings<'a> {
    root: &'a Path,
    /// The peers that are left out.
    without: &'a [String],
}

/// All checks, the quick ones first. The tests come last, so that their results end the output.
const CHECKS: &[Check] = &[
    Check { name: "fmt", run: |at| cargo(at, &["fmt", "--all", "--check"]) },
    Check { name: "tidy", run: |at| tidy::run(at.root) },
    Check {
        name: "clippy",
        run: |at| {
            cargo(at, &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])
        },
    },
    Check { name: "features", run: features },
    Check { name: "doc", run: doc },
    Check { name: "peers", run: |at| peers::run(at.without, &[]) },
    Check { name: "deny", run: deny },
    Check { name: "tokio-unstable", run: |at| testing::tokio_unstable(at.root) },
    Check { name: "test", run: |at| testing::workspace(at.root, at.without) },
];

/// The peer that knows the packages that we are built of.
const DENY: &str = "cargo-deny";

/// The facade's features, each of which must build alone, without warnings.
const FORMATS: &[&str] = &[
    "zstd",
    "rbt",
    "tachyon",
    "trc",
    "phpspy",
    "folded",
    "collapsed",
    "pstats",
    "tachyon-jsonl",
    "gecko",
    "otlp",
    "pprof",
    "speedscope",
    "callgrind",
    "jsonl",
    "flamegraph",
    "perfetto",
    "chrome-trace",
    "sqlite",
    "postgresql",
    "mysql",
];

/// Runs the check called `only`, or all of them; goes on after a failure and names all that failed.
///
/// # Errors
/// When a check fails, or `only` is none.
pub(crate) fn run(root: &Path, only: &[String], without: &[String]) -> Result<()> {
    let at = Surroundings { root, without };
    let mut failed = Vec::new();
    for check in chosen(only)? {
        eprintln!("== {}", check.name);
        if let Err(error) = (check.run)(&at) {
            eprintln!("== {} failed: {error:#}", check.name);
            failed.push(check.name);
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

fn chosen(only: &[String]) -> Result<Vec<&'static Check>> {
    if only.is_empty() {
        return Ok(CHECKS.iter().collect());
    }
    let find = |name: &String| {
        let known = || CHECKS.iter().map(|check| check.name).collect::<Vec<_>>().join(", ");
        let found = CHECKS.iter().find(|check| check.name == name);
        found.with_context(|| format!("unknown check: expected one of {}, found {name}", known()))
    };
    only.iter().map(find).collect()
}

fn cargo(at: &Surroundings<'_>, arguments: &[&str]) -> Result<()> {
    command::run(command::cargo(at.root).args(arguments))
}

/// The facade with one format only, so that a small program stays small.
fn features(at: &Surroundings<'_>) -> Result<()> {
    let clippy = ["clippy", "--quiet", "--package", "borehole", "--no-default-features"];
    let fatal = ["--", "-D", "warnings"];
    cargo(at, &[&clippy[..], &fatal].concat())?;
    FORMATS.iter().try_for_each(|format| cargo(at, &[&clippy[..], &["--features", format], &fatal].concat()))
}

/// What we are built of, by the rules of `deny.toml`. The database of known faults is fetched anew each time; where that cannot
/// be done, the rest is checked all the same.
fn deny(at: &Surroundings<'_>) -> Result<()> {
    if at.without.iter().any(|name| name == DENY) {
        eprintln!("WITHOUT {DENY}: nothing judges what we are built of");
        return Ok(());
    }
    let peer =
        peers::ready(DENY)?.with_context(|| format!("missing {DENY}: `cargo xtask peers` sets it up"))?;
    let deny = |arguments: &[&str]| {
        let mut program = Command::new(&peer.command[0]);
        program.args(&peer.command[1..]).arg("--locked").args(arguments).current_dir(at.root);
        program
    };
    command::run(&mut deny(&["check", "bans", "licenses", "sources"]))?;
    match command::output(&mut deny(&["fetch", "db"])) {
        Ok(_) => command::run(&mut deny(&["check", "advisories"])),
        Err(error) => {
            eprintln!("WITHOUT the database of advisories: {error:#}");
            Ok(())
        }
    }
}

fn doc(at: &Surroundings<'_>) -> Result<()> {
    let mut cargo = command::cargo(at.root);
    cargo.args(["doc", "--workspace", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings");
    command::run(&mut cargo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_run_alone_in_the_order_asked_for() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(&only).map(|checks| checks.iter().map(|check| check.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["tidy", "fmt"]).unwrap(), ["tidy", "fmt"]);
        assert_eq!(names(&[]).unwrap().last(), Some(&"test"));
        let error = names(&["lint"]).unwrap_err().to_string();
        assert!(error.starts_with("unknown check: expected one of fmt, tidy, "), "{error}");
    }
}
