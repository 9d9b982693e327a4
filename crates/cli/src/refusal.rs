//! Why a process cannot be read.

use borehole::capture::{Error, PhpOptions, PhpProcess, Subject, SubjectOptions, attach_when_ready};

use crate::suspend;

/// The hint for a process that does not seem to run PHP.
pub(crate) const WHAT_IS_PHP: &str =
    "PHP 7.0 to 8.6 is supported; --php-path names the program or library that is PHP";

/// The hint for a process that seems to run neither PHP nor Python.
pub(crate) const WHAT_IS_SAMPLED: &str = "PHP 7.0 to 8.6 and CPython 3.8 to 3.15 are supported; \
     --php-path names the program or library that is PHP, and record --native samples any program";

/// Attaches to PHP in a process, which may just have been started.
pub(crate) fn attach(process: i32, options: &PhpOptions) -> anyhow::Result<PhpProcess> {
    suspend::defer();
    PhpProcess::attach_when_ready(process, options).map_err(|error| of_process(process, error))
}

/// Attaches to a process by what it runs. It may just have been started.
pub(crate) fn attach_any(process: i32, options: &SubjectOptions) -> anyhow::Result<Box<dyn Subject>> {
    suspend::defer();
    attach_when_ready(process, options).map_err(|error| of_process(process, error))
}

/// The error with the number of the process, unless its text names it already.
pub(crate) fn of_process(process: i32, error: Error) -> anyhow::Error {
    let is_named = names_process(&error);
    let error = anyhow::Error::new(error);
    if is_named { error } else { error.context(format!("process {process}")) }
}

/// The reason why a process is not sampled, with its number.
pub(crate) fn text(process: i32, error: &Error) -> String {
    if names_process(error) { error.to_string() } else { format!("process {process}: {error}") }
}

/// Errors of a process name it; errors of its PHP or Python may not.
fn names_process(error: &Error) -> bool {
    match error {
        Error::Php(php) => php.process().is_some(),
        Error::Python(python) => python.process().is_some(),
        Error::OtherProgram(_) | Error::Unsupported(_) => false,
        _ => true,
    }
}
