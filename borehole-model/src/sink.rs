//! Where samples flow to.

use std::io;
use std::ops::ControlFlow;

use crate::event::Event;
use crate::ids::StringId;
use crate::sample::Sample;
use crate::segment::Segment;
use crate::tables::Tables;
use crate::threads::Thread;

/// What a sample's ids refer to, and the segment that it stands in.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The tables of all ids so far. They only grow: a column indexed by an id stays right, those of stacks until
    /// [`ProfileSink::settle`] says otherwise.
    pub tables: &'a Tables,
    /// The segment.
    pub segment: &'a Segment,
}

impl Context<'_> {
    /// The process of a sample: its own, or else its segment's.
    #[must_use]
    pub fn process(&self, sample: &Sample<'_>) -> Option<i64> {
        sample.process.or(self.segment.process)
    }

    /// The thread of a sample, with its process.
    #[must_use]
    pub fn thread(&self, sample: &Sample<'_>) -> Option<Thread> {
        sample.thread.map(|number| Thread { process: self.process(sample), number })
    }
}

/// Takes a profile as it is read: an exporter, a view, or something in between.
///
/// Order of calls: for each input its segments, each followed by its samples and events, with `settle` between any of
/// them; `finish` once, after the last input. Only [`ProfileSink::sample`] has to be written.
///
/// What is given with a sample holds for it, whatever segment was announced last: metadata behind its first sample may say whose
/// process a segment is, and the samples of segments that differ in nothing but process and metadata may come in turn.
///
/// An error ends the run. It is the sink's own (a full disk), never the input's.
pub trait ProfileSink {
    /// Takes a sample. On [`ControlFlow::Break`] the reader stops in good order.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>>;

    /// The sink behind this one, of a sink that stands in between: whatever is not overridden goes there, and nowhere if
    /// there is none.
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        None
    }

    /// Takes an event. Ignored unless overridden. On [`ControlFlow::Break`] the reader stops in good order.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.next().map_or(Ok(ControlFlow::Continue(())), |next| next.event(at, event))
    }

    /// Whether events that tell of stacks are to stay events. To other sinks, which is the default, readers give
    /// them as samples, with names for their addresses, at the end of the input; the segments are then those of the
    /// samples, and further events come without one being announced.
    fn keeps_events(&mut self) -> bool {
        self.next().is_some_and(<dyn ProfileSink>::keeps_events)
    }

    /// Begins a source whose threads, workers and tasks are others than those before, however they are numbered.
    /// Called before an input that is to be kept apart; inputs are of one program otherwise. A trace that was merged of
    /// several begins those within it, and at its end a source without a name. Ignored unless overridden.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.source(name))
    }

    /// Whether events that become samples are to come as events too, at their place among the others. A sink that
    /// does not keep events says so when it reads a trace both ways.
    fn watches_events(&mut self) -> bool {
        self.next().is_some_and(<dyn ProfileSink>::watches_events)
    }

    /// Begins `at.segment`. Ignored unless overridden.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.segment(at))
    }

    /// Takes metadata that stands after the segment's first sample. Ignored unless overridden.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.metadata(at, key, value))
    }

    /// Takes the name of a thread. Ignored unless overridden.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.thread(at, thread, name))
    }

    /// Takes what the reader found odd or lost. Ignored unless overridden.
    ///
    /// # Errors
    /// When the sink cannot take it.
    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.warning(warning))
    }

    /// Turns all that is known by stack into something else, so that stacks can be forgotten; whether that was done.
    /// After `true` the ids of stacks mean nothing, and may come again for others.
    ///
    /// A reader that has met many stacks asks for it. The default is `false`, of sinks that stand in between too: one
    /// that knows nothing by stack itself passes the question on.
    ///
    /// # Errors
    /// When a table is full.
    fn settle(&mut self, _tables: &Tables) -> io::Result<bool> {
        Ok(false)
    }

    /// Writes what was held back. Nothing is called after it.
    ///
    /// # Errors
    /// When the sink cannot write.
    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.next().map_or(Ok(()), |next| next.finish(tables))
    }
}

/// What points to a sink is that sink: each method is passed on, for a default would answer in the sink's place.
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

/// Something in an input that is odd, or lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where, in bytes of the input after decompression (lines for text formats say so in the message).
    pub offset: Option<u64>,
    /// What was expected and what was found.
    pub message: String,
    /// How many bytes could not be used.
    pub lost_bytes: u64,
    /// How many samples were read between this damage and the next one, or the end. Absent: nothing is damaged
    /// here, nobody read on behind it, or the format's reader does not count them.
    pub saved_samples: Option<u64>,
}

impl Warning {
    /// A warning about the input as a whole, by which nothing is lost.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { offset: None, message: message.into(), lost_bytes: 0, saved_samples: None }
    }

    /// The same, about the place `offset`, if there is one.
    #[must_use]
    pub fn at(self, offset: impl Into<Option<u64>>) -> Self {
        Self { offset: offset.into(), ..self }
    }

    /// The same, with `lost_bytes` that could not be used.
    #[must_use]
    pub fn losing(self, lost_bytes: u64) -> Self {
        Self { lost_bytes, ..self }
    }
}

/// What came out of an input. Partial success is a value, not an error that hides what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Samples that were delivered, runs counted in full.
    pub samples: u64,
    /// Events that were delivered.
    pub events: u64,
    /// Segments that were delivered.
    pub segments: u64,
    /// Bytes of the input that could not be used.
    pub lost_bytes: u64,
    /// What was odd or lost, in the order of the input, up to [`Recovery::MAX_WARNINGS`].
    pub warnings: Vec<Warning>,
    /// Warnings beyond those that are kept.
    pub more_warnings: u64,
    /// What was odd and harmless, in the order of the input, up to [`Recovery::MAX_WARNINGS`].
    pub notes: Vec<Warning>,
    /// Whether the sink asked to stop before the end of the input.
    pub stopped: bool,
}

impl Recovery {
    /// How many warnings are kept in full: enough to read, bounded for a file that is nothing but damage.
    pub const MAX_WARNINGS: usize = 1000;

    /// Keeps `warning`, or counts it when there are too many.
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

    /// Keeps `note`, of something that a reader of the profile may like to know and that takes nothing
    /// from it: the input is as clean as before.
    pub fn note(&mut self, note: Warning) {
        if self.notes.len() < Self::MAX_WARNINGS {
            self.notes.push(note);
        }
    }

    /// Whether nothing was damaged or lost. Notes do not count.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.warnings.is_empty() && self.lost_bytes == 0
    }

    /// Adds what came out of a further input.
    pub fn merge(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.events = self.events.saturating_add(other.events);
        self.segments += other.segments;
        self.stopped |= other.stopped;
        self.more_warnings += other.more_warnings;
        // With those of warnings that it did not keep.
        self.lost_bytes = self.lost_bytes.saturating_add(other.lost_bytes);
        for warning in other.warnings {
            self.keep(warning);
        }
        for note in other.notes {
            self.note(note);
        }
    }
}
