//! How the command ends.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

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
    /// Success; the command that was recorded ended with this code, which is not 0.
    OfCommand(u8),
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

    /// The outcome of a recording that succeeded, of a command that ended by itself with `status`. A signal counts as
    /// shells count it: 128 more than its number.
    pub(crate) fn of_command(status: ExitStatus) -> Self {
        let signalled = || status.signal().map(|signal| signal + 128);
        match status.code().or_else(signalled).and_then(|code| u8::try_from(code).ok()) {
            Some(0) => Self::Done,
            code => Self::OfCommand(code.unwrap_or(u8::MAX)),
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
            Exit::OfCommand(code) => code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_commands_are_those_of_shells() {
        let of = |status: i32| Exit::of_command(ExitStatus::from_raw(status));
        assert_eq!([of(0), of(3 << 8)], [Exit::Done, Exit::OfCommand(3)]);
        // SIGSEGV with a core dump.
        assert_eq!(of(0x80 | 11), Exit::OfCommand(139));
    }

    #[test]
    fn an_error_outweighs_other_outcomes() {
        let of_all = |exits: &[Exit]| exits.iter().fold(Exit::Done, |all, &next| all.and(next));
        assert_eq!(of_all(&[Exit::Done, Exit::Damaged, Exit::Done]), Exit::Damaged);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Interrupted]), Exit::Interrupted);
        assert_eq!(of_all(&[Exit::Damaged, Exit::Failed, Exit::Damaged]), Exit::Failed);
    }
}
