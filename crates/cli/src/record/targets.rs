//! The processes to sample.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use anyhow::{bail, ensure};
use borehole::capture::{Attach, Finder, ProcessSelection, SubjectOptions, attach as attach_to, is_python};
use borehole_analysis::Pattern;
use borehole_process::{Launched, ancestors, exists, processes};

use crate::refusal;

/// The processes to sample.
#[derive(Clone, Debug)]
pub(crate) enum Targets {
    /// One process.
    Process(i32),
    /// A process and those that it starts.
    Family(i32),
    /// All processes whose command line matches.
    Matching(Pattern),
    /// A command to start, and its children.
    Command(Vec<OsString>),
}

impl Targets {
    pub(crate) const fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// Whether the process, the first of the processes, or the program of the command is Python.
    pub(crate) fn is_python(&self) -> bool {
        match self {
            Self::Process(process) | Self::Family(process) => is_python(*process),
            Self::Matching(pattern) => {
                let starters = ancestors();
                let all = processes().unwrap_or_default();
                let mut others = all.iter().filter(|process| !starters.contains(&process.id));
                others
                    .find(|process| pattern.is_match(&process.command))
                    .is_some_and(|process| is_python(process.id))
            }
            Self::Command(command) => command.first().is_some_and(|program| {
                let name = Path::new(program).file_name().unwrap_or_default().as_encoded_bytes();
                name.starts_with(b"python")
            }),
        }
    }

    /// The finder of the processes, and the command if one is started, with `output` as its standard output.
    pub(crate) fn finder(
        self,
        subjects: SubjectOptions,
        output: Stdio,
    ) -> anyhow::Result<(Finder, Option<Launched>)> {
        let (selection, command) = match self {
            Self::Process(process) => {
                // Fail early if the process cannot be sampled.
                drop(refusal::attach_any(process, &subjects)?);
                (ProcessSelection::One(process), None)
            }
            // The process itself may only start others, as a shell does.
            Self::Family(process) => {
                ensure!(exists(process), "process {process} does not exist");
                (ProcessSelection::Family(process), None)
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
        Ok((Finder::new(selection, attach(subjects)), command))
    }
}

fn attach(subjects: SubjectOptions) -> Attach {
    Box::new(move |process| attach_to(process, &subjects))
}
