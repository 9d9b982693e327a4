//! A flame chart: the calls of each lane in a range of time, at the resolution of a picture.

use borehole_model::{FrameId, StackId, StringId, Tables};
use hashbrown::HashMap;

use super::{LaneRow, LaneRuns, Run, joined};
use crate::profile::Profile;
use crate::profile::situations::Situation;
use crate::selection::{SampleSelection, TimeRange};
use crate::view::GroupValue;

/// The limits of a flame chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartLimits {
    /// The number of columns of the picture. What is shorter than one is joined.
    pub columns: usize,
    /// The maximum number of lanes, those with most in the range first.
    pub lanes: usize,
    /// The maximum depth of calls.
    pub depth: usize,
    /// The maximum number of boxes.
    pub boxes: usize,
}

impl Default for ChartLimits {
    fn default() -> Self {
        Self { columns: 1200, lanes: 64, depth: 256, boxes: 150_000 }
    }
}

/// The calls of lanes over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlameChart {
    /// The start of the range, in nanoseconds since the first sample.
    pub start_ns: i64,
    /// The end of the range.
    pub end_ns: i64,
    /// The lanes, in order of first appearance.
    pub lanes: Vec<ChartLane>,
    /// The functions of boxes.
    pub frames: Vec<ChartFrame>,
    /// Calls that are shorter are part of a neighbour.
    pub grain_ns: i64,
    /// The number of lanes with something in the range that are not in `lanes`.
    pub other_lanes: usize,
    /// The number of boxes that are left out because there are too many, or because they are too deep.
    pub left_out: usize,
}

/// A lane of a flame chart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartLane {
    /// Its thread; absent if it is not known.
    pub thread: GroupValue,
    /// The process, if known.
    pub process: Option<i64>,
    /// Its calls, in the order in which they end.
    pub boxes: Vec<ChartBox>,
}

/// A call in a flame chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartBox {
    /// The number of its callers.
    pub depth: usize,
    /// The start, in nanoseconds since the first sample.
    pub start_ns: i64,
    /// The end.
    pub end_ns: i64,
    /// The index of its function in `frames`.
    pub frame: usize,
}

/// A function of a flame chart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartFrame {
    /// Its name.
    pub name: Vec<u8>,
    /// The source file, or the library of native code.
    pub file: Option<Vec<u8>>,
}

impl LaneRuns {
    /// The chart of a selection; all times if it has no range. `profile` must be made of the same samples.
    #[must_use]
    pub fn chart(&self, profile: &Profile, selection: &SampleSelection, limits: ChartLimits) -> FlameChart {
        let range = selection.time.unwrap_or_else(|| self.whole());
        let length_ns = range.end_ns.saturating_sub(range.start_ns).max(1);
        let column_ns = length_ns / i64::try_from(limits.columns.max(1)).unwrap_or(i64::MAX);
        let chosen = self.lanes.iter().filter(|lane| is_chosen(profile, lane, selection));
        let mut there: Vec<(usize, &LaneRow, i64)> =
            chosen.enumerate().map(|(place, lane)| (place, lane, busy_ns(lane, range))).collect();
        there.retain(|&(.., busy_ns)| busy_ns > 0);
        there.sort_by_key(|&(place, _, busy_ns)| (-busy_ns, place));
        let other_lanes = there.len().saturating_sub(limits.lanes);
        there.truncate(limits.lanes);
        there.sort_by_key(|&(place, ..)| place);
        let mut drawing = ChartDrawing::new(&profile.tables, limits);
        let lanes = there.iter().map(|(_, lane, _)| ChartLane {
            thread: profile.thread_of(&situation_of(lane)),
            process: lane.of.lane.process,
            boxes: drawing.lane(lane, range, column_ns),
        });
        let lanes = lanes.collect();
        let ChartDrawing { frames, left_out, .. } = drawing;
        let grain_ns = column_ns.max(self.grain_ns);
        FlameChart {
            start_ns: range.start_ns,
            end_ns: range.end_ns,
            lanes,
            frames,
            grain_ns,
            other_lanes,
            left_out,
        }
    }

    /// The time that all runs cover.
    fn whole(&self) -> TimeRange {
        let runs = || self.lanes.iter().flat_map(|lane| &lane.runs);
        let start_ns = runs().map(|run| run.start_ns).min().unwrap_or(0);
        let end_ns = runs().map(|run| run.end_ns).max().unwrap_or(start_ns);
        TimeRange { start_ns, end_ns: end_ns.max(start_ns.saturating_add(1)) }
    }
}

