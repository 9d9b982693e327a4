//! Keys, one by one.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Back,
}

/// The terminal while it gives keys at once and shows a screen of its own. Dropping it puts everything back.
pub(super) struct Keys {
    before: Termios,
    /// Standard input, without a buffer in which keys would wait unseen.
    input: File,
}

const ENTER_SCREEN: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE_SCREEN: &[u8] = b"\x1b[?25h\x1b[?1049l";

impl Keys {
    pub(super) fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        // Ctrl-C stays a signal.
        raw.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
        io::stdout().write_all(ENTER_SCREEN)?;
        Ok(Self { before, input: File::from(io::stdin().as_fd().try_clone_to_owned()?) })
    }

    /// The next key, if there is one in time.
    pub(super) fn next(&self, patience: Duration) -> io::Result<Option<Key>> {
        let patience = u16::try_from(patience.as_millis()).unwrap_or(u16::MAX);
        let mut ready = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, patience) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
            other => other?,
        };
        let mut byte = [0];
        Ok(match (&self.input).read(&mut byte)? {
            0 => Some(Key::Char('q')),
            _ => key(byte[0]),
        })
    }
}

fn key(byte: u8) -> Option<Key> {
    match byte {
        b'\r' | b'\n' => Some(Key::Enter),
        8 | 127 => Some(Key::Back),
        b' '..=b'~' => Some(Key::Char(char::from(byte))),
        _ => None,
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = io::stdout().write_all(LEAVE_SCREEN);
        let _ = io::stdout().flush();
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}
