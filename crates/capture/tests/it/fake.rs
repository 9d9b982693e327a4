//! A scripted subject, and a sink that remembers.

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver};

use borehole_capture::{
    Error, LiveSink, Look, SampleOptions, SampleStatistics, SamplingSession, SegmentMetadata, SessionControl,
    Subject,
};
use borehole_model::{Context, Frame, ProfileSink, Sample, StringId, Tables};
use borehole_process::ErrorKind;

/// The result of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Stack,
    Deep,
    Idle,
    Torn,
    Failed,
    Gone,
}

/// Follows its script, and is gone at the end of it.
pub(crate) struct Fake {
    pub(crate) process: i32,
    pub(crate) script: VecDeque<Act>,
}

impl Fake {
    pub(crate) fn boxed(process: i32, script: &[Act]) -> Box<dyn Subject> {
        Box::new(Self { process, script: script.iter().copied().collect() })
    }
}

pub(crate) fn stack(tables: &mut Tables, name: &str) -> borehole_model::StackId {
    let name = tables.intern_string(name.as_bytes()).unwrap();
    let frame = tables.intern_frame(&Frame::named(name)).unwrap();
    tables.intern_stack(None, frame).unwrap()
}

fn error(kind: ErrorKind) -> Error {
    borehole_process::Error::new(kind, "as the script has it").into()
}

impl Subject for Fake {
    fn process(&self) -> i32 {
        self.process
    }

    fn lanes(&self) -> usize {
        1
    }

    fn forget(&mut self) {}

    fn thread(&self, _lane: usize) -> Option<u64> {
        None
    }

    fn look(&mut self, _lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        match self.script.pop_front().unwrap_or(Act::Gone) {
            Act::Stack => Ok(Look::Stack { stack: stack(tables, "main"), omitted: 0 }),
            Act::Deep => Ok(Look::Stack { stack: stack(tables, "deep"), omitted: 7 }),
            Act::Idle => Ok(Look::Idle),
            Act::Torn => Ok(Look::Torn),
            Act::Failed => Err(error(ErrorKind::Malformed)),
            Act::Gone => Err(error(ErrorKind::Gone)),
        }
    }

    /// Small ids stand for processes that never end.
    fn refresh(&mut self) -> Result<(), Error> {
        let is_there = self.process < 100 || borehole_process::exists(self.process);
        if is_there { Ok(()) } else { Err(error(ErrorKind::Gone)) }
    }

    fn facts(&self) -> Vec<(String, String)> {
        vec![("fake".to_owned(), "yes".to_owned())]
    }
}

/// The written samples as text.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) lines: Vec<String>,
    pub(crate) flushes: usize,
}

fn text(at: Context<'_>, id: StringId) -> String {
    String::from_utf8_lossy(at.tables.string(id)).into_owned()
}

impl ProfileSink for Log {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let leaf = at.tables.frame(at.tables.leaf(sample.stack.unwrap())).function;
        let process = sample.process.map_or_else(String::new, |process| format!(" of {process}"));
        self.lines.push(format!("{}{process}", text(at, leaf)));
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let facts: Vec<_> = at
            .segment
            .metadata
            .iter()
            .map(|&(key, value)| format!("{}={}", text(at, key), text(at, value)))
            .collect();
        self.lines.push(format!("segment {} {}", at.segment.index, facts.join(" ")));
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        let value = text(at, value);
        if value != "0" {
            self.lines.push(format!("{}={value}", text(at, key)));
        }
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.lines.push("finish".to_owned());
        Ok(())
    }
}

impl LiveSink for Log {
    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        Ok(())
    }
}

/// Subjects that have arrived; no further ones follow.
pub(crate) fn arrived(subjects: Vec<Box<dyn Subject>>) -> Receiver<Box<dyn Subject>> {
    let (sender, receiver) = mpsc::channel();
    for subject in subjects {
        sender.send(subject).unwrap();
    }
    receiver
}

/// Samples them until they are gone.
pub(crate) fn run(options: SampleOptions, subjects: Vec<Box<dyn Subject>>) -> (SampleStatistics, Log) {
    let mut log = Log::default();
    let header = SegmentMetadata::default().with("test", "yes");
    let statistics = SamplingSession::new(options, header, &mut log, SessionControl::default())
        .run(&arrived(subjects))
        .unwrap();
    let SampleStatistics { asked, taken, idle, torn, gone, failed, missed, .. } = statistics;
    assert_eq!(asked, taken + idle + torn + gone + failed + missed, "{statistics:?}");
    (statistics, log)
}