fn situation_of(lane: &LaneRow) -> Situation {
    let of = lane.of;
    Situation {
        source: of.source,
        process: of.lane.process,
        thread: of.lane.thread,
        interpreter: of.lane.interpreter,
        ..Situation::default()
    }
}

/// Whether a selection has a lane. Labels and states are of samples, so they do not matter here.
fn is_chosen(profile: &Profile, lane: &LaneRow, selection: &SampleSelection) -> bool {
    let of_lanes = SampleSelection {
        threads: selection.threads.clone(),
        processes: selection.processes.clone(),
        interpreters: selection.interpreters.clone(),
        ..SampleSelection::default()
    };
    profile.situations.are_selected(&situation_of(lane), &of_lanes, &profile.tables)
}

/// The runs that overlap a range, cut to it.
fn cut(lane: &LaneRow, range: TimeRange) -> impl Iterator<Item = Run> {
    let first = lane.runs.partition_point(|run| run.end_ns <= range.start_ns);
    let within = lane.runs[first..].iter().take_while(move |run| run.start_ns < range.end_ns);
    within.map(move |run| Run {
        start_ns: run.start_ns.max(range.start_ns),
        end_ns: run.end_ns.min(range.end_ns),
        stack: run.stack,
    })
}

fn busy_ns(lane: &LaneRow, range: TimeRange) -> i64 {
    cut(lane, range)
        .filter(|run| run.stack.is_some())
        .fold(0, |sum: i64, run| sum.saturating_add(run.length_ns().max(0)))
}

/// Turns runs into calls.
struct ChartDrawing<'t> {
    tables: &'t Tables,
    limits: ChartLimits,
    frames: Vec<ChartFrame>,
    places: HashMap<(StringId, Option<StringId>), usize>,
    boxes: usize,
    left_out: usize,
}

/// A call in progress: its function, and its start.
type OpenCall = (usize, i64);

impl<'t> ChartDrawing<'t> {
    fn new(tables: &'t Tables, limits: ChartLimits) -> Self {
        Self { tables, limits, frames: Vec::new(), places: HashMap::new(), boxes: 0, left_out: 0 }
    }

    fn lane(&mut self, lane: &LaneRow, range: TimeRange, column_ns: i64) -> Vec<ChartBox> {
        let (mut boxes, mut open): (Vec<ChartBox>, Vec<OpenCall>) = (Vec::new(), Vec::new());
        let mut last_ns = range.start_ns;
        for run in joined(cut(lane, range), column_ns) {
            let calls = self.calls(run.stack);
            let pairs = open.iter().zip(&calls);
            let is_break = run.start_ns > last_ns;
            let same = if is_break { 0 } else { pairs.take_while(|((one, _), other)| one == *other).count() };
            self.end(&mut open, same, last_ns, &mut boxes);
            open.extend(calls.into_iter().skip(same).map(|call| (call, run.start_ns)));
            last_ns = run.end_ns;
        }
        self.end(&mut open, 0, last_ns, &mut boxes);
        boxes
    }

    /// Ends all calls but the outermost `keep`.
    fn end(&mut self, open: &mut Vec<OpenCall>, keep: usize, end_ns: i64, boxes: &mut Vec<ChartBox>) {
        while open.len() > keep
            && let Some((frame, start_ns)) = open.pop()
        {
            if self.boxes == self.limits.boxes {
                self.left_out += 1;
            } else if end_ns > start_ns {
                self.boxes += 1;
                boxes.push(ChartBox { depth: open.len(), start_ns, end_ns, frame });
            }
        }
    }

    /// The functions of a stack, the root first.
    fn calls(&mut self, stack: Option<StackId>) -> Vec<usize> {
        let tables = self.tables;
        let mut calls: Vec<usize> =
            tables.frames_leaf_first(stack).filter_map(|frame| self.place(frame)).collect();
        calls.reverse();
        self.left_out += calls.len().saturating_sub(self.limits.depth);
        calls.truncate(self.limits.depth);
        calls
    }

