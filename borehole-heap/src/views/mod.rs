//! What programs and people ask of a heap, as plain data.

mod classes;
mod cycles;
mod find;
mod node;
mod steps;

use std::cell::OnceCell;

use crate::graph::{Graph, Parents, TreeParents};
use crate::path;
use crate::retention::{DominatorTree, Follow, Retention};
use crate::sink::NodeId;

pub use classes::{ClassView, classes};
pub use cycles::{CycleView, cycles};
pub use find::{Needle, find};
pub use node::NodeView;
pub use steps::{Reference, Step};

/// A graph that is being asked. What many answers stand on is worked out when the first needs it, once.
pub struct Heap<'g, G: ?Sized> {
    graph: &'g G,
    follow: Follow,
    retention: OnceCell<Retention>,
    dominated: OnceCell<DominatorTree>,
    tree: OnceCell<TreeParents>,
    parents: OnceCell<Parents>,
}

impl<'g, G: Graph + ?Sized> Heap<'g, G> {
    /// Asks `graph`, whose nodes these references keep alive.
    #[must_use]
    pub fn new(graph: &'g G, follow: Follow) -> Self {
        let (retention, dominated) = (OnceCell::new(), OnceCell::new());
        Self { graph, follow, retention, dominated, tree: OnceCell::new(), parents: OnceCell::new() }
    }

    /// The graph.
    #[must_use]
    pub const fn graph(&self) -> &'g G {
        self.graph
    }

    /// Which references keep nodes alive.
    #[must_use]
    pub const fn follow(&self) -> Follow {
        self.follow
    }

    /// What each node retains.
    pub fn retention(&self) -> &Retention {
        self.retention.get_or_init(|| Retention::of(&self.graph, self.follow))
    }

    /// What each node dominates.
    pub fn dominated(&self) -> &DominatorTree {
        self.dominated.get_or_init(|| DominatorTree::of(self.retention()))
    }

    /// By which reference the walk came to each node.
    pub fn tree(&self) -> &TreeParents {
        self.tree.get_or_init(|| TreeParents::of(&self.graph))
    }

    /// Every reference to each node.
    pub fn parents(&self) -> &Parents {
        self.parents.get_or_init(|| Parents::of(&self.graph))
    }

    /// Where a node hangs, in PHP's syntax.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<u8> {
        path::path(&self.graph, self.tree(), node)
    }
}
