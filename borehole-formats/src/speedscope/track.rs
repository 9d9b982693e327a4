//! One profile of a document while its samples come in.

use std::io::{self, Read, Seek, Write};

use super::layout::{Unit, Weights};
use crate::chains::{self, Chain, Spool};

/// What tells profiles apart. All samples of one are weighed alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) process: Option<i64>,
    pub(super) thread: Option<u64>,
    pub(super) weights: Weights,
    /// Which value, for [`Weights::Values`].
    pub(super) value: usize,
}

/// A sample as a track takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// 0 is the empty stack, otherwise its id.
    pub(super) stack: u64,
    pub(super) count: u64,
    /// Unused by [`Weights::Times`].
    pub(super) weight: u64,
    pub(super) time_ns: i64,
    pub(super) period_ns: Option<u64>,
}

/// What waits until its track is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// 0 is the empty stack, otherwise its id.
    pub(super) stack: u64,
    pub(super) count: u64,
    pub(super) weight: u64,
}

impl From<chains::Entry> for Entry {
    fn from([stack, count, weight]: chains::Entry) -> Self {
        Self { stack, count, weight }
    }
}

#[derive(Debug)]
pub(super) struct Track {
    pub(super) key: Key,
    pub(super) unit: Unit,
    pub(super) start_ns: i64,
    pub(super) start_unix_ns: Option<i64>,
    /// The period of all samples; `None` also where they differ.
    pub(super) period_ns: Option<u64>,
    pub(super) total: u128,
    pub(super) samples: u64,
    /// Whether counts can be told from weights and period.
    pub(super) counts_follow: bool,
    /// Samples that are older than the one before them.
    pub(super) disordered: u64,
    /// Others that stand elsewhere in the file than at their time: behind the first of a run, or of a further input.
    pub(super) moved: u64,
    pub(super) chain: Chain,
    pending: Option<Pending>,
}

/// The run of equal stacks that is not complete yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    entry: Entry,
    /// Of the latest sample of the run.
    time_ns: i64,
    /// What the last sample lasts if none follows.
    tail_ns: u64,
}

impl Track {
    pub(super) fn new(key: Key, unit: Unit, first: &Taken, start_unix_ns: Option<i64>) -> Self {
        let start_ns = if key.weights == Weights::Times { first.time_ns } else { 0 };
        Self {
            key,
            unit,
            start_ns,
            start_unix_ns,
            period_ns: first.period_ns,
            total: 0,
            samples: 0,
            counts_follow: true,
            disordered: 0,
            moved: 0,
            chain: Chain::default(),
            pending: None,
        }
    }

    #[inline]
    pub(super) fn take<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        sample: &Taken,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        self.samples = self.samples.saturating_add(sample.count);
        if self.period_ns != sample.period_ns {
            self.period_ns = None;
            self.counts_follow &= self.key.weights != Weights::Periods;
        }
        let is_timed = self.key.weights == Weights::Times;
        let is_in_order = !is_timed || self.pass_time(sample);
        match &mut self.pending {
            Some(pending) if pending.entry.stack == sample.stack => {
                pending.entry.count = pending.entry.count.saturating_add(sample.count);
                pending.entry.weight = pending.entry.weight.saturating_add(sample.weight);
                pending.tail_ns = sample.period_ns.unwrap_or(pending.tail_ns);
            }
            _ => self.begin_run(sample, spool)?,
        }
        if is_timed && is_in_order && i128::from(sample.time_ns) != self.pending_since_ns() {
            self.moved = self.moved.saturating_add(sample.count);
        }
        Ok(())
    }

    /// Lets the sample before this one last until now. Whether this one is not older: time does not run backwards.
    fn pass_time(&mut self, sample: &Taken) -> bool {
        let Some(pending) = &mut self.pending else { return true };
        let gap = u64::try_from(i128::from(sample.time_ns) - i128::from(pending.time_ns));
        match gap {
            Ok(gap) => {
                pending.entry.weight = pending.entry.weight.saturating_add(gap);
                pending.time_ns = sample.time_ns;
                pending.tail_ns = sample.period_ns.unwrap_or(gap);
            }
            Err(_) => self.disordered = self.disordered.saturating_add(sample.count),
        }
        gap.is_ok()
    }

    /// Where the file puts the run that is not complete yet.
    fn pending_since_ns(&self) -> i128 {
        i128::from(self.start_ns).saturating_add_unsigned(self.total)
    }

    fn begin_run<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        sample: &Taken,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        let Taken { stack, count, time_ns, period_ns, .. } = *sample;
        let weight = if self.key.weights == Weights::Times { 0 } else { sample.weight };
        let latest_ns = self.pending.map_or(time_ns, |pending| pending.time_ns);
        let before = self.pending.replace(Pending {
            entry: Entry { stack, count, weight },
            time_ns: latest_ns,
            // A lone sample of unknown period still has to be seen.
            tail_ns: period_ns.or(self.pending.map(|pending| pending.tail_ns)).unwrap_or(1),
        });
        before.map_or(Ok(()), |before| self.push(before.entry, spool))
    }

    fn push<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        entry: Entry,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        // Other readers of JSON have signed numbers.
        let entry = Entry { weight: entry.weight.min(i64::MAX.unsigned_abs()), ..entry };
        self.total += u128::from(entry.weight);
        self.counts_follow &= match self.key.weights {
            Weights::Counts => true,
            Weights::Periods => self.period_ns.is_some_and(|period| {
                u128::from(entry.count) * u128::from(period) == u128::from(entry.weight)
            }),
            Weights::Times | Weights::Values => entry.count == 1,
        };
        spool.push(&mut self.chain, [entry.stack, entry.count, entry.weight])
    }

    /// Ends the last run: at the end, or where an input ends and the next one may have another clock.
    pub(super) fn close<S: Read + Write + Seek, F: FnMut() -> io::Result<S>>(
        &mut self,
        spool: &mut Spool<S, F>,
    ) -> io::Result<()> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        if self.key.weights == Weights::Times {
            pending.entry.weight = pending.entry.weight.saturating_add(pending.tail_ns);
        }
        self.push(pending.entry, spool)
    }
}