    /// The place of a frame's function; `None` for frames that other views leave out too.
    fn place(&mut self, frame: FrameId) -> Option<usize> {
        let frame = self.tables.frame(frame);
        if crate::frame_name::is_of_profiler(&frame, self.tables) {
            return None;
        }
        let file = frame.file.or(frame.native.map(|native| native.module));
        let (tables, frames) = (self.tables, &mut self.frames);
        Some(*self.places.entry((frame.function, file)).or_insert_with(|| {
            let text = |id| tables.string(id).to_vec();
            frames.push(ChartFrame { name: text(frame.function), file: file.map(text) });
            frames.len() - 1
        }))
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment};

    use super::*;
    use crate::lanes::LaneRunsSink;
    use crate::profile::ProfileBuilder;

    const MS: i64 = 1_000_000;

    /// A profile of threads that each run `main;NAME` for a millisecond, by the names of `stacks`, and its runs.
    fn profile(threads: &[(u64, &[&str])]) -> (Profile, LaneRuns) {
        let (mut tables, segment) =
            (Tables::default(), Segment { period_ns: Some(1_000_000), ..Segment::default() });
        let (mut builder, mut sink) = (ProfileBuilder::default(), LaneRunsSink::default());
        for &(thread, names) in threads {
            for (time, name) in (0..).zip(names) {
                let frames = ["main", name].map(|name| {
                    let name = tables.intern_string(name.as_bytes()).unwrap();
                    tables.intern_frame(&Frame::named(name)).unwrap()
                });
                let stack = tables.intern_stack_leaf_first(&[frames[1], frames[0]]).unwrap();
                let at = Context { tables: &tables, segment: &segment };
                let sample = Sample {
                    stack,
                    count: 1,
                    time_ns: Some(time * MS),
                    thread: Some(thread),
                    ..Sample::default()
                };
                if time == 0 {
                    sink.segment(at).unwrap();
                    builder.segment(at).unwrap();
                }
                let _ = builder.sample(at, &sample).unwrap();
                let _ = sink.sample(at, &sample).unwrap();
            }
        }
        builder.finish(&tables).unwrap();
        (builder.into_profile(tables), sink.into_runs())
    }

    fn boxes(chart: &FlameChart, lane: usize) -> Vec<(usize, i64, i64, String)> {
        let name = |of: usize| String::from_utf8_lossy(&chart.frames[of].name).into_owned();
        let boxes = chart.lanes[lane].boxes.iter();
        boxes.map(|of| (of.depth, of.start_ns / MS, of.end_ns / MS, name(of.frame))).collect()
    }

    #[test]
    fn a_call_goes_on_while_only_its_callees_change() {
        let (profile, runs) = profile(&[(1, &["a", "a", "b"]), (2, &["c"])]);
        let chart = runs.chart(&profile, &SampleSelection::default(), ChartLimits::default());
        let expected = [(1, 0, 2, "a"), (1, 2, 3, "b"), (0, 0, 3, "main")];
        assert_eq!(
            boxes(&chart, 0),
            expected.map(|(depth, from, to, name)| (depth, from, to, name.to_owned()))
        );
        assert_eq!((boxes(&chart, 1).len(), chart.left_out, chart.other_lanes), (2, 0, 0));
        let range = Some(TimeRange { start_ns: MS, end_ns: 2 * MS });
        let selection = SampleSelection { time: range, threads: vec![1], ..SampleSelection::default() };
        let chart = runs.chart(&profile, &selection, ChartLimits::default());
        assert_eq!((chart.lanes.len(), boxes(&chart, 0)[0].clone()), (1, (1, 1, 2, "a".to_owned())));
    }

    #[test]
    fn a_picture_has_no_more_than_its_columns_lanes_and_boxes() {
        let names: Vec<&str> = (0..1000).map(|at| if at % 2 == 0 { "a" } else { "b" }).collect();
        let (profile, runs) = profile(&[(1, &names), (2, &["c", "c"]), (3, &["d"])]);
        let limits = ChartLimits { columns: 10, lanes: 2, ..ChartLimits::default() };
        let chart = runs.chart(&profile, &SampleSelection::default(), limits);
        assert_eq!((chart.lanes.len(), chart.other_lanes, chart.grain_ns), (2, 1, 100 * MS));
        assert!(boxes(&chart, 0).len() <= 11, "{:?}", boxes(&chart, 0));
        let few = ChartLimits { boxes: 5, ..ChartLimits::default() };
        let chart = runs.chart(&profile, &SampleSelection::default(), few);
        assert_eq!(chart.lanes.iter().map(|lane| lane.boxes.len()).sum::<usize>(), 5);
        assert!(chart.left_out > 900, "{}", chart.left_out);
    }
}
