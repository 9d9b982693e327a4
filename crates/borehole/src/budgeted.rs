//! Keeps what is read within the budget of memory, whatever a sink makes of it, and names the input in warnings.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use borehole_model::{Context, Event, ProfileSink, Sample, Tables, Warning};

/// A sink in front of another that fails once the program holds more memory than allowed: views and exporters that add up
/// or sort what they receive need no checks of their own.
pub(crate) struct Budgeted<'a> {
    pub(crate) sink: &'a mut dyn ProfileSink,
    /// The name of the input, for warnings.
    pub(crate) input: Arc<str>,
}

impl ProfileSink for Budgeted<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        borehole_memory::check()?;
        self.sink.sample(at, sample)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        borehole_memory::check()?;
        self.sink.event(at, event)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(&warning.clone().in_input(&self.input))
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sink.settle(tables)
    }
}
