//! Exports the model to a profile.

use std::convert::Infallible;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use borehole_model::{
    Column, Context, FrameId, Measure, OneClock, ProfileSink, Sample, Segment, StackColumn, StackId,
    StringId, Tables, Thread, ThreadNames,
};

use super::document::{GeckoWriter, ProfileMeta};
use super::lane::{LaneKey, LaneSample, ThreadLane, WeightType};
use crate::documents::chains::SampleSpool;
use crate::documents::numbered::Numbered;
use crate::frames::profiler;
use crate::registry::MakeSpool;
use crate::sums::losses::SampleLosses;
use crate::times::one_period::OnePeriod;
use crate::{Export, Losses};

/// The period of sources without a known one.
const DEFAULT_PERIOD_NS: u64 = 1_000_000;

/// The name of the format whose threads are Python's.
const PYTHON_FORMAT: &str = "tachyon";

/// Writes a processed profile: a lane for each process, interpreter and thread.
///
/// Times count from the earliest sample; samples without times begin there, and each lasts a period. Frames of the
/// profiler itself are omitted, and so are samples without any other frame.
///
/// Columns wait in a temporary file that `make_spool` supplies, so memory grows with the distinct stacks and not with
/// the samples. Nothing is written before `finish`.
pub struct Exporter<W> {
    output: Option<W>,
    spool: SampleSpool,
    lane_keys: Numbered<LaneKey>,
    /// By the number of their key.
    lanes: Vec<ThreadLane>,
    input: u64,
    clock: OneClock,
    shown: SampledStacks,
    /// The leaves with a known instruction.
    instructions: Numbered<FrameId>,
    names: ThreadNames,
    period_ns: OnePeriod,
    /// The measure that weighs the current segment's samples, with its kind.
    weight: Measure,
    weights: WeightType,
    losses: SampleLosses,
    /// The number of samples of which nothing is displayed.
    empty: u64,
    broken_names: u64,
}

/// The stacks of samples, with the displayed part of each.
#[derive(Debug, Default)]
struct SampledStacks {
    stacks: Vec<StackId>,
    /// The displayed part of each stack.
    parts: Vec<ShownStack>,
    /// By stack: its index among these, plus one.
    places: Column<NonZeroU32>,
    traits: StackColumn<Traits>,
}

