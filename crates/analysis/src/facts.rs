//! The facts of a report about the profile as a whole.

use std::collections::HashSet;
use std::hash::Hash;

use borehole_model::{Context, Sample, Warning};

use crate::counts::Tally;
use crate::view::{PeriodSamples, ProfileSummary};

/// Counts samples, segments and warnings.
#[derive(Clone, Debug, Default)]
pub(crate) struct SummaryCounts {
    /// Samples that are counted.
    samples: u64,
    /// Samples whose value is added up.
    valued: u64,
    /// Samples since the last change of period.
    pending: u64,
    empty: u64,
    /// The value of samples with an empty stack.
    empty_value: i128,
    at_depth_limit: u64,
    depth_limit: Option<u32>,
    without_period: u64,
    timed: u64,
    time_ns: i128,
    segments: u64,
    warnings: u64,
    lost_bytes: u64,
    periods: Vec<PeriodSamples>,
    processes: CachedSet<i64>,
    threads: CachedSet<(Option<i64>, u64)>,
    span: ClockSpan,
}

impl SummaryCounts {
    /// Counts a sample of the period that the next [`SummaryCounts::settle`] names.
    #[inline]
    pub(crate) fn count(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        self.pending = self.pending.saturating_add(sample.count);
        self.note(at, sample);
    }

    /// Counts a sample whose value is added up, whatever its period.
    pub(crate) fn count_valued(&mut self, at: Context<'_>, sample: &Sample<'_>, value: i64) {
        if sample.stack.is_none() {
            self.empty_value = self.empty_value.saturating_add(value.into());
        }
        self.valued = self.valued.saturating_add(sample.count);
        self.note(at, sample);
    }

    #[inline]
    fn note(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        if sample.stack.is_none() {
            self.empty = self.empty.saturating_add(sample.count);
        }
        if let (Some(limit), Some(stack)) = (at.segment.depth_limit, sample.stack)
            && at.tables.depth(stack) >= limit
        {
            self.at_depth_limit = self.at_depth_limit.saturating_add(sample.count);
            self.depth_limit = self.depth_limit.max(Some(limit));
        }
        let process = at.process(sample);
        if let Some(process) = process {
            self.processes.note(process);
        }
        if let Some(thread) = sample.thread {
            self.threads.note((process, thread));
        }
        if let Some(time_ns) = sample.time_ns {
            self.timed = self.timed.saturating_add(sample.count);
            self.span.extend(time_ns);
        }
    }

    /// Assigns a period to all samples since the last call.
    pub(crate) fn settle(&mut self, period_ns: Option<u64>) {
        let count = std::mem::take(&mut self.pending);
        self.samples = self.samples.saturating_add(count);
        let Some(period_ns) = period_ns.filter(|_| count > 0) else {
            self.without_period = self.without_period.saturating_add(count);
            return;
        };
        self.time_ns = self.time_ns.saturating_add(Tally::of(count, period_ns).value);
        if let Some(row) = self.periods.iter_mut().find(|row| row.period_ns == period_ns) {
            row.samples = row.samples.saturating_add(count);
        } else if self.periods.len() < ProfileSummary::MAX_PERIODS {
            self.periods.push(PeriodSamples { period_ns, samples: count });
        }
    }

    /// Begins a segment. The first segment of an input begins a new clock.
    pub(crate) fn segment(&mut self, at: Context<'_>) {
        self.segments += 1;
        if at.segment.index == 0 {
            self.span.restart();
        }
    }

    pub(crate) fn warning(&mut self, warning: &Warning) {
        self.warnings += 1;
        self.lost_bytes = self.lost_bytes.saturating_add(warning.lost_bytes);
    }

    /// Whether any sample has a period.
    const fn has_time(&self) -> bool {
        self.without_period < self.samples
    }

    pub(crate) fn summary(&mut self) -> ProfileSummary {
        self.span.restart();
        ProfileSummary {
            samples: self.samples.saturating_add(self.valued),
            empty: self.empty,
            empty_value: self.empty_value,
            at_depth_limit: self.at_depth_limit,
            depth_limit: self.depth_limit,
            time_ns: self.has_time().then(|| self.time_ns.unsigned_abs()),
            periods: std::mem::take(&mut self.periods),
            without_period: self.without_period,
            segments: self.segments,
            processes: self.processes.seen.len(),
            threads: self.threads.seen.len(),
            timed: self.timed,
            span_ns: self.span.closed_ns,
            warnings: self.warnings,
            lost_bytes: self.lost_bytes,
            ..ProfileSummary::default()
        }
    }
}

/// A set that finds its last member without hashing, because consecutive samples are usually of one process.
#[derive(Clone, Debug, Default)]
struct CachedSet<T> {
    seen: HashSet<T>,
    last: Option<T>,
}

impl<T: Copy + Eq + Hash> CachedSet<T> {
    #[inline]
    fn note(&mut self, value: T) {
        if self.last != Some(value) {
            self.last = Some(value);
            self.seen.insert(value);
        }
    }
}

/// The time from the first to the last sample, summed over clocks.
#[derive(Clone, Debug, Default)]
struct ClockSpan {
    open: Option<(i64, i64)>,
    closed_ns: Option<u64>,
}

impl ClockSpan {
    #[inline]
    fn extend(&mut self, time_ns: i64) {
        let (first, last) = self.open.unwrap_or((time_ns, time_ns));
        self.open = Some((first.min(time_ns), last.max(time_ns)));
    }

    fn restart(&mut self) {
        if let Some((first, last)) = self.open.take() {
            let sum = self.closed_ns.unwrap_or(0).saturating_add(last.abs_diff(first));
            self.closed_ns = Some(sum);
        }
    }
}
