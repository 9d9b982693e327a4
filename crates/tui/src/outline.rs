//! A tree as rows, in which open nodes show their children.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use borehole_analysis::{CallBranch, Calls, FrameName, LazyTree};

use crate::list::{CursorStep, ScrollList};

/// The maximum number of nodes that one key unfolds.
const MOST_UNFOLDED: usize = 5_000;

/// A tree and its open nodes.
#[derive(Clone, Debug)]
pub(crate) struct TreeOutline {
    tree: LazyTree,
    open: HashSet<usize>,
    /// The nodes that are shown, from top to bottom.
    rows: Vec<usize>,
    pub(crate) list: ScrollList,
}

/// The open nodes of a tree and the node under its cursor, by names.
pub(crate) struct Unfolded {
    /// The open nodes, the node under the cursor, and all their ancestors; parents come first.
    nodes: Vec<UnfoldedNode>,
    /// The index of the node under the cursor.
    cursor: Option<usize>,
    pub(crate) list: ScrollList,
}

struct UnfoldedNode {
    /// The index of the parent.
    parent: Option<usize>,
    name: Arc<FrameName>,
    is_open: bool,
}

impl TreeOutline {
    /// Creates a tree that shows its top nodes; a single top node is open.
    pub(crate) fn new(tree: LazyTree, calls: &Calls) -> Self {
        let mut outline = Self { tree, open: HashSet::new(), rows: Vec::new(), list: ScrollList::default() };
        if outline.roots().len() == 1 {
            outline.open.insert(0);
        }
        outline.refresh(calls, |_| true);
        outline
    }

    pub(crate) fn node(&self, node: usize) -> &CallBranch {
        self.tree.node(node)
    }

    /// The nodes below a node.
    pub(crate) fn children(&mut self, calls: &Calls, node: usize) -> Range<usize> {
        self.tree.open(calls, node)
    }

    pub(crate) fn roots(&self) -> Range<usize> {
        0..self.tree.roots().len()
    }

    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    pub(crate) fn is_open(&self, node: usize) -> bool {
        self.open.contains(&node)
    }

    /// The node under the cursor.
    pub(crate) fn current(&self) -> Option<usize> {
        self.rows.get(self.list.cursor).copied()
    }

    pub(crate) fn go(&mut self, step: CursorStep) {
        self.list.go(step, self.rows.len());
    }

    /// Recomputes which nodes are shown: the `wanted` ones below open nodes. The cursor stays on its node if that still exists.
    pub(crate) fn refresh(&mut self, calls: &Calls, wanted: impl Fn(&CallBranch) -> bool) {
        let current = self.current();
        self.rows.clear();
        let mut waiting: Vec<usize> = self.roots().rev().collect();
        while let Some(node) = waiting.pop() {
            if wanted(self.tree.node(node)) {
                self.rows.push(node);
            }
            if self.open.contains(&node) {
                waiting.extend(self.tree.open(calls, node).rev());
            }
        }
        let place = self.rows.iter().position(|&node| Some(node) == current);
        self.list.cursor = place.unwrap_or(self.list.cursor).min(self.rows.len().saturating_sub(1));
    }

    /// The open nodes, with names instead of numbers.
    pub(crate) fn unfolded(&self, name: impl Fn(usize) -> Arc<FrameName>) -> Unfolded {
        let mut nodes: BTreeSet<usize> = BTreeSet::new();
        for node in self.open.iter().copied().chain(self.current()) {
            let mut next = Some(node);
            while let Some(node) = next.filter(|&node| nodes.insert(node)) {
                next = self.tree.node(node).parent;
            }
        }
        // A node has a smaller number than its descendants.
        let places: HashMap<usize, usize> = nodes.iter().copied().zip(0..).collect();
        let place = |node: usize| places.get(&node).copied();
        let unfolded = nodes.iter().map(|&node| {
            let CallBranch { parent, frame, .. } = *self.tree.node(node);
            UnfoldedNode { parent: parent.and_then(place), name: name(frame), is_open: self.is_open(node) }
        });
        Unfolded { nodes: unfolded.collect(), cursor: self.current().and_then(place), list: self.list }
    }

    /// Opens the nodes that were open in another tree; `row` gives the rows of their names. Returns the node that was under the
    /// cursor.
    pub(crate) fn unfold_again(
        &mut self,
        before: &Unfolded,
        calls: &Calls,
        row: impl Fn(&Arc<FrameName>) -> Option<usize>,
    ) -> Option<usize> {
        if before.nodes.is_empty() {
            return None;
        }
        self.open.clear();
        let mut found: Vec<Option<usize>> = Vec::with_capacity(before.nodes.len());
        for node in &before.nodes {
            let among = match node.parent {
                None => Some(self.roots()),
                Some(parent) => found[parent].map(|parent| self.tree.open(calls, parent)),
            };
            let frame = row(&node.name);
            let same =
                among.and_then(|mut among| among.find(|&node| Some(self.tree.node(node).frame) == frame));
            self.open.extend(same.filter(|_| node.is_open));
            found.push(same);
        }
        before.cursor.and_then(|cursor| found[cursor])
    }

    /// Scrolls to the given position, with the cursor on a node if that is shown.
    pub(crate) fn go_to(&mut self, list: ScrollList, node: Option<usize>) {
        let place = self.rows.iter().position(|&row| Some(row) == node);
        self.list = list;
        self.list.cursor = place.unwrap_or(list.cursor).min(self.rows.len().saturating_sub(1));
    }

    /// Opens the node under the cursor; if it is open already, goes to the first row below it.
    pub(crate) fn unfold(&mut self) {
        let Some(node) = self.current() else { return };
        let next = self.rows.get(self.list.cursor + 1);
        if !self.open.insert(node) && next.is_some_and(|&next| self.tree.node(next).parent == Some(node)) {
            self.list.cursor += 1;
        }
    }

    /// Closes the node under the cursor; if it is closed already, goes to its parent.
    pub(crate) fn fold(&mut self) {
        let Some(node) = self.current() else { return };
        if self.open.remove(&node) {
            return;
        }
        let parent = self.tree.node(node).parent;
        if let Some(row) = self.rows.iter().position(|&row| Some(row) == parent) {
            self.list.cursor = row;
        }
    }

    /// Closes the node under the cursor and everything below it.
    pub(crate) fn fold_all(&mut self, calls: &Calls) {
        let mut waiting: Vec<usize> = self.current().into_iter().collect();
        while let Some(node) = waiting.pop() {
            if self.open.remove(&node) {
                waiting.extend(self.tree.open(calls, node));
            }
        }
    }

    /// Opens the node under the cursor and everything below it, up to a limit. Returns whether that was everything.
    pub(crate) fn unfold_all(&mut self, calls: &Calls) -> bool {
        let mut waiting: std::collections::VecDeque<usize> = self.current().into_iter().collect();
        let mut unfolded = 0;
        while let Some(node) = waiting.pop_front() {
            if !self.is_open(node) {
                if unfolded == MOST_UNFOLDED {
                    return false;
                }
                unfolded += 1;
                self.open.insert(node);
            }
            waiting.extend(self.tree.open(calls, node));
        }
        true
    }
}
