//! Samples as calls with durations: equal neighbours belong to one call.

use std::io;

use borehole_model::{
    Context, FrameId, LabelValue, Lane, Lasting, Sample, Segment, Status, Tables, dial9, goes_on,
};
use hashbrown::HashMap;

use super::tracks::{TimelineTrack, TrackSubject, Tracks};
use super::{Canvas, Detail, Details, Mark};
use crate::SampleKind;

/// The latest calls of each lane.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<Lane, usize>,
    rows: Vec<LaneRow>,
    frames: Vec<FrameId>,
    lasting: Lasting,
}

#[derive(Debug)]
struct LaneRow {
    lane: Lane,
    track: TimelineTrack,
    /// The calls in progress, the root first.
    calls: Vec<FrameId>,
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
        if let Some(instant) = instant(at.tables, sample) {
            let track = tracks.track(canvas, &TrackSubject::Lane(lane))?;
            return canvas.instant(track, &seen(at, sample, instant, time_ns));
        }
        let row = self.row(canvas, tracks, lane, time_ns)?;
        self.frames.clear();
        self.frames.extend(at.tables.frames_leaf_first(sample.stack));
        self.frames.reverse();
        let row = &mut self.rows[row];
        if !row.reaches(time_ns) {
            row.end(canvas)?;
        }
        row.calls_become(canvas, at.tables, &self.frames, time_ns)?;
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

    fn row(
        &mut self,
        canvas: &mut impl Canvas,
        tracks: &mut Tracks,
        lane: Lane,
        time_ns: u64,
    ) -> io::Result<usize> {
        if let Some(&row) = self.lanes.get(&lane) {
            return Ok(row);
        }
        let track = tracks.track(canvas, &TrackSubject::Lane(lane))?.clone();
        let (gil, cpu) = (StateTrack::default(), StateTrack::default());
        self.lanes.insert(lane, self.rows.len());
        self.rows.push(LaneRow {
            lane,
            track,
            calls: Vec::new(),
            last_ns: time_ns,
            lasts_ns: None,
            gil,
            cpu,
        });
        Ok(self.rows.len() - 1)
    }

    pub(super) fn end_all(&mut self, canvas: &mut impl Canvas) -> io::Result<()> {
        self.lanes.clear();
        self.rows.drain(..).try_for_each(|mut row| row.end(canvas))
    }
}

impl LaneRow {
    /// Whether the last sample's calls may continue until now. Time runs backwards only between segments, where new calls begin.
    fn reaches(&self, time_ns: u64) -> bool {
        let gap_ns = time_ns.checked_sub(self.last_ns);
        gap_ns.is_some_and(|gap_ns| self.lasts_ns.is_none_or(|lasts_ns| goes_on(gap_ns, lasts_ns)))
    }

    /// Ends the calls in progress at the end of their last sample.
    fn end(&mut self, canvas: &mut impl Canvas) -> io::Result<()> {
        let end_ns = self.last_ns.saturating_add(self.lasts_ns.unwrap_or(0));
        while self.calls.pop().is_some() {
            canvas.end(&self.track, end_ns)?;
        }
        self.gil.becomes(canvas, None, end_ns)?;
        self.cpu.becomes(canvas, None, end_ns)
    }

    fn calls_become(
        &mut self,
        canvas: &mut impl Canvas,
        tables: &Tables,
        frames: &[FrameId],
        time_ns: u64,
    ) -> io::Result<()> {
        let pairs = self.calls.iter().zip(frames);
        let same = pairs.take_while(|&(&one, &other)| is_same_call(tables, one, other)).count();
        for _ in same..self.calls.len() {
            canvas.end(&self.track, time_ns)?;
        }
        self.calls.truncate(same);
        for &frame in &frames[same..] {
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
            (&mut self.gil, gil, TrackSubject::Gil(self.lane)),
            (&mut self.cpu, cpu, TrackSubject::Cpu(self.lane)),
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

/// A kind of samples drawn as instants, and the name of the instant.
type Instant = (SampleKind, &'static str);

/// The kinds that do not show what a thread was executing.
const INSTANTS: [Instant; 3] = [
    (SampleKind::OffCpu, "off CPU"),
    (SampleKind::Allocation, "allocation"),
    (SampleKind::TaskDump, "task dump"),
];

/// The instant for a sample that does not show what its thread was executing. A label of that name may have any other
/// meaning.
fn instant(tables: &Tables, sample: &Sample<'_>) -> Option<Instant> {
    let labels = tables.labels(sample.labels?);
    let source = labels.iter().find(|label| tables.string(label.key) == dial9::label::SOURCE.as_bytes())?;
    let LabelValue::Text(text) = source.value else { return None };
    INSTANTS.into_iter().find(|(kind, _)| tables.string(text) == kind.name().as_bytes())
}

fn seen<'a>(at: Context<'a>, sample: &Sample<'_>, (kind, name): Instant, time_ns: u64) -> Mark<'a> {
    let text = |id| String::from_utf8_lossy(at.tables.string(id));
    let frames = at.tables.frames_leaf_first(sample.stack);
    let mut names: Vec<_> = frames.map(|id| text(at.tables.function(id))).collect();
    names.reverse();
    let source = Detail::Text(kind.name().into());
    let mut details = vec![("source", source), ("stack", Detail::Text(names.join(";").into()))];
    for label in sample.labels.map_or(&[][..], |labels| at.tables.labels(labels)) {
        if let (Ok(key), LabelValue::Number { value, .. }) =
            (std::str::from_utf8(at.tables.string(label.key)), label.value)
        {
            details.push((key, Detail::Signed(value)));
        }
    }
    Mark { time_ns, name, details, arrow: None }
}
