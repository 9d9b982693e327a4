//! Patience with programs that have just been started.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// A program that has just been started is not ready yet.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// What is not ready after this time is something else.
pub(crate) const LIMIT: Duration = Duration::from_millis(500);

/// Attempts until what runs in the process is ready: it may still be the shell that has started it, or on its way to its first line.
///
/// # Errors
/// That of the last attempt; one that says that no time will help is the last.
pub(crate) fn when_ready<T>(attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.may_be_early() && begun.elapsed() < LIMIT => thread::sleep(PAUSE),
            result => return result,
        }
    }
}
