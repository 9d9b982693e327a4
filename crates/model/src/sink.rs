//! The trait for everything that takes a profile, and the outcome of reading one.

use std::borrow::Cow;
use std::io;
use std::ops::ControlFlow;

use borehole_text::{Warning, WarningKind};

use crate::event::Event;
use crate::ids::{StackId, StringId};
use crate::sample::Sample;
use crate::segment::Segment;
use crate::tables::Tables;
use crate::threads::Thread;

/// The tables that a sample's ids refer to, and its segment.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The tables of all ids so far. They only grow, so a column indexed by an id stays valid; columns of stacks do
    /// until [`ProfileSink::settle`] discards the stacks.
    pub tables: &'a Tables,
    /// The segment.
    pub segment: &'a Segment,
}

impl<'a> Context<'a> {
    /// The process of a sample: its own, or else its segment's.
    #[must_use]
    pub fn process(&self, sample: &Sample<'_>) -> Option<i64> {
        sample.process.or(self.segment.process)
    }

    /// The names of the functions of a stack, from the leaf to the root. Bytes that are not UTF-8 are replaced.
    pub fn functions_leaf_first(
        &self,
        stack: Option<StackId>,
    ) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        let tables = self.tables;
        let frames = tables.frames_leaf_first(stack);
        frames.map(|frame| String::from_utf8_lossy(tables.string(tables.function(frame))))
    }

    /// The thread of a sample, with its process.
    #[must_use]
    pub fn thread(&self, sample: &Sample<'_>) -> Option<Thread> {
        sample.thread.map(|number| Thread { process: self.process(sample), number })
    }
}

/// Takes a profile as it is read: an exporter, a view, or something in between.
///
/// Order of calls: for each input its segments, each followed by its samples and events, with `settle` between any of them;
/// `finish` once, after the last input. Only [`ProfileSink::sample`] is required.
///
/// The context passed with a sample is valid for that sample, whichever segment was announced last. Metadata after a segment's
/// first sample may name the process of the segment, and samples of segments that differ only in process and metadata may be
/// interleaved.
///
/// An error ends the run. It is the sink's own error (such as a full disk), never the input's.
pub trait ProfileSink {
    /// Takes a sample. On [`ControlFlow::Break`] the reader stops cleanly.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>>;

    /// The next sink, if this one sits in front of another. Methods that are not overridden forward to it, or do nothing
    /// if there is none.
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        None
    }

    /// Takes an event. Ignored unless overridden. On [`ControlFlow::Break`] the reader stops cleanly.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.next().map_or(Ok(ControlFlow::Continue(())), |next| next.event(at, event))
    }

    /// Whether events that carry stacks should stay events. The default is the answer of the next sink, or `false`
    /// without one.
    ///
    /// For sinks that do not keep them, readers turn them into samples, with symbolized addresses, at the end of the
    /// input. The segments are then those of the samples, and further events arrive without a segment being announced.
    fn keeps_events(&mut self) -> bool {
        self.next().is_some_and(<dyn ProfileSink>::keeps_events)
    }

    /// Begins a source whose threads, workers and tasks are distinct from those before, even if their numbers are
    /// equal. Ignored unless overridden.
    ///
    /// Called before each input that must be kept apart; otherwise all inputs are of one program. A trace merged from
    /// several begins a source for each of them, and at its end a source without a name.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.source(name))
    }

    /// Whether events that become samples should also arrive as events, in their place among the others. A sink that
    /// does not keep events returns `true` to read a trace both ways.
    fn watches_events(&mut self) -> bool {
        self.next().is_some_and(<dyn ProfileSink>::watches_events)
    }

    /// Begins `at.segment`. Ignored unless overridden.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.segment(at))
    }

    /// Takes metadata that follows the segment's first sample. Ignored unless overridden.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.metadata(at, key, value))
    }

    /// Takes the name of a thread. Ignored unless overridden.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.thread(at, thread, name))
    }

    /// Takes a warning of the reader about something odd or lost. Ignored unless overridden.
    ///
    /// # Errors
    /// If the sink cannot take it.
    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.warning(warning))
    }

    /// Converts everything stored by stack, so that stacks can be forgotten. Returns whether it did so.
    ///
    /// After `true`, ids of stacks are invalid and may be reused for other stacks. A reader that has met many stacks
    /// calls this. The default is `false`, even for sinks with a next sink: one that stores nothing by stack should
    /// override it and forward the call.
    ///
    /// # Errors
    /// If a table is full.
    fn settle(&mut self, _tables: &Tables) -> io::Result<bool> {
        Ok(false)
    }

    /// Writes everything that was held back. Nothing is called after it.
    ///
    /// # Errors
    /// If the sink cannot write.
    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.finish(tables))
    }
}

