//! One thread of one interpreter while its samples are collected.

use std::io::{self, Read, Seek, Write};

use borehole_model::Status;

use super::state::{self, Kind, Stretches};
use crate::chains::{Chain, Spool};

/// The identity of a lane, including the input, as each input has its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) input: u64,
    pub(super) lane: borehole_model::Lane,
    pub(super) weights: Weights,
}

/// The kind of weights of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Weights {
    /// The numbers of samples.
    #[default]
    Counts,
    /// Nanoseconds.
    Times,
    Bytes,
}

impl Weights {
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
pub(super) struct Taken {
    /// The index of the stack, plus one; 0 if nothing of it is displayed.
    pub(super) stack: u64,
    pub(super) count: u64,
    /// The count, or the value that [`Weights`] says, which may be negative.
    pub(super) weight: i64,
    pub(super) time_ns: Option<i64>,
    pub(super) period_ns: u64,
    pub(super) status: Option<Status>,
    pub(super) in_gc: bool,
    /// The instruction, plus one; 0 if unknown.
    pub(super) opcode: u64,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) key: Key,
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
    /// The state at the last sample: status, garbage collection and instruction.
    told: Option<(Option<Status>, bool, u64)>,
    /// Entries: the stack, the time since the one before, and the weight.
    pub(super) chain: Chain,
    pub(super) stretches: [Stretches; Kind::ALL.len()],
}

impl Lane {
    pub(super) fn new(key: Key, first: &Taken, is_python: bool) -> Self {
        Self {
            key,
            is_main: first.status.is_some_and(state::is_main),
            is_python,
            start_ns: None,
            last: 0,
            last_shown: 0,
            samples: 0,
            has_weights: false,
            disordered: 0,
            told: None,
            chain: Chain::default(),
            stretches: Default::default(),
        }
    }

    #[inline]
    pub(super) fn take<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        sample: &Taken,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        self.pass_time(sample);
        self.take_states(sample, spool)?;
        if sample.stack != 0 {
            self.samples += 1;
            self.has_weights |= sample.weight != 1 || self.key.weights != Weights::Counts;
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
    fn pass_time(&mut self, sample: &Taken) {
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
    fn take_states<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        sample: &Taken,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        let told = Some((sample.status, sample.in_gc, sample.opcode));
        if self.told == told {
            return Ok(());
        }
        self.told = told;
        for (kind, stretches) in Kind::ALL.into_iter().zip(&mut self.stretches) {
            let state = match kind {
                Kind::Gc => u64::from(sample.in_gc),
                Kind::Opcode => sample.opcode,
                _ => sample.status.map_or(0, |status| state::told(kind, status)),
            };
            stretches.observe(state, self.last, spool)?;
        }
        Ok(())
    }

    /// Ends the open intervals at the time of the last sample.
    pub(super) fn close<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        let last = self.last;
        self.stretches.iter_mut().try_for_each(|stretches| stretches.close(last, spool))
    }
}
