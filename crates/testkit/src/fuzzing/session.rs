//! A target run on mutated seeds, in this process, on any toolchain.
//!
//! It is blind where libFuzzer sees which branches an input takes, but it needs nothing, and it is the same
//! on every run: the seed number decides every input.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Mutator, Target};

/// A reader that takes longer for one input does something that the input did not ask for.
const SLOWEST: Duration = Duration::from_secs(5);

/// Seeds above this size are left to the corpus tests: mutating them is mostly copying.
const LONGEST_SEED: usize = 64 << 10;

/// How a target is run.
#[derive(Clone, Copy, Debug)]
pub struct FuzzOptions {
    /// For how long.
    pub duration: Duration,
    /// Which inputs to make: the same number makes the same ones.
    pub seed: u64,
    /// Whether each input is written to the file before it is run, for failures that end the process.
    pub careful: bool,
}

/// How much a target was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FuzzCount {
    /// The inputs, seeds included.
    pub inputs: usize,
    /// The seeds that were short enough.
    pub seeds: usize,
}

/// Runs `target` on its seeds and on mutations of them. An input that fails is left in `folder`.
///
/// # Errors
/// When an input makes the target panic or takes too long, or a file cannot be read or written.
pub fn fuzz(target: &Target, options: FuzzOptions, folder: &Path) -> Result<FuzzCount, String> {
    let session = Session::new(target, options, folder)?;
    let mut mutator = Mutator::new(options.seed, 2 * LONGEST_SEED);
    let begin = Instant::now();
    for seed in &session.pool {
        session.try_input(seed)?;
    }
    let mut inputs = session.pool.len();
    while begin.elapsed() < options.duration {
        session.try_input(&mutator.mutate(&session.pool))?;
        inputs += 1;
    }
    Ok(FuzzCount { inputs, seeds: session.pool.len() })
}

/// One target being run.
struct Session<'a> {
    target: &'a Target,
    pool: Vec<Vec<u8>>,
    /// Where an input that fails is written.
    failure: PathBuf,
    careful: bool,
}

impl<'a> Session<'a> {
    fn new(target: &'a Target, options: FuzzOptions, folder: &Path) -> Result<Self, String> {
        let read = |path: PathBuf| fs::read(&path).map_err(|error| format!("{}: {error}", path.display()));
        let mut pool = target.seeds().into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        pool.retain(|seed| seed.len() <= LONGEST_SEED);
        let failure = folder.join(format!("{}-{}.input", target.name, options.seed));
        Ok(Self { target, pool, failure, careful: options.careful })
    }

    fn try_input(&self, bytes: &[u8]) -> Result<(), String> {
        if self.careful {
            self.keep(bytes)?;
        }
        let begin = Instant::now();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| self.target.run(bytes)));
        if outcome.is_ok() && begin.elapsed() < SLOWEST {
            return Ok(());
        }
        self.keep(bytes)?;
        let failed = if outcome.is_err() { "failed" } else { "took too long" };
        let (name, bytes, file) = (self.target.name, bytes.len(), self.failure.display());
        Err(format!(
            "{name} {failed} on an input of {bytes} bytes, now in {file}; keep it in fuzz/seeds/{name}"
        ))
    }

    fn keep(&self, bytes: &[u8]) -> Result<(), String> {
        fs::write(&self.failure, bytes).map_err(|error| format!("{}: {error}", self.failure.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::targets::Run;
    use super::*;
    use crate::Scratch;

    fn run(run: fn(&[u8]), folder: &Path) -> Result<FuzzCount, String> {
        let target = Target { name: "wire", run: Run::Bytes(run), corpus: &[] };
        let options = FuzzOptions { duration: Duration::from_secs(1), seed: 3, careful: false };
        fuzz(&target, options, folder)
    }

    #[test]
    fn a_target_that_fails_leaves_the_input_that_it_fails_on() {
        let scratch = Scratch::new();
        let fails = |bytes: &[u8]| assert!(bytes.len() != 3, "three bytes");
        let error = run(fails, scratch.folder()).unwrap_err();
        assert!(error.starts_with("wire failed on an input of 3 bytes, now in "), "{error}");
        assert_eq!(fs::read(scratch.folder().join("wire-3.input")).unwrap().len(), 3);
    }

    #[test]
    fn a_target_that_holds_leaves_nothing() {
        let scratch = Scratch::new();
        let count = run(|_| {}, scratch.folder()).unwrap();
        assert!(count.inputs > count.seeds, "{count:?}");
        assert_eq!(fs::read_dir(scratch.folder()).unwrap().count(), 0);
    }
}
