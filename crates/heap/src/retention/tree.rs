//! The nodes that each node immediately dominates.

use super::Retention;
use crate::sink::NodeId;

/// The dominator tree, from the top.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::{DominatorTree, Follow, Retention};

let retention = Retention::of(&graph, Follow::default());
let tree = DominatorTree::of(&retention);
assert_eq!(tree.dominated(&retention, Some(object)).collect::<Vec<_>>(), [string]);"#
)]
#[derive(Debug)]
pub struct DominatorTree {
    starts: Vec<u32>,
    /// The vertices that each vertex immediately dominates, the largest retained size first.
    dominated: Vec<u32>,
}

impl DominatorTree {
    /// Builds the tree of all reached nodes.
    #[must_use]
    pub fn of(retention: &Retention) -> Self {
        let count = retention.nodes.len();
        let mut starts = vec![0_u32; count + 1];
        for &dominator in retention.dominators.iter().skip(1) {
            starts[dominator as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut dominated = vec![0_u32; count.saturating_sub(1)];
        for vertex in (1..u32::try_from(count).unwrap_or(u32::MAX)).rev() {
            let start = &mut starts[retention.dominators[vertex as usize] as usize];
            *start -= 1;
            dominated[*start as usize] = vertex;
        }
        for vertex in 0..count {
            let range = starts[vertex] as usize..starts[vertex + 1] as usize;
            dominated[range].sort_by_key(|&one| std::cmp::Reverse(retention.retained[one as usize]));
        }
        Self { starts, dominated }
    }

    /// The nodes that `node` immediately dominates, the largest retained size first; for `None`, the nodes without a dominator.
    pub fn dominated<'a>(
        &'a self,
        retention: &'a Retention,
        node: Option<NodeId>,
    ) -> impl ExactSizeIterator<Item = NodeId> + 'a {
        let vertex = node.map_or(Some(0), |node| retention.vertex(node));
        let range =
            vertex.map_or(0..0, |vertex| self.starts[vertex] as usize..self.starts[vertex + 1] as usize);
        self.dominated[range].iter().map(|&vertex| NodeId(retention.nodes[vertex as usize]))
    }
}
