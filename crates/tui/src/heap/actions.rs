//! Handling of keys and the mouse in the heap explorer.

use borehole_heap::NodeId;
use borehole_heap::views::{Search, Sought};

use super::node::{NodePanes, Pane};
use super::tree::{Direction, Tree};
use super::{HeapAction, HeapApp, Place, PromptKind, View, Visited};
use crate::amount::grouped;
use crate::host::Clipboard;
use crate::input::{Button, Input};
use crate::list::{LINES_OF_WHEEL, Step};
use crate::prompt::{Prompt, Typed};
use crate::text::printable;

/// The longest path shown, in nodes.
const LONGEST_WAY: usize = 1_000;

/// The amount of search work between checks for keys.
const WORK: usize = 20_000;

/// The number of places remembered to go back to.
const MOST_PAST: usize = 1_000;

/// The number of remembered places that keep their trees: unfolded trees of large heaps take memory.
const MOST_TREES: usize = 50;

impl HeapApp<'_> {
    /// Handles an input.
    pub fn handle(&mut self, input: &Input, clipboard: &mut dyn Clipboard) {
        self.message = None;
        match input {
            Input::Key(key) if self.prompt.is_some() => self.type_key(key),
            Input::Key(key) => {
                if let Some(action) = self.settings.keymap.action(key) {
                    self.act(action, clipboard);
                }
            }
            Input::Mouse { button, column, row } => self.point(*button, *column, *row),
        }
    }

    /// Continues a search for a while.
    pub fn work(&mut self) {
        let Some(search) = self.search.as_mut().filter(|_| self.is_searching) else { return };
        self.is_searching = search.advance(&self.known.heap, WORK);
        if self.place.view == View::Found {
            self.filter_more();
        }
        if !self.is_searching {
            self.end_search();
        }
    }

    /// Ends a search. For an address, goes to the last node found, which lies inside the others.
    fn end_search(&mut self) {
        let Some(search) = &self.search else { return };
        let found = search.found().last().copied();
        match found.filter(|_| search.is_for_address()) {
            Some(node) => self.visit(View::Node, Some(node)),
            None if search.count() == 0 => self.say(format!("nothing found: {}", self.sought)),
            None => {}
        }
    }

    fn act(&mut self, action: HeapAction, clipboard: &mut dyn Clipboard) {
        if self.shows_help {
            return self.act_in_help(action);
        }
        if let Some(step) = step_of(action) {
            return self.go(step);
        }
        match action {
            HeapAction::Left => self.sideways(false),
            HeapAction::Right => self.sideways(true),
            HeapAction::NextPane | HeapAction::PreviousPane => {
                if let Some(panes) = &mut self.panes {
                    panes.turn();
                }
            }
            HeapAction::Focus => self.enter(),
            HeapAction::Undo => self.travel(false),
            HeapAction::Redo => self.travel(true),
            HeapAction::FoldAll | HeapAction::UnfoldAll => self.fold_subtree(action == HeapAction::UnfoldAll),
            HeapAction::Copy => self.copy(clipboard),
            HeapAction::Bookmark => self.bookmark(),
            HeapAction::Sort => self.sort(),
            HeapAction::Clear => self.clear(),
            HeapAction::Help => self.shows_help = true,
            HeapAction::Quit => self.is_done = true,
            _ => self.show(action),
        }
    }

    /// Handles actions that show something else or open a prompt.
    fn show(&mut self, action: HeapAction) {
        let node = self.subject();
        match action {
            HeapAction::Classes => self.visit(View::Classes, self.place.node),
            HeapAction::Types => self.visit(View::Types, self.place.node),
            HeapAction::Roots => self.visit(View::Roots, self.place.node),
            HeapAction::Largest => self.visit(View::Largest, self.place.node),
            HeapAction::Cycles => self.visit(View::Cycles, self.place.node),
            HeapAction::Found if self.search.is_none() => self.say("nothing was searched for: F searches"),
            HeapAction::Found => self.visit(View::Found, self.place.node),
            HeapAction::Bookmarks => self.visit(View::Bookmarks, self.place.node),
            HeapAction::Held => self.visit(View::Held, self.tree_top()),
            HeapAction::Holders => self.visit_node(View::Holders, node),
            HeapAction::Way => self.visit_node(View::Way, node),
            HeapAction::Panes => self.visit_node(View::Node, node),
            HeapAction::Filter => self.ask(PromptKind::Filter, self.filter.clone()),
            HeapAction::Search => self.ask(PromptKind::Search, String::new()),
            HeapAction::GoTo => self.ask(PromptKind::GoTo, String::new()),
            _ => {}
        }
    }

    /// The root of the tree of held nodes: the node under the cursor, or the whole heap if there is none or the list is of sums.
    fn tree_top(&self) -> Option<NodeId> {
        match self.place.view {
            View::Classes | View::Types => None,
            _ => self.subject(),
        }
    }

    /// The node that keys apply to: the one in view, or the one under the cursor.
    fn subject(&self) -> Option<NodeId> {
        if self.place.view == View::Node { self.place.node } else { self.current().or(self.place.node) }
    }

    fn visit_node(&mut self, view: View, node: Option<NodeId>) {
        match node {
            Some(_) => self.visit(view, node),
            None => self.say("no node under the cursor"),
        }
    }

    /// Shows a view, and remembers the previous one.
    pub(super) fn visit(&mut self, view: View, node: Option<NodeId>) {
        if (view, node) == (self.place.view, self.place.node) {
            return;
        }
        let here = self.leave();
        self.past.push(here);
        if self.past.len() > MOST_PAST {
            self.past.remove(0);
        }
        if let Some(long_past) = self.past.len().checked_sub(MOST_TREES + 1) {
            self.past[long_past].tree = None;
        }
        self.future.clear();
        self.arrive(Place { view, node, cursor: 0 }, None);
    }

    /// The current place, to go back to.
    fn leave(&mut self) -> Visited {
        let cursor = match (&self.panes, &self.tree) {
            (Some(panes), _) => panes.lists[Pane::Fields as usize].cursor,
            (_, Some(tree)) => tree.list.cursor,
            _ => self.row_at(self.list.cursor),
        };
        Visited { place: Place { cursor, ..self.place }, tree: self.tree.take() }
    }

    /// Shows a place, with its earlier tree if it has one.
    fn arrive(&mut self, place: Place, tree: Option<Tree>) {
        self.place = place;
        (self.panes, self.tree, self.shown) = (None, tree, None);
        self.filter.clear();
        self.list = crate::list::List::default();
        self.list.cursor = place.cursor;
        match (place.view, place.node) {
            (View::Node, Some(node)) => {
                let mut panes = NodePanes::new(&self.known, node, self.sorts);
                panes.lists[Pane::Fields as usize].cursor = place.cursor;
                self.panes = Some(panes);
            }
            (View::Held | View::Holders, _) if self.tree.is_some() => {}
            (View::Held, top) => self.tree = Some(Tree::new(&self.known, Direction::Held, top)),
            (View::Holders, top) => self.tree = Some(Tree::new(&self.known, Direction::Holders, top)),
            (View::Way, Some(node)) => self.way = self.way_to(node),
            _ => {}
        }
    }

    /// The nodes from a root to this one; only the last of them if there are too many.
    fn way_to(&self, node: NodeId) -> Vec<NodeId> {
        let tree = self.known.heap.tree();
        let upwards = std::iter::successors(Some(node), |&node| tree.parent(node));
        let mut way: Vec<NodeId> = upwards.take(LONGEST_WAY).collect();
        way.reverse();
        way
    }

    /// Goes back, or forward again.
    fn travel(&mut self, forward: bool) {
        let from = if forward { &mut self.future } else { &mut self.past };
        match from.pop() {
            Some(Visited { place, tree }) => {
                let here = self.leave();
                let to = if forward { &mut self.past } else { &mut self.future };
                to.push(here);
                self.arrive(place, tree);
            }
            None => self.say(if forward { "nothing to go forward to" } else { "nothing to go back to" }),
        }
    }

    /// The node under the cursor.
    pub(super) fn current(&self) -> Option<NodeId> {
        match (&self.panes, &self.tree) {
            (Some(panes), _) => panes.current(&self.known),
            (_, Some(tree)) => tree.node(),
            _ => self.row_node(self.row_at(self.list.cursor)).filter(|_| self.shown_count() > 0),
        }
    }

    fn enter(&mut self) {
        let row = self.row_at(self.list.cursor);
        match self.place.view {
            View::Classes if self.shown_count() > 0 => self.visit(View::Objects(row), self.place.node),
            View::Types => self.say("types have no rows of their own; F searches everywhere"),
            View::Held | View::Holders if self.current().is_none() => self.sideways(true),
            _ => {
                let node = self.current();
                self.visit_node(View::Node, node);
            }
        }
    }

    fn go(&mut self, step: Step) {
        match (&mut self.panes, &mut self.tree) {
            (Some(panes), _) => {
                let (list, len) = panes.list();
                list.go(step, len);
            }
            (_, Some(tree)) => tree.go(step),
            _ => {
                let len = self.shown_count();
                self.list.go(step, len);
            }
        }
    }

    fn sideways(&mut self, right: bool) {
        match (&mut self.panes, &mut self.tree) {
            (Some(panes), _) => panes.pane = if right { Pane::Fields } else { Pane::Holders },
            (_, Some(tree)) if right => tree.unfold(&self.known),
            (_, Some(tree)) => tree.fold(),
            _ if right => self.enter(),
            _ => self.travel(false),
        }
    }

    fn fold_subtree(&mut self, open: bool) {
        let Some(tree) = &mut self.tree else { return };
        if !open {
            tree.fold_all();
        } else if !tree.unfold_all(&self.known) {
            self.say("unfolded as much as anybody reads; again on a row unfolds more");
        }
    }

    fn sort(&mut self) {
        self.sorts = !self.sorts;
        if let Some(panes) = &mut self.panes {
            panes.sort(&self.known, self.sorts);
        }
        self.say(if self.sorts { "what retains most first" } else { "as it is stored" });
    }

    fn bookmark(&mut self) {
        let Some(node) = self.subject() else { return self.say("no node under the cursor") };
        match self.bookmarks.iter().position(|&marked| marked == node) {
            Some(place) => {
                self.bookmarks.remove(place);
                self.say(format!("no bookmark at #{} any more", node.0));
                self.filter_again();
            }
            None => {
                self.bookmarks.push(node);
                self.say(format!("bookmark at #{}; ' lists {}", node.0, self.bookmarks.len()));
            }
        }
    }

    fn copy(&mut self, clipboard: &mut dyn Clipboard) {
        let Some(node) = self.subject() else { return self.say("nothing to copy") };
        let path = self.known.heap.near_path(node);
        clipboard.copy(&String::from_utf8_lossy(&path));
        self.say(format!("copied {}", printable(&path)));
    }

    fn clear(&mut self) {
        if self.is_searching {
            self.is_searching = false;
            self.say("the search was ended");
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.refilter();
        }
    }

    fn ask(&mut self, kind: PromptKind, text: String) {
        if kind == PromptKind::Filter && (self.panes.is_some() || self.tree.is_some()) {
            return self.say("only lists are filtered; F searches everywhere");
        }
        self.prompt = Some(Prompt { kind, text });
    }

    fn type_key(&mut self, key: &[u8]) {
        let Some(mut prompt) = self.prompt.take() else { return };
        let typed = prompt.take(key);
        if prompt.kind == PromptKind::Filter {
            self.filter = if typed == Typed::Nothing { String::new() } else { prompt.text.clone() };
            self.refilter();
        }
        match (typed, prompt.kind) {
            (Typed::More, _) => self.prompt = Some(prompt),
            (Typed::Whole, PromptKind::Search) if !prompt.text.is_empty() => self.search_for(&prompt.text),
            (Typed::Whole, PromptKind::GoTo) => self.go_to(&prompt.text),
            _ => {}
        }
    }

    /// Searches for a text, or goes to the node or address it names.
    fn search_for(&mut self, text: &str) {
        if text.starts_with('#') || text.starts_with("0x") {
            return self.go_to(text);
        }
        self.look_for(Sought::Text(text.as_bytes().to_vec()), text.to_owned());
        self.visit(View::Found, self.place.node);
    }

    pub(super) fn look_for(&mut self, sought: Sought, text: String) {
        (self.search, self.sought, self.is_searching) = (Some(Search::new(sought)), text, true);
        if self.place.view == View::Found {
            self.arrive(Place { cursor: 0, ..self.place }, None);
        }
    }

    fn go_to(&mut self, text: &str) {
        let text = text.trim();
        let address = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        match (address, text.parse()) {
            (Some(Ok(address)), _) => self.go_to_address(address),
            (_, Ok(node)) => self.go_to_node(node),
            _ => self.say("expected #node or 0xaddress"),
        }
    }

    fn act_in_help(&mut self, action: HeapAction) {
        match action {
            HeapAction::Help | HeapAction::Clear => self.shows_help = false,
            HeapAction::Quit => self.is_done = true,
            _ => {
                if let Some(step) = step_of(action) {
                    self.help.scroll(step);
                }
            }
        }
    }

    fn point(&mut self, button: Button, column: u16, row: u16) {
        if self.shows_help {
            return self.help.turn(button);
        }
        let inside = |area: ratatui::layout::Rect| area.contains((column, row).into());
        let area = if inside(self.areas.holders) { self.areas.holders } else { self.areas.body };
        if !inside(area) {
            return;
        }
        if let Some(panes) = &mut self.panes {
            panes.pane = if area == self.areas.holders { Pane::Holders } else { Pane::Fields };
        }
        match button {
            Button::WheelUp => (0..LINES_OF_WHEEL).for_each(|_| self.go(Step::Up)),
            Button::WheelDown => (0..LINES_OF_WHEEL).for_each(|_| self.go(Step::Down)),
            Button::Press => self.click(usize::from(row - area.y)),
        }
    }

    /// Moves the cursor to a line; if it is there already, opens that row.
    fn click(&mut self, line: usize) {
        let len = self.shown_count();
        let (list, len) = match (&mut self.panes, &mut self.tree) {
            (Some(panes), _) => panes.list(),
            (_, Some(tree)) => (&mut tree.list, tree.lines.len()),
            _ => (&mut self.list, len),
        };
        match list.at_line(line, len) {
            Some(row) if row == list.cursor => self.enter(),
            Some(row) => list.cursor = row,
            None => {}
        }
    }

    /// The progress of a search, in words.
    pub(super) fn progress(&self) -> Option<String> {
        let search = self.search.as_ref()?;
        let count = grouped(search.count());
        let text = printable(self.sought.as_bytes());
        let kept = search.found().len() as u64;
        let part = if kept < search.count() {
            format!(" (the first {} shown)", grouped(kept))
        } else {
            String::new()
        };
        Some(match self.is_searching {
            true => {
                let seen = search.seen() as u64 * 100 / (self.known.node_count() as u64).max(1);
                format!("{count} found of {text}{part}, {seen}% looked at; Esc ends the search")
            }
            false => format!("{count} found of {text}{part}"),
        })
    }
}

const fn step_of(action: HeapAction) -> Option<Step> {
    Some(match action {
        HeapAction::Up => Step::Up,
        HeapAction::Down => Step::Down,
        HeapAction::PageUp => Step::PageUp,
        HeapAction::PageDown => Step::PageDown,
        HeapAction::Home => Step::Home,
        HeapAction::End => Step::End,
        _ => return None,
    })
}
