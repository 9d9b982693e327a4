//! The focus of the views: one function, or the whole profile.

use borehole_analysis::{CallBranch, Calls, LazyTree};

use crate::list::ScrollList;
use crate::outline::TreeOutline;

/// A row of the panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PaneRow {
    /// The row of the calls; `None` for the end of the stack.
    pub(crate) frame: Option<usize>,
    pub(crate) weight: i64,
}

/// The rows of a pane, and which of them are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct FramePane {
    rows: Vec<PaneRow>,
    shown: Vec<usize>,
    pub(crate) list: ScrollList,
}

impl FramePane {
    fn new(rows: Vec<PaneRow>) -> Self {
        Self { shown: (0..rows.len()).collect(), rows, list: ScrollList::default() }
    }

    pub(crate) fn refresh(&mut self, wanted: impl Fn(Option<usize>) -> bool) {
        let rows = (0..self.rows.len()).filter(|&row| wanted(self.rows[row].frame));
        self.shown = rows.collect();
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    pub(crate) fn row(&self, shown: usize) -> Option<PaneRow> {
        self.shown.get(shown).map(|&row| self.rows[row])
    }

    /// Scrolls to the given position, with the cursor on a row if it is shown: that of a function, or the end of the stack.
    pub(crate) fn go_to(&mut self, list: ScrollList, frame: Option<Option<usize>>) {
        let place = self.shown.iter().position(|&row| Some(self.rows[row].frame) == frame);
        self.list = list;
        self.list.cursor = place.unwrap_or(list.cursor).min(self.shown.len().saturating_sub(1));
    }

    pub(crate) fn current(&self) -> Option<usize> {
        self.row(self.list.cursor)?.frame
    }
}

/// A function with its callers and callees, or the whole profile.
#[derive(Clone, Debug)]
pub(crate) struct Focus {
    pub(crate) frame: Option<usize>,
    pub(crate) total_weight: i64,
    pub(crate) self_weight: i64,
    pub(crate) callers: TreeOutline,
    pub(crate) callees: TreeOutline,
    pub(crate) above: FramePane,
    pub(crate) below: FramePane,
    /// The cursor of the flame graph: the level, negative for callers, and the column.
    pub(crate) flame: (i64, usize),
    /// The first visible level of the flame graph.
    pub(crate) flame_top: i64,
}

impl Focus {
    pub(crate) fn new(calls: &Calls, frame: Option<usize>) -> Self {
        let (callers, callees) = match frame {
            Some(frame) => (LazyTree::above(calls, frame), LazyTree::below(calls, frame)),
            None => (LazyTree::from_leaves(calls), LazyTree::from_roots(calls)),
        };
        let mut focus = Self {
            frame,
            total_weight: calls.total(),
            self_weight: 0,
            callers: TreeOutline::new(callers, calls),
            callees: TreeOutline::new(callees, calls),
            above: FramePane::default(),
            below: FramePane::default(),
            flame: (0, 0),
            flame_top: 0,
        };
        if frame.is_some() {
            focus.fill(calls);
        } else {
            focus.below = FramePane::new(rows(&focus.callees, focus.callees.roots()));
        }
        focus
    }

    fn fill(&mut self, calls: &Calls) {
        let top = |outline: &TreeOutline| outline.roots().next().map(|node| outline.node(node).clone());
        let (above, below) = (top(&self.callers), top(&self.callees));
        self.total_weight = below.as_ref().map_or(0, |node| node.total_weight);
        self.self_weight = below.map_or(0, |node| node.self_weight);
        let at_root = above.map_or(0, |node| node.self_weight);
        for (outline, pane, at_end) in [
            (&mut self.callers, &mut self.above, at_root),
            (&mut self.callees, &mut self.below, self.self_weight),
        ] {
            let nodes = outline.roots().next().map_or(0..0, |node| outline.children(calls, node));
            let mut found = rows(outline, nodes);
            if at_end != 0 {
                let place = found.partition_point(|row| row.weight >= at_end);
                found.insert(place, PaneRow { frame: None, weight: at_end });
            }
            *pane = FramePane::new(found);
        }
    }

    /// Recomputes which rows are shown.
    pub(crate) fn refresh(&mut self, calls: &Calls, wanted: impl Fn(usize) -> bool) {
        let node = |node: &CallBranch| wanted(node.frame);
        self.callers.refresh(calls, node);
        self.callees.refresh(calls, node);
        self.above.refresh(|frame| frame.is_none_or(&wanted));
        self.below.refresh(|frame| frame.is_none_or(&wanted));
    }
}

fn rows(outline: &TreeOutline, nodes: std::ops::Range<usize>) -> Vec<PaneRow> {
    let row =
        |node| PaneRow { frame: Some(outline.node(node).frame), weight: outline.node(node).total_weight };
    nodes.map(row).collect()
}
