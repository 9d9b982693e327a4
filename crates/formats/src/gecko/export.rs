//! Exports the model to a profile.

use std::convert::Infallible;
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, FrameId, Measure, ProfileSink, Sample, Segment, StackColumn, StackId, StringId, Tables, Thread,
    ThreadNames,
};
use hashbrown::HashMap;

use super::document::{Document, Facts};
use super::lane::{Key, Lane, Taken, Weights};
use crate::chains::Spool;
use crate::one_clock::OneClock;
use crate::one_period::OnePeriod;
use crate::own_frames;
use crate::{Export, Losses};

/// The period of sources without a known one.
const DEFAULT_PERIOD_NS: u64 = 1_000_000;

/// Writes a processed profile: a lane for each process, interpreter and thread.
///
/// Times count from the earliest sample; samples without times begin there, and each lasts a period. Frames of the
/// profiler itself are omitted, and so are samples without any other frame.
///
/// Columns wait in a temporary file that `make_spool` supplies, so memory grows with the distinct stacks and not with
/// the samples. Nothing is written before `finish`.
#[derive(Debug)]
pub struct Exporter<W, S, F> {
    output: Option<W>,
    spool: Spool<S, F>,
    lanes: Vec<Lane>,
    lane_index: HashMap<Key, usize>,
    current: usize,
    input: u64,
    clock: OneClock,
    shown: Shown,
    instructions: Instructions,
    names: ThreadNames,
    period_ns: OnePeriod,
    /// The measure that weighs the current segment's samples, with its kind.
    weight: Measure,
    weights: Weights,
    lost: Lost,
}

/// The stacks of samples, with the displayed part of each.
#[derive(Debug, Default)]
struct Shown {
    stacks: Vec<StackId>,
    /// The displayed part of each stack.
    sights: Vec<Sight>,
    /// By stack: its index among these, plus one.
    places: Vec<u32>,
    traits: StackColumn<Traits>,
}

/// The displayed part of a sampled stack.
#[derive(Clone, Copy, Debug, Default)]
struct Sight {
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

/// The leaves with a known instruction.
#[derive(Debug, Default)]
struct Instructions {
    frames: Vec<FrameId>,
    index: HashMap<FrameId, u32>,
}

/// The parts of samples that could not be kept.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    labels: u64,
    values: u64,
    empty: u64,
    metadata: u64,
    broken_names: u64,
}

impl<W, S, F> Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    /// Creates an exporter to `output`. `make_spool` creates an empty temporary file; it is called at most once.
    pub fn new(output: W, make_spool: F) -> Self {
        Self {
            output: Some(output),
            spool: Spool::new(make_spool),
            lanes: Vec::new(),
            lane_index: HashMap::new(),
            current: 0,
            input: 0,
            clock: OneClock::default(),
            shown: Shown::default(),
            instructions: Instructions::default(),
            names: ThreadNames::default(),
            period_ns: OnePeriod::default(),
            weight: Measure::Count,
            weights: Weights::Counts,
            lost: Lost::default(),
        }
    }

    #[inline]
    fn lane(&mut self, key: Key, first: &Taken, segment: &Segment) -> usize {
        if self.lanes.get(self.current).is_some_and(|lane| lane.key == key) {
            return self.current;
        }
        let Self { lanes, lane_index, .. } = self;
        self.current = *lane_index.entry(key).or_insert_with(|| {
            lanes.push(Lane::new(key, first, segment.format == PYTHON_FORMAT));
            lanes.len() - 1
        });
        self.current
    }

    #[inline]
    fn taken(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Taken {
        let sight = match sample.stack {
            Some(stack) => self.shown.of(stack, &mut self.instructions, at.tables),
            None => Sight::default(),
        };
        Taken {
            stack: sight.place.into(),
            count: sample.count,
            weight: self.weight.of(at.segment, sample),
            time_ns: self.time_ns(at.segment, sample),
            period_ns: at.segment.period_ns.or(self.period_ns.known()).unwrap_or(DEFAULT_PERIOD_NS),
            status: sample.status,
            in_gc: sight.in_gc,
            opcode: sight.opcode.into(),
        }
    }

    /// The time of a sample, on the clock of the document.
    #[inline]
    fn time_ns(&self, segment: &Segment, sample: &Sample<'_>) -> Option<i64> {
        i64::try_from(self.clock.time_ns(segment, sample.time_ns?)).ok()
    }

    #[inline]
    fn count_losses(&mut self, sample: &Sample<'_>, taken: &Taken) {
        self.period_ns.sample(sample.count);
        let Lost { labels, values, empty, .. } = &mut self.lost;
        let lost = [
            (labels, sample.labels.is_some()),
            (values, sample.values.len() > usize::from(self.weights != Weights::Counts)),
            (empty, taken.stack == 0),
        ];
        for (sum, is_lost) in lost {
            *sum = sum.saturating_add(if is_lost { sample.count } else { 0 });
        }
    }
}

