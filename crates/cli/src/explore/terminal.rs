//! The terminal, while the explorer uses it.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read as _, Stdout, Write as _};
use std::os::fd::AsFd as _;
use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use borehole_tui::{ENTER, Explorer, InputDecoder, LEAVE, TerminalInput, TerminalScreen};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{InputFlags, LocalFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::{interrupt, messages, suspend};

/// How long to wait for the rest of a sequence.
const SEQUENCE: Duration = Duration::from_millis(30);

/// How long to wait for a key before checking the terminal's size.
const PATIENCE: Duration = Duration::from_millis(100);

/// The terminal and its original settings, which every way out of the program restores.
static BEFORE: Mutex<Option<(Termios, File)>> = Mutex::new(None);

/// Which keys arrive as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawKeys {
    /// All.
    All,
    /// All but those that send signals: Ctrl-C ends, Ctrl-Z stops.
    ButSignals,
}

/// A terminal in raw mode, which delivers bytes as they come. Dropping it restores the settings.
pub(crate) struct RawTerminal {
    input: File,
    given: RawKeys,
    /// Sequences that switch to the wanted screen.
    screen: &'static [&'static [u8]],
    was_away: bool,
}

impl RawTerminal {
    /// Uses the terminal on standard input, or else the controlling terminal.
    pub(crate) fn enter(given: RawKeys, screen: &'static [&'static [u8]]) -> io::Result<Self> {
        let input = if io::stdin().is_terminal() {
            File::from(io::stdin().as_fd().try_clone_to_owned()?)
        } else {
            File::open("/dev/tty")?
        };
        let raw = Self { input, given, screen, was_away: false };
        raw.begin()?;
        interrupt::before_leaving(restore);
        suspend::heed();
        restore_on_panic();
        Ok(raw)
    }

    fn begin(&self) -> io::Result<()> {
        let before = tcgetattr(&self.input)?;
        let mut settings = before.clone();
        match self.given {
            RawKeys::All => cfmakeraw(&mut settings),
            RawKeys::ButSignals => {
                settings.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
                // Output stopped by Ctrl-S would also stop the end of the program.
                settings.input_flags.remove(InputFlags::IXON);
            }
        }
        // In the background this waits until the program is in the foreground.
        tcsetattr(&self.input, SetArg::TCSANOW, &settings)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((before, self.input.try_clone()?));
        messages::hold();
        let mut out = io::stdout();
        self.screen.iter().try_for_each(|bytes| out.write_all(bytes))?;
        out.flush()
    }

    /// Bytes that come within `patience`: `None` if none do, empty at the end of the terminal. If the program was asked to stop
    /// (suspend), it stops here.
    pub(crate) fn read(&mut self, patience: Duration) -> io::Result<Option<Vec<u8>>> {
        if suspend::take() {
            restore();
            suspend::stop();
            self.begin()?;
            self.was_away = true;
            return Ok(None);
        }
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

    /// Whether another program has used the terminal since the last call, so that the screen's contents are unknown.
    pub(crate) const fn was_away(&mut self) -> bool {
        std::mem::replace(&mut self.was_away, false)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
        suspend::heed_no_more();
    }
}

/// Restores the terminal, once.
fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((before, input)) = before {
        // First the part that cannot block.
        let _ = tcsetattr(&input, SetArg::TCSANOW, &before);
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE);
        let _ = out.flush();
        messages::release();
    }
}

/// Restores the terminal before the message of a panic is printed.
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

/// Who handles the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// The explorer: it selects rows.
    Explorer,
    /// The terminal: it selects text.
    Terminal,
}

impl Mouse {
    /// The explorer, unless the user wants to select text.
    pub(crate) const fn unless(no_mouse: bool) -> Self {
        if no_mouse { Self::Terminal } else { Self::Explorer }
    }
}

/// Turns mouse reporting off again.
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// The terminal, with the screen that the explorer draws on.
pub(crate) struct Terminal {
    raw: RawTerminal,
    screen: TerminalScreen<BufWriter<Stdout>>,
    /// The size of what was drawn last; `None` if the screen's contents are unknown.
    drawn: Option<(u16, u16)>,
    decoder: InputDecoder,
}

impl Terminal {
    /// Whether standard output is a terminal.
    pub(crate) fn is_there() -> bool {
        io::stdout().is_terminal()
    }

