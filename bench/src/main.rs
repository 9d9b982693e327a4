//! `cargo xtask bench`: every speed and size that is claimed, measured side by side with its reference.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod allocations;
mod capture;
mod claims;
mod conversion;
mod damage;
mod databases;
mod decoding;
mod events;
mod explore;
mod fleet;
mod heap;
mod heap_walk;
mod inputs;
mod lake;
mod lanes;
mod live_python;
mod measure;
mod mixes;
mod native;
mod python;
mod recording;
mod recordings;
mod references;
mod report;
mod serving;
mod share;
mod starting;
mod symbols;
mod tachyon;
mod text;
mod traces;
mod writing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use xtask::command;

/// Measure every claim on speed and memory, and keep the table in BENCHMARKS.md.
#[derive(Parser)]
#[command(name = "cargo xtask bench", args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct BenchArguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    step: Option<ChildWork>,
}

/// A piece of work that the program hands to a process of its own.
#[derive(Subcommand)]
enum ChildWork {
    /// Run one command and print the CPU time and memory that it took.
    #[command(hide = true)]
    Measure(measure::SingleRun),
    /// Run a program that claims are compared with on standard input.
    #[command(hide = true)]
    Reference {
        #[arg(value_enum)]
        program: references::ReferenceProgram,
    },
    /// Use every value of the events in a file, as it streams by.
    #[command(hide = true)]
    Visit {
        /// The trace.
        file: PathBuf,
    },
}

/// A claim, and how to measure it.
pub(crate) struct Claim {
    /// The thing that is measured, and its input.
    pub(crate) name: String,
    pub(crate) unit: ClaimUnit,
    pub(crate) goal: Goal,
    pub(crate) ours: Side,
    pub(crate) reference: Option<Reference>,
    /// Whether one round says it all.
    pub(crate) once: bool,
}

impl Claim {
    pub(crate) fn new(name: String, unit: ClaimUnit, goal: Goal, ours: Side) -> Self {
        Self { name, unit, goal, ours, reference: None, once: false }
    }

    pub(crate) fn against(self, name: String, run: Side) -> Self {
        Self { reference: Some(Reference { name, run }), ..self }
    }

    pub(crate) fn once(self) -> Self {
        Self { once: true, ..self }
    }
}

/// One side of a comparison: does the work once and says what it took.
pub(crate) type Side = Box<dyn FnMut() -> Result<f64>>;

/// A program or number that a claim is compared with.
pub(crate) struct Reference {
    /// Program and version.
    pub(crate) name: String,
    pub(crate) run: Side,
}

/// The unit of the numbers of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimUnit {
    /// Less is better.
    Seconds,
    /// Less is better.
    Bytes,
    /// More is better.
    PerSecond,
    /// More is better.
    BytesPerSecond,
}

/// The number that a claim has to reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// A number of its unit, in the better direction.
    Value(f64),
    /// So many times as good as the reference.
    Ratio(f64),
    /// Both of them.
    Both { value: f64, ratio: f64 },
}

/// The result of a claim.
pub(crate) struct Measured {
    name: String,
    unit: ClaimUnit,
    goal: Goal,
    /// The best of all rounds: what else runs on the machine only makes it worse.
    ours: f64,
    reference: Option<(String, f64)>,
}

/// The programs that are measured, and where they work.
pub(crate) struct Bench {
    pub(crate) root: PathBuf,
    /// The command, which `cargo xtask bench` has built for release.
    pub(crate) borehole: PathBuf,
    /// The command for lakes, which stands beside it.
    pub(crate) lake: PathBuf,
    /// Where inputs and outputs go.
    pub(crate) folder: PathBuf,
}

