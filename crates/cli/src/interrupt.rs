//! Ctrl-C and other requests to terminate: after the first, the command completes its output; the second ends it at once.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use borehole::model::{Context, Event, Sample, Tables, Warning};
use borehole::{Error, Output, ProfileSink};
use nix::poll::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// The unfinished file that the second Ctrl-C removes.
static UNFINISHED: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The function that the second Ctrl-C calls before it ends the command.
static LEAVING: Mutex<Option<fn()>> = Mutex::new(None);

/// Signals that follow the first within this time belong to the same request: coreutils' `timeout` signals the command and then
/// its process group, which includes the command, and both the shell and the kernel report the end of a terminal.
///
/// Source: coreutils 9.1, `timeout.c`, `cleanup`; bash 5.2, `sig.c`, `termsig_handler`; Linux, `tty_jobctrl.c`,
/// `disassociate_ctty`.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// How long to wait for a pipe before checking for an interrupt.
const PATIENCE_MS: u8 = 100;

/// Whether the user asked to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// From here on, the first Ctrl-C or request to terminate stops [`Interruptible`] sinks, and the second ends the command.
pub(crate) fn heed() {
    heed_from(1);
}

/// From here on, the first Ctrl-C or request to terminate ends the command.
pub(crate) fn heed_at_once() {
    heed_from(0);
}

/// Handles `heeded_requests` gracefully; the next one ends the command.
fn heed_from(heeded_requests: usize) {
    static HEEDED: Once = Once::new();
    HEEDED.call_once(|| {
        // Without a handler Ctrl-C ends the command at once.
        let Ok(mut signals) = Signals::new(heeded(borehole_process::ignores(SIGHUP))) else { return };
        let (started, start) = mpsc::sync_channel(1);
        let obey = move || {
            let _ = started.send(());
            let mut requests = Requests::default();
            for _ in signals.forever() {
                REQUESTED.store(true, Ordering::Relaxed);
                if requests.count(Instant::now()) > heeded_requests {
                    leave();
                }
            }
        };
        if thread::Builder::new().name("borehole-signals".to_owned()).spawn(obey).is_ok() {
            // A thread that starts while this one uses up the memory would abort the process: the C library needs some of it.
            let _ = start.recv();
        }
    });
}

/// The number of requests, and the time of the first.
#[derive(Default)]
struct Requests {
    count: usize,
    first: Option<Instant>,
}

impl Requests {
    /// Adds a signal, and returns the number of requests.
    fn count(&mut self, now: Instant) -> usize {
        let first = *self.first.get_or_insert(now);
        self.count += usize::from(self.count == 0 || now.duration_since(first) >= ONE_REQUEST);
        self.count
    }
}

/// The signals to handle. An ignored hang-up stays ignored, because the command should outlive its terminal. An ignored interrupt
/// is handled, because shells ignore it for background commands of scripts, and then scripts send it.
///
/// Source: tcpdump 4.99, `tcpdump.c`, which does the same.
fn heeded(ignores_hang_up: bool) -> Vec<i32> {
    let mut signals = vec![SIGINT, SIGTERM];
    signals.extend((!ignores_hang_up).then_some(SIGHUP));
    signals
}

/// Registers `path` as the file to remove if the command ends before completing it.
pub(crate) fn unfinished(path: Option<&Path>) {
    *UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner) = path.map(Path::to_owned);
}

/// Creates an output and registers its unfinished file. A request that ends the command meanwhile finds either no file or a
/// registered one.
pub(crate) fn begun(begin: impl FnOnce() -> Result<Output, Error>) -> Result<Output, Error> {
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    let output = begin()?;
    *unfinished = output.unfinished().map(Path::to_owned);
    Ok(output)
}

/// The unfinished file; `None` if the lock stays taken, because creating an output can wait forever for the reader of a pipe.
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

/// Registers a function to call before the command ends at once.
pub(crate) fn before_leaving(first: fn()) {
    if let Ok(mut leaving) = LEAVING.lock() {
        *leaving = Some(first);
    }
}

#[expect(clippy::exit, reason = "the user will not wait for the work to unwind")]
fn leave() -> ! {
    // Held until the end, so that other threads print nothing more.
    let _stderr = io::stderr().lock();
    if let Some(first) = LEAVING.lock().ok().and_then(|first| *first) {
        first();
    }
    // Held until the end, so that no further output is created.
    let mut unfinished = unfinished_now();
    if let Some(path) = unfinished.as_mut().and_then(|path| path.take()) {
        let _ = fs::remove_file(path);
    }
    std::process::exit(130)
}

/// A pipe that ends once the user asks to stop, even if no data arrives.
pub(crate) struct InterruptibleRead {
    pub(crate) reader: Box<dyn Read + Send>,
    /// The pipe that `reader` reads.
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

/// A sink that stops its source once the user asks to stop.
pub(crate) struct Interruptible<'a>(pub(crate) &'a mut dyn ProfileSink);

impl ProfileSink for Interruptible<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.0)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        // The source has counted the sample, so deliver it and stop afterwards.
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
        // The early end of an interrupted pipe is not damage.
        if requested() { Ok(()) } else { self.0.warning(warning) }
    }
}
