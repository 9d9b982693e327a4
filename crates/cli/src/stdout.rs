//! Standard output: its name in messages, its errors, and its use by commands that are started.

use std::io;
use std::process::Stdio;

use borehole::Error;

/// The name of standard output in messages.
pub(crate) const STDOUT: &str = "standard output";

/// The error of a failed write to standard output.
pub(crate) fn stdout_error(source: io::Error) -> Error {
    Error::Write { name: STDOUT.to_owned(), source }
}

/// Standard output for a command that is started: standard error if ours `is_data`, which the command must not mix with
/// its own output.
pub(crate) fn stdout_of_command(is_data: bool) -> Stdio {
    if is_data { io::stderr().into() } else { Stdio::inherit() }
}
