//! What is counted of each line of each function.
//!
//! Source: CPython 3.15.2, `PstatsCollector`; `tachyon/corpus/expected/*.pstats.json`.

use std::hash::BuildHasher as _;

use borehole_model::{FrameId, StackId, StringId, TableFull, Tables};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

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
}

/// That a row called another, and how often: a recursive one several times a sample.
#[derive(Clone, Copy)]
pub(super) struct Call {
    callee: u32,
    caller: u32,
    pub(super) count: u64,
}

/// The statistics of a profile, in the order in which functions were first seen.
pub(super) struct Stats {
    /// The names, which are text: what is not UTF-8 has been replaced, as Python's reader does it.
    pub(super) names: Tables,
    pub(super) rows: Vec<Row>,
    /// By callee, those of each in the order in which they were first seen.
    calls: Vec<Call>,
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
        let mut counting = Counting::new(tables);
        let totals = counts.totals(tables);
        for (stack, count) in counts.iter() {
            counting.walk(stack, &totals, tables)?;
            counting.execute(stack, count, tables);
        }
        let Counting { names, rows, mut calls, empty, .. } = counting;
        calls.sort_by_key(|call| call.callee);
        // Dividing whole microseconds, as CPython does, decides the last digits.
        Ok(Self { names, rows, calls, period_s: (period_ns / 1000) as f64 / 1e6, empty })
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

    pub(super) fn caller(&self, call: &Call) -> &Row {
        &self.rows[call.caller as usize]
    }
}

/// Counts over the tree of stacks: each is looked at once, however many samples are of it or of what it calls.
struct Counting {
    names: Tables,
    rows: Vec<Row>,
    index: HashMap<Function, u32>,
    /// By frame; the inner `None` is one to leave out.
    frames: Vec<Option<Option<u32>>>,
    calls: Vec<Call>,
    call_index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// By stack: what is on it, of which each row sets one bit; 0 before it has been looked at.
    seen: Vec<u64>,
    path: Vec<StackId>,
    empty: u64,
}

impl Counting {
    fn new(tables: &Tables) -> Self {
        Self {
            names: Tables::default(),
            rows: Vec::new(),
            index: HashMap::new(),
            frames: vec![None; tables.frame_count()],
            calls: Vec::new(),
            call_index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            seen: vec![0; tables.stack_count()],
            path: Vec::new(),
            empty: 0,
        }
    }

    /// Counts a stack and its callers, as far as they have not been, the innermost first: that order is CPython's.
    fn walk(&mut self, stack: Option<StackId>, totals: &[u64], tables: &Tables) -> Result<(), TableFull> {
        let mut next = stack;
        while let Some(stack) = next.filter(|stack| self.seen[stack.index()] == 0) {
            let row = self.row(tables.leaf(stack), tables)?;
            // That it has been here; which rows are below is known when the callers are.
            self.seen[stack.index()] = Self::VISITED;
            self.path.push(stack);
            next = tables.parent(stack);
            if let Some(callee) = row
                && let Some(caller) = self.next_row(next, tables)?
            {
                self.call(callee, caller, totals[stack.index()]);
            }
        }
        while let Some(stack) = self.path.pop() {
            self.appear(stack, totals[stack.index()], tables)?;
        }
        Ok(())
    }

    /// The bit that all stacks have that have been looked at.
    const VISITED: u64 = 1 << 63;

    /// The bit of a row. Others have the same.
    const fn bit(row: u32) -> u64 {
        1 << (row % 63)
    }

    /// Counts the row of a stack's leaf, unless a caller is of the same.
    fn appear(&mut self, stack: StackId, total: u64, tables: &Tables) -> Result<(), TableFull> {
        let parent = tables.parent(stack);
        let below = parent.map_or(Self::VISITED, |parent| self.seen[parent.index()]);
        self.seen[stack.index()] = below;
        let Some(row) = self.row(tables.leaf(stack), tables)? else { return Ok(()) };
        self.seen[stack.index()] |= Self::bit(row);
        let is_recursive = below & Self::bit(row) != 0
            && tables.frames_leaf_first(parent).any(|frame| self.frames[frame.index()] == Some(Some(row)));
        if !is_recursive {
            let sum = &mut self.rows[row as usize].cumulative;
            *sum = sum.saturating_add(total);
        }
        Ok(())
    }

    /// The row of the innermost frame that counts.
    fn next_row(&mut self, stack: Option<StackId>, tables: &Tables) -> Result<Option<u32>, TableFull> {
        for frame in tables.frames_leaf_first(stack) {
            if let Some(row) = self.row(frame, tables)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Counts samples that were executing a stack that has been walked.
    fn execute(&mut self, stack: Option<StackId>, count: u64, tables: &Tables) {
        let mut rows =
            tables.frames_leaf_first(stack).filter_map(|frame| self.frames[frame.index()].flatten());
        let sum = match rows.next() {
            Some(row) => &mut self.rows[row as usize].direct,
            None => &mut self.empty,
        };
        *sum = sum.saturating_add(count);
    }

    fn call(&mut self, callee: u32, caller: u32, count: u64) {
        let Self { calls, call_index, hasher, .. } = self;
        let hash = hasher.hash_one((callee, caller));
        let is_it = |&at: &u32| (calls[at as usize].callee, calls[at as usize].caller) == (callee, caller);
        if let Some(&at) = call_index.find(hash, is_it) {
            let sum = &mut calls[at as usize].count;
            *sum = sum.saturating_add(count);
            return;
        }
        let at = number(calls.len());
        calls.push(Call { callee, caller, count });
        let hash_of = |&at: &u32| hasher.hash_one((calls[at as usize].callee, calls[at as usize].caller));
        call_index.insert_unique(hash, at, hash_of);
    }

    #[inline]
    fn row(&mut self, id: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        match self.frames[id.index()] {
            Some(known) => Ok(known),
            None => self.new_row(id, tables),
        }
    }

    #[cold]
    fn new_row(&mut self, id: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        let frame = tables.frame(id);
        if own_frames::is_own(frame, tables) {
            self.frames[id.index()] = Some(None);
            return Ok(None);
        }
        let mut text = |name: &[u8]| self.names.intern_string(String::from_utf8_lossy(name).as_bytes());
        let function = Function {
            file: text(own_frames::file(frame, tables))?,
            line: frame.line.unwrap_or(0),
            name: text(tables.string(frame.function))?,
        };
        let row = *self.index.entry(function).or_insert(number(self.rows.len()));
        if row as usize == self.rows.len() {
            self.rows.push(Row { function, direct: 0, cumulative: 0 });
        }
        self.frames[id.index()] = Some(Some(row));
        Ok(Some(row))
    }
}

/// The number of a row: no more of them than frames, or of calls than stacks.
fn number(len: usize) -> u32 {
    u32::try_from(len).expect("frames and stacks are numbered with 32 bits")
}
