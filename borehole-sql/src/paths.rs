//! The path from the root to each node, written out.

/// The paths of a run, which are written out when they are asked for: here is the tree that they are made of.
#[derive(Default)]
pub struct Paths {
    pub(crate) run: i64,
    nodes: Vec<Node>,
    /// The names of all links, one after the other.
    links: String,
    /// The row of a node by its number; the largest number is none.
    rows: Vec<u32>,
}

struct Node {
    id: u32,
    parent: Option<u32>,
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

const NONE: u32 = u32::MAX;

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nobody has looked yet.
    Unknown,
    /// No root leads to it.
    Lost,
    /// So many links below its root, with so many bytes of path.
    At { depth: u32, bytes: u64 },
}

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
            let begin = self.links.len();
            self.links.push_str(link);
            self.nodes.push(Node { id, parent, link: (begin, self.links.len()) });
        }
    }

    /// The row of a node.
    fn row(&self, id: u32) -> Option<usize> {
        self.rows.get(id as usize).filter(|&&row| row != NONE).map(|&row| row as usize)
    }

    fn link(&self, row: usize) -> &str {
        let (begin, end) = self.nodes[row].link;
        &self.links[begin..end]
    }

    /// How much there is to write: of nodes that a root leads to.
    #[must_use]
    pub fn sizes(&self) -> PathSizes {
        let mut sizes = PathSizes { link_bytes: self.links.len() as u64, ..PathSizes::default() };
        for place in self.places() {
            if let Place::At { bytes, .. } = place {
                sizes.nodes += 1;
                sizes.bytes += bytes;
            }
        }
        sizes
    }

    /// Where each row stands: looks upwards until it is known, and keeps what it learned for the others.
    fn places(&self) -> Vec<Place> {
        let mut places = vec![Place::Unknown; self.nodes.len()];
        let mut open = Vec::new();
        for start in 0..places.len() {
            let mut next = Some(start);
            while let Some(row) = next.filter(|&row| places[row] == Place::Unknown) {
                // Who comes here again before it is known goes in a circle.
                places[row] = Place::Lost;
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
    fn place(&self, row: usize, places: &[Place]) -> Place {
        let own = self.link(row).len() as u64;
        let Some(parent) = self.nodes[row].parent else { return Place::At { depth: 0, bytes: own } };
        match self.row(parent).map(|above| places[above]) {
            Some(Place::At { depth, bytes }) => {
                Place::At { depth: depth + 1, bytes: bytes + SEPARATOR.len() as u64 + own }
            }
            _ => Place::Lost,
        }
    }

    /// The rows that a root leads to with their depths, in the order of the nodes' numbers: databases have them in that
    /// order, and take them fastest so.
    fn in_order<'p>(&'p self, places: &'p [Place]) -> impl Iterator<Item = (usize, u32)> + 'p {
        self.rows.iter().filter(|&&row| row != NONE).filter_map(|&row| match places[row as usize] {
            Place::At { depth, .. } => Some((row as usize, depth)),
            _ => None,
        })
    }

    /// Gives out the step to each node that a root leads to: the node, its parent, the name of the link and its depth.
    pub(crate) fn visit_steps<E>(
        &self,
        take: &mut impl FnMut(u32, Option<u32>, &str, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let places = self.places();
        self.in_order(&places).try_for_each(|(row, depth)| {
            let node = &self.nodes[row];
            take(node.id, node.parent, self.link(row), depth.into())
        })
    }

    /// Gives out each node that a root leads to with its path and its depth, in the order of their numbers.
    pub(crate) fn visit<E>(&self, take: &mut impl FnMut(u32, &str, u64) -> Result<(), E>) -> Result<(), E> {
        let places = self.places();
        let mut path = Path::default();
        self.in_order(&places).try_for_each(|(row, depth)| {
            path.lead_to(self, row, depth);
            take(self.nodes[row].id, &path.text, depth.into())
        })
    }
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
        let mut paths = Vec::new();
        tree.visit(&mut |node, path, depth| {
            paths.push((node, path.to_owned(), depth));
            Ok::<(), ()>(())
        })
        .unwrap();
        let expected = [
            (0, "call_frames", 0),
            (1, "call_frames -> 0", 1),
            (3, "call_frames -> 1", 1),
            (4, "objects_store", 0),
            (5, "call_frames -> 0 -> local_variables", 2),
            (6, "objects_store -> 7", 1),
        ];
        assert_eq!(paths, expected.map(|(node, path, depth)| (node, path.to_owned(), depth)));
        let bytes: usize = expected.iter().map(|(_, path, _)| path.len()).sum();
        assert_eq!(
            tree.sizes(),
            PathSizes { nodes: 6, bytes: bytes as u64, link_bytes: 11 + 1 + 15 + 1 + 13 + 1 + 6 }
        );
    }
}
