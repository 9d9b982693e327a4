//! A profile made small enough to be handed on, whatever its size: what a web page shows.
//!
//! The calls of a profile are one tree of functions. Samples are cells of it: a call path, a situation (thread, labels),
//! a slice of time, a count, so that whoever shows the page can choose among all of these. What would make it too large is
//! left out and said: paths with less than a share of all samples, which become one "smaller calls" beside their larger
//! siblings, and slices of time, which become longer. The top table counts everything; what is at the top by none of its
//! columns is not in it.

mod cells;
mod dimensions;
mod prune;

use std::sync::Arc;

use borehole_model::{TableFull, Tables, ValueType};

use crate::diff::frames;
use crate::diff::tree::Tree;
use crate::diff::{DiffFrame, DiffQuery, Identity};
use crate::profile::{Profile, Timespan};
use crate::ranking::leading;
use crate::selection::Selection;
use crate::view::Summary;

pub use dimensions::{Dimension, DimensionKind, DimensionValue};

/// A profile, small.
#[derive(Clone, Debug)]
pub struct Page {
    /// The profile as a whole.
    pub summary: Summary,
    /// The value type of all numbers of calls and functions.
    pub value_type: ValueType,
    /// The functions that calls and rows are of.
    pub functions: Vec<PageFunction>,
    /// Call paths, callers before what they call.
    pub calls: Vec<PageCall>,
    /// What samples can be chosen by.
    pub dimensions: Vec<Dimension>,
    /// Situations: for each dimension which of its values.
    pub situations: Vec<Vec<usize>>,
    /// All samples that have a stack.
    pub cells: Vec<PageCell>,
    /// The time that slices are of; `None` where no sample says when it was taken.
    pub time: Option<Timespan>,
    /// Functions by how often they were executing, and then by how often they were on the stack: the first of both orders.
    pub top: Vec<PageRow>,
    /// How many functions there are; those that are not in `top` are behind it in both orders.
    pub distinct_functions: usize,
    /// What was left out.
    pub pruned: Pruned,
}

/// A function. Those of one name in several files are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFunction {
    /// Its name.
    pub name: Vec<u8>,
    /// The file that it stands in, or the library of machine code.
    pub file: Option<Vec<u8>>,
}

/// A call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCall {
    /// The place of its caller among the calls; `None` at a root.
    pub caller: Option<usize>,
    /// The place of its function among the functions; `None` for calls that are too small, together.
    pub function: Option<usize>,
}

/// Equal samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageCell {
    /// The call path that was executing.
    pub call: usize,
    /// The situation.
    pub situation: usize,
    /// The slice of time; `None` if it is not known.
    pub slice: Option<usize>,
    /// What they weigh, in the profile's [default](Profile::default_weight).
    pub value: i64,
}

/// A row of the top table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// The place of the function among the functions.
    pub function: usize,
    /// The weight of samples whose leaf it is.
    pub own: i64,
    /// The weight of samples that have it on the stack, each counted once.
    pub total: i64,
}

/// What was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pruned {
    /// The part of all samples below which call paths are not shown apart, from 0 to 1.
    pub share: f64,
    /// How many call paths were left out.
    pub paths: usize,
    /// The weight of samples that have one of them on the stack.
    pub value: i64,
    /// The depth below which all are left out.
    pub depth: usize,
}

/// How large a page may become.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// The most call paths.
    pub calls: usize,
    /// The most cells.
    pub cells: usize,
    /// The most rows of the top table by each of its columns.
    pub rows: usize,
    /// The most slices of time.
    pub slices: usize,
    /// The deepest call paths.
    pub depth: usize,
}

impl Default for PageLimits {
    /// What makes pages of two megabytes at most.
    fn default() -> Self {
        Self { calls: 12_000, cells: 110_000, rows: 1_000, slices: 128, depth: 400 }
    }
}

