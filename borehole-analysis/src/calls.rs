//! The calls of a profile under a query: what call trees, sandwiches, flame graphs and top tables are made of.
//!
//! Constraints: a call stands before those that it makes, and all that happened below it are the calls up to its end
//! (preorder). So everything about a call and what it called is one stretch of the columns, a walk needs no
//! recursion, and the time for a view is linear in the distinct stacks, whatever their depth.

use std::collections::BTreeMap;
use std::hash::BuildHasher as _;
use std::sync::Arc;

use borehole_model::{StackId, Tables};
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::call_tree::CallTree;
use crate::frame_name::FrameName;
use crate::profile::Profile;
use crate::query::Query;
use crate::selection::{Selection, Weight};

/// The number of a call, in preorder.
pub(crate) type CallId = u32;

/// Beside a stack that has no call.
const NO_CALL: CallId = CallId::MAX;

/// All calls of a profile: the tree of what called what, with equal paths merged.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{Calls, Profile, Query, Selection, Tree, Weight};
///
/// fn heaviest(profile: &Profile) -> Option<String> {
///     let calls = Calls::new(profile, &Query::default(), &Selection::default(), Weight::Samples);
///     let tree = Tree::from_roots(&calls);
///     let root = tree.roots().first()?;
///     Some(format!("{} of {}: {:?}", root.total, calls.total(), calls.frame(root.frame).function))
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Calls {
    frames: Vec<Arc<FrameName>>,
    /// By call: what was called.
    rows: Vec<u32>,
    /// By call: the caller, or [`NO_CALL`].
    parents: Vec<CallId>,
    /// By call: one more than the last call below it.
    ends: Vec<CallId>,
    /// By stack: the call of its leaf, if it counts.
    of_stack: Vec<CallId>,
    /// By call: what the samples weigh that were executing it.
    own: Vec<i64>,
    /// By call: what the samples weigh of it and of all below it.
    totals: Vec<i64>,
    /// By call: whether anything of it or below it weighs something, even if its sum is 0.
    has_weight: Vec<bool>,
    total: i64,
    weight: Weight,
}

impl Calls {
    /// The calls of `profile` as `query` shows them, with the weights of what `selection` takes.
    #[must_use]
    pub fn new(profile: &Profile, query: &Query, selection: &Selection, weight: Weight) -> Self {
        let mut calls = Outline::of(profile, query).calls();
        calls.weigh(profile, selection, weight);
        calls
    }

    /// Replaces the weights by those of another selection.
    pub fn weigh(&mut self, profile: &Profile, selection: &Selection, weight: Weight) {
        self.weight = weight;
        self.own = vec![0; self.rows.len()];
        self.has_weight = vec![false; self.rows.len()];
        profile.each(selection, weight, |pair, _, weight| {
            let call = self.of_stack[pair.stack.index()];
            if let Some(sum) = self.own.get_mut(call as usize) {
                *sum = sum.saturating_add(weight);
                self.has_weight[call as usize] |= weight != 0;
            }
        });
        self.totals.clone_from(&self.own);
        self.total = 0;
        for call in (0..self.totals.len()).rev() {
            let below = self.totals[call];
            let sum = self.totals.get_mut(self.parents[call] as usize);
            let sum = sum.unwrap_or(&mut self.total);
            *sum = sum.saturating_add(below);
            let has_weight = self.has_weight[call];
            if let Some(caller) = self.has_weight.get_mut(self.parents[call] as usize) {
                *caller |= has_weight;
            }
        }
    }

    /// What all samples that count weigh.
    #[must_use]
    pub const fn total(&self) -> i64 {
        self.total
    }

    /// What weights are.
    #[must_use]
    pub const fn weight(&self) -> Weight {
        self.weight
    }

    /// What stands in the row of that number.
    #[must_use]
    pub fn frame(&self, row: usize) -> &Arc<FrameName> {
        &self.frames[row]
    }

