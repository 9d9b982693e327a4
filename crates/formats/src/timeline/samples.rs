//! Samples as calls with durations: equal neighbours belong to one call.

use std::io;

use borehole_model::{
    Context, FrameId, LabelValue, Lane, Lasting, Sample, Segment, StackId, Status, Tables, dial9, goes_on,
};
use hashbrown::HashMap;

use super::tracks::{CallsRow, TimelineTrack, TrackSubject, Tracks};
use super::{Canvas, Detail, Details, Mark};
use crate::SampleKind;

/// The most rows of a lane.
const MOST_ROWS: usize = 8;

/// The latest calls of each lane.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// The rows of each lane, as places in `rows`. The last one is in use.
    lanes: HashMap<Lane, Vec<usize>>,
    rows: Vec<LaneRow>,
    /// The part of a stack that its lane's last one does not have, from the leaf on.
    new: Vec<StackId>,
    lasting: Lasting,
    /// The number of samples that are drawn later than they were.
    pub(super) late: u64,
}

#[derive(Debug)]
struct LaneRow {
    row: CallsRow,
    track: TimelineTrack,
    /// The calls in progress, the root first, and the stacks that end with them in the last sample.
    calls: Vec<FrameId>,
    stacks: Vec<StackId>,
    last_ns: u64,
    /// The duration of the last sample; `None` if it lasts until the next one.
    lasts_ns: Option<u64>,
    gil: StateTrack,
    cpu: StateTrack,
}

/// A state of a thread beside its calls.
#[derive(Debug, Default)]
struct StateTrack {
    track: Option<TimelineTrack>,
    is: Option<&'static str>,
}

impl Lanes {
    pub(super) fn sample(
        &mut self,
        canvas: &mut impl Canvas,
        tracks: &mut Tracks,
        at: Context<'_>,
        sample: &Sample<'_>,
        time_ns: u64,
    ) -> io::Result<()> {
        let lane = at.lane(sample);
        if let Some(instant) = instant(at.tables, sample).or_else(|| self.momentary(at.segment, sample)) {
            let track = tracks.track(canvas, &TrackSubject::Calls(CallsRow::first(lane)))?;
            return canvas.instant(track, &seen(at, sample, instant, time_ns));
        }
        let row = self.row(canvas, tracks, lane, time_ns)?;
        let row = &mut self.rows[row];
        if time_ns < row.last_ns {
            self.late = self.late.saturating_add(sample.count);
        }
        let time_ns = time_ns.max(row.last_ns);
        if !row.reaches(time_ns) {
            row.end(canvas)?;
        }
        self.new.clear();
        let mut shared = sample.stack;
        while let Some(stack) = shared.filter(|&stack| !row.has(stack, at.tables)) {
            self.new.push(stack);
            shared = at.tables.parent(stack);
        }
        row.calls_become(canvas, at.tables, shared, &self.new, time_ns)?;
        if let Some(status) = sample.status {
            row.states_become(canvas, tracks, status, time_ns)?;
        }
        row.last_ns = time_ns;
        row.lasts_ns = self.lasting.ns(sample);
        Ok(())
    }

    /// Begins a segment.
    pub(super) fn segment(&mut self, segment: &Segment) {
        self.lasting = Lasting::of(segment);
    }

    /// The instant for a sample of a moment among samples that last: an allocation between samples of CPU time.
    fn momentary<'s>(&self, segment: &'s Segment, sample: &Sample<'_>) -> Option<SampleInstant<'s>> {
        let Lasting::Value { column, .. } = self.lasting else { return None };
        if !segment.is_uncounted || sample.values.get(column) != Some(&0) {
            return None;
        }
        let mut values = segment.value_types.iter().zip(sample.values);
        let (other, &value) = values.find(|(own, value)| **value != 0 && !own.is_samples())?;
        Some(SampleInstant { name: &other.kind, detail: (&other.unit, Detail::Signed(value)) })
    }