impl Page {
    /// The page of a profile.
    ///
    /// # Errors
    /// When there are too many functions or call paths for a table.
    pub fn new(profile: &Profile, limits: PageLimits) -> Result<Self, TableFull> {
        let mut merged = Tables::default();
        let tree = tree(&profile.tables, &mut merged)?;
        let names = frames::names(&merged);
        let sums = Sums::new(profile, &tree, names.len());
        let situations = dimensions::Situations::new(profile);
        let mut kept = prune::Kept::new(&tree, &sums, limits);
        let (time, cells) = loop {
            match cells::cells(profile, &tree, &situations, &kept, limits) {
                Some(cells) => break cells,
                None => kept = prune::Kept::coarser(&tree, &sums, limits, &kept),
            }
        };
        let mut listed = Listed::new(&names);
        let top = sums.top(&names);
        let distinct_functions = top.len();
        let top = leading(top, limits.rows, &[&|row| row.1, &|row| row.2]).into_iter();
        let top = top.map(|(group, own, total)| PageRow { function: listed.place(group), own, total });
        let top = top.collect();
        let calls = kept.calls.iter().map(|call| PageCall {
            caller: call.caller,
            function: call.group.map(|group| listed.place(group)),
        });
        Ok(Self {
            summary: profile.summary().clone(),
            value_type: profile.value_type(profile.default_weight()),
            calls: calls.collect(),
            functions: listed.functions,
            dimensions: situations.dimensions,
            situations: situations.rows,
            cells,
            time,
            top,
            distinct_functions,
            pruned: kept.pruned,
        })
    }
}

/// The calls of all stacks, by function and its file; functions are frames of `merged`.
fn tree(tables: &Tables, merged: &mut Tables) -> Result<Tree, TableFull> {
    let known = frames::known(tables, merged, &DiffQuery::default(), Identity::File)?;
    Tree::new(tables, merged, &known)
}

/// What samples of each path and function weigh.
struct Sums {
    /// By call of the tree: when it was on the stack.
    path_total: Vec<i64>,
    path_own: Vec<i64>,
    /// Whether anything on a path or below it weighs something, even if its sum is 0.
    has_weight: Vec<bool>,
    /// By function.
    own: Vec<i64>,
    total: Vec<i64>,
    all: i64,
}

impl Sums {
    fn new(profile: &Profile, tree: &Tree, functions: usize) -> Self {
        let mut path_own = vec![0_i64; tree.len()];
        let mut has_weight = vec![false; tree.len()];
        let mut all = 0_i64;
        profile.each(&Selection::default(), profile.default_weight(), |pair, _, weight| {
            if let Some(call) = tree.call_of(pair.stack) {
                add(&mut path_own[call], weight);
                add(&mut all, weight);
                has_weight[call] |= weight != 0;
            }
        });
        let mut path_total = path_own.clone();
        tree.add_up(&mut path_total, add);
        tree.add_up(&mut has_weight, |caller, below| *caller |= below);
        let (mut own, mut total) = (vec![0; functions], vec![0; functions]);
        for (place, call) in tree.calls.iter().enumerate() {
            add(&mut own[call.group()], path_own[place]);
            if call.is_first {
                add(&mut total[call.group()], path_total[place]);
            }
        }
        Self { path_total, path_own, has_weight, own, total, all }
    }

    /// All functions that were sampled: number, own, total.
    fn top(&self, names: &[Arc<DiffFrame>]) -> Vec<(usize, i64, i64)> {
        let sampled = (0..names.len()).filter(|&group| self.total[group] != 0 || self.own[group] != 0);
        let mut rows: Vec<_> = sampled.map(|group| (group, self.own[group], self.total[group])).collect();
        rows.sort_by(|one, other| {
            let sizes = (other.1, other.2).cmp(&(one.1, one.2));
            sizes.then_with(|| names[one.0].cmp(&names[other.0]))
        });
        rows
    }
}

fn add(sum: &mut i64, weight: i64) {
    *sum = sum.saturating_add(weight);
}

/// The functions that are named, in order of first use.
struct Listed<'a> {
    names: &'a [Arc<DiffFrame>],
    places: Vec<Option<usize>>,
    functions: Vec<PageFunction>,
}

impl<'a> Listed<'a> {
    fn new(names: &'a [Arc<DiffFrame>]) -> Self {
        Self { names, places: vec![None; names.len()], functions: Vec::new() }
    }

    fn place(&mut self, group: usize) -> usize {
        let Self { names, places, functions } = self;
        *places[group].get_or_insert_with(|| {
            let (name, file) = (names[group].function.clone(), names[group].file.clone());
            functions.push(PageFunction { name, file });
            functions.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
