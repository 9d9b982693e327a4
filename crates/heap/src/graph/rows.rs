//! Finds the rows of a node in a table sorted by node, from the first row of every 64th node.

use std::ops::Range;

/// The number of nodes per entry: the index stays small, and the remaining search short.
pub(crate) const STRIDE: u32 = 64;

/// The first row of every 64th node, and the number of rows as the last entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeRows {
    starts: Vec<u32>,
}

impl NodeRows {
    /// Builds the index of rows whose ascending nodes are `nodes`, for `node_count` nodes.
    pub(crate) fn of(nodes: impl Iterator<Item = u32>, node_count: usize) -> Self {
        let mut starts = Vec::with_capacity(node_count / STRIDE as usize + 2);
        let mut row = 0_u32;
        for node in nodes {
            while starts.len() <= (node / STRIDE) as usize {
                starts.push(row);
            }
            row = row.saturating_add(1);
        }
        while starts.len() < node_count.div_ceil(STRIDE as usize) + 1 {
            starts.push(row);
        }
        Self { starts }
    }

    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    pub(crate) fn row_count(&self) -> usize {
        self.starts.last().map_or(0, |&count| count as usize)
    }

    /// The rows of `node`, given the node of each row.
    pub(crate) fn range(&self, node: u32, node_of: impl Fn(usize) -> u32) -> Range<usize> {
        let entry = (node / STRIDE) as usize;
        let start = |entry: usize| self.starts.get(entry).map(|&row| row as usize);
        match (start(entry), start(entry + 1)) {
            (Some(first), Some(end)) => range_within(first..end, node, node_of),
            _ => 0..0,
        }
    }
}

/// The rows of `node` within `rows`, which are sorted by node.
///
/// If they are not sorted, some of the rows.
pub(crate) fn range_within(rows: Range<usize>, node: u32, node_of: impl Fn(usize) -> u32) -> Range<usize> {
    let first = partition_point(rows.clone(), |row| node_of(row) < node);
    // Most nodes have one or two rows.
    let mut end = first;
    while end < rows.end && end < first + 4 && node_of(end) == node {
        end += 1;
    }
    if end == first + 4 {
        end = partition_point(end..rows.end, |row| node_of(row) <= node);
    }
    first..end
}

fn partition_point(rows: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (rows.start, rows.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_its_rows() {
        let nodes: Vec<u32> = [0, 0, 63, 64, 64, 64, 64, 64, 64, 200, 511].into();
        let rows = NodeRows::of(nodes.iter().copied(), 512);
        for node in 0..513 {
            let range = rows.range(node, |row| nodes[row]);
            let expected = nodes.iter().filter(|&&other| other == node).count();
            assert_eq!(range.len(), expected, "{node}");
            assert!(nodes[range].iter().all(|&other| other == node));
        }
        assert_eq!(NodeRows::of(std::iter::empty(), 0).range(0, |_| 0), 0..0);
    }
}
