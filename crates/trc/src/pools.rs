//! The strings and stacks that a batch defines, each before the event that first uses it.

use super::intern::Interned;
use super::invalid::{Invalid, count_u32};
use super::layout::FrameTag;
use super::value::{Stack, StackFrames};

/// The pools of the batch under construction.
#[derive(Default)]
pub(super) struct Pools {
    pub(super) strings: Interned,
    pub(super) stacks: Interned,
    /// Frames with the definitions that the event under construction is the first to use: they go before it.
    frames: Vec<u8>,
    /// Memory for a stack in the form of streams.
    scratch: Vec<u8>,
}

impl Pools {
    /// The id of an entry. If it is new, a frame with its definition is queued.
    #[inline]
    pub(super) fn intern(&mut self, pool: FrameTag, entry: &[u8]) -> Result<u32, Invalid> {
        match self.pool(pool).recent(entry) {
            Some(id) => Ok(id),
            None => self.intern_slowly(pool, entry, entry.as_ptr().addr()),
        }
    }

    /// Like [`intern`](Self::intern), for a stack.
    // Inlined, so that callers that know the form of the stack do not test for it.
    #[inline(always)]
    pub(super) fn intern_stack(&mut self, stack: StackFrames<'_>) -> Result<u32, Invalid> {
        match stack {
            StackFrames::Stored(Stack(bytes)) => self.intern(FrameTag::Stacks, bytes.as_flattened()),
            StackFrames::Native(addresses) => match self.stacks.recent_stack(addresses) {
                Some(id) => Ok(id),
                None => self.intern_stack_slowly(addresses),
            },
        }
    }

    /// The queued frames.
    #[inline]
    pub(super) fn frames(&self) -> &[u8] {
        &self.frames
    }

    /// Removes the queued frames after they were written.
    pub(super) fn clear_frames(&mut self) {
        self.frames.clear();
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.strings.clear();
        self.stacks.clear();
        self.frames.clear();
    }

    #[inline]
    const fn pool(&mut self, pool: FrameTag) -> &mut Interned {
        match pool {
            FrameTag::Strings => &mut self.strings,
            _ => &mut self.stacks,
        }
    }

    #[cold]
    fn intern_stack_slowly(&mut self, addresses: &[u64]) -> Result<u32, Invalid> {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        bytes.extend(addresses.iter().flat_map(|address| address.to_le_bytes()));
        let interned = self.intern_slowly(FrameTag::Stacks, &bytes, addresses.as_ptr().addr());
        self.scratch = bytes;
        interned
    }

    #[cold]
    #[inline(never)]
    fn intern_slowly(&mut self, pool: FrameTag, entry: &[u8], address: usize) -> Result<u32, Invalid> {
        let count = count_u32(if pool == FrameTag::Strings { entry.len() } else { entry.len() / 8 })?;
        let (id, is_new) = self
            .pool(pool)
            .intern(entry, address)
            .ok_or_else(|| Invalid::new("too many pool entries in one batch: expected at most 4294967294"))?;
        if is_new {
            self.frames.push(pool as u8);
            for number in [1, id, count] {
                self.frames.extend_from_slice(&number.to_le_bytes());
            }
            self.frames.extend_from_slice(entry);
        }
        Ok(id)
    }
}
