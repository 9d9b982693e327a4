//! The counts of each line of each function.
//!
//! Source: CPython 3.15.2, `PstatsCollector`; `tachyon/corpus/expected/*.pstats.json`.

use borehole_model::{FrameId, InternedRows, StringId, TableFull, Tables};

use crate::frames::profiler;
use crate::sums::rows::{FrameRows, RowSum, RowSums, row_number};

/// A line of a function; 0 if it is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionLine {
    pub(super) file: StringId,
    pub(super) line: i64,
    pub(super) name: StringId,
}

/// A call from one row to another, with its count: recursive calls count several times a sample.
#[derive(Clone, Copy)]
pub(super) struct Call {
    callee: u32,
    caller: u32,
    pub(super) count: u64,
}

/// The lines of functions, in order of first appearance.
#[derive(Default)]
pub(super) struct FunctionLines {
    /// The names as text, with invalid UTF-8 replaced like in Python's reader.
    names: Tables,
    rows: InternedRows<FunctionLine>,
    /// Callees and callers.
    calls: InternedRows<[u32; 2]>,
    /// The count of each call.
    call_counts: Vec<u64>,
}

impl FrameRows for FunctionLines {
    fn row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        let frame = tables.frame(frame);
        if profiler::is_profiler(&frame, tables) {
            return Ok(None);
        }
        let mut text = |name: &[u8]| self.names.intern_string(String::from_utf8_lossy(name).as_bytes());
        let function = FunctionLine {
            file: text(profiler::file(&frame, tables))?,
            line: frame.line.unwrap_or(0),
            name: text(tables.string(frame.function))?,
        };
        Ok(Some(row_number(self.rows.intern(&function))))
    }

    fn call(&mut self, caller: u32, callee: u32, count: u64) {
        let call = row_number(self.calls.intern(&[callee, caller])) as usize;
        if call == self.call_counts.len() {
            self.call_counts.push(0);
        }
        self.call_counts[call] = self.call_counts[call].saturating_add(count);
    }
}

/// The statistics of a profile.
pub(super) struct Stats {
    names: Tables,
    rows: InternedRows<FunctionLine>,
    sums: Vec<RowSum>,
    /// The calls by callee, each callee's in order of first appearance.
    calls: Vec<Call>,
    times: Vec<RowTime>,
}

/// The times of counted samples.
#[derive(Default)]
pub(super) struct Times {
    /// The times of the rows so far.
    rows: Vec<RowTime>,
    /// The sums whose time is included.
    counted: Vec<RowSum>,
}

/// The times of the counts in [`RowSum`], in seconds.
#[derive(Clone, Copy, Default)]
pub(super) struct RowTime {
    pub(super) self_s: f64,
    pub(super) total_s: f64,
}

impl Times {
    /// Adds one period for each sample that `sums` have gained.
    pub(super) fn add(&mut self, sums: &[RowSum], period_ns: u64) {
        // Dividing whole microseconds, as CPython does, gives the same last digits.
        let period_s = (period_ns / 1000) as f64 / 1e6;
        self.rows.resize(sums.len(), RowTime::default());
        self.counted.resize(sums.len(), RowSum::default());
        for ((time, counted), sum) in self.rows.iter_mut().zip(&mut self.counted).zip(sums) {
            time.self_s += (sum.self_samples - counted.self_samples) as f64 * period_s;
            time.total_s += (sum.total_samples - counted.total_samples) as f64 * period_s;
            *counted = *sum;
        }
    }
}

impl Stats {
    /// Builds the statistics of all counts.
    pub(super) fn of(counted: RowSums<FunctionLines>, times: Times) -> Self {
        let RowSums { rows: FunctionLines { names, rows, calls, call_counts }, sums, .. } = counted;
        let calls = calls.rows().iter().zip(call_counts);
        let mut calls: Vec<_> =
            calls.map(|(&[callee, caller], count)| Call { callee, caller, count }).collect();
        calls.sort_by_key(|call| call.callee);
        Self { names, rows, sums, calls, times: times.rows }
    }

    /// All rows with their sums and times, in order of first appearance.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&FunctionLine, RowSum, RowTime)> {
        let sums = self.sums.iter().copied().zip(self.times.iter().copied());
        self.rows.rows().iter().zip(sums).map(|(function, (sum, time))| (function, sum, time))
    }

    /// The text of a name.
    pub(super) fn name(&self, name: StringId) -> &str {
        std::str::from_utf8(self.names.string(name)).unwrap_or_default()
    }

    /// The callers of the row at `callee`.
    pub(super) fn calls_of(&self, callee: usize) -> &[Call] {
        let start = self.calls.partition_point(|call| (call.callee as usize) < callee);
        let rest = &self.calls[start..];
        &rest[..rest.partition_point(|call| call.callee as usize == callee)]
    }

    pub(super) fn caller(&self, call: &Call) -> &FunctionLine {
        &self.rows.rows()[call.caller as usize]
    }
}
