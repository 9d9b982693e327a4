//! Scans unknown structures for addresses, to find what they hold.
//!
//! A word counts if it is the address of a block that nothing else led to; the header of that block tells its type. So scans
//! run after everything known has been walked. Blocks of no known type are scanned in turn.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength};

use crate::heap::blocks::Block;
use crate::heap::guess::{self, Guess};
use crate::heap::walk::{Kind, Link, ObjectView, Shape, Walker};
use crate::remote::{moved, u32_at, u64_at};

/// Memory to scan, and its node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The target of a word.
enum Target {
    Known(Kind, u64),
    Plain(Block),
}

/// Schedules a scan of `object` after everything known has been walked, unless its class has only properties.
pub(super) fn later<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    if walker.view.pointer(object.class, walker.layout.class_create) != 0 {
        whole(object, walker);
    }
}

/// Schedules a scan of `object` after everything known has been walked.
pub(super) fn whole<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let &ObjectView { node, start, bytes, .. } = object;
    walker.scans.push(Scan { node, start, bytes });
}

impl<S: HeapSink> Walker<'_, S> {
    /// Schedules a visit of `address` after everything known has been walked.
    pub(crate) fn unknown_pointer(&mut self, link: Link, address: u64) {
        self.later_unknown(Link { strength: Strength::Structural, ..link }, address);
    }

    /// Runs all scheduled scans, and walks everything that they find, until nothing is left.
    pub(crate) fn finish_scans(&mut self) {
        while !self.is_given_up() {
            if let Some((link, kind, address)) = self.put_off.pop() {
                self.later(link, kind, address);
            } else if let Some((link, address)) = self.unknown.pop() {
                if let Some(target) = self.target(address, None) {
                    self.go(link, target);
                }
            } else if let Some(scan) = self.scans.pop() {
                self.scan(scan, &|offset| format!("internal+{offset}"));
            } else {
                return;
            }
            self.run();
        }
    }

    /// Scans memory; `name` gives the name of what is found at an offset.
    pub(crate) fn scan(&mut self, scan: Scan, name: &dyn Fn(usize) -> String) {
        let bytes = self.view.bytes(scan.start, scan.bytes);
        self.look_through(bytes.len());
        for (offset, word) in bytes.chunks_exact(8).enumerate() {
            let before = offset.checked_sub(1).and_then(|before| bytes.get(before * 8..));
            let target = u64_at(word, 0).and_then(|address| self.target(address, before));
            if let Some(target) = target {
                let name = self.sink.string(name(offset * 8).as_bytes());
                self.go(Link::structural(scan.node, name), target);
            }
        }
    }

    fn go(&mut self, link: Link, target: Target) {
        match target {
            Target::Known(kind, address) => self.later(link, kind, address),
            Target::Plain(block) => {
                let shape = Shape::new(LocationType::INTERNAL_DATA, block.bytes);
                if let Some(node) = self.block_by(link, NodeType::INTERNAL_DATA, block.address, shape) {
                    self.scans.push(Scan { node, start: block.address, bytes: block.bytes });
                }
            }
        }
    }

    /// Whether the memory refers to anything not reached yet.
    pub(crate) fn leads_somewhere(&self, scan: &Scan) -> bool {
        let bytes = self.view.bytes(scan.start, scan.bytes);
        bytes.chunks_exact(8).enumerate().any(|(offset, word)| {
            let before = offset.checked_sub(1).and_then(|before| bytes.get(before * 8..));
            u64_at(word, 0).is_some_and(|address| self.target(address, before).is_some())
        })
    }

    /// The unreached target of a word. `before` are the bytes from the preceding word on.
    fn target(&self, address: u64, before: Option<&[u8]>) -> Option<Target> {
        if !address.is_multiple_of(8) || address == 0 {
            return None;
        }
        let block = self.blocks.find(address).filter(|block| !self.account.is_reached(block))?;
        if self.is_listed_object(address) {
            return Some(Target::Known(Kind::Object, address));
        }
        if block.address != address {
            return is_table(address, &block, before?).then_some(Target::Plain(block));
        }
        let kind = match guess::guess(self.view, &self.layout, &block) {
            Guess::String => Kind::String,
            Guess::Array => Kind::Array,
            Guess::Reference => Kind::Reference,
            Guess::Resource => Kind::Resource,
            Guess::Object | Guess::Plain => return Some(Target::Plain(block)),
        };
        Some(Target::Known(kind, address))
    }

    /// Whether the table of objects has `address` under the handle that is stored there.
    pub(crate) fn is_listed_object(&self, address: u64) -> bool {
        self.under_handle(address) == Some(address)
    }

    /// Whether the table of objects exists and has something else under the handle that is stored at `address`.
    pub(crate) fn is_unlisted(&self, address: u64) -> bool {
        let has_table = self.object_store().is_some_and(|(first, _)| self.view.u64(first).is_some());
        has_table && self.under_handle(address) != Some(address)
    }

    /// The entry of the table of objects for the handle that is stored at `address`.
    fn under_handle(&self, address: u64) -> Option<u64> {
        let handle = self.view.u32(moved(address, 8))?;
        let (first, count) = self.object_store()?;
        let is_handle = handle > 0 && handle < count;
        is_handle.then(|| self.view.u64(first.wrapping_add(u64::from(handle) * 8)))?
    }

    /// The address of the table of objects, and its number of used places.
    #[inline]
    pub(crate) fn object_store(&self) -> Option<(u64, u32)> {
        self.store
    }
}

/// Whether a word is the address of the buckets of a hash table with the memory `block`: it begins with the number of hashes
/// that the preceding mask says.
fn is_table(buckets: u64, block: &Block, before: &[u8]) -> bool {
    let hashes = u32_at(before, 4).unwrap_or_default().wrapping_neg();
    hashes.is_power_of_two() && buckets.wrapping_sub(u64::from(hashes) * 4) == block.address
}
