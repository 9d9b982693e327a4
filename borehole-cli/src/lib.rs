//! The `borehole` command, and with the feature `lake` the command `borehole-lake`.
//!
//! `cli` describes the command line, a module a command carries it out, `reli` translates reli's own command
//! lines into ours. Data goes to standard output, everything else to standard error.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod cell;
mod check;
mod cli;
mod convert;
mod diff;
mod doctor;
mod dump;
mod eg;
mod exit;
mod explore;
mod external;
mod filter;
mod formats;
mod heap;
mod info;
mod inputs;
mod interrupt;
mod labelled;
#[cfg(feature = "lake")]
mod lake;
mod messages;
mod outputs;
mod page;
mod pages;
mod progress;
mod record;
mod recover;
mod reli;
mod report;
mod stack;
mod times;
mod top;
mod utc;
#[cfg(test)]
mod vocabulary;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Command};
use exit::Exit;

/// What the program `borehole` does.
#[must_use]
pub fn borehole() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let outcome = match reli::parse(&arguments) {
        Some(command) => reli::run(command),
        None => run(Cli::parse_from(arguments).command),
    };
    outcome.unwrap_or_else(|error| messages::failure(&error)).into()
}

/// What the program `borehole-lake` does.
#[cfg(feature = "lake")]
#[must_use]
pub fn borehole_lake() -> ExitCode {
    let outcome = lake::run(&lake::Cli::parse());
    outcome.unwrap_or_else(|error| messages::failure(&error)).into()
}

fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Record(args) => record::run(&args),
        Command::Stack(args) => stack::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Eg(args) => eg::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Recover(args) => recover::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Report(args) => cli::report(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Open(args) => page::open(&args),
        Command::Heap { command } => heap::run(&command),
        Command::Lake { arguments } => external::run("borehole-lake", &arguments),
        Command::Formats(args) => formats::run(&args),
        Command::Completions(args) => pages::completions(&args, Cli::command()),
        Command::Man(args) => pages::man(&args, Cli::command()),
    }
}
