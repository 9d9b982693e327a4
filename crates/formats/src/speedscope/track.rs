//! One profile of a document while its samples are collected.

use std::io;

use borehole_model::{Lane, Mode, StringId};

use super::layout::{Unit, WeightMeaning, clamped};
use crate::documents::chains::{EntryChain, SampleSpool};

/// The identity of a profile. All samples of one have the same kind of weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TrackKey {
    pub(super) lane: Lane,
    /// The index of the profile in a source of this format, among all profiles.
    pub(super) profile: Option<u64>,
    pub(super) weights: WeightMeaning,
    /// The index of the value, for weights from one; see `Exporter::value_types`.
    pub(super) value: Option<usize>,
    pub(super) is_timed: bool,
    pub(super) mode: Mode,
}

/// The common facts of all samples of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrackOrigin {
    pub(super) unit: Unit,
    pub(super) period_ns: Option<u64>,
    pub(super) start_unix_ns: Option<i64>,
    pub(super) is_uncounted: bool,
    /// The form of another program's profile.
    pub(super) name: Option<StringId>,
    pub(super) is_evented: bool,
    pub(super) start: Option<StringId>,
    pub(super) end: Option<StringId>,
}

/// A sample in the form of tracks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackSample {
    /// 0 for the empty stack, otherwise its place.
    pub(super) stack: u64,
    pub(super) count: u64,
    /// Unused by [`WeightMeaning::Times`].
    pub(super) weight: u64,
    pub(super) time_ns: Option<i64>,
    pub(super) period_ns: Option<u64>,
    /// The minimum delay after the end of the sample before that counts as a gap.
    pub(super) gap_ns: u64,
}

/// An entry that waits until its track is written.
#[derive(Clone, Copy, Debug)]
struct TrackEntry {
    /// 0 for the empty stack, otherwise its place.
    stack: u64,
    /// 0 for gaps.
    count: u64,
    weight: u64,
}

/// A profile whose entries wait until it is written.
#[derive(Debug)]
pub(super) struct ProfileTrack {
    pub(super) key: TrackKey,
    pub(super) origin: TrackOrigin,
    pub(super) start_ns: i64,
    /// The period of all samples; also `None` if they differ.
    pub(super) period_ns: Option<u64>,
    pub(super) total: u128,
    pub(super) samples: u64,
    /// Whether counts can be derived from weights and period.
    pub(super) counts_follow: bool,
    /// The number of samples whose time is not in the file: those after the first of a run, or of a further input.
    pub(super) moved: u64,
    /// Entries: the stack, the count and the weight.
    pub(super) chain: EntryChain,
    /// Entries whose position is not their time: the number of on-time entries before each, and its delay.
    pub(super) late: EntryChain,
    in_time: u64,
    pending: Option<Pending>,
    /// The time of the entry before, in a track that is not a timeline.
    stamp_ns: i64,
    /// The shift of times since a further input began.
    shift_ns: i128,
    is_further: bool,
}

/// An incomplete run of equal stacks.
#[derive(Clone, Copy, Debug)]
struct Pending {
    entry: TrackEntry,
    /// The time of the first sample of the run, and of the latest.
    first_ns: i64,
    time_ns: i64,
    /// The duration of the last sample if none follows.
    tail_ns: u64,
}

impl ProfileTrack {
    pub(super) fn new(key: TrackKey, origin: TrackOrigin, first: &TrackSample) -> Self {
        let is_timeline = matches!(key.weights, WeightMeaning::Times | WeightMeaning::Durations);
        Self {
            key,
            origin,
            start_ns: first.time_ns.filter(|_| is_timeline).unwrap_or(0),
            period_ns: first.period_ns,
            total: 0,
            samples: 0,
            counts_follow: true,
            moved: 0,
            chain: EntryChain::default(),
            late: EntryChain::default(),
            in_time: 0,
            pending: None,
            stamp_ns: 0,
            shift_ns: 0,
            is_further: false,
        }
    }

    /// Whether positions of entries are times.
    pub(super) const fn is_timeline(&self) -> bool {
        matches!(self.key.weights, WeightMeaning::Times | WeightMeaning::Durations)
    }

    /// Whether some samples' entries are not at their time.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    #[inline]
    pub(super) fn take(&mut self, sample: &TrackSample, spool: &mut SampleSpool) -> io::Result<()> {
        self.samples = self.samples.saturating_add(sample.count);
        if self.period_ns != sample.period_ns {
            self.period_ns = None;
        }
        let time_ns = self.moved_time(sample);
        if self.key.weights == WeightMeaning::Times {
            self.pass_time(time_ns);
        }
        if self.key.weights == WeightMeaning::Durations {
            self.fill_gap(time_ns, sample.gap_ns, spool)?;
        }
        match &mut self.pending {
            // A document's own records are kept apart, as they were.
            Some(pending) if pending.entry.stack == sample.stack && self.key.profile.is_none() => {
                pending.entry.count = pending.entry.count.saturating_add(sample.count);
                pending.entry.weight = pending.entry.weight.saturating_add(sample.weight);
                pending.time_ns = pending.time_ns.max(time_ns);
                let is_moved = time_ns != pending.first_ns || self.shift_ns != 0;
                self.note_moved(sample, is_moved);
                Ok(())
            }
            _ => {
                self.note_moved(sample, self.shift_ns != 0);
                self.begin_run(sample, time_ns, spool)
            }
        }
    }

