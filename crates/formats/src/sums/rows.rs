//! Samples added up by the rows of their frames, for formats that report functions or lines instead of stacks.
//!
//! Stacks form a tree, and each one is visited once, however many samples it or its callees have. Samples that have
//! been added up no longer need their stacks.

use borehole_model::{FrameId, StackId, TableFull, Tables};

use crate::sums::stacks::StackCounts;

/// The rows of frames.
pub(crate) trait FrameRows {
    /// The row of a frame; called once per frame. Rows are numbered from 0 in the order of their appearance. `None` for
    /// a frame to leave out.
    ///
    /// # Errors
    /// If a table is full.
    fn row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull>;

    /// Notes that one row called another in `count` samples.
    fn call(&mut self, _caller: u32, _callee: u32, _count: u64) {}
}

/// The numbers of samples of a row.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowSum {
    /// Self samples: those that were executing the row.
    pub(crate) self_samples: u64,
    /// Total samples: those with the row on the stack, counted once each.
    pub(crate) total_samples: u64,
}

/// The sums of all rows.
#[derive(Default)]
pub(crate) struct RowSums<R> {
    pub(crate) rows: R,
    /// By row.
    pub(crate) sums: Vec<RowSum>,
    /// The number of samples without any frame to count.
    pub(crate) empty: u64,
    /// By frame; an inner `None` is a frame to leave out.
    frames: Vec<Option<Option<u32>>>,
    /// By stack: whether it has been visited.
    known: Vec<bool>,
    /// Stacks not visited yet, the leaf first.
    new: Vec<StackId>,
    /// The last stack visited, from its root on, and by row the number of its frames in that row.
    path: Vec<StackId>,
    on_path: Vec<u32>,
}

impl<R: FrameRows> RowSums<R> {
    /// Adds all samples of `counts` and clears it.
    ///
    /// Frames appear in the order of CPython's collectors: stack by stack, from the leaf on.
    ///
    /// # Errors
    /// If a table is full.
    pub(crate) fn take(&mut self, counts: &mut StackCounts, tables: &Tables) -> Result<(), TableFull> {
        let totals = counts.totals(tables);
        self.known.clear();
        self.known.resize(tables.stack_count(), false);
        self.frames.resize(tables.frame_count(), None);
        for (stack, count) in counts.iter() {
            self.walk(stack, &totals, tables)?;
            self.execute(stack, count, tables);
        }
        self.leave(0, tables);
        counts.clear();
        Ok(())
    }

    /// Counts a stack and those of its callers that have not been counted.
    fn walk(&mut self, stack: Option<StackId>, totals: &[u64], tables: &Tables) -> Result<(), TableFull> {
        let mut next = stack;
        while let Some(stack) = next.filter(|stack| !self.known[stack.index()]) {
            self.known[stack.index()] = true;
            self.new.push(stack);
            next = tables.parent(stack);
            if let Some(callee) = self.row(tables.leaf(stack), tables)?
                && let Some(caller) = self.next_row(next, tables)?
            {
                self.rows.call(caller, callee, totals[stack.index()]);
            }
        }
        if !self.new.is_empty() {
            self.go_to(next, tables);
        }
        while let Some(stack) = self.new.pop() {
            if let Some(row) = self.enter(stack, tables)
                && self.on_path[row as usize] == 1
            {
                let sum = &mut self.sums[row as usize].total_samples;
                *sum = sum.saturating_add(totals[stack.index()]);
            }
        }
        Ok(())
    }

    /// Makes `stack`, which has been visited, the path. Successive stacks share most of it.
    fn go_to(&mut self, stack: Option<StackId>, tables: &Tables) {
        let (start, mut next) = (self.new.len(), stack);
        while let Some(stack) = next.filter(|&stack| !self.is_on_path(stack, tables)) {
            self.new.push(stack);
            next = tables.parent(stack);
        }
        self.leave(next.map_or(0, |stack| tables.depth(stack) as usize), tables);
        while self.new.len() > start
            && let Some(stack) = self.new.pop()
        {
            self.enter(stack, tables);
        }
    }

    fn is_on_path(&self, stack: StackId, tables: &Tables) -> bool {
        self.path.get(tables.depth(stack) as usize - 1) == Some(&stack)
    }

    /// Appends a stack to the path that ends with its caller; returns the row of its leaf.
    fn enter(&mut self, stack: StackId, tables: &Tables) -> Option<u32> {
        self.path.push(stack);
        let row = self.frames[tables.leaf(stack).index()].flatten()?;
        self.on_path[row as usize] += 1;
        Some(row)
    }

    /// Shortens the path to `depth` frames.
    fn leave(&mut self, depth: usize, tables: &Tables) {
        for stack in self.path.drain(depth..) {
            if let Some(row) = self.frames[tables.leaf(stack).index()].flatten() {
                self.on_path[row as usize] -= 1;
            }
        }
    }

    /// The row of the innermost frame that is counted.
    fn next_row(&mut self, stack: Option<StackId>, tables: &Tables) -> Result<Option<u32>, TableFull> {
        for frame in tables.frames_leaf_first(stack) {
            if let Some(row) = self.row(frame, tables)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// Counts the self samples of a stack that has been walked.
    fn execute(&mut self, stack: Option<StackId>, count: u64, tables: &Tables) {
        let mut rows =
            tables.frames_leaf_first(stack).filter_map(|frame| self.frames[frame.index()].flatten());
        let sum = match rows.next() {
            Some(row) => &mut self.sums[row as usize].self_samples,
            None => &mut self.empty,
        };
        *sum = sum.saturating_add(count);
    }

    #[inline]
    fn row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        match self.frames[frame.index()] {
            Some(known) => Ok(known),
            None => self.new_row(frame, tables),
        }
    }

    #[cold]
    fn new_row(&mut self, frame: FrameId, tables: &Tables) -> Result<Option<u32>, TableFull> {
        let row = self.rows.row(frame, tables)?;
        if row.is_some_and(|row| row as usize == self.sums.len()) {
            self.sums.push(RowSum::default());
            self.on_path.push(0);
        }
        self.frames[frame.index()] = Some(row);
        Ok(row)
    }
}

/// The number of a row or call. There are at most as many rows as frames, and as many calls as stacks.
pub(crate) fn row_number(interned: Option<u32>) -> u32 {
    interned.expect("frames and stacks are numbered with 32 bits")
}
