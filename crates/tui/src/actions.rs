//! Handling of keys and the mouse.

use borehole_analysis::{Opcodes, Recursion, Rows, SortBy, StackSamples};

use crate::amount::{name, with_unit};
use crate::app::{App, Place, PromptKind, View};
use crate::host::{Host, Stack};
use crate::input::{Button, Input};
use crate::keymap::Action;
use crate::list::{LINES_OF_WHEEL, Step};
use crate::prompt::{Prompt, Typed};
use crate::text::Anchor;

impl App {
    /// Handles an input.
    pub fn handle(&mut self, input: &Input, host: &mut dyn Host) {
        self.message = None;
        match input {
            Input::Key(key) if self.prompt.is_some() => self.type_key(key, host),
            Input::Key(key) => {
                if let Some(action) = self.settings.keymap.action(key) {
                    self.act(action, host);
                }
            }
            Input::Mouse { button, column, row } => self.point(*button, *column, *row, host),
        }
        self.fill();
        self.read_source(host);
    }

    /// Computes the data that the view needs and does not have.
    pub(crate) fn fill(&mut self) {
        match self.view {
            View::Groups => self.fill_groups(),
            View::Timeline | View::HeatMap => self.fill_timeline(),
            _ => {}
        }
    }

    fn act(&mut self, action: Action, host: &mut dyn Host) {
        if self.shows_help {
            return self.act_in_help(action);
        }
        if let Some(step) = step_of(action) {
            return self.go(step);
        }
        match action {
            Action::Left => self.sideways(false),
            Action::Right => self.sideways(true),
            Action::NextPane => self.turn(true),
            Action::PreviousPane => self.turn(false),
            Action::Focus => self.enter(),
            Action::Undo => self.undo(),
            Action::FoldAll => self.fold_subtree(false),
            Action::UnfoldAll => self.fold_subtree(true),
            Action::Copy => self.copy(host),
            Action::Clear => self.clear(),
            Action::Help => self.shows_help = true,
            Action::Quit => self.is_done = true,
            _ => self.set(action),
        }
    }

    /// Handles actions that change the view and its options.
    fn set(&mut self, action: Action) {
        match action {
            Action::Panes => self.show(View::Panes),
            Action::Flame => self.show(View::Flame),
            Action::Callees => self.show(View::Callees),
            Action::Callers => self.show(View::Callers),
            Action::Timeline => self.show(View::Timeline),
            Action::HeatMap => self.show(View::HeatMap),
            Action::Groups => self.show(View::Groups),
            Action::Changes if self.settings.diff.is_none() => {
                self.say("nothing to compare with: --baseline FILE");
            }
            Action::Changes => self.show(View::Changes),
            Action::BySelf => self.sort(SortBy::Own),
            Action::ByTotal => self.sort(SortBy::Total),
            Action::ToOverview => self.enter_overview(),
            Action::Overview => {
                self.overview.is_visible = !self.overview.is_visible;
                if !self.overview.is_visible && self.place == Place::Overview {
                    self.place = Place::Body;
                }
            }
            Action::Follow => self.follow(),
            Action::MiniFlame => self.has_mini_flame = !self.has_mini_flame,
            Action::Align => {
                self.anchor = if self.anchor == Anchor::Left { Anchor::Right } else { Anchor::Left };
            }
            Action::Filter => self.ask(PromptKind::Filter, self.filter.clone()),
            Action::Match => {
                let pattern = self.settings.query.keep.as_ref();
                self.ask(
                    PromptKind::Match,
                    pattern.map_or_else(String::new, |found| found.as_str().to_owned()),
                );
            }
            Action::Export => self.ask(PromptKind::Export, "flame.svg".to_owned()),
            Action::Source => self.shows_source = !self.shows_source,
            _ => self.reshape(action),
        }
    }

