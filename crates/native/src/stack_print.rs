//! The print of a stack: whether it is still the same can be seen without stopping its thread again.

use std::hash::{BuildHasher as _, Hasher as _};

use borehole_process::{Error, ForeignMemory, MemoryPiece};
use hashbrown::DefaultHashBuilder;

/// The most bytes that are compared. Larger stacks have no print.
const MOST_BYTES: usize = 256 << 10;

/// The memory of a stack, as a hash.
#[derive(Clone, Debug)]
pub struct StackPrint {
    start: u64,
    length: usize,
    hash: u64,
    hasher: DefaultHashBuilder,
}

impl StackPrint {
    /// The print of this memory, which begins at `start`; `None` if it is too large.
    pub(crate) fn of(start: u64, bytes: &[u8]) -> Option<Self> {
        let hasher = DefaultHashBuilder::default();
        let hash = hash(&hasher, bytes);
        (bytes.len() <= MOST_BYTES).then_some(Self { start, length: bytes.len(), hash, hasher })
    }

    /// Whether the memory is the same now. `buffer` is used for the copy.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read.
    pub fn is_same(&self, memory: &impl ForeignMemory, buffer: &mut Vec<u8>) -> Result<bool, Error> {
        buffer.resize(self.length, 0);
        let filled = memory.read_pieces(&mut [MemoryPiece { address: self.start, into: buffer }])?;
        Ok(filled == self.length && hash(&self.hasher, buffer) == self.hash)
    }
}

fn hash(hasher: &DefaultHashBuilder, bytes: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
