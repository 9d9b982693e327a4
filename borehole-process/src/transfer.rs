//! The two ways in which Linux copies memory out of another process.

use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::memory::Piece;

/// How many pieces go into one system call. Each costs about 0.35 µs, a call about 1.1 µs, and the arrays of a call stand
/// on the stack.
const LARGE_BATCH: usize = 64;
const SMALL_BATCH: usize = 8;

/// Reads the pieces with `process_vm_readv`. Answers the bytes before the first that are not mapped.
pub(crate) fn by_call(process: Pid, pieces: &mut [Piece<'_>]) -> Result<usize, Errno> {
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

fn batch<const N: usize>(process: Pid, pieces: &mut [Piece<'_>]) -> Result<usize, Errno> {
    let count = pieces.len();
    let mut remote = [RemoteIoVec { base: 0, len: 0 }; N];
    let mut local: [IoSliceMut<'_>; N] = std::array::from_fn(|_| IoSliceMut::new(&mut []));
    for ((piece, remote), local) in pieces.iter_mut().zip(&mut remote).zip(&mut local) {
        // No address that does not fit is mapped anywhere.
        let base = usize::try_from(piece.address).unwrap_or(usize::MAX);
        *remote = RemoteIoVec { base, len: piece.into.len() };
        *local = IoSliceMut::new(piece.into);
    }
    match process_vm_readv(process, &mut local[..count], &remote[..count]) {
        // Not a byte of the first piece is mapped, or its address is none.
        Err(Errno::EFAULT) => Ok(0),
        copied => copied,
    }
}

/// Reads the pieces from `/proc/PID/mem`, as [`by_call`]. `None` if the process has ended.
pub(crate) fn by_file(memory: &File, pieces: &mut [Piece<'_>]) -> Option<usize> {
    let mut filled = 0;
    for piece in pieces {
        let copied = from_file(memory, piece)?;
        filled += copied;
        if copied < piece.into.len() {
            break;
        }
    }
    Some(filled)
}

fn from_file(memory: &File, piece: &mut Piece<'_>) -> Option<usize> {
    let mut filled = 0;
    while filled < piece.into.len() {
        let address = piece.address.saturating_add(filled as u64);
        match memory.read_at(&mut piece.into[filled..], address) {
            // The address space that the file was opened on is no more.
            Ok(0) => return None,
            Ok(copied) => filled += copied,
            Err(_) => break,
        }
    }
    Some(filled)
}
