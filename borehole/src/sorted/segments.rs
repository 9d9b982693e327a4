//! The segments of samples that come in another order than they were read in.

use std::io;

use borehole_model::{Context, ProfileSink, Segment, Tables};

/// Segments, announced whenever the samples come to others that sinks have to treat differently: those that only differ in their
/// metadata and their process are announced together, and their samples come in turn.
pub(super) struct Segments {
    segments: Vec<Segment>,
    /// By segment: the first that is treated the same.
    alike: Vec<usize>,
    /// By the first of those that are treated the same.
    was_announced: Vec<bool>,
    /// What was announced last, by the first of those, and how many segments were.
    current: Option<usize>,
    announced: u64,
}

impl Segments {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        let mut alike: Vec<usize> = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            let first = alike.iter().copied().find(|&first| are_alike(&segments[first], segment));
            alike.push(first.unwrap_or(place));
        }
        let was_announced = vec![false; segments.len()];
        Self { segments, alike, was_announced, current: None, announced: 0 }
    }

    /// The segment at `place`, announced unless the current one is treated the same. Together they are one input, of which each
    /// announcement is a further segment. What a sink has been told of the metadata it is not told again.
    #[inline]
    pub(super) fn enter(
        &mut self,
        place: usize,
        tables: &Tables,
        sink: &mut dyn ProfileSink,
    ) -> io::Result<&Segment> {
        let Some(&first) = self.alike.get(place) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if self.current != Some(first) {
            self.come_to(first, place, tables, sink)?;
        }
        Ok(&self.segments[place])
    }

    #[cold]
    fn come_to(
        &mut self,
        first: usize,
        place: usize,
        tables: &Tables,
        sink: &mut dyn ProfileSink,
    ) -> io::Result<()> {
        self.current = Some(first);
        if self.was_announced[first] {
            self.segments[place].metadata.clear();
            return self.announce(place, tables, sink);
        }
        self.was_announced[first] = true;
        for place in first..self.segments.len() {
            if self.alike[place] == first {
                self.announce(place, tables, sink)?;
            }
        }
        Ok(())
    }

    fn announce(&mut self, place: usize, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        let segment = &mut self.segments[place];
        segment.index = self.announced;
        self.announced += 1;
        sink.segment(Context { tables, segment })
    }

    /// Announces what no sample stands in.
    pub(super) fn enter_others(&mut self, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        for place in 0..self.segments.len() {
            if self.alike[place] == place && !self.was_announced[place] {
                self.come_to(place, place, tables, sink)?;
            }
        }
        Ok(())
    }
}

/// Whether samples of both are treated the same.
fn are_alike(one: &Segment, other: &Segment) -> bool {
    let facts = |segment: &Segment| {
        let Segment { format, has_times, period_ns, start_unix_ns, .. } = *segment;
        (format, has_times, period_ns, start_unix_ns)
    };
    facts(one) == facts(other) && one.value_types == other.value_types
}
