//! The terminal while the explorer has it.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Read as _, Stdout, Write as _};
use std::os::fd::AsFd as _;
use std::panic;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use borehole_tui::{Decoder, ENTER, Explorer, Input, LEAVE, Screen};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::termios::{InputFlags, LocalFlags, SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::{interrupt, messages, suspend};

/// How long the end of a sequence is waited for.
const SEQUENCE: Duration = Duration::from_millis(30);

/// How long a key is waited for before the size of the terminal is looked at.
const PATIENCE: Duration = Duration::from_millis(100);

/// The settings of the terminal before, and the terminal: what whoever ends the program puts back.
static BEFORE: Mutex<Option<(Termios, File)>> = Mutex::new(None);

/// Which keys come as the bytes that the terminal sends for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// All.
    All,
    /// Those that are no signals: Ctrl-C ends, Ctrl-Z stops.
    ButSignals,
}

/// A terminal that gives bytes as they come. Dropping it puts everything back.
pub(crate) struct Raw {
    input: File,
    given: Given,
    /// What asks the terminal for the screen that is wanted.
    screen: &'static [&'static [u8]],
    was_away: bool,
}

impl Raw {
    /// The terminal is standard input, or if that is something else the one that controls the program.
    pub(crate) fn enter(given: Given, screen: &'static [&'static [u8]]) -> io::Result<Self> {
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
            Given::All => cfmakeraw(&mut settings),
            Given::ButSignals => {
                settings.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
                // Output that Ctrl-S holds up would hold up the end as well.
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

    /// What has come, if something comes in time; nothing at the end of the terminal. If the program is to stop, it stops here.
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

    /// Whether somebody else has had the terminal since this was asked last: what it shows is not known.
    pub(crate) const fn was_away(&mut self) -> bool {
        std::mem::replace(&mut self.was_away, false)
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
        // First what cannot be held up.
        let _ = tcsetattr(&input, SetArg::TCSANOW, &before);
        let mut out = io::stdout();
        let _ = out.write_all(LEAVE);
        let _ = out.flush();
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

/// Whose the mouse is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mouse {
    /// It selects rows.
    Explorer,
    /// It selects text.
    Terminal,
}

impl Mouse {
    /// The explorer's, unless the user wants to select text.
    pub(crate) const fn unless(no_mouse: bool) -> Self {
        if no_mouse { Self::Terminal } else { Self::Explorer }
    }
}

/// Takes back what is asked of the mouse.
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";

/// The terminal with a screen of its own.
pub(crate) struct Terminal {
    raw: Raw,
    screen: Screen<BufWriter<Stdout>>,
    decoder: Decoder,
}

impl Terminal {
    /// Whether there is one to draw on.
    pub(crate) fn is_there() -> bool {
        io::stdout().is_terminal()
    }

    pub(crate) fn enter(mouse: Mouse) -> io::Result<Self> {
        let raw = Raw::enter(
            Given::All,
            match mouse {
                Mouse::Explorer => &[ENTER],
                Mouse::Terminal => &[ENTER, NO_MOUSE],
            },
        )?;
        Ok(Self { raw, screen: Screen::new(BufWriter::new(io::stdout())), decoder: Decoder::default() })
    }

    pub(crate) fn draw(&mut self, explorer: &mut impl Explorer) -> io::Result<()> {
        let size = terminal_size::terminal_size_of(io::stdout());
        self.screen.draw(explorer, size.map_or((80, 24), |(width, height)| (width.0, height.0)))
    }

    /// What the user did; nothing if that is nothing for a while.
    pub(crate) fn wait(&mut self) -> io::Result<Vec<Input>> {
        let patience = if self.decoder.is_waiting() { SEQUENCE } else { PATIENCE };
        self.wait_for(patience)
    }

    /// What the user has done by now; the end of a sequence is waited for.
    pub(crate) fn look(&mut self) -> io::Result<Vec<Input>> {
        let patience = if self.decoder.is_waiting() { SEQUENCE } else { Duration::ZERO };
        self.wait_for(patience)
    }

    fn wait_for(&mut self, patience: Duration) -> io::Result<Vec<Input>> {
        let read = self.raw.read(patience)?;
        if self.raw.was_away() {
            self.screen.forget();
        }
        match read {
            Some(bytes) if bytes.is_empty() => Err(io::Error::other("the terminal is gone")),
            Some(bytes) => Ok(but_stops(self.decoder.push(&bytes))),
            None => Ok(self.decoder.settle().into_iter().collect()),
        }
    }

    /// Sends a text that is not drawn.
    pub(crate) fn send(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// The key that stops whatever has the terminal.
const CTRL_Z: &[u8] = b"\x1a";

/// Asks to stop if that is among what the user did, and gives the rest.
fn but_stops(mut inputs: Vec<Input>) -> Vec<Input> {
    let count = inputs.len();
    inputs.retain(|input| !matches!(input, Input::Key(key) if key == CTRL_Z));
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
