//! Scans unknown structures for addresses, to find what they hold.
//!
//! A word counts if it is the address of a block that nothing else led to; the header of that block tells its type. So scans
//! run after everything known has been walked. Blocks of no known type are scanned in turn.
//!
//! A word that is an address need not be a reference: it may be a remnant. So garbage is found first, by reference counts. A word
//! that leads to it from what is held becomes a weak reference, which says so and holds nothing.

use borehole_heap::{HeapSink, LocationType, NodeType, Strength};
use hashbrown::HashSet;

use crate::heap::blocks::HeapBlock;
use crate::heap::guess::{self, Guess};
use crate::heap::walk::{Extent, HeapWalker, NodeLink, ObjectView, PendingScan, VisitKind};

enum ScanTarget {
    Known(VisitKind, u64),
    Plain(HeapBlock),
}

/// Schedules a scan of `object` after everything known has been walked, unless its class has only properties.
pub(super) fn later<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    if walker.heap.view.pointer(object.class, walker.heap.layout.class_create) != 0 {
        let &ObjectView { node, start, bytes, .. } = object;
        walker.pending.scans.push(PendingScan { node, start, bytes });
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Schedules a visit of `address` after everything known has been walked.
    pub(crate) fn unknown_pointer(&mut self, link: NodeLink, address: u64) {
        if address != 0 && self.graph.limits.may_grow(self.pending.unknown.len()) {
            self.pending.unknown.push((NodeLink { strength: Strength::Structural, ..link }, address));
        }
    }

    /// Walks what is left of the known references, and sets aside the scans of what they have led to.
    pub(crate) fn set_scans_aside(&mut self) {
        while let Some((link, kind, address)) = self.pending.put_off.pop() {
            self.later(link, kind, address);
            self.run();
        }
        self.closure_bodies();
        self.pending.held_scans = std::mem::take(&mut self.pending.scans);
        self.pending.held_unknown = std::mem::take(&mut self.pending.unknown);
    }

    /// Runs the scans that were set aside, and walks everything that they find.
    pub(crate) fn scan_held(&mut self) {
        let garbage = std::mem::take(&mut self.garbage);
        self.pending.unknown.append(&mut self.pending.held_unknown);
        for scan in std::mem::take(&mut self.pending.held_scans) {
            if !garbage.is_empty() {
                self.note_garbage(&scan, &garbage);
            }
            self.pending.scans.push(scan);
        }
        self.finish_scans();
    }

    /// Adds weak references for the words that are addresses of garbage.
    fn note_garbage(&mut self, scan: &PendingScan, garbage: &HashSet<u64>) {
        let words = (0..).step_by(8).zip(self.heap.view.words(scan.start, scan.bytes));
        for (offset, address) in words.filter(|(_, address)| garbage.contains(address)) {
            let name = self.graph.name(&scanned_name(offset));
            self.graph.again(&self.heap.spot(address), NodeLink::weak(scan.node, name));
        }
    }

    /// Runs all scheduled scans, and walks everything that they find, until nothing is left.
    pub(crate) fn finish_scans(&mut self) {
        while !self.is_given_up() {
            self.closure_bodies();
            if let Some((link, kind, address)) = self.pending.put_off.pop() {
                self.later(link, kind, address);
            } else if let Some((link, address)) = self.pending.unknown.pop() {
                // An entry of a table is a reference, whatever else has led there before.
                let is_known = self.graph.again(&self.heap.spot(address), link);
                if let Some(target) = self.target(address, None).filter(|_| !is_known) {
                    self.go(link, target);
                }
            } else if let Some(scan) = self.pending.scans.pop() {
                self.scan(scan, &scanned_name);
            } else {
                return;
            }
            self.run();
        }
    }

    /// Scans memory; `name` gives the name of what is found at an offset.
    pub(crate) fn scan(&mut self, scan: PendingScan, name: &dyn Fn(usize) -> String) {
        let present = self.heap.view.length(scan.start, scan.bytes);
        self.graph.limits.meet_bytes(usize::try_from(present).unwrap_or(usize::MAX));
        let mut last = None;
        for (offset, address) in self.heap.view.words(scan.start, scan.bytes).enumerate() {
            let before = last.replace(address);
            // References of which no rule knows: between values that hold each other, and to resources that have more of them.
            if self.garbage.contains(&address) || self.explains(address, &scan) {
                let link = NodeLink::structural(scan.node, self.graph.name(&name(offset * 8)));
                self.graph.again(&self.heap.spot(address), link);
            }
            if let Some(target) = self.target(address, before) {
                let name = self.graph.name(&name(offset * 8));
                self.go(NodeLink::structural(scan.node, name), target);
            }
        }
    }

    fn go(&mut self, link: NodeLink, target: ScanTarget) {
        match target {
            ScanTarget::Known(kind, address) => self.later(link, kind, address),
            ScanTarget::Plain(block) => {
                let extent = Extent::new(LocationType::INTERNAL_DATA, block.bytes);
                if let Some(node) = self.block_by(link, NodeType::INTERNAL_DATA, block.address, extent) {
                    self.pending.scans.push(PendingScan { node, start: block.address, bytes: block.bytes });
                }
            }
        }
    }

    /// Whether the memory refers to anything not reached yet.
    pub(crate) fn leads_somewhere(&self, scan: &PendingScan) -> bool {
        let mut last = None;
        self.heap.view.words(scan.start, scan.bytes).any(|address| {
            let before = last.replace(address);
            self.target(address, before).is_some()
        })
    }

    /// The unreached target of a word; `before` is the preceding word.
    fn target(&self, address: u64, before: Option<u64>) -> Option<ScanTarget> {
        if !address.is_multiple_of(8) || address == 0 {
            return None;
        }
        let block = self.heap.blocks.find(address).filter(|block| !self.graph.account.is_reached(block))?;
        if self.heap.is_listed_object(address) {
            return Some(ScanTarget::Known(VisitKind::Object, address));
        }
        if block.address != address {
            return is_table(address, &block, before?).then_some(ScanTarget::Plain(block));
        }
        let kind = match guess::guess(self.heap.view, self.heap.layout, &block) {
            Guess::String => VisitKind::String,
            Guess::Array => VisitKind::Array,
            Guess::Reference => VisitKind::Reference,
            Guess::Resource => VisitKind::Resource,
            Guess::Object | Guess::Plain => return Some(ScanTarget::Plain(block)),
        };
        Some(ScanTarget::Known(kind, address))
    }
}

/// The name of what was found at an offset of unknown memory.
fn scanned_name(offset: usize) -> String {
    format!("internal+{offset}")
}

/// Whether a word is the address of the buckets of a hash table with the memory `block`: it begins with the number of hashes
/// that the preceding mask says.
fn is_table(buckets: u64, block: &HeapBlock, before: u64) -> bool {
    let mask = u32::try_from(before >> 32).unwrap_or_default();
    let hashes = mask.wrapping_neg();
    hashes.is_power_of_two() && buckets.wrapping_sub(u64::from(hashes) * 4) == block.address
}
