//! The path from the root to each node, written out.

/// The paths of a run, which are written out when they are asked for: here is the tree that they are made of.
#[derive(Default)]
pub struct Paths {
    pub(crate) run: i64,
    /// The nodes in the order in which they were read, each after its parent where the walk numbered them so.
    nodes: Vec<Node>,
    /// The row of a node by its number; the largest number is none.
    rows: Vec<u32>,
}

struct Node {
    id: u32,
    parent: Option<u32>,
    link: Box<str>,
}

/// How much there is to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSizes {
    /// How many paths.
    pub nodes: u64,
    /// How long all of them are together, in bytes.
    pub bytes: u64,
    /// How long the names of all links are together, in bytes: what the compact form has.
    pub link_bytes: u64,
}

/// What stands between the links of a path.
const SEPARATOR: &str = " -> ";

const NONE: u32 = u32::MAX;

impl Paths {
    pub(crate) fn new(run: i64) -> Self {
        Self { run, ..Self::default() }
    }

    /// Adds the tree edge of node `id`. A second one of the same node is passed over.
    pub(crate) fn push(&mut self, id: u32, parent: Option<u32>, link: &str) {
        let place = id as usize;
        if self.rows.len() <= place {
            self.rows.resize(place + 1, NONE);
        }
        if self.rows[place] == NONE {
            self.rows[place] = u32::try_from(self.nodes.len()).expect("nodes have numbers of 32 bits");
            self.nodes.push(Node { id, parent, link: link.into() });
        }
    }

    /// The row of a node.
    fn row(&self, id: u32) -> Option<usize> {
        self.rows.get(id as usize).filter(|&&row| row != NONE).map(|&row| row as usize)
    }

    /// How much there is to write: of nodes that a root leads to.
    #[must_use]
    pub fn sizes(&self) -> PathSizes {
        let mut sizes = PathSizes::default();
        self.visit(&mut |_, path, _| {
            sizes.nodes += 1;
            sizes.bytes += path.len() as u64;
            Ok::<(), std::convert::Infallible>(())
        })
        .unwrap_or_else(|never| match never {});
        sizes.link_bytes = self.nodes.iter().map(|node| node.link.len() as u64).sum();
        sizes
    }

    /// Gives out the step to each node that a root leads to: the node, its parent, the name of the link and its depth.
    pub(crate) fn visit_steps<E>(
        &self,
        take: &mut impl FnMut(u32, Option<u32>, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let children = self.children();
        let mut open: Vec<(usize, u64)> = Vec::new();
        for root in (0..self.nodes.len()).filter(|&row| self.nodes[row].parent.is_none()) {
            open.push((root, 0));
            while let Some((row, depth)) = open.pop() {
                let node = &self.nodes[row];
                take(node.id, node.parent, &node.link, depth)?;
                open.extend(children.of(row).iter().rev().map(|&child| (child as usize, depth + 1)));
            }
        }
        Ok(())
    }

    /// Gives out each node with its path and its depth, parents before children.
    pub(crate) fn visit<E>(&self, take: &mut impl FnMut(u32, &str, u64) -> Result<(), E>) -> Result<(), E> {
        let children = self.children();
        let mut path = String::new();
        // A node to enter with the length of its parent's path and its depth.
        let mut open: Vec<(usize, usize, u64)> = Vec::new();
        for root in (0..self.nodes.len()).filter(|&row| self.nodes[row].parent.is_none()) {
            open.push((root, 0, 0));
            while let Some((row, above, depth)) = open.pop() {
                let node = &self.nodes[row];
                path.truncate(above);
                if depth > 0 {
                    path.push_str(SEPARATOR);
                }
                path.push_str(&node.link);
                take(node.id, &path, depth)?;
                let length = path.len();
                let below = children.of(row).iter().rev();
                open.extend(below.map(|&child| (child as usize, length, depth + 1)));
            }
        }
        Ok(())
    }

    /// The children of each row, by counting.
    fn children(&self) -> Children {
        let parents: Vec<_> = self.nodes.iter().map(|node| node.parent.and_then(|id| self.row(id))).collect();
        let mut starts = vec![0_u32; self.nodes.len() + 1];
        for parent in parents.iter().flatten() {
            starts[parent + 1] += 1;
        }
        for row in 1..starts.len() {
            starts[row] += starts[row - 1];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; parents.iter().flatten().count()];
        for (row, parent) in (0..).zip(&parents) {
            if let Some(parent) = *parent {
                rows[next[parent] as usize] = row;
                next[parent] += 1;
            }
        }
        Children { starts, rows }
    }
}

struct Children {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl Children {
    fn of(&self, row: usize) -> &[u32] {
        &self.rows[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_links_from_the_root() {
        let mut tree = Paths::default();
        tree.push(0, None, "call_frames");
        tree.push(1, Some(0), "0");
        tree.push(5, Some(1), "local_variables");
        tree.push(3, Some(0), "1");
        tree.push(4, None, "objects_store");
        // A node whose parent is missing, and a cycle, are in no path.
        tree.push(7, Some(99), "lost");
        tree.push(8, Some(9), "a");
        tree.push(9, Some(8), "b");
        let mut paths = Vec::new();
        tree.visit(&mut |node, path, depth| {
            paths.push((node, path.to_owned(), depth));
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected = [
            (0, "call_frames", 0),
            (1, "call_frames -> 0", 1),
            (5, "call_frames -> 0 -> local_variables", 2),
            (3, "call_frames -> 1", 1),
            (4, "objects_store", 0),
        ];
        assert_eq!(paths, expected.map(|(node, path, depth)| (node, path.to_owned(), depth)));
        let bytes: usize = expected.iter().map(|(_, path, _)| path.len()).sum();
        assert_eq!(
            tree.sizes(),
            PathSizes { nodes: 5, bytes: bytes as u64, link_bytes: 11 + 1 + 15 + 1 + 13 + 6 }
        );
    }
}
