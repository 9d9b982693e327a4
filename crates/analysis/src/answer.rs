//! The tables of a query, built after all samples are counted.

use std::cmp::Reverse;

use borehole_model::{Frame, StackId, Tables};

use crate::call_paths::Summable as _;
use crate::call_tree::{Beside, CallTree, Neighbour};
use crate::counts::{StackTallies, Tally};
use crate::frame_name::{FrameName, class_of, file_of};
use crate::groups::{GroupId, PartGroups};
use crate::query::{By, Query};
use crate::ranking::{Basis, Ranking, rank_totals, totals};
use crate::recent::RecentSamples;
use crate::sample_groups::SampleGroups;
use crate::states::{StateCounts, collecting};
use crate::view::{
    Breakdown, FrameGroup, LimitedRows, ProfileSummary, ReportRow, ReportTable, ReportView, SampleGroup,
    Share, StateRow, StateTable,
};

/// The groups of rows that are not frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndGroups {
    root: GroupId,
    leaf: GroupId,
}

impl EndGroups {
    pub(crate) fn of(tree: &mut CallTree, query: &Query) -> Self {
        let mut named = |name: &str| {
            let name = FrameName { function: name.into(), ..FrameName::default() };
            tree.groups.named(name, query)
        };
        Self { root: named("<root>"), leaf: named("<leaf>") }
    }
}

/// The views of a profile whose stacks have all been derived.
#[derive(Clone, Copy)]
pub(crate) struct ReportAnswer<'a> {
    pub(crate) query: &'a Query,
    pub(crate) counts: &'a StackTallies,
    pub(crate) states: &'a StateCounts,
    pub(crate) tree: &'a CallTree,
    pub(crate) tables: &'a Tables,
    pub(crate) edges: EndGroups,
}

/// The basis of percentages, the kind of values, and whether times are known.
#[derive(Clone, Copy)]
struct Whole {
    matched: Tally,
    basis: Basis,
    values: Basis,
    has_time: bool,
}

impl Whole {
    // A percentage does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    fn share(self, tally: Tally) -> Share {
        Share {
            count: tally.count,
            percent: self.basis.of(tally) as f64 * 100.0
                / self.basis.of(self.matched).unsigned_abs().max(1) as f64,
            value: self.values.of(tally),
            time_ns: self.has_time.then(|| u128::try_from(tally.value).unwrap_or(0)),
        }
    }
}