    /// How many rows there are; some may have no weight.
    #[must_use]
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The row of that name.
    #[must_use]
    pub fn find(&self, name: &FrameName) -> Option<usize> {
        self.frames.iter().position(|frame| **frame == *name)
    }

    /// The call of a stack's leaf, if samples of the stack count.
    pub(crate) fn call_of(&self, stack: StackId) -> Option<CallId> {
        self.of_stack.get(stack.index()).copied().filter(|&call| call != NO_CALL)
    }

    /// The samples of which the weights are, by stack and by how long each of them stands for: those of one period after
    /// the other.
    ///
    /// A weight of time is not a number of samples: this takes apart what was multiplied.
    pub fn samples(&self, profile: &Profile, selection: &Selection) -> impl Iterator<Item = StackSamples> {
        let mut sums: BTreeMap<(Option<u64>, CallId), i64> = BTreeMap::new();
        profile.each(selection, self.weight, |pair, _, weight| {
            let Some(call) = self.call_of(pair.stack) else { return };
            let period_ns = profile.situations.get(pair.situation).period_ns;
            let of_one = match self.weight {
                _ if profile.situations.get(pair.situation).is_valued => 1,
                Weight::Samples => 1,
                Weight::Value | Weight::OnCpu => {
                    i64::try_from(period_ns.unwrap_or(0)).unwrap_or(i64::MAX).max(1)
                }
            };
            let sum = sums.entry((period_ns, call)).or_default();
            *sum = sum.saturating_add(weight / of_one);
        });
        sums.into_iter().map(|((period_ns, call), sum)| StackSamples {
            path: self.path(call),
            sum,
            period_ns,
        })
    }

    /// The rows from the root to a call.
    fn path(&self, call: CallId) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(call), |&call| self.parent(call)).map(|call| self.row(call)).collect();
        path.reverse();
        path
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn row(&self, call: CallId) -> usize {
        self.rows[call as usize] as usize
    }

    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    pub(crate) fn parent(&self, call: CallId) -> Option<CallId> {
        Some(self.parents[call as usize]).filter(|&parent| parent != NO_CALL)
    }

    pub(crate) fn end(&self, call: CallId) -> CallId {
        self.ends[call as usize]
    }

    pub(crate) fn own_of(&self, call: CallId) -> i64 {
        self.own[call as usize]
    }

    pub(crate) fn total_of(&self, call: CallId) -> i64 {
        self.totals[call as usize]
    }

    /// Whether anything of a call or below it weighs something.
    pub(crate) fn weighs(&self, call: CallId) -> bool {
        self.has_weight[call as usize]
    }

    /// The calls that weigh something among those that begin at `first` and stand side by side up to `end`.
    fn siblings(&self, first: CallId, end: CallId) -> impl Iterator<Item = CallId> {
        let within = move |call: &CallId| *call < end;
        let next = move |&call: &CallId| Some(self.end(call)).filter(within);
        std::iter::successors(Some(first).filter(within), next).filter(|&call| self.weighs(call))
    }

    /// The calls that nobody made.
    pub(crate) fn roots(&self) -> impl Iterator<Item = CallId> {
        // There are not more calls than stacks.
        self.siblings(0, CallId::try_from(self.len()).unwrap_or(NO_CALL))
    }

    /// The calls that a call made.
    pub(crate) fn callees(&self, call: CallId) -> impl Iterator<Item = CallId> {
        self.siblings(call + 1, self.end(call))
    }
}

/// Samples of one stack that stand for equally long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSamples {
    /// The rows of the calls, from the root to the leaf.
    pub path: Vec<usize>,
    /// How many samples; their value, of profiles that have values.
    pub sum: i64,
    /// How long each stands for; `None` where that is not known.
    pub period_ns: Option<u64>,
}

/// Calls in the order in which they are found: callers first.
struct Outline {
    frames: Vec<Arc<FrameName>>,
    rows: Vec<u32>,
    parents: Vec<CallId>,
    of_stack: Vec<CallId>,
}

