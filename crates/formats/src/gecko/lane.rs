//! One thread of one interpreter while its samples are collected: its stacks, and the intervals of its other states,
//! which become markers.

use std::io;

use borehole_model::Status;

use crate::documents::chains::{EntryChain, SampleSpool};

/// The identity of a lane, including the input, as each input has its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    pub(super) input: u64,
    pub(super) lane: borehole_model::Lane,
    pub(super) weights: WeightType,
}

/// The kind of weights of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum WeightType {
    /// The numbers of samples.
    #[default]
    Counts,
    /// Nanoseconds.
    Times,
    Bytes,
}

impl WeightType {
    /// The value of `weightType`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counts => "samples",
            Self::Times => "tracing-ms",
            Self::Bytes => "bytes",
        }
    }
}

/// A sample in the form of lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneSample {
    /// The index of the stack, plus one; 0 if nothing of it is displayed.
    pub(super) stack: u64,
    pub(super) count: u64,
    /// The count, or the value named by [`WeightType`], which may be negative.
    pub(super) weight: i64,
    pub(super) time_ns: Option<i64>,
    pub(super) period_ns: u64,
    pub(super) status: Option<Status>,
    pub(super) in_gc: bool,
    /// The instruction, plus one; 0 if unknown.
    pub(super) opcode: u64,
}

/// A thread whose samples and states wait until it is written.
#[derive(Debug)]
pub(super) struct ThreadLane {
    pub(super) key: LaneKey,
    pub(super) is_main: bool,
    pub(super) is_python: bool,
    /// `None` as long as no sample has a time.
    pub(super) start_ns: Option<i64>,
    /// The time since the start: of the last sample, and of the last displayed one.
    last: u64,
    last_shown: u64,
    pub(super) samples: u64,
    /// Whether the weight of any sample is not 1.
    pub(super) has_weights: bool,
    /// The number of samples that are older than the one before them.
    pub(super) disordered: u64,
    /// The states at the last sample: status, garbage collection and instruction.
    last_states: Option<(Option<Status>, bool, u64)>,
    /// Entries: the stack, the time since the one before, and the weight.
    pub(super) chain: EntryChain,
    pub(super) stretches: [Stretches; StateKind::ALL.len()],
}

impl ThreadLane {
    pub(super) fn new(key: LaneKey, first: &LaneSample, is_python: bool) -> Self {
        Self {
            key,
            is_main: first.status.is_some_and(is_main),
            is_python,
            start_ns: None,
            last: 0,
            last_shown: 0,
            samples: 0,
            has_weights: false,
            disordered: 0,
            last_states: None,
            chain: EntryChain::default(),
            stretches: Default::default(),
        }
    }

    #[inline]
    pub(super) fn take(&mut self, sample: &LaneSample, spool: &mut SampleSpool) -> io::Result<()> {
        self.pass_time(sample);
        self.take_states(sample, spool)?;
        if sample.stack != 0 {
            self.samples += 1;
            self.has_weights |= sample.weight != 1 || self.key.weights != WeightType::Counts;
            let weight = sample.weight.cast_unsigned();
            spool.push(&mut self.chain, [sample.stack, self.last - self.last_shown, weight])?;
            self.last_shown = self.last;
        }
        if sample.time_ns.is_none() {
            // The next sample follows when these have lasted their time.
            self.last = self.last.saturating_add(sample.count.saturating_mul(sample.period_ns));
        }
        Ok(())
    }

    /// Advances the time, which never runs backwards: the viewer looks samples up by time.
    #[inline]
    fn pass_time(&mut self, sample: &LaneSample) {
        let Some(time_ns) = sample.time_ns else { return };
        // Earlier samples without times end at the first one with a time.
        let start_ns = *self.start_ns.get_or_insert(time_ns.saturating_sub_unsigned(self.last));
        let since = i128::from(time_ns) - i128::from(start_ns);
        match u64::try_from(since) {
            Ok(since) if since >= self.last => self.last = since,
            _ => self.disordered = self.disordered.saturating_add(sample.count),
        }
    }

    #[inline]
    fn take_states(&mut self, sample: &LaneSample, spool: &mut SampleSpool) -> io::Result<()> {
        let states = Some((sample.status, sample.in_gc, sample.opcode));
        if self.last_states == states {
            return Ok(());
        }
        self.last_states = states;
        for (kind, stretches) in StateKind::ALL.into_iter().zip(&mut self.stretches) {
            let state = match kind {
                StateKind::Gc => u64::from(sample.in_gc),
                StateKind::Opcode => sample.opcode,
                _ => sample.status.map_or(0, |status| state_of(kind, status)),
            };
            stretches.observe(state, self.last, spool)?;
        }
        Ok(())
    }

