//! Trees that are expanded on demand: of what a node holds, and of what refers to it.

use borehole_heap::views::ValueHolder;
use borehole_heap::{NodeId, Strength};

use super::HeapIndex;
use crate::list::{CursorStep, ScrollList};

/// The number of rows shown below a node at first, and added at a time.
const FIRST: usize = 100;
const MORE: usize = 1_000;

/// The maximum number of nodes that one key unfolds.
const MOST_UNFOLDED: usize = 1_000;

/// The kind of nodes below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeapDirection {
    /// The nodes that only it keeps alive.
    Held,
    /// The nodes that refer to it.
    Holders,
}

/// A row of a tree.
#[derive(Clone, Debug)]
pub(super) struct HeapBranch {
    /// The node; `None` for the graph itself.
    pub(super) node: Option<NodeId>,
    /// The name of the reference to the node.
    pub(super) name: Vec<u8>,
    pub(super) retained: u64,
    pub(super) is_strong: bool,
    pub(super) depth: usize,
    parent: Option<usize>,
    below: Vec<usize>,
    /// The number of nodes below it, once computed.
    pub(super) all_below: Option<usize>,
    pub(super) is_open: bool,
}

/// A line of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeLine {
    /// This branch.
    Branch(usize),
    /// A number of further nodes below this branch.
    More(usize, usize),
}

/// A tree and its lines.
#[derive(Debug)]
pub(super) struct HeapTree {
    pub(super) direction: HeapDirection,
    branches: Vec<HeapBranch>,
    pub(super) lines: Vec<TreeLine>,
    pub(super) list: ScrollList,
}

impl HeapTree {
    /// Creates the tree below a node, or below all roots.
    pub(super) fn new(known: &HeapIndex<'_>, direction: HeapDirection, node: Option<NodeId>) -> Self {
        let retained = node.map_or(known.total(), |node| known.heap.retention().retained(node));
        let name = node.map_or_else(Vec::new, |node| known.heap.name(node));
        let top = HeapBranch { retained, ..branch(node, name, None, 0) };
        let mut tree =
            Self { direction, branches: vec![top], lines: Vec::new(), list: ScrollList::default() };
        tree.open(known, 0);
        tree.refresh();
        tree
    }

    pub(super) fn top(&self) -> Option<NodeId> {
        self.branches[0].node
    }

    pub(super) fn branch(&self, place: usize) -> &HeapBranch {
        &self.branches[place]
    }

    /// The line under the cursor.
    fn current(&self) -> Option<TreeLine> {
        self.lines.get(self.list.cursor).copied()
    }

    /// The node under the cursor.
    pub(super) fn node(&self) -> Option<NodeId> {
        match self.current()? {
            TreeLine::Branch(place) => self.branches[place].node,
            TreeLine::More(..) => None,
        }
    }

    pub(super) fn go(&mut self, step: CursorStep) {
        self.list.go(step, self.lines.len());
    }

    fn open(&mut self, known: &HeapIndex<'_>, place: usize) {
        self.branches[place].is_open = true;
        if self.branches[place].all_below.is_none() {
            self.fill(known, place, FIRST);
        }
    }

    /// Adds up to `limit` nodes below a branch.
    fn fill(&mut self, known: &HeapIndex<'_>, place: usize, limit: usize) {
        let (node, depth) = (self.branches[place].node, self.branches[place].depth + 1);
        let have = self.branches[place].below.len();
        let (found, all) = match self.direction {
            HeapDirection::Held => held(known, node, limit),
            HeapDirection::Holders => holders(known, node, limit),
        };
        for mut below in found.into_iter().skip(have) {
            (below.parent, below.depth) = (Some(place), depth);
            self.branches.push(below);
            let last = self.branches.len() - 1;
            self.branches[place].below.push(last);
        }
        self.branches[place].all_below = Some(all);
    }

