//! The files of threads in `/proc`, as far as sampling needs them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

/// The thread numbers of a process in a PID namespace of its own, as this process sees them.
#[derive(Debug, Default)]
pub(crate) struct ThreadNumbers {
    /// Whether the process is in another namespace than this one.
    is_elsewhere: bool,
    /// By the number that the process sees.
    ours: HashMap<u64, i32>,
}

impl ThreadNumbers {
    pub(crate) fn of(process: i32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let is_elsewhere = innermost(&status).is_some_and(|number| i32::try_from(number) != Ok(process));
        Self { is_elsewhere, ours: HashMap::new() }
    }

    /// Reads the numbers again.
    pub(crate) fn refresh(&mut self, process: i32) {
        if !self.is_elsewhere {
            return;
        }
        let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let number = |entry: fs::DirEntry| {
            let thread: i32 = entry.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            Some((innermost(&status)?, thread))
        };
        self.ours = entries.filter_map(number).collect();
    }

    /// The number by which this process knows a thread.
    pub(crate) fn ours(&self, theirs: u64) -> Option<i32> {
        if self.is_elsewhere { self.ours.get(&theirs).copied() } else { i32::try_from(theirs).ok() }
    }
}

/// The number of a thread in its own namespace.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, `NSpid`: the numbers from this namespace to the innermost one.
fn innermost(status: &str) -> Option<u64> {
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

/// The state of a thread in the scheduler.
#[derive(Debug)]
pub(crate) struct ThreadState {
    file: File,
    format: StateFormat,
}

/// The file that says whether a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StateFormat {
    /// The system call in which the thread waits, or the word `running`. Reading it takes a third of the time, because the
    /// kernel adds nothing up for it.
    ///
    /// Source: Linux, `fs/proc/base.c`, `proc_pid_syscall`, and `lib/syscall.c`.
    SystemCall,
    /// One of many figures.
    Figures,
}

impl ThreadState {
    /// `None` if the system does not say it, or has no more files to open.
    pub(crate) fn of(process: i32, thread: i32) -> Option<Self> {
        let open = |name: &str, format| {
            let file = File::open(format!("/proc/{process}/task/{thread}/{name}")).ok()?;
            Some(Self { file, format })
        };
        // Not every kernel has the first, and reading it may be forbidden.
        let first = open("syscall", StateFormat::SystemCall).filter(|state| state.is_on_cpu().is_some());
        first.or_else(|| open("stat", StateFormat::Figures))
    }

    /// Whether the kernel says that a thread waits only once it is off its CPU.
    ///
    /// Source: Linux, `lib/syscall.c`, `task_current_syscall`: it waits until the thread is inactive.
    pub(crate) fn is_exact(&self) -> bool {
        self.format == StateFormat::SystemCall
    }

    /// Whether the thread runs or waits for a CPU only; `None` if the thread has ended.
    pub(crate) fn is_on_cpu(&self) -> Option<bool> {
        let mut text = [0; 64];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = &text[..length];
        match self.format {
            StateFormat::SystemCall => Some(text.starts_with(b"running")),
            StateFormat::Figures => {
                // The name is in parentheses, may itself contain some, and has at most 15 bytes.
                let behind_name = text.iter().rposition(|&byte| byte == b')')?;
                text.get(behind_name + 2).map(|&state| state == b'R')
            }
        }
    }
}

/// How often a thread was given a CPU. While the number stays the same, a thread that was off its CPU is still.
#[derive(Debug)]
pub(crate) struct ThreadTurns(File);

impl ThreadTurns {
    /// `None` if the system does not say it, or has no more files to open.
    pub(crate) fn of(process: i32, thread: i32) -> Option<Self> {
        Some(Self(File::open(format!("/proc/{process}/task/{thread}/schedstat")).ok()?))
    }

    /// `None` if the thread has ended, or the kernel does not count.
    ///
    /// Source: Linux, `Documentation/scheduler/sched-stats.rst`: the time on a CPU, the time of waiting for one, and the number
    /// of times that the thread was given one; all are zero if the kernel does not count.
    pub(crate) fn count(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.0.read_at(&mut text, 0).ok()?;
        let last = text[..length].trim_ascii_end().rsplit(|&byte| byte == b' ').next()?;
        std::str::from_utf8(last).ok()?.parse().ok().filter(|&turns| turns > 0)
    }
}

/// The CPU time that a process has used outside the kernel and within, in nanoseconds, with that of threads that have ended; `None` if
/// it has ended itself.
///
/// Source: Linux, `Documentation/filesystems/proc.rst`, `stat`: the fields 14 and 15, in hundredths of a second.
pub(crate) fn used_cpu_ns(process: i32) -> Option<[u64; 2]> {
    const TICK_NS: u64 = 10_000_000;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in parentheses, and may itself contain some.
    let (_, behind_name) = text.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let mut next = || Some(fields.next()?.ok()?.saturating_mul(TICK_NS));
    Some([next()?, next()?])
}

/// The name that the kernel has for a thread.
pub(crate) fn name(process: i32, thread: i32) -> Option<Vec<u8>> {
    let name = fs::read(format!("/proc/{process}/task/{thread}/comm")).ok()?;
    Some(name.trim_ascii_end().to_vec()).filter(|name| !name.is_empty())
}

/// The names of threads that differ from those in `known`, which learns them.
pub(crate) fn new_names(
    process: i32,
    threads: impl Iterator<Item = i32>,
    known: &mut HashMap<u64, Vec<u8>>,
) -> Vec<(u64, Vec<u8>)> {
    let (mut before, mut new) = (std::mem::take(known), Vec::new());
    for thread in threads {
        let (Some(name), Ok(key)) = (name(process, thread), u64::try_from(thread)) else { continue };
        if before.remove(&key).as_ref() != Some(&name) {
            new.push((key, name.clone()));
        }
        known.insert(key, name);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_that_of_the_innermost_namespace() {
        assert_eq!(innermost("Name:\tx\nNSpid:\t4711\t12\nNSpgid:\t1\t1\n"), Some(12));
        assert_eq!(innermost("Name:\tx\n"), None);
    }

    #[test]
    fn the_cpu_time_of_a_process_counts_threads_that_have_ended() {
        let process = i32::try_from(std::process::id()).unwrap();
        let used = || used_cpu_ns(process).unwrap().into_iter().sum::<u64>();
        let before = used();
        while used() < before + 50_000_000 {
            std::thread::spawn(|| (0..100_000_u64).map(std::hint::black_box).sum::<u64>()).join().unwrap();
        }
        assert_eq!(used_cpu_ns(-1), None);
    }

    #[test]
    fn this_thread_is_on_a_cpu_and_one_that_waits_is_not() {
        let process = i32::try_from(std::process::id()).unwrap();
        let own = nix::unistd::gettid().as_raw();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (own_sender, own_receiver) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            own_sender.send(nix::unistd::gettid().as_raw()).unwrap();
            receiver.recv().unwrap_err();
        });
        let state = ThreadState::of(process, own_receiver.recv().unwrap()).unwrap();
        let file = File::open(format!("/proc/{process}/task/{own}/stat")).unwrap();
        let figures = ThreadState { file, format: StateFormat::Figures };
        assert_eq!(figures.is_on_cpu(), Some(true));
        while state.is_on_cpu() != Some(false) {
            std::thread::yield_now();
        }
        drop(sender);
        waiting.join().unwrap();
        assert_eq!(state.is_on_cpu(), None);
    }
}
