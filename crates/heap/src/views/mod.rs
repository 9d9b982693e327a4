//! Queries on a heap, with plain data as results.

mod blocks;
mod brief;
mod classes;
mod cycles;
mod fields;
mod find;
mod held;
mod holders;
mod instances;
mod largest;
mod node;
mod outline;
mod page;
mod search;
mod steps;

use std::cell::OnceCell;

use crate::graph::{Graph, Parents, TreeParents};
use crate::path;
use crate::retention::{DominatorTree, Follow, Retention};
use crate::sink::{NodeId, StringId};

pub use blocks::{BlockLimits, DominatorBlock, DominatorBlocks};
pub use brief::{Brief, NodeKind};
pub use classes::{ClassView, classes};
pub use cycles::{CycleView, cycles};
pub use fields::{NodeField, NodeFields};
pub use find::{Needle, find};
pub use held::HeldValue;
pub use holders::ValueHolder;
pub use instances::Instances;
pub use largest::largest;
pub use node::NodeView;
pub use outline::HeapOutline;
pub use page::HeapPage;
pub use search::{NodeSearch, SearchTarget};
pub use steps::{NodeReference, PathStep};

/// A graph with the analyses that its queries need. Each analysis is computed once, when the first query needs it.
pub struct Heap<'g> {
    graph: &'g dyn Graph,
    follow: Follow,
    retention: OnceCell<Retention>,
    dominated: OnceCell<DominatorTree>,
    tree: OnceCell<TreeParents>,
    parents: OnceCell<Parents>,
    classes: OnceCell<Vec<u32>>,
}

/// The maximum number of steps up from a node that are followed for a displayed path.
const NEAR: usize = 500;

impl<'g> Heap<'g> {
    /// Creates a heap of `graph`; `follow` are the references that keep nodes alive.
    #[must_use]
    pub fn new(graph: &'g dyn Graph, follow: Follow) -> Self {
        Self {
            graph,
            follow,
            retention: OnceCell::new(),
            dominated: OnceCell::new(),
            tree: OnceCell::new(),
            parents: OnceCell::new(),
            classes: OnceCell::new(),
        }
    }

    /// The graph.
    #[must_use]
    pub const fn graph(&self) -> &'g dyn Graph {
        self.graph
    }

    /// The references that keep nodes alive.
    #[must_use]
    pub const fn follow(&self) -> Follow {
        self.follow
    }

    /// The retention of each node.
    pub fn retention(&self) -> &Retention {
        self.retention.get_or_init(|| Retention::of(&self.graph, self.follow))
    }

    /// The dominator tree.
    pub fn dominated(&self) -> &DominatorTree {
        self.dominated.get_or_init(|| DominatorTree::of(self.retention()))
    }

    /// The tree reference to each node.
    pub fn tree(&self) -> &TreeParents {
        self.tree.get_or_init(|| TreeParents::of(&self.graph))
    }

    /// All references to each node.
    pub fn parents(&self) -> &Parents {
        self.parents.get_or_init(|| Parents::of(&self.graph))
    }

    /// The class of each node; the maximum for nodes that are not objects.
    fn class_numbers(&self) -> &[u32] {
        self.classes.get_or_init(|| {
            let counts = self.graph.counts();
            let mut classes = vec![u32::MAX; counts.nodes];
            for row in (0..counts.locations).rev() {
                if let Some(class) = self.graph.location(row).class
                    && let Some(entry) = classes.get_mut(self.graph.location_node(row).0 as usize)
                {
                    *entry = class.0;
                }
            }
            classes
        })
    }

    /// The class of an object.
    #[must_use]
    pub fn class(&self, node: NodeId) -> Option<StringId> {
        let class = self.class_numbers().get(node.0 as usize).copied();
        class.filter(|&class| class != u32::MAX).map(StringId)
    }

    /// The path of a node in PHP's syntax. For deep nodes, only the last steps after `...`, so that it is fast.
    #[must_use]
    pub fn near_path(&self, node: NodeId) -> Vec<u8> {
        path::near(&self.graph, self.tree(), node, NEAR)
    }

    /// The complete path of a node in PHP's syntax.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<u8> {
        path::path(&self.graph, self.tree(), node)
    }
}
