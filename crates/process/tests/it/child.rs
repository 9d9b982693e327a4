//! Child processes for tests: this program again, in a role.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const ROLE: &str = "BOREHOLE_TEST_ROLE";

/// The memory of the child: a unique pattern.
pub(crate) fn pattern(index: usize) -> u8 {
    (index.wrapping_mul(167) >> 3).to_le_bytes()[0]
}

pub(crate) const PATTERN_BYTES: usize = 300_000;

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Runs only in the child, where the variable is set.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let bytes: Vec<u8> = (0..PATTERN_BYTES).map(pattern).collect();
    match role.as_str() {
        "wait" => {}
        "count" => count(4),
        role => panic!("unknown role {role}"),
    }
    println!("\nready {} {}", bytes.as_ptr().addr(), (&raw const COUNTER).addr());
    std::io::stdout().flush().unwrap();
    // Ends when the parent ends, in any way.
    let _ = std::io::stdin().read(&mut [0]);
    assert_eq!(bytes[9], pattern(9));
}

/// Counts on this many threads.
fn count(threads: usize) {
    for _ in 0..threads {
        std::thread::spawn(|| {
            loop {
                COUNTER.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(50));
            }
        });
    }
}

/// A child in a role, ended when this is dropped.
pub(crate) struct Role {
    pub(crate) child: Child,
    pub(crate) pattern_address: u64,
    pub(crate) counter_address: u64,
}

impl Role {
    pub(crate) fn start(role: &str) -> Self {
        Self::start_program(&std::env::current_exe().unwrap(), role)
    }

    pub(crate) fn start_program(program: &std::path::Path, role: &str) -> Self {
        let mut command = Command::new(program);
        command.args(["--exact", "child::role", "--nocapture"]).env(ROLE, role);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::of(command)
    }

    /// Starts a command that becomes this program in a role.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines.map(Result::unwrap).find(|line| line.starts_with("ready")).unwrap();
        let numbers: Vec<u64> = ready.split(' ').skip(1).map(|number| number.parse().unwrap()).collect();
        Self { child, pattern_address: numbers[0], counter_address: numbers[1] }
    }

    pub(crate) fn id(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    /// The letter of its state.
    pub(crate) fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        stat[stat.rfind(')').unwrap() + 2..].chars().next().unwrap()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds; fails if it never does.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
