//! `borehole eg`: where a process keeps what its PHP executes, for debuggers and scripts.

use std::io::{self, Write as _};

use borehole::capture::PhpOptions;
use clap::Args;

use crate::exit::Exit;
use crate::outputs::stdout_error;
use crate::record::PhpArgs;
use crate::refusal;

/// Whose globals.
#[derive(Args, Clone, Debug)]
pub(crate) struct EgArgs {
    /// The process
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    #[command(flatten)]
    php: PhpArgs,
}

pub(crate) fn run(args: &EgArgs) -> anyhow::Result<Exit> {
    print(args.pid, &args.php.options(None))
}

/// Prints a line a thread that runs PHP.
pub(crate) fn print(process: i32, options: &PhpOptions) -> anyhow::Result<Exit> {
    let process = refusal::attach(process, options)?;
    for executor in process.executors() {
        writeln!(io::stdout(), "{:#x}", executor.globals).map_err(stdout_error)?;
    }
    Ok(Exit::Done)
}
