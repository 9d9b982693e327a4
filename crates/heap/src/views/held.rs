//! The dominator tree from the view of a program: the engine's parts of objects and arrays are skipped.

use serde::Serialize;

use super::Heap;
use super::fields::is_part;
use crate::sink::NodeId;

/// The maximum number of parts of one value that are expanded.
const MOST_PARTS: usize = 8;

/// A value that a node alone holds: it would be freed with the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldValue {
    /// The dominated node.
    #[serde(rename = "top_node_id")]
    pub top: NodeId,
    /// The value in it, behind engine nodes; often the same node.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The retained size in bytes.
    pub retained_bytes: u64,
}

impl Heap<'_> {
    /// The values that `node` alone holds, at most `limit`, the largest retained size first, and the number of all; for
    /// `None`, the values that no node alone holds. Nodes that only connect an owner with its value are skipped.
    #[must_use]
    pub fn held(&self, node: Option<NodeId>, limit: usize) -> (Vec<HeldValue>, usize) {
        let (dominated, retention) = (self.dominated(), self.retention());
        let mut parts = vec![node];
        let mut found: Vec<NodeId> = Vec::new();
        let (mut count, mut next) = (0, 0);
        while let Some(&part) = parts.get(next) {
            next += 1;
            let below = dominated.dominated(retention, part);
            count += below.len();
            // The largest of each part are enough, and the parts themselves are among the largest.
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

    fn as_held(&self, top: NodeId) -> HeldValue {
        let retention = self.retention();
        let value = self.value(top);
        // A value that others hold too does not replace the node.
        let is_held = retention.dominator(value) == Some(retention.representative(top));
        let node = if value == top || is_held { value } else { top };
        HeldValue { top, node, retained_bytes: retention.retained(top) }
    }
}