    #[inline]
    fn note_moved(&mut self, sample: &TrackSample, is_moved: bool) {
        if sample.time_ns.is_some() && is_moved {
            self.moved = self.moved.saturating_add(sample.count);
        }
    }

    /// The time of a sample, on the clock of the first input.
    #[inline]
    fn moved_time(&mut self, sample: &TrackSample) -> i64 {
        let time_ns = sample.time_ns.unwrap_or(0);
        if self.is_further && self.is_timeline() {
            self.shift_ns = self.place_ns() - i128::from(time_ns);
        }
        self.is_further = false;
        clamped(i128::from(time_ns) + self.shift_ns)
    }

    /// The position of the next entry.
    fn place_ns(&self) -> i128 {
        let pending = self.pending.map_or(0, |pending| pending.entry.weight);
        i128::from(self.start_ns).saturating_add_unsigned(self.total + u128::from(pending))
    }

    /// Extends the sample before this one until now.
    fn pass_time(&mut self, time_ns: i64) {
        let Some(pending) = &mut self.pending else { return };
        if let Ok(gap) = u64::try_from(i128::from(time_ns) - i128::from(pending.time_ns)) {
            pending.entry.weight = pending.entry.weight.saturating_add(gap);
            pending.time_ns = time_ns;
            pending.tail_ns = gap;
        }
    }

    /// Adds an entry without a stack for a gap.
    fn fill_gap(&mut self, time_ns: i64, gap_ns: u64, spool: &mut SampleSpool) -> io::Result<()> {
        let ahead = u64::try_from(i128::from(time_ns) - self.place_ns()).unwrap_or(0);
        let Some(pending) = self.pending.filter(|_| ahead >= gap_ns) else { return Ok(()) };
        self.pending = None;
        self.push(pending, spool)?;
        self.counts_follow = false;
        self.total += u128::from(ahead);
        self.in_time += 1;
        spool.push(&mut self.chain, [0, 0, ahead])
    }

    fn begin_run(&mut self, sample: &TrackSample, time_ns: i64, spool: &mut SampleSpool) -> io::Result<()> {
        let TrackSample { stack, count, weight, period_ns, .. } = *sample;
        let weight = if self.key.weights == WeightMeaning::Times { 0 } else { weight };
        let before = self.pending.replace(Pending {
            entry: TrackEntry { stack, count, weight },
            first_ns: time_ns,
            time_ns: self.pending.map_or(time_ns, |pending| pending.time_ns.max(time_ns)),
            // A lone sample of unknown period still has to be visible.
            tail_ns: period_ns.or(self.pending.map(|pending| pending.tail_ns)).unwrap_or(1),
        });
        before.map_or(Ok(()), |before| self.push(before, spool))
    }

    fn push(&mut self, pending: Pending, spool: &mut SampleSpool) -> io::Result<()> {
        self.push_late(pending.first_ns, spool)?;
        // Other readers of JSON have signed numbers.
        let entry = TrackEntry { weight: pending.entry.weight.min(i64::MAX.unsigned_abs()), ..pending.entry };
        self.total += u128::from(entry.weight);
        let follows_period = || {
            let period = self.period_ns?;
            Some(u128::from(entry.count) * u128::from(period) == u128::from(entry.weight))
        };
        self.counts_follow &= match (self.key.weights, self.key.value) {
            (WeightMeaning::Counts, _) => entry.count == entry.weight,
            (WeightMeaning::Periods | WeightMeaning::Durations, None) => follows_period().unwrap_or(false),
            _ => entry.count == 1,
        };
        spool.push(&mut self.chain, [entry.stack, entry.count, entry.weight])
    }

    /// Stores the time of the entry that is pushed next, unless it follows from those before.
    fn push_late(&mut self, time_ns: i64, spool: &mut SampleSpool) -> io::Result<()> {
        if !self.key.is_timed {
            return Ok(());
        }
        let place = if self.is_timeline() {
            clamped(i128::from(self.start_ns).saturating_add_unsigned(self.total))
        } else {
            std::mem::replace(&mut self.stamp_ns, time_ns)
        };
        // The importer wraps around likewise, which restores every time.
        let late = time_ns.wrapping_sub(place);
        if late == 0 {
            self.in_time += 1;
            return Ok(());
        }
        let in_time = std::mem::take(&mut self.in_time);
        spool.push(&mut self.late, [in_time, zigzag(late), 0])
    }

    /// Ends the last run: at the end, or between inputs, since the next one may have another clock.
    pub(super) fn close(&mut self, spool: &mut SampleSpool) -> io::Result<()> {
        self.is_further = true;
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        if self.key.weights == WeightMeaning::Times {
            pending.entry.weight = pending.entry.weight.saturating_add(pending.tail_ns);
        }
        self.push(pending, spool)
    }
}

/// Maps numbers near 0 to small unsigned ones.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// Reverses [`zigzag`].
pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