    /// The row of a lane for a sample of that time: the one in use, or else another one on which nothing is drawn later, or else
    /// the one in use.
    fn row(
        &mut self,
        canvas: &mut impl Canvas,
        tracks: &mut Tracks,
        lane: Lane,
        time_ns: u64,
    ) -> io::Result<usize> {
        let places = self.lanes.entry(lane).or_default();
        let is_free = |&row: &usize| self.rows[row].last_ns <= time_ns;
        if let Some(free) = places.iter().rposition(is_free) {
            let row = places.remove(free);
            places.push(row);
            return Ok(row);
        }
        if let Some(&row) = places.last().filter(|_| places.len() == MOST_ROWS) {
            return Ok(row);
        }
        let row = CallsRow { lane, number: places.len() };
        let track = tracks.track(canvas, &TrackSubject::Calls(row))?.clone();
        places.push(self.rows.len());
        self.rows.push(LaneRow::new(row, track, time_ns));
        Ok(self.rows.len() - 1)
    }

    pub(super) fn end_all(&mut self, canvas: &mut impl Canvas) -> io::Result<()> {
        self.lanes.clear();
        self.rows.drain(..).try_for_each(|mut row| row.end(canvas))
    }
}

impl LaneRow {
    fn new(row: CallsRow, track: TimelineTrack, time_ns: u64) -> Self {
        Self {
            row,
            track,
            calls: Vec::new(),
            stacks: Vec::new(),
            last_ns: time_ns,
            lasts_ns: None,
            gil: StateTrack::default(),
            cpu: StateTrack::default(),
        }
    }

    /// Whether the last sample's calls may continue until now.
    fn reaches(&self, time_ns: u64) -> bool {
        self.lasts_ns.is_none_or(|lasts_ns| goes_on(time_ns - self.last_ns, lasts_ns))
    }

    /// Ends the calls in progress at the end of their last sample.
    fn end(&mut self, canvas: &mut impl Canvas) -> io::Result<()> {
        let end_ns = self.last_ns.saturating_add(self.lasts_ns.unwrap_or(0));
        self.stacks.clear();
        while self.calls.pop().is_some() {
            canvas.end(&self.track, end_ns)?;
        }
        self.gil.becomes(canvas, None, end_ns)?;
        self.cpu.becomes(canvas, None, end_ns)
    }

    /// Whether a stack is the last sample's, or that of one of its callers.
    fn has(&self, stack: StackId, tables: &Tables) -> bool {
        self.stacks.get(tables.depth(stack) as usize - 1) == Some(&stack)
    }

    /// Draws the calls of a stack that consists of `shared`, which the last one has, and of `new` from the leaf on.
    fn calls_become(
        &mut self,
        canvas: &mut impl Canvas,
        tables: &Tables,
        shared: Option<StackId>,
        new: &[StackId],
        time_ns: u64,
    ) -> io::Result<()> {
        let shared = shared.map_or(0, |stack| tables.depth(stack) as usize);
        let frames = || new.iter().rev().map(|&stack| tables.leaf(stack));
        let pairs = self.calls[shared..].iter().zip(frames());
        let same = pairs.take_while(|&(&one, other)| is_same_call(tables, one, other)).count();
        for _ in shared + same..self.calls.len() {
            canvas.end(&self.track, time_ns)?;
        }
        self.calls.truncate(shared + same);
        self.stacks.truncate(shared);
        self.stacks.extend(new.iter().rev());
        for frame in frames().skip(same) {
            begin_call(canvas, &self.track, tables, frame, time_ns)?;
            self.calls.push(frame);
        }
        Ok(())
    }

    fn states_become(
        &mut self,
        canvas: &mut impl Canvas,
        tracks: &mut Tracks,
        status: Status,
        time_ns: u64,
    ) -> io::Result<()> {
        let has = |name: &str| status.names().any(|set| set == name);
        let gil =
            has("has_gil").then_some("has the GIL").or(has("gil_requested").then_some("waits for the GIL"));
        let cpu = has("on_cpu").then_some("on CPU");
        for (state, is, key) in [
            (&mut self.gil, gil, TrackSubject::Gil(self.row)),
            (&mut self.cpu, cpu, TrackSubject::Cpu(self.row)),
        ] {
            if is.is_some() && state.track.is_none() {
                state.track = Some(tracks.track(canvas, &key)?.clone());
            }
            state.becomes(canvas, is, time_ns)?;
        }
        Ok(())
    }
}

