//! The comparison of both sides, after all samples are counted.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use borehole_model::Tables;

use super::noise::{chance, compare, deviations, threshold};
use super::rows::{SideColumns, SideSum};
use super::side::SideState;
use super::view::{
    Amount, DiffFrame, DiffMeasure, DiffNode, DiffPath, DiffRow, DiffSide, DiffView, NoiseBasis, Presence,
    ValueChange,
};
use super::{DiffQuery, Identity, Per, frames};
use crate::call_paths::{CallId, CallPaths};
use crate::view::ProfileSummary;

/// Fewer observations than this on both sides together are never more than noise, and are not tested.
const FEWEST: f64 = 6.0;

/// A path that may be listed.
struct PathCandidate {
    call: CallId,
    chance: f64,
    /// The absolute difference.
    difference: f64,
}

/// Both sides as sums over one call tree.
pub(crate) struct DiffAnswer<'a> {
    query: &'a DiffQuery,
    paths: CallPaths,
    names: Vec<Arc<DiffFrame>>,
    before: SideColumns,
    after: SideColumns,
    measure: DiffMeasure,
    basis: NoiseBasis,
    /// The confidence as a number of standard deviations.
    deviations: f64,
    by_file: bool,
}

impl<'a> DiffAnswer<'a> {
    pub(crate) fn new(
        query: &'a DiffQuery,
        sides: [(&SideState, &ProfileSummary); 2],
        tables: &Tables,
        identity: Identity,
    ) -> io::Result<Self> {
        let mut merged = Tables::default();
        let known = frames::known(tables, &mut merged, query, identity)?;
        let names = frames::names(&merged);
        let paths = frames::paths(tables, &merged, &known);
        let measure = measure(query, sides);
        let knows_order = sides.iter().all(|(side, _)| side.is_ordered || side.is_of_inputs());
        let [before, after] = sides.map(|(side, summary)| {
            let divisor = divisor(&query.per, side, summary)?;
            io::Result::Ok(SideColumns::new(side, &paths, &query.per, measure, divisor, knows_order))
        });
        let basis = match (knows_order, sides[0].0.is_of_inputs()) {
            (false, _) => NoiseBasis::Independent,
            (true, true) => NoiseBasis::Inputs,
            (true, false) => NoiseBasis::Stretches,
        };
        Ok(Self {
            query,
            names,
            paths,
            before: before?,
            after: after?,
            measure,
            basis,
            deviations: deviations(query.confidence),
            by_file: matches!(identity, Identity::File | Identity::Line),
        })
    }

    pub(crate) fn view(&self) -> DiffView {
        let mut functions = self.functions();
        let (path_level, paths) = self.path_changes();
        functions.sort_by(order);
        let (tree, pruned) = self.tree(path_level);
        DiffView {
            before: self.side(&self.before),
            after: self.side(&self.after),
            measure: self.measure,
            basis: self.basis,
            confidence: self.query.confidence,
            whole: self.marked(self.change(&self.before.whole, &self.after.whole), self.level()),
            moved: if self.by_file { moved(&functions) } else { 0 },
            functions,
            paths,
            distinct_paths: self.paths.len(),
            tree,
            pruned,
        }
    }

    fn side(&self, columns: &SideColumns) -> DiffSide {
        let summary = ProfileSummary { matched: columns.whole.samples, ..ProfileSummary::default() };
        DiffSide { summary, divisor: columns.divisor, stretches: columns.stretches, ..DiffSide::default() }
    }

    fn level(&self) -> f64 {
        1.0 - self.query.confidence
    }

    /// A change that is not yet marked.
    fn change(&self, before: &SideSum, after: &SideSum) -> ValueChange {
        let [first, second] = [self.before.estimate(before), self.after.estimate(after)];
        let compared = compare(&first, &second, self.measure == DiffMeasure::Share, self.deviations);
        let amount = |sum: &SideSum, value| Amount { samples: sum.samples, value };
        ValueChange {
            before: amount(before, first.value()),
            after: amount(after, second.value()),
            margin: compared.margin,
            chance: compared.chance,
            is_marked: false,
        }
    }

