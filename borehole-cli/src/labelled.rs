//! Samples that say which input they are from.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::Warning;
use borehole::model::{Context, Event, Label, LabelValue, LabelsId, Sample, StringId, TableFull, Tables};

/// The key of the label.
const KEY: &[u8] = b"input";

/// A set of labels of nothing but the input's name.
pub(crate) fn of_input(name: &str, tables: &mut Tables) -> Result<LabelsId, TableFull> {
    let key = tables.intern_string(KEY)?;
    let value = LabelValue::Text(tables.intern_string(name.as_bytes())?);
    tables.intern_labels(&[Label { key, value }])
}

/// Gives samples without labels those it has; `None` gives none.
pub(crate) struct Labelled<'a> {
    pub(crate) sink: &'a mut dyn ProfileSink,
    pub(crate) labels: Option<LabelsId>,
}

impl ProfileSink for Labelled<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let labels = sample.labels.or(self.labels);
        self.sink.sample(at, &Sample { labels, ..*sample })
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.sink.event(at, event)
    }

    fn keeps_events(&self) -> bool {
        self.sink.keeps_events()
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.sink.source(name)
    }

    fn watches_events(&self) -> bool {
        self.sink.watches_events()
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.sink.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.sink.metadata(at, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        self.sink.thread(at, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(warning)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.sink.finish(tables)
    }
}
