//! The terminal while the explorer has it.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read as _, Stdout, Write as _};
use std::os::fd::AsFd as _;
use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use borehole_tui::{App, Decoder, ENTER, Input, LEAVE, Screen};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::{interrupt, messages};

/// How long the end of a sequence is waited for.
const SEQUENCE: Duration = Duration::from_millis(30);

/// How long a key is waited for before the size of the terminal is looked at.
const PATIENCE: Duration = Duration::from_millis(100);

/// The settings of the terminal before, and the terminal: what whoever ends the program puts back.
static BEFORE: Mutex<Option<(Termios, File)>> = Mutex::new(None);

/// A terminal that gives bytes as they come. Dropping it puts everything back.
pub(super) struct Raw {
    input: File,
}

impl Raw {
    /// The terminal is standard input, or if that is something else the one that controls the program.
    pub(super) fn enter() -> io::Result<Self> {
        let input = if io::stdin().is_terminal() {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            File::open("/dev/tty")?
        };
        let before = tcgetattr(&input)?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(&input, SetArg::TCSANOW, &raw)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((before, input.try_clone()?));
        interrupt::before_leaving(restore);
        messages::hold();
        restore_on_panic();
        Ok(Self { input })
    }

    /// What has come, if something comes in time; nothing at the end of the terminal.
    pub(super) fn read(&self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        let patience = u16::try_from(patience.as_millis()).unwrap_or(u16::MAX);
        let mut ready = [PollFd::new(self.input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, patience) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(None),
            other => other?,
        };
        let mut bytes = [0; 1024];
        let count = (&self.input).read(&mut bytes)?;
        Ok(Some(bytes[..count].to_vec()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Puts the terminal back as it was, once.
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((before, input)) = before {
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE);
        let _ = out.flush();
        let _ = tcsetattr(&input, SetArg::TCSANOW, &before);
        messages::release();
    }
}

/// A message of a panic is for the user's own screen.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            say(info);
        }));
    });
}

/// The terminal with a screen of its own.
pub(super) struct Terminal {
    raw: Raw,
    screen: Screen<BufWriter<Stdout>>,
    decoder: Decoder,
}

impl Terminal {
    /// Whether there is one to draw on.
    pub(super) fn is_there() -> bool {
        io::stdout().is_terminal()
    }

    pub(super) fn enter() -> io::Result<Self> {
        let raw = Raw::enter()?;
        let mut out = io::stdout();
        out.write_all(ENTER)?;
        out.flush()?;
        Ok(Self { raw, screen: Screen::new(BufWriter::new(out)), decoder: Decoder::default() })
    }

    pub(super) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        let size = terminal_size::terminal_size_of(io::stdout());
        self.screen.draw(app, size.map_or((80, 24), |(width, height)| (width.0, height.0)))
    }

    /// What the user did; nothing if that is nothing for a while.
    pub(super) fn wait(&mut self) -> io::Result<Vec<Input>> {
        let patience = if self.decoder.is_waiting() { SEQUENCE } else { PATIENCE };
        match self.raw.read(patience)? {
            Some(bytes) if bytes.is_empty() => Err(io::Error::other("the terminal is gone")),
            Some(bytes) => Ok(self.decoder.push(&bytes)),
            None => Ok(self.decoder.settle().into_iter().collect()),
        }
    }

    /// Sends a text that is not drawn.
    pub(super) fn send(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}