    /// Handles actions after which everything is recounted.
    fn reshape(&mut self, action: Action) {
        let query = &mut self.settings.query;
        match action {
            Action::NoLine => return self.toggle_lines(),
            Action::Opcodes => {
                query.opcodes =
                    if query.opcodes == Opcodes::Apart { Opcodes::Together } else { Opcodes::Apart };
            }
            Action::Rows => {
                query.rows = match query.rows {
                    Rows::Frames => Rows::Files,
                    Rows::Files => Rows::Classes,
                    Rows::Classes => Rows::Namespaces,
                    Rows::Namespaces => Rows::Frames,
                };
            }
            Action::Recursion => {
                query.recursion =
                    if query.recursion == Recursion::Kept { Recursion::Folded } else { Recursion::Kept };
            }
            Action::Libraries => self.libraries_are_one = !self.libraries_are_one,
            Action::Weight => return self.next_weight(),
            _ => return,
        }
        let focus = self.focus_name();
        self.recount(focus);
    }

    fn next_weight(&mut self) {
        let weights = self.profile.weights();
        let place = weights.iter().position(|&weight| weight == self.weight).unwrap_or(0);
        self.weight = weights.get((place + 1) % weights.len().max(1)).copied().unwrap_or_default();
        match self.profile.summary() {
            summary if summary.is_valued => self.say("--value shows other values"),
            summary if summary.time_ns.is_none() => {
                self.say("the profile does not say how long a sample stands for");
            }
            _ => {}
        }
        self.reweigh();
    }

    fn act_in_help(&mut self, action: Action) {
        match action {
            Action::Help | Action::Clear => self.shows_help = false,
            Action::Quit => self.is_done = true,
            _ => {
                if let Some(step) = step_of(action) {
                    self.help.scroll(step);
                }
            }
        }
    }

    fn show(&mut self, view: View) {
        self.view = view;
        self.place = match self.place {
            Place::Above if view != View::Panes => Place::Body,
            Place::Overview
                if matches!(view, View::Timeline | View::HeatMap | View::Groups | View::Changes) =>
            {
                Place::Body
            }
            place => place,
        };
    }

    fn sort(&mut self, sort: SortBy) {
        self.overview.sort = sort;
        self.overview.rows = self.calls.top(sort);
        self.overview.list = crate::list::List::default();
        self.refresh();
    }

    fn enter_overview(&mut self) {
        self.overview.is_visible = true;
        self.place = Place::Overview;
    }

    fn follow(&mut self) {
        self.overview.follows = !self.overview.follows;
        self.say(if self.overview.follows { "following the overview" } else { "not following" });
        self.follow_overview();
    }

    fn follow_overview(&mut self) {
        let current = self.overview.current();
        if self.overview.follows && self.place == Place::Overview && current != self.focus.frame {
            self.focus_on(current);
        }
    }

    fn go(&mut self, step: Step) {
        match (self.place, self.view) {
            (Place::Overview, _) => {
                self.overview.list.go(step, self.overview.shown.len());
                self.follow_overview();
            }
            (Place::Above, _) => self.focus.above.list.go(step, self.focus.above.len()),
            (Place::Body, View::Panes) => self.focus.below.list.go(step, self.focus.below.len()),
            (Place::Body, View::Callees) => self.focus.callees.go(step),
            (Place::Body, View::Callers) => self.focus.callers.go(step),
            (Place::Body, View::Flame) => self.go_in_flame(step),
            (Place::Body, View::Timeline) => {
                let timeline = self.time.timeline.as_ref().and_then(Option::as_ref);
                let rows = timeline.map_or(0, |timeline| timeline.rows.len());
                self.time.list.go(step, rows);
            }
            (Place::Body, View::HeatMap) => self.go_in_time(step),
            (Place::Body, View::Changes) => self.changes.list.go(step, self.changes.shown.len()),
            (Place::Body, View::Groups) => {
                let rows = self.groups.rows.as_ref().map_or(0, Vec::len);
                self.groups.list.go(step, rows);
            }
        }
    }