/// How to run.
#[derive(clap::Args)]
struct Options {
    /// How often each side of each claim runs.
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Only claims whose name contains this; the document is left as it is.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

fn main() -> ExitCode {
    let BenchArguments { options, step } = BenchArguments::parse();
    let done = match step {
        None => run(&root(), &options),
        Some(ChildWork::Measure(options)) => measure::single(&options),
        Some(ChildWork::Reference { program }) => references::run(program),
        Some(ChildWork::Visit { file }) => events::visit_file(&file),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the project: cargo says where it runs from; built in is only where it was built.
fn root() -> PathBuf {
    let built_in = || env!("CARGO_MANIFEST_DIR").into();
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built_in));
    here.parent().unwrap_or(&here).to_owned()
}

/// Measures all claims, prints them, and keeps them in `BENCHMARKS.md`.
///
/// # Errors
/// When a claim cannot be measured, or misses its goal.
fn run(root: &Path, options: &Options) -> Result<()> {
    ensure!(options.rounds > 0, "expected at least one round, found 0");
    let bench = prepare(root)?;
    let mut outcomes = Vec::new();
    for claim in claims::all(&bench)? {
        if options.only.as_ref().is_none_or(|wanted| claim.name.contains(wanted)) {
            eprintln!("measuring: {}", claim.name);
            outcomes.push(measure_claim(claim, options.rounds)?);
        }
    }
    let table = report::table(&outcomes);
    print!("{table}");
    if options.only.is_none() {
        report::keep(&root.join("BENCHMARKS.md"), &report::section(&table, options.rounds))?;
    }
    let missed = outcomes.iter().filter(|outcome| !outcome.is_reached()).count();
    if missed == 0 { Ok(()) } else { bail!("{missed} of {} claims miss their goal", outcomes.len()) }
}

fn prepare(root: &Path) -> Result<Bench> {
    let programs = command::target(root).join("release");
    let folder = command::cache()?.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let [borehole, lake] = ["borehole", "borehole-lake"].map(|name| programs.join(name));
    Ok(Bench { root: root.to_owned(), borehole, lake, folder })
}

/// Runs both sides in turns, so that what changes on the machine meets both.
fn measure_claim(claim: Claim, rounds: u32) -> Result<Measured> {
    let Claim { name, unit, goal, mut ours, mut reference, once } = claim;
    let rounds = if once { 1 } else { rounds };
    let mut best = (unit.worst(), unit.worst());
    for round in 0..rounds {
        // Who goes first changes too: the second finds warmer caches and a hotter machine.
        if round % 2 == 0 {
            best.0 = unit.better(best.0, ours()?);
        }
        if let Some(reference) = &mut reference {
            best.1 = unit.better(best.1, (reference.run)()?);
        }
        if round % 2 == 1 {
            best.0 = unit.better(best.0, ours()?);
        }
    }
    let reference = reference.map(|reference| (reference.name, best.1));
    Ok(Measured { name, unit, goal, ours: best.0, reference })
}

impl ClaimUnit {
    const fn is_less_better(self) -> bool {
        matches!(self, Self::Seconds | Self::Bytes)
    }

    const fn worst(self) -> f64 {
        if self.is_less_better() { f64::INFINITY } else { 0.0 }
    }

    const fn better(self, one: f64, other: f64) -> f64 {
        if self.is_less_better() { one.min(other) } else { one.max(other) }
    }
}

impl Measured {
    /// How many times as good as the reference ours is.
    fn ratio(&self) -> Option<f64> {
        let (_, reference) = self.reference.as_ref()?;
        Some(if self.unit.is_less_better() { reference / self.ours } else { self.ours / reference })
    }

    fn is_reached(&self) -> bool {
        match self.goal {
            Goal::Value(goal) => self.reaches_value(goal),
            Goal::Ratio(goal) => self.reaches_ratio(goal),
            Goal::Both { value, ratio } => self.reaches_value(value) && self.reaches_ratio(ratio),
        }
    }

    fn reaches_value(&self, goal: f64) -> bool {
        if self.unit.is_less_better() { self.ours <= goal } else { self.ours >= goal }
    }

    fn reaches_ratio(&self, goal: f64) -> bool {
        self.ratio().is_some_and(|ratio| ratio >= goal)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// A side that gives `values` in turn and writes down that it ran.
    fn side(mark: char, values: [f64; 3], log: &Rc<RefCell<String>>) -> Side {
        let mut values = values.into_iter();
        let log = Rc::clone(log);
        Box::new(move || {
            log.borrow_mut().push(mark);
            values.next().context("no value left")
        })
    }

    fn claim(unit: ClaimUnit, goal: Goal) -> (Measured, String) {
        let log = Rc::default();
        let theirs = side('b', [8.0, 6.0, 7.0], &log);
        let ours = side('a', [3.0, 2.0, 4.0], &log);
        let claim = Claim::new("work".to_owned(), unit, goal, ours).against("theirs 1".to_owned(), theirs);
        let outcome = measure_claim(claim, 3).unwrap();
        let order = log.borrow().clone();
        (outcome, order)
    }

    #[test]
    fn sides_take_turns_and_the_best_round_counts() {
        let (less, order) = claim(ClaimUnit::Seconds, Goal::Ratio(3.0));
        assert_eq!(order, "abbaab");
        assert_eq!((less.ours, less.ratio()), (2.0, Some(3.0)));
        let (more, _) = claim(ClaimUnit::PerSecond, Goal::Ratio(0.5));
        assert_eq!((more.ours, more.ratio()), (4.0, Some(0.5)));
    }

    #[test]
    fn goals_are_missed_in_the_worse_direction_only() {
        for (unit, goal, reached) in [
            (ClaimUnit::Seconds, Goal::Ratio(3.0), true),
            (ClaimUnit::Seconds, Goal::Ratio(3.1), false),
            (ClaimUnit::Bytes, Goal::Value(2.0), true),
            (ClaimUnit::Bytes, Goal::Value(1.9), false),
            (ClaimUnit::PerSecond, Goal::Value(4.0), true),
            (ClaimUnit::PerSecond, Goal::Value(4.1), false),
            (ClaimUnit::Bytes, Goal::Both { value: 2.0, ratio: 3.0 }, true),
            (ClaimUnit::Bytes, Goal::Both { value: 1.9, ratio: 3.0 }, false),
            (ClaimUnit::Bytes, Goal::Both { value: 2.0, ratio: 3.1 }, false),
        ] {
            assert_eq!(claim(unit, goal).0.is_reached(), reached, "{unit:?} {goal:?}");
        }
    }
}
