//! Ctrl-Z while the command has the terminal: the shell gets the terminal back as it was, and then the command stops.

use std::fs;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGSTOP, SIGTSTP};
use signal_hook::low_level::raise;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on a request to stop waits until somebody [takes](take) it.
pub(crate) fn heed() {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        // Without a handler the command stops at once.
        let _ = signal_hook::flag::register(SIGTSTP, &ASKED);
    });
}

/// Asks the whole job to stop, as the terminal itself does where Ctrl-Z is not a key.
pub(crate) fn ask() {
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
}

/// Whether the command is to stop, since this was asked last. Where nobody could let it run on, it is not: the system does the
/// same to those who do not handle the signal.
pub(crate) fn take() -> bool {
    ASKED.swap(false, Ordering::Relaxed) && has_shell()
}

/// Stops. Comes back when the command runs on.
pub(crate) fn stop() {
    let _ = raise(SIGSTOP);
}

/// Whether there is somebody of the session, but not of the job, who has started the job: its shell.
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

/// To whom a process belongs.
struct Relations {
    parent: i32,
    group: i32,
    session: i32,
}

impl Relations {
    /// Source: `proc_pid_stat(5)`. A name may hold anything, so what follows it begins behind the last parenthesis.
    fn of(process: &str) -> Option<Self> {
        let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        let mut fields =
            std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace().skip(1).map(str::parse::<i32>);
        let mut next = || fields.next()?.ok();
        Some(Self { parent: next()?, group: next()?, session: next()? })
    }
}
