//! Finds all paths from a root to a node.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::Database;
use crate::backend::{ResultField, ResultRows};
use crate::error::{Error, ErrorKind};
use crate::queries::Parameters;
use crate::schema::CONTEXT_EDGES;

/// The maximum number of paths returned.
const MOST_PATHS: usize = 100;

/// The maximum number of partial paths examined: a graph with cycles has too many to examine all.
const MOST_WAYS: usize = 1_000_000;

/// The maximum number of steps examined to see whether a node is already on its path: paths may be long and many.
const MOST_STEPS: usize = 100_000_000;

/// The referrers of a node; one without a number is a root.
const REFERRERS: &str = "SELECT parent_node_id, link_name FROM context_edges \
                         WHERE run_id = :run AND child_node_id = :node";

/// A reference to a node: the number of the referrer, `None` for a root, and the name of the reference.
type Referrer = (Option<i64>, String);

/// A partial path that ends at the node, stored as its first step and the path after it.
#[derive(Clone, Copy)]
struct Way {
    /// The first node.
    node: i64,
    /// The index of the path after the first step, and the index of its referrer that this path begins at; `None` for a
    /// path without steps.
    rest: Option<(usize, usize)>,
}

/// The known partial paths, the shortest first, and the referrers of the nodes on them.
struct Ways {
    ways: Vec<Way>,
    /// The first nodes of the paths; all other nodes are on no path.
    nodes: HashSet<i64>,
    referrers: HashMap<i64, Vec<Referrer>>,
    steps_left: usize,
}

impl Database {
    /// Returns the paths from roots to a node that pass no node twice, the shortest first; none for a missing node.
    pub(super) fn all_paths(&mut self, asked: Parameters, rows: &mut dyn ResultRows) -> Result<(), Error> {
        rows.columns(&["path", "depth"].map(str::to_owned))?;
        let paths = match asked.node {
            Some(node) => self.shortest_paths(asked, node)?,
            None => Vec::new(),
        };
        for (path, depth) in paths {
            rows.row(&[ResultField::Text(path.as_bytes()), ResultField::Integer(depth)])?;
        }
        Ok(())
    }

    fn shortest_paths(&mut self, asked: Parameters, node: i64) -> Result<Vec<(String, i64)>, Error> {
        let referrers = format!("{REFERRERS}{}", self.written_order(&CONTEXT_EDGES)?);
        let mut known = Ways::to(node);
        let mut paths = Vec::new();
        let mut next = 0;
        while paths.len() < MOST_PATHS && next < known.ways.len() {
            let first = known.ways[next].node;
            if let Entry::Vacant(unknown) = known.referrers.entry(first) {
                let most = MOST_WAYS - known.ways.len();
                unknown.insert(self.referrers(
                    &referrers,
                    Parameters { node: Some(first), ..asked },
                    most,
                )?);
            }
            paths.extend(known.step(next));
            next += 1;
        }
        if paths.is_empty() && known.is_full() {
            let message = format!(
                "too many paths to the node: none of the first {} begins at a root; the named query `path` finds one that does",
                known.ways.len()
            );
            return Err(Error::new(ErrorKind::Statement, message));
        }
        paths.truncate(MOST_PATHS);
        Ok(paths)
    }

