//! The `borehole` command, and with the features `lake` and `serve` the commands `borehole-lake` and `borehole-serve`.
//!
//! `cli` defines the command line, one module per command implements it, and `reli` translates reli's command lines. Data goes to
//! standard output, everything else to standard error.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints")]

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
mod hints;
mod info;
mod inputs;
mod interrupt;
mod labelled;
#[cfg(feature = "lake")]
mod lake;
mod memory;
mod messages;
mod one_clock;
mod opening;
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
mod report_command;
#[cfg(feature = "serve")]
mod serve;
mod stack;
mod stdout;
mod suspend;
mod symbolize;
mod table;
mod times;
mod top;
mod utc;
mod values;
#[cfg(test)]
mod vocabulary;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use borehole_text::{printable, without_passwords};
use cli::{BoreholeCommand, Cli};
use exit::Exit;
use memory::MemoryArgs;

/// Runs the program `borehole`.
#[must_use]
pub fn borehole() -> ExitCode {
    memory::watch();
    let arguments: Vec<_> = std::env::args_os().collect();
    ended(match reli::parse(&arguments) {
        Some(command) => understood(command, || reli::parse(&shown(&arguments))?.err()).map(|command| {
            MemoryArgs::default().apply();
            reli::run(command)
        }),
        None => understood(Cli::try_parse_from(&arguments), || Cli::try_parse_from(shown(&arguments)).err())
            .map(|cli| {
                cli.memory.apply();
                cli.width.apply();
                run(cli.command)
            }),
    })
}

/// Runs the program `borehole-lake`.
#[cfg(feature = "lake")]
#[must_use]
pub fn borehole_lake() -> ExitCode {
    memory::watch();
    let arguments: Vec<_> = std::env::args_os().collect();
    let again = || lake::LakeCli::try_parse_from(shown(&arguments)).err();
    ended(understood(lake::LakeCli::try_parse_from(&arguments), again).map(|cli| {
        cli.memory.apply();
        cli.width.apply();
        lake::run(&cli)
    }))
}

/// Runs the program `borehole-serve`.
#[cfg(feature = "serve")]
#[must_use]
pub fn borehole_serve() -> ExitCode {
    memory::watch();
    let arguments: Vec<_> = std::env::args_os().collect();
    let again = || serve::ServeCli::try_parse_from(shown(&arguments)).err();
    ended(understood(serve::ServeCli::try_parse_from(&arguments), again).map(|cli| {
        cli.memory.apply();
        serve::run(&cli)
    }))
}

/// The parsed command line, or the outcome after printing help or the error of parsing; `again` is the error for the arguments
/// as they are shown, or `None` if those are accepted.
fn understood<T>(
    parsed: clap::error::Result<T>,
    again: impl FnOnce() -> Option<clap::Error>,
) -> Result<T, Exit> {
    parsed.map_err(|told| {
        if told.use_stderr() {
            match again() {
                // If nobody reads standard error, nothing can be said.
                Some(shown) => drop(shown.print()),
                None => messages::say(told.render().to_string().trim_end()),
            }
            return Exit::Failed;
        }
        match told.print().and_then(|()| io::stdout().flush()) {
            Ok(()) => Exit::Done,
            Err(error) => messages::failure(&stdout::stdout_error(error).into()),
        }
    })
}

/// The arguments as errors quote them: they may be names of files that a shell has found, and hold passwords.
fn shown(arguments: &[OsString]) -> Vec<OsString> {
    let shown = |argument: &OsString| {
        let text = argument.to_string_lossy();
        if text.contains("://") {
            printable(without_passwords(&text).as_bytes())
        } else {
            printable(argument.as_encoded_bytes())
        }
    };
    arguments.iter().map(|argument| shown(argument).into()).collect()
}

fn ended(outcome: Result<anyhow::Result<Exit>, Exit>) -> ExitCode {
    match outcome {
        Ok(outcome) => outcome.unwrap_or_else(|error| messages::failure(&error)),
        Err(exit) => exit,
    }
    .into()
}

/// The arguments of a program that has several commands.
fn prefixed(command: &str, arguments: Vec<OsString>) -> Vec<OsString> {
    [command.into()].into_iter().chain(arguments).collect()
}

fn run(command: BoreholeCommand) -> anyhow::Result<Exit> {
    match command {
        BoreholeCommand::Record(args) => record::run(&args),
        BoreholeCommand::Stack(args) => stack::run(&args),
        BoreholeCommand::Top(args) => top::run(&args),
        BoreholeCommand::Eg(args) => eg::run(&args),
        BoreholeCommand::Doctor(args) => doctor::run(&args),
        BoreholeCommand::Convert(args) => convert::run(&args),
        BoreholeCommand::Recover(args) => recover::run(&args),
        BoreholeCommand::Symbolize(args) => symbolize::run(&args),
        BoreholeCommand::Info(args) => info::run(&args),
        BoreholeCommand::Check(args) => check::run(&args),
        BoreholeCommand::Dump(args) => dump::run(&args),
        BoreholeCommand::Report(args) => cli::report(&args),
        BoreholeCommand::Diff(args) => diff::run(&args),
        BoreholeCommand::Explore(args) => explore::run(&args),
        BoreholeCommand::Open(args) => page::open(&args),
        BoreholeCommand::Heap { command } => heap::run(&command),
        BoreholeCommand::Lake { arguments } => external::run(&external::LAKE, &arguments),
        BoreholeCommand::Serve { arguments } => {
            external::run(&external::SERVE, &prefixed("serve", arguments))
        }
        BoreholeCommand::Mcp { arguments } => external::run(&external::SERVE, &prefixed("mcp", arguments)),
        BoreholeCommand::Query { arguments } => {
            external::run(&external::SERVE, &prefixed("query", arguments))
        }
        BoreholeCommand::Formats(args) => formats::run(&args),
        BoreholeCommand::Completions(args) => pages::completions(&args, Cli::command()),
        BoreholeCommand::Man(args) => pages::man(&args, Cli::command()),
    }
}
