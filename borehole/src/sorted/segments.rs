//! The segments of samples that come in another order than they were read in.

use std::collections::HashMap;
use std::io;

use borehole_model::{Context, ProfileSink, Segment, Tables};

/// Segments, announced whenever the samples come to others that sinks have to treat differently: those that only differ in their
/// metadata and their process are a group, announced together, and their samples come in turn.
pub(super) struct Segments {
    segments: Vec<Segment>,
    /// By segment: its group. Groups are numbered as they appear.
    groups: Vec<usize>,
    /// By group: its segments, until they are announced.
    waiting: Vec<Vec<usize>>,
    /// The group that was announced last, and how many segments were.
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

    /// The segment at `place`, announced unless the current one is treated the same. Together they are one input, of which each
    /// announcement is a further segment. What a sink has been told of the metadata it is not told again.
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

    /// Announces what no sample stands in.
    pub(super) fn enter_others(&mut self, tables: &Tables, sink: &mut dyn ProfileSink) -> io::Result<()> {
        let waiting: Vec<_> = std::mem::take(&mut self.waiting).concat();
        waiting.into_iter().try_for_each(|place| self.announce(place, tables, sink))
    }
}

/// What sinks treat the samples of a segment by: all but what tells it from others of its kind.
fn treatment(segment: &Segment) -> Segment {
    Segment { index: 0, offset: None, process: None, metadata: Vec::new(), ..segment.clone() }
}
