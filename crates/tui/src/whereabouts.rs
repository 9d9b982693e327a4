//! The user's place in the views, by names, because rows and nodes get other numbers when a profile grows.

use std::collections::HashMap;
use std::sync::Arc;

use borehole_analysis::diff::DiffFrame;
use borehole_analysis::{By, FrameName, GroupValue};

use crate::app::{App, OverviewList, ProfileData};
use crate::list::ScrollList;
use crate::outline::Unfolded;

/// The state that stays when the profile is replaced by a newer state.
pub(crate) struct Whereabouts {
    pub(crate) focus: Option<Arc<FrameName>>,
    overview: Option<Arc<FrameName>>,
    /// For callers and callees: the list and the row under its cursor, which may be the end of the stack.
    panes: [(ScrollList, Option<Option<Arc<FrameName>>>); 2],
    /// For callers and callees.
    trees: [Unfolded; 2],
    flame: (i64, usize),
    flame_top: i64,
    /// The functions from the focus to the box under the cursor of the flame graph.
    flame_path: Vec<Arc<FrameName>>,
    /// The kind of groups, and the group under the cursor.
    groups: (By, Option<GroupValue>),
    /// The changed function under the cursor.
    change: Option<Arc<DiffFrame>>,
}

impl App {
    pub(crate) fn whereabouts(&mut self) -> Whereabouts {
        let flame_path = self.flame_path();
        let groups = (self.group_kinds().swap_remove(self.groups.kind), self.groups.current());
        let name = |frame: usize| self.data.calls.frame(frame).clone();
        let focus = &self.focus;
        Whereabouts {
            focus: self.focus_name(),
            overview: self.overview.current().map(name),
            panes: [&focus.above, &focus.below].map(|pane| {
                let current = pane.row(pane.list.cursor).map(|row| row.frame.map(name));
                (pane.list, current)
            }),
            trees: [&focus.callers, &focus.callees].map(|outline| outline.unfolded(name)),
            flame: focus.flame,
            flame_top: focus.flame_top,
            flame_path: flame_path.into_iter().map(name).collect(),
            groups,
            change: self.changed_function(),
        }
    }

    /// Reopens nodes and puts cursors back, as far as their rows still exist.
    pub(crate) fn return_to(&mut self, before: &Whereabouts) {
        let Self { data: ProfileData { calls, .. }, focus, .. } = self;
        let all = 0..calls.frame_count();
        let rows: HashMap<&FrameName, usize> = all.map(|row| (&**calls.frame(row), row)).collect();
        let row = |name: &Arc<FrameName>| rows.get(&**name).copied();
        let overview = before.overview.as_ref().and_then(row);
        let panes = before.panes.each_ref().map(|(list, name)| {
            // Without a row of that name the cursor keeps its number.
            let frame =
                name.as_ref().and_then(|name| name.as_ref().map_or(Some(None), |name| row(name).map(Some)));
            (*list, frame)
        });
        let flame_path: Vec<_> = before.flame_path.iter().map(row).collect();
        let is_same_focus = before.focus.is_some() == focus.frame.is_some();
        let [callers, callees] = &before.trees;
        let nodes = is_same_focus.then(|| {
            [focus.callers.unfold_again(callers, calls, row), focus.callees.unfold_again(callees, calls, row)]
        });
        self.refresh();
        self.overview.go_to(overview);
        self.go_to_group(&before.groups);
        if let Some(change) = &before.change {
            self.go_to_change(change);
        }
        let Some([caller, callee]) = nodes else { return };
        let focus = &mut self.focus;
        focus.callers.go_to(callers.list, caller);
        focus.callees.go_to(callees.list, callee);
        for (pane, (list, frame)) in [&mut focus.above, &mut focus.below].into_iter().zip(panes) {
            pane.go_to(list, frame);
        }
        focus.flame_top = before.flame_top;
        self.go_to_flame(before.flame, &flame_path);
    }
}

impl OverviewList {
    /// Puts the cursor on a row of the calls, if that is shown.
    fn go_to(&mut self, frame: Option<usize>) {
        let is_wanted = |&row: &usize| Some(self.rows[row].frame) == frame;
        if let Some(place) = self.shown.iter().position(is_wanted) {
            self.list.cursor = place;
        }
    }
}
