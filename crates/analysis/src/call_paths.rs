//! The call tree with equal paths merged, where explorers, pages and diffs add up their numbers.
//!
//! Constraints: calls are in preorder. A call comes before its callees, and everything below it is the range up to its
//! end. So a call with all its callees is one stretch of the columns, a walk needs no recursion, and a view takes time
//! linear in the distinct stacks, whatever their depth.

use std::hash::BuildHasher as _;
use std::ops::Range;

use borehole_model::{StackId, Tables};
use hashbrown::{DefaultHashBuilder, HashTable};

/// The number of a call, in preorder.
pub(crate) type CallId = u32;

/// Marks a stack without a call.
const NO_CALL: CallId = CallId::MAX;

/// Numbers of calls that can be added up.
pub(crate) trait Summable: Copy + Default {
    fn add(&mut self, other: Self);
}

impl Summable for i64 {
    fn add(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// Whether any sample exists, even if their sum is 0.
impl Summable for bool {
    fn add(&mut self, other: Self) {
        *self |= other;
    }
}

/// The calls of a profile's stacks, each with its row in a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallPaths {
    /// By call: the row of the called function.
    rows: Vec<u32>,
    /// By call: the caller, or [`NO_CALL`].
    parents: Vec<CallId>,
    /// By call: the end of its subtree, which is one more than the last call below it.
    ends: Vec<CallId>,
    /// By call: whether no caller has the same row.
    is_outermost: Vec<bool>,
    /// By stack: the call of its leaf, if samples of the stack count.
    of_stack: Vec<CallId>,
    row_count: usize,
}

impl CallPaths {
    /// Builds the calls of all stacks of `tables`. `row_of` returns the row, below `row_count`, of the leaf of a stack; a
    /// stack whose leaf is hidden has the call of its caller. Stacks for which `counts` is false have no call.
    ///
    /// Siblings are in order of first appearance.
    pub(crate) fn new(
        tables: &Tables,
        row_count: usize,
        row_of: impl Fn(StackId) -> Option<usize>,
        counts: impl Fn(StackId) -> bool,
    ) -> Self {
        let mut found = CallInterner::with_capacity(tables.stack_count());
        let mut of_stack: Vec<CallId> = Vec::with_capacity(tables.stack_count());
        for stack in tables.stack_ids() {
            let above = tables.parent(stack).map_or(NO_CALL, |parent| of_stack[parent.index()]);
            // There are only a few more rows than frames.
            let row = |row| u32::try_from(row).unwrap_or(u32::MAX);
            of_stack.push(row_of(stack).map_or(above, |shown| found.intern(above, row(shown))));
        }
        for (call, stack) in of_stack.iter_mut().zip(tables.stack_ids()) {
            if !counts(stack) {
                *call = NO_CALL;
            }
        }
        let mut paths = found.in_preorder(of_stack, row_count);
        paths.is_outermost = paths.find_outermost();
        paths
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn ids(&self) -> Range<CallId> {
        // There are no more calls than stacks, whose numbers fit.
        0..CallId::try_from(self.len()).unwrap_or(NO_CALL)
    }

    pub(crate) fn row(&self, call: CallId) -> usize {
        self.rows[call as usize] as usize
    }

    pub(crate) fn parent(&self, call: CallId) -> Option<CallId> {
        Some(self.parents[call as usize]).filter(|&parent| parent != NO_CALL)
    }

    pub(crate) fn end(&self, call: CallId) -> CallId {
        self.ends[call as usize]
    }

    /// The call of a stack's leaf, if samples of the stack count.
    pub(crate) fn of_stack(&self, stack: StackId) -> Option<CallId> {
        self.of_stack.get(stack.index()).copied().filter(|&call| call != NO_CALL)
    }

    /// A call and its callers, leaf first.
    pub(crate) fn leaf_first(&self, call: CallId) -> impl Iterator<Item = CallId> {
        std::iter::successors(Some(call), |&call| self.parent(call))
    }

    /// The sibling calls from `first` up to `end`.
    pub(crate) fn siblings(&self, first: CallId, end: CallId) -> impl Iterator<Item = CallId> {
        let within = move |call: &CallId| *call < end;
        let next = move |&call: &CallId| Some(self.end(call)).filter(within);
        std::iter::successors(Some(first).filter(within), next)
    }

    pub(crate) fn first_called(&self, call: CallId) -> Option<CallId> {
        Some(call + 1).filter(|&called| called < self.end(call))
    }

    /// By call: the number of its callers.
    pub(crate) fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.len());
        for call in self.ids() {
            depths.push(self.parent(call).map_or(0, |parent| depths[parent as usize] + 1));
        }
        depths
    }

    /// By call: the sum of `of_calls` over the call and everything below it.
    pub(crate) fn totals<T: Summable>(&self, of_calls: &[T]) -> Vec<T> {
        let mut totals = of_calls.to_vec();
        for call in self.ids().rev() {
            if let Some(parent) = self.parent(call) {
                let below = totals[call as usize];
                totals[parent as usize].add(below);
            }
        }
        totals
    }

