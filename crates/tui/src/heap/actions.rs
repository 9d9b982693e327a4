//! Handling of keys and the mouse in the heap explorer.

use borehole_heap::NodeId;
use borehole_heap::views::SearchTarget;
use borehole_text::printable;

use super::history::Visited;
use super::node::{NodePane, NodePanes};
use super::search::SearchState;
use super::tree::{HeapDirection, HeapTree};
use super::{HeapAction, HeapApp, HeapPosition, HeapPrompt, HeapView};
use crate::controls::{Request, step_of};
use crate::host::Clipboard;
use crate::input::{Button, TerminalInput};
use crate::list::{CursorStep, LINES_OF_WHEEL};
use crate::prompt::{Prompt, Typed};

/// The longest path shown, in nodes.
const LONGEST_WAY: usize = 1_000;

impl HeapApp<'_> {
    /// Handles an input.
    pub fn handle(&mut self, input: &TerminalInput, clipboard: &mut dyn Clipboard) {
        match self.controls.take(input, &self.settings.keymap) {
            Some(Request::Act(action)) => self.act(action, clipboard),
            Some(Request::Typed(prompt, typed)) => self.type_key(&prompt, typed),
            Some(Request::Point(button, column, row)) => self.point(button, column, row),
            None => {}
        }
    }

    /// Continues a search for a while. At its end, shows the node at the address that was searched for.
    pub fn work(&mut self) {
        if !self.search.is_running {
            return;
        }
        self.search.advance(&self.known);
        if self.position.view == HeapView::Found {
            self.filter_more();
        }
        if self.search.is_running {
            return;
        }
        if let Some(node) = self.search.at_address() {
            self.visit(HeapView::Node, Some(node));
        } else if let Some(message) = self.search.failure() {
            self.say(message);
        }
    }

    fn act(&mut self, action: HeapAction, clipboard: &mut dyn Clipboard) {
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
            _ => self.show(action),
        }
    }

    /// Handles actions that show something else or open a prompt.
    fn show(&mut self, action: HeapAction) {
        let node = self.subject();
        match action {
            HeapAction::Classes => self.visit(HeapView::Classes, self.position.node),
            HeapAction::Types => self.visit(HeapView::Types, self.position.node),
            HeapAction::Roots => self.visit(HeapView::Roots, self.position.node),
            HeapAction::Largest => self.visit(HeapView::Largest, self.position.node),
            HeapAction::Cycles => self.visit(HeapView::Cycles, self.position.node),
            HeapAction::Found if !self.search.is_any() => self.say("no search yet; F searches"),
            HeapAction::Found => self.visit(HeapView::Found, self.position.node),
            HeapAction::Bookmarks => self.visit(HeapView::Bookmarks, self.position.node),
            HeapAction::Held => self.visit(HeapView::Held, self.tree_top()),
            HeapAction::Holders => self.visit_node(HeapView::Holders, node),
            HeapAction::Way => self.visit_node(HeapView::Way, node),
            HeapAction::Panes => self.visit_node(HeapView::Node, node),
            HeapAction::Filter => self.ask(HeapPrompt::Filter, self.filter.clone()),
            HeapAction::Search => self.ask(HeapPrompt::Search, String::new()),
            HeapAction::GoTo => self.ask(HeapPrompt::GoTo, String::new()),
            _ => {}
        }
    }

    /// The root of the tree of held nodes: the node under the cursor, or the whole heap if there is none or the list is of sums.
    fn tree_top(&self) -> Option<NodeId> {
        match self.position.view {
            HeapView::Classes | HeapView::Types => None,
            _ => self.subject(),
        }
    }

    /// The node that keys apply to: the one in view, or the one under the cursor.
    fn subject(&self) -> Option<NodeId> {
        if self.position.view == HeapView::Node {
            self.position.node
        } else {
            self.current().or(self.position.node)
        }
    }

    fn visit_node(&mut self, view: HeapView, node: Option<NodeId>) {
        match node {
            Some(_) => self.visit(view, node),
            None => self.say("no node under the cursor"),
        }
    }

    /// Shows a view, and remembers the previous one.
    pub(super) fn visit(&mut self, view: HeapView, node: Option<NodeId>) {
        if (view, node) == (self.position.view, self.position.node) {
            return;
        }
        let here = self.leave();
        self.history.push(here);
        self.arrive(HeapPosition { view, node, cursor: 0 }, None);
    }

    /// The current position, to go back to.
    fn leave(&mut self) -> Visited {
        let cursor = match (&self.panes, &self.tree) {
            (Some(panes), _) => panes.lists[NodePane::Fields as usize].cursor,
            (_, Some(tree)) => tree.list.cursor,
            _ => self.row_at(self.list.cursor),
        };
        Visited { position: HeapPosition { cursor, ..self.position }, tree: self.tree.take() }
    }

    /// Shows a position, with its earlier tree if it has one.
    fn arrive(&mut self, position: HeapPosition, tree: Option<HeapTree>) {
        self.position = position;
        (self.panes, self.tree, self.shown) = (None, tree, None);
        self.filter.clear();
        self.list = crate::list::ScrollList::default();
        self.list.cursor = position.cursor;
        match (position.view, position.node) {
            (HeapView::Node, Some(node)) => {
                let mut panes = NodePanes::new(&self.known, node, self.sorts);
                panes.lists[NodePane::Fields as usize].cursor = position.cursor;
                self.panes = Some(panes);
            }
            (HeapView::Held | HeapView::Holders, _) if self.tree.is_some() => {}
            (HeapView::Held, top) => self.tree = Some(HeapTree::new(&self.known, HeapDirection::Held, top)),
            (HeapView::Holders, top) => {
                self.tree = Some(HeapTree::new(&self.known, HeapDirection::Holders, top));
            }
            (HeapView::Way, Some(node)) => self.way = self.way_to(node),
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
        match self.history.pop(forward) {
            Some(Visited { position, tree }) => {
                let here = self.leave();
                self.history.turn(forward, here);
                self.arrive(position, tree);
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
        match self.position.view {
            HeapView::Classes if self.shown_count() > 0 => {
                self.visit(HeapView::Objects(row), self.position.node);
            }
            HeapView::Types => self.say("a type has no list of nodes; F searches the whole heap"),
            HeapView::Held | HeapView::Holders if self.current().is_none() => self.sideways(true),
            _ => {
                let node = self.current();
                self.visit_node(HeapView::Node, node);
            }
        }
    }

    fn go(&mut self, step: CursorStep) {
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
            (Some(panes), _) => panes.pane = if right { NodePane::Fields } else { NodePane::Holders },
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
            self.say("unfolded the first 1,000 nodes; press again on a row to unfold more");
        }
    }

    fn sort(&mut self) {
        self.sorts = !self.sorts;
        if let Some(panes) = &mut self.panes {
            panes.sort(&self.known, self.sorts);
        }
        self.say(if self.sorts { "sorted by retained size" } else { "in stored order" });
    }

    fn bookmark(&mut self) {
        let Some(node) = self.subject() else { return self.say("no node under the cursor") };
        match self.bookmarks.iter().position(|&marked| marked == node) {
            Some(place) => {
                self.bookmarks.remove(place);
                self.say(format!("removed the bookmark at #{}", node.0));
                self.filter_again();
            }
            None => {
                self.bookmarks.push(node);
                self.say(format!("bookmarked #{}; ' lists all {}", node.0, self.bookmarks.len()));
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
        if std::mem::take(&mut self.search.is_running) {
            self.say("search cancelled");
        } else if !self.filter.is_empty() {
            self.filter.clear();
            self.refilter();
        }
    }

    fn ask(&mut self, kind: HeapPrompt, text: String) {
        if kind == HeapPrompt::Filter && (self.panes.is_some() || self.tree.is_some()) {
            return self.say("only lists can be filtered; F searches the whole heap");
        }
        self.controls.ask(kind, text);
    }

    fn type_key(&mut self, prompt: &Prompt<HeapPrompt>, typed: Typed) {
        match (prompt.kind, typed) {
            (HeapPrompt::Filter, _) => {
                self.filter = prompt.filter(typed);
                self.refilter();
            }
            (HeapPrompt::Search, Typed::Whole) if !prompt.text.is_empty() => self.search_for(&prompt.text),
            (HeapPrompt::GoTo, Typed::Whole) => self.go_to(&prompt.text),
            _ => {}
        }
    }

    /// Searches for a text, or goes to the node or address it names.
    fn search_for(&mut self, text: &str) {
        if text.starts_with('#') || text.starts_with("0x") {
            return self.go_to(text);
        }
        self.look_for(SearchTarget::Text(text.as_bytes().to_vec()), text.to_owned());
        self.visit(HeapView::Found, self.position.node);
    }

    pub(super) fn look_for(&mut self, target: SearchTarget, text: String) {
        self.search = SearchState::new(target, text);
        if self.position.view == HeapView::Found {
            self.arrive(HeapPosition { cursor: 0, ..self.position }, None);
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

    fn point(&mut self, button: Button, column: u16, row: u16) {
        let inside = |area: ratatui::layout::Rect| area.contains((column, row).into());
        let area = if inside(self.areas.holders) { self.areas.holders } else { self.areas.body };
        if !inside(area) {
            return;
        }
        if let Some(panes) = &mut self.panes {
            panes.pane = if area == self.areas.holders { NodePane::Holders } else { NodePane::Fields };
        }
        match button {
            Button::WheelUp => (0..LINES_OF_WHEEL).for_each(|_| self.go(CursorStep::Up)),
            Button::WheelDown => (0..LINES_OF_WHEEL).for_each(|_| self.go(CursorStep::Down)),
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
}
