//! Call trees that open level by level: from the roots, from the leaves, below or above a function.

use std::cmp::Reverse;
use std::ops::Range;

use hashbrown::HashMap;

use crate::call_paths::CallId;
use crate::calls::Calls;

/// The direction in which a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeDirection {
    /// From a function to its callees.
    Callees,
    /// From a function to its callers.
    Callers,
}

/// A node of a tree: a path, merged over all places where it occurs.
#[derive(Clone, Debug)]
pub struct CallBranch {
    /// The called function, as a row of the [`Calls`].
    pub frame: usize,
    /// The parent node; `None` at the top.
    pub parent: Option<usize>,
    /// The number of nodes above it.
    pub depth: usize,
    /// The weight of samples with this path.
    pub total_weight: i64,
    /// The part of that weight whose path ends here: samples of which it is the leaf, or, in a tree of callers, the
    /// root.
    pub self_weight: i64,
    /// The merged calls, with the weight of each.
    places: Vec<(CallId, i64)>,
    /// The child nodes, once it has been opened.
    children: Option<Range<usize>>,
}

/// A call tree whose nodes are built when their parent is opened, so that it costs only as much as is looked at.
#[derive(Clone, Debug)]
pub struct LazyTree {
    direction: TreeDirection,
    nodes: Vec<CallBranch>,
    tops: usize,
}

impl LazyTree {
    /// The whole call tree.
    #[must_use]
    pub fn from_roots(calls: &Calls) -> Self {
        let tops = calls.roots().map(|call| (call, calls.total_weight(call)));
        Self::new(TreeDirection::Callees, calls, tops)
    }

    /// The inverted call tree: from leaf functions to their callers.
    #[must_use]
    pub fn from_leaves(calls: &Calls) -> Self {
        let tops =
            calls.paths.ids().map(|call| (call, calls.self_weight(call))).filter(|&(_, weight)| weight != 0);
        Self::new(TreeDirection::Callers, calls, tops)
    }

    /// The direct and indirect callees of a function, starting at its call nearest to the root.
    #[must_use]
    pub fn below(calls: &Calls, frame: usize) -> Self {
        Self::new(TreeDirection::Callees, calls, outermost(calls, frame))
    }

    /// The callers of a function, starting at its call nearest to the leaf.
    #[must_use]
    pub fn above(calls: &Calls, frame: usize) -> Self {
        Self::new(TreeDirection::Callers, calls, innermost(calls, frame).into_iter())
    }

    fn new(direction: TreeDirection, calls: &Calls, tops: impl Iterator<Item = (CallId, i64)>) -> Self {
        let mut tree = Self { direction, nodes: Vec::new(), tops: 0 };
        tree.tops = tree.merge(calls, None, tops).len();
        tree
    }

    /// The direction in which it grows.
    #[must_use]
    pub const fn direction(&self) -> TreeDirection {
        self.direction
    }

    /// The top nodes, heaviest first.
    #[must_use]
    pub fn roots(&self) -> &[CallBranch] {
        &self.nodes[..self.tops]
    }

    /// A node.
    #[must_use]
    pub fn node(&self, node: usize) -> &CallBranch {
        &self.nodes[node]
    }

    /// Opens a node and returns its children, heaviest first.
    pub fn open(&mut self, calls: &Calls, node: usize) -> Range<usize> {
        if let Some(children) = &self.nodes[node].children {
            return children.clone();
        }
        let places = std::mem::take(&mut self.nodes[node].places);
        let children = match self.direction {
            TreeDirection::Callees => {
                let callees = places.iter().flat_map(|&(call, _)| calls.callees(call));
                self.merge(calls, Some(node), callees.map(|call| (call, calls.total_weight(call))))
            }
            TreeDirection::Callers => {
                let callers =
                    places.iter().filter_map(|&(call, weight)| Some((calls.paths.parent(call)?, weight)));
                self.merge(calls, Some(node), callers)
            }
        };
        self.nodes[node].children = Some(children.clone());
        children
    }

    /// Adds one node for each row among `places`.
    fn merge(
        &mut self,
        calls: &Calls,
        parent: Option<usize>,
        places: impl Iterator<Item = (CallId, i64)>,
    ) -> Range<usize> {
        let depth = parent.map_or(0, |parent| self.nodes[parent].depth + 1);
        let mut merged: Vec<CallBranch> = Vec::new();
        let mut of_row: HashMap<usize, usize> = HashMap::new();
        for (call, weight) in places {
            let frame = calls.paths.row(call);
            let found = *of_row.entry(frame).or_insert(merged.len());
            if found == merged.len() {
                merged.push(CallBranch {
                    frame,
                    parent,
                    depth,
                    total_weight: 0,
                    self_weight: 0,
                    places: Vec::new(),
                    children: None,
                });
            }
            let self_weight = match self.direction {
                TreeDirection::Callees => calls.self_weight(call),
                TreeDirection::Callers if calls.paths.parent(call).is_none() => weight,
                TreeDirection::Callers => 0,
            };
            let node = &mut merged[found];
            node.total_weight = node.total_weight.saturating_add(weight);
            node.self_weight = node.self_weight.saturating_add(self_weight);
            node.places.push((call, weight));
        }
        merged.sort_by_key(|node| Reverse(node.total_weight));
        let start = self.nodes.len();
        self.nodes.append(&mut merged);
        start..self.nodes.len()
    }
}

/// The calls of a row.
fn calls_of(calls: &Calls, frame: usize) -> impl Iterator<Item = CallId> {
    calls.paths.ids().filter(move |&call| calls.paths.row(call) == frame)
}

/// The calls of a row that are not below another call of it, with their total weights.
fn outermost(calls: &Calls, frame: usize) -> impl Iterator<Item = (CallId, i64)> {
    let mut end = 0;
    let found = calls_of(calls, frame).filter(move |&call| {
        let is_outside = call >= end;
        if is_outside {
            end = calls.paths.end(call);
        }
        is_outside
    });
    found.map(|call| (call, calls.total_weight(call))).filter(|&(_, total)| total != 0)
}

/// The calls of a row, each with its total weight minus that of calls of the same row below it.
fn innermost(calls: &Calls, frame: usize) -> Vec<(CallId, i64)> {
    let mut found: Vec<(CallId, i64)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for call in calls_of(calls, frame) {
        while open.pop_if(|&mut above| calls.paths.end(found[above].0) <= call).is_some() {}
        let total = calls.total_weight(call);
        if let Some(&above) = open.last() {
            found[above].1 = found[above].1.saturating_sub(total);
        }
        open.push(found.len());
        found.push((call, total));
    }
    found.retain(|&(_, weight)| weight != 0);
    found
}