/// The weights of samples: their count, or, if it is their only measure and a time or bytes, their value.
fn weights(segment: &Segment) -> (Measure, Weights) {
    let measure = segment.default_measure();
    let value_type = segment.value_type(measure);
    match measure {
        Measure::Value(_) if segment.is_uncounted && value_type.nanoseconds_per_unit() == Some(1) => {
            (measure, Weights::Times)
        }
        Measure::Value(_) if segment.is_uncounted && value_type.unit == "bytes" => (measure, Weights::Bytes),
        _ => (Measure::Count, Weights::Counts),
    }
}

/// The name of the format whose threads are Python's.
const PYTHON_FORMAT: &str = "tachyon";

impl Shown {
    #[inline]
    fn of(&mut self, stack: StackId, instructions: &mut Instructions, tables: &Tables) -> Sight {
        match self.places.get(stack.index()) {
            Some(&place) if place != 0 => self.sights[place as usize - 1],
            _ => self.new_stack(stack, instructions, tables),
        }
    }

    #[cold]
    fn new_stack(&mut self, stack: StackId, instructions: &mut Instructions, tables: &Tables) -> Sight {
        let Traits { has_frames, in_gc } = self.find_traits(stack, tables);
        if self.places.len() <= stack.index() {
            self.places.resize(tables.stack_count(), 0);
        }
        self.stacks.push(stack);
        let place = number(self.stacks.len());
        self.places[stack.index()] = place;
        let opcode = instructions.of(stack, tables);
        let sight = Sight { place: if has_frames { place } else { 0 }, opcode, in_gc };
        self.sights.push(sight);
        sight
    }

    /// The traits of a stack: those of its callers and its leaf.
    fn find_traits(&mut self, stack: StackId, tables: &Tables) -> Traits {
        let Ok(traits) = self.traits.derive(stack, tables, |callers: Option<Traits>, stack| {
            let Traits { has_frames, in_gc } = callers.unwrap_or_default();
            let frame = tables.frame(tables.leaf(stack));
            Ok::<_, Infallible>(Traits {
                has_frames: has_frames || !own_frames::is_own(&frame, tables),
                in_gc: in_gc || tables.string(frame.function) == b"<GC>",
            })
        });
        traits
    }
}

impl Instructions {
    /// The index of the instruction of a stack's leaf, plus one; 0 if unknown.
    fn of(&mut self, stack: StackId, tables: &Tables) -> u32 {
        let leaf = tables.leaf(stack);
        if tables.frame(leaf).opcode.is_none() {
            return 0;
        }
        let Self { frames, index } = self;
        *index.entry(leaf).or_insert_with(|| {
            frames.push(leaf);
            number(frames.len())
        })
    }
}

/// The number of stacks or frames.
fn number(len: usize) -> u32 {
    u32::try_from(len).expect("stacks and frames are numbered with 32 bits")
}

impl<W, S, F> ProfileSink for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let key = Key { input: self.input, lane: at.lane(sample), weights: self.weights };
        let taken = self.taken(at, sample);
        self.count_losses(sample, &taken);
        let lane = self.lane(key, &taken, at.segment);
        self.lanes[lane].take(&taken, &mut self.spool)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.input += u64::from(at.segment.index == 0);
        self.lost.metadata += at.segment.metadata.len() as u64;
        self.period_ns.segment(at.segment.period_ns);
        self.clock.take(at.segment);
        (self.weight, self.weights) = weights(at.segment);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.lost.metadata += 1;
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        for lane in &mut self.lanes {
            lane.close(&mut self.spool)?;
        }
        // The document's columns by stack replace those used while collecting samples.
        let Shown { stacks, .. } = std::mem::take(&mut self.shown);
        let mut document = Document::new(output, &mut self.spool, tables);
        document.stacks = &stacks;
        document.instructions = &self.instructions.frames;
        document.names = Some(&self.names);
        let facts = Facts {
            interval_ns: self.period_ns.known().unwrap_or(DEFAULT_PERIOD_NS),
            start_unix_ns: self.clock.start_unix_ns(),
        };
        self.lost.broken_names = document.write(&facts, &self.lanes)?;
        Ok(())
    }
}

impl<W, S, F> Export for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    fn losses(&self) -> Losses {
        let Lost { labels, values, empty, metadata, broken_names } = self.lost;
        let mut losses = Losses::default();
        losses.add("annotations", labels);
        losses.add("measured values", values);
        losses.add("samples without a frame", empty);
        self.period_ns.report(&mut losses);
        losses.add("metadata entries", metadata);
        losses.add("bytes outside UTF-8 (in names)", broken_names);
        let disordered = self.lanes.iter().map(|lane| lane.disordered).sum();
        losses.add("times of samples that are older than the one before", disordered);
        losses
    }
}
