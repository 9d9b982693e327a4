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

use clap::CommandFactory as _;

use cli::{Cli, Command, FileCommand, LiveCommand, ViewCommand};
use exit::Exit;

/// What the program `borehole` does.
#[must_use]
pub fn borehole() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ended(match reli::parse(&arguments) {
        Some(command) => understood(command).map(reli::run),
        None => understood(cli::parse(arguments)).map(run),
    })
}

/// What the program `borehole-lake` does.
#[cfg(feature = "lake")]
#[must_use]
pub fn borehole_lake() -> ExitCode {
    let arguments = std::env::args_os().collect();
    ended(understood(cli::parsed::<lake::Cli>(arguments)).map(|cli| lake::run(&cli)))
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
        Command::Live(command) => run_live(command),
        Command::File(command) => run_file(command),
        Command::View(command) => run_view(command),
        Command::Heap { command } => heap::run(&command),
        Command::Lake { arguments } => external::run("borehole-lake", &arguments),
        Command::Formats(args) => formats::run(&args),
        Command::Completions(args) => pages::completions(&args, <Cli>::command()),
        Command::Man(args) => pages::man(&args, <Cli>::command()),
    }
}

fn run_live(command: LiveCommand) -> anyhow::Result<Exit> {
    match command {
        LiveCommand::Record(args) => record::run(&args),
        LiveCommand::Stack(args) => stack::run(&args),
        LiveCommand::Top(args) => top::run(&args),
        LiveCommand::Eg(args) => eg::run(&args),
        LiveCommand::Doctor(args) => doctor::run(&args),
    }
}

fn run_file(command: FileCommand) -> anyhow::Result<Exit> {
    match command {
        FileCommand::Convert(args) => convert::run(&args),
        FileCommand::Recover(args) => recover::run(&args),
        FileCommand::Info(args) => info::run(&args),
        FileCommand::Check(args) => check::run(&args),
        FileCommand::Dump(args) => dump::run(&args),
    }
}

fn run_view(command: ViewCommand) -> anyhow::Result<Exit> {
    match command {
        ViewCommand::Report(args) => cli::report(&args),
        ViewCommand::Explore(args) => explore::run(&args),
        ViewCommand::Diff(args) => diff::run(&args),
        ViewCommand::Open(args) => page::open(&args),
    }
}
