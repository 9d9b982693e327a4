//! The stacks of each lane in the order of time: runs of equal stacks.
//!
//! Constraints: there are at most [`MOST_RUNS`] runs. Beyond, what is short becomes part of its longest neighbour, and what counts
//! as short doubles until there is room. So memory is bounded, whatever the number of samples.

mod chart;

use std::io;
use std::ops::ControlFlow;

use borehole_model::{Context, Lane, Lasting, ProfileSink, Sample, StackId, Tables, Weigher, goes_on};
use hashbrown::HashMap;

pub use chart::{ChartBox, ChartFrame, ChartLane, ChartLimits, FlameChart};

use crate::profile::clock::CommonClock;
use crate::weighing::Weighing;

/// The maximum number of runs held: 128 MiB.
const MOST_RUNS: usize = 1 << 22;

/// The maximum number of lanes. A program that begins a thread for each request has no end of them.
const MOST_LANES: usize = 1 << 12;

/// A stack that a lane executed without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start_ns: i64,
    end_ns: i64,
    stack: Option<StackId>,
}

impl Run {
    const fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// A lane of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct SourceLane {
    source: u32,
    lane: Lane,
}

#[derive(Clone, Debug)]
struct LaneRow {
    of: SourceLane,
    runs: Vec<Run>,
    /// The duration of the last sample; `None` if it lasts until the next one.
    lasts_ns: Option<u64>,
}

impl LaneRow {
    /// Whether it was added as a run of its own.
    fn add(&mut self, time_ns: i64, stack: Option<StackId>, lasts_ns: Option<u64>) -> bool {
        let end_ns = time_ns.saturating_add_unsigned(lasts_ns.unwrap_or(0));
        let before = std::mem::replace(&mut self.lasts_ns, lasts_ns);
        if let Some(last) = self.runs.last_mut() {
            let begun_ns =
                before.map_or(last.end_ns, |lasts_ns| last.end_ns.saturating_sub_unsigned(lasts_ns));
            let gap_ns = u64::try_from(time_ns.saturating_sub(begun_ns)).ok();
            // Time runs backwards only between segments, where new runs begin.
            if gap_ns.is_some_and(|gap_ns| before.is_none_or(|lasts_ns| goes_on(gap_ns, lasts_ns))) {
                last.end_ns = time_ns;
                if last.stack == stack {
                    last.end_ns = end_ns;
                    return false;
                }
            }
        }
        self.runs.push(Run { start_ns: time_ns, end_ns, stack });
        true
    }
}

/// Collects what each lane executed over time.
///
/// # Examples
///
/// ```
/// use borehole_analysis::LaneRunsSink;
/// use borehole_model::{Context, ProfileSink, Sample, Segment, Tables};
///
/// let tables = Tables::default();
/// let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
/// let at = Context { tables: &tables, segment: &segment };
/// let mut sink = LaneRunsSink::default();
/// sink.segment(at)?;
/// for time_ns in [0, 10_000_000, 50_000_000] {
///     let _ = sink.sample(at, &Sample { count: 1, time_ns: Some(time_ns), ..Sample::default() })?;
/// }
/// assert_eq!(sink.into_runs().count(), 2, "there is a gap before the last one");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LaneRunsSink {
    clock: CommonClock,
    weighing: Weighing,
    source: u32,
    lanes: HashMap<SourceLane, usize>,
    runs: LaneRuns,
    lasting: Lasting,
    most_runs: usize,
}

impl Default for LaneRunsSink {
    fn default() -> Self {
        Self {
            clock: CommonClock::default(),
            weighing: Weighing::default(),
            source: 0,
            lanes: HashMap::new(),
            runs: LaneRuns::default(),
            lasting: Lasting::default(),
            most_runs: MOST_RUNS,
        }
    }
}

impl LaneRunsSink {
    /// Collects the samples that `weigher` picks.
    #[must_use]
    pub fn new(weigher: Weigher) -> Self {
        Self { weighing: Weighing::new(weigher), ..Self::default() }
    }

    /// The runs of all lanes.
    #[must_use]
    pub fn into_runs(mut self) -> LaneRuns {
        for lane in &mut self.runs.lanes {
            lane.runs.sort_by_key(|run| run.start_ns);
        }
        self.runs
    }

    /// The row of a lane; `None` if there are too many.
    fn row(&mut self, lane: Lane) -> Option<&mut LaneRow> {
        let of = SourceLane { source: self.source, lane };
        let lanes = &mut self.runs.lanes;
        let row = match self.lanes.get(&of) {
            Some(&row) => row,
            None if lanes.len() == MOST_LANES => return None,
            None => {
                lanes.push(LaneRow { of, runs: Vec::new(), lasts_ns: None });
                self.lanes.insert(of, lanes.len() - 1);
                lanes.len() - 1
            }
        };
        lanes.get_mut(row)
    }
}

