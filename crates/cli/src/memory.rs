//! The memory that the command may hold, and its end when there is no more.

use std::io::{Cursor, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use borehole_memory::{OverBudget, Refusal};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::gettid;
use signal_hook::low_level::exit;

use crate::messages::MORE_MEMORY;

/// The option for the memory of any command.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MemoryArgs {
    /// Memory that the command may hold, such as 2G [default: a quarter of the machine's, from 512M to 4G]
    #[arg(long, value_name = "SIZE", value_parser = budget, global = true, hide_short_help = true)]
    max_memory: Option<usize>,
}

/// The least and the most that the command may hold by default, in bytes.
const DEFAULTS: (u64, u64) = (512 << 20, 4 << 30);
/// The least that can be asked for, in bytes: the command itself takes a part of it.
const LEAST: usize = 32 << 20;

/// The bytes that were asked for.
static ASKED: OnceLock<usize> = OnceLock::new();

impl MemoryArgs {
    /// Keeps the command within its budget from here on.
    pub(crate) fn apply(self) {
        if let Some(asked) = self.max_memory {
            let _ = ASKED.set(asked);
        }
        borehole_memory::set_budget(self.max_memory.unwrap_or_else(default_budget));
    }
}

/// From here on, an allocation that fails ends the command as [`end`] does. Parsing the command line allocates already.
pub(crate) fn watch() {
    FIRST_DESTRUCTOR.with(|_| {});
    borehole_memory::on_refusal(end);
}

/// The bytes that `--max-memory` allows; `None` if it was not given.
pub(crate) fn asked() -> Option<usize> {
    ASKED.get().copied()
}

/// A value of a thread with a destructor. The first of them is registered with the C library, which aborts the process if it
/// has no memory left for that: so the command has one from the start, whatever it uses later.
struct Destructed;

impl Drop for Destructed {
    fn drop(&mut self) {}
}

thread_local! {
    static FIRST_DESTRUCTOR: Destructed = const { Destructed };
}

fn budget(text: &str) -> Result<usize, String> {
    let bytes = crate::values::size(text)?;
    match usize::try_from(bytes) {
        Ok(bytes) if bytes >= LEAST => Ok(bytes),
        _ => Err(format!("expected at least {}M, found {text}", LEAST >> 20)),
    }
}

/// A quarter of the memory that the command could get at all.
fn default_budget() -> usize {
    let limits = [machine(), group(), address_space()];
    let available = limits.into_iter().flatten().min().unwrap_or(DEFAULTS.1);
    usize::try_from((available / 4).clamp(DEFAULTS.0, DEFAULTS.1)).unwrap_or(usize::MAX)
}

/// The memory of the machine, in bytes.
fn machine() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The limit of the control group that the command is in, in bytes. Source: the kernel's cgroup-v2 documentation.
fn group() -> Option<u64> {
    let told = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = told.lines().find_map(|line| line.strip_prefix("0::"))?;
    fs::read_to_string(format!("/sys/fs/cgroup{path}/memory.max")).ok()?.trim().parse().ok()
}

/// The limit of the address space, in bytes.
fn address_space() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_AS).ok()?;
    (soft != u64::MAX).then_some(soft)
}

/// The exit code of a command that failed.
const FAILED: i32 = 2;

/// The thread that ends the command, or 0.
static ENDING: AtomicI32 = AtomicI32::new(0);

/// Ends the command because an allocation failed: says so, and removes the files that are not complete. What it needs itself it
/// takes from the stack. If an allocation fails here nevertheless, that ends the command at once. Other threads wait for the end.
fn end(refusal: Refusal) {
    let own = gettid().as_raw();
    match ENDING.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {}
        Err(ending) if ending == own => exit(FAILED),
        Err(_) => loop {
            thread::sleep(Duration::from_secs(1));
        },
    }
    let mut text = Cursor::new([0; 160]);
    let _ = match refusal {
        Refusal::Budget { budget } => {
            writeln!(text, "error: {}\nhint: {MORE_MEMORY}", OverBudget { budget })
        }
        Refusal::System { asked } => writeln!(text, "error: out of memory: the system refused {asked} bytes"),
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most 160")]
    let length = text.position() as usize;
    let _ = nix::unistd::write(io::stderr(), &text.get_ref()[..length]);
    borehole::remove_unfinished();
    exit(FAILED)
}
