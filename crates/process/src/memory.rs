//! A program in foreign memory, with information from the system and its files. Memory is read in batches.

use crate::error::Error;
use crate::maps::{Mappings, MemoryMapping};
use crate::symbols::ElfSymbols;

/// A range of the other address space, and the buffer for its bytes.
#[derive(Debug)]
pub struct MemoryPiece<'b> {
    /// The first address of the range.
    pub address: u64,
    /// The buffer, as long as the range.
    pub into: &'b mut [u8],
}

/// Memory of another address space: a live process, a core file or a recorded image.
pub trait ForeignMemory {
    /// Reads the pieces in order, and returns the number of bytes read over all pieces. Reads a live process with one
    /// system call if possible. If the number is smaller than requested, the memory at that place cannot be read, and
    /// the bytes after it are unchanged.
    ///
    /// # Errors
    /// If the process is gone or may not be read. Unmapped memory is not an error here.
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error>;

    /// Fills `into` with the memory from `address` on.
    ///
    /// # Errors
    /// If any of it cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Error> {
        let wanted = into.len();
        let filled = self.read_pieces(&mut [MemoryPiece { address, into }])?;
        if filled == wanted {
            return Ok(());
        }
        Err(Error::unmapped(address.saturating_add(filled as u64)))
    }

    /// Reads the eight bytes at `address` as a little-endian number.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read_u64(&self, address: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl<M: ForeignMemory + ?Sized> ForeignMemory for &M {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        (**self).read_pieces(pieces)
    }
}

/// Fills the pieces in order. `copy` fills the front of its buffer with what is at an address, and returns the number of
/// bytes; 0 ends the reading.
#[inline]
pub(crate) fn fill_pieces(
    pieces: &mut [MemoryPiece<'_>],
    mut copy: impl FnMut(u64, &mut [u8]) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut filled = 0;
    for piece in pieces {
        let mut done = 0;
        while done < piece.into.len() {
            let Some(address) = piece.address.checked_add(done as u64) else { return Ok(filled) };
            let copied = copy(address, &mut piece.into[done..])?;
            if copied == 0 {
                return Ok(filled);
            }
            done += copied;
            filled += copied;
        }
    }
    Ok(filled)
}

/// Copies as much as there is and fits.
#[inline]
pub(crate) fn copy_front(there: &[u8], into: &mut [u8]) -> usize {
    let length = there.len().min(into.len());
    into[..length].copy_from_slice(&there[..length]);
    length
}

/// A program in foreign memory: a live process, a core file or a recorded image.
pub trait ForeignProcess: ForeignMemory {
    /// The mappings at the moment when this target was opened.
    fn mappings(&self) -> &Mappings;

    /// The dynamic symbols of the ELF file that `mapping` shows a part of, at their addresses in this target, and its sections
    /// that are in memory, whose names begin with a dot.
    ///
    /// # Errors
    /// If the file cannot be found or read, or is not an ELF file.
    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error>;

    /// The current threads, the main thread first.
    ///
    /// # Errors
    /// If the process is gone.
    fn threads(&self) -> Result<Vec<i32>, Error>;

    /// The address where the thread keeps its thread-local storage: on x86-64 the base of the segment `fs`.
    ///
    /// The first request stops a live thread for some microseconds.
    ///
    /// # Errors
    /// If the thread is gone or may not be stopped, or the machine is not supported.
    fn thread_pointer(&self, thread: i32) -> Result<u64, Error>;
}

impl<T: ForeignProcess + ?Sized> ForeignProcess for &T {
    fn mappings(&self) -> &Mappings {
        (**self).mappings()
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        (**self).symbols(mapping)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        (**self).threads()
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        (**self).thread_pointer(thread)
    }
}
