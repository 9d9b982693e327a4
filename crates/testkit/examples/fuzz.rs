//! `cargo xtask fuzz`: the fuzz targets on mutated seeds.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use borehole_testkit::fuzzing::{FuzzOptions, Target, fuzz, targets};
use clap::Parser;

/// How to do better than this.
const ADVICE: &str = "\
Mutating blindly. With a nightly toolchain and cargo-fuzz, libFuzzer sees more:
  BOREHOLE_FUZZ_TARGET=NAME cargo +nightly fuzz run target fuzz/corpus/NAME fuzz/seeds/NAME";

/// Run the fuzz targets on mutated seeds.
#[derive(Parser)]
#[command(name = "cargo xtask fuzz")]
struct Arguments {
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
    /// Where an input that fails is left.
    #[arg(long, value_name = "FOLDER")]
    failures: PathBuf,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let Arguments { target, seconds, seed, careful, failures } = arguments;
    let wanted = |known: &&Target| target.as_ref().is_none_or(|name| name == known.name);
    let all = targets();
    let targets: Vec<&Target> = all.iter().filter(wanted).collect();
    if targets.is_empty() {
        let known: Vec<_> = all.iter().map(|target| target.name).collect();
        return Err(format!("unknown target: expected one of {}", known.join(", ")));
    }
    fs::create_dir_all(&failures).map_err(|error| format!("{}: {error}", failures.display()))?;
    println!("{ADVICE}");
    let options = FuzzOptions { duration: Duration::from_secs(seconds), seed, careful };
    for target in targets {
        let count = fuzz(target, options, &failures)?;
        println!("{}: {} inputs from {} seeds, all well", target.name, count.inputs, count.seeds);
    }
    Ok(())
}