/// The displayed part of a sampled stack.
#[derive(Clone, Copy, Debug, Default)]
struct ShownStack {
    /// The index of the stack, plus one; 0 if nothing of it is displayed.
    place: u32,
    /// The index of the instruction of its leaf, plus one; 0 if unknown.
    opcode: u32,
    in_gc: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traits {
    has_frames: bool,
    in_gc: bool,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`. `make_spool` is called at most once.
    pub fn new(output: W, make_spool: MakeSpool) -> Self {
        Self {
            output: Some(output),
            spool: SampleSpool::new(make_spool),
            lane_keys: Numbered::default(),
            lanes: Vec::new(),
            input: 0,
            clock: OneClock::default(),
            shown: SampledStacks::default(),
            instructions: Numbered::default(),
            names: ThreadNames::default(),
            period_ns: OnePeriod::default(),
            weight: Measure::Count,
            weights: WeightType::Counts,
            losses: SampleLosses::default(),
            empty: 0,
            broken_names: 0,
        }
    }

    #[inline]
    fn lane_sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> LaneSample {
        let shown = match sample.stack {
            Some(stack) => self.shown.part(stack, &mut self.instructions, at.tables),
            None => ShownStack::default(),
        };
        LaneSample {
            stack: shown.place.into(),
            count: sample.count,
            weight: self.weight.of(at.segment, sample),
            time_ns: self.time_ns(at.segment, sample),
            period_ns: at.segment.period_ns.or(self.period_ns.known()).unwrap_or(DEFAULT_PERIOD_NS),
            status: sample.status,
            in_gc: shown.in_gc,
            opcode: shown.opcode.into(),
        }
    }

    /// The time of a sample, on the clock of the document.
    #[inline]
    fn time_ns(&self, segment: &Segment, sample: &Sample<'_>) -> Option<i64> {
        i64::try_from(self.clock.time_ns(segment, sample.time_ns?)).ok()
    }

    #[inline]
    fn count_losses(&mut self, sample: &Sample<'_>, is_empty: bool) {
        self.period_ns.sample(sample.count);
        let is_weighed = matches!(self.weight, Measure::Value(_)) && sample.values.len() == 1;
        let values = if is_weighed { &[] } else { sample.values };
        self.losses.extras(&Sample { status: None, values, ..*sample });
        self.empty = self.empty.saturating_add(if is_empty { sample.count } else { 0 });
    }
}

/// The weights of samples: their count, or, if records have values only, the value shown by default, if the viewer has its unit.
fn weights(segment: &Segment) -> (Measure, WeightType) {
    let measure = segment.default_measure();
    let value_type = segment.value_type(measure);
    match measure {
        Measure::Value(_) if !segment.is_uncounted => (Measure::Count, WeightType::Counts),
        Measure::Value(_) if value_type.nanoseconds_per_unit() == Some(1) => (measure, WeightType::Times),
        Measure::Value(_) if value_type.unit == "bytes" => (measure, WeightType::Bytes),
        Measure::Value(_) if value_type.unit == "count" => (measure, WeightType::Counts),
        _ => (Measure::Count, WeightType::Counts),
    }
}

impl SampledStacks {
    #[inline]
    fn part(&mut self, stack: StackId, instructions: &mut Numbered<FrameId>, tables: &Tables) -> ShownStack {
        match self.places.get(stack.index()) {
            Some(place) => self.parts[place.get() as usize - 1],
            None => self.new_stack(stack, instructions, tables),
        }
    }

    #[cold]
    fn new_stack(
        &mut self,
        stack: StackId,
        instructions: &mut Numbered<FrameId>,
        tables: &Tables,
    ) -> ShownStack {
        let Traits { has_frames, in_gc } = self.find_traits(stack, tables);
        let place = one_based(self.stacks.len());
        self.stacks.push(stack);
        self.places.set(stack.index(), place);
        let leaf = tables.leaf(stack);
        let opcode = tables.frame(leaf).opcode.map_or(0, |_| one_based(instructions.number(leaf)).get());
        let shown = ShownStack { place: if has_frames { place.get() } else { 0 }, opcode, in_gc };
        self.parts.push(shown);
        shown
    }

    /// The traits of a stack: those of its callers and its leaf.
    fn find_traits(&mut self, stack: StackId, tables: &Tables) -> Traits {
        let Ok(traits) = self.traits.derive(stack, tables, |callers: Option<Traits>, stack| {
            let Traits { has_frames, in_gc } = callers.unwrap_or_default();
            let frame = tables.frame(tables.leaf(stack));
            Ok::<_, Infallible>(Traits {
                has_frames: has_frames || !profiler::is_profiler(&frame, tables),
                in_gc: in_gc || tables.string(frame.function) == b"<GC>",
            })
        });
        traits
    }
}

/// The place of a stack or a frame with an index.
fn one_based(index: usize) -> NonZeroU32 {
    let place = u32::try_from(index).ok().and_then(|index| NonZeroU32::MIN.checked_add(index));
    place.expect("stacks and frames are numbered with 32 bits")
}

impl<W: Write> ProfileSink for Exporter<W> {
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let key = LaneKey { input: self.input, lane: at.lane(sample), weights: self.weights };
        let taken = self.lane_sample(at, sample);
        self.count_losses(sample, taken.stack == 0);
        let lane = self.lane_keys.number(key);
        if lane == self.lanes.len() {
            self.lanes.push(ThreadLane::new(key, &taken, at.segment.format == PYTHON_FORMAT));
        }
        self.lanes[lane].take(&taken, &mut self.spool)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.input += u64::from(at.segment.index == 0);
        self.period_ns.segment(at.segment.period_ns);
        self.clock.take(at.segment);
        (self.weight, self.weights) = weights(at.segment);
        self.losses.segment(at)
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.names.name(thread, name);
        Ok(())
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        for lane in &mut self.lanes {
            lane.close(&mut self.spool)?;
        }
        // The document's columns by stack replace those used while collecting samples.
        let SampledStacks { stacks, .. } = std::mem::take(&mut self.shown);
        let mut document = GeckoWriter::new(output, &mut self.spool, tables);
        document.stacks = &stacks;
        document.instructions = self.instructions.values();
        document.names = Some(&self.names);
        let meta = ProfileMeta {
            interval_ns: self.period_ns.known().unwrap_or(DEFAULT_PERIOD_NS),
            start_unix_ns: self.clock.start_unix_ns(),
        };
        self.broken_names = document.write(&meta, &self.lanes)?;
        Ok(())
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("samples without frames", self.empty);
        self.period_ns.report(&mut losses);
        losses.add("bytes outside UTF-8 (in names)", self.broken_names);
        let disordered = self.lanes.iter().map(|lane| lane.disordered).sum();
        losses.add("times of samples out of order", disordered);
        losses
    }
}
