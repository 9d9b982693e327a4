//! The state of the explorer.

use std::sync::Arc;

use borehole_analysis::diff::DiffView;
use borehole_analysis::{
    Calls, FrameName, HeatMap, LineRows, PathStyle, Pattern, Profile, Query, SampleSelection, SortBy, TopRow,
    Weight,
};
use borehole_text::{KeptEnd, printable};
use ratatui::layout::Rect;

use crate::changes::ChangeList;
use crate::controls::Controls;
use crate::focus::Focus;
use crate::groups::GroupTable;
use crate::host::Host;
use crate::keymap::Keymap;
use crate::list::ScrollList;
use crate::since::Since;
use crate::source::{SourcePane, SourceView};
use crate::theme::Colours;
use crate::time::TimeViews;

/// The appearance and the controls of the explorer.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The text of the first line.
    pub title: String,
    /// The keys.
    pub keymap: Keymap,
    /// The colours.
    pub colours: Colours,
    /// The shape of stacks.
    pub query: Query,
    /// The samples that count.
    pub selection: SampleSelection,
    /// The changes since an earlier profile, among the samples that `query` keeps; `None` without a comparison.
    pub diff: Option<DiffView>,
    /// The frames that one key collapses, with the names of the resulting frames.
    pub libraries: Vec<borehole_analysis::Collapse>,
}

/// The main view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProfileView {
    #[default]
    Panes,
    Flame,
    Callees,
    Callers,
    Timeline,
    HeatMap,
    Groups,
    Changes,
}

/// The part of the screen that has the cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScreenPart {
    #[default]
    Overview,
    /// The pane of callers.
    Above,
    /// The pane of callees, or all of another view.
    Body,
}

/// The areas of the screen that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScreenAreas {
    pub(crate) overview: Rect,
    pub(crate) above: Rect,
    pub(crate) body: Rect,
}

impl ScreenAreas {
    /// The area at a cell, and the line in it.
    pub(crate) fn at(&self, column: u16, row: u16) -> Option<(ScreenPart, usize)> {
        let parts = [
            (ScreenPart::Overview, self.overview),
            (ScreenPart::Above, self.above),
            (ScreenPart::Body, self.body),
        ];
        let inside = |area: Rect| area.contains((column, row).into());
        let (place, area) = parts.into_iter().find(|&(_, area)| inside(area))?;
        Some((place, usize::from(row - area.y)))
    }
}

/// The purpose of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProfilePrompt {
    Filter,
    Match,
    Export,
}

/// The list of all functions.
#[derive(Clone, Debug)]
pub(crate) struct OverviewList {
    pub(crate) rows: Vec<TopRow>,
    /// The functions shown.
    pub(crate) shown: Vec<usize>,
    pub(crate) sort: SortBy,
    pub(crate) list: ScrollList,
    pub(crate) is_visible: bool,
    pub(crate) follows: bool,
}

impl OverviewList {
    pub(crate) fn current(&self) -> Option<usize> {
        self.shown.get(self.list.cursor).map(|&row| self.rows[row].frame)
    }
}

/// A profile, and what is counted of it.
#[derive(Debug)]
pub(crate) struct ProfileData {
    pub(crate) profile: Profile,
    pub(crate) heat: HeatMap,
    pub(crate) weight: Weight,
    pub(crate) calls: Calls,
    /// The label of each row of the calls.
    pub(crate) labels: Vec<String>,
    pub(crate) libraries_are_one: bool,
}

impl ProfileData {
    fn new(profile: Profile, heat: HeatMap, settings: &Settings) -> Self {
        let weight = profile.default_weight();
        let calls = Calls::new(&profile, &settings.query, &settings.selection, weight);
        let labels = labels(&calls);
        Self { profile, heat, weight, calls, labels, libraries_are_one: false }
    }

    /// Replaces the profile by another state of it.
    fn replace(&mut self, profile: Profile, heat: HeatMap) {
        if !profile.weights().contains(&self.weight) {
            self.weight = profile.default_weight();
        }
        (self.profile, self.heat) = (profile, heat);
    }

    /// Recounts everything after the shape of stacks or the profile has changed.
    fn recount(&mut self, settings: &Settings) {
        let mut query = settings.query.clone();
        if self.libraries_are_one {
            query.collapse.extend(settings.libraries.iter().cloned());
        }
        self.calls = Calls::new(&self.profile, &query, &settings.selection, self.weight);
        self.labels = labels(&self.calls);
    }
}

