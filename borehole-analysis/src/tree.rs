//! Trees of calls that open level by level: from the roots, from the leaves, below or above a function.

use std::cmp::Reverse;
use std::ops::Range;

use hashbrown::HashMap;

use crate::call_paths::CallId;
use crate::calls::Calls;

/// Which way a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From a function to those that it called.
    Callees,
    /// From a function to those that called it.
    Callers,
}

/// A node of a tree: a path, merged over all places where it occurs.
#[derive(Clone, Debug)]
pub struct Branch {
    /// What was called, as a row of the [`Calls`].
    pub frame: usize,
    /// The node that it stands below; `None` at the top.
    pub parent: Option<usize>,
    /// How many nodes it stands below.
    pub depth: usize,
    /// The weight of samples that have this path.
    pub total: i64,
    /// What those of them weigh that end here: in which the function was executing, or, in a tree of callers, nobody
    /// called it.
    pub own: i64,
    /// The calls that are merged, with what each weighs.
    places: Vec<(CallId, i64)>,
    /// Its own nodes, once it was opened.
    children: Option<Range<usize>>,
}

/// A tree of calls. Nodes come into being when the node above them is opened, so it costs what is looked at.
#[derive(Clone, Debug)]
pub struct Tree {
    direction: Direction,
    nodes: Vec<Branch>,
    tops: usize,
}

impl Tree {
    /// The whole call tree.
    #[must_use]
    pub fn from_roots(calls: &Calls) -> Self {
        let tops = calls.roots().map(|call| (call, calls.total_of(call)));
        Self::new(Direction::Callees, calls, tops)
    }

    /// The inverted call tree: from functions that were executing to those that called them.
    #[must_use]
    pub fn from_leaves(calls: &Calls) -> Self {
        let tops = calls.paths().ids().map(|call| (call, calls.own_of(call))).filter(|&(_, own)| own != 0);
        Self::new(Direction::Callers, calls, tops)
    }

    /// What a function called, directly and not: from its call nearest to the root on.
    #[must_use]
    pub fn below(calls: &Calls, frame: usize) -> Self {
        Self::new(Direction::Callees, calls, outermost(calls, frame))
    }

    /// Who called a function: from its call nearest to the leaf on.
    #[must_use]
    pub fn above(calls: &Calls, frame: usize) -> Self {
        Self::new(Direction::Callers, calls, innermost(calls, frame).into_iter())
    }

    fn new(direction: Direction, calls: &Calls, tops: impl Iterator<Item = (CallId, i64)>) -> Self {
        let mut tree = Self { direction, nodes: Vec::new(), tops: 0 };
        tree.tops = tree.merge(calls, None, tops).len();
        tree
    }

    /// Which way it grows.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// The nodes that stand below none, the heaviest first.
    #[must_use]
    pub fn roots(&self) -> &[Branch] {
        &self.nodes[..self.tops]
    }

    /// A node.
    #[must_use]
    pub fn node(&self, node: usize) -> &Branch {
        &self.nodes[node]
    }

    /// The nodes below a node, the heaviest first.
    pub fn open(&mut self, calls: &Calls, node: usize) -> Range<usize> {
        if let Some(children) = &self.nodes[node].children {
            return children.clone();
        }
        let places = std::mem::take(&mut self.nodes[node].places);
        let children = match self.direction {
            Direction::Callees => {
                let callees = places.iter().flat_map(|&(call, _)| calls.callees(call));
                self.merge(calls, Some(node), callees.map(|call| (call, calls.total_of(call))))
            }
            Direction::Callers => {
                let callers =
                    places.iter().filter_map(|&(call, weight)| Some((calls.paths().parent(call)?, weight)));
                self.merge(calls, Some(node), callers)
            }
        };
        self.nodes[node].children = Some(children.clone());
        children
    }

    /// Adds nodes, one for each row among `places`.
    fn merge(
        &mut self,
        calls: &Calls,
        parent: Option<usize>,
        places: impl Iterator<Item = (CallId, i64)>,
    ) -> Range<usize> {
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let mut merged: Vec<Branch> = Vec::new();
        let mut of_row: HashMap<usize, usize> = HashMap::new();
        for (call, weight) in places {
            let frame = calls.row(call);
            let found = *of_row.entry(frame).or_insert(merged.len());
            if found == merged.len() {
                merged.push(Branch {
                    frame,
                    parent,
                    depth,
                    total: 0,
                    own: 0,
                    places: Vec::new(),
                    children: None,
                });
            }
            let own = match self.direction {
                Direction::Callees => calls.own_of(call),
                Direction::Callers if calls.paths().parent(call).is_none() => weight,
                Direction::Callers => 0,
            };
            let node = &mut merged[found];
            node.total = node.total.saturating_add(weight);
            node.own = node.own.saturating_add(own);
            node.places.push((call, weight));
        }
        merged.sort_by_key(|node| Reverse(node.total));
        let start = self.nodes.len();
        self.nodes.append(&mut merged);
        start..self.nodes.len()
    }
}

/// The calls of a row.
fn calls_of(calls: &Calls, frame: usize) -> impl Iterator<Item = CallId> {
    calls.paths().ids().filter(move |&call| calls.row(call) == frame)
}

/// The calls of a row that are not below another one, with all that was sampled below them.
fn outermost(calls: &Calls, frame: usize) -> impl Iterator<Item = (CallId, i64)> {
    let mut end = 0;
    let found = calls_of(calls, frame).filter(move |&call| {
        let is_outside = call >= end;
        if is_outside {
            end = calls.paths().end(call);
        }
        is_outside
    });
    found.map(|call| (call, calls.total_of(call))).filter(|&(_, total)| total != 0)
}

/// The calls of a row, each with what was sampled below it and not below another one of the row that is below it.
fn innermost(calls: &Calls, frame: usize) -> Vec<(CallId, i64)> {
    let mut found: Vec<(CallId, i64)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for call in calls_of(calls, frame) {
        while open.pop_if(|&mut above| calls.paths().end(found[above].0) <= call).is_some() {}
        let total = calls.total_of(call);
        if let Some(&above) = open.last() {
            found[above].1 = found[above].1.saturating_sub(total);
        }
        open.push(found.len());
        found.push((call, total));
    }
    found.retain(|&(_, weight)| weight != 0);
    found
}
