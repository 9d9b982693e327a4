//! Keeps what is read within the budget of memory, whatever a sink makes of it.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, ProfileSink, Sample, Tables};

/// A sink in front of another that fails once the program holds more memory than allowed: views and exporters that add up
/// or sort what they receive need no checks of their own.
pub(crate) struct Budgeted<'a>(pub(crate) &'a mut dyn ProfileSink);

impl ProfileSink for Budgeted<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.0)
    }

    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        borehole_memory::check()?;
        self.0.sample(at, sample)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        borehole_memory::check()?;
        self.0.event(at, event)
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.0.settle(tables)
    }
}