    /// Moves left or right: between panes, along a flame graph or time; or folds and unfolds.
    fn sideways(&mut self, right: bool) {
        match (self.place, self.view) {
            (Place::Body, View::Callees | View::Callers) => self.fold(right),
            (Place::Body, View::Flame) => self.sideways_in_flame(right),
            (Place::Body, View::Timeline | View::HeatMap) => {
                self.go_in_time(if right { Step::Down } else { Step::Up });
            }
            (Place::Body, View::Groups) => self.turn_groups(right),
            (_, View::Panes) if right || self.focus.frame.is_none() => self.place = Place::Body,
            (_, View::Panes) => self.place = Place::Above,
            (_, _) => self.place = if right { Place::Body } else { self.place },
        }
    }

    fn fold(&mut self, open: bool) {
        let outline =
            if self.view == View::Callees { &mut self.focus.callees } else { &mut self.focus.callers };
        if open {
            outline.unfold();
        } else {
            outline.fold();
        }
        self.refresh();
    }

    fn fold_subtree(&mut self, open: bool) {
        let outline = match self.view {
            View::Callees => &mut self.focus.callees,
            View::Callers => &mut self.focus.callers,
            _ => return,
        };
        if !open {
            outline.fold_all(&self.calls);
        } else if !outline.unfold_all(&self.calls) {
            self.say("unfolded as much as anybody reads; again on a row unfolds more");
        }
        self.refresh();
    }

    fn turn(&mut self, forwards: bool) {
        let mut places = Vec::new();
        if self.overview.is_visible {
            places.push(Place::Overview);
        }
        if self.view == View::Panes && self.focus.frame.is_some() {
            places.push(Place::Above);
        }
        places.push(Place::Body);
        let now = places.iter().position(|&place| place == self.place).unwrap_or(0);
        let step = if forwards { 1 } else { places.len() - 1 };
        self.place = places[(now + step) % places.len()];
    }

    fn enter(&mut self) {
        match (self.place, self.view) {
            (Place::Body, View::Timeline | View::HeatMap) => self.select_time(),
            (Place::Body, View::Groups) => self.select_group(),
            _ => {
                if let Some(frame) = self.current() {
                    self.focus_on(Some(frame));
                }
            }
        }
    }

    /// Removes what narrows the view, the latest kind first.
    fn clear(&mut self) {
        let selection = &mut self.settings.selection;
        if self.time.anchor.take().is_some() {
            self.say("no selection");
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.refresh();
        } else if selection.time.is_some() {
            self.select_range(None);
        } else if !(selection.threads.is_empty()
            && selection.processes.is_empty()
            && selection.interpreters.is_empty()
            && selection.labels.is_empty())
        {
            selection.threads.clear();
            selection.processes.clear();
            selection.interpreters.clear();
            selection.labels.clear();
            self.reweigh();
        } else if self.settings.query.keep.is_some() {
            self.match_samples("");
        } else if self.focus.frame.is_some() {
            self.focus_on(None);
        }
    }

    fn copy(&mut self, host: &mut dyn Host) {
        match self.current().or(self.focus.frame) {
            Some(frame) => {
                let text = self.calls.frame(frame).text(borehole_analysis::Paths::Full);
                host.copy(&String::from_utf8_lossy(&text));
                let label = self.labels[frame].clone();
                self.say(format!("copied {label}"));
            }
            None => self.say("nothing to copy"),
        }
    }

    fn ask(&mut self, kind: PromptKind, text: String) {
        self.prompt = Some(Prompt { kind, text });
    }

    fn type_key(&mut self, key: &[u8], host: &mut dyn Host) {
        let Some(mut prompt) = self.prompt.take() else { return };
        match prompt.take(key) {
            Typed::Whole => return self.answer(&prompt, host),
            Typed::Nothing => {
                if prompt.kind == PromptKind::Filter {
                    self.filter.clear();
                    self.refresh();
                }
                return;
            }
            Typed::More => {}
        }
        if prompt.kind == PromptKind::Filter {
            self.filter.clone_from(&prompt.text);
            self.refresh();
        }
        self.prompt = Some(prompt);
    }

