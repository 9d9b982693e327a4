//! What is counted of each line of each function.
//!
//! Source: CPython 3.15.2, `PstatsCollector`; `tachyon/corpus/expected/*.pstats.json`.

use borehole_model::{FrameId, StringId, TableFull, Tables};

use super::distinct::Distinct;
use crate::own_frames;
use crate::row_sums::{RowSum, RowSums, Rows};

/// A line of a function. A line that is not known is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) file: StringId,
    pub(super) line: i64,
    pub(super) name: StringId,
}

/// That a row called another, and how often: a recursive one several times a sample.
#[derive(Clone, Copy)]
pub(super) struct Call {
    callee: u32,
    caller: u32,
    pub(super) count: u64,
}

/// The lines of functions as they are counted, in the order in which they were first seen.
#[derive(Default)]
pub(super) struct Functions {
    /// The names, which are text: what is not UTF-8 has been replaced, as Python's reader does it.
    names: Tables,
    rows: Distinct<Function>,
    /// Callees and callers.
    calls: Distinct<[u32; 2]>,
    /// How often, by call.
    call_counts: Vec<u64>,
}

impl Rows for Functions {
    fn row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        let frame = tables.frame(frame);
        if own_frames::is_own(&frame, tables) {
            return Ok(None);
        }
        let mut text = |name: &[u8]| self.names.intern_string(String::from_utf8_lossy(name).as_bytes());
        let function = Function {
            file: text(own_frames::file(&frame, tables))?,
            line: frame.line.unwrap_or(0),
            name: text(tables.string(frame.function))?,
        };
        Ok(Some(self.rows.number(function)))
    }

    fn call(&mut self, caller: u32, callee: u32, count: u64) {
        let call = self.calls.number([callee, caller]) as usize;
        if call == self.call_counts.len() {
            self.call_counts.push(0);
        }
        self.call_counts[call] = self.call_counts[call].saturating_add(count);
    }
}

/// The statistics of a profile.
pub(super) struct Stats {
    names: Tables,
    rows: Distinct<Function>,
    sums: Vec<RowSum>,
    /// By callee, those of each in the order in which they were first seen.
    calls: Vec<Call>,
    times: Vec<RowTime>,
}

/// How long samples took that have been counted.
#[derive(Default)]
pub(super) struct Times {
    /// By row, as far as there are rows.
    rows: Vec<RowTime>,
    /// The sums of which the time is known.
    counted: Vec<RowSum>,
}

/// What [`RowSum`] counts, in seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct RowTime {
    pub(super) direct_s: f64,
    pub(super) cumulative_s: f64,
}

impl Times {
    /// Takes it that what `sums` have gained was sampled once a period.
    pub(super) fn add(&mut self, sums: &[RowSum], period_ns: u64) {
        // Dividing whole microseconds, as CPython does, decides the last digits.
        let period_s = (period_ns / 1000) as f64 / 1e6;
        self.rows.resize(sums.len(), RowTime::default());
        self.counted.resize(sums.len(), RowSum::default());
        for ((time, counted), sum) in self.rows.iter_mut().zip(&mut self.counted).zip(sums) {
            time.direct_s += (sum.direct - counted.direct) as f64 * period_s;
            time.cumulative_s += (sum.cumulative - counted.cumulative) as f64 * period_s;
            *counted = *sum;
        }
    }
}

impl Stats {
    /// The statistics of all that has been counted.
    pub(super) fn of(counted: RowSums<Functions>, times: Times) -> Self {
        let RowSums { rows: Functions { names, rows, calls, call_counts }, sums, .. } = counted;
        let calls = calls.rows().iter().zip(call_counts);
        let mut calls: Vec<_> =
            calls.map(|(&[callee, caller], count)| Call { callee, caller, count }).collect();
        calls.sort_by_key(|call| call.callee);
        Self { names, rows, sums, calls, times: times.rows }
    }

    /// All rows with their sums and times, in the order in which they were first seen.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&Function, RowSum, RowTime)> {
        let sums = self.sums.iter().copied().zip(self.times.iter().copied());
        self.rows.rows().iter().zip(sums).map(|(function, (sum, time))| (function, sum, time))
    }

    /// The text of a name.
    pub(super) fn name(&self, name: StringId) -> &str {
        std::str::from_utf8(self.names.string(name)).unwrap_or_default()
    }

    /// Who called the row at `callee`.
    pub(super) fn calls_of(&self, callee: usize) -> &[Call] {
        let start = self.calls.partition_point(|call| (call.callee as usize) < callee);
        let rest = &self.calls[start..];
        &rest[..rest.partition_point(|call| call.callee as usize == callee)]
    }

    pub(super) fn caller(&self, call: &Call) -> &Function {
        &self.rows.rows()[call.caller as usize]
    }
}
