//! Samples that say which input they are from.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::model::{Context, Label, LabelValue, LabelsId, Sample, TableFull, Tables};

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
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let labels = sample.labels.or(self.labels);
        self.sink.sample(at, &Sample { labels, ..*sample })
    }
}
