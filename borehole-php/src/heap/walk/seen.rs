//! What the walk has come to already.

use borehole_heap::NodeId;
use hashbrown::HashMap;

use crate::heap::blocks::{Block, Blocks};

/// An address, and the block of the heap that it lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) address: u64,
    pub(crate) block: Option<Block>,
}

impl Spot {
    /// The number of the block, if this is where it begins.
    fn own_block(&self) -> Option<usize> {
        let block = self.block.filter(|block| block.address == self.address)?;
        usize::try_from(block.index).ok()
    }
}

/// The node that stands for what is at an address: looked up by block, for nearly all that there is begins one.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The node by the number of the block.
    by_block: Vec<u32>,
    by_address: HashMap<u64, NodeId>,
}

const NO_NODE: u32 = u32::MAX;

impl Seen {
    /// For `blocks`, of which `held_bytes` are there. A page at the beginning of each chunk is enough to say that it is full of
    /// blocks: where these are more than the words that there are, they are looked up by address.
    pub(crate) fn new(blocks: &Blocks, held_bytes: u64) -> Self {
        let places = Some(blocks.places()).filter(|&places| places as u64 <= held_bytes / 8);
        Self { by_block: vec![NO_NODE; places.unwrap_or_default()], by_address: HashMap::new() }
    }

    /// The node at `spot`.
    #[inline]
    pub(crate) fn node(&self, spot: &Spot) -> Option<NodeId> {
        match spot.own_block().and_then(|index| self.by_block.get(index)) {
            Some(&node) => (node != NO_NODE).then_some(NodeId(node)),
            None => self.by_address.get(&spot.address).copied(),
        }
    }

    /// Says that `node` stands for what is at `spot`.
    #[inline]
    pub(crate) fn insert(&mut self, spot: &Spot, node: NodeId) {
        match spot.own_block().and_then(|index| self.by_block.get_mut(index)) {
            Some(place) => *place = node.0,
            None => drop(self.by_address.insert(spot.address, node)),
        }
    }
}
