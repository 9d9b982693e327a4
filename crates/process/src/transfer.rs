//! The two interfaces of Linux for copying memory from another process.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::error::Error;
use crate::files;
use crate::memory::{MemoryPiece, fill_pieces};

/// The maximum number of pieces in one system call. A piece costs about 0.35 µs and a call about 1.1 µs; the arrays of
/// a call are on the stack.
const LARGE_BATCH: usize = 64;
const SMALL_BATCH: usize = 8;

/// Reads the pieces with `process_vm_readv`. Returns the number of bytes before the first unmapped one.
pub(crate) fn by_call(process: Pid, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Errno> {
    if pieces.len() <= SMALL_BATCH {
        return batch::<SMALL_BATCH>(process, pieces);
    }
    let mut filled = 0;
    for pieces in pieces.chunks_mut(LARGE_BATCH) {
        let wanted: usize = pieces.iter().map(|piece| piece.into.len()).sum();
        let copied = batch::<LARGE_BATCH>(process, pieces)?;
        filled += copied;
        if copied < wanted {
            break;
        }
    }
    Ok(filled)
}

fn batch<const N: usize>(process: Pid, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Errno> {
    let count = pieces.len();
    let mut remote = [RemoteIoVec { base: 0, len: 0 }; N];
    let mut local: [IoSliceMut<'_>; N] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
    for ((piece, remote), local) in pieces.iter_mut().zip(&mut remote).zip(&mut local) {
        // An address that does not fit is not mapped.
        let base = usize::try_from(piece.address).unwrap_or(usize::MAX);
        *remote = RemoteIoVec { base, len: piece.into.len() };
        *local = IoSliceMut::new(piece.into);
    }
    match process_vm_readv(process, &mut local[..count], &remote[..count]) {
        // No byte of the first piece is mapped, or its address is invalid.
        Err(Errno::EFAULT) => Ok(0),
        copied => copied,
    }
}

/// Reads the pieces from `/proc/PID/mem`, like [`by_call`].
pub(crate) fn by_file(process: i32, memory: &File, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
    fill_pieces(pieces, |address, into| match memory.read_at(into, address) {
        // The address space that the file was opened on no longer exists.
        Ok(0) => Err(files::gone(process)),
        copied => Ok(copied.unwrap_or(0)),
    })
}
