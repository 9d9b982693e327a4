//! The path from the root to each node, written out.

/// The paths of a run, which are written out when they are asked for: here is the tree that they are made of.
#[derive(Default)]
pub struct Paths {
    pub(crate) run: i64,
    /// In the order of their numbers, which may be any: somebody else may have written them. Databases have them in that order,
    /// and take them fastest so.
    nodes: Vec<Node>,
    /// The names of all links, one after the other.
    links: String,
}

struct Node {
    id: i64,
    parent: Option<i64>,
    /// Where the name of the link begins and ends.
    link: (usize, usize),
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

/// Where a node stands that a root leads to.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// So many links below its root.
    pub(crate) depth: u32,
    /// The row of the child of the root that it is, or is below; that of a root is its own.
    pub(crate) branch: usize,
    /// How long its path is.
    bytes: u64,
}

impl Paths {
    pub(crate) fn new(run: i64) -> Self {
        Self { run, ..Self::default() }
    }

    /// Adds the tree edge of node `id`. Behind the last one comes [`Self::sort`].
    pub(crate) fn push(&mut self, id: i64, parent: Option<i64>, link: &str) {
        let begin = self.links.len();
        self.links.push_str(link);
        self.nodes.push(Node { id, parent, link: (begin, self.links.len()) });
    }

    /// Puts the nodes in order, as they nearly always are, and passes over a second edge of the same node.
    pub(crate) fn sort(&mut self) {
        if !self.nodes.is_sorted_by_key(|node| node.id) {
            self.nodes.sort_by_key(|node| node.id);
        }
        self.nodes.dedup_by_key(|node| node.id);
    }

    /// How many rows there are.
    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The row of a node: where it is if the numbers before it have no gaps, or where it is looked for.
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

    /// How much there is to write: of nodes that a root leads to.
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

    /// Where each row stands, if a root leads to it: looks upwards until it is known, and keeps what it learned for the others.
    pub(crate) fn places(&self) -> Vec<Option<Place>> {
        let mut places = vec![None; self.nodes.len()];
        let mut is_seen = vec![false; self.nodes.len()];
        let mut open = Vec::new();
        for start in 0..places.len() {
            let mut next = Some(start);
            // Who comes to a row again before its place is known goes in a circle.
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

    /// Where a row stands whose parent's place is known.
    fn place(&self, row: usize, places: &[Option<Place>]) -> Option<Place> {
        let own = self.link(row).len() as u64;
        let Some(parent) = self.nodes[row].parent else {
            return Some(Place { depth: 0, branch: row, bytes: own });
        };
        let above = places[self.row(parent)?]?;
        Some(Place {
            depth: above.depth + 1,
            branch: if above.depth == 0 { row } else { above.branch },
            bytes: above.bytes + SEPARATOR.len() as u64 + own,
        })
    }

    /// The names of the links to the root and to the child of it in a row; that is empty for a root itself.
    pub(crate) fn branch_name(&self, row: usize) -> (&str, &str) {
        match self.nodes[row].parent.and_then(|root| self.row(root)) {
            Some(root) => (self.link(root), self.link(row)),
            None => (self.link(row), ""),
        }
    }

    /// Gives out the step to each node that a root leads to: the node, its parent, the name of the link and its depth.
    pub(crate) fn visit_steps<E>(
        &self,
        take: &mut impl FnMut(i64, Option<i64>, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        rooted(&self.places()).try_for_each(|(row, depth)| {
            let node = &self.nodes[row];
            take(node.id, node.parent, self.link(row), depth.into())
        })
    }

    /// Gives out each node that a root leads to with its path and its depth, in the order of their numbers.
    pub(crate) fn visit<E>(&self, take: &mut impl FnMut(i64, &str, u64) -> Result<(), E>) -> Result<(), E> {
        let mut path = Path::default();
        rooted(&self.places()).try_for_each(|(row, depth)| {
            path.lead_to(self, row, depth);
            take(self.nodes[row].id, &path.text, depth.into())
        })
    }
}

/// The rows that a root leads to, with their depths.
fn rooted(places: &[Option<Place>]) -> impl Iterator<Item = (usize, u32)> {
    places.iter().enumerate().filter_map(|(row, place)| Some((row, (*place)?.depth)))
}

/// A path that is written out. What one has in common with the one before it stays.
#[derive(Default)]
struct Path {
    text: String,
    /// The rows from the root on, each with the length of its path.
    rows: Vec<(usize, usize)>,
    /// The rows to be added, the last one first.
    missing: Vec<usize>,
}

impl Path {
    /// Makes it the path of a row, which a root leads to.
    fn lead_to(&mut self, paths: &Paths, row: usize, depth: u32) {
        let (mut depth, mut next) = (depth as usize, Some(row));
        // The row at a depth of both is the same: so is all above it.
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
        let mut tree = Paths::default();
        tree.push(0, None, "call_frames");
        tree.push(1, Some(0), "0");
        tree.push(5, Some(1), "local_variables");
        tree.push(3, Some(0), "1");
        tree.push(4, None, "objects_store");
        tree.push(6, Some(4), "7");
        // A node whose parent is missing, and a cycle, are in no path.
        tree.push(7, Some(99), "lost");
        tree.push(8, Some(9), "a");
        tree.push(9, Some(8), "b");
        // Numbers may be any.
        tree.push(i64::MAX, Some(0), "2");
        tree.push(-1, Some(i64::MAX), "a");
        // The first edge of a node is the one.
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