impl StateTrack {
    fn becomes(
        &mut self,
        canvas: &mut impl Canvas,
        is: Option<&'static str>,
        time_ns: u64,
    ) -> io::Result<()> {
        let Some(track) = &self.track else { return Ok(()) };
        if self.is == is {
            return Ok(());
        }
        if self.is.is_some() {
            canvas.end(track, time_ns)?;
        }
        if let Some(name) = is {
            canvas.begin(track, &Mark { time_ns, name, details: Vec::new(), arrow: None })?;
        }
        self.is = is;
        Ok(())
    }
}

/// Whether two frames probably belong to one call, which moves from line to line.
fn is_same_call(tables: &Tables, one: FrameId, other: FrameId) -> bool {
    let what = |id| {
        let frame = tables.frame(id);
        (frame.function, frame.file, frame.native.map(|native| native.module))
    };
    one == other || what(one) == what(other)
}

fn begin_call(
    canvas: &mut impl Canvas,
    track: &TimelineTrack,
    tables: &Tables,
    frame: FrameId,
    time_ns: u64,
) -> io::Result<()> {
    let frame = tables.frame(frame);
    let text = |id| String::from_utf8_lossy(tables.string(id));
    let mut details: Details<'_> = Vec::new();
    if let Some(file) = frame.file.or(frame.native.map(|native| native.module)) {
        details.push(("file", Detail::Text(text(file))));
    }
    if let Some(line) = frame.line {
        details.push(("line", Detail::Signed(line)));
    }
    canvas.begin(track, &Mark { time_ns, name: &text(frame.function), details, arrow: None })
}

/// A sample drawn as an instant, because it does not show what its thread was executing for a time.
struct SampleInstant<'a> {
    name: &'a str,
    detail: (&'a str, Detail<'a>),
}

/// The kinds that do not show what a thread was executing, and the names of their instants.
const INSTANTS: [(SampleKind, &str); 3] = [
    (SampleKind::OffCpu, "off CPU"),
    (SampleKind::Allocation, "allocation"),
    (SampleKind::TaskDump, "task dump"),
];

/// The instant for a sample that does not show what its thread was executing. A label of that name may have any other
/// meaning.
fn instant(tables: &Tables, sample: &Sample<'_>) -> Option<SampleInstant<'static>> {
    let labels = tables.labels(sample.labels?);
    let source = labels.iter().find(|label| tables.string(label.key) == dial9::label::SOURCE.as_bytes())?;
    let LabelValue::Text(text) = source.value else { return None };
    let is_kind = |(kind, _): &(SampleKind, _)| tables.string(text) == kind.name().as_bytes();
    let (kind, name) = INSTANTS.into_iter().find(is_kind)?;
    Some(SampleInstant { name, detail: ("source", Detail::Text(kind.name().into())) })
}

/// The longest text of an instant's stack, in bytes. Callers beyond are left out.
const LONGEST_STACK: usize = 64 << 10;

/// The functions of a stack from the root on, separated by semicolons.
fn stack_text(tables: &Tables, stack: Option<StackId>) -> String {
    let (mut names, mut bytes) = (Vec::new(), 0);
    for frame in tables.frames_leaf_first(stack) {
        let name = String::from_utf8_lossy(tables.string(tables.function(frame)));
        bytes += name.len() + 1;
        if bytes > LONGEST_STACK {
            names.push("…".into());
            break;
        }
        names.push(name);
    }
    names.reverse();
    names.join(";")
}

fn seen<'a>(at: Context<'a>, sample: &Sample<'_>, instant: SampleInstant<'a>, time_ns: u64) -> Mark<'a> {
    let stack = Detail::Text(stack_text(at.tables, sample.stack).into());
    let mut details = vec![instant.detail, ("stack", stack)];
    for label in sample.labels.map_or(&[][..], |labels| at.tables.labels(labels)) {
        if let (Ok(key), LabelValue::Number { value, .. }) =
            (std::str::from_utf8(at.tables.string(label.key)), label.value)
        {
            details.push((key, Detail::Signed(value)));
        }
    }
    Mark { time_ns, name: instant.name, details, arrow: None }
}
