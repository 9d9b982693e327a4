//! How the command ends.

use std::process::ExitCode;

use borehole::Recovery;

use crate::interrupt;

/// The outcome of a command, which determines its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Done,
    /// Success, but a threshold that the user set was crossed.
    Crossed,
    /// An error; nothing was written.
    Failed,
    /// Damaged input; the readable rest was written, and standard error says what was lost and where.
    Damaged,
    /// Interrupted; the output is valid.
    Interrupted,
}

impl Exit {
    /// The outcome of a command whose reading resulted in `recovery`.
    pub(crate) fn after(recovery: &Recovery) -> Self {
        match recovery {
            _ if interrupt::requested() => Self::Interrupted,
            recovery if recovery.is_clean() => Self::Done,
            _ => Self::Damaged,
        }
    }

    /// Combines the outcomes of several parts of a command: an error outweighs everything, otherwise the last part that did not
    /// succeed counts.
    pub(crate) fn and(self, next: Self) -> Self {
        if self == Self::Failed || next == Self::Done { self } else { next }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_outweighs_other_outcomes() {
        let of_all = |exits: &[Exit]| exits.iter().fold(Exit::Done, |all, &next| all.and(next));
        assert_eq!(of_all(&[Exit::Done, Exit::Damaged, Exit::Done]), Exit::Damaged);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Interrupted]), Exit::Interrupted);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Failed, Exit::Damaged]), Exit::Failed);
    }
}
