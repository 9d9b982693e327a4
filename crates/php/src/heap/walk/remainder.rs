//! Values that the known roots do not lead to: garbage, values that only modules or the machine's stack refer to, and the rest.

use std::collections::BTreeMap;
use std::ops::Range;

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType, StringId};
use borehole_process::MemorySpan;

use crate::heap::allocator::{CHUNK_BYTES, HUGE_ENTRY_BYTES};
use crate::heap::blocks::HeapBlock;
use crate::heap::garbage::{self, Garbage};
use crate::heap::guess::{self, Guess};
use crate::heap::view::{DumpView, WritableRegion, writable_regions};
use crate::heap::walk::resources::CountedResource;
use crate::heap::walk::{Extent, HeapReader, HeapWalker, NodeLink, PendingScan, VisitKind};
use crate::remote::moved;

/// The size of the parts that are searched: that of a chunk of the heap, or the last part of a huge block.
const PART: u64 = CHUNK_BYTES;

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Adds garbage that has not been collected. The table of objects lists its objects, but holds none.
    ///
    /// Returns the objects that something else than what was found holds, with their handles.
    pub(crate) fn garbage(&mut self) -> Vec<(u32, u64)> {
        // It lists all objects, and holds none.
        if let Some(block) = self.heap.objects.and_then(|(first, _)| self.heap.blocks.at(first)) {
            self.graph.account.reach(&block);
        }
        let (heap, objects) = (self.heap, self.heap.stored_objects());
        let found = match heap.blocks.allocator() {
            Some(_) => {
                let (account, known) = (&self.graph.account, &self.pending.held_scans);
                garbage::find(heap.view, heap.layout, &heap.php.layout, account, objects, known)
            }
            None => self.garbage_on_trial(objects),
        };
        let Garbage { objects, values, held } = found;
        if objects.is_empty() && values.is_empty() {
            return held;
        }
        let addresses = objects.iter().map(|&(_, address)| address);
        self.garbage = addresses.chain(values.iter().map(|&(_, address)| address)).collect();
        let root = self.root_node("garbage", NodeType::GARBAGE);
        self.count_attribute(root, objects.len() as u64 + values.len() as u64);
        for (handle, address) in objects {
            let link = NodeLink::weak(root, self.graph.number(handle.into()));
            self.later(link, VisitKind::Object, address);
            self.run();
        }
        for (guess, address) in values {
            let is_new =
                self.heap.blocks.at(address).is_some_and(|block| !self.graph.account.is_reached(&block));
            let kind = if guess == Guess::Array { VisitKind::Array } else { VisitKind::Reference };
            if is_new {
                let link = NodeLink::weak(root, self.graph.name(&format!("{address:#x}")));
                self.later(link, kind, address);
                self.run();
            }
        }
        self.finish_scans();
        held
    }

    /// Adds what is in use although no known root holds it: objects, those that are known to be `held` first, and resources.
    /// Their references come from memory that is not known or not there, such as variables of modules. Also adds resources
    /// that have more references than were found.
    pub(crate) fn held_elsewhere(&mut self, held: &[(u32, u64)]) {
        let mut root = None;
        let objects = held.iter().copied().chain(self.heap.stored_objects());
        let resources: Vec<(NodeLink, VisitKind, u64)> =
            self.pending.weak.iter().filter(|(_, kind, _)| *kind == VisitKind::Resource).copied().collect();
        for (handle, address) in objects {
            let name = self.graph.number(handle.into());
            self.elsewhere(&mut root, name, VisitKind::Object, address);
        }
        for (link, kind, address) in resources {
            self.elsewhere(&mut root, link.name, kind, address);
        }
        let shared = self.resources.values().filter(|resource| resource.counted > resource.met);
        for CountedResource { node, handle, .. } in shared.copied().collect::<Vec<_>>() {
            let root =
                *root.get_or_insert_with(|| self.root_node("held_elsewhere", NodeType::HELD_ELSEWHERE));
            let link = NodeLink::structural(root, self.graph.number(handle.into()));
            self.graph.edge(link, node, false);
        }
    }

    fn elsewhere(&mut self, root: &mut Option<NodeId>, name: StringId, kind: VisitKind, address: u64) {
        if self.is_given_up() || self.graph.seen.node(&self.heap.spot(address)).is_some() {
            return;
        }
        let root = *root.get_or_insert_with(|| self.root_node("held_elsewhere", NodeType::HELD_ELSEWHERE));
        self.later(NodeLink::structural(root, name), kind, address);
        self.run();
        self.finish_scans();
    }

    /// Adds values that only the variables of modules, the memory of the C library or the machine's stack refer to.
    pub(crate) fn modules(&mut self) {
        let held: Vec<Range<u64>> = self.heap.view.dump.spans().map(range_of).collect();
        let names = VariableNames::new(self.heap.view);
        let mut root = None;
        for region in writable_regions(self.heap.view) {
            for scan in self.heap.scans_of(&region.range, &held) {
                if self.graph.account.is_complete() {
                    return;
                }
                if !self.leads_somewhere(&scan) {
                    continue;
                }
                let node = *root.get_or_insert_with(|| self.root_node("modules", NodeType::MODULES));
                let name = |offset| names.name(&region, moved(scan.start, offset));
                self.scan(PendingScan { node, ..scan }, &name);
                self.run();
                self.finish_scans();
            }
        }
    }

    /// Adds the allocator's own use of the heap: its list of huge blocks.
    pub(crate) fn memory_manager(&mut self) {
        let huge = self.heap.blocks.allocator().map_or(&[][..], |allocator| &allocator.huge);
        if huge.is_empty() {
            return;
        }
        let root = self.root_node("memory_manager", NodeType::MEMORY_MANAGER);
        self.count_attribute(root, huge.len() as u64);
        for (number, huge) in (0..).zip(huge) {
            let extent = Extent::new(LocationType::HUGE_LIST, HUGE_ENTRY_BYTES as u64);
            // PHP frees the entry with the block.
            if let Some(owner) = self.graph.seen.node(&self.heap.spot(huge.address)) {
                self.graph.locate_once(owner, huge.entry, extent);
                continue;
            }
            let link = NodeLink::structural(root, self.graph.number(number));
            self.block_by(link, NodeType::INTERNAL_DATA, huge.entry, extent);
        }
    }

    /// Adds the blocks that nothing is known to lead to, by size.
    pub(crate) fn unattributed(&mut self) {
        let most = self.most_listed();
        let mut blocks: Vec<HeapBlock> = self.graph.account.unreached().take(most).collect();
        if blocks.is_empty() {
            return;
        }
        blocks.sort_unstable_by_key(|block| (block.bytes, block.address));
        let root = self.root_node("unattributed", NodeType::UNATTRIBUTED);
        self.count_attribute(root, blocks.len() as u64);
        for same in blocks.chunk_by(|a, b| a.bytes == b.bytes) {
            let bin = self.part(root, &same[0].bytes.to_string(), NodeType::UNATTRIBUTED_BIN);
            self.count_attribute(bin, same.len() as u64);
            for block in same {
                self.unattributed_block(bin, block);
            }
        }
        if blocks.len() == most {
            // There is more than is listed.
            self.graph.limits.is_exceeded = true;
        }
    }

    fn unattributed_block(&mut self, bin: NodeId, block: &HeapBlock) {
        let guess = guess::guess(self.heap.view, self.heap.layout, block);
        let extent = Extent::new(LocationType::UNATTRIBUTED, block.bytes);
        let link = NodeLink::structural(bin, self.graph.name(&format!("{:#x}", block.address)));
        if let Some(node) = self.block_by(link, NodeType::UNATTRIBUTED_BLOCK, block.address, extent) {
            self.fact(node, "guess", AttributeValue::Text(guess.name().as_bytes()));
        }
    }
}