impl ReportAnswer<'_> {
    pub(crate) fn view(
        &self,
        mut summary: ProfileSummary,
        recent: Option<&RecentSamples>,
        groups: Option<&SampleGroups>,
    ) -> ReportView {
        let Self { query, tree, tables, edges, .. } = *self;
        let mut matched = Tally::default();
        self.matched().for_each(|(_, tally)| matched.add(tally));
        summary.matched = matched.count;
        summary.stacks = self.counts.len();
        let has_time = summary.time_ns.is_some() && !summary.is_valued;
        let whole = Whole { matched, basis: summary.basis(), values: summary.values(), has_time };
        summary.value = whole.values.of(matched);
        let total = self.total_ranking();
        summary.frames = total.len();
        let beside = |end, pick: fn(Beside) -> Neighbour| self.table(self.neighbours(end, pick), whole);
        ReportView {
            summary,
            self_table: self.table(self.self_ranking(), whole),
            states: (!self.states.is_empty()).then(|| self.state_table(total.clone(), whole.basis)),
            total_table: self.table(total, whole),
            callers: query.callers.as_ref().map(|_| beside(edges.root, |beside| beside.caller)),
            callees: query.callees.as_ref().map(|_| beside(edges.leaf, |beside| beside.callee)),
            last: recent.map(|recent| recent.view(tree, tables, query.last_depth)),
            breakdown: self.breakdown(groups, whole),
        }
    }

    /// The stacks that count, in order of first appearance.
    fn matched(&self) -> impl Iterator<Item = (StackId, Tally)> + Clone {
        self.counts.iter().filter(|&(stack, _)| self.tree.counts(stack))
    }

    /// The tally of a stack's samples, if they count.
    fn self_tally(&self, stack: StackId) -> Tally {
        if self.tree.counts(stack) { self.counts.tally(stack) } else { Tally::default() }
    }

    /// The leaf of a stack that counts: its shown frame nearest to the leaf.
    fn leaf(&self, stack: StackId) -> StackId {
        self.tree.leaf(stack).expect("a stack counts only if a frame of it is shown")
    }

    fn self_ranking(&self) -> Ranking {
        let mut ranking = Ranking::default();
        for (stack, tally) in self.matched() {
            ranking.add(self.tree.group(self.leaf(stack), self.tables), tally);
        }
        ranking
    }

    fn total_ranking(&self) -> Ranking {
        let Self { tree, tables, .. } = *self;
        let group_of = |stack| tree.shown(stack, tables);
        let totals = totals(tree, tables, |stack| self.self_tally(stack), tree.groups.len(), group_of);
        rank_totals(tree, tables, self.matched().map(|(stack, _)| stack), &totals, group_of)
    }

    /// The thread states for the frames of `total`.
    fn state_table(&self, total: Ranking, basis: Basis) -> StateTable {
        let Self { tree, tables, states, .. } = *self;
        let group_of = |stack| tree.shown(stack, tables);
        let collecting = collecting(tables);
        let in_state: [Vec<Tally>; StateCounts::STATES] = std::array::from_fn(|state| {
            let of = |stack| states.tally(state, (stack, self.counts.tally(stack)), &collecting);
            let self_tally = |stack| if tree.counts(stack) { of(stack) } else { Tally::default() };
            totals(tree, tables, self_tally, tree.groups.len(), group_of)
        });
        LimitedRows::new(total.sorted(basis), self.limit(), |(group, tally)| StateRow {
            frame: tree.groups.name(group).clone(),
            count: tally.count,
            states: states.shares(tally.count, std::array::from_fn(|state| in_state[state][group].count)),
        })
    }

    fn neighbours(&self, end: GroupId, pick: fn(Beside) -> Neighbour) -> Ranking {
        let mut ranking = Ranking::default();
        for (stack, tally) in self.matched() {
            match pick(self.tree.beside(stack)) {
                Neighbour::NoMatch => {}
                Neighbour::Outside => ranking.add(end, tally),
                Neighbour::Frame(group) => ranking.add(group, tally),
            }
        }
        ranking
    }

    fn limit(&self) -> usize {
        self.query.limit.unwrap_or(usize::MAX)
    }

    fn table(&self, ranking: Ranking, whole: Whole) -> ReportTable {
        LimitedRows::new(ranking.sorted(whole.basis), self.limit(), |(group, tally)| ReportRow {
            frame: self.tree.groups.name(group).clone(),
            share: whole.share(tally),
        })
    }

    fn breakdown(&self, groups: Option<&SampleGroups>, whole: Whole) -> Option<Breakdown> {
        match self.query.by.as_ref()? {
            By::File => {
                let file = |frame: &Frame, tables: &Tables| file_of(frame, tables, &self.query.path_map);
                Some(self.by_part(PartGroups::new(file), whole))
            }
            By::Class => Some(self.by_part(PartGroups::new(class_of), whole)),
            By::Label(_) | By::Process | By::Thread | By::Interpreter => {
                groups.map(|groups| self.by_sample(groups, whole))
            }
        }
    }

    fn by_sample(&self, groups: &SampleGroups, whole: Whole) -> Breakdown {
        let sorted = groups.ranking.clone().sorted(whole.basis);
        let LimitedRows { rows, distinct } = LimitedRows::new(sorted, self.limit(), |(group, tally)| {
            SampleGroup { value: groups.value(group, self.tables), share: whole.share(tally) }
        });
        Breakdown::Samples { rows, distinct }
    }

    fn by_part(&self, mut parts: PartGroups<'_>, whole: Whole) -> Breakdown {
        let Self { tree, tables, .. } = *self;
        for stack in tree.callers_first(tables) {
            parts.of(tables.leaf(stack), tables);
        }
        let group_of = |stack| if tree.is_shown(stack) { parts.get(tables.leaf(stack)) } else { None };
        let totals = totals(tree, tables, |stack| self.self_tally(stack), parts.names.len(), group_of);
        let mut self_tallies = vec![Tally::default(); parts.names.len()];
        for (stack, tally) in self.matched() {
            if let Some(group) = parts.get(tables.leaf(self.leaf(stack))) {
                self_tallies[group].add(tally);
            }
        }
        let met = rank_totals(tree, tables, self.matched().map(|(stack, _)| stack), &totals, group_of);
        let mut sorted = met.sorted(whole.basis);
        sorted.sort_by_key(|&(group, _)| Reverse(whole.basis.of(self_tallies[group])));
        let LimitedRows { rows, distinct } =
            LimitedRows::new(sorted, self.limit(), |(group, total)| FrameGroup {
                name: parts.names[group].clone(),
                self_share: whole.share(self_tallies[group]),
                total_share: whole.share(total),
            });
        Breakdown::Frames { rows, distinct }
    }
}