    /// Recomputes the lines. The cursor stays on its branch.
    fn refresh(&mut self) {
        let current = self.current();
        self.lines.clear();
        let mut waiting = vec![TreeLine::Branch(0)];
        while let Some(line) = waiting.pop() {
            self.lines.push(line);
            let TreeLine::Branch(place) = line else { continue };
            let branch = &self.branches[place];
            if branch.is_open {
                let left = branch.all_below.unwrap_or(0).saturating_sub(branch.below.len());
                if left > 0 {
                    waiting.push(TreeLine::More(place, left));
                }
                waiting.extend(branch.below.iter().rev().map(|&below| TreeLine::Branch(below)));
            }
        }
        let found = current.and_then(|current| self.lines.iter().position(|&line| line == current));
        self.list.cursor = found.unwrap_or(self.list.cursor).min(self.lines.len().saturating_sub(1));
    }

    /// Opens the branch under the cursor; if it is open, goes to the first row below it. On a line for further nodes, shows more.
    pub(super) fn unfold(&mut self, known: &HeapIndex<'_>) {
        match self.current() {
            Some(TreeLine::Branch(place)) if !self.branches[place].is_open => self.open(known, place),
            Some(TreeLine::Branch(place)) if !self.branches[place].below.is_empty() => self.list.cursor += 1,
            Some(TreeLine::More(place, _)) => {
                let limit = self.branches[place].below.len() + MORE;
                self.fill(known, place, limit);
            }
            _ => {}
        }
        self.refresh();
    }

    /// Closes the branch under the cursor; if it is closed, goes to its parent.
    pub(super) fn fold(&mut self) {
        let above = match self.current() {
            Some(TreeLine::Branch(place)) if self.branches[place].is_open => {
                self.branches[place].is_open = false;
                None
            }
            Some(TreeLine::Branch(place)) => self.branches[place].parent,
            Some(TreeLine::More(place, _)) => Some(place),
            None => None,
        };
        let line =
            above.and_then(|above| self.lines.iter().position(|&line| line == TreeLine::Branch(above)));
        self.list.cursor = line.unwrap_or(self.list.cursor);
        self.refresh();
    }

    /// Closes everything below the branch under the cursor.
    pub(super) fn fold_all(&mut self) {
        let Some(TreeLine::Branch(place)) = self.current() else { return };
        let mut waiting = vec![place];
        while let Some(place) = waiting.pop() {
            let branch = &mut self.branches[place];
            if std::mem::take(&mut branch.is_open) {
                waiting.extend(&branch.below);
            }
        }
        self.refresh();
    }

    /// Opens everything below the branch under the cursor, up to a limit. Returns whether that was everything.
    pub(super) fn unfold_all(&mut self, known: &HeapIndex<'_>) -> bool {
        let Some(TreeLine::Branch(place)) = self.current() else { return true };
        let mut waiting = std::collections::VecDeque::from([place]);
        let mut opened = 0;
        while let Some(place) = waiting.pop_front() {
            if !self.branches[place].is_open {
                if opened == MOST_UNFOLDED {
                    self.refresh();
                    return false;
                }
                opened += 1;
                self.open(known, place);
            }
            waiting.extend(&self.branches[place].below);
        }
        self.refresh();
        true
    }
}

fn branch(node: Option<NodeId>, name: Vec<u8>, parent: Option<usize>, retained: u64) -> HeapBranch {
    HeapBranch {
        node,
        name,
        retained,
        is_strong: true,
        depth: 0,
        parent,
        below: Vec::new(),
        all_below: None,
        is_open: false,
    }
}

fn held(known: &HeapIndex<'_>, node: Option<NodeId>, limit: usize) -> (Vec<HeapBranch>, usize) {
    let (found, all) = known.heap.held(node, limit);
    let as_branch = |held: &borehole_heap::views::HeldValue| {
        branch(Some(held.node), known.heap.name(held.top), None, held.retained_bytes)
    };
    (found.iter().map(as_branch).collect(), all)
}

fn holders(known: &HeapIndex<'_>, node: Option<NodeId>, limit: usize) -> (Vec<HeapBranch>, usize) {
    let Some(node) = node else { return (Vec::new(), 0) };
    let all = known.heap.holder_count(node);
    let found = (0..all.min(limit)).filter_map(|place| known.heap.holder(node, place));
    let as_branch = |holder: ValueHolder| {
        let retained = holder.node.map_or(0, |node| known.heap.retention().retained(node));
        let is_strong = holder.strength == Strength::Strong;
        HeapBranch { is_strong, ..branch(holder.node, holder.by, None, retained) }
    };
    (found.map(as_branch).collect(), all)
}
