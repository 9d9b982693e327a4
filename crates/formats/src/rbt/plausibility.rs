//! Whether bytes look like the events of a segment.

use borehole_wire::Cursor;

use super::definitions::NextIds;
use super::event::{Event, FrameFields, Framed, RawEvent};
use super::layout::{EventType, MAGIC, RESERVED_EVENT, RawHeader};
use super::recover::find_header;

/// The maximum distance of an id from the next one: that many definitions may have been lost together.
pub(super) const MAX_LOST: i64 = 64;

/// Like [`MAX_LOST`], for the stack of a sample, which is weaker evidence than a definition.
const MAX_LOST_STACKS: i64 = 4;

/// The purpose of a judgement, which decides its strictness.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To continue at the end of an event. Events of unknown types may follow, but prove nothing.
    Continue,
    /// Like [`Continue`](Self::Continue), if it is in doubt whether the event ends there.
    Resume,
    /// To search one position after the other, which meets even rare coincidences.
    Search,
    /// Like [`Search`](Self::Search), in what may be a cut-off event: its ids, which usually are consecutive, look like
    /// small events.
    SearchCut,
}

/// Judges bytes as a chain of events, each of which has to fit the ones before.
pub(super) struct Plausibility {
    pub(super) next: NextIds,
    pub(super) has_timestamps: bool,
    pub(super) has_sample: bool,
    pub(super) purpose: Purpose,
    /// The evidence in bits: roughly, how improbable such bytes are by chance.
    pub(super) evidence: u32,
}

impl Plausibility {
    /// Enough to accept a chain that continues.
    const ENOUGH: u32 = 24;

    /// Enough to accept a chain that ends exactly at the end of the input or segment.
    const fn enough_to_end(&self) -> u32 {
        match self.purpose {
            Purpose::Continue | Purpose::Resume | Purpose::Search => 5,
            Purpose::SearchCut => 16,
        }
    }

    /// Enough to accept a chain that ends in an incomplete event.
    const fn enough_to_be_cut(&self) -> u32 {
        match self.purpose {
            Purpose::Continue | Purpose::Resume => 5,
            Purpose::Search | Purpose::SearchCut => 16,
        }
    }

    /// Whether `bytes` are plausible. `whole`: they reach to the end of the input.
    pub(super) fn of(mut self, bytes: &[u8], whole: bool) -> bool {
        let mut cursor = Cursor::new(bytes, 0);
        while self.evidence < Self::ENOUGH {
            let rest = cursor.rest();
            if rest.is_empty() {
                return whole && (self.evidence >= self.enough_to_end() || bytes.is_empty());
            }
            if rest[0] == RESERVED_EVENT {
                let in_order = matches!(self.purpose, Purpose::Continue | Purpose::Resume);
                let first = rest.len() == bytes.len();
                let convinced = in_order || first || self.evidence >= self.enough_to_end();
                let cut = whole && !first && MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())]);
                return convinced && RawHeader::at(rest).map_or(cut, |raw| raw.is_flawless());
            }
            let Ok(framed) = Framed::of(rest, rest.len()) else {
                return self.evidence >= self.enough_to_be_cut();
            };
            let searches = matches!(self.purpose, Purpose::Search | Purpose::SearchCut);
            if searches && find_header(&rest[..framed.end]).is_some() {
                return false;
            }
            match self.weigh(&RawEvent::new(rest, 0, framed)) {
                Some(bits) => self.evidence += bits,
                None => return false,
            }
            cursor = Cursor::new(&rest[framed.end..], 0);
        }
        true
    }

    /// The evidence of one event; `None` if no writer would write it here.
    pub(super) fn weigh(&mut self, raw: &RawEvent<'_>) -> Option<u32> {
        let mut payload = raw.payload;
        let event = Event::decode_payload(raw, &mut payload, self.has_timestamps).ok()?;
        if !payload.is_empty() && !matches!(event, Event::Unknown { .. }) {
            return None;
        }
        match event {
            Event::StringDef { id, .. } => next_id(&mut self.next.string, id).map(|bits| bits + 4),
            Event::FrameDef { id, frame } => {
                let strings = frame_strings(&frame).into_iter().flatten();
                all_defined(strings, self.next.string)?;
                next_id(&mut self.next.frame, id).map(|bits| bits + 8)
            }
            Event::StackDef { id, frames_leaf_first } => {
                all_defined(frames_leaf_first, self.next.frame)?;
                next_id(&mut self.next.stack, id).map(|bits| bits + 8)
            }
            Event::Sample { stack, delta_us, .. } => self.weigh_sample(raw, stack, delta_us),
            Event::Repeat { count } => (self.has_sample && count > 0).then_some(4),
            Event::Annotation { pairs } => {
                all_defined(pairs, self.next.string)?;
                self.has_sample.then_some(8)
            }
            Event::Checkpoint { counts } => self.weigh_checkpoint(counts?),
            Event::SegmentEnd => Some(12),
            Event::Metadata { key, .. } => key.is_ascii().then_some(12),
            Event::Unknown { .. } => (self.purpose == Purpose::Continue).then_some(0),
        }
    }

    fn weigh_sample(&mut self, raw: &RawEvent<'_>, stack: i64, delta_us: Option<i64>) -> Option<u32> {
        let compact = raw.event_type() == Some(EventType::CompactSample);
        let belongs = match raw.event_type() {
            Some(EventType::CompactSample) => !self.has_timestamps,
            Some(EventType::Sample) => self.has_timestamps,
            _ => true,
        };
        let fits = (0..self.next.stack.saturating_add(MAX_LOST_STACKS)).contains(&stack)
            && belongs
            && delta_us.is_none_or(|delta| (0..1 << 40).contains(&delta));
        self.has_sample = true;
        let known = stack < self.next.stack;
        fits.then_some(match (compact, known) {
            (true, true) => 5,
            (true, false) => 1,
            (false, true) => 10,
            (false, false) => 4,
        })
    }

    fn weigh_checkpoint(&self, [frames, stacks, _]: [i64; 3]) -> Option<u32> {
        let near = |said: i64, next: i64| said >= next && said - next <= MAX_LOST;
        (near(frames, self.next.frame) && near(stacks, self.next.stack)).then_some(12)
    }
}

/// The evidence of an id: strong if it is exactly the next, weak if some before it were lost.
fn next_id(next: &mut i64, id: i64) -> Option<u32> {
    let bits = if id == *next { 7 } else { 1 };
    let believable = (*next..next.saturating_add(MAX_LOST)).contains(&id);
    *next = id.saturating_add(1);
    believable.then_some(bits)
}

/// Whether all ids are defined or may be among the lost ones.
fn all_defined(mut ids: impl Iterator<Item = i64>, next: i64) -> Option<()> {
    let bound = next.saturating_add(MAX_LOST);
    ids.all(|id| (0..bound).contains(&id)).then_some(())
}

fn frame_strings(frame: &FrameFields) -> [Option<i64>; 5] {
    match *frame {
        FrameFields::Php { namespace, class, method, file, opcode, .. } => {
            [Some(namespace), Some(class), Some(method), Some(file), opcode]
        }
        FrameFields::Native { symbol, module, .. } => [Some(symbol), Some(module), None, None, None],
    }
}
