//! The chores of the project: `cargo xtask NAME`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod bench;
mod ci;
mod command;
mod demo;
mod fuzz;
mod peers;
mod picture;
mod testing;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The chores of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Show where the time of a recorded trace goes, and draw its flame graph.
    Demo,
    /// Set up the peers and run every test.
    Test(Without),
    /// Run what has to pass before a change goes in.
    Ci {
        /// Run this check alone (repeatable).
        #[arg(long, value_name = "CHECK")]
        only: Vec<String>,
        #[command(flatten)]
        without: Without,
    },
    /// Set up the reference programs that tests compare with.
    Peers {
        /// Set up this release of PHP as well, such as php-8.4, or php for all (repeatable); takes minutes, and root.
        #[arg(value_name = "PEER")]
        wanted: Vec<String>,
        #[command(flatten)]
        without: Without,
    },
    /// Measure every claim on speed and memory, and keep the table in BENCHMARKS.md.
    Bench(bench::Options),
    /// Run one command and print the CPU time and memory that it took.
    #[command(hide = true)]
    Measure(bench::Single),
    /// Run a program that claims are compared with on standard input.
    #[command(hide = true)]
    Reference {
        #[arg(value_enum)]
        program: bench::Program,
    },
    /// Use every value of the events in a file, as it streams by.
    #[command(hide = true)]
    Visit {
        /// The trace.
        file: PathBuf,
    },
    /// Draw the picture in the README anew.
    Picture,
    /// Run the fuzz targets on mutated seeds.
    Fuzz(fuzz::Options),
    /// Check the rules on imports, sizes and names.
    Tidy,
}

/// The peers to leave out.
#[derive(clap::Args)]
struct Without {
    /// Leave this peer out, and the tests that need it (repeatable).
    #[arg(long = "without", value_name = "PEER")]
    names: Vec<String>,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task, &root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task, root: &Path) -> Result<()> {
    match task {
        Task::Demo => demo::run(root),
        Task::Test(without) => testing::run(root, &without.names),
        Task::Ci { only, without } => ci::run(root, &only, &without.names),
        Task::Peers { wanted, without } => peers::run(&without.names, &wanted),
        Task::Bench(options) => bench::run(root, &options),
        Task::Measure(options) => bench::single(&options),
        Task::Reference { program } => bench::reference(program),
        Task::Visit { file } => bench::visit_file(&file),
        Task::Picture => picture::run(root),
        Task::Fuzz(options) => fuzz::run(root, &options),
        Task::Tidy => tidy::run(root),
    }
}

/// The root of the project: cargo says where it runs from; built in is only where it was built.
fn root() -> PathBuf {
    let built_in = || env!("CARGO_MANIFEST_DIR").into();
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(built_in));
    here.parent().unwrap_or(&here).to_owned()
}
