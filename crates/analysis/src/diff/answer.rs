//! The comparison of both sides, after all samples are counted.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use borehole_model::Tables;

use super::noise::{chance, compare, deviations, threshold};
use super::rows::{Columns, Sum};
use super::side::Side;
use super::view::{
    Amount, Basis, Change, DiffFrame, DiffNode, DiffPath, DiffRow, DiffSide, DiffView, Measure, Presence,
};
use super::{DiffQuery, Identity, Per, frames};
use crate::call_paths::{CallId, CallPaths};
use crate::view::Summary;

/// Fewer observations than this on both sides together are never more than noise, and are not tested.
const FEWEST: f64 = 6.0;

/// A path that may be listed.
struct Candidate {
    call: CallId,
    chance: f64,
    /// The absolute difference.
    difference: f64,
}

/// Both sides as sums over one call tree.
pub(crate) struct Answer<'a> {
    query: &'a DiffQuery,
    paths: CallPaths,
    names: Vec<Arc<DiffFrame>>,
    before: Columns,
    after: Columns,
    measure: Measure,
    basis: Basis,
    /// The confidence as a number of standard deviations.
    deviations: f64,
    by_file: bool,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(
        query: &'a DiffQuery,
        sides: [(&Side, &Summary); 2],
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
            io::Result::Ok(Columns::new(side, &paths, &query.per, measure, divisor, knows_order))
        });
        let basis = match (knows_order, sides[0].0.is_of_inputs()) {
            (false, _) => Basis::Independent,
            (true, true) => Basis::Inputs,
            (true, false) => Basis::Stretches,
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
        functions.sort_by(|one, other| {
            order(&one.own, &one.total, &other.own, &other.total).then_with(|| one.frame.cmp(&other.frame))
        });
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

    fn side(&self, columns: &Columns) -> DiffSide {
        let summary = Summary { matched: columns.whole.samples, ..Summary::default() };
        DiffSide { summary, divisor: columns.divisor, blocks: columns.blocks, ..DiffSide::default() }
    }

    fn level(&self) -> f64 {
        1.0 - self.query.confidence
    }

    /// A change that is not yet marked.
    fn change(&self, before: &Sum, after: &Sum) -> Change {
        let [first, second] = [self.before.estimate(before), self.after.estimate(after)];
        let compared = compare(&first, &second, self.measure == Measure::Share, self.deviations);
        let amount = |sum: &Sum, value| Amount { samples: sum.samples, value };
        Change {
            before: amount(before, first.value()),
            after: amount(after, second.value()),
            margin: compared.margin,
            chance: compared.chance,
            is_marked: false,
        }
    }

    fn marked(&self, change: Change, level: f64) -> Change {
        let is_tested = self.has_enough(change.before.samples, change.after.samples);
        Change { is_marked: is_tested && change.chance <= level, ..change }
    }

    fn functions(&self) -> Vec<DiffRow> {
        let (before, after) = (&self.before, &self.after);
        let sampled = (0..self.names.len())
            .filter(|&group| before.total[group].samples > 0 || after.total[group].samples > 0);
        let mut rows: Vec<_> = sampled
            .map(|group| DiffRow {
                frame: self.names[group].clone(),
                own: self.change(&before.own[group], &after.own[group]),
                total: self.change(&before.total[group], &after.total[group]),
            })
            .collect();
        let level = self.level_of(rows.iter().flat_map(|row| [&row.own, &row.total]));
        for row in &mut rows {
            row.own = self.marked(row.own, level);
            row.total = self.marked(row.total, level);
        }
        rows
    }

    /// The chance up to which paths are marked, and the listed paths.
    fn path_changes(&self) -> (f64, Vec<DiffPath>) {
        let (before, after) = (&self.before, &self.after);
        let mut chances = Vec::new();
        let mut listed: Vec<Candidate> = Vec::new();
        // Most calls have the sums of their caller, or a total equal to their self, so the last result is often reused.
        let mut last = ([Sum::default(); 2], None);
        let mut chance = |sums: [Sum; 2]| {
            if last.0 != sums {
                last = (sums, self.chance(&sums[0], &sums[1]));
            }
            last.1
        };
        for call in self.paths.ids() {
            chances.extend(chance([before, after].map(|side| side.path_total[call as usize])));
            let own = [before.path_own(call), after.path_own(call)];
            if let Some(chance) = chance(own) {
                chances.push(chance);
                let difference = self.difference(&own[0], &own[1]).abs();
                listed.push(Candidate { call, chance, difference });
            }
        }
        let level = threshold(chances, self.level());
        let by_change = |one: &Candidate, other: &Candidate| {
            let marks = (other.chance <= level).cmp(&(one.chance <= level));
            marks.then(other.difference.total_cmp(&one.difference)).then(one.call.cmp(&other.call))
        };
        let most = self.query.paths.unwrap_or(usize::MAX);
        if most < listed.len() {
            listed.select_nth_unstable_by(most, by_change);
            listed.truncate(most);
        }
        listed.sort_by(by_change);
        let rows = listed.into_iter().map(|Candidate { call, .. }| DiffPath {
            frames: self.frames_from_root(call),
            own: self.marked(self.change(&before.path_own(call), &after.path_own(call)), level),
            total: self.marked(
                self.change(&before.path_total[call as usize], &after.path_total[call as usize]),
                level,
            ),
        });
        (level, rows.collect())
    }

    /// The chance of a difference, 1 if it is certainly too large to matter; `None` if there are too few samples.
    fn chance(&self, before: &Sum, after: &Sum) -> Option<f64> {
        if !self.has_enough(before.samples, after.samples) {
            return None;
        }
        let [first, second] = [self.before.estimate(before), self.after.estimate(after)];
        Some(chance(&first, &second, self.measure == Measure::Share, self.deviations))
    }

    /// Whether there are enough observations to test.
    // A small count does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    fn has_enough(&self, before: u64, after: u64) -> bool {
        before as f64 / self.before.observation + after as f64 / self.after.observation >= FEWEST
    }

    /// The chance up to which changes are marked.
    fn level_of<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> f64 {
        let tested = changes.filter(|change| self.has_enough(change.before.samples, change.after.samples));
        threshold(tested.map(|change| change.chance).collect(), self.level())
    }

    fn difference(&self, before: &Sum, after: &Sum) -> f64 {
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
        let is_large = |side: usize, total: &Sum| total.samples > 0 && total.amount >= least[side];
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
                own: sides.map(|side| side.path_own(call).amount / side.divisor),
                total: sides.map(|side| side.path_total[call as usize].amount / side.divisor),
                is_marked: self.marked(self.change(&totals[0], &totals[1]), level).is_marked,
            }
        });
        (nodes.collect(), sampled - large.len())
    }
}

