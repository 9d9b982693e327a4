//! Whether bytes look like the events of a segment.

use borehole_wire::Cursor;

use super::definitions::{MAX_LOST, NextIds};
use super::event::{DecodedEvent, FrameFields, Framed, RawEvent};
use super::indices::DefinitionKind;
use super::layout::{EventType, MAGIC, RESERVED_EVENT, RawHeader};

/// Like [`MAX_LOST`], for the stack of a sample, which is weaker evidence than a definition.
const MAX_LOST_STACKS: i64 = 4;

/// The purpose of a judgement, which decides its strictness.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchPurpose {
    /// To continue at the end of an event. Events of unknown types may follow, but prove nothing.
    Continue,
    /// To continue at the end of an event of unknown type. All events that reading takes may follow, even if no known
    /// writer writes them.
    AfterUnknown,
    /// Like [`Continue`](Self::Continue), if it is in doubt whether the event ends there.
    Resume,
    /// To search one position after the other, which meets even rare coincidences.
    Search,
    /// Like [`Search`](Self::Search), in what may be a cut-off event: its ids, which usually are consecutive, look like
    /// small events.
    SearchCut,
}

impl SearchPurpose {
    /// Enough to accept a chain that ends exactly at the end of the input or segment.
    const fn enough_to_end(self) -> u32 {
        match self {
            Self::SearchCut => 16,
            Self::AfterUnknown => 0,
            Self::Continue | Self::Resume | Self::Search => 5,
        }
    }

    /// Enough to accept a chain that ends in an incomplete event.
    const fn enough_to_be_cut(self) -> u32 {
        match self {
            Self::Search | Self::SearchCut => 16,
            Self::AfterUnknown => 1,
            Self::Continue | Self::Resume => 5,
        }
    }

    /// Whether the position itself is in doubt.
    const fn searches(self) -> bool {
        matches!(self, Self::Search | Self::SearchCut)
    }
}

/// The state of a segment, which its next events have to fit.
#[derive(Clone, Copy, Default)]
pub(super) struct SegmentState {
    pub(super) next: NextIds,
    pub(super) has_timestamps: bool,
    /// Whether there is a sample that may be annotated or repeated.
    pub(super) has_sample: bool,
}

/// Judges bytes as a chain of events, each of which has to fit the ones before.
pub(super) struct Plausibility {
    state: SegmentState,
    purpose: SearchPurpose,
    /// The evidence in bits: roughly, how improbable such bytes are by chance.
    evidence: u32,
    /// The number of bytes examined.
    pub(super) looked_at: u64,
}

impl Plausibility {
    pub(super) const fn new(state: SegmentState, purpose: SearchPurpose) -> Self {
        Self { state, purpose, evidence: 0, looked_at: 0 }
    }

    /// Enough to accept a chain that continues.
    const ENOUGH: u32 = 24;

