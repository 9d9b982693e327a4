//! `cargo xtask fuzz`: mutates the seeds of a target, in this process, on any toolchain.
//!
//! It is blind where libFuzzer sees which branches an input takes, but it needs nothing, and it is the same
//! on every run: the seed number decides every input.

use std::fmt::Write as _;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use borehole_testkit::fuzzing::{Mutator, TARGETS, Target};

use crate::command;

/// A reader that takes longer for one input does something that the input did not ask for.
const SLOWEST: Duration = Duration::from_secs(5);

/// Seeds above this size are left to the corpus tests: mutating them is mostly copying.
const LONGEST_SEED: usize = 64 << 10;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The target; all targets, one after the other, if there is none.
    target: Option<String>,
    /// How long to run each.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Which inputs to make: the same number makes the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write each input to the file before it is run, for failures that end the process.
    #[arg(long)]
    careful: bool,
}

/// Runs the targets that `options` names.
///
/// # Errors
/// When an input makes a target fail, or there is no such target.
pub(crate) fn run(root: &Path, options: &Options) -> Result<()> {
    let wanted = |target: &&Target| options.target.as_ref().is_none_or(|name| name == target.name);
    let targets: Vec<&Target> = TARGETS.iter().filter(wanted).collect();
    if targets.is_empty() {
        let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        bail!("unknown target: expected one of {}", known.join(", "));
    }
    let folder = command::target(root).join("fuzz");
    fs::create_dir_all(&folder)?;
    println!("{}", advice());
    targets.into_iter().try_for_each(|target| Session::new(target, &folder, options)?.run())
}

/// How to do better than this.
fn advice() -> String {
    let mut text =
        "mutating blindly; with a nightly toolchain and cargo-fuzz, libFuzzer sees more:".to_owned();
    for target in TARGETS {
        let name = target.name;
        let _ = write!(text, "\n  cargo +nightly fuzz run {name} fuzz/corpus/{name} fuzz/seeds/{name}");
    }
    text
}

/// One target being run.
struct Session<'a> {
    target: &'a Target,
    pool: Vec<Vec<u8>>,
    /// Where an input that fails is written.
    failure: PathBuf,
    options: &'a Options,
}

impl<'a> Session<'a> {
    fn new(target: &'a Target, folder: &Path, options: &'a Options) -> Result<Self> {
        let mut pool = Vec::new();
        for path in target.seeds() {
            let bytes = fs::read(&path).with_context(|| format!("{}", path.display()))?;
            if bytes.len() <= LONGEST_SEED {
                pool.push(bytes);
            }
        }
        let failure = folder.join(format!("{}-{}.input", target.name, options.seed));
        Ok(Self { target, pool, failure, options })
    }

    fn run(&self) -> Result<()> {
        let mut mutator = Mutator::new(self.options.seed, 2 * LONGEST_SEED);
        let begin = Instant::now();
        let wanted = Duration::from_secs(self.options.seconds);
        for seed in &self.pool {
            self.try_input(seed)?;
        }
        let mut inputs = self.pool.len();
        while begin.elapsed() < wanted {
            self.try_input(&mutator.mutate(&self.pool))?;
            inputs += 1;
        }
        let Self { target, pool, .. } = self;
        println!("{}: {inputs} inputs from {} seeds, all well", target.name, pool.len());
        Ok(())
    }

    fn try_input(&self, bytes: &[u8]) -> Result<()> {
        if self.options.careful {
            fs::write(&self.failure, bytes)?;
        }
        let begin = Instant::now();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (self.target.run)(bytes)));
        let failed = if outcome.is_err() { "failed" } else { "took too long" };
        if outcome.is_ok() && begin.elapsed() < SLOWEST {
            return Ok(());
        }
        fs::write(&self.failure, bytes)?;
        let (name, file) = (self.target.name, self.failure.display());
        bail!(
            "{name} {failed} on an input of {} bytes, now in {file}; keep it in fuzz/seeds/{name}",
            bytes.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(run: fn(&[u8]), folder: &Path) -> Result<()> {
        let target = Target { name: "wire", run, corpus: &[] };
        let options = Options { target: None, seconds: 1, seed: 3, careful: false };
        Session::new(&target, folder, &options)?.run()
    }

    #[test]
    fn a_target_that_fails_leaves_the_input_that_it_fails_on() {
        let folder = tempfile::tempdir().unwrap();
        let fails = |bytes: &[u8]| assert!(bytes.len() != 3, "three bytes");
        let error = session(fails, folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("wire failed on an input of 3 bytes, now in "), "{error}");
        assert_eq!(fs::read(folder.path().join("wire-3.input")).unwrap().len(), 3);
    }

    #[test]
    fn a_target_that_holds_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        session(|_| {}, folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