    /// By row: the sum over its calls.
    pub(crate) fn by_row<T: Summable>(&self, of_calls: &[T]) -> Vec<T> {
        self.sums_by_row(of_calls, self.ids())
    }

    /// By row: the sum of totals over its outermost calls, so that a sample with a row several times on its stack counts
    /// once.
    pub(crate) fn totals_by_row<T: Summable>(&self, totals: &[T]) -> Vec<T> {
        self.sums_by_row(totals, self.ids().filter(|&call| self.is_outermost(call)))
    }

    fn sums_by_row<T: Summable>(&self, of_calls: &[T], calls: impl Iterator<Item = CallId>) -> Vec<T> {
        let mut sums = vec![T::default(); self.row_count];
        for call in calls {
            sums[self.row(call)].add(of_calls[call as usize]);
        }
        sums
    }

    /// Whether no caller of this call has the same row.
    pub(crate) fn is_outermost(&self, call: CallId) -> bool {
        self.is_outermost[call as usize]
    }

    fn find_outermost(&self) -> Vec<bool> {
        let mut on_path = vec![0_u32; self.row_count];
        let mut open: Vec<CallId> = Vec::new();
        let outermost = self.ids().map(|call| {
            while let Some(left) = open.pop_if(|above| self.end(*above) <= call) {
                on_path[self.row(left)] -= 1;
            }
            open.push(call);
            let above = &mut on_path[self.row(call)];
            *above += 1;
            *above == 1
        });
        outermost.collect()
    }
}

/// Numbers calls in the order in which they are found, callers first. Most calls have a single callee, which comes right
/// after them and is found without hashing.
#[derive(Default)]
struct CallInterner {
    rows: Vec<u32>,
    parents: Vec<CallId>,
    /// Calls that do not come right after their caller, except the first root.
    index: HashTable<CallId>,
    hasher: DefaultHashBuilder,
}

impl CallInterner {
    fn with_capacity(calls: usize) -> Self {
        Self { rows: Vec::with_capacity(calls), parents: Vec::with_capacity(calls), ..Self::default() }
    }

    fn intern(&mut self, parent: CallId, row: u32) -> CallId {
        // For a root, `parent` is `NO_CALL` and wraps to 0, the first root.
        let behind = parent.wrapping_add(1);
        match self.rows.get(behind as usize) {
            None => self.push(parent, row),
            Some(&found) if found == row && self.parents[behind as usize] == parent => behind,
            Some(_) => self.intern_further(parent, row),
        }
    }

    fn intern_further(&mut self, parent: CallId, row: u32) -> CallId {
        let hash = self.hasher.hash_one((parent, row));
        let is_wanted =
            |&call: &CallId| self.parents[call as usize] == parent && self.rows[call as usize] == row;
        if let Some(&call) = self.index.find(hash, is_wanted) {
            return call;
        }
        let call = self.push(parent, row);
        let Self { rows, parents, index, hasher } = self;
        index.insert_unique(hash, call, |&call| {
            hasher.hash_one((parents[call as usize], rows[call as usize]))
        });
        call
    }

    fn push(&mut self, parent: CallId, row: u32) -> CallId {
        // There are no more calls than stacks, whose numbers fit.
        let call = CallId::try_from(self.rows.len()).unwrap_or(NO_CALL);
        self.rows.push(row);
        self.parents.push(parent);
        call
    }

    /// Puts the calls into preorder. The place of a call follows from its caller's place and from how many calls are
    /// below the caller's earlier callees.
    fn in_preorder(self, mut of_stack: Vec<CallId>, row_count: usize) -> CallPaths {
        let Self { rows, parents, .. } = self;
        let mut sizes: Vec<CallId> = vec![1; rows.len()];
        for call in (0..rows.len()).rev() {
            let below = sizes[call];
            if let Some(size) = sizes.get_mut(parents[call] as usize) {
                *size += below;
            }
        }
        let mut places: Vec<CallId> = vec![0; rows.len()];
        // Once a call has its place, its size is replaced by the place of its next callee.
        let mut next_below = sizes;
        let mut next_root = 0;
        let (mut placed_rows, mut placed_parents) = (vec![0; rows.len()], vec![NO_CALL; rows.len()]);
        let mut ends = vec![0; rows.len()];
        for call in 0..rows.len() {
            let (parent, size) = (parents[call] as usize, next_below[call]);
            let next = next_below.get_mut(parent).unwrap_or(&mut next_root);
            let place = *next;
            *next += size;
            places[call] = place;
            next_below[call] = place + 1;
            placed_rows[place as usize] = rows[call];
            placed_parents[place as usize] = places.get(parent).copied().unwrap_or(NO_CALL);
            ends[place as usize] = place + size;
        }
        for call in &mut of_stack {
            *call = places.get(*call as usize).copied().unwrap_or(NO_CALL);
        }
        let (rows, parents) = (placed_rows, placed_parents);
        CallPaths { rows, parents, ends, of_stack, row_count, ..CallPaths::default() }
    }
}
