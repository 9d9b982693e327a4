//! The graph under construction: writes nodes, edges and locations to the sink, each node once.

use borehole_heap::{Edge, HeapSink, LocationType, MemoryLocation, NodeId, NodeType, Region, StringId};
use borehole_text::IntegerDigits;

use super::limits::WalkBudget;
use super::seen::{BlockSpot, SeenNodes};
use super::stacks::VmStacks;
use super::task::NodeLink;
use crate::heap::accounting::Accounting;
use crate::heap::blocks::HeapBlocks;
use crate::heap::view::DumpView;

/// Writes the graph of one heap, and keeps account of what it contains.
pub(crate) struct GraphWriter<'d, S> {
    pub(crate) sink: &'d mut S,
    /// The nodes written so far, by address.
    pub(super) seen: SeenNodes,
    /// The blocks reached, and the sizes of the locations written.
    pub(crate) account: Accounting<'d>,
    /// The VM stacks, with the locations on them.
    pub(super) stacks: VmStacks,
    /// The output that is still allowed.
    pub(super) limits: WalkBudget,
}

/// A location without its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) location_type: LocationType,
    pub(crate) size: u64,
    pub(crate) class: Option<StringId>,
    pub(crate) string: Option<StringId>,
    /// The reference count and the flags, if it has them.
    pub(crate) counted: Option<(u32, u32)>,
}

impl Extent {
    pub(crate) const fn new(location_type: LocationType, size: u64) -> Self {
        Self { location_type, size, class: None, string: None, counted: None }
    }
}

impl<'d, S: HeapSink> GraphWriter<'d, S> {
    pub(super) fn new(view: DumpView<'d>, blocks: &'d HeapBlocks, sink: &'d mut S) -> Self {
        let held_bytes = view.dump.held_bytes();
        Self {
            sink,
            seen: SeenNodes::new(blocks, held_bytes),
            account: Accounting::new(blocks),
            stacks: VmStacks::of(view, blocks),
            limits: WalkBudget::of(held_bytes),
        }
    }

    #[inline]
    fn spot(&self, address: u64) -> BlockSpot {
        BlockSpot { address, block: self.account.blocks.find(address) }
    }

    #[inline]
    pub(super) fn node(&mut self, node_type: NodeType, link: NodeLink) -> NodeId {
        self.limits.nodes_left = self.limits.nodes_left.saturating_sub(1);
        let child = self.sink.node(node_type);
        self.edge(link, child, true);
        child
    }

    #[inline]
    pub(super) fn node_at(&mut self, node_type: NodeType, link: NodeLink, spot: &BlockSpot) -> NodeId {
        let node = self.node(node_type, link);
        self.seen.insert(spot, node);
        node
    }

    #[inline]
    pub(super) fn edge(&mut self, link: NodeLink, child: NodeId, is_tree: bool) {
        let NodeLink { parent, name, strength } = link;
        self.sink.edge(Edge { parent, child, link: name, is_tree, strength });
    }

    /// Adds an edge to the existing node for `spot`; `false` if there is none.
    #[inline]
    pub(super) fn again(&mut self, spot: &BlockSpot, link: NodeLink) -> bool {
        let Some(node) = self.seen.node(spot) else { return false };
        self.limits.meet(1);
        self.edge(link, node, false);
        true
    }

    /// Adds a node for what is at `address`; `None` if it has one already, which then gets another edge.
    #[inline]
    pub(super) fn enter(
        &mut self,
        node_type: NodeType,
        link: NodeLink,
        address: u64,
    ) -> Option<(NodeId, BlockSpot)> {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return None;
        }
        Some((self.node_at(node_type, link, &spot), spot))
    }

    pub(super) fn once(
        &mut self,
        link: NodeLink,
        node_type: NodeType,
        address: u64,
        extent: Extent,
    ) -> Option<NodeId> {
        let (node, spot) = self.enter(node_type, link, address)?;
        self.locate(node, &spot, extent);
        Some(node)
    }

    /// Adds a location of `node`. If it begins the block, the rest of the block is its overhead.
    pub(super) fn locate(&mut self, node: NodeId, spot: &BlockSpot, extent: Extent) {
        let own = spot.block.filter(|block| block.address == spot.address);
        let overhead = own.map_or(0, |block| block.bytes.saturating_sub(extent.size));
        self.locate_within(node, spot, extent, overhead);
    }

    /// Like [`Self::locate`], with known overhead. What takes no memory has no location: its address may be that of the next thing.
    #[inline]
    pub(super) fn locate_within(&mut self, node: NodeId, spot: &BlockSpot, extent: Extent, overhead: u64) {
        let Extent { location_type, size, class, string, counted } = extent;
        if let Some(block) = &spot.block {
            self.account.reach(block);
            if block.region == Region::VM_STACK {
                self.stacks.take(spot.address, size);
            }
        }
        if size == 0 && overhead == 0 {
            return;
        }
        let location = MemoryLocation {
            location_type,
            address: spot.address,
            size,
            bin_overhead: u32::try_from(overhead).unwrap_or(u32::MAX),
            class,
            string,
            refcount: counted.map(|(count, _)| count),
            type_info: counted.map(|(_, flags)| flags),
            region: spot.block.map(|block| block.region),
        };
        self.account.locate(&location, spot.block.as_ref());
        self.sink.location(node, &location);
    }

    /// Adds a location at `address`, unless it is null or has a node already.
    pub(super) fn locate_once(&mut self, node: NodeId, address: u64, extent: Extent) {
        let spot = self.spot(address);
        if address != 0 && extent.size != 0 && self.seen.node(&spot).is_none() {
            self.seen.insert(&spot, node);
            self.locate(node, &spot, extent);
        }
    }

    pub(crate) fn name(&mut self, name: &str) -> StringId {
        self.sink.string(name.as_bytes())
    }

    #[inline]
    pub(crate) fn number(&mut self, number: i64) -> StringId {
        self.sink.string(IntegerDigits::of(number).text())
    }
}
