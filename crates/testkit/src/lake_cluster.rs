//! A cluster on loopback for queries on lakes: a scheduler and executors, each a process with one core.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use crate::Scratch;

/// The time limit for a scheduler to listen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster, whose processes end when it is dropped.
#[derive(Debug)]
pub struct LakeCluster {
    scheduler: Child,
    executors: Vec<Child>,
    url: String,
    /// The folder of the scheduler's log.
    scratch: Scratch,
}

impl Drop for LakeCluster {
    fn drop(&mut self) {
        for process in self.executors.iter_mut().chain([&mut self.scheduler]) {
            // The process may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl LakeCluster {
    /// Starts a scheduler and `executors` executors in the temporary folder, where executors create their work folders.
    /// `program` returns the command that runs `borehole-lake`; `prepare` may add to the commands of executors.
    ///
    /// # Errors
    /// If the program cannot be started, or the scheduler does not listen in time.
    pub fn start(
        program: impl Fn() -> Command,
        executors: usize,
        prepare: impl Fn(&mut Command),
    ) -> io::Result<Self> {
        let address = free_address()?;
        // The shortest timeout that is allowed, so that a killed executor is noticed soon.
        let scheduler = ["scheduler", "--bind", &address, "--executor-timeout", "10"];
        let scratch = Scratch::new();
        let log = File::create(scratch.path(LOG))?;
        let scheduler = quiet(program().args(scheduler)).env("RUST_LOG", "warn").stderr(log).spawn()?;
        let url = format!("df://{address}");
        let mut cluster = Self { scheduler, executors: Vec::new(), url, scratch };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&address).is_err() {
            if Instant::now() >= deadline {
                let message = format!("no scheduler listens at {address}");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..executors {
            let mut command = program();
            let bind = free_address()?;
            command.args(["executor", "--scheduler", &address, "--bind", &bind, "--cores", "1"]);
            prepare(&mut command);
            cluster.executors.push(quiet(&mut command).spawn()?);
        }
        Ok(cluster)
    }

    /// The address for `--cluster`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The warnings and errors of the scheduler so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.path(LOG)).unwrap_or_default()
    }

    /// Kills an executor with SIGKILL.
    ///
    /// # Errors
    /// If it has ended already.
    pub fn kill_executor(&mut self, number: usize) -> io::Result<()> {
        self.executors[number].kill()
    }
}

/// The name of the scheduler's log.
const LOG: &str = "scheduler.log";

fn quiet(command: &mut Command) -> &mut Command {
    let command = command.current_dir(env::temp_dir()).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null())
}

/// An address on loopback with a free port.
///
/// # Errors
/// If there is none.
pub fn free_address() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
