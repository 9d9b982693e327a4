//! Handling of keys and the mouse.

mod changes;
mod groups;
mod time;

use borehole_analysis::{OpcodeRows, Recursion, RowKind, SortBy, StackSamples};
use borehole_text::{KeptEnd, with_unit};

use crate::amount::name;
use crate::app::{App, ProfilePrompt, ProfileView, ScreenPart};
use crate::controls::{Request, step_of};
use crate::host::{Host, WeightedStack};
use crate::input::{Button, TerminalInput};
use crate::keymap::Action;
use crate::list::{CursorStep, LINES_OF_WHEEL};
use crate::prompt::{Prompt, Typed};

impl App {
    /// Handles an input.
    pub fn handle(&mut self, input: &TerminalInput, host: &mut dyn Host) {
        match self.controls.take(input, &self.settings.keymap) {
            Some(Request::Act(action)) => self.act(action, host),
            Some(Request::Typed(prompt, typed)) => self.type_key(&prompt, typed, host),
            Some(Request::Point(button, column, row)) => self.point(button, column, row, host),
            None => {}
        }
        self.fill();
        self.read_source(host);
    }

    /// Computes the data that the view needs and does not have.
    pub(crate) fn fill(&mut self) {
        match self.screen.view {
            ProfileView::Groups => self.fill_groups(),
            ProfileView::Timeline | ProfileView::HeatMap => self.fill_timeline(),
            _ => {}
        }
    }