impl Outline {
    fn of(profile: &Profile, query: &Query) -> Self {
        let tables = &profile.tables;
        let tree = CallTree::of_all(tables, query);
        let mut found = Interner::with_capacity(tables.stack_count());
        let mut of_stack: Vec<CallId> = Vec::with_capacity(tables.stack_count());
        for stack in profile.stacks() {
            let above = parent_call(stack, tables, &of_stack);
            // There are not more groups than frames, but for a few.
            let row = |group| u32::try_from(group).unwrap_or(u32::MAX);
            let shown = tree.shown(stack, tables);
            of_stack.push(shown.map_or(above, |group| found.intern(above, row(group))));
        }
        for (call, stack) in of_stack.iter_mut().zip(profile.stacks()) {
            if !tree.counts(stack) {
                *call = NO_CALL;
            }
        }
        let groups = tree.groups();
        let frames = (0..groups.len()).map(|group| groups.name(group).clone()).collect();
        Self { frames, rows: found.rows, parents: found.parents, of_stack }
    }

    /// The same in preorder. A call's place follows from its caller's and from how many calls stand below those
    /// that the caller made before.
    fn calls(self) -> Calls {
        let Self { frames, rows, parents, mut of_stack } = self;
        let mut sizes: Vec<CallId> = vec![1; rows.len()];
        for call in (0..rows.len()).rev() {
            let below = sizes[call];
            if let Some(size) = sizes.get_mut(parents[call] as usize) {
                *size += below;
            }
        }
        let mut places: Vec<CallId> = vec![0; rows.len()];
        // Once a call has its place, where the next one that it makes goes stands there in place of its size.
        let mut next_below = sizes;
        let mut next_root = 0;
        let mut calls = Calls::empty(frames, rows.len());
        for call in 0..rows.len() {
            let (parent, size) = (parents[call] as usize, next_below[call]);
            let next = next_below.get_mut(parent).unwrap_or(&mut next_root);
            let place = *next;
            *next += size;
            places[call] = place;
            next_below[call] = place + 1;
            calls.rows[place as usize] = rows[call];
            calls.parents[place as usize] = places.get(parent).copied().unwrap_or(NO_CALL);
            calls.ends[place as usize] = place + size;
        }
        for call in &mut of_stack {
            *call = places.get(*call as usize).copied().unwrap_or(NO_CALL);
        }
        calls.of_stack = of_stack;
        calls
    }
}

impl Calls {
    fn empty(frames: Vec<Arc<FrameName>>, len: usize) -> Self {
        Self {
            frames,
            rows: vec![0; len],
            parents: vec![NO_CALL; len],
            ends: vec![0; len],
            of_stack: Vec::new(),
            own: Vec::new(),
            totals: Vec::new(),
            has_weight: Vec::new(),
            total: 0,
            weight: Weight::default(),
        }
    }
}

/// The call of the leaf of a stack's caller.
fn parent_call(stack: StackId, tables: &Tables, of_stack: &[CallId]) -> CallId {
    tables.parent(stack).map_or(NO_CALL, |parent| of_stack[parent.index()])
}

/// Gives numbers to calls. Most calls make one call only, which is found right behind them, without hashing.
#[derive(Default)]
struct Interner {
    rows: Vec<u32>,
    parents: Vec<CallId>,
    /// The calls that are not right behind their caller, but for the first root.
    index: HashTable<CallId>,
    hasher: DefaultHashBuilder,
}

impl Interner {
    fn with_capacity(calls: usize) -> Self {
        Self { rows: Vec::with_capacity(calls), parents: Vec::with_capacity(calls), ..Self::default() }
    }

    fn intern(&mut self, parent: CallId, row: u32) -> CallId {
        // Behind no call is the first root.
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
        // There are not more calls than stacks, whose numbers fit.
        let call = CallId::try_from(self.rows.len()).unwrap_or(NO_CALL);
        self.rows.push(row);
        self.parents.push(parent);
        call
    }
}
