//! Finds the shortest path to each node.

use std::collections::VecDeque;

use super::Follow;
use crate::graph::Graph;
use crate::sink::NodeId;

/// The row of a node that is not reached.
const UNREACHED: u32 = u32::MAX;

/// A shortest path from the roots to each node.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::{Follow, ShortestPaths};

let paths = ShortestPaths::of(&graph, Follow::default());
assert_eq!(paths.rows(string).len(), 2, "a reference to the object, and one to the string");"#
)]
#[derive(Debug)]
pub struct ShortestPaths {
    /// The previous node on the path, the maximum if there is none, and the row of the reference from it.
    steps: Vec<(u32, u32)>,
}

impl ShortestPaths {
    /// Finds the paths to all reached nodes of `graph`.
    #[must_use]
    pub fn of(graph: &impl Graph, follow: Follow) -> Self {
        let mut steps = vec![(u32::MAX, UNREACHED); graph.counts().nodes];
        let mut ahead: VecDeque<Option<NodeId>> = VecDeque::from([None]);
        while let Some(parent) = ahead.pop_front() {
            for row in graph.children(parent) {
                let Some(child) = graph.child(row).filter(|child| follow.follows(child.strength)) else {
                    continue;
                };
                let step = &mut steps[child.node.0 as usize];
                if step.1 == UNREACHED {
                    *step = (
                        parent.map_or(u32::MAX, |parent| parent.0),
                        u32::try_from(row).unwrap_or(UNREACHED - 1),
                    );
                    ahead.push_back(Some(child.node));
                }
            }
        }
        Self { steps }
    }

    /// The rows of references from a root to `node`; empty if it is not reached.
    #[must_use]
    pub fn rows(&self, node: NodeId) -> Vec<usize> {
        let mut rows = Vec::new();
        let mut next = Some(node.0);
        while let Some(&(parent, row)) = next.and_then(|node| self.steps.get(node as usize)) {
            if row == UNREACHED {
                return Vec::new();
            }
            rows.push(row as usize);
            next = (parent != u32::MAX).then_some(parent);
        }
        rows.reverse();
        rows
    }
}
