//! The dominator tree reduced to a size that can be shown as a whole: similar nodes are one block.

use std::collections::BinaryHeap;

use hashbrown::HashMap;

use serde::Serialize;

use super::{Brief, Heap, HeldValue, NodeKind};
use crate::largest::sort_largest_first;
use crate::names::NodeType;
use crate::serialized;
use crate::sink::NodeId;

/// The limits of a tree of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLimits {
    /// The maximum number of blocks.
    pub blocks: usize,
    /// The maximum number of blocks below one block.
    pub beside: usize,
    /// The maximum depth.
    pub depth: usize,
    /// Nodes whose retained size is less than one part in this many are combined with others.
    pub parts: u64,
}

impl Default for BlockLimits {
    /// The limits for a page.
    fn default() -> Self {
        Self { blocks: 20_000, beside: 60, depth: 80, parts: 10_000 }
    }
}

/// Similar nodes below the same block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DominatorBlock {
    /// The index of the block that alone holds it; `None`: no single block does.
    pub above: Option<usize>,
    /// The index of its name; `None`: other nodes that are too small to be separate.
    pub name: Option<usize>,
    /// The number of nodes.
    pub count: u64,
    /// Their retained size in bytes.
    pub retained_bytes: u64,
}

/// The whole heap as blocks, each after the one above it.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{retention::Follow, views::{BlockLimits, DominatorBlocks, Heap}};

let blocks = DominatorBlocks::of(&Heap::new(&graph, Follow::default()), BlockLimits::default());
assert!(blocks.blocks.iter().any(|block| block.retained_bytes > 4096));"#
)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DominatorBlocks {
    /// The blocks.
    pub blocks: Vec<DominatorBlock>,
    /// Their names: classes, or what a program knows the nodes by.
    #[serde(serialize_with = "serialized::texts")]
    pub names: Vec<Vec<u8>>,
}

/// The nodes of a block to be expanded, ordered by size.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingBlock {
    retained_bytes: u64,
    /// Of equal sizes, the first block comes first.
    block: std::cmp::Reverse<usize>,
    depth: usize,
    nodes: Vec<NodeId>,
}

/// Similar nodes.
#[derive(Default)]
struct Alike {
    nodes: Vec<NodeId>,
    retained_bytes: u64,
}

struct Maker<'h> {
    heap: &'h Heap<'h>,
    limits: BlockLimits,
    least_bytes: u64,
    made: DominatorBlocks,
    names: HashMap<Vec<u8>, usize>,
    waiting: BinaryHeap<WaitingBlock>,
}

impl DominatorBlocks {
    /// Creates the blocks of a heap.
    #[must_use]
    pub fn of(heap: &Heap<'_>, limits: BlockLimits) -> Self {
        let least_bytes = (heap.retention().total() / limits.parts.max(1)).max(1);
        let mut maker = Maker {
            heap,
            limits,
            least_bytes,
            made: Self::default(),
            names: HashMap::new(),
            waiting: BinaryHeap::new(),
        };
        let top = heap.held(None, usize::MAX).0;
        maker.add(None, 0, &top);
        while let Some(next) = maker.waiting.pop() {
            if maker.made.blocks.len() >= limits.blocks {
                break;
            }
            maker.look_into(next);
        }
        maker.made
    }
}

impl Maker<'_> {
    /// Expands a block into blocks of what its nodes hold. Held nodes of the block's own kind belong to the same block,
    /// so that the depth does not grow with the length of a list.
    fn look_into(&mut self, block: WaitingBlock) {
        let name = self.made.blocks[block.block.0].name;
        let own_name = name.and_then(|name| self.made.names.get(name)).cloned();
        let (mut nodes, mut below, mut more) = (block.nodes, Vec::new(), 0);
        while let Some(node) = nodes.pop() {
            for held in self.heap.held(Some(node), usize::MAX).0 {
                let is_alike = self.heap.class(held.node).is_some() && Some(self.name_of(&held)) == own_name;
                if is_alike {
                    more += 1;
                    nodes.push(held.node);
                } else {
                    below.push(held);
                }
            }
        }
        self.made.blocks[block.block.0].count += more;
        self.add(Some(block.block.0), block.depth + 1, &below);
    }

    /// Adds blocks below another one: the largest groups, and one block of all others.
    fn add(&mut self, above: Option<usize>, depth: usize, below: &[HeldValue]) {
        let mut alike: HashMap<Vec<u8>, Alike> = HashMap::new();
        for held in below {
            let entry = alike.entry(self.name_of(held)).or_default();
            entry.nodes.push(held.node);
            entry.retained_bytes = entry.retained_bytes.saturating_add(held.retained_bytes);
        }
        let mut alike: Vec<(Vec<u8>, Alike)> = alike.into_iter().collect();
        sort_largest_first(&mut alike, |(_, alike)| alike.retained_bytes, |(name, _)| name);
        let is_shown = |alike: &Alike| alike.retained_bytes >= self.least_bytes;
        let shown = alike.iter().take(self.limits.beside).take_while(|(_, alike)| is_shown(alike)).count();
        let others = alike.split_off(shown);
        for (name, alike) in alike {
            self.push(above, depth, name, alike);
        }
        let count = others.iter().map(|(_, alike)| alike.nodes.len() as u64).sum();
        if count > 0 {
            let retained_bytes =
                others.iter().fold(0, |sum: u64, (_, alike)| sum.saturating_add(alike.retained_bytes));
            self.made.blocks.push(DominatorBlock { above, name: None, count, retained_bytes });
        }
    }

    fn push(&mut self, above: Option<usize>, depth: usize, name: Vec<u8>, alike: Alike) {
        let next = self.made.names.len();
        let name = *self.names.entry(name).or_insert_with_key(|name| {
            self.made.names.push(name.clone());
            next
        });
        let block = self.made.blocks.len();
        let (count, retained_bytes) = (alike.nodes.len() as u64, alike.retained_bytes);
        self.made.blocks.push(DominatorBlock { above, name: Some(name), count, retained_bytes });
        if depth < self.limits.depth {
            let block = std::cmp::Reverse(block);
            self.waiting.push(WaitingBlock { retained_bytes, block, depth, nodes: alike.nodes });
        }
    }

    /// The name by which nodes are similar: the class, or what a program knows them by.
    fn name_of(&self, held: &HeldValue) -> Vec<u8> {
        let heap = self.heap;
        let Brief { kind, text, .. } = heap.named(held.node);
        let what: &[u8] = match kind {
            NodeKind::Object | NodeKind::Other => return text,
            NodeKind::Array => b"array",
            NodeKind::String => b"string",
            NodeKind::Scalar => b"scalar",
        };
        let is_element = heap.graph().node_type(held.top) == NodeType::ARRAY_ELEMENT;
        let name = if is_element { b"[]".to_vec() } else { heap.name(held.top) };
        [what, b" ", &name].concat()
    }
}