fn labels(calls: &Calls) -> Vec<String> {
    (0..calls.frame_count()).map(|frame| printable(&calls.frame(frame).text(PathStyle::Short))).collect()
}

/// The arrangement of the screen.
#[derive(Debug)]
pub(crate) struct ScreenLayout {
    pub(crate) view: ProfileView,
    /// The part that has the cursor.
    pub(crate) part: ScreenPart,
    pub(crate) has_mini_flame: bool,
    /// The end of labels that stays when they are cut.
    pub(crate) anchor: KeptEnd,
    pub(crate) areas: ScreenAreas,
    /// The width of the flame graph when it was drawn last, in columns; its cursor is one of them.
    pub(crate) flame_width: usize,
}

/// The explorer: the view of a profile, and how keys change it. It draws into cells and uses neither a terminal nor files.
#[derive(Debug)]
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) controls: Controls<ProfilePrompt>,
    pub(crate) data: ProfileData,
    pub(crate) screen: ScreenLayout,
    pub(crate) filter: String,
    pub(crate) overview: OverviewList,
    pub(crate) focus: Focus,
    /// The earlier focuses, the latest one last.
    pub(crate) past: Vec<Option<Arc<FrameName>>>,
    pub(crate) groups: GroupTable,
    pub(crate) changes: ChangeList,
    pub(crate) time: TimeViews,
    pub(crate) source: SourcePane,
}

impl App {
    /// Creates an explorer of `profile`, with `heat` as the map of its sample times.
    #[must_use]
    pub fn new(profile: Profile, heat: HeatMap, settings: Settings) -> Self {
        let data = ProfileData::new(profile, heat, &settings);
        let mut app = Self {
            focus: Focus::new(&data.calls, None),
            changes: ChangeList::new(settings.query.keep.as_ref(), settings.diff.as_ref()),
            settings,
            controls: Controls::default(),
            data,
            screen: ScreenLayout {
                view: ProfileView::default(),
                part: ScreenPart::default(),
                has_mini_flame: true,
                anchor: KeptEnd::Left,
                areas: ScreenAreas::default(),
                flame_width: 0,
            },
            filter: String::new(),
            overview: OverviewList {
                rows: Vec::new(),
                shown: Vec::new(),
                sort: SortBy::SelfWeight,
                list: ScrollList::default(),
                is_visible: true,
                follows: false,
            },
            past: Vec::new(),
            groups: GroupTable::default(),
            time: TimeViews::default(),
            source: SourcePane::default(),
        };
        app.refill(None);
        app
    }

