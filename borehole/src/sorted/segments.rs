//! The segments of samples that come in another order than they were read in.

use std::io;

use borehole_model::{Context, ProfileSink, Segment, Tables};

/// Segments, each announced whenever the samples come to it.
pub(super) struct Segments {
    segments: Vec<Segment>,
    was_announced: Vec<bool>,
    /// The one that was announced last, and how many times one was.
    current: Option<usize>,
    announced: u64,
}

impl Segments {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        let was_announced = vec![false; segments.len()];
        Self { segments, was_announced, current: None, announced: 0 }
    }

    /// Announces the segment at `place`, unless it is the current one. Together they are one input, of which each announcement
    /// is a further segment. What a sink has been told of the metadata it is not told again.
    #[inline]
    pub(super) fn enter(
        &mut self,
        place: usize,
        tables: &Tables,
        sink: &mut dyn ProfileSink,
    ) -> io::Result<&Segment> {
        if self.current != Some(place) {
            self.announce(place, tables, sink)?;
        }
        self.segments.get(place).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    #[cold]
    fn announce(&mut self, place: usize, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        let Some(segment) = self.segments.get_mut(place) else { return Ok(()) };
        if std::mem::replace(&mut self.was_announced[place], true) {
            segment.metadata.clear();
        }
        segment.index = self.announced;
        self.announced += 1;
        self.current = Some(place);
        sink.segment(Context { tables, segment })
    }

    /// Announces what no sample stands in.
    pub(super) fn enter_others(&mut self, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        for place in 0..self.segments.len() {
            if !self.was_announced[place] {
                self.announce(place, tables, sink)?;
            }
        }
        Ok(())
    }
}
