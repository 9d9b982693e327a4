//! What is counted of each line of each function.
//!
//! Source: CPython 3.15.2, `PstatsCollector`; `tachyon/corpus/expected/*.pstats.json`.

use borehole_model::{FrameId, StackId, StringId, TableFull, Tables};
use hashbrown::HashMap;

use crate::own_frames;
use crate::stack_counts::StackCounts;

/// A line of a function. A line that is not known is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Function {
    pub(super) file: StringId,
    pub(super) line: i64,
    pub(super) name: StringId,
}

/// What was counted.
pub(super) struct Row {
    pub(super) function: Function,
    /// Samples that were executing it.
    pub(super) direct: u64,
    /// Samples that had it on the stack, counted once each.
    pub(super) cumulative: u64,
    /// Rows that called it, and how often: a recursive one several times a sample.
    pub(super) callers: Vec<(usize, u64)>,
}

/// The statistics of a profile, in the order in which functions were first seen.
pub(super) struct Stats {
    /// The names, which are text: what is not UTF-8 has been replaced, as Python's reader does it.
    pub(super) names: Tables,
    pub(super) rows: Vec<Row>,
    pub(super) period_s: f64,
    /// How many samples had no frame to count.
    pub(super) empty: u64,
}

impl Stats {
    /// The statistics of all stacks in `counts`.
    ///
    /// # Errors
    /// When a table is full.
    pub(super) fn of(counts: &StackCounts, tables: &Tables, period_ns: u64) -> Result<Self, TableFull> {
        let mut counting = Counting::default();
        for (stack, count) in counts.iter() {
            counting.add(stack, count, tables)?;
        }
        let Counting { names, rows, empty, .. } = counting;
        // Dividing whole microseconds, as CPython does, decides the last digits.
        Ok(Self { names, rows, period_s: (period_ns / 1000) as f64 / 1e6, empty })
    }

    /// The text of a name.
    pub(super) fn name(&self, name: StringId) -> &str {
        std::str::from_utf8(self.names.string(name)).unwrap_or_default()
    }
}

#[derive(Default)]
struct Counting {
    names: Tables,
    rows: Vec<Row>,
    index: HashMap<Function, usize>,
    /// By frame; the inner `None` is one to leave out.
    frames: Vec<Option<Option<usize>>>,
    /// Where in its callers a row has a caller.
    calls: HashMap<(usize, usize), usize>,
    /// By row: the last stack that it was counted for.
    seen: Vec<u64>,
    stacks: u64,
    empty: u64,
}

impl Counting {
    fn add(&mut self, stack: Option<StackId>, count: u64, tables: &Tables) -> Result<(), TableFull> {
        self.stacks += 1;
        let mut callee = None;
        for frame in tables.frames_leaf_first(stack) {
            let Some(row) = self.row(frame, tables)? else { continue };
            if std::mem::replace(&mut self.seen[row], self.stacks) != self.stacks {
                self.rows[row].cumulative = self.rows[row].cumulative.saturating_add(count);
            }
            match callee {
                None => self.rows[row].direct = self.rows[row].direct.saturating_add(count),
                Some(callee) => self.call(callee, row, count),
            }
            callee = Some(row);
        }
        if callee.is_none() {
            self.empty = self.empty.saturating_add(count);
        }
        Ok(())
    }

    fn call(&mut self, callee: usize, caller: usize, count: u64) {
        let callers = &mut self.rows[callee].callers;
        let at = *self.calls.entry((callee, caller)).or_insert(callers.len());
        match callers.get_mut(at) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => callers.push((caller, count)),
        }
    }

    fn row(&mut self, id: FrameId, tables: &Tables) -> Result<Option<usize>, TableFull> {
        if self.frames.len() <= id.index() {
            self.frames.resize(id.index() + 1, None);
        }
        if let Some(known) = self.frames[id.index()] {
            return Ok(known);
        }
        let row = self.new_row(id, tables)?;
        self.frames[id.index()] = Some(row);
        Ok(row)
    }

    fn new_row(&mut self, id: FrameId, tables: &Tables) -> Result<Option<usize>, TableFull> {
        let frame = tables.frame(id);
        if own_frames::is_own(frame, tables) {
            return Ok(None);
        }
        let mut text = |name: &[u8]| self.names.intern_string(String::from_utf8_lossy(name).as_bytes());
        let function = Function {
            file: text(own_frames::file(frame, tables))?,
            line: frame.line.unwrap_or(0),
            name: text(tables.string(frame.function))?,
        };
        let row = *self.index.entry(function).or_insert(self.rows.len());
        if row == self.rows.len() {
            self.rows.push(Row { function, direct: 0, cumulative: 0, callers: Vec::new() });
            self.seen.push(0);
        }
        Ok(Some(row))
    }
}
