//! A cluster on loopback that a lake is asked through: a scheduler and executors, each a process with one core.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use anyhow::{Context as _, Result, ensure};

/// Its processes end with it.
pub(crate) struct Cluster {
    processes: Vec<Child>,
    url: String,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // One that has ended already needs no end.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// How long a scheduler may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

impl Cluster {
    /// Starts the scheduler and `executors` of the program for lakes, in the temporary folder: executors keep theirs there.
    pub(crate) fn start(program: &Path, executors: usize) -> Result<Self> {
        let address = free_address()?;
        let url = format!("df://{address}");
        let mut cluster = Self { processes: Vec::new(), url };
        cluster.add(program, &["scheduler", "--bind", &address])?;
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&address).is_err() {
            ensure!(Instant::now() < deadline, "expected a scheduler at {address}, found none");
            thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..executors {
            let place = free_address()?;
            cluster.add(program, &["executor", "--scheduler", &address, "--bind", &place, "--cores", "1"])?;
        }
        Ok(cluster)
    }

    fn add(&mut self, program: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(env::temp_dir());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.processes.push(process.with_context(|| program.display().to_string())?);
        Ok(())
    }

    /// How a question names it.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(format!("127.0.0.1:{}", listener.local_addr()?.port()))
}
