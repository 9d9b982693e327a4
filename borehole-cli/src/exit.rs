//! How the command ends.

use std::process::ExitCode;

use borehole::Recovery;

use crate::interrupt;

/// The meaning of an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// Done, and a threshold that the user set was crossed.
    Crossed,
    /// An error; nothing was written.
    Failed,
    /// The input was damaged; what could be saved was written, and stderr says what was lost and where.
    Damaged,
    /// Interrupted; what was written is valid.
    Interrupted,
}

impl Exit {
    /// How a command ends that read what `recovery` says.
    pub(crate) fn after(recovery: &Recovery) -> Self {
        match recovery {
            _ if interrupt::requested() => Self::Interrupted,
            recovery if recovery.is_clean() => Self::Done,
            _ => Self::Damaged,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Crossed => 1,
            Exit::Failed => 2,
            Exit::Damaged => 3,
            Exit::Interrupted => 130,
        })
    }
}
