//! Structures that are not known: what they hold is told by the addresses that stand in them.
//!
//! A word counts if it is the address of a block that nothing else led to; what it leads to is told by that block's header. So
//! this comes when all that is known has been walked. Blocks that look like nothing known are scanned in turn.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength};

use crate::heap::blocks::Block;
use crate::heap::guess::{self, Guess};
use crate::heap::walk::{Kind, Link, ObjectView, Shape, Walker};
use crate::remote::{moved, u32_at, u64_at};

/// Memory to look through, and the node that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// What a word leads to.
enum Target {
    Known(Kind, u64),
    Plain(Block),
}

/// Looks through `object` when all that is known has been walked, unless its class has nothing but properties.
pub(super) fn later<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    if walker.view.pointer(object.class, walker.layout.class_create) != 0 {
        whole(object, walker);
    }
}

/// Looks through `object` when all that is known has been walked.
pub(super) fn whole<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let &ObjectView { node, start, bytes, .. } = object;
    walker.scans.push(Scan { node, start, bytes });
}

impl<S: HeapSink> Walker<'_, S> {
    /// Goes to `address` when all that is known has been walked.
    pub(crate) fn unknown_pointer(&mut self, link: Link, address: u64) {
        self.later_unknown(Link { strength: Strength::Structural, ..link }, address);
    }

    /// Looks through what has been put off, and walks what that leads to, until nothing is left.
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

    /// Looks through memory; `name` calls what is found at an offset.
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

    /// Whether something stands in the memory that nobody else has led to.
    pub(crate) fn leads_somewhere(&self, scan: &Scan) -> bool {
        let bytes = self.view.bytes(scan.start, scan.bytes);
        bytes.chunks_exact(8).enumerate().any(|(offset, word)| {
            let before = offset.checked_sub(1).and_then(|before| bytes.get(before * 8..));
            u64_at(word, 0).is_some_and(|address| self.target(address, before).is_some())
        })
    }

    /// What a word leads to that nobody else has led to. `before` are the bytes from the word before it on.
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

    /// Whether the table of objects has `address` under the handle that stands there.
    pub(crate) fn is_listed_object(&self, address: u64) -> bool {
        self.under_handle(address) == Some(address)
    }

    /// Whether the table of objects is there and has something else under the handle that stands at `address`.
    pub(crate) fn is_unlisted(&self, address: u64) -> bool {
        let has_table = self.object_store().is_some_and(|(first, _)| self.view.u64(first).is_some());
        has_table && self.under_handle(address) != Some(address)
    }

    /// What the table of objects has under the handle that stands at `address`.
    fn under_handle(&self, address: u64) -> Option<u64> {
        let handle = self.view.u32(moved(address, 8))?;
        let (first, count) = self.object_store()?;
        let is_handle = handle > 0 && handle < count;
        is_handle.then(|| self.view.u64(first.wrapping_add(u64::from(handle) * 8)))?
    }

    /// The places of the table of objects, and how many have been used.
    #[inline]
    pub(crate) fn object_store(&self) -> Option<(u64, u32)> {
        self.store
    }
}

/// Whether a word is the address of the buckets of a hash table whose memory is `block`: that begins with as many hashes as the
/// mask before it says.
fn is_table(buckets: u64, block: &Block, before: &[u8]) -> bool {
    let hashes = u32_at(before, 4).unwrap_or_default().wrapping_neg();
    hashes.is_power_of_two() && buckets.wrapping_sub(u64::from(hashes) * 4) == block.address
}
