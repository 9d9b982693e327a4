//! Builds the path from the root to each node.

/// The tree of a run, from which paths are built on demand.
#[derive(Default)]
pub struct NodePaths {
    pub(crate) run: i64,
    /// In order of node numbers, which may be any numbers in databases of other programs. Databases store rows in this
    /// order, and accept them fastest in it.
    nodes: Vec<PathNode>,
    /// The names of all links, concatenated.
    links: String,
}

struct PathNode {
    id: i64,
    parent: Option<i64>,
    /// The start and end of the link's name.
    link: (usize, usize),
}

/// The amount of data to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSizes {
    /// The number of paths.
    pub nodes: u64,
    /// The total length of the paths in bytes.
    pub bytes: u64,
    /// The total length of the names of all links in bytes, which is the size of the compact form.
    pub link_bytes: u64,
}

/// The separator between the links of a path.
const SEPARATOR: &str = " -> ";

/// The place of a node that a root leads to.
#[derive(Clone, Copy)]
pub(crate) struct TreePlace {
    /// The number of links below its root.
    pub(crate) depth: u32,
    /// The row of the child of the root that is its ancestor or itself; for a root, its own row.
    pub(crate) branch: usize,
    /// The length of its path in bytes.
    bytes: u64,
}

impl NodePaths {
    pub(crate) fn new(run: i64) -> Self {
        Self { run, ..Self::default() }
    }

    /// Adds the tree edge of node `id`. Call [`Self::sort`] after the last one.
    pub(crate) fn push(&mut self, id: i64, parent: Option<i64>, link: &str) {
        let begin = self.links.len();
        self.links.push_str(link);
        self.nodes.push(PathNode { id, parent, link: (begin, self.links.len()) });
    }

    /// Sorts the nodes, which are nearly always in order already, and drops further edges of the same node.
    pub(crate) fn sort(&mut self) {
        if !self.nodes.is_sorted_by_key(|node| node.id) {
            self.nodes.sort_by_key(|node| node.id);
        }
        self.nodes.dedup_by_key(|node| node.id);
    }

    /// The number of rows.
    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The row of a node: at its number if there are no gaps, otherwise found by search.
    pub(crate) fn row(&self, id: i64) -> Option<usize> {
        let expected = usize::try_from(id.abs_diff(self.nodes.first()?.id));
        expected
            .ok()
            .filter(|&row| self.nodes.get(row).is_some_and(|node| node.id == id))
            .or_else(|| self.nodes.binary_search_by_key(&id, |node| node.id).ok())
    }

    fn link(&self, row: usize) -> &str {
        let (begin, end) = self.nodes[row].link;
        &self.links[begin..end]
    }

    /// The amount of data to write, for the nodes that a root leads to.
    #[must_use]
    pub fn sizes(&self) -> PathSizes {
        let links = self.nodes.iter().map(|node| (node.link.1 - node.link.0) as u64);
        let mut sizes = PathSizes { link_bytes: links.sum(), ..PathSizes::default() };
        for place in self.places().into_iter().flatten() {
            sizes.nodes += 1;
            sizes.bytes += place.bytes;
        }
        sizes
    }

    /// The place of each row that a root leads to. Follows parents up to a known place, and fills in the rows on the way.
    pub(crate) fn places(&self) -> Vec<Option<TreePlace>> {
        let mut places = vec![None; self.nodes.len()];
        let mut is_seen = vec![false; self.nodes.len()];
        let mut open = Vec::new();
        for start in 0..places.len() {
            let mut next = Some(start);
            // A row seen again before its place is known is on a cycle.
            while let Some(row) = next.filter(|&row| !std::mem::replace(&mut is_seen[row], true)) {
                open.push(row);
                next = self.nodes[row].parent.and_then(|parent| self.row(parent));
            }
            while let Some(row) = open.pop() {
                places[row] = self.place(row, &places);
            }
        }
        places
    }

    /// The place of a row whose parent's place is known.
    fn place(&self, row: usize, places: &[Option<TreePlace>]) -> Option<TreePlace> {
        let own = self.link(row).len() as u64;
        let Some(parent) = self.nodes[row].parent else {
            return Some(TreePlace { depth: 0, branch: row, bytes: own });
        };
        let above = places[self.row(parent)?]?;
        Some(TreePlace {
            depth: above.depth + 1,
            branch: if above.depth == 0 { row } else { above.branch },
            bytes: above.bytes + SEPARATOR.len() as u64 + own,
        })
    }

