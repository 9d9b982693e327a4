//! `borehole eg`: the address of PHP's executor globals, for debuggers and scripts.

use std::io::{self, Write as _};

use borehole::capture::PhpOptions;
use clap::Args;

use crate::exit::Exit;
use crate::record::PhpArgs;
use crate::refusal;
use crate::stdout::stdout_error;

/// The arguments of `borehole eg`.
#[derive(Args, Clone, Debug)]
pub(crate) struct EgArgs {
    /// Process to read
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: i32,

    #[command(flatten)]
    php: PhpArgs,
}

pub(crate) fn run(args: &EgArgs) -> anyhow::Result<Exit> {
    print(args.pid, &args.php.options(None))
}

/// Prints one line per PHP thread.
pub(crate) fn print(process: i32, options: &PhpOptions) -> anyhow::Result<Exit> {
    let process = refusal::attach(process, options)?;
    for executor in process.executors() {
        writeln!(io::stdout(), "{:#x}", executor.globals).map_err(stdout_error)?;
    }
    Ok(Exit::Done)
}
