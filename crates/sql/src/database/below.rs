//! Sums the sizes of nodes by their place in the tree.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Database;
use crate::backend::{ResultField, ResultRows};
use crate::error::Error;
use crate::paths::{NodePaths, TreePlace};
use crate::queries::Parameters;

/// The maximum number of depths, and of children of roots, returned.
const MOST_DEPTHS: usize = 30;
const MOST_BRANCHES: usize = 15;

/// The number of nodes in a group, and their bytes.
#[derive(Clone, Copy, Default)]
struct NodeSum {
    nodes: i64,
    bytes: i64,
}

impl Database {
    /// Sums the sizes of nodes by their distance from the roots.
    pub(super) fn depths(&mut self, asked: Parameters, rows: &mut dyn ResultRows) -> Result<(), Error> {
        let paths = self.asked_paths(asked)?;
        let sums = self.sums(&paths, |place| place.depth as usize)?;
        rows.columns(&["depth", "nodes", "total_bytes"].map(str::to_owned))?;
        for (depth, sum) in sums.into_iter().take(MOST_DEPTHS) {
            let depth = i64::try_from(depth).unwrap_or(i64::MAX);
            rows.row(&[depth, sum.nodes, sum.bytes].map(ResultField::Integer))?;
        }
        Ok(())
    }

    /// Sums the sizes of nodes by root and by the child of the root that is their ancestor or themselves, the largest first.
    pub(super) fn branches(&mut self, asked: Parameters, rows: &mut dyn ResultRows) -> Result<(), Error> {
        let paths = self.asked_paths(asked)?;
        let mut named = BTreeMap::<_, NodeSum>::new();
        for (row, sum) in self.sums(&paths, |place| place.branch)? {
            named.entry(paths.branch_name(row)).or_default().add(sum);
        }
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_by_key(|(_, sum)| Reverse(sum.bytes));
        rows.columns(&["root", "branch", "nodes", "total_bytes"].map(str::to_owned))?;
        for ((root, branch), sum) in named.into_iter().take(MOST_BRANCHES) {
            let [root, branch] = [root, branch].map(|name| ResultField::Text(name.as_bytes()));
            rows.row(&[root, branch, ResultField::Integer(sum.nodes), ResultField::Integer(sum.bytes)])?;
        }
        Ok(())
    }

    fn asked_paths(&mut self, asked: Parameters) -> Result<NodePaths, Error> {
        let run = self.run(asked.run)?;
        self.paths(run)
    }

    /// The sums of the nodes that have a place, by group.
    fn sums(
        &mut self,
        paths: &NodePaths,
        group: impl Fn(&TreePlace) -> usize,
    ) -> Result<BTreeMap<usize, NodeSum>, Error> {
        let mut sums = BTreeMap::<usize, NodeSum>::new();
        let held = self.held(paths)?;
        for (place, bytes) in paths.places().iter().zip(held) {
            if let (Some(place), Some(bytes)) = (place, bytes) {
                sums.entry(group(place)).or_default().add(NodeSum { nodes: 1, bytes });
            }
        }
        Ok(sums)
    }

    /// The number of bytes of the node of each row; `None` if it has no place in memory.
    fn held(&mut self, paths: &NodePaths) -> Result<Vec<Option<i64>>, Error> {
        let dialect = self.dialect();
        let table = "context_node_locations";
        let statement = format!("SELECT node_id, size FROM {table} WHERE {}", dialect.rows_of_run(table));
        let (statement, numbers) = dialect.bind(&statement, Parameters::of_run(paths.run));
        let mut held = vec![None; paths.len()];
        self.backend.select(&statement, &numbers, &mut |fields| {
            let [node, size] = fields else { return Ok(()) };
            if let Some(row) = node.integer().and_then(|node| paths.row(node)) {
                let bytes: &mut i64 = held[row].get_or_insert_default();
                *bytes = bytes.saturating_add(size.integer().unwrap_or_default());
            }
            Ok(())
        })?;
        Ok(held)
    }
}

impl NodeSum {
    const fn add(&mut self, other: Self) {
        self.nodes += other.nodes;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