    fn answer(&mut self, prompt: &Prompt<PromptKind>, host: &mut dyn Host) {
        match prompt.kind {
            PromptKind::Filter => {}
            PromptKind::Match => self.match_samples(&prompt.text),
            PromptKind::Export if prompt.text.is_empty() => {}
            PromptKind::Export => {
                let stacks = self.stacks();
                let sum = stacks.iter().fold(0_i64, |sum, stack| sum.saturating_add(stack.sum));
                let summary = self.profile.summary();
                let values = Some(&summary.value_type).filter(|_| summary.is_valued);
                let amount = match values {
                    Some(value_type) => format!("{} {}", with_unit(sum, &value_type.unit), name(value_type)),
                    None => format!("{} samples", with_unit(sum, "count")),
                };
                let done = host.export(&prompt.text, &stacks, values).map(|lost| {
                    let lost = if lost.is_empty() { lost } else { format!("; {lost}") };
                    format!("wrote {}: {amount}{lost}", prompt.text)
                });
                self.say(done.unwrap_or_else(|error| error));
            }
        }
    }

    /// The stacks behind the view: all stacks of the focus, from it on if the view shows what it called.
    fn stacks(&self) -> Vec<Stack> {
        let focus = self.focus.frame;
        let found = self.calls.samples(&self.profile, &self.settings.selection);
        let stacks = found.filter_map(|StackSamples { mut path, sum, period_ns }| {
            if let Some(focus) = focus {
                let at = path.iter().position(|&frame| frame == focus)?;
                if self.view != View::Callers {
                    path.drain(..at);
                }
            }
            let frames = path.into_iter().map(|frame| self.calls.frame(frame).clone()).collect();
            Some(Stack { frames, sum, period_ns })
        });
        stacks.collect()
    }

    fn point(&mut self, button: Button, column: u16, row: u16, host: &mut dyn Host) {
        if self.shows_help {
            return self.help.turn(button);
        }
        let Some((place, line)) = self.areas.at(column, row) else { return };
        match button {
            Button::WheelUp | Button::WheelDown => {
                self.place = place;
                let step = if button == Button::WheelUp { Step::Up } else { Step::Down };
                (0..LINES_OF_WHEEL).for_each(|_| self.go(step));
            }
            Button::Press => {
                let had_cursor = std::mem::replace(&mut self.place, place) == place;
                if self.click(line, usize::from(column)) && had_cursor {
                    self.act(Action::Focus, host);
                }
            }
        }
    }

    /// Moves the cursor to a line of the pane that has it. Returns whether it was there already.
    fn click(&mut self, line: usize, column: usize) -> bool {
        let (list, len) = match (self.place, self.view) {
            (Place::Overview, _) => (&mut self.overview.list, self.overview.shown.len()),
            (Place::Above, _) => {
                let len = self.focus.above.len();
                (&mut self.focus.above.list, len)
            }
            (Place::Body, View::Panes) => {
                let len = self.focus.below.len();
                (&mut self.focus.below.list, len)
            }
            (Place::Body, View::Callees) => {
                let len = self.focus.callees.rows().len();
                (&mut self.focus.callees.list, len)
            }
            (Place::Body, View::Callers) => {
                let len = self.focus.callers.rows().len();
                (&mut self.focus.callers.list, len)
            }
            (Place::Body, View::Groups) => {
                (&mut self.groups.list, self.groups.rows.as_ref().map_or(0, Vec::len))
            }
            (Place::Body, View::Changes) => (&mut self.changes.list, self.changes.shown.len()),
            (Place::Body, View::Flame) => return self.click_in_flame(line, column),
            (Place::Body, View::Timeline | View::HeatMap) => return self.click_in_time(column),
        };
        let Some(row) = list.at_line(line, len) else { return false };
        let was_there = std::mem::replace(&mut list.cursor, row) == row;
        self.follow_overview();
        was_there
    }
}

const fn step_of(action: Action) -> Option<Step> {
    Some(match action {
        Action::Up => Step::Up,
        Action::Down => Step::Down,
        Action::PageUp => Step::PageUp,
        Action::PageDown => Step::PageDown,
        Action::Home => Step::Home,
        Action::End => Step::End,
        _ => return None,
    })
}
