//! Profiles and traces as timelines: the common part of the exporters for timeline viewers.
//!
//! [`Drawing`] reads events and samples and tells a [`Canvas`] what to draw; the canvas knows the file format.

mod events;
mod samples;
#[cfg(test)]
mod tests;
mod tracks;

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Event, OneClock, ProfileSink, Sample, Segment, StringId, Tables, Thread};

use self::events::Actors;
use self::samples::Lanes;
use self::tracks::Tracks;
pub(crate) use self::tracks::{TimelineTrack, TrackKind};
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// The value of a detail.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(std::borrow::Cow<'a, str>),
}

/// Details by name.
pub(crate) type Details<'a> = Vec<(&'a str, Detail<'a>)>;

/// Something that happens at a moment on a track.
#[derive(Clone, Debug)]
pub struct Mark<'a> {
    pub time_ns: u64,
    pub name: &'a str,
    pub details: Details<'a>,
    /// The arrow that starts or ends here.
    pub arrow: Option<Arrow>,
}

/// One end of an arrow between two marks, by the arrow's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrow {
    From(u64),
    To(u64),
}

/// Draws a timeline. On each track, slices nest: the last one begun ends first.
pub trait Canvas {
    /// The file.
    type Output;

    /// Creates an empty timeline.
    fn new(output: Self::Output) -> Self;

    /// Announces a track, once, before anything is drawn on it and after its parent.
    fn track(&mut self, track: &TimelineTrack) -> io::Result<()>;

    /// Begins a slice.
    fn begin(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()>;

    /// Ends the slice begun last.
    fn end(&mut self, track: &TimelineTrack, time_ns: u64) -> io::Result<()>;

    /// Draws something without a duration.
    fn instant(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()>;

    /// Sets a counter to a new value.
    fn counter(&mut self, track: &TimelineTrack, time_ns: u64, value: f64) -> io::Result<()>;

    /// Sets the wall time of a time, in nanoseconds since 1970.
    fn wall_clock(&mut self, time_ns: u64, unix_ns: u64) -> io::Result<()>;

    fn finish(&mut self) -> io::Result<()>;
}

/// The format whose events have no wall time, so its samples stay on the clock of the events.
const TRACE: &str = "trc";

/// Draws samples as calls and events by their meaning.
///
/// Memory: the tracks, of which a lane has 8 at most, and the activities in progress on each of them.
#[derive(Debug)]
pub struct Drawing<C> {
    canvas: C,
    tracks: Tracks,
    actors: Actors,
    lanes: Lanes,
    clock: OneClock,
    has_wall_clock: bool,
    timeless_samples: u64,
    /// The number of samples from inputs that began before the clock did.
    early_samples: u64,
    timeless_events: u64,
    left_out: SampleLosses,
}

impl<C: Canvas> Drawing<C> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: C::Output) -> Self {
        Self {
            canvas: C::new(output),
            tracks: Tracks::default(),
            actors: Actors::default(),
            lanes: Lanes::default(),
            clock: OneClock::default(),
            has_wall_clock: false,
            timeless_samples: 0,
            early_samples: 0,
            timeless_events: 0,
            left_out: SampleLosses::default(),
        }
    }

    /// The time of a sample on the clock of the timeline.
    fn time_ns(&mut self, segment: &Segment, sample: &Sample<'_>) -> Option<u64> {
        let Some(time_ns) = sample.time_ns else {
            self.timeless_samples = self.timeless_samples.saturating_add(sample.count);
            return None;
        };
        let time_ns =
            if segment.format == TRACE { time_ns.into() } else { self.clock.time_ns(segment, time_ns) };
        let time_ns = u64::try_from(time_ns).ok();
        if time_ns.is_none() {
            self.early_samples = self.early_samples.saturating_add(sample.count);
        }
        time_ns
    }

    /// The time of an event on the clock of the timeline.
    fn event_time_ns(&mut self, segment: &Segment, event: &Event<'_>) -> Option<u64> {
        let time_ns = i64::try_from(event.time_ns?).ok()?;
        if segment.format == TRACE {
            return event.time_ns;
        }
        u64::try_from(self.clock.time_ns(segment, time_ns)).ok()
    }

    fn wall_clock(&mut self, time_ns: u64) -> io::Result<()> {
        if self.has_wall_clock {
            return Ok(());
        }
        let start_ns = self.clock.start_unix_ns().and_then(|start_ns| u64::try_from(start_ns).ok());
        let Some(start_ns) = start_ns else { return Ok(()) };
        self.has_wall_clock = true;
        self.canvas.wall_clock(time_ns, start_ns.saturating_add(time_ns))
    }

    /// Ends all activities in progress.
    fn end_source(&mut self) -> io::Result<()> {
        self.actors.end_all(&mut self.canvas, &self.tracks)?;
        self.lanes.end_all(&mut self.canvas)
    }
}

impl<C: Canvas> ProfileSink for Drawing<C> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.left_out)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if let Some(time_ns) = self.time_ns(at.segment, sample) {
            self.wall_clock(time_ns)?;
            self.left_out.extras(&Sample { status: None, ..*sample });
            self.lanes.sample(&mut self.canvas, &mut self.tracks, at, sample, time_ns)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        match self.event_time_ns(at.segment, event) {
            Some(time_ns) => self.actors.event(&mut self.canvas, &mut self.tracks, at, event, time_ns)?,
            None => self.timeless_events += 1,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.clock.take(at.segment);
        self.lanes.segment(at.segment);
        self.left_out.segment(at)
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.end_source()?;
        self.tracks.begin_source(name);
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.tracks.name_thread(thread, &String::from_utf8_lossy(at.tables.string(name)));
        Ok(())
    }

    /// Fails if there is nothing to draw: viewers reject a timeline without tracks.
    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        if self.tracks.is_empty() {
            let message = "nothing to draw: expected samples or events with times, found none";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.end_source()?;
        self.canvas.finish()
    }
}

impl<C: Canvas> Export for Drawing<C> {
    fn losses(&self) -> Losses {
        let mut losses = self.left_out.report();
        losses.add("samples without a time", self.timeless_samples);
        losses.add("samples before the clock's origin", self.early_samples);
        losses.add("times of samples out of order", self.lanes.late);
        losses.add("events without a time", self.timeless_events);
        losses
    }
}
