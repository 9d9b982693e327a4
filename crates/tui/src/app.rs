//! The state of the explorer.

use std::sync::Arc;

use borehole_analysis::diff::DiffView;
use borehole_analysis::{
    Calls, FrameName, HeatMap, Lines, Paths, Pattern, Profile, Query, Selection, SortBy, TopRow, Weight,
};

use crate::focus::Focus;
use crate::host::Host;
use crate::keymap::Keymap;
use crate::list::List;
use crate::prompt::Prompt;
use crate::source::SourceView;
use crate::text::{Anchor, printable};
use crate::theme::Colours;

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
    pub selection: Selection,
    /// The changes since an earlier profile, among the samples that `query` keeps; `None` without a comparison.
    pub diff: Option<DiffView>,
    /// The frames that one key collapses, with the names of the resulting frames.
    pub libraries: Vec<borehole_analysis::Collapse>,
}

/// The main view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
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
pub(crate) enum Place {
    #[default]
    Overview,
    /// The pane of callers.
    Above,
    /// The pane of callees, or all of another view.
    Body,
}

/// The purpose of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptKind {
    Filter,
    Match,
    Export,
}

/// The list of all functions.
#[derive(Clone, Debug)]
pub(crate) struct Overview {
    pub(crate) rows: Vec<TopRow>,
    /// The functions shown.
    pub(crate) shown: Vec<usize>,
    pub(crate) sort: SortBy,
    pub(crate) list: List,
    pub(crate) is_visible: bool,
    pub(crate) follows: bool,
}

impl Overview {
    pub(crate) fn current(&self) -> Option<usize> {
        self.shown.get(self.list.cursor).map(|&row| self.rows[row].frame)
    }
}

/// The explorer: the view of a profile, and how keys change it. It draws into cells and uses neither a terminal nor files.
#[derive(Debug)]
pub struct App {
    pub(crate) settings: Settings,
    pub(crate) profile: Profile,
    pub(crate) heat: HeatMap,
    pub(crate) weight: Weight,
    pub(crate) calls: Calls,
    /// The label of each row of the calls.
    pub(crate) labels: Vec<String>,
    pub(crate) overview: Overview,
    pub(crate) focus: Focus,
    /// The earlier focuses, the latest one last.
    pub(crate) past: Vec<Option<Arc<FrameName>>>,
    pub(crate) view: View,
    pub(crate) place: Place,
    pub(crate) filter: String,
    pub(crate) prompt: Option<Prompt<PromptKind>>,
    pub(crate) message: Option<String>,
    pub(crate) has_mini_flame: bool,
    pub(crate) anchor: Anchor,
    pub(crate) libraries_are_one: bool,
    pub(crate) shows_help: bool,
    pub(crate) help: List,
    pub(crate) shows_source: bool,
    pub(crate) source: Option<SourceView>,
    pub(crate) groups: crate::groups::Groups,
    pub(crate) changes: crate::changes::Changes,
    /// The changes by function, if there is a base.
    pub(crate) since: Option<crate::since::Since>,
    /// The pattern that selected the samples compared with a base.
    pub(crate) compared: Option<String>,
    pub(crate) time: crate::time::TimeViews,
    /// The width of the flame graph when it was drawn last, in columns; its cursor is one of them.
    pub(crate) flame_width: usize,
    pub(crate) areas: crate::draw::Areas,
    pub(crate) is_done: bool,
}

impl App {
    /// Creates an explorer of `profile`, with `heat` as the map of its sample times.
    #[must_use]
    pub fn new(profile: Profile, heat: HeatMap, settings: Settings) -> Self {
        let weight = profile.default_weight();
        let since = settings.diff.as_ref().map(crate::since::Since::new);
        let compared = settings.query.keep.as_ref().map(|pattern| pattern.as_str().to_owned());
        let calls = Calls::new(&profile, &settings.query, &settings.selection, weight);
        let overview = Overview {
            rows: Vec::new(),
            shown: Vec::new(),
            sort: SortBy::Own,
            list: List::default(),
            is_visible: true,
            follows: false,
        };
        let mut app = Self {
            focus: Focus::new(&calls, None),
            labels: Vec::new(),
            settings,
            profile,
            heat,
            weight,
            calls,
            overview,
            past: Vec::new(),
            view: View::default(),
            place: Place::default(),
            filter: String::new(),
            prompt: None,
            message: None,
            has_mini_flame: true,
            anchor: Anchor::Left,
            libraries_are_one: false,
            shows_help: false,
            help: List::default(),
            shows_source: false,
            source: None,
            groups: crate::groups::Groups::default(),
            changes: crate::changes::Changes::default(),
            since,
            compared,
            time: crate::time::TimeViews::default(),
            flame_width: 0,
            areas: crate::draw::Areas::default(),
            is_done: false,
        };
        app.name_rows();
        app.refill(None);
        app
    }

