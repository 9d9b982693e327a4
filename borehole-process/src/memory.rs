//! Memory of another address space, read in batches.

use crate::error::Error;

/// A range of the other address space, and where its bytes go.
#[derive(Debug)]
pub struct Piece<'b> {
    /// Where the range begins.
    pub address: u64,
    /// As many bytes as are wanted.
    pub into: &'b mut [u8],
}

/// Memory of another address space: a live process, a core file, a recorded image.
pub trait Memory {
    /// Reads the pieces in order, of a live process in one system call as far as that is possible, and says how many
    /// bytes it filled, counted over all pieces. Fewer than asked for means that the rest begins with memory that cannot
    /// be read; bytes behind that place are left as they were.
    ///
    /// # Errors
    /// When the process is gone or may not be read. Unmapped memory is no error here.
    fn read_pieces(&self, pieces: &mut [Piece<'_>]) -> Result<usize, Error>;

    /// Fills `into` from `address`.
    ///
    /// # Errors
    /// When not all of it can be read.
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
    /// When they cannot be read.
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
