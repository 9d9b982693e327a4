//! The memory of a heap with what is known about it: everything that a walk reads, and that it does not change.

use super::seen::BlockSpot;
use super::{Damage, FailedChain};
use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::allocator::CHUNK_BYTES;
use crate::heap::blocks::HeapBlocks;
use crate::heap::layout::HeapLayout;
use crate::heap::view::DumpView;
use crate::remote::moved;

/// Reads the structures of one heap. Methods that belong to one kind of structure are where that kind is walked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapReader<'d> {
    pub(crate) view: DumpView<'d>,
    pub(crate) php: &'d Php,
    pub(crate) layout: &'d HeapLayout,
    pub(crate) executor: &'d Executor,
    pub(crate) blocks: &'d HeapBlocks,
    /// The address of the table of objects, and its number of used places; `None` if they are missing.
    pub(crate) objects: Option<(u64, u32)>,
    /// The calls, if they are not the running ones.
    pub(super) failed: Option<FailedChain>,
    /// Whether a request is active. Between requests, PHP's heap has been emptied, and what belongs to a request leads into
    /// freed memory.
    pub(super) is_active: bool,
}

impl HeapReader<'_> {
    #[inline]
    pub(super) fn spot(&self, address: u64) -> BlockSpot {
        BlockSpot { address, block: self.blocks.find(address) }
    }

    /// The maximum size in bytes of what begins at `address`: the size of its block, or all memory from there on if PHP does
    /// not use its own allocator. `None` if nothing begins there.
    pub(crate) fn room(&self, address: u64) -> Option<u64> {
        if self.blocks.allocator().is_some() {
            return Some(self.blocks.at(address)?.bytes);
        }
        Some(self.view.room(address)).filter(|&room| room > 0)
    }

    /// Why memory at `address` is missing: it was left out of the copy, or is damaged.
    #[cold]
    pub(super) fn absence(&self, address: u64) -> Damage {
        if self.view.dump.is_left_out(address) { Damage::LeftOut } else { Damage::Missing }
    }

    /// The number of bytes from `address` to the end of its block; [`u64::MAX`] if no block contains it.
    pub(super) fn room_in_block(&self, address: u64) -> u64 {
        self.blocks.find(address).map_or(u64::MAX, |block| block.end() - address)
    }

    /// The maximum number, up to `count`, of consecutive things of `size` bytes at `address`. PHP has no limit itself, and
    /// damaged memory may have any number.
    pub(crate) fn fitting(&self, address: u64, count: u32, size: u64) -> u32 {
        let wanted = u64::from(count) * size;
        let room = match self.blocks.find(address) {
            Some(block) if block.bytes < CHUNK_BYTES => wanted.min(block.end() - address),
            // A huge block may claim to be larger than its memory.
            Some(block) => self.view.length(address, wanted.min(block.end() - address)),
            None => self.view.length(address, wanted),
        };
        u32::try_from(room / size.max(1)).map_or(count, |fitting| fitting.min(count))
    }

    /// Whether the table of objects has `address` under the handle that is stored there.
    pub(crate) fn is_listed_object(&self, address: u64) -> bool {
        self.under_handle(address) == Some(address)
    }

    /// Whether the table of objects exists and has something else under the handle that is stored at `address`.
    pub(crate) fn is_unlisted(&self, address: u64) -> bool {
        let has_table = self.objects.is_some_and(|(first, _)| self.view.u64(first).is_some());
        has_table && self.under_handle(address) != Some(address)
    }

    /// The entry of the table of objects for the handle that is stored at `address`.
    fn under_handle(&self, address: u64) -> Option<u64> {
        let handle = self.view.u32(moved(address, 8))?;
        let (first, count) = self.objects?;
        let is_handle = handle > 0 && handle < count;
        is_handle.then(|| self.view.u64(first.wrapping_add(u64::from(handle) * 8)))?
    }
}
