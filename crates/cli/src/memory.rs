//! The memory that the command may hold, and its end when there is no more.

use std::io::{Cursor, Write as _};
use std::sync::OnceLock;
use std::{fs, io};

use borehole_memory::Refusal;
use clap::Args;
use nix::sys::resource::{Resource, getrlimit};

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
        borehole_memory::on_refusal(end);
        if let Some(asked) = self.max_memory {
            let _ = ASKED.set(asked);
        }
        borehole_memory::set_budget(self.max_memory.unwrap_or_else(default_budget));
    }
}

/// The bytes that `--max-memory` allows; `None` if it was not given.
pub(crate) fn asked() -> Option<usize> {
    ASKED.get().copied()
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

/// Ends the command because an allocation failed. It must not allocate.
#[expect(clippy::exit, reason = "std would abort, and leave the files behind that are not complete")]
fn end(refusal: Refusal) {
    let mut text = Cursor::new([0; 160]);
    let _ = match refusal {
        Refusal::Budget { budget } => writeln!(
            text,
            "error: needs more than {} MiB of memory\nhint: allow more with --max-memory",
            budget >> 20
        ),
        Refusal::System { asked } => writeln!(text, "error: out of memory: the system refused {asked} bytes"),
    };
    #[expect(clippy::cast_possible_truncation, reason = "at most 160")]
    let length = text.position() as usize;
    let _ = nix::unistd::write(io::stderr(), &text.get_ref()[..length]);
    std::process::exit(2)
}