    /// Whether the user has ended it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.controls.is_done
    }

    /// Goes on after the user has ended it.
    pub const fn resume(&mut self) {
        self.controls.is_done = false;
    }

    /// Shows another state of the same profile, such as a file that has grown, and its changes since an earlier profile. The
    /// focus, open nodes and cursors stay.
    pub fn replace(&mut self, profile: Profile, heat: HeatMap, diff: Option<DiffView>) {
        let whereabouts = self.whereabouts();
        self.data.replace(profile, heat);
        self.changes.since = diff.as_ref().map(Since::new);
        self.settings.diff = diff;
        self.recount(whereabouts.focus.clone());
        self.return_to(&whereabouts);
    }

    /// Shows a message in the status line until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.controls.say(message);
    }

    pub(crate) fn focus_name(&self) -> Option<Arc<FrameName>> {
        self.focus.frame.map(|frame| self.data.calls.frame(frame).clone())
    }

    /// Recounts everything after the shape of stacks or the profile has changed.
    pub(crate) fn recount(&mut self, focus: Option<Arc<FrameName>>) {
        self.data.recount(&self.settings);
        self.refill(focus);
    }

    /// Reweighs everything after other samples were selected.
    pub(crate) fn reweigh(&mut self) {
        let focus = self.focus_name();
        self.data.calls.weigh(&self.data.profile, &self.settings.selection, self.data.weight);
        self.refill(focus);
    }

    /// Rebuilds everything that is derived from the calls.
    fn refill(&mut self, focus: Option<Arc<FrameName>>) {
        self.overview.rows = self.data.calls.top(self.overview.sort);
        self.groups.forget();
        self.time.forget();
        let frame = focus.and_then(|name| self.row_of(&name));
        self.set_focus(frame);
    }

    fn set_focus(&mut self, frame: Option<usize>) {
        self.focus = Focus::new(&self.data.calls, frame);
        if frame.is_none() && self.screen.part == ScreenPart::Above {
            // Nothing calls the whole profile, so there is no pane of callers.
            self.screen.part = ScreenPart::Body;
        }
        self.refresh();
    }

    /// The row of that name, or of the same function if lines are now split differently.
    pub(crate) fn row_of(&self, name: &FrameName) -> Option<usize> {
        let same = || {
            let of_function = |row: &&TopRow| self.data.calls.frame(row.frame).function == name.function;
            self.overview
                .rows
                .iter()
                .filter(of_function)
                .max_by_key(|row| row.total_weight)
                .map(|row| row.frame)
        };
        self.data.calls.find(name).or_else(same)
    }

    /// Recomputes the rows shown after the filter or the open nodes have changed.
    pub(crate) fn refresh(&mut self) {
        let Self { data: ProfileData { labels, .. }, filter, overview, .. } = self;
        let needle = filter.to_lowercase();
        let wanted = |frame: usize| needle.is_empty() || labels[frame].to_lowercase().contains(&needle);
        let rows = (0..overview.rows.len()).filter(|&row| wanted(overview.rows[row].frame));
        overview.shown = rows.collect();
        self.focus.refresh(&self.data.calls, wanted);
        self.refresh_changes();
    }

    /// Makes a row the focus, and remembers the previous one.
    pub(crate) fn focus_on(&mut self, frame: Option<usize>) {
        if frame != self.focus.frame {
            self.past.push(self.focus_name());
            self.show_focus(frame);
        }
    }

    fn show_focus(&mut self, frame: Option<usize>) {
        // The timeline shows the focus.
        self.time.forget();
        self.set_focus(frame);
    }

    pub(crate) fn undo(&mut self) {
        match self.past.pop() {
            Some(name) => {
                let frame = name.and_then(|name| self.row_of(&name));
                self.show_focus(frame);
            }
            None => self.say("nothing to undo"),
        }
    }

    /// The row of the calls under the cursor.
    pub(crate) fn current(&mut self) -> Option<usize> {
        match (self.screen.part, self.screen.view) {
            (ScreenPart::Overview, _) => self.overview.current(),
            (ScreenPart::Above, _) => self.focus.above.current(),
            (ScreenPart::Body, ProfileView::Panes) => self.focus.below.current(),
            (ScreenPart::Body, ProfileView::Callees) => {
                self.focus.callees.current().map(|node| self.focus.callees.node(node).frame)
            }
            (ScreenPart::Body, ProfileView::Callers) => {
                self.focus.callers.current().map(|node| self.focus.callers.node(node).frame)
            }
            (ScreenPart::Body, ProfileView::Flame) => self.flame_current(),
            (ScreenPart::Body, ProfileView::Timeline | ProfileView::HeatMap | ProfileView::Groups) => {
                self.focus.frame
            }
            (ScreenPart::Body, ProfileView::Changes) => self.changed_frame(),
        }
    }

    /// Counts only samples with a matching frame; an empty pattern counts all.
    pub(crate) fn match_samples(&mut self, source: &str) {
        let pattern = if source.is_empty() { None } else { Some(Pattern::new(source)) };
        match pattern.transpose() {
            Ok(pattern) => {
                self.settings.query.keep = pattern;
                let focus = self.focus_name();
                self.recount(focus);
            }
            Err(error) => self.say(error.to_string()),
        }
    }

    /// Shows or hides files and lines.
    pub(crate) fn toggle_lines(&mut self) {
        let query = &mut self.settings.query;
        query.lines = match query.lines {
            LineRows::Apart => LineRows::Together,
            LineRows::Together => LineRows::Apart,
        };
        let focus = self.focus_name();
        self.recount(focus);
    }

    /// Reads the source of the row under the cursor, if sources are shown.
    pub(crate) fn read_source(&mut self, host: &mut dyn Host) {
        if !self.source.is_shown {
            return;
        }
        let name = self.current().or(self.focus.frame).map(|frame| self.data.calls.frame(frame).clone());
        self.source.view = name.map(|name| SourceView::of(&name, self.source.view.take(), host));
    }
}
