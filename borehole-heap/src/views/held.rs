//! The tree of dominators, as a program sees it: the engine's parts of objects and arrays are passed over.

use super::Heap;
use super::fields::is_part;
use crate::graph::Graph;
use crate::sink::NodeId;

/// So many parts of one thing are looked into at most.
const MOST_PARTS: usize = 8;

/// What a node holds, alone: it would be freed if that were gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// What is dominated.
    pub top: NodeId,
    /// The value in that, behind what the engine has between; often the same.
    pub node: NodeId,
    /// The bytes that would be freed with it.
    pub retained_bytes: u64,
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// What `node` holds alone, what retains most first, at most `limit` of it, and how much there is in all; of `None`, what
    /// nothing holds alone. A node that only stands between an owner and its value is passed over.
    #[must_use]
    pub fn held(&self, node: Option<NodeId>, limit: usize) -> (Vec<Held>, usize) {
        let (dominated, retention) = (self.dominated(), self.retention());
        let mut parts = vec![node];
        let mut found: Vec<NodeId> = Vec::new();
        let (mut count, mut next) = (0, 0);
        while let Some(&part) = parts.get(next) {
            next += 1;
            let below = dominated.dominated(retention, part);
            count += below.len();
            // Of each part the largest are enough, and the parts are among the largest.
            for one in below.take(limit.saturating_add(MOST_PARTS)) {
                let is_looked_into =
                    part.is_some() && parts.len() < MOST_PARTS && is_part(self.graph().node_type(one));
                if is_looked_into {
                    parts.push(Some(one));
                    count -= 1;
                } else {
                    found.push(one);
                }
            }
        }
        found.sort_by_key(|&one| std::cmp::Reverse(retention.retained(one)));
        found.truncate(limit);
        (found.into_iter().map(|top| self.as_held(top)).collect(), count)
    }

    fn as_held(&self, top: NodeId) -> Held {
        let retention = self.retention();
        let value = self.value(top);
        // What others hold as well is not shown in its place.
        let is_held = retention.dominator(value) == Some(retention.representative(top));
        let node = if value == top || is_held { value } else { top };
        Held { top, node, retained_bytes: retention.retained(top) }
    }
}