    /// Whether `bytes` are plausible. `whole`: they reach to the end of the input.
    pub(super) fn of(&mut self, bytes: &[u8], whole: bool) -> bool {
        let mut cursor = Cursor::new(bytes, 0);
        while self.evidence < Self::ENOUGH {
            let rest = cursor.rest();
            if rest.is_empty() {
                return whole && (self.evidence >= self.purpose.enough_to_end() || bytes.is_empty());
            }
            if rest[0] == RESERVED_EVENT {
                let first = rest.len() == bytes.len();
                let convinced =
                    !self.purpose.searches() || first || self.evidence >= self.purpose.enough_to_end();
                let cut = whole && !first && MAGIC.starts_with(&rest[..rest.len().min(MAGIC.len())]);
                return convinced && RawHeader::at(rest).map_or(cut, |raw| raw.is_flawless());
            }
            let Ok(framed) = Framed::of(rest, rest.len()) else {
                return self.evidence >= self.purpose.enough_to_be_cut();
            };
            self.looked_at += framed.end as u64;
            if self.purpose.searches() && RawHeader::find_after_start(&rest[..framed.end]).is_some() {
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

    /// The evidence of one event, which the next ones then have to fit; `None` if it does not belong here.
    pub(super) fn weigh(&mut self, raw: &RawEvent<'_>) -> Option<u32> {
        let before = self.state;
        match self.weigh_usual(raw) {
            None if self.purpose == SearchPurpose::AfterUnknown => {
                self.state = before;
                self.is_legal(raw).then_some(1)
            }
            bits => bits,
        }
    }

    /// Whether reading takes an event that no known writer writes here.
    fn is_legal(&mut self, raw: &RawEvent<'_>) -> bool {
        let Ok(event) = DecodedEvent::decode(raw, self.state.has_timestamps) else { return false };
        let SegmentState { next, has_sample, .. } = self.state;
        let is_defined = |kind, id| (0..next.of(kind)).contains(&id);
        match event {
            DecodedEvent::Sample { stack, .. } => {
                self.state.has_sample = true;
                is_defined(DefinitionKind::Stack, stack)
            }
            DecodedEvent::Repeat { .. } => has_sample,
            DecodedEvent::Annotation { mut pairs } => {
                has_sample && pairs.all(|id| is_defined(DefinitionKind::String, id))
            }
            DecodedEvent::FrameDef { id, frame } => {
                self.state.next.pass(DefinitionKind::Frame, id);
                frame_strings(&frame).into_iter().flatten().all(|id| is_defined(DefinitionKind::String, id))
            }
            DecodedEvent::StringDef { id, .. } => {
                self.state.next.pass(DefinitionKind::String, id);
                true
            }
            DecodedEvent::StackDef { id, .. } => {
                self.state.next.pass(DefinitionKind::Stack, id);
                true
            }
            DecodedEvent::Checkpoint { .. }
            | DecodedEvent::SegmentEnd
            | DecodedEvent::Metadata { .. }
            | DecodedEvent::Unknown { .. } => true,
        }
    }

    /// The evidence of one event; `None` if no known writer would write it here.
    fn weigh_usual(&mut self, raw: &RawEvent<'_>) -> Option<u32> {
        let mut payload = raw.payload;
        let event = DecodedEvent::decode_payload(raw, &mut payload, self.state.has_timestamps).ok()?;
        if !payload.is_empty() && !matches!(event, DecodedEvent::Unknown { .. }) {
            return None;
        }
        match event {
            DecodedEvent::StringDef { id, .. } => {
                self.weigh_id(DefinitionKind::String, id).map(|bits| bits + 4)
            }
            DecodedEvent::FrameDef { id, frame } => {
                self.all_defined(DefinitionKind::String, frame_strings(&frame).into_iter().flatten())?;
                self.weigh_id(DefinitionKind::Frame, id).map(|bits| bits + 8)
            }
            DecodedEvent::StackDef { id, frames_leaf_first } => {
                self.all_defined(DefinitionKind::Frame, frames_leaf_first)?;
                self.weigh_id(DefinitionKind::Stack, id).map(|bits| bits + 8)
            }
            DecodedEvent::Sample { stack, delta_us, .. } => self.weigh_sample(raw, stack, delta_us),
            DecodedEvent::Repeat { count } => (self.state.has_sample && count > 0).then_some(4),
            DecodedEvent::Annotation { pairs } => {
                self.all_defined(DefinitionKind::String, pairs)?;
                self.state.has_sample.then_some(8)
            }
            DecodedEvent::Checkpoint { counts } => self.weigh_checkpoint(counts?),
            DecodedEvent::SegmentEnd => Some(12),
            DecodedEvent::Metadata { key, .. } => key.is_ascii().then_some(12),
            DecodedEvent::Unknown { .. } => {
                matches!(self.purpose, SearchPurpose::Continue | SearchPurpose::AfterUnknown).then_some(0)
            }
        }
    }

    fn weigh_sample(&mut self, raw: &RawEvent<'_>, stack: i64, delta_us: Option<i64>) -> Option<u32> {
        let compact = raw.event_type() == Some(EventType::CompactSample);
        let belongs = match raw.event_type() {
            Some(EventType::CompactSample) => !self.state.has_timestamps,
            Some(EventType::Sample) => self.state.has_timestamps,
            _ => true,
        };
        let next = self.state.next.of(DefinitionKind::Stack);
        let fits = (0..next.saturating_add(MAX_LOST_STACKS)).contains(&stack)
            && belongs
            && delta_us.is_none_or(|delta| (0..1 << 40).contains(&delta));
        self.state.has_sample = true;
        let known = stack < next;
        fits.then_some(match (compact, known) {
            (true, true) => 5,
            (true, false) => 1,
            (false, true) => 10,
            (false, false) => 4,
        })
    }

    fn weigh_checkpoint(&self, [frames, stacks, _]: [i64; 3]) -> Option<u32> {
        let near = |said: i64, kind| {
            let next = self.state.next.of(kind);
            said >= next && said - next <= MAX_LOST
        };
        (near(frames, DefinitionKind::Frame) && near(stacks, DefinitionKind::Stack)).then_some(12)
    }

    /// The evidence of an id that is defined: strong if it is exactly the next, weak if some before it were lost.
    fn weigh_id(&mut self, kind: DefinitionKind, id: i64) -> Option<u32> {
        let next = self.state.next.of(kind);
        self.state.next.set(kind, id.saturating_add(1));
        let bits = if id == next { 7 } else { 1 };
        (next..next.saturating_add(MAX_LOST)).contains(&id).then_some(bits)
    }

    /// Whether all ids are defined or may be among the lost ones.
    fn all_defined(&self, kind: DefinitionKind, mut ids: impl Iterator<Item = i64>) -> Option<()> {
        let bound = self.state.next.of(kind).saturating_add(MAX_LOST);
        ids.all(|id| (0..bound).contains(&id)).then_some(())
    }
}

fn frame_strings(frame: &FrameFields) -> [Option<i64>; 5] {
    match *frame {
        FrameFields::Php { namespace, class, method, file, opcode, .. } => {
            [Some(namespace), Some(class), Some(method), Some(file), opcode]
        }
        FrameFields::Native { symbol, module, .. } => [Some(symbol), Some(module), None, None, None],
    }
}
