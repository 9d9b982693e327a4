//! Finds the path from a root to a node.

use std::collections::HashMap;

use super::Database;
use crate::backend::{ResultField, ResultRows};
use crate::error::Error;
use crate::queries::Parameters;

/// The links of the tree above a node. `UNION` stops at a known link, because tree edges may form a cycle in databases
/// of other programs.
const ABOVE: &str = "\
    WITH RECURSIVE above(node_id, parent_node_id, link_name) AS ( \
      SELECT child_node_id, parent_node_id, link_name FROM context_edges \
      WHERE run_id = :run AND child_node_id = :node AND is_tree = 1 \
      UNION \
      SELECT edge.child_node_id, edge.parent_node_id, edge.link_name \
      FROM above CROSS JOIN context_edges edge \
      WHERE edge.run_id = :run AND edge.child_node_id = above.parent_node_id AND edge.is_tree = 1) \
    SELECT node_id, parent_node_id, link_name FROM above";

impl Database {
    /// Returns the links from a root to a node, one per row. If no root leads to the node, returns the links from where
    /// they begin, or from their cycle.
    pub(super) fn path(&mut self, asked: Parameters, rows: &mut dyn ResultRows) -> Result<(), Error> {
        let (statement, numbers) = self.dialect().bind(ABOVE, asked);
        let mut above = HashMap::new();
        self.backend.select(&statement, &numbers, &mut |fields| {
            let [node, parent, link] = fields else { return Ok(()) };
            if let Some(node) = node.integer() {
                above.entry(node).or_insert_with(|| (parent.integer(), link.text()));
            }
            Ok(())
        })?;
        let mut links = Vec::new();
        let mut next = asked.node;
        // Each link is used once, which ends a cycle.
        while let Some(link) = next.and_then(|node| above.remove(&node)) {
            next = link.0;
            links.push(link);
        }
        rows.columns(&["parent_node_id", "link_name"].map(str::to_owned))?;
        for (parent, link) in links.iter().rev() {
            let parent = parent.map_or(ResultField::Null, ResultField::Integer);
            rows.row(&[parent, ResultField::Text(link.as_bytes())])?;
        }
        Ok(())
    }
}
