//! Ctrl-Z while the command uses the terminal: restore the terminal for the shell, then stop.

use std::fs;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGSTOP, SIGTSTP};
use signal_hook::low_level::raise;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on, a request to stop waits until it is [taken](take).
pub(crate) fn heed() {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        // If registering fails, the command stops at once.
        let _ = signal_hook::flag::register(SIGTSTP, &ASKED);
    });
}

/// Asks the whole job to stop, as the terminal does for Ctrl-Z outside raw mode.
pub(crate) fn ask() {
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
}

/// Takes the request to stop, if there is one. It is ignored without a shell that could continue the command, as the kernel
/// does for commands that do not handle the signal.
pub(crate) fn take() -> bool {
    ASKED.swap(false, Ordering::Relaxed) && has_shell()
}

/// Stops the command. Returns when it is continued.
pub(crate) fn stop() {
    let _ = raise(SIGSTOP);
}

/// Whether the job has a shell: an ancestor in the same session but another process group.
fn has_shell() -> bool {
    let mut member = Relations::of("self");
    while let Some(Relations { parent, group, session }) = member {
        let above = Relations::of(&parent.to_string());
        if above.as_ref().is_none_or(|above| above.session != session) {
            return false;
        }
        if above.as_ref().is_some_and(|above| above.group != group) {
            return true;
        }
        member = above;
    }
    false
}

/// The parent, group and session of a process.
struct Relations {
    parent: i32,
    group: i32,
    session: i32,
}

impl Relations {
    /// The fields start after the last parenthesis, because the process name before may contain anything.
    ///
    /// Source: `proc_pid_stat(5)`.
    fn of(process: &str) -> Option<Self> {
        let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        let mut fields =
            std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace().skip(1).map(str::parse::<i32>);
        let mut next = || fields.next()?.ok();
        Some(Self { parent: next()?, group: next()?, session: next()? })
    }
}