    fn marked(&self, change: ValueChange, level: f64) -> ValueChange {
        let is_tested = self.has_enough(change.before.samples, change.after.samples);
        ValueChange { is_marked: is_tested && change.chance <= level, ..change }
    }

    fn functions(&self) -> Vec<DiffRow> {
        let (before, after) = (&self.before, &self.after);
        let sampled = (0..self.names.len())
            .filter(|&group| before.total_sums[group].samples > 0 || after.total_sums[group].samples > 0);
        let mut rows: Vec<_> = sampled
            .map(|group| DiffRow {
                frame: self.names[group].clone(),
                self_change: self.change(&before.self_sums[group], &after.self_sums[group]),
                total_change: self.change(&before.total_sums[group], &after.total_sums[group]),
            })
            .collect();
        let level = self.level_of(rows.iter().flat_map(|row| [&row.self_change, &row.total_change]));
        for row in &mut rows {
            row.self_change = self.marked(row.self_change, level);
            row.total_change = self.marked(row.total_change, level);
        }
        rows
    }

    /// The chance up to which paths are marked, and the listed paths.
    fn path_changes(&self) -> (f64, Vec<DiffPath>) {
        let (before, after) = (&self.before, &self.after);
        let mut chances = Vec::new();
        let mut listed: Vec<PathCandidate> = Vec::new();
        // Most calls have the sums of their caller, or a total equal to their self, so the last result is often reused.
        let mut last = ([SideSum::default(); 2], None);
        let mut chance = |sums: [SideSum; 2]| {
            if last.0 != sums {
                last = (sums, self.chance(&sums[0], &sums[1]));
            }
            last.1
        };
        for call in self.paths.ids() {
            chances.extend(chance([before, after].map(|side| side.path_total[call as usize])));
            let self_sums = [before.path_self(call), after.path_self(call)];
            if let Some(chance) = chance(self_sums) {
                chances.push(chance);
                let difference = self.difference(&self_sums[0], &self_sums[1]).abs();
                listed.push(PathCandidate { call, chance, difference });
            }
        }
        let level = threshold(chances, self.level());
        let by_change = |one: &PathCandidate, other: &PathCandidate| {
            let marks = (other.chance <= level).cmp(&(one.chance <= level));
            marks.then(other.difference.total_cmp(&one.difference)).then(one.call.cmp(&other.call))
        };
        let most = self.query.paths.unwrap_or(usize::MAX);
        if most < listed.len() {
            listed.select_nth_unstable_by(most, by_change);
            listed.truncate(most);
        }
        listed.sort_by(by_change);
        let rows = listed.into_iter().map(|PathCandidate { call, .. }| DiffPath {
            frames: self.frames_from_root(call),
            self_change: self.marked(self.change(&before.path_self(call), &after.path_self(call)), level),
            total_change: self.marked(
                self.change(&before.path_total[call as usize], &after.path_total[call as usize]),
                level,
            ),
        });
        (level, rows.collect())
    }

    /// The chance of a difference, 1 if it is certainly too large to matter; `None` if there are too few samples.
    fn chance(&self, before: &SideSum, after: &SideSum) -> Option<f64> {
        if !self.has_enough(before.samples, after.samples) {
            return None;
        }
        let [first, second] = [self.before.estimate(before), self.after.estimate(after)];
        Some(chance(&first, &second, self.measure == DiffMeasure::Share, self.deviations))
    }

