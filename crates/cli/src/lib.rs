//! The `borehole` command, and with the feature `lake` the command `borehole-lake`.
//!
//! `cli` describes the command line, a module a command carries it out, `reli` translates reli's own command
//! lines into ours. Data goes to standard output, everything else to standard error.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod cell;
mod check;
mod cli;
mod convert;
mod deferred;
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
mod recording;
mod recover;
mod refusal;
mod reli;
mod report;
mod stack;
mod suspend;
mod table;
mod times;
mod top;
mod utc;
mod values;
#[cfg(test)]
mod vocabulary;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use cli::{Cli, Command};
use exit::Exit;

/// What the program `borehole` does.
#[must_use]
pub fn borehole() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ended(match reli::parse(&arguments) {
        Some(command) => understood(command).map(reli::run),
        None => understood(Cli::try_parse_from(arguments)).map(|cli| run(cli.command)),
    })
}

/// What the program `borehole-lake` does.
#[cfg(feature = "lake")]
#[must_use]
pub fn borehole_lake() -> ExitCode {
    ended(understood(lake::Cli::try_parse()).map(|cli| lake::run(&cli)))
}

/// What the command line says; or how a command ends that was not understood, or asked for help only, which it has been given.
fn understood<T>(parsed: clap::error::Result<T>) -> Result<T, Exit> {
    parsed.map_err(|told| match told.print().and_then(|()| io::stdout().flush()) {
        _ if told.use_stderr() => Exit::Failed,
        Ok(()) => Exit::Done,
        Err(error) => messages::failure(&outputs::stdout_error(error).into()),
    })
}

fn ended(outcome: Result<anyhow::Result<Exit>, Exit>) -> ExitCode {
    match outcome {
        Ok(outcome) => outcome.unwrap_or_else(|error| messages::failure(&error)),
        Err(exit) => exit,
    }
    .into()
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
        Command::Diff(args) => diff::run(&args),
        Command::Explore(args) => explore::run(&args),
        Command::Open(args) => page::open(&args),
        Command::Heap { command } => heap::run(&command),
        Command::Lake { arguments } => external::run("borehole-lake", &arguments),
        Command::Formats(args) => formats::run(&args),
        Command::Completions(args) => pages::completions(&args, Cli::command()),
        Command::Man(args) => pages::man(&args, Cli::command()),
    }
}
