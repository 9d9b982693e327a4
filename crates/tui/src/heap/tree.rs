//! Trees that are expanded on demand: of what a node holds, and of what refers to it.

use borehole_heap::views::Holder;
use borehole_heap::{NodeId, Strength};

use super::Known;
use crate::list::{List, Step};

/// The number of rows shown below a node at first, and added at a time.
const FIRST: usize = 100;
const MORE: usize = 1_000;

/// The maximum number of nodes that one key unfolds.
const MOST_UNFOLDED: usize = 1_000;

/// The kind of nodes below a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The nodes that only it keeps alive.
    Held,
    /// The nodes that refer to it.
    Holders,
}

/// A row of a tree.
#[derive(Clone, Debug)]
pub(super) struct Branch {
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
pub(super) enum Line {
    /// This branch.
    Branch(usize),
    /// A number of further nodes below this branch.
    More(usize, usize),
}

/// A tree and its lines.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) direction: Direction,
    branches: Vec<Branch>,
    pub(super) lines: Vec<Line>,
    pub(super) list: List,
}

impl Tree {
    /// Creates the tree below a node, or below all roots.
    pub(super) fn new(known: &Known<'_>, direction: Direction, node: Option<NodeId>) -> Self {
        let retained = node.map_or(known.total(), |node| known.heap.retention().retained(node));
        let name = node.map_or_else(Vec::new, |node| known.heap.name(node));
        let top = Branch { retained, ..branch(node, name, None, 0) };
        let mut tree = Self { direction, branches: vec![top], lines: Vec::new(), list: List::default() };
        tree.open(known, 0);
        tree.refresh();
        tree
    }

    pub(super) fn top(&self) -> Option<NodeId> {
        self.branches[0].node
    }

    pub(super) fn branch(&self, place: usize) -> &Branch {
        &self.branches[place]
    }

    /// The line under the cursor.
    fn current(&self) -> Option<Line> {
        self.lines.get(self.list.cursor).copied()
    }

    /// The node under the cursor.
    pub(super) fn node(&self) -> Option<NodeId> {
        match self.current()? {
            Line::Branch(place) => self.branches[place].node,
            Line::More(..) => None,
        }
    }

    pub(super) fn go(&mut self, step: Step) {
        self.list.go(step, self.lines.len());
    }

    fn open(&mut self, known: &Known<'_>, place: usize) {
        self.branches[place].is_open = true;
        if self.branches[place].all_below.is_none() {
            self.fill(known, place, FIRST);
        }
    }

    /// Adds up to `limit` nodes below a branch.
    fn fill(&mut self, known: &Known<'_>, place: usize, limit: usize) {
        let (node, depth) = (self.branches[place].node, self.branches[place].depth + 1);
        let have = self.branches[place].below.len();
        let (found, all) = match self.direction {
            Direction::Held => held(known, node, limit),
            Direction::Holders => holders(known, node, limit),
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
        let mut waiting = vec![Line::Branch(0)];
        while let Some(line) = waiting.pop() {
            self.lines.push(line);
            let Line::Branch(place) = line else { continue };
            let branch = &self.branches[place];
            if branch.is_open {
                let left = branch.all_below.unwrap_or(0).saturating_sub(branch.below.len());
                if left > 0 {
                    waiting.push(Line::More(place, left));
                }
                waiting.extend(branch.below.iter().rev().map(|&below| Line::Branch(below)));
            }
        }
        let found = current.and_then(|current| self.lines.iter().position(|&line| line == current));
        self.list.cursor = found.unwrap_or(self.list.cursor).min(self.lines.len().saturating_sub(1));
    }

    /// Opens the branch under the cursor; if it is open, goes to the first row below it. On a line for further nodes, shows more.
    pub(super) fn unfold(&mut self, known: &Known<'_>) {
        match self.current() {
            Some(Line::Branch(place)) if !self.branches[place].is_open => self.open(known, place),
            Some(Line::Branch(place)) if !self.branches[place].below.is_empty() => self.list.cursor += 1,
            Some(Line::More(place, _)) => {
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
            Some(Line::Branch(place)) if self.branches[place].is_open => {
                self.branches[place].is_open = false;
                None
            }
            Some(Line::Branch(place)) => self.branches[place].parent,
            Some(Line::More(place, _)) => Some(place),
            None => None,
        };
        let line = above.and_then(|above| self.lines.iter().position(|&line| line == Line::Branch(above)));
        self.list.cursor = line.unwrap_or(self.list.cursor);
        self.refresh();
    }

    /// Closes everything below the branch under the cursor.
    pub(super) fn fold_all(&mut self) {
        let Some(Line::Branch(place)) = self.current() else { return };
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
    pub(super) fn unfold_all(&mut self, known: &Known<'_>) -> bool {
        let Some(Line::Branch(place)) = self.current() else { return true };
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

fn branch(node: Option<NodeId>, name: Vec<u8>, parent: Option<usize>, retained: u64) -> Branch {
    Branch {
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

fn held(known: &Known<'_>, node: Option<NodeId>, limit: usize) -> (Vec<Branch>, usize) {
    let (found, all) = known.heap.held(node, limit);
    let as_branch = |held: &borehole_heap::views::Held| {
        branch(Some(held.node), known.heap.name(held.top), None, held.retained_bytes)
    };
    (found.iter().map(as_branch).collect(), all)
}

fn holders(known: &Known<'_>, node: Option<NodeId>, limit: usize) -> (Vec<Branch>, usize) {
    let Some(node) = node else { return (Vec::new(), 0) };
    let all = known.heap.holder_count(node);
    let found = (0..all.min(limit)).filter_map(|place| known.heap.holder(node, place));
    let as_branch = |holder: Holder| {
        let retained = holder.node.map_or(0, |node| known.heap.retention().retained(node));
        let is_strong = holder.strength == Strength::Strong;
        Branch { is_strong, ..branch(holder.node, holder.by, None, retained) }
    };
    (found.map(as_branch).collect(), all)
}