/// Forwards every method of a pointer to a sink. None may be left to its default, which would answer in the sink's
/// place.
macro_rules! sink_behind {
    ($pointer:ty) => {
        impl<S: ProfileSink + ?Sized> ProfileSink for $pointer {
            fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
                (**self).sample(at, sample)
            }

            fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
                (**self).event(at, event)
            }

            fn keeps_events(&mut self) -> bool {
                (**self).keeps_events()
            }

            fn watches_events(&mut self) -> bool {
                (**self).watches_events()
            }

            fn source(&mut self, name: &str) -> io::Result<()> {
                (**self).source(name)
            }

            fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
                (**self).segment(at)
            }

            fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
                (**self).metadata(at, key, value)
            }

            fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
                (**self).thread(at, thread, name)
            }

            fn warning(&mut self, warning: &Warning) -> io::Result<()> {
                (**self).warning(warning)
            }

            fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
                (**self).settle(tables)
            }

            fn finish(&mut self, tables: &Tables) -> io::Result<()> {
                (**self).finish(tables)
            }
        }
    };
}

sink_behind!(&mut S);
sink_behind!(Box<S>);

/// The outcome of reading an input. Partial success is a value, not an error that hides what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Recovery {
    /// Samples delivered; a run counts as its `count`.
    pub samples: u64,
    /// Events delivered.
    pub events: u64,
    /// Segments delivered.
    pub segments: u64,
    /// Bytes of the input that could not be used.
    pub lost_bytes: u64,
    /// Warnings in the order of the input, at most [`Recovery::MAX_WARNINGS`].
    pub warnings: Vec<Warning>,
    /// The number of further warnings, which are not kept.
    pub more_warnings: u64,
    /// Harmless oddities in the order of the input, at most [`Recovery::MAX_WARNINGS`].
    pub notes: Vec<Warning>,
    /// Whether the sink asked to stop before the end of the input.
    pub stopped: bool,
}

impl Recovery {
    /// The maximum number of warnings kept: enough to read, but bounded for a file of nothing but damage.
    pub const MAX_WARNINGS: usize = 1000;

    /// Adds a warning, or counts it if there are too many.
    pub fn warn(&mut self, warning: Warning) {
        self.lost_bytes = self.lost_bytes.saturating_add(warning.lost_bytes);
        self.keep(warning);
    }

    fn keep(&mut self, warning: Warning) {
        if self.warnings.len() < Self::MAX_WARNINGS {
            self.warnings.push(warning);
        } else {
            self.more_warnings += 1;
        }
    }

    /// Adds a note about something worth knowing that costs the profile nothing: the input stays clean.
    pub fn note(&mut self, note: Warning) {
        if self.notes.len() < Self::MAX_WARNINGS {
            self.notes.push(note.of_kind(WarningKind::Note));
        }
    }

    /// Whether nothing was damaged or lost. Notes do not count.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.warnings.is_empty() && self.lost_bytes == 0
    }

    /// Adds the outcome of a further input.
    pub fn merge(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.events = self.events.saturating_add(other.events);
        self.segments += other.segments;
        self.stopped |= other.stopped;
        self.more_warnings += other.more_warnings;
        // This includes the losses of warnings that it did not keep.
        self.lost_bytes = self.lost_bytes.saturating_add(other.lost_bytes);
        for warning in other.warnings {
            self.keep(warning);
        }
        for note in other.notes {
            self.note(note);
        }
    }
}
