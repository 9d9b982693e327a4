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

use crate::call_sums::CallSums;
use crate::diff::frames;
use crate::diff::{DiffFrame, DiffQuery, Identity};
use crate::profile::{Profile, Timespan};
use crate::ranking::leading;
use crate::selection::Selection;
use crate::tops::TopRow;
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
        let known = frames::known(&profile.tables, &mut merged, &DiffQuery::default(), Identity::File)?;
        let names = frames::names(&merged);
        let paths = frames::paths(&profile.tables, &merged, &known);
        let sums = CallSums::new(&paths, profile, &Selection::default(), profile.default_weight());
        let situations = dimensions::Situations::new(profile);
        let tree = prune::PageTree::new(&paths, &sums);
        let mut kept = prune::Kept::new(&tree, limits);
        let (time, cells) = loop {
            match cells::cells(profile, &paths, &situations, &kept, limits) {
                Some(cells) => break cells,
                None => kept = prune::Kept::coarser(&tree, limits, &kept),
            }
        };
        let mut listed = Listed::new(&names);
        let mut top = sums.rows(&paths);
        top.sort_by(|one, other| {
            let sizes = (other.own, other.total).cmp(&(one.own, one.total));
            sizes.then_with(|| names[one.frame].cmp(&names[other.frame]))
        });
        let distinct_functions = top.len();
        let top = leading(top, limits.rows, &[&|row| row.own, &|row| row.total]).into_iter();
        let top =
            top.map(|TopRow { frame, own, total }| PageRow { function: listed.place(frame), own, total });
        let top = top.collect();
        let calls = kept
            .calls
            .iter()
            .map(|call| PageCall { caller: call.caller, function: call.row.map(|row| listed.place(row)) });
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

    fn place(&mut self, row: usize) -> usize {
        let Self { names, places, functions } = self;
        *places[row].get_or_insert_with(|| {
            let (name, file) = (names[row].function.clone(), names[row].file.clone());
            functions.push(PageFunction { name, file });
            functions.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