    fn act(&mut self, action: Action, host: &mut dyn Host) {
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
            _ => self.set(action),
        }
    }

    /// Handles actions that change the view and its options.
    fn set(&mut self, action: Action) {
        match action {
            Action::Panes => self.show(ProfileView::Panes),
            Action::Flame => self.show(ProfileView::Flame),
            Action::Callees => self.show(ProfileView::Callees),
            Action::Callers => self.show(ProfileView::Callers),
            Action::Timeline => self.show(ProfileView::Timeline),
            Action::HeatMap => self.show(ProfileView::HeatMap),
            Action::Groups => self.show(ProfileView::Groups),
            Action::Changes if self.settings.diff.is_none() => {
                self.say("no baseline: start with --baseline FILE to see changes");
            }
            Action::Changes => self.show(ProfileView::Changes),
            Action::BySelf => self.sort(SortBy::SelfWeight),
            Action::ByTotal => self.sort(SortBy::TotalWeight),
            Action::ToOverview => self.enter_overview(),
            Action::Overview => {
                self.overview.is_visible = !self.overview.is_visible;
                if !self.overview.is_visible && self.screen.part == ScreenPart::Overview {
                    self.screen.part = ScreenPart::Body;
                }
            }
            Action::Follow => self.follow(),
            Action::MiniFlame => self.screen.has_mini_flame = !self.screen.has_mini_flame,
            Action::Align => {
                self.screen.anchor =
                    if self.screen.anchor == KeptEnd::Left { KeptEnd::Right } else { KeptEnd::Left };
            }
            Action::Filter => self.controls.ask(ProfilePrompt::Filter, self.filter.clone()),
            Action::Match => {
                let pattern = self.settings.query.keep.as_ref();
                self.controls.ask(
                    ProfilePrompt::Match,
                    pattern.map_or_else(String::new, |found| found.as_str().to_owned()),
                );
            }
            Action::Export => self.controls.ask(ProfilePrompt::Export, "flame.svg".to_owned()),
            Action::Source => self.source.is_shown = !self.source.is_shown,
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
                    if query.opcodes == OpcodeRows::Apart { OpcodeRows::Together } else { OpcodeRows::Apart };
            }
            Action::Rows => {
                query.rows = match query.rows {
                    RowKind::Frames => RowKind::Files,
                    RowKind::Files => RowKind::Classes,
                    RowKind::Classes => RowKind::Namespaces,
                    RowKind::Namespaces => RowKind::Frames,
                };
            }
            Action::Recursion => {
                query.recursion =
                    if query.recursion == Recursion::Kept { Recursion::Folded } else { Recursion::Kept };
            }
            Action::Libraries => self.data.libraries_are_one = !self.data.libraries_are_one,
            Action::Weight => return self.next_weight(),
            _ => return,
        }
        let focus = self.focus_name();
        self.recount(focus);
    }

    fn next_weight(&mut self) {
        let weights = self.data.profile.weights();
        let place = weights.iter().position(|&weight| weight == self.data.weight).unwrap_or(0);
        self.data.weight = weights.get((place + 1) % weights.len().max(1)).copied().unwrap_or_default();
        match self.data.profile.summary() {
            summary if summary.is_valued => self.say("start with --value NAME to see another value type"),
            summary if summary.time_ns.is_none() => {
                self.say("this profile has no sampling period, so there are no times");
            }
            _ => {}
        }
        self.reweigh();
    }

    fn show(&mut self, view: ProfileView) {
        self.screen.view = view;
        self.screen.part = match self.screen.part {
            ScreenPart::Above if view != ProfileView::Panes => ScreenPart::Body,
            ScreenPart::Overview
                if matches!(
                    view,
                    ProfileView::Timeline | ProfileView::HeatMap | ProfileView::Groups | ProfileView::Changes
                ) =>
            {
                ScreenPart::Body
            }
            place => place,
        };
    }

    fn sort(&mut self, sort: SortBy) {
        self.overview.sort = sort;
        self.overview.rows = self.data.calls.top(sort);
        self.overview.list = crate::list::ScrollList::default();
        self.refresh();
    }

    fn enter_overview(&mut self) {
        self.overview.is_visible = true;
        self.screen.part = ScreenPart::Overview;
    }

    fn follow(&mut self) {
        self.overview.follows = !self.overview.follows;
        self.say(if self.overview.follows {
            "the focus follows the overview"
        } else {
            "the focus no longer follows the overview"
        });
        self.follow_overview();
    }

    fn follow_overview(&mut self) {
        let current = self.overview.current();
        if self.overview.follows && self.screen.part == ScreenPart::Overview && current != self.focus.frame {
            self.focus_on(current);
        }
    }

    fn go(&mut self, step: CursorStep) {
        match (self.screen.part, self.screen.view) {
            (ScreenPart::Overview, _) => {
                self.overview.list.go(step, self.overview.shown.len());
                self.follow_overview();
            }
            (ScreenPart::Above, _) => self.focus.above.list.go(step, self.focus.above.len()),
            (ScreenPart::Body, ProfileView::Panes) => self.focus.below.list.go(step, self.focus.below.len()),
            (ScreenPart::Body, ProfileView::Callees) => self.focus.callees.go(step),
            (ScreenPart::Body, ProfileView::Callers) => self.focus.callers.go(step),
            (ScreenPart::Body, ProfileView::Flame) => self.go_in_flame(step),
            (ScreenPart::Body, ProfileView::Timeline) => {
                let timeline = self.time.timeline.as_ref().and_then(Option::as_ref);
                let rows = timeline.map_or(0, |timeline| timeline.rows.len());
                self.time.list.go(step, rows);
            }
            (ScreenPart::Body, ProfileView::HeatMap) => self.go_in_time(step),
            (ScreenPart::Body, ProfileView::Changes) => self.changes.list.go(step, self.changes.shown.len()),
            (ScreenPart::Body, ProfileView::Groups) => {
                let rows = self.groups.rows.as_ref().map_or(0, Vec::len);
                self.groups.list.go(step, rows);
            }
        }
    }

    /// Moves left or right: between panes, along a flame graph or time; or folds and unfolds.
    fn sideways(&mut self, right: bool) {
        match (self.screen.part, self.screen.view) {
            (ScreenPart::Body, ProfileView::Callees | ProfileView::Callers) => self.fold(right),
            (ScreenPart::Body, ProfileView::Flame) => self.sideways_in_flame(right),
            (ScreenPart::Body, ProfileView::Timeline | ProfileView::HeatMap) => {
                self.go_in_time(if right { CursorStep::Down } else { CursorStep::Up });
            }
            (ScreenPart::Body, ProfileView::Groups) => self.turn_groups(right),
            (_, ProfileView::Panes) if right || self.focus.frame.is_none() => {
                self.screen.part = ScreenPart::Body;
            }
            (_, ProfileView::Panes) => self.screen.part = ScreenPart::Above,
            (_, _) => self.screen.part = if right { ScreenPart::Body } else { self.screen.part },
        }
    }

    fn fold(&mut self, open: bool) {
        let outline = if self.screen.view == ProfileView::Callees {
            &mut self.focus.callees
        } else {
            &mut self.focus.callers
        };
        if open {
            outline.unfold();
        } else {
            outline.fold();
        }
        self.refresh();
    }

    fn fold_subtree(&mut self, open: bool) {
        let outline = match self.screen.view {
            ProfileView::Callees => &mut self.focus.callees,
            ProfileView::Callers => &mut self.focus.callers,
            _ => return,
        };
        if !open {
            outline.fold_all(&self.data.calls);
        } else if !outline.unfold_all(&self.data.calls) {
            self.say("unfolded the first 5,000 calls; press again on a row to unfold more");
        }
        self.refresh();
    }

    fn turn(&mut self, forwards: bool) {
        let mut places = Vec::new();
        if self.overview.is_visible {
            places.push(ScreenPart::Overview);
        }
        if self.screen.view == ProfileView::Panes && self.focus.frame.is_some() {
            places.push(ScreenPart::Above);
        }
        places.push(ScreenPart::Body);
        let now = places.iter().position(|&place| place == self.screen.part).unwrap_or(0);
        let step = if forwards { 1 } else { places.len() - 1 };
        self.screen.part = places[(now + step) % places.len()];
    }

    fn enter(&mut self) {
        match (self.screen.part, self.screen.view) {
            (ScreenPart::Body, ProfileView::Timeline | ProfileView::HeatMap) => self.select_time(),
            (ScreenPart::Body, ProfileView::Groups) => self.select_group(),
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
            self.say("selection cancelled");
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
                let text = self.data.calls.frame(frame).text(borehole_analysis::PathStyle::Full);
                host.copy(&String::from_utf8_lossy(&text));
                let label = self.data.labels[frame].clone();
                self.say(format!("copied {label}"));
            }
            None => self.say("nothing to copy"),
        }
    }

    fn type_key(&mut self, prompt: &Prompt<ProfilePrompt>, typed: Typed, host: &mut dyn Host) {
        match (prompt.kind, typed) {
            (ProfilePrompt::Filter, _) => {
                self.filter = prompt.filter(typed);
                self.refresh();
            }
            (_, Typed::Whole) => self.answer(prompt, host),
            _ => {}
        }
    }

    fn answer(&mut self, prompt: &Prompt<ProfilePrompt>, host: &mut dyn Host) {
        match prompt.kind {
            ProfilePrompt::Filter => {}
            ProfilePrompt::Match => self.match_samples(&prompt.text),
            ProfilePrompt::Export if prompt.text.is_empty() => {}
            ProfilePrompt::Export => {
                let stacks = self.stacks();
                let sum = stacks.iter().fold(0_i64, |sum, stack| sum.saturating_add(stack.sum));
                let summary = self.data.profile.summary();
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
    fn stacks(&self) -> Vec<WeightedStack> {
        let focus = self.focus.frame;
        let found = self.data.calls.samples(&self.data.profile, &self.settings.selection);
        let stacks = found.filter_map(|StackSamples { mut path, sum, period_ns }| {
            if let Some(focus) = focus {
                let at = path.iter().position(|&frame| frame == focus)?;
                if self.screen.view != ProfileView::Callers {
                    path.drain(..at);
                }
            }
            let frames = path.into_iter().map(|frame| self.data.calls.frame(frame).clone()).collect();
            Some(WeightedStack { frames, sum, period_ns })
        });
        stacks.collect()
    }

    fn point(&mut self, button: Button, column: u16, row: u16, host: &mut dyn Host) {
        let Some((place, line)) = self.screen.areas.at(column, row) else { return };
        match button {
            Button::WheelUp | Button::WheelDown => {
                self.screen.part = place;
                let step = if button == Button::WheelUp { CursorStep::Up } else { CursorStep::Down };
                (0..LINES_OF_WHEEL).for_each(|_| self.go(step));
            }
            Button::Press => {
                let had_cursor = std::mem::replace(&mut self.screen.part, place) == place;
                if self.click(line, usize::from(column)) && had_cursor {
                    self.act(Action::Focus, host);
                }
            }
        }
    }

    /// Moves the cursor to a line of the pane that has it. Returns whether it was there already.
    fn click(&mut self, line: usize, column: usize) -> bool {
        let (list, len) = match (self.screen.part, self.screen.view) {
            (ScreenPart::Overview, _) => (&mut self.overview.list, self.overview.shown.len()),
            (ScreenPart::Above, _) => {
                let len = self.focus.above.len();
                (&mut self.focus.above.list, len)
            }
            (ScreenPart::Body, ProfileView::Panes) => {
                let len = self.focus.below.len();
                (&mut self.focus.below.list, len)
            }
            (ScreenPart::Body, ProfileView::Callees) => {
                let len = self.focus.callees.rows().len();
                (&mut self.focus.callees.list, len)
            }
            (ScreenPart::Body, ProfileView::Callers) => {
                let len = self.focus.callers.rows().len();
                (&mut self.focus.callers.list, len)
            }
            (ScreenPart::Body, ProfileView::Groups) => {
                (&mut self.groups.list, self.groups.rows.as_ref().map_or(0, Vec::len))
            }
            (ScreenPart::Body, ProfileView::Changes) => (&mut self.changes.list, self.changes.shown.len()),
            (ScreenPart::Body, ProfileView::Flame) => return self.click_in_flame(line, column),
            (ScreenPart::Body, ProfileView::Timeline | ProfileView::HeatMap) => {
                return self.click_in_time(column);
            }
        };
        let Some(row) = list.at_line(line, len) else { return false };
        let was_there = std::mem::replace(&mut list.cursor, row) == row;
        self.follow_overview();
        was_there
    }
}
