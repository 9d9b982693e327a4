//! The processes to sample.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::bail;
use borehole::capture::{Attach, Finder, PhpOptions, PhpProcess, ProcessSelection, Subject};
use borehole_analysis::Pattern;
use borehole_process::Launched;

use crate::refusal;

/// The processes to sample.
#[derive(Clone, Debug)]
pub(crate) enum Targets {
    /// One process.
    Process(i32),
    /// All processes whose command line matches.
    Matching(Pattern),
    /// A command to start, and its children.
    Command(Vec<OsString>),
}

impl Targets {
    pub(crate) const fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// The finder of the processes, and the command if one is started, with `output` as its standard output.
    pub(crate) fn finder(self, php: PhpOptions, output: Stdio) -> anyhow::Result<(Finder, Option<Launched>)> {
        let (selection, command) = match self {
            Self::Process(process) => {
                // Fail early if the process cannot be sampled.
                drop(refusal::attach(process, &php)?);
                (ProcessSelection::One(process), None)
            }
            Self::Matching(pattern) => {
                (ProcessSelection::Matching(Box::new(move |line| pattern.is_match(line))), None)
            }
            Self::Command(command) => {
                let [program, arguments @ ..] = command.as_slice() else { bail!("missing command after --") };
                let launched = Launched::start(program, arguments, output)?;
                (ProcessSelection::Family(launched.id()), Some(launched))
            }
        };
        Ok((Finder::new(selection, attach(php)), command))
    }
}

fn attach(php: PhpOptions) -> Attach {
    Box::new(move |process| Ok(Box::new(PhpProcess::attach(process, &php)?) as Box<dyn Subject>))
}
