//! The nodes that the walk has already added.

use borehole_heap::NodeId;
use hashbrown::HashMap;

use crate::heap::blocks::{HeapBlock, HeapBlocks};

/// An address, with the heap block that contains it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSpot {
    pub(crate) address: u64,
    pub(crate) block: Option<HeapBlock>,
}

impl BlockSpot {
    /// The number of the block, if the address is its start.
    fn own_block(&self) -> Option<usize> {
        let block = self.block.filter(|block| block.address == self.address)?;
        usize::try_from(block.index).ok()
    }
}

/// The node for each address. Lookup is by block, because nearly everything begins one.
#[derive(Clone, Debug)]
pub(crate) struct SeenNodes {
    /// The node, by the number of the block.
    by_block: Vec<u32>,
    by_address: HashMap<u64, NodeId>,
}

const NO_NODE: u32 = u32::MAX;

impl SeenNodes {
    /// Creates an empty set for `blocks`, of which `held_bytes` are in memory. A single page at the start of each chunk can
    /// claim that the chunk is full of blocks. If there are more blocks than words of memory, lookup is by address.
    pub(crate) fn new(blocks: &HeapBlocks, held_bytes: u64) -> Self {
        let places = Some(blocks.places()).filter(|&places| places as u64 <= held_bytes / 8);
        Self { by_block: vec![NO_NODE; places.unwrap_or_default()], by_address: HashMap::new() }
    }

    #[inline]
    pub(crate) fn node(&self, spot: &BlockSpot) -> Option<NodeId> {
        match spot.own_block().and_then(|index| self.by_block.get(index)) {
            Some(&node) => (node != NO_NODE).then_some(NodeId(node)),
            None => self.by_address.get(&spot.address).copied(),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, spot: &BlockSpot, node: NodeId) {
        match spot.own_block().and_then(|index| self.by_block.get_mut(index)) {
            Some(place) => *place = node.0,
            None => drop(self.by_address.insert(spot.address, node)),
        }
    }
}
