//! The bytes of PHP's own memory that nodes represent.

use hashbrown::HashSet;

use super::merged::MergedNodes;
use crate::graph::{Graph, locations};
use crate::names::LocationType;
use crate::sink::{MemoryLocation, NodeId};

/// The memory to count.
#[derive(Clone, Copy, Debug)]
pub(super) enum CountedMemory {
    /// PHP's own memory.
    Own,
    /// All memory, if the graph does not state which is PHP's own, as in reli's JSON.
    All,
}

impl CountedMemory {
    pub(super) fn of(graph: &impl Graph) -> Self {
        let is_known = (0..graph.counts().locations).any(|row| graph.location(row).region.is_some());
        if is_known { Self::Own } else { Self::All }
    }

    pub(super) fn counts(self, location: &MemoryLocation) -> bool {
        matches!(self, Self::All) || location.region.is_some()
    }

    fn bytes(self, location: &MemoryLocation) -> u64 {
        if self.counts(location) { location.size.saturating_add(u64::from(location.bin_overhead)) } else { 0 }
    }

    /// The bytes of the blocks of `node`.
    pub(super) fn of_node(self, graph: &impl Graph, node: NodeId) -> u64 {
        let locations = locations(graph, node);
        locations.fold(0, |sum, location| sum.saturating_add(self.bytes(&location)))
    }
}

/// The shallow sizes of `count` vertices in bytes, counting shared memory of merged nodes once.
pub(super) fn shallow(
    graph: &impl Graph,
    counted: CountedMemory,
    merged: &MergedNodes,
    vertices: &[u32],
    count: usize,
) -> Vec<u64> {
    let mut bytes = vec![0_u64; count];
    let mut shared: HashSet<(u64, LocationType)> = HashSet::new();
    for row in 0..graph.counts().locations {
        let node = graph.location_node(row).0;
        let representative = merged.representative(node);
        let vertex = vertices.get(representative as usize).copied().unwrap_or_default();
        if vertex == 0 {
            continue;
        }
        let location = graph.location(row);
        if merged.contains(node) && !shared.insert((location.address, location.location_type)) {
            continue;
        }
        let sum = &mut bytes[vertex as usize];
        *sum = sum.saturating_add(counted.bytes(&location));
    }
    bytes
}
