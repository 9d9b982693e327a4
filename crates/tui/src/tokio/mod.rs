//! The explorer of Tokio traces: lanes of workers over time, and what is worth a look.

mod actions;
mod draw;
mod keymap;
mod lanes;
mod rows;

use borehole_analysis::tokio::TokioPage;
use ratatui::layout::Rect;

pub use keymap::{TokioAction, TokioKeymap};

use crate::controls::Controls;
use crate::list::ScrollList;
use crate::theme::Colours;
use lanes::{LanePolls, TimeRange};

/// The appearance and the controls of the explorer of Tokio traces.
#[derive(Clone, Debug, Default)]
pub struct TokioSettings {
    /// The text of the first line.
    pub title: String,
    /// The keys.
    pub keymap: TokioKeymap,
    /// The colours.
    pub colours: Colours,
    /// Whether the trace has samples that the explorer of profiles can show.
    pub has_samples: bool,
}

/// The list below the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokioList {
    #[default]
    Flags,
    Polls,
    Tasks,
    Spans,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokioPane {
    #[default]
    Lanes,
    List,
}

/// The purpose of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokioPrompt {
    Filter,
}

/// The explorer of a Tokio trace: what it shows, and how keys change it. It draws into cells and uses neither a terminal nor
/// files.
pub struct TokioApp {
    settings: TokioSettings,
    controls: Controls<TokioPrompt>,
    pages: Vec<TokioPage>,
    /// The page that is shown.
    shown: usize,
    polls: LanePolls,
    range: TimeRange,
    /// The ranges before.
    history: Vec<TimeRange>,
    /// The moment under the cursor.
    cursor_ns: i64,
    pane: TokioPane,
    lanes: ScrollList,
    kind: TokioList,
    list: ScrollList,
    /// The order of the list, by the row of its table; empty for lists in the order of their tables.
    order: Vec<usize>,
    /// The rows of the list that the filter leaves.
    rows: Vec<usize>,
    filter: String,
    /// The flag that was visited last.
    flag: Option<usize>,
    wants_samples: bool,
    areas: TokioAreas,
}

/// The areas of the screen that a mouse can point at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokioAreas {
    /// The cells of the lanes, without their labels.
    pub(crate) lanes: Rect,
    pub(crate) list: Rect,
}

impl TokioApp {
    /// Creates an explorer of the programs of a trace. Without any there is nothing to see.
    #[must_use]
    pub fn new(pages: Vec<TokioPage>, settings: TokioSettings) -> Self {
        let mut app = Self {
            settings,
            controls: Controls::default(),
            pages,
            shown: 0,
            polls: LanePolls::default(),
            range: TimeRange { start_ns: 0, end_ns: 1 },
            history: Vec::new(),
            cursor_ns: 0,
            pane: TokioPane::default(),
            lanes: ScrollList::default(),
            kind: TokioList::default(),
            list: ScrollList::default(),
            order: Vec::new(),
            rows: Vec::new(),
            filter: String::new(),
            flag: None,
            wants_samples: false,
            areas: TokioAreas::default(),
        };
        app.show_program(0);
        app
    }

    /// Whether the user has ended it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.controls.is_done
    }

    /// Whether the user asks for the samples.
    #[must_use]
    pub const fn asks_for_samples(&self) -> bool {
        self.wants_samples
    }

    /// Whether the user asks for the samples; from then on no longer.
    pub const fn wants_samples(&mut self) -> bool {
        std::mem::replace(&mut self.wants_samples, false)
    }

    /// Shows a message in the status line until the next key.
    pub fn say(&mut self, message: impl Into<String>) {
        self.controls.say(message);
    }

    /// Shows another state of the same trace, such as a file that has grown. The time that is shown stays, unless all was shown.
    pub fn replace(&mut self, pages: Vec<TokioPage>) {
        let (before, range) = (TimeRange::of(self.page()), self.range);
        self.pages = pages;
        self.shown = self.shown.min(self.pages.len().saturating_sub(1));
        let page = self.page();
        let (all, polls) = (TimeRange::of(page), LanePolls::of(page));
        self.polls = polls;
        self.range = if range == before { all } else { range };
        self.order = self.order_of();
        self.filter_rows();
    }

    fn show_program(&mut self, program: usize) {
        self.shown = program;
        let page = self.page();
        let (range, polls) = (TimeRange::of(page), LanePolls::of(page));
        (self.range, self.polls) = (range, polls);
        self.cursor_ns = range.start_ns;
        self.history.clear();
        self.flag = None;
        self.lanes = ScrollList::default();
        self.show_list(TokioList::Flags);
    }

    fn page(&self) -> &TokioPage {
        static NOTHING: std::sync::LazyLock<TokioPage> = std::sync::LazyLock::new(TokioPage::default);
        self.pages.get(self.shown).unwrap_or(&NOTHING)
    }

    fn show_list(&mut self, kind: TokioList) {
        self.kind = kind;
        self.order = self.order_of();
        self.list = ScrollList::default();
        self.filter_rows();
    }

    fn filter_rows(&mut self) {
        let wanted = self.filter.to_lowercase();
        let rows = 0..self.row_count();
        let is_wanted =
            |&row: &usize| wanted.is_empty() || self.row_text(row).to_lowercase().contains(&wanted);
        self.rows = rows.filter(is_wanted).collect();
    }
}
