//! Asks the kernel for pages by their properties, which is several times faster than reading `/proc/PID/pagemap`. Needs
//! Linux 6.7.
//!
//! Source: Linux, `include/uapi/linux/fs.h`, `struct pm_scan_arg`; `Documentation/admin-guide/mm/pagemap.rst`.

#![allow(unsafe_code, reason = "no crate offers this call")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;

/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::Ioctl = 0xc060_6610;

const OF_FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const SWAPPED: u64 = 1 << 4;
/// The kernel's page of zeros: memory that was read and never written.
const ZERO: u64 = 1 << 5;

#[repr(C)]
#[derive(Default)]
struct ScanArguments {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    regions: u64,
    regions_length: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    returned: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageRegion {
    pub(crate) start: u64,
    pub(crate) end: u64,
    _categories: u64,
}

/// Fills `regions` with the pages between two addresses that are in memory or swapped out, without the kernel's page of zeros.
/// If `skips_files`, leaves out unmodified pages of files. Returns the number of regions, and the address at which to continue.
pub(crate) fn pages(
    pagemap: &File,
    (start, end): (u64, u64),
    skips_files: bool,
    regions: &mut [PageRegion],
) -> io::Result<(usize, u64)> {
    let inverted = if skips_files { OF_FILE | ZERO } else { ZERO };
    let mut arguments = ScanArguments {
        size: size_of::<ScanArguments>() as u64,
        start,
        end,
        regions: regions.as_mut_ptr().addr() as u64,
        regions_length: regions.len() as u64,
        inverted,
        all_of: inverted,
        any_of: PRESENT | SWAPPED,
        returned: PRESENT | SWAPPED,
        ..ScanArguments::default()
    };
    regions.as_mut_ptr().expose_provenance();
    // SAFETY: the structure is that of the kernel, and states its size. The kernel writes to it, and at most
    // `regions_length` regions to the slice, which is borrowed for writing.
    let count = unsafe { libc::ioctl(pagemap.as_raw_fd(), PAGEMAP_SCAN, &raw mut arguments) };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    Ok((count.min(regions.len()), arguments.walk_end))
}
