//! Attaches to a process by what it runs.

use borehole_process::{ForeignProcess as _, Process};

use crate::error::Error;
use crate::php::{PhpOptions, PhpProcess};
use crate::program::{ProgramOptions, ProgramProcess};
use crate::python::{PythonOptions, PythonProcess};
use crate::ready::{LIMIT, PROGRAM_LIMIT, when_ready_within};
use crate::subject::Subject;

/// The options for attaching to a process, whatever it runs.
#[derive(Default)]
pub struct SubjectOptions {
    /// For processes that run PHP.
    pub php: PhpOptions,
    /// For processes that run Python.
    pub python: PythonOptions,
    /// Which of them to look for.
    pub runtimes: Runtimes,
    /// For processes that run neither. `None`: they are refused.
    pub program: Option<ProgramOptions>,
}

/// The runtimes that are looked for in a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Runtimes {
    /// Both.
    #[default]
    Any,
    /// PHP only.
    Php,
}

/// Attaches to the process of this number.
///
/// # Errors
/// If the process does not exist, may not be read, or runs nothing that is supported. The error says which.
pub fn attach(id: i32, options: &SubjectOptions) -> Result<Box<dyn Subject>, Error> {
    or_program(attach_interpreter(id, options), id, options)
}

/// The process as one that runs any program, if it runs no interpreter and that is wanted.
fn or_program(
    attached: Result<Box<dyn Subject>, Error>,
    id: i32,
    options: &SubjectOptions,
) -> Result<Box<dyn Subject>, Error> {
    match (attached, &options.program) {
        (Err(error), Some(program)) if error.is_other_program() && !is_being_started(id) => {
            ProgramProcess::attach(id, program).map(boxed)
        }
        (attached, _) => attached,
    }
}

/// Whether a process is still a copy of this one, which is about to run another program.
fn is_being_started(id: i32) -> bool {
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    program(&id.to_string()).is_some_and(|other| Some(other) == program("self"))
}

fn attach_interpreter(id: i32, options: &SubjectOptions) -> Result<Box<dyn Subject>, Error> {
    if options.runtimes == Runtimes::Php {
        return Ok(Box::new(PhpProcess::attach(id, &options.php)?));
    }
    if looks_like_python(&Process::open(id)?) {
        return match PythonProcess::attach(id, &options.python) {
            Err(error) if error.is_other_program() => {
                PhpProcess::attach(id, &options.php).map(boxed).map_err(|_| error)
            }
            attached => attached.map(boxed),
        };
    }
    match PhpProcess::attach(id, &options.php) {
        Err(error) if error.is_other_program() => match PythonProcess::attach(id, &options.python) {
            Err(python) if python.is_other_program() => Err(neither(&error)),
            attached => attached.map(boxed),
        },
        attached => attached.map(boxed),
    }
}

/// Whether the program or a library of the process is called like Python, and none like a library of PHP: who loads PHP into a
/// Python wants to see what PHP does.
fn looks_like_python(process: &Process) -> bool {
    let has = |starts: &[&[u8]]| {
        process.mappings().iter().any(|mapping| {
            let name = mapping.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            starts.iter().any(|start| name.starts_with(start))
        })
    };
    has(&[b"python", b"libpython"]) && !has(&[b"libphp"])
}

fn boxed(subject: impl Subject + 'static) -> Box<dyn Subject> {
    Box::new(subject)
}

/// The error that a process runs neither, from the error that it does not run PHP.
fn neither(no_php: &Error) -> Error {
    let text = no_php.to_string();
    let found = text.rsplit_once(", found ").map_or("another program", |(_, found)| found);
    Error::OtherProgram(format!(
        "no PHP or Python found: expected a program or library that is one, found {found}"
    ))
}

/// Like [`attach`], for a process that may have just been started: retries for half a second, or for a fifth of one if any program
/// is wanted.
///
/// # Errors
/// As [`attach`].
pub fn attach_when_ready(id: i32, options: &SubjectOptions) -> Result<Box<dyn Subject>, Error> {
    // A program that stays what it is for so long is not about to become an interpreter, as `env` and shells are.
    let limit = if options.program.is_some() { PROGRAM_LIMIT } else { LIMIT };
    or_program(when_ready_within(limit, || attach_interpreter(id, options)), id, options)
}

/// Whether the program or a library of the process is called like Python. `false` if the process cannot be read.
#[must_use]
pub fn is_python(id: i32) -> bool {
    Process::open(id).is_ok_and(|process| looks_like_python(&process))
}
