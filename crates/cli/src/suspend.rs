//! Ctrl-Z and other requests of the terminal to suspend the command: it first restores the terminal for the shell, and lets
//! every process that it has stopped run on.

use std::fs::File;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use signal_hook::consts::{SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
use signal_hook::iterator::Signals;

/// Whether the command uses the terminal, so that Ctrl-Z waits until it is [taken](take).
static IS_HEEDED: AtomicBool = AtomicBool::new(false);

static ASKED: AtomicBool = AtomicBool::new(false);

/// From here on, the command is not suspended while it has stopped another process, which would stay stopped.
pub(crate) fn defer() {
    borehole_process::guard_holds();
    handle();
}

/// From here on, Ctrl-Z waits until it is [taken](take).
pub(crate) fn heed() {
    IS_HEEDED.store(true, Ordering::Relaxed);
    handle();
}

/// From here on, Ctrl-Z does not wait any more.
pub(crate) fn heed_no_more() {
    IS_HEEDED.store(false, Ordering::Relaxed);
    if take() {
        stop();
    }
}

fn handle() {
    static HANDLED: Once = Once::new();
    HANDLED.call_once(|| {
        let wanted = [SIGTSTP, SIGTTIN, SIGTTOU];
        // What was ignored when the command was started stays ignored.
        let wanted = wanted.into_iter().filter(|&signal| !borehole_process::ignores(signal));
        // Without a handler, the kernel suspends the command at once.
        let Ok(mut signals) = Signals::new(wanted) else { return };
        let obey = move || {
            loop {
                let asked: Vec<_> = signals.wait().collect();
                asked.into_iter().filter(|&signal| !is_for_later(signal)).for_each(suspend);
            }
        };
        let _ = thread::Builder::new().name("borehole-suspend".to_owned()).spawn(obey);
    });
}

/// Whether a signal is left to whoever uses the terminal.
fn is_for_later(signal: i32) -> bool {
    let is_heeded = signal == SIGTSTP && IS_HEEDED.load(Ordering::Relaxed);
    if is_heeded {
        ASKED.store(true, Ordering::Relaxed);
    }
    is_heeded
}

/// Asks the whole job to stop, as the terminal does for Ctrl-Z outside raw mode.
pub(crate) fn ask() {
    let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
}

/// Takes the request to stop, if there is one.
pub(crate) fn take() -> bool {
    ASKED.swap(false, Ordering::Relaxed)
}

/// Suspends the command. Returns when it is continued, or at once without a shell that could continue it.
pub(crate) fn stop() {
    suspend(SIGTSTP);
}

fn suspend(signal: i32) {
    let is_in_foreground = if signal == SIGTSTP { None } else { is_in_foreground() };
    match is_in_foreground {
        // A thread that tries to use the terminal causes signals until the command is suspended. This one is from before that.
        Some(true) => {}
        // With the signal's own action, one more from that thread would suspend the command twice.
        Some(false) => borehole_process::suspend(SIGSTOP),
        None => borehole_process::suspend(signal),
    }
}

/// Whether the command may use its terminal; `None` if it has none.
fn is_in_foreground() -> Option<bool> {
    let terminal = File::open("/dev/tty").ok()?;
    Some(tcgetpgrp(terminal).ok()? == getpgrp())
}
