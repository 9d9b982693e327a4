//! The segments of samples that have been reordered.

use std::collections::HashMap;
use std::io;

use borehole_model::{Context, ProfileSink, Segment, Tables};

/// Announces segments when samples move to a segment that sinks must treat differently. Segments that differ only in metadata
/// and process form a group: they are announced together, and their samples may alternate.
pub(super) struct Segments {
    segments: Vec<Segment>,
    /// The group of each segment. Groups are numbered in order of appearance.
    groups: Vec<usize>,
    /// The segments of each group, until they are announced.
    waiting: Vec<Vec<usize>>,
    /// The group announced last, and the number of its announced segments.
    current: Option<usize>,
    announced: u64,
}

impl Segments {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        let (mut known, mut waiting) = (HashMap::new(), Vec::<Vec<usize>>::new());
        let mut group_of = |place: usize, segment: &Segment| {
            let group = *known.entry(treatment(segment)).or_insert(waiting.len());
            if group == waiting.len() {
                waiting.push(Vec::new());
            }
            waiting[group].push(place);
            group
        };
        let groups = segments.iter().enumerate().map(|(place, segment)| group_of(place, segment)).collect();
        Self { segments, groups, waiting, current: None, announced: 0 }
    }

    /// Enters the segment at `place`, and announces it unless the current one is treated the same. All segments form one input,
    /// in which each announcement is a further segment. Metadata that a sink has been told is not repeated.
    #[inline]
    pub(super) fn enter(
        &mut self,
        place: usize,
        tables: &Tables,
        sink: &mut dyn ProfileSink,
    ) -> io::Result<&Segment> {
        let Some(&group) = self.groups.get(place) else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if self.current != Some(group) {
            self.come_to(group, place, tables, sink)?;
        }
        Ok(&self.segments[place])
    }

    #[cold]
    fn come_to(
        &mut self,
        group: usize,
        place: usize,
        tables: &Tables,
        sink: &mut dyn ProfileSink,
    ) -> io::Result<()> {
        self.current = Some(group);
        let waiting = std::mem::take(&mut self.waiting[group]);
        if waiting.is_empty() {
            self.segments[place].metadata.clear();
            return self.announce(place, tables, sink);
        }
        waiting.into_iter().try_for_each(|place| self.announce(place, tables, sink))
    }

    fn announce(&mut self, place: usize, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        let segment = &mut self.segments[place];
        segment.index = self.announced;
        self.announced += 1;
        sink.segment(Context { tables, segment })
    }

    /// Announces the segments without samples.
    pub(super) fn enter_others(&mut self, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        let waiting: Vec<_> = std::mem::take(&mut self.waiting).concat();
        waiting.into_iter().try_for_each(|place| self.announce(place, tables, sink))
    }
}

/// The properties of a segment that affect how sinks treat its samples: all but those that are unique to it.
fn treatment(segment: &Segment) -> Segment {
    Segment { index: 0, offset: None, process: None, metadata: Vec::new(), ..segment.clone() }
}
