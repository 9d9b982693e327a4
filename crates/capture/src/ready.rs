//! Retries for programs that have just been started.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// The pause before the next attempt.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// The time after which the failure has another cause than an early attempt.
pub(crate) const LIMIT: Duration = Duration::from_millis(500);

/// The time after which a program that is no interpreter is taken for what it is.
pub(crate) const PROGRAM_LIMIT: Duration = Duration::from_millis(200);

/// Repeats the attempt until it succeeds. A process that was just started may still be the shell that started it, or
/// may not have reached its first line.
///
/// # Errors
/// The error of the last attempt. An error that waiting cannot cure ends the attempts.
pub(crate) fn when_ready<T>(attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    when_ready_within(LIMIT, attempt)
}

/// Like [`when_ready`], with a limit of its own.
///
/// # Errors
/// As [`when_ready`].
pub(crate) fn when_ready_within<T>(
    limit: Duration,
    attempt: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.may_be_early() && begun.elapsed() < limit => thread::sleep(PAUSE),
            result => return result,
        }
    }
}
