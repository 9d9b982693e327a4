//! Which processes to sample.

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::bail;
use borehole::capture::{Attach, Finder, PhpOptions, PhpProcess, Selection, Subject};
use borehole_analysis::Pattern;
use borehole_process::Launched;

use crate::refusal;

/// Which processes to sample.
#[derive(Clone, Debug)]
pub(crate) enum Targets {
    /// This process.
    Process(i32),
    /// All whose command lines match.
    Matching(Pattern),
    /// A command that is to be started, and what it starts.
    Command(Vec<OsString>),
}

impl Targets {
    /// What finds them, and the command if one was started, with this for its standard output.
    pub(crate) fn finder(self, php: PhpOptions, output: Stdio) -> anyhow::Result<(Finder, Option<Launched>)> {
        let (selection, command) = match self {
            Self::Process(process) => {
                // A process that cannot be sampled now is an error now.
                drop(refusal::attach(process, &php)?);
                (Selection::One(process), None)
            }
            Self::Matching(pattern) => {
                (Selection::Matching(Box::new(move |line| pattern.is_match(line))), None)
            }
            Self::Command(command) => {
                let [program, arguments @ ..] = command.as_slice() else {
                    bail!("missing command behind --")
                };
                let launched = Launched::start(program, arguments, output)?;
                (Selection::Family(launched.id()), Some(launched))
            }
        };
        Ok((Finder::new(selection, attach(php)), command))
    }
}

fn attach(php: PhpOptions) -> Attach {
    Box::new(move |process| Ok(Box::new(PhpProcess::attach(process, &php)?) as Box<dyn Subject>))
}