impl HeapReader<'_> {
    fn stored_objects(&self) -> Vec<(u32, u64)> {
        let Some((first, count)) = self.objects else { return Vec::new() };
        let words = self.view.words(first, u64::from(count) * 8);
        // A free place has its lowest bit set.
        (0..).zip(words).filter(|&(handle, address)| handle > 0 && address != 0 && address % 2 == 0).collect()
    }

    /// The parts of `range` that are `held` and outside of the heap; each part is either completely in the heap or completely
    /// outside.
    fn scans_of(&self, range: &Range<u64>, held: &[Range<u64>]) -> Vec<PendingScan> {
        let mut scans = Vec::new();
        let first = held.partition_point(|held| held.end <= range.start);
        for held in held[first..].iter().take_while(|held| held.start < range.end) {
            let end = held.end.min(range.end);
            let mut start = held.start.max(range.start).checked_next_multiple_of(8).unwrap_or(end);
            while start < end {
                let part = end.min((start - start % PART).saturating_add(PART));
                if !self.blocks.is_heap(start) {
                    scans.push(PendingScan { node: NodeId(0), start, bytes: (part - start) / 8 * 8 });
                }
                start = part;
            }
        }
        scans
    }
}

fn range_of(MemorySpan { address, length }: MemorySpan) -> Range<u64> {
    address..address.saturating_add(length as u64)
}

struct VariableNames(BTreeMap<u64, (u64, String)>);

impl VariableNames {
    fn new(view: DumpView<'_>) -> Self {
        let mut names = BTreeMap::new();
        for symbols in view.symbols() {
            let variables = symbols.iter().filter(|(_, symbol)| !symbol.thread_local && symbol.size >= 8);
            names.extend(variables.map(|(name, symbol)| {
                (symbol.address, (symbol.size, String::from_utf8_lossy(name).into_owned()))
            }));
        }
        Self(names)
    }

    fn name(&self, region: &WritableRegion, address: u64) -> String {
        let before = self.0.range(..=address).next_back();
        match before.filter(|&(&start, (size, _))| address - start < *size) {
            Some((start, (_, name))) => format!("{name}+{:#x}", address - start),
            None => format!("{}+{:#x}", region.name, address - region.base),
        }
    }
}
