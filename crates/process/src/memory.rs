//! Reads memory of another address space in batches.

use crate::error::Error;

/// A range of the other address space, and the buffer for its bytes.
#[derive(Debug)]
pub struct Piece<'b> {
    /// The first address of the range.
    pub address: u64,
    /// The buffer, as long as the range.
    pub into: &'b mut [u8],
}

/// Memory of another address space: a live process, a core file or a recorded image.
pub trait Memory {
    /// Reads the pieces in order, and returns the number of bytes read over all pieces. Reads a live process with one
    /// system call if possible. If the number is smaller than requested, the memory at that place cannot be read, and
    /// the bytes after it are unchanged.
    ///
    /// # Errors
    /// If the process is gone or may not be read. Unmapped memory is not an error here.
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error>;

    /// Fills `into` with the memory from `address` on.
    ///
    /// # Errors
    /// If any of it cannot be read.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Error> {
        let wanted = into.len();
        let filled = self.read_pieces(&mut [Piece { address, into }])?;
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

impl<M: Memory + ?Sized> Memory for &M {
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error> {
        (**self).read_pieces(pieces)
    }
}