    /// Whether the user has ended it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Shows another state of the same profile, such as a file that has grown, and its changes since an earlier profile. The
    /// focus, open nodes and cursors stay.
    pub fn replace(&mut self, profile: Profile, heat: HeatMap, diff: Option<DiffView>) {
        let whereabouts = self.whereabouts();
        self.profile = profile;
        if !self.profile.weights().contains(&self.weight) {
            self.weight = self.profile.default_weight();
        }
        self.heat = heat;
        self.since = diff.as_ref().map(crate::since::Since::new);
        self.settings.diff = diff;
        self.recount(whereabouts.focus.clone());
        self.return_to(&whereabouts);
    }

    /// Shows a message in the status line until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.message = Some(printable(message.into().as_bytes()));
    }

    pub(crate) fn focus_name(&self) -> Option<Arc<FrameName>> {
        self.focus.frame.map(|frame| self.calls.frame(frame).clone())
    }

    /// Recounts everything after the shape of stacks or the profile has changed.
    pub(crate) fn recount(&mut self, focus: Option<Arc<FrameName>>) {
        let mut query = self.settings.query.clone();
        if self.libraries_are_one {
            query.collapse.extend(self.settings.libraries.iter().cloned());
        }
        self.calls = Calls::new(&self.profile, &query, &self.settings.selection, self.weight);
        self.name_rows();
        self.refill(focus);
    }

    fn name_rows(&mut self) {
        let label = |frame| printable(&self.calls.frame(frame).text(Paths::Short));
        self.labels = (0..self.calls.frame_count()).map(label).collect();
    }

    /// Reweighs everything after other samples were selected.
    pub(crate) fn reweigh(&mut self) {
        let focus = self.focus_name();
        self.calls.weigh(&self.profile, &self.settings.selection, self.weight);
        self.refill(focus);
    }

    /// Rebuilds everything that is derived from the calls.
    fn refill(&mut self, focus: Option<Arc<FrameName>>) {
        self.overview.rows = self.calls.top(self.overview.sort);
        self.groups.forget();
        self.time.forget();
        let frame = focus.and_then(|name| self.row_of(&name));
        self.set_focus(frame);
    }

    fn set_focus(&mut self, frame: Option<usize>) {
        self.focus = Focus::new(&self.calls, frame);
        if frame.is_none() && self.place == Place::Above {
            // Nothing calls the whole profile, so there is no pane of callers.
            self.place = Place::Body;
        }
        self.refresh();
    }

    /// The row of that name, or of the same function if lines are now split differently.
    pub(crate) fn row_of(&self, name: &FrameName) -> Option<usize> {
        let same = || {
            let of_function = |row: &&TopRow| self.calls.frame(row.frame).function == name.function;
            self.overview.rows.iter().filter(of_function).max_by_key(|row| row.total).map(|row| row.frame)
        };
        self.calls.find(name).or_else(same)
    }

    /// Recomputes the rows shown after the filter or the open nodes have changed.
    pub(crate) fn refresh(&mut self) {
        let Self { labels, filter, overview, .. } = self;
        let needle = filter.to_lowercase();
        let wanted = |frame: usize| needle.is_empty() || labels[frame].to_lowercase().contains(&needle);
        let rows = (0..overview.rows.len()).filter(|&row| wanted(overview.rows[row].frame));
        overview.shown = rows.collect();
        self.focus.refresh(&self.calls, wanted);
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
        match (self.place, self.view) {
            (Place::Overview, _) => self.overview.current(),
            (Place::Above, _) => self.focus.above.current(),
            (Place::Body, View::Panes) => self.focus.below.current(),
            (Place::Body, View::Callees) => {
                self.focus.callees.current().map(|node| self.focus.callees.node(node).frame)
            }
            (Place::Body, View::Callers) => {
                self.focus.callers.current().map(|node| self.focus.callers.node(node).frame)
            }
            (Place::Body, View::Flame) => self.flame_current(),
            (Place::Body, View::Timeline | View::HeatMap | View::Groups) => self.focus.frame,
            (Place::Body, View::Changes) => self.changed_frame(),
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
            Lines::Apart => Lines::Together,
            Lines::Together => Lines::Apart,
        };
        let focus = self.focus_name();
        self.recount(focus);
    }

    /// Reads the source of the row under the cursor, if sources are shown.
    pub(crate) fn read_source(&mut self, host: &mut dyn Host) {
        if !self.shows_source {
            return;
        }
        let name = self.current().or(self.focus.frame).map(|frame| self.calls.frame(frame).clone());
        self.source = name.map(|name| SourceView::of(&name, self.source.take(), host));
    }
}
