//! Ctrl-C: the first asks the command to complete what it has, the second ends it at once.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use borehole::ProfileSink;
use borehole::model::{Context, Event, Sample, StringId, Tables, Warning};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Whether the user has asked to stop.
pub(crate) fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// From here on Ctrl-C is a request that an [`Interruptible`] sink heeds.
pub(crate) fn heed() {
    let handler = || {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    // Without a handler Ctrl-C ends the command at once, which leaves no file behind either.
    let _ = ctrlc::set_handler(handler);
}

/// A sink that has had enough once the user asks to stop.
pub(crate) struct Interruptible<'a>(pub(crate) &'a mut dyn ProfileSink);

impl ProfileSink for Interruptible<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if requested() { Ok(ControlFlow::Break(())) } else { self.0.sample(at, sample) }
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        if requested() { Ok(ControlFlow::Break(())) } else { self.0.event(at, event) }
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.0.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.0.metadata(at, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        self.0.thread(at, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.0.warning(warning)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.0.finish(tables)
    }
}