    /// The names of the links to the root of a row and to the root's child; the latter is empty for a root itself.
    pub(crate) fn branch_name(&self, row: usize) -> (&str, &str) {
        match self.nodes[row].parent.and_then(|root| self.row(root)) {
            Some(root) => (self.link(root), self.link(row)),
            None => (self.link(row), ""),
        }
    }

    /// Visits each node that a root leads to: the node, its parent, the name of the link and its depth.
    pub(crate) fn visit_steps<E>(
        &self,
        take: &mut impl FnMut(i64, Option<i64>, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        rooted(&self.places()).try_for_each(|(row, depth)| {
            let node = &self.nodes[row];
            take(node.id, node.parent, self.link(row), depth.into())
        })
    }

    /// Visits each node that a root leads to, with its path and its depth, in order of node numbers.
    pub(crate) fn visit<E>(&self, take: &mut impl FnMut(i64, &str, u64) -> Result<(), E>) -> Result<(), E> {
        let mut path = PathText::default();
        rooted(&self.places()).try_for_each(|(row, depth)| {
            path.lead_to(self, row, depth);
            take(self.nodes[row].id, &path.text, depth.into())
        })
    }
}

/// The rows that a root leads to, with their depths.
fn rooted(places: &[Option<TreePlace>]) -> impl Iterator<Item = (usize, u32)> {
    places.iter().enumerate().filter_map(|(row, place)| Some((row, (*place)?.depth)))
}

/// A path as text. It keeps the part that it has in common with the previous path.
#[derive(Default)]
struct PathText {
    text: String,
    /// The rows from the root on, each with the length of its path.
    rows: Vec<(usize, usize)>,
    /// The rows to add, the last one first.
    missing: Vec<usize>,
}

impl PathText {
    /// Changes it to the path of a row that a root leads to.
    fn lead_to(&mut self, paths: &NodePaths, row: usize, depth: u32) {
        let (mut depth, mut next) = (depth as usize, Some(row));
        // If both paths have the same row at a depth, they are equal above it.
        while let Some(row) = next.filter(|&row| self.rows.get(depth).is_none_or(|&(known, _)| known != row))
        {
            self.missing.push(row);
            next = paths.nodes[row].parent.and_then(|parent| paths.row(parent));
            depth = depth.wrapping_sub(1);
        }
        self.rows.truncate(if next.is_some() { depth + 1 } else { 0 });
        self.text.truncate(self.rows.last().map_or(0, |&(_, length)| length));
        while let Some(row) = self.missing.pop() {
            if !self.rows.is_empty() {
                self.text.push_str(SEPARATOR);
            }
            self.text.push_str(paths.link(row));
            self.rows.push((row, self.text.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_links_from_the_root() {
        let mut tree = NodePaths::default();
        tree.push(0, None, "call_frames");
        tree.push(1, Some(0), "0");
        tree.push(5, Some(1), "local_variables");
        tree.push(3, Some(0), "1");
        tree.push(4, None, "objects_store");
        tree.push(6, Some(4), "7");
        // Nodes with a missing parent, and nodes of a cycle, have no path.
        tree.push(7, Some(99), "lost");
        tree.push(8, Some(9), "a");
        tree.push(9, Some(8), "b");
        // Numbers may be any.
        tree.push(i64::MAX, Some(0), "2");
        tree.push(-1, Some(i64::MAX), "a");
        // The first edge of a node counts.
        tree.push(3, Some(4), "second");
        tree.sort();
        let mut paths = Vec::new();
        tree.visit(&mut |node, path, depth| {
            paths.push((node, path.to_owned(), depth));
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected = [
            (-1, "call_frames -> 2 -> a", 2),
            (0, "call_frames", 0),
            (1, "call_frames -> 0", 1),
            (3, "call_frames -> 1", 1),
            (4, "objects_store", 0),
            (5, "call_frames -> 0 -> local_variables", 2),
            (6, "objects_store -> 7", 1),
            (i64::MAX, "call_frames -> 2", 1),
        ];
        assert_eq!(paths, expected.map(|(node, path, depth)| (node, path.to_owned(), depth)));
        let bytes: usize = expected.iter().map(|(_, path, _)| path.len()).sum();
        assert_eq!(
            tree.sizes(),
            PathSizes { nodes: 8, bytes: bytes as u64, link_bytes: 11 + 1 + 15 + 1 + 13 + 1 + 6 + 2 }
        );
    }
}