    /// Ends the open intervals at the time of the last sample.
    pub(super) fn close(&mut self, spool: &mut SampleSpool) -> io::Result<()> {
        let last = self.last;
        self.stretches.iter_mut().try_for_each(|stretches| stretches.close(last, spool))
    }
}

/// The kinds of intervals. A thread is in at most one state of each kind at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Gil,
    Cpu,
    Code,
    Wait,
    Gc,
    Exception,
    Opcode,
}

impl StateKind {
    pub(super) const ALL: [Self; 7] =
        [Self::Gil, Self::Cpu, Self::Code, Self::Wait, Self::Gc, Self::Exception, Self::Opcode];

    /// The name of each state from 1 on; those of instructions are known to the caller.
    ///
    /// Source: CPython 3.15.2, `profiling/sampling/gecko_collector.py`.
    pub(super) const fn states(self) -> &'static [&'static str] {
        match self {
            Self::Gil => &["Has GIL", "No GIL"],
            Self::Cpu => &["On CPU", "Off CPU"],
            Self::Code => &["Python Code", "Native Code"],
            Self::Wait => &["Waiting for GIL"],
            Self::Gc => &["GC Collecting"],
            Self::Exception => &["Has Exception", "No Exception"],
            Self::Opcode => &[],
        }
    }

    /// The index of the marker's category in the list of categories.
    pub(super) const fn category(self) -> u64 {
        match self {
            Self::Gil | Self::Wait => 4,
            Self::Cpu => 5,
            Self::Code => 6,
            Self::Gc => 3,
            Self::Exception => 8,
            Self::Opcode => 7,
        }
    }
}

const HAS_GIL: u8 = 1;
const ON_CPU: u8 = 2;
const UNKNOWN: u8 = 4;
const GIL_REQUESTED: u8 = 8;
const HAS_EXCEPTION: u8 = 16;
const MAIN_THREAD: u8 = 32;

/// Whether a sample is of the main thread.
const fn is_main(status: Status) -> bool {
    status.0 & MAIN_THREAD != 0
}

/// The state of one kind in a status; 0 if the status does not state it.
///
/// Whether a thread is on a CPU is unknown unless it was checked; `replay` then writes that it is not.
const fn state_of(kind: StateKind, status: Status) -> u64 {
    let has_gil = has_flag(status, HAS_GIL);
    let cpu_known = !has_flag(status, UNKNOWN) || has_flag(status, ON_CPU);
    match kind {
        StateKind::Gil => either(has_gil),
        StateKind::Cpu if cpu_known => either(has_flag(status, ON_CPU)),
        StateKind::Code if has_gil => 1,
        StateKind::Code if has_flag(status, ON_CPU) => 2,
        StateKind::Wait => has_flag(status, GIL_REQUESTED) as u64,
        StateKind::Exception => either(has_flag(status, HAS_EXCEPTION)),
        StateKind::Cpu | StateKind::Code | StateKind::Gc | StateKind::Opcode => 0,
    }
}

const fn has_flag(status: Status, flag: u8) -> bool {
    status.0 & flag != 0
}

const fn either(holds: bool) -> u64 {
    if holds { 1 } else { 2 }
}

/// The intervals of one kind of one lane.
#[derive(Clone, Debug, Default)]
pub(super) struct Stretches {
    open: Option<(u64, u64)>,
    last_start: u64,
    pub(super) count: u64,
    /// Entries: the state, the time since the start of the one before, and the length.
    pub(super) chain: EntryChain,
}

impl Stretches {
    /// Takes the state at a time that is not before the last one; 0 for none.
    #[inline]
    pub(super) fn observe(&mut self, state: u64, time: u64, spool: &mut SampleSpool) -> io::Result<()> {
        if self.open.map_or(0, |(state, _)| state) == state {
            return Ok(());
        }
        self.close(time, spool)?;
        self.open = (state != 0).then_some((state, time));
        Ok(())
    }

    /// Ends the open interval.
    pub(super) fn close(&mut self, time: u64, spool: &mut SampleSpool) -> io::Result<()> {
        let Some((state, start)) = self.open.take() else { return Ok(()) };
        spool.push(&mut self.chain, [state, start - self.last_start, time - start])?;
        self.last_start = start;
        self.count += 1;
        Ok(())
    }
}
