//! Ctrl-C, and the other requests to end: the first asks the command to complete what it has, the second ends it at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use borehole::model::{Context, Event, Sample, Tables, Warning};
use borehole::{Error, Output, ProfileSink};
use nix::poll::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The file that the second Ctrl-C removes.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// What the second Ctrl-C does before it ends the command.
static LEAVING: Mutex<Option<fn()>> = Mutex::new(None);

/// Signals that come so soon behind the first are the same request: coreutils' `timeout` sends its signal to the command, and
/// then to all of its group, where the command is again; and of the end of a terminal both the shell and the system tell.
///
/// Source: coreutils 9.1, `timeout.c`, `cleanup`; bash 5.2, `sig.c`, `termsig_handler`; Linux, `tty_jobctrl.c`,
/// `disassociate_ctty`.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// How long a pipe is waited for before looking whether the user has asked to stop.
const PATIENCE_MS: u8 = 100;

/// Whether the user has asked to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// From here on Ctrl-C, or a request to terminate, is heeded by what is [`Interruptible`].
pub(crate) fn heed() {
    heed_from(1);
}

/// From here on the first Ctrl-C, or request to terminate, does what otherwise the second does.
pub(crate) fn heed_at_once() {
    heed_from(0);
}

/// Heeds so many requests before one ends the command.
fn heed_from(heeded_requests: usize) {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        // Without a handler Ctrl-C ends the command at once.
        let Ok(mut signals) = Signals::new(heeded(borehole_process::ignores(SIGHUP))) else { return };
        let obey = move || {
            let mut requests = Requests::default();
            for _ in signals.forever() {
                REQUESTED.store(true, Ordering::Relaxed);
                if requests.count(Instant::now()) > heeded_requests {
                    leave();
                }
            }
        };
        let _ = thread::Builder::new().name("borehole-signals".to_owned()).spawn(obey);
    });
}

/// How often the end was asked for, and when first.
#[derive(Default)]
struct Requests {
    count: usize,
    first: Option<Instant>,
}

impl Requests {
    /// How many there are with the signal that has come now.
    fn count(&mut self, now: Instant) -> usize {
        let first = *self.first.get_or_insert(now);
        self.count += usize::from(self.count == 0 || now.duration_since(first) >= ONE_REQUEST);
        self.count
    }
}

/// The requests that are heeded. Where a hang-up is ignored, the command is to outlive its terminal. An interrupt that is ignored is
/// heeded all the same: shells ignore it for whatever a script starts in the background, and then it is a script that sends it.
///
/// Source: tcpdump 4.99, `tcpdump.c`, which does the same.
fn heeded(ignores_hang_up: bool) -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    signals.extend((!ignores_hang_up).then_some(SIGHUP));
    signals
}

/// `path` is of no use unless the command completes it.
pub(crate) fn unfinished(path: Option<&Path>) {
    *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = path.map(Path::to_owned);
}

/// Begins an output that is of no use unless the command completes it. Whoever ends the command at once meets it either not
/// there yet, or known.
pub(crate) fn begun(begin: impl FnOnce() -> Result<Output, Error>) -> Result<Output, Error> {
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let output = begin()?;
    *unfinished = output.unfinished().map(Path::to_owned);
    Ok(output)
}

/// The file that is not finished; `None` while one is being begun for long: nobody may ever open the other end of a pipe.
fn unfinished_now() -> Option<MutexGuard<'static, Option<PathBuf>>> {
    for _ in 0..PATIENCE_MS {
        match UNFINISHED.try_lock() {
            Ok(unfinished) => return Some(unfinished),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

/// Whoever ends the command at once calls `first` before.
pub(crate) fn before_leaving(first: fn()) {
    if let Ok(mut leaving) = LEAVING.lock() {
        *leaving = Some(first);
    }
}

#[expect(clippy::exit, reason = "the user will not wait for the work to unwind")]
fn leave() -> ! {
    // Held to the end: what is being worked out has nothing more to say.
    let _stderr = io::stderr().lock();
    if let Some(first) = LEAVING.lock().ok().and_then(|first| *first) {
        first();
    }
    // Held to the end, so that nothing more is begun.
    let mut unfinished = unfinished_now();
    if let Some(path) = unfinished.as_mut().and_then(|path| path.take()) {
        let _ = fs::remove_file(path);
    }
    std::process::exit(130)
}

/// A pipe that ends once the user asks to stop, even while nothing comes out of it.
pub(crate) struct InterruptibleRead {
    pub(crate) reader: Box<dyn Read>,
    /// What `reader` reads.
    pub(crate) pipe: File,
}

impl Read for InterruptibleRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !requested() {
            let mut pipe = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut pipe, PATIENCE_MS) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                _ => return self.reader.read(buffer),
            }
        }
        Ok(0)
    }
}

/// A sink that has had enough once the user asks to stop.
pub(crate) struct Interruptible<'a>(pub(crate) &'a mut dyn ProfileSink);

impl ProfileSink for Interruptible<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.0)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        // The sample is counted already: it is delivered, and then no more are.
        let flow = self.0.sample(at, sample)?;
        Ok(if requested() { ControlFlow::Break(()) } else { flow })
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.0.settle(tables)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.0.event(at, event)?;
        Ok(if requested() { ControlFlow::Break(()) } else { flow })
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        // Where a pipe was given up there is no damage that the output should tell of.
        if requested() { Ok(()) } else { self.0.warning(warning) }
    }
}
