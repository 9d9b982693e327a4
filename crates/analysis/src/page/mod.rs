//! A profile of bounded size, for web pages.
//!
//! All calls of a profile form one tree of functions. Samples are cells of a call path, a situation (thread, labels), a
//! slice of time and a count, so that users of the page can select by any of these. Anything that would make the page too
//! large is left out, and the page states what: paths with less than a minimum share of all samples become one "smaller
//! calls" entry beside their larger siblings, and slices of time become longer. The top table counts everything; it lacks
//! only functions that none of its columns ranks high enough.

mod cells;
mod dimensions;
mod prune;
mod scope;

use std::sync::Arc;

use borehole_model::{TableFull, Tables, ValueType};

use crate::calls::{CallSums, TopRow};
use crate::diff::frames;
use crate::diff::{DiffFrame, DiffQuery, Identity};
use crate::profile::{Profile, Timespan};
use crate::ranking::leading;
use crate::selection::SampleSelection;
use crate::view::ProfileSummary;

pub use dimensions::{Dimension, DimensionKind, DimensionValue};
pub use scope::CallPattern;
use scope::PageScope;

/// A profile of bounded size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProfilePage {
    /// The profile as a whole.
    pub summary: ProfileSummary,
    /// The value type of all numbers of calls and functions.
    pub value_type: ValueType,
    /// The functions that calls and rows refer to.
    pub functions: Vec<PageFunction>,
    /// The call paths, callers before their callees.
    pub calls: Vec<PageCall>,
    /// The properties by which samples can be selected.
    pub dimensions: Vec<Dimension>,
    /// The situations: for each dimension the index of its value.
    pub situations: Vec<Vec<usize>>,
    /// All samples with a stack.
    pub cells: Vec<PageCell>,
    /// The time that slices divide; `None` if no sample has a timestamp.
    pub time: Option<Timespan>,
    /// The top functions by self and then by total: the first ones in both orders.
    pub top: Vec<PageRow>,
    /// The number of functions. Those missing from `top` come after it in both orders.
    pub distinct_functions: usize,
    /// The parts left out.
    pub pruned: Pruned,
}

/// A function. Functions with the same name in several files are distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageFunction {
    /// Its name.
    pub name: Vec<u8>,
    /// The source file, or the library of native code.
    pub file: Option<Vec<u8>>,
}

/// A call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCall {
    /// The index of its caller in the calls; `None` at a root.
    pub caller: Option<usize>,
    /// The index of its function; `None` for the combined smaller calls.
    pub function: Option<usize>,
}

/// Equal samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct PageCell {
    /// The index of the call path.
    pub call: usize,
    /// The index of the situation.
    pub situation: usize,
    /// The slice of time, 0-based; `None` if unknown.
    pub slice: Option<usize>,
    /// The weight, in the profile's [default](Profile::default_weight).
    pub value: i64,
}

/// A row of the top table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRow {
    /// The index of the function.
    pub function: usize,
    /// Self weight: that of samples whose leaf it is.
    pub self_weight: i64,
    /// Total weight: that of samples that have it on the stack, each counted once.
    pub total_weight: i64,
}

/// The parts of a profile left out of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Pruned {
    /// The minimum share of all samples for a call path to be shown, 0 to 1.
    pub share: f64,
    /// The number of call paths left out.
    pub paths: usize,
    /// The weight of samples with one of them on the stack.
    pub value: i64,
    /// The depth below which all calls are left out.
    pub depth: usize,
}

/// The maximum size of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// The maximum number of call paths.
    pub calls: usize,
    /// The maximum number of cells.
    pub cells: usize,
    /// The maximum number of rows of the top table, for each of its columns.
    pub rows: usize,
    /// The maximum number of slices of time.
    pub slices: usize,
    /// The maximum depth of call paths.
    pub depth: usize,
}

impl Default for PageLimits {
    /// The limits of pages of at most two megabytes.
    fn default() -> Self {
        Self { calls: 12_000, cells: 110_000, rows: 1_000, slices: 128, depth: 400 }
    }
}

impl ProfilePage {
    /// Builds the page of a profile.
    ///
    /// # Errors
    /// If there are too many functions or call paths for a table.
    pub fn new(profile: &Profile, limits: PageLimits) -> Result<Self, TableFull> {
        Self::selected(profile, &SampleSelection::default(), limits)
    }

    /// Builds the page of the samples in a selection: the limits then hold for those, so that a part shows more detail. The
    /// summary is that of the whole profile.
    ///
    /// # Errors
    /// If there are too many functions or call paths for a table.
    pub fn selected(
        profile: &Profile,
        selection: &SampleSelection,
        limits: PageLimits,
    ) -> Result<Self, TableFull> {
        let everything = CallPattern { levels: 0, is_called: &|_, _| true };
        Self::below(profile, selection, everything, limits)
    }

    /// Like [`ProfilePage::selected`], of the samples at and below the calls at the end of a path, with their callers.
    ///
    /// # Errors
    /// If there are too many functions or call paths for a table.
    pub fn below(
        profile: &Profile,
        selection: &SampleSelection,
        path: CallPattern<'_>,
        limits: PageLimits,
    ) -> Result<Self, TableFull> {
        let mut merged = Tables::default();
        let known = frames::known(&profile.tables, &mut merged, &DiffQuery::default(), Identity::File)?;
        let names = frames::names(&merged);
        let paths = frames::paths(&profile.tables, &merged, &known);
        let mut sums = CallSums::new(&paths, profile, selection, profile.default_weight());
        let scope = PageScope::new(&paths, &names, path);
        scope.narrow(&mut sums, &paths);
        let situations = dimensions::PageSituations::new(profile, selection);
        let tree = prune::PageTree { depths: scope.depths(paths.depths()), paths: &paths, sums: &sums };
        let mut kept = prune::KeptPaths::new(&tree, limits);
        let (time, cells) = loop {
            scope.forget_others(&mut kept);
            match cells::cells((profile, selection), &paths, &situations, &kept, limits) {
                Some(cells) => break cells,
                None => kept = prune::KeptPaths::of_share(&tree, limits, kept.pruned.share * 2.0),
            }
        };
        let mut listed =
            ListedFunctions { names: &names, places: vec![None; names.len()], functions: Vec::new() };
        let mut top = sums.rows(&paths);
        top.sort_by(|one, other| {
            let sizes = (other.self_weight, other.total_weight).cmp(&(one.self_weight, one.total_weight));
            sizes.then_with(|| names[one.frame].cmp(&names[other.frame]))
        });
        let distinct_functions = top.len();
        let top = leading(top, limits.rows, &[&|row| row.self_weight, &|row| row.total_weight]).into_iter();
        let top = top.map(|TopRow { frame, self_weight, total_weight }| PageRow {
            function: listed.place(frame),
            self_weight,
            total_weight,
        });
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

/// The functions in use, in order of first use.
struct ListedFunctions<'a> {
    names: &'a [Arc<DiffFrame>],
    places: Vec<Option<usize>>,
    functions: Vec<PageFunction>,
}

impl ListedFunctions<'_> {
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
