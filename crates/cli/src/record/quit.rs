//! The key q, which ends a recording on a terminal.
//!
//! Source: reli 0.12, whose `inspector:trace` and `inspector:daemon` end at this key.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

use crate::{interrupt, suspend};

/// Whether keys are read.
static HEEDED: AtomicBool = AtomicBool::new(false);

static PRESSED: AtomicBool = AtomicBool::new(false);

/// The settings of the terminal while it delivers keys at once.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Restores the terminal when it is dropped.
pub(super) struct HeededKeys;

/// From here on, [`asked_to_end`] reads keys, if standard input is a terminal. If standard output is a pipe, the keys are left
/// to the other program, which may be a pager.
pub(super) fn heed() -> HeededKeys {
    if io::stdin().is_terminal() && !is_piped().unwrap_or(false) {
        HEEDED.store(true, Ordering::Relaxed);
        suspend::heed();
        interrupt::before_leaving(restore);
    }
    HeededKeys
}

impl Drop for HeededKeys {
    fn drop(&mut self) {
        HEEDED.store(false, Ordering::Relaxed);
        restore();
        suspend::heed_no_more();
    }
}

/// Whether the user asked to end the recording, by a signal or by the key. Reads the keys that were pressed.
pub(super) fn asked_to_end() -> bool {
    if HEEDED.load(Ordering::Relaxed) {
        read_keys();
    }
    interrupt::requested() || was_pressed()
}

/// Whether the key was pressed.
pub(super) fn was_pressed() -> bool {
    PRESSED.load(Ordering::Relaxed)
}

/// Whether standard output is a pipe.
fn is_piped() -> io::Result<bool> {
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(output.metadata()?.file_type().is_fifo())
}

fn read_keys() {
    if suspend::take() {
        restore();
        suspend::stop();
    }
    // The kernel stops background programs that use the terminal.
    if !is_in_foreground() || prepare().is_err() {
        return;
    }
    let mut keys = [0; 64];
    while is_ready() {
        match io::stdin().read(&mut keys) {
            Ok(count @ 1..) => PRESSED.fetch_or(keys[..count].contains(&b'q'), Ordering::Relaxed),
            // The terminal is gone.
            _ => HEEDED.swap(false, Ordering::Relaxed),
        };
    }
}

fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn is_ready() -> bool {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    HEEDED.load(Ordering::Relaxed) && poll(&mut ready, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

/// Lets the terminal deliver keys at once and without an echo.
fn prepare() -> io::Result<()> {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    if before.is_none() {
        let found = tcgetattr(io::stdin())?;
        let mut settings = found.clone();
        settings.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &settings)?;
        *before = Some(found);
    }
    Ok(())
}

/// Restores the terminal, once.
fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before);
    }
}