impl ProfileSink for LaneRunsSink {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if self.weighing.weigh(at, sample).is_none() {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(time_ns) = sample.time_ns else { return Ok(ControlFlow::Continue(())) };
        let time_ns = self.clock.since_origin(time_ns, at.segment);
        let (lane, lasts_ns) = (at.lane(sample), self.lasting.ns(sample));
        let Some(row) = self.row(lane) else {
            self.runs.beyond_lanes = self.runs.beyond_lanes.saturating_add(sample.count);
            return Ok(ControlFlow::Continue(()));
        };
        if row.add(time_ns, sample.stack, lasts_ns) {
            self.runs.count += 1;
            if self.runs.count > self.most_runs {
                self.runs.make_room(self.most_runs);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weighing.segment(at.segment);
        self.lasting = Lasting::of(at.segment);
        if at.segment.index == 0 {
            self.clock.restart();
        }
        Ok(())
    }

    fn source(&mut self, _name: &str) -> io::Result<()> {
        self.source = self.source.saturating_add(1);
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

/// The stacks of each lane in the order of time.
#[derive(Clone, Debug, Default)]
pub struct LaneRuns {
    lanes: Vec<LaneRow>,
    count: usize,
    /// Runs that are shorter were joined to their neighbours; 0 if none were.
    grain_ns: i64,
    /// The samples of lanes beyond the limit.
    beyond_lanes: u64,
}

impl LaneRuns {
    /// The number of runs.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Joins short runs until half of the room is free, or each lane has one run only.
    #[cold]
    fn make_room(&mut self, most: usize) {
        const FIRST_GRAIN_NS: i64 = 1 << 17;
        self.grain_ns = self.grain_ns.max(FIRST_GRAIN_NS);
        // Runs since the last time may be short enough already.
        self.join();
        while self.count > (most / 2).max(self.lanes.len()) && self.grain_ns < i64::MAX / 2 {
            self.grain_ns *= 2;
            self.join();
        }
    }

    fn join(&mut self) {
        for lane in &mut self.lanes {
            let runs = std::mem::take(&mut lane.runs);
            lane.runs = joined(runs.into_iter(), self.grain_ns);
        }
        self.count = self.lanes.iter().map(|lane| lane.runs.len()).sum();
    }
}

/// Runs of which those that begin in one stretch of `grain_ns`, without a break, are one: the stack of the longest.
fn joined(runs: impl Iterator<Item = Run>, grain_ns: i64) -> Vec<Run> {
    let mut kept: Vec<Run> = Vec::new();
    // The length of the run that gave the last one its stack.
    let mut longest_ns = 0;
    for run in runs {
        let stretch = |run: &Run| run.start_ns.div_euclid(grain_ns.max(1));
        match kept.last_mut() {
            Some(last)
                if stretch(last) == stretch(&run)
                    && run.start_ns.saturating_sub(last.end_ns) < grain_ns
                    && last.length_ns() < grain_ns =>
            {
                if run.length_ns() > longest_ns {
                    (last.stack, longest_ns) = (run.stack, run.length_ns());
                }
                last.end_ns = last.end_ns.max(run.end_ns);
            }
            Some(last) if last.stack == run.stack && last.end_ns == run.start_ns => {
                last.end_ns = run.end_ns;
                longest_ns = last.length_ns();
            }
            _ => {
                longest_ns = run.length_ns();
                kept.push(run);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use borehole_model::Segment;

    use super::*;

    /// A sink of a lane that runs a stack in each of `count` milliseconds; one after `gap`.
    fn filled(sink: &mut LaneRunsSink, count: i64) -> Tables {
        let mut tables = Tables::default();
        let stacks: Vec<_> = [&b"a"[..], b"b"]
            .map(|name| {
                let name = tables.intern_string(name).unwrap();
                let frame = tables.intern_frame(&borehole_model::Frame::named(name)).unwrap();
                tables.intern_stack_leaf_first(&[frame]).unwrap()
            })
            .to_vec();
        let segment = Segment { period_ns: Some(1_000_000), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        sink.segment(at).unwrap();
        for place in 0..count {
            let stack = stacks[usize::try_from(place / 2 % 2).unwrap()];
            let time_ns = Some(place * 1_000_000);
            let _ = sink.sample(at, &Sample { stack, count: 1, time_ns, ..Sample::default() }).unwrap();
        }
        tables
    }

    #[test]
    fn equal_neighbours_are_one_run_and_a_gap_ends_it() {
        let mut sink = LaneRunsSink::default();
        let tables = filled(&mut sink, 6);
        let segment = Segment { period_ns: Some(1_000_000), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        let late = Sample { count: 1, time_ns: Some(20_000_000), ..Sample::default() };
        let _ = sink.sample(at, &late).unwrap();
        let runs = sink.into_runs();
        let times: Vec<_> =
            runs.lanes[0].runs.iter().map(|run| (run.start_ns / 1000, run.end_ns / 1000)).collect();
        assert_eq!(times, [(0, 2000), (2000, 4000), (4000, 6000), (20_000, 21_000)]);
    }

    #[test]
    fn runs_are_joined_when_there_are_too_many_and_no_time_is_lost() {
        let mut sink = LaneRunsSink { most_runs: 64, ..LaneRunsSink::default() };
        filled(&mut sink, 100_000);
        let runs = sink.into_runs();
        assert!(runs.count <= 64 && runs.grain_ns < 10_000_000_000, "{} {}", runs.count, runs.grain_ns);
        let lane = &runs.lanes[0].runs;
        assert_eq!((lane[0].start_ns, lane[lane.len() - 1].end_ns), (0, 100_000_000_000));
        assert!(lane.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    }
}
