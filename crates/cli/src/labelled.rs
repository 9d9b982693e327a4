//! Labels samples with the name of their input.
//!
//! Samples with labels get another one when their labels are interned ([`of_input`]); the others get one in the sink.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::model::{
    Context, Label, LabelValue, LabelsId, Sample, StringId, TableFull, Tables, Thread, dial9,
};

/// The key of the label.
const KEY: &[u8] = dial9::label::INPUT.as_bytes();

/// Adds the input's name to all label sets interned from now on. Returns the set of only that label.
pub(crate) fn of_input(name: &str, tables: &mut Tables) -> Result<LabelsId, TableFull> {
    let key = tables.intern_string(KEY)?;
    let value = LabelValue::Text(tables.intern_string(name.as_bytes())?);
    let label = Label { key, value };
    tables.set_common_labels(vec![label]);
    tables.intern_labels(&[label])
}

/// The process in the name of a file. Python's profiler names the files of subprocesses `NAME_PID.bin`.
///
/// Source: CPython 3.15.2, `profiling/sampling/_child_monitor.py`.
pub(crate) fn process_of(name: &str) -> Option<i64> {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let (_, number) = name.rsplit_once('.')?.0.rsplit_once('_')?;
    number.parse().ok().filter(|&process| process > 0)
}

/// Gives its labels to samples without labels, and its process to samples without a process.
pub(crate) struct Labelled<'a> {
    pub(crate) sink: &'a mut dyn ProfileSink,
    pub(crate) labels: LabelsId,
    /// The process of samples and threads without one.
    pub(crate) process: Option<i64>,
}

impl ProfileSink for Labelled<'_> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let labels = sample.labels.or(Some(self.labels));
        let process = sample.process.or(self.process(at));
        self.sink.sample(at, &Sample { labels, process, ..*sample })
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sink.settle(tables)
    }

    /// The thread gets the same process as its samples, so that its name is found.
    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        let process = thread.process.or(self.process(at));
        self.sink.thread(at, Thread { process, ..thread }, name)
    }
}

impl Labelled<'_> {
    /// The process for samples and threads without one.
    fn process(&self, at: Context<'_>) -> Option<i64> {
        self.process.filter(|_| at.segment.process.is_none())
    }
}

#[cfg(test)]
mod tests {
    use borehole::model::Segment;

    use super::*;

    /// The processes of samples and of named threads.
    #[derive(Default)]
    struct Processes(Vec<Option<i64>>);

    impl ProfileSink for Processes {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push(at.process(sample));
            Ok(ControlFlow::Continue(()))
        }

        fn thread(&mut self, _: Context<'_>, thread: Thread, _: StringId) -> io::Result<()> {
            self.0.push(thread.process);
            Ok(())
        }

        fn settle(&mut self, _: &Tables) -> io::Result<bool> {
            Ok(true)
        }
    }

    #[test]
    fn a_sink_that_can_do_without_stacks_is_asked_to() {
        let mut tables = Tables::default();
        let labels = of_input("a.rbt", &mut tables).unwrap();
        let mut sink = Processes::default();
        assert!(Labelled { sink: &mut sink, labels, process: None }.settle(&tables).unwrap());
    }

    #[test]
    fn the_name_of_a_thread_is_of_the_process_that_its_samples_are_given() {
        let mut tables = Tables::default();
        let labels = of_input("p_7.bin", &mut tables).unwrap();
        let name = tables.intern_string(b"main").unwrap();
        let mut sink = Processes::default();
        let mut labelled = Labelled { sink: &mut sink, labels, process: Some(7) };
        let at = Context { tables: &tables, segment: &Segment::default() };
        for process in [None, Some(8)] {
            let _ = labelled.sample(at, &Sample { process, ..Sample::default() }).unwrap();
            labelled.thread(at, Thread { process, number: 1 }, name).unwrap();
        }
        assert_eq!(sink.0, [7, 7, 8, 8].map(Some));
    }

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
