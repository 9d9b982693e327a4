//! `cargo xtask mutants`: which changes to the code of a crate no test notices.
//!
//! All changes of a run are compiled in at once, each behind a switch that a variable turns on, so that a run builds the tests a
//! few times and not once for each change. A first run of each test tells which switches it asks for; a change is then tried with
//! these tests only.

mod build;
mod change;
mod find;
mod measure;
mod report;
#[cfg(test)]
mod tests;
mod tree;
mod values;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use anyhow::{Context, Result, ensure};

use crate::arguments::Given;
use crate::{command, metadata};
use build::{Candidate, Workshop};

/// The crates that others rest on, and those that use them so much that their tests count too.
const NIGHTLY: &[(&str, &[&str])] = &[
    ("wire", &["formats", "trc"]),
    ("text", &["formats"]),
    ("model", &["formats", "analysis"]),
    ("trc", &[]),
    ("formats", &[]),
    ("analysis", &[]),
    ("heap", &[]),
    ("php", &[]),
];

/// So many changes to each of them are a night's work.
pub(crate) const NIGHTLY_SAMPLE: usize = 40;

/// The options of a run.
#[derive(Debug)]
struct Options {
    /// The package whose code changes.
    package: String,
    /// Other packages whose tests are run too.
    with: Vec<String>,
    /// Only files whose path holds this.
    within: String,
    /// Only tests whose name holds this.
    tests: String,
    /// So many changes, drawn at random; all if it is absent.
    sample: Option<usize>,
    seed: u64,
}

/// Prints what the tests of a crate do not notice.
///
/// # Errors
/// When an option is unknown, or the tests do not build without changes.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<()> {
    let given = Given::read(arguments, &[], &["--sample", "--seed", "--in", "--tests", "--with"])?;
    let number = |name: &str| {
        given.values(name).pop().map(|value| value.parse::<u64>().context(format!("{name} {value}")))
    };
    let seed = number("--seed").transpose()?.unwrap_or(1);
    let sample = number("--sample").transpose()?.map(usize::try_from).transpose()?;
    if given.words.is_empty() {
        return nightly(root, sample.unwrap_or(NIGHTLY_SAMPLE), seed);
    }
    for name in &given.words {
        let with = given.values("--with").iter().map(|name| package(name)).collect();
        let text = |name: &str| given.values(name).pop().unwrap_or_default();
        let (within, tests) = (text("--in"), text("--tests"));
        let options = Options { package: package(name), with, within, tests, sample, seed };
        println!("{}\n", tried(root, &command::target(root), &options)?);
    }
    Ok(())
}

/// A sample of each crate that others rest on, with the tests of those that use it.
///
/// # Errors
/// When the tests of a crate do not build without changes.
pub(crate) fn nightly(root: &Path, sample: usize, seed: u64) -> Result<()> {
    for (name, users) in NIGHTLY {
        let with = users.iter().map(|name| package(name)).collect();
        let (within, tests) = (String::new(), String::new());
        let options = Options { package: package(name), with, within, tests, sample: Some(sample), seed };
        println!("{}\n", tried(root, &command::target(root), &options)?);
    }
    Ok(())
}

/// The package that is called `name`, with or without the name of the project before it.
fn package(name: &str) -> String {
    if name.starts_with("borehole") || name == "xtask" { name.to_owned() } else { format!("borehole-{name}") }
}

/// The report of a run in a copy of the project below `target`.
fn tried(root: &Path, target: &Path, options: &Options) -> Result<String> {
    let folder = target.join("mutants");
    let copy = folder.join("project");
    tree::copy(root, &copy)?;
    let sources = metadata::folder(root, &options.package)?.join("src");
    let candidates = candidates(&copy, &sources, options)?;
    ensure!(!candidates.is_empty(), "{}: no code to change", options.package);
    let packages: Vec<String> = iter::once(options.package.clone()).chain(options.with.clone()).collect();
    let workshop = Workshop { root: &copy, sources, packages: &packages, target };
    let (programs, viable) = workshop.build(&candidates)?;
    let (tests, failing) = measure::tests(&programs, &options.tests, &folder.join("reached"))?;
    let verdicts = measure::verdicts(&programs, &tests, &viable);
    let outcomes: Vec<_> = viable.iter().map(|&number| &candidates[number]).zip(verdicts).collect();
    let head = report::Head {
        package: &options.package,
        seed: options.seed,
        drawn: candidates.len(),
        failing: &failing,
    };
    Ok(report::text(&head, &outcomes))
}

/// The changes that a run tries.
fn candidates(copy: &Path, sources: &Path, options: &Options) -> Result<Vec<Candidate>> {
    let folder = copy.join(sources);
    ensure!(folder.join("lib.rs").is_file(), "{}: expected a library", options.package);
    let mut all = Vec::new();
    let mut tests = BTreeSet::new();
    for path in tree::sources(&folder)? {
        let text = fs::read_to_string(&path)?;
        let found = find::changes(&text).with_context(|| format!("{}", path.display()))?;
        tests.extend(found.test_modules.iter().map(|name| module_folder(&path).join(name)));
        let file = path.strip_prefix(copy)?.to_owned();
        all.extend(found.changes.into_iter().map(|change| Candidate { file: file.clone(), change }));
    }
    let is_program = |file: &Path| file.ends_with("main.rs") || file.starts_with(sources.join("bin"));
    let is_test = |file: &Path| tests.iter().any(|test| copy.join(file).with_extension("").starts_with(test));
    all.retain(|one| {
        let is_wanted = one.file.to_string_lossy().contains(&options.within);
        is_wanted && !is_program(&one.file) && !is_test(&one.file)
    });
    if let Some(count) = options.sample {
        all = draw(all, count, options.seed);
    }
    all.sort_by(|a, b| (&a.file, a.change.line).cmp(&(&b.file, b.change.line)));
    Ok(all)
}

/// The folder with the modules that `file` declares.
fn module_folder(file: &Path) -> PathBuf {
    let is_root = ["lib.rs", "main.rs", "mod.rs"].iter().any(|name| file.ends_with(name));
    if is_root { file.with_file_name("") } else { file.with_extension("") }
}

/// `count` of `all`, drawn without return.
fn draw<T>(mut all: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut random = seed;
    let count = count.min(all.len());
    for at in 0..count {
        // SplitMix64, by Sebastiano Vigna: https://prng.di.unimi.it/splitmix64.c
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let left = u64::try_from(all.len() - at).unwrap_or(u64::MAX);
        let chosen = usize::try_from(mixed % left).unwrap_or(0);
        all.swap(at, at + chosen);
    }
    all.truncate(count);
    all
}
