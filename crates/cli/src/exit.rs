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

    /// How a command ends that did several things, of which `next` is how the next one ended: as the last that was not done, but
    /// nothing makes good for an error.
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
    fn nothing_makes_good_for_an_error() {
        let of_all = |exits: &[Exit]| exits.iter().fold(Exit::Done, |all, &next| all.and(next));
        assert_eq!(of_all(&[Exit::Done, Exit::Damaged, Exit::Done]), Exit::Damaged);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Interrupted]), Exit::Interrupted);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Failed, Exit::Damaged]), Exit::Failed);
    }
}