/// The order of rows: marked ones first, then by size of the change.
fn order(own: &Change, total: &Change, other_own: &Change, other_total: &Change) -> Ordering {
    let is_marked = |own: &Change, total: &Change| own.is_marked || total.is_marked;
    let size = |change: &Change| change.difference().abs();
    is_marked(other_own, other_total)
        .cmp(&is_marked(own, total))
        .then(size(other_own).total_cmp(&size(own)))
        .then(size(other_total).total_cmp(&size(total)))
        .then(other_total.after.samples.cmp(&total.after.samples))
}

fn measure(query: &DiffQuery, sides: [(&Side, &Summary); 2]) -> Measure {
    let has_time = |&(side, summary): &(&Side, &Summary)| match side.values {
        Some(_) => side.is_time(),
        None => summary.without_period == 0,
    };
    match query.per {
        Per::Samples => Measure::Share,
        _ if sides.iter().all(has_time) => Measure::Seconds,
        _ => Measure::Samples,
    }
}

/// The divisor of a side's samples.
// The precision of a double is enough.
#[expect(clippy::cast_precision_loss)]
fn divisor(per: &Per, side: &Side, summary: &Summary) -> io::Result<f64> {
    let missing = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    let found = match per {
        Per::Samples => return Ok(side.values.unwrap_or(summary.samples).max(1) as f64),
        Per::Input => return Ok(side.inputs.max(1) as f64),
        // Samples without a timestamp cannot be assigned to any second.
        Per::Time => {
            summary.span_ns.filter(|_| summary.timed == summary.samples).map(|span_ns| span_ns as f64 / 1e9)
        }
        Per::Label(_) => Some(side.labels.len() as f64),
    };
    found.filter(|&found| found > 0.0 || summary.samples == 0).map(|found| found.max(f64::MIN_POSITIVE)).ok_or_else(
        || match per {
            Per::Label(key) => missing(format!(
                "missing label: expected samples with the label '{}' on both sides, found a side without one",
                key.escape_ascii()
            )),
            _ => missing(
                "missing times: expected samples that say when they were taken on both sides, found a side with some that do not"
                    .to_owned(),
            ),
        },
    )
}

/// The number of functions that vanished from all their files and appeared in others.
fn moved(rows: &[DiffRow]) -> usize {
    let mut seen: HashMap<&[u8], [bool; 3]> = HashMap::new();
    for row in rows {
        seen.entry(&row.frame.function).or_default()[Presence::of(&row.total) as usize] = true;
    }
    seen.values().filter(|[_, vanished, appeared]| *vanished && *appeared).count()
}