    /// Whether there are enough observations to test.
    // A small count does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    fn has_enough(&self, before: u64, after: u64) -> bool {
        before as f64 / self.before.observation + after as f64 / self.after.observation >= FEWEST
    }

    /// The chance up to which changes are marked.
    fn level_of<'c>(&self, changes: impl Iterator<Item = &'c ValueChange>) -> f64 {
        let tested = changes.filter(|change| self.has_enough(change.before.samples, change.after.samples));
        threshold(tested.map(|change| change.chance).collect(), self.level())
    }

    fn difference(&self, before: &SideSum, after: &SideSum) -> f64 {
        after.amount / self.after.divisor - before.amount / self.before.divisor
    }

    fn frames_from_root(&self, call: CallId) -> Vec<Arc<DiffFrame>> {
        let calls = self.paths.leaf_first(call);
        let mut frames: Vec<_> = calls.map(|call| self.names[self.paths.row(call)].clone()).collect();
        frames.reverse();
        frames
    }

    /// The paths that are large enough, and the number of others.
    fn tree(&self, level: f64) -> (Vec<DiffNode>, usize) {
        let sides = [&self.before, &self.after];
        let least = sides.map(|side| side.whole.amount * self.query.least_share);
        let is_large = |side: usize, total: &SideSum| total.samples > 0 && total.amount >= least[side];
        // By call: its index among the large ones.
        let mut places = vec![None; self.paths.len()];
        let (mut large, mut sampled) = (Vec::new(), 0);
        for call in self.paths.ids() {
            let [before, after] = sides.map(|side| &side.path_total[call as usize]);
            sampled += usize::from(before.samples > 0 || after.samples > 0);
            if is_large(0, before) || is_large(1, after) {
                places[call as usize] = Some(large.len());
                large.push(call);
            }
        }
        let nodes = large.iter().map(|&call| {
            let totals = sides.map(|side| side.path_total[call as usize]);
            DiffNode {
                caller: self.paths.parent(call).and_then(|caller| places[caller as usize]),
                frame: self.names[self.paths.row(call)].clone(),
                self_values: sides.map(|side| side.path_self(call).amount / side.divisor),
                total_values: sides.map(|side| side.path_total[call as usize].amount / side.divisor),
                is_marked: self.marked(self.change(&totals[0], &totals[1]), level).is_marked,
            }
        });
        (nodes.collect(), sampled - large.len())
    }
}

/// The order of rows: marked ones first, then by size of the change.
fn order(one: &DiffRow, other: &DiffRow) -> Ordering {
    let is_marked = |row: &DiffRow| row.self_change.is_marked || row.total_change.is_marked;
    let size = |change: &ValueChange| change.difference().abs();
    is_marked(other)
        .cmp(&is_marked(one))
        .then(size(&other.self_change).total_cmp(&size(&one.self_change)))
        .then(size(&other.total_change).total_cmp(&size(&one.total_change)))
        .then(other.total_change.after.samples.cmp(&one.total_change.after.samples))
        .then_with(|| one.frame.cmp(&other.frame))
}

fn measure(query: &DiffQuery, sides: [(&SideState, &ProfileSummary); 2]) -> DiffMeasure {
    let has_time = |&(side, summary): &(&SideState, &ProfileSummary)| match side.values {
        Some(_) => side.is_time(),
        None => summary.without_period == 0,
    };
    match query.per {
        Per::Samples => DiffMeasure::Share,
        _ if sides.iter().all(has_time) => DiffMeasure::Seconds,
        _ => DiffMeasure::Samples,
    }
}

/// The divisor of a side's samples.
// The precision of a double is enough.
#[expect(clippy::cast_precision_loss)]
fn divisor(per: &Per, side: &SideState, summary: &ProfileSummary) -> io::Result<f64> {
    let found = match per {
        Per::Samples => return Ok(side.values.unwrap_or(summary.samples).max(1) as f64),
        Per::Input => return Ok(side.inputs.max(1) as f64),
        // Samples without a timestamp cannot be assigned to any second.
        Per::Time => {
            summary.span_ns.filter(|_| summary.timed == summary.samples).map(|span_ns| span_ns as f64 / 1e9)
        }
        Per::Label(_) => Some(side.labels.len() as f64),
    };
    let known = found.filter(|&found| found > 0.0 || summary.samples == 0);
    let missing = || {
        match per {
        Per::Label(key) => format!(
            "missing label: expected samples with the label '{}' on both sides, found a side without it",
            key.escape_ascii()
        ),
        _ => "missing timestamps: expected a timestamp on every sample of both sides, found samples without one".into(),
    }
    };
    let divisor = known.map(|found| found.max(f64::MIN_POSITIVE));
    divisor.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, missing()))
}

/// The number of functions that vanished from all their files and appeared in others.
fn moved(rows: &[DiffRow]) -> usize {
    let mut seen: HashMap<&[u8], [bool; 3]> = HashMap::new();
    for row in rows {
        seen.entry(&row.frame.function).or_default()[Presence::of(&row.total_change) as usize] = true;
    }
    seen.values().filter(|[_, vanished, appeared]| *vanished && *appeared).count()
}
