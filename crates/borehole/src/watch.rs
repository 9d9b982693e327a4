//! Reading that can be watched and cancelled.

use std::cell::RefCell;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{error, fmt};

use borehole_model::{Context, Event, ProfileSink, Sample, Tables};

/// Cancels what reads an input, from any thread: see [`Input::cancelled_by`](crate::Input::cancelled_by). Clones are one token.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::{CancelToken, ErrorKind, Format, Input, InputOptions, Source, Target, convert};
///
/// let token = CancelToken::default();
/// let stacks = Source::reader("stacks", &b"main;query 3\n"[..]);
/// let input = Input::open(stacks, &InputOptions::default())?.cancelled_by(&token);
/// token.cancel();
/// let outcome = convert([input], &Target::new(Format::Folded), std::io::sink());
/// assert_eq!(outcome.err().map(|error| error.kind()), Some(ErrorKind::Cancelled));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels. The work ends at the next sample, or when the reader next asks for bytes.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How much of an input was read.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::model::Count;
/// use borehole::{Input, InputOptions, Progress, Source, import_all};
///
/// let stacks = Source::reader("stacks", &b"main;query 3\n"[..]);
/// let shown = |progress: Progress| println!("{} bytes of {:?}", progress.read_bytes, progress.size_bytes);
/// let input = Input::open(stacks, &InputOptions::default())?.on_progress(shown);
/// import_all([input], &mut Count::default())?;
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The bytes read so far, of the file itself.
    pub read_bytes: u64,
    /// The bytes of the input; `None` if they are unknown before its end.
    pub size_bytes: Option<u64>,
}

impl Progress {
    /// The part that was read, from 0 to 1; `None` if the size is unknown.
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let size_bytes = self.size_bytes?;
        if size_bytes == 0 { Some(1.0) } else { Some((self.read_bytes as f64 / size_bytes as f64).min(1.0)) }
    }
}

/// Hears of progress.
pub(crate) type OnProgress = Box<dyn FnMut(Progress) + Send>;

/// Who watches the reading of an input.
#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) token: Option<CancelToken>,
    pub(crate) on_progress: Option<RefCell<OnProgress>>,
}

impl Watch {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.token.as_ref().is_some_and(CancelToken::is_cancelled)
    }

    pub(crate) fn tell(&self, read_bytes: u64, size_bytes: Option<u64>) {
        if let Some(on_progress) = &self.on_progress {
            on_progress.borrow_mut()(Progress { read_bytes, size_bytes });
        }
    }
}

/// The bytes of a watched input.
pub(crate) struct WatchedRead<'w, R> {
    pub(crate) bytes: R,
    pub(crate) watch: &'w Watch,
    pub(crate) read_bytes: u64,
    pub(crate) size_bytes: Option<u64>,
}

impl<R: Read> Read for WatchedRead<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.watch.is_cancelled() {
            return Err(io::Error::other(Cancelled));
        }
        let count = self.bytes.read(out)?;
        self.read_bytes += count as u64;
        self.watch.tell(self.read_bytes, self.size_bytes);
        Ok(count)
    }
}

/// A sink that stops its reader once a token is cancelled.
pub(crate) struct CancellableSink<'a> {
    pub(crate) sink: &'a mut dyn ProfileSink,
    pub(crate) watch: &'a Watch,
}

impl CancellableSink<'_> {
    fn flow(&self, flow: ControlFlow<()>) -> ControlFlow<()> {
        if self.watch.is_cancelled() { ControlFlow::Break(()) } else { flow }
    }
}

impl ProfileSink for CancellableSink<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.sink.sample(at, sample)?;
        Ok(self.flow(flow))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let flow = self.sink.event(at, event)?;
        Ok(self.flow(flow))
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sink.settle(tables)
    }
}

/// The error of a reader whose input was cancelled.
#[derive(Debug)]
struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cancelled")
    }
}

impl error::Error for Cancelled {}
