//! Memory that remembers what was read of it, so that one call tells whether it has changed.

use std::cell::RefCell;

use borehole_process::{Error, ForeignMemory, MemoryPiece};

use crate::spans::MemorySpans;

/// The most bytes that are remembered of one object and what belongs to it.
const MOST_BYTES: usize = 1 << 20;

/// The places and bytes that were read.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotedReads {
    /// Addresses and lengths.
    pieces: Vec<(u64, usize)>,
    bytes: Vec<u8>,
    /// Whether something could not be read, or is not remembered.
    is_partial: bool,
}

impl NotedReads {
    /// Whether everything that was read is here.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_partial && !self.pieces.is_empty()
    }

    /// Whether a copy of the memory has the same bytes.
    pub(crate) fn is_still(&self, spans: &MemorySpans) -> bool {
        let mut rest = self.bytes.as_slice();
        self.pieces.iter().all(|&(address, length)| {
            let (bytes, behind) = rest.split_at(length);
            rest = behind;
            spans.bytes(address, length) == Some(bytes)
        })
    }

    /// The addresses and lengths of what was read.
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        self.pieces.iter().copied()
    }

    fn add(&mut self, pieces: &[MemoryPiece<'_>], mut filled: usize) {
        for piece in pieces {
            let is_read = piece.into.len() <= filled;
            if !is_read || self.bytes.len() + piece.into.len() > MOST_BYTES {
                self.is_partial = true;
                return;
            }
            filled -= piece.into.len();
            self.pieces.push((piece.address, piece.into.len()));
            self.bytes.extend_from_slice(piece.into);
        }
    }
}

/// Memory that notes what is read.
pub(crate) struct NotingMemory<'m, M> {
    memory: &'m M,
    noted: RefCell<NotedReads>,
}

impl<'m, M> NotingMemory<'m, M> {
    pub(crate) fn new(memory: &'m M) -> Self {
        Self { memory, noted: RefCell::default() }
    }

    pub(crate) fn into_noted(self) -> NotedReads {
        self.noted.into_inner()
    }
}

impl<M: ForeignMemory> ForeignMemory for NotingMemory<'_, M> {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        let filled = self.memory.read_pieces(pieces)?;
        self.noted.borrow_mut().add(pieces, filled);
        Ok(filled)
    }
}
