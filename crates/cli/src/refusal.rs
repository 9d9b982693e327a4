//! Why a process cannot be looked into.

use borehole::capture::{Error, PhpOptions, PhpProcess};

/// What helps where a process seems to run no PHP.
pub(crate) const WHAT_IS_PHP: &str =
    "only PHP 7.0 to 8.6 is understood; --php-path names the program or library that is PHP";

/// PHP in the process of this number, which may just have been started.
pub(crate) fn attach(process: i32, options: &PhpOptions) -> anyhow::Result<PhpProcess> {
    PhpProcess::attach_when_ready(process, options).map_err(|error| of_process(process, error))
}

/// An error about the process of this number, which its text names.
pub(crate) fn of_process(process: i32, error: Error) -> anyhow::Error {
    let is_named = names_process(&error);
    let error = anyhow::Error::new(error);
    if is_named { error } else { error.context(format!("process {process}")) }
}

/// Why the process of this number is not sampled.
pub(crate) fn text(process: i32, error: &Error) -> String {
    if names_process(error) { error.to_string() } else { format!("process {process}: {error}") }
}

/// What is wrong with a process names it, what is wrong with its PHP does not.
fn names_process(error: &Error) -> bool {
    !matches!(error, Error::Php(php) if php.process().is_none())
}
