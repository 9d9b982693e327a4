//! A cluster on loopback that lakes are asked through: a scheduler and executors, each a process with one core.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

/// How long a scheduler may take until it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster whose processes end with it.
#[derive(Debug)]
pub struct LakeCluster {
    scheduler: Child,
    executors: Vec<Child>,
    url: String,
}

impl Drop for LakeCluster {
    fn drop(&mut self) {
        for process in self.executors.iter_mut().chain([&mut self.scheduler]) {
            // One that has ended already needs no end.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl LakeCluster {
    /// Starts a scheduler and `executors`, of the program for lakes as `program` begins its command lines, in the temporary
    /// folder: executors keep theirs there. `prepare` may tell executors more.
    ///
    /// # Errors
    /// When the program cannot be started, or the scheduler does not listen in time.
    pub fn start(
        program: impl Fn() -> Command,
        executors: usize,
        prepare: impl Fn(&mut Command),
    ) -> io::Result<Self> {
        let address = free_address()?;
        // The least that there is: then an executor that was killed is soon missed.
        let scheduler = ["scheduler", "--bind", &address, "--executor-timeout", "10"];
        let scheduler = spawn(program().args(scheduler))?;
        let mut cluster = Self { scheduler, executors: Vec::new(), url: format!("df://{address}") };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&address).is_err() {
            if Instant::now() >= deadline {
                let message = format!("expected a scheduler at {address}, found none");
                return Err(io::Error::new(io::ErrorKind::TimedOut, message));
            }
            thread::sleep(Duration::from_millis(20));
        }
        for _ in 0..executors {
            let mut command = program();
            let place = free_address()?;
            command.args(["executor", "--scheduler", &address, "--bind", &place, "--cores", "1"]);
            prepare(&mut command);
            cluster.executors.push(spawn(&mut command)?);
        }
        Ok(cluster)
    }

    /// How a question names it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills an executor, as an accident would.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn kill_executor(&mut self, number: usize) -> io::Result<()> {
        self.executors[number].kill()
    }
}

fn spawn(command: &mut Command) -> io::Result<Child> {
    let command = command.current_dir(env::temp_dir()).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

/// A free port on the loopback, as an address.
///
/// # Errors
/// When there is none.
pub fn free_address() -> io::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}