    /// The referrers of `node`: as many roots as can be returned, and as many nodes as can become partial paths.
    fn referrers(
        &mut self,
        statement: &str,
        asked: Parameters,
        most_nodes: usize,
    ) -> Result<Vec<Referrer>, Error> {
        let (statement, numbers) = self.dialect().bind(statement, asked);
        let mut found = Vec::new();
        let (mut roots_left, mut nodes_left) = (MOST_PATHS, most_nodes);
        self.backend.select(&statement, &numbers, &mut |fields| {
            let [parent, link] = fields else { return Ok(()) };
            let left = match parent {
                ResultField::Null => &mut roots_left,
                ResultField::Integer(_) => &mut nodes_left,
                ResultField::Real(_) | ResultField::Text(_) => return Ok(()),
            };
            if *left > 0 {
                *left -= 1;
                found.push((parent.integer(), link.text()));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl Ways {
    /// The path without steps, at a node.
    fn to(node: i64) -> Self {
        Self {
            ways: vec![Way { node, rest: None }],
            nodes: HashSet::from([node]),
            referrers: HashMap::new(),
            steps_left: MOST_STEPS,
        }
    }

    /// Whether the limit of partial paths is reached, so that some may be missing.
    const fn is_full(&self) -> bool {
        self.ways.len() >= MOST_WAYS || self.steps_left == 0
    }

    /// Extends the path at `at` by one step towards the roots. Returns the paths that now begin at a root, with their
    /// depths, and adds the other ones.
    fn step(&mut self, at: usize) -> Vec<(String, i64)> {
        let mut paths = Vec::new();
        let first = self.ways[at].node;
        for index in 0..self.referrers[&first].len() {
            match self.referrers[&first][index].0 {
                None => paths.push(self.path(at, index)),
                Some(parent) => self.add(parent, (at, index)),
            }
        }
        paths
    }

    /// Adds the path that begins at `node` and continues with `rest`, unless the node is already on it.
    fn add(&mut self, node: i64, rest: (usize, usize)) {
        if self.is_full() || self.is_on(node, rest.0) {
            return;
        }
        self.nodes.insert(node);
        self.ways.push(Way { node, rest: Some(rest) });
    }

    /// Whether `node` is on the path at `at`.
    fn is_on(&mut self, node: i64, at: usize) -> bool {
        if !self.nodes.contains(&node) {
            return false;
        }
        let mut steps = 0;
        let is_on = self.way(at).inspect(|_| steps += 1).any(|way| way.node == node);
        self.steps_left = self.steps_left.saturating_sub(steps);
        is_on
    }

    /// The path at `at`, and the rest of it after each step.
    fn way(&self, at: usize) -> impl Iterator<Item = Way> + '_ {
        std::iter::successors(Some(self.ways[at]), |way| way.rest.map(|(rest, _)| self.ways[rest]))
    }

    /// The link names from a root on, beginning with that of the referrer `index`, and the number of links after the first.
    fn path(&self, at: usize, index: usize) -> (String, i64) {
        let behind = self.way(at).filter_map(|way| way.rest);
        let links = [(at, index)].into_iter().chain(behind);
        let links: Vec<&str> =
            links.map(|(rest, index)| &*self.referrers[&self.ways[rest].node][index].1).collect();
        let depth = i64::try_from(links.len() - 1).unwrap_or(i64::MAX);
        (links.join(" -> "), depth)
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use borehole_heap::{Edge, GraphBuilder, HeapSink as _, NodeId, NodeType, Strength};
    use borehole_testkit::Scratch;

    use super::*;

    /// All partial paths to node 0 of a list in which each node refers to the previous one, and node 1 does so by this
    /// many links.
    fn of_list(nodes: i64, links: usize) -> Ways {
        let mut known = Ways::to(0);
        for node in 0..nodes {
            let count = if node == 0 { links } else { 1 };
            known.referrers.insert(node, vec![(Some(node + 1), "next".to_owned()); count]);
        }
        known.referrers.insert(nodes, Vec::new());
        let mut next = 0;
        while next < known.ways.len() {
            known.step(next);
            next += 1;
        }
        known
    }

    #[test]
    fn lists_cost_no_steps_and_endless_searches_stop() {
        let list = of_list(20_000, 1);
        assert_eq!((list.ways.len(), list.steps_left), (20_001, MOST_STEPS));
        // The second path uses the same nodes as the first, and passes none of them twice.
        let twice = of_list(1000, 2);
        assert_eq!((twice.ways.len(), MOST_STEPS - twice.steps_left), (2001, 500_500));
        let endless = of_list(20_000, 2);
        assert!(endless.is_full() && endless.ways.len() < 40_001, "{}", endless.ways.len());
    }

    #[test]
    fn referrers_are_limited_to_what_can_be_returned() {
        let mut builder = GraphBuilder::new();
        let link = builder.string(b"holds");
        let nodes: Vec<NodeId> = (0..300).map(|_| builder.node(NodeType::OBJECT)).collect();
        for &parent in &nodes[1..] {
            for (parent, child, is_tree) in [(None, parent, true), (Some(parent), nodes[0], parent.0 == 1)] {
                builder.edge(Edge { parent, child, link, is_tree, strength: Strength::Strong });
            }
        }
        for _ in 0..200 {
            let strength = Strength::Strong;
            builder.edge(Edge { parent: None, child: nodes[0], link, is_tree: false, strength });
        }
        let scratch = Scratch::new();
        let mut database = Database::create(&scratch.path("many.db")).unwrap();
        database.add_run(&builder.finish().unwrap(), "now").unwrap();
        let mut kept = |most_nodes| {
            let asked = Parameters { node: Some(0), ..Parameters::of_run(1) };
            let found = database.referrers(REFERRERS, asked, most_nodes).unwrap();
            let roots = found.iter().filter(|(parent, _)| parent.is_none()).count();
            (roots, found.len() - roots)
        };
        assert_eq!(kept(250), (MOST_PATHS, 250));
        assert_eq!(kept(0), (MOST_PATHS, 0), "roots are found even if no path can be added");
        assert_eq!(kept(MOST_WAYS), (MOST_PATHS, 299));
    }
}
