//! Samples that say which input they are from.
//!
//! Those with labels get one more where their labels are interned ([`of_input`]), those without where they pass by.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::model::{Context, Label, LabelValue, LabelsId, Sample, TableFull, Tables};

/// The key of the label.
const KEY: &[u8] = b"input";

/// Labels everything that is interned from here on with the input's name. Answers a set of nothing but that.
pub(crate) fn of_input(name: &str, tables: &mut Tables) -> Result<LabelsId, TableFull> {
    let key = tables.intern_string(KEY)?;
    let value = LabelValue::Text(tables.intern_string(name.as_bytes())?);
    let label = Label { key, value };
    tables.set_common_labels(vec![label]);
    tables.intern_labels(&[label])
}

/// The process that the name of a file tells: Python's profiler calls the files of subprocesses `NAME_PID.bin`.
///
/// Source: CPython 3.15.2, `profiling/sampling/_child_monitor.py`.
pub(crate) fn process_of(name: &str) -> Option<i64> {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (_, number) = name.rsplit_once('.')?.0.rsplit_once('_')?;
    number.parse().ok().filter(|&process| process > 0)
}

/// Gives samples without labels those it has.
pub(crate) struct Labelled<'a> {
    pub(crate) sink: &'a mut dyn ProfileSink,
    pub(crate) labels: LabelsId,
    /// The process of samples that know of none.
    pub(crate) process: Option<i64>,
}

impl ProfileSink for Labelled<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let labels = sample.labels.or(Some(self.labels));
        let named = self.process.filter(|_| at.segment.process.is_none());
        let process = sample.process.or(named);
        self.sink.sample(at, &Sample { labels, process, ..*sample })
    }
}

#[cfg(test)]
mod tests {
    use super::process_of;

    #[test]
    fn only_a_number_behind_the_last_underscore_is_a_process() {
        for (name, process) in [
            ("run/profile_31275.bin", Some(31_275)),
            ("a_b_7.bin.gz", Some(7)),
            ("a_b_7.bin.zst", Some(7)),
            ("profile.bin", None),
            ("profile_x.bin", None),
            ("profile_0.bin", None),
            ("31275.bin", None),
        ] {
            assert_eq!(process_of(name), process, "{name}");
        }
    }
}
