//! `borehole lake scheduler` and `borehole lake executor`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use borehole_query::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};
use clap::Args;

use crate::exit::Exit;
use crate::messages::say;
use crate::outputs::private_folder;

/// `borehole lake scheduler`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SchedulerArgs {
    /// Address to listen on. There is no password: whoever can connect can query, and read what executors can read
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50050")]
    bind: SocketAddr,

    /// Seconds of silence after which an executor is given up and others get its work; busy ones report every 5 seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(10..))]
    executor_timeout: u64,
}

/// `borehole lake executor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExecutorArgs {
    /// Address of the scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050", value_parser = host_and_port)]
    scheduler: (String, u16),

    /// Address where others fetch the results of this executor
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:50051")]
    bind: SocketAddr,

    /// Name or address of this machine for others [default: the address of --bind]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// How many parts of queries to run at once [default: one per core]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    cores: usize,

    /// Memory for queries before they spill to disk, in MiB [default: 70 % of the machine's]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    memory: Option<u64>,

    /// Folder for partial results until they are fetched [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    work_folder: Option<PathBuf>,
}

pub(super) const EXAMPLES: &str = "\
Examples:
  borehole lake scheduler --bind 10.0.0.1:50050                               on one machine
  borehole lake executor --scheduler 10.0.0.1:50050 --bind 10.0.0.2:50051     on the others
  borehole lake top s3://fleet/lake --since 7d --cluster df://10.0.0.1:50050  from anywhere";

pub(crate) fn scheduler(args: &SchedulerArgs) -> anyhow::Result<Exit> {
    begin();
    say(&format!("listening on df://{}", args.bind));
    run_scheduler(&SchedulerOptions { bind: args.bind, executor_timeout_s: args.executor_timeout })?;
    Ok(Exit::Done)
}

pub(crate) fn executor(args: &ExecutorArgs) -> anyhow::Result<Exit> {
    begin();
    // Its queries have a budget of their own.
    borehole_memory::set_budget(usize::MAX);
    let temporary = match &args.work_folder {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
            None
        }
        // Only the user may read results.
        None => Some(private_folder()?),
    };
    let given = args.work_folder.clone();
    let work_folder = given.or_else(|| Some(temporary.as_ref()?.path().to_owned())).unwrap_or_default();
    say(&format!("executing for {}:{}, results at {}", args.scheduler.0, args.scheduler.1, args.bind));
    run_executor(&ExecutorOptions {
        bind: args.bind,
        host: args.advertise.clone(),
        scheduler: args.scheduler.clone(),
        cores: args.cores,
        memory_bytes: args.memory.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
        work_folder,
    })?;
    Ok(Exit::Done)
}

/// Logs warnings and errors to stderr; `RUST_LOG` selects more.
fn begin() {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
}

fn host_and_port(text: &str) -> Result<(String, u16), String> {
    let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
    let port = port.parse().map_err(|_| "expected a port after the last colon".to_owned())?;
    Ok((host.to_owned(), port))
}