    pub(crate) fn enter(mouse: Mouse) -> io::Result<Self> {
        let raw = RawTerminal::enter(
            RawKeys::All,
            match mouse {
                Mouse::Explorer => &[ENTER],
                Mouse::Terminal => &[ENTER, NO_MOUSE],
            },
        )?;
        Ok(Self {
            raw,
            screen: TerminalScreen::new(BufWriter::new(io::stdout())),
            drawn: None,
            decoder: InputDecoder::default(),
        })
    }

    /// Draws the explorer if it `has_changed`, or the terminal has.
    pub(crate) fn draw(&mut self, explorer: &mut impl Explorer, has_changed: bool) -> io::Result<()> {
        let size = terminal_size::terminal_size_of(io::stdout());
        let size = size.map_or((80, 24), |(width, height)| (width.0, height.0));
        if has_changed || self.drawn != Some(size) {
            self.screen.draw(explorer, size)?;
            self.drawn = Some(size);
        }
        Ok(())
    }

    /// The user's inputs; empty if there are none for a while.
    pub(crate) fn wait(&mut self) -> io::Result<Vec<TerminalInput>> {
        let patience = if self.decoder.is_waiting() { SEQUENCE } else { PATIENCE };
        self.wait_for(patience)
    }

    /// The user's inputs so far; waits only for the rest of a sequence.
    pub(crate) fn look(&mut self) -> io::Result<Vec<TerminalInput>> {
        let patience = if self.decoder.is_waiting() { SEQUENCE } else { Duration::ZERO };
        self.wait_for(patience)
    }

    fn wait_for(&mut self, patience: Duration) -> io::Result<Vec<TerminalInput>> {
        let read = self.raw.read(patience)?;
        if self.raw.was_away() {
            self.screen.forget();
            self.drawn = None;
        }
        match read {
            Some(bytes) if bytes.is_empty() => Err(io::Error::other("the terminal is gone")),
            Some(bytes) => Ok(but_stops(self.decoder.push(&bytes))),
            None => Ok(self.decoder.settle().into_iter().collect()),
        }
    }

    /// Sends text without drawing it.
    pub(crate) fn send(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// The key that suspends the program.
const CTRL_Z: &[u8] = b"\x1a";

/// Requests a suspension if Ctrl-Z is among the inputs, and returns the others.
fn but_stops(mut inputs: Vec<TerminalInput>) -> Vec<TerminalInput> {
    let count = inputs.len();
    inputs.retain(|input| !matches!(input, TerminalInput::Key(key) if key == CTRL_Z));
    if inputs.len() < count {
        suspend::ask();
    }
    inputs
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::process::{Command, Stdio};
    use std::{env, thread};

    use nix::pty::openpty;

    use super::*;

    /// Set in the program that panics.
    const PANICS: &str = "BOREHOLE_TEST_PANICS";

    /// Everything that has come from a terminal until its last user ended.
    fn collected(master: OwnedFd) -> thread::JoinHandle<Vec<u8>> {
        thread::spawn(move || {
            let (mut terminal, mut bytes, mut piece) = (File::from(master), Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = terminal.read(&mut piece) {
                bytes.extend_from_slice(&piece[..count]);
            }
            bytes
        })
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_its_message_behind_it() {
        if env::var_os(PANICS).is_some() {
            let _terminal = Terminal::enter(Mouse::Explorer).expect("a terminal");
            panic!("out of order");
        }
        let pty = openpty(None, None).expect("a pseudo-terminal");
        let before = tcgetattr(&pty.slave).expect("settings").local_flags;
        assert!(before.contains(LocalFlags::ICANON | LocalFlags::ECHO));
        let end = || Stdio::from(pty.slave.try_clone().expect("another"));
        let mut again = Command::new(env::current_exe().expect("this program"));
        again.args(["a_panic_leaves_the_terminal", "--nocapture", "--test-threads=1"]).env(PANICS, "1");
        let status = again.stdin(end()).stdout(end()).stderr(end()).status().expect("it starts");
        drop(again);
        assert!(!status.success());
        assert_eq!(tcgetattr(&pty.slave).expect("settings").local_flags, before);
        let reader = collected(pty.master);
        drop(pty.slave);
        let shown = reader.join().expect("it reads");
        let place = |wanted: &[u8]| shown.windows(wanted.len()).position(|found| found == wanted);
        let (entered, left, said) = (place(ENTER), place(LEAVE), place(b"out of order"));
        assert!(entered.is_some() && entered < left && left < said, "{entered:?} {left:?} {said:?}");
    }
}
