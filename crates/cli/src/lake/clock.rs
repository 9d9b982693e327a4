//! The length of inputs that do not say when they began.

use std::io::{self, Seek as _};
use std::ops::ControlFlow;

use borehole::model::{Context, Event, ProfileSink, Sample, Tables};
use borehole::{Input, InputOptions, Source};
use borehole_analysis::tokio::TokioSink;

use super::add::Readable;
use crate::interrupt::Interruptible;

/// Finds the last time of an input, until it turns out to be dated or to have no times.
#[derive(Default)]
struct LengthSink {
    tokio: Option<Box<TokioSink>>,
    last_ns: i64,
    is_known: bool,
}

impl LengthSink {
    fn see(&mut self, time_ns: i64) -> ControlFlow<()> {
        self.last_ns = self.last_ns.max(time_ns);
        if self.is_known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl ProfileSink for LengthSink {
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.is_known |= at.segment.start_unix_ns.is_some();
        Ok(())
    }

    fn sample(&mut self, _at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.is_known |= sample.time_ns.is_none();
        Ok(self.see(sample.time_ns.unwrap_or(0)))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let tokio = self.tokio.get_or_insert_with(|| Box::new(TokioSink::new(None)));
        let _ = tokio.event(at, event)?;
        self.is_known |= tokio.unix_offset_ns().is_some();
        let time_ns = event.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok());
        Ok(self.see(time_ns.unwrap_or(0)))
    }

    fn watches_events(&mut self) -> bool {
        true
    }
}

/// The last time of an input that does not say when it began, counted from its beginning; 0 for all others. An input that was
/// written last when it ended began so long before.
pub(super) fn undated_length_ns(readable: &Readable, options: &InputOptions) -> anyhow::Result<i64> {
    let mut sink = LengthSink::default();
    let source = Source::file(&readable.name, readable.file.try_clone()?)?;
    // Problems are reported when the input is added.
    if let Ok(input) = Input::open(source, options) {
        let _ = input.read_into(&mut Tables::default(), &mut Interruptible(&mut sink));
    }
    (&readable.file).rewind()?;
    Ok(if sink.is_known { 0 } else { sink.last_ns })
}
