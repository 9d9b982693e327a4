//! Finds the resident memory of a process: the pages that it has touched.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use nix::errno::Errno;
use nix::unistd::{SysconfVar, Whence, lseek, sysconf};

use crate::dump::MemorySpan;
use crate::error::{Error, ErrorKind};
use crate::files;
use crate::maps::MemoryMapping;
use crate::scan::{self, PageRegion};

/// A selection of pages of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSelection {
    /// Private pages in memory or swapped out: everything that the process has written. An older kernel does not tell pages that
    /// it has only read, which hold zeros.
    Own,
    /// All pages in the memory of the process, including those of files.
    Present,
    /// All pages in memory that several processes share, whichever process touched them.
    Shared,
}

/// Finds the resident pages of a process.
#[derive(Debug)]
pub struct Resident {
    process: i32,
    pagemap: File,
    page_bytes: u64,
    entries: Vec<u8>,
    /// Empty if the kernel cannot list regions.
    regions: Vec<PageRegion>,
}

/// The size of an entry of `/proc/PID/pagemap` in bytes, and the meaning of its upper bits.
///
/// Source: Linux, `Documentation/admin-guide/mm/pagemap.rst`.
const ENTRY_BYTES: u64 = 8;
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

/// The number of entries read at once.
const BATCH: u64 = 1 << 15;

/// The number of regions requested at once.
const REGIONS: usize = 1 << 12;

impl Resident {
    /// Opens the page tables of the process of this number and of the program that it runs now.
    ///
    /// # Errors
    /// If the process is gone or may not be read.
    pub fn open(process: i32) -> Result<Self, Error> {
        let pagemap = File::open(files::path(process, "pagemap"))
            .map_err(|error| crate::access::explain(process, files::of_io(process, "pagemap", &error)))?;
        let page_bytes = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
        let page_bytes = page_bytes.and_then(|bytes| bytes.try_into().ok()).unwrap_or(4096);
        let regions = vec![PageRegion::default(); REGIONS];
        Ok(Self { process, pagemap, page_bytes, entries: Vec::new(), regions })
    }

    /// Appends the resident pages of `mapping` to `into`, as spans.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn add(
        &mut self,
        mapping: &MemoryMapping,
        pages: PageSelection,
        into: &mut Vec<MemorySpan>,
    ) -> Result<(), Error> {
        match pages {
            PageSelection::Shared if self.add_shared(mapping, into).is_some() => Ok(()),
            _ if self.regions.is_empty() => self.add_mapped(mapping, pages, into),
            pages => {
                let (count, last) = (into.len(), into.last().copied());
                match self.add_scanned(mapping, pages, into) {
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Err(files::gone(self.process)),
                    // An older kernel.
                    Err(_) => {
                        self.regions.clear();
                        into.truncate(count.saturating_sub(1));
                        into.extend(last);
                        self.add_mapped(mapping, pages, into)
                    }
                    Ok(()) => Ok(()),
                }
            }
        }
    }

    fn add_scanned(
        &mut self,
        mapping: &MemoryMapping,
        pages: PageSelection,
        into: &mut Vec<MemorySpan>,
    ) -> io::Result<()> {
        // Without a file there are no file pages to exclude, and not excluding them is faster.
        let skips_files = pages == PageSelection::Own && mapping.shows_file();
        let mut start = mapping.start;
        while start < mapping.end {
            let (count, end) =
                scan::pages(&self.pagemap, (start, mapping.end), skips_files, &mut self.regions)?;
            for region in &self.regions[..count] {
                append(into, region.start, region.end.saturating_sub(region.start));
            }
            if end <= start {
                return Err(io::Error::from(io::ErrorKind::InvalidData));
            }
            start = end;
        }
        Ok(())
    }

    fn add_mapped(
        &mut self,
        mapping: &MemoryMapping,
        pages: PageSelection,
        into: &mut Vec<MemorySpan>,
    ) -> Result<(), Error> {
        let is_meant = |entry: u64| match pages {
            PageSelection::Own => entry & (PRESENT | SWAPPED) != 0 && entry & OF_FILE == 0,
            PageSelection::Present | PageSelection::Shared => entry & (PRESENT | SWAPPED) != 0,
        };
        let batch = BATCH * self.page_bytes;
        let mut start = mapping.start;
        while start < mapping.end {
            let end = mapping.end.min(start.saturating_add(batch));
            let count = (end - start) / self.page_bytes;
            self.read_entries(start, count)?;
            let (entries, _) = self.entries.as_chunks();
            for (&entry, index) in entries.iter().zip(0..) {
                if is_meant(u64::from_ne_bytes(entry)) {
                    append(into, start + index * self.page_bytes, self.page_bytes);
                }
            }
            start = end;
        }
        Ok(())
    }

    fn read_entries(&mut self, start: u64, count: u64) -> Result<(), Error> {
        let bytes = usize::try_from(count * ENTRY_BYTES).expect("a batch is small");
        self.entries.resize(bytes, 0);
        let offset = start / self.page_bytes * ENTRY_BYTES;
        match self.pagemap.read_at(&mut self.entries, offset) {
            // The address space that the file was opened on no longer exists.
            Ok(0) => Err(files::gone(self.process)),
            Ok(read) => {
                self.entries.truncate(read);
                Ok(())
            }
            Err(error) => Err(files::of_io(self.process, "pagemap", &error)),
        }
    }

    /// Adds the pages of shared memory, as known from its file: `None` if the file may not be opened.
    fn add_shared(&self, mapping: &MemoryMapping, into: &mut Vec<MemorySpan>) -> Option<()> {
        let name = format!("map_files/{:x}-{:x}", mapping.start, mapping.end);
        let file = File::open(files::path(self.process, &name)).ok()?;
        let end = mapping.file_offset.checked_add(mapping.end - mapping.start)?;
        let mut offset = mapping.file_offset;
        while offset < end {
            let data = match seek(&file, offset, Whence::SeekData) {
                Ok(data) => data.min(end),
                Err(Errno::ENXIO) => break,
                Err(_) => return None,
            };
            let hole = seek(&file, data, Whence::SeekHole).ok()?.min(end);
            append(into, mapping.start + (data - mapping.file_offset), hole.saturating_sub(data));
            offset = hole.max(offset + 1);
        }
        Some(())
    }
}

fn seek(file: &File, offset: u64, whence: Whence) -> Result<u64, Errno> {
    let offset = offset.try_into().map_err(|_| Errno::EOVERFLOW)?;
    lseek(file, offset, whence)?.try_into().map_err(|_| Errno::EOVERFLOW)
}

/// Appends memory, or extends the last span if it continues there.
fn append(into: &mut Vec<MemorySpan>, address: u64, bytes: u64) {
    let Ok(length) = usize::try_from(bytes) else { return };
    match into.last_mut() {
        _ if length == 0 => {}
        Some(last) if last.address + last.length as u64 == address => last.length += length,
        _ => into.push(MemorySpan { address, length }),
    }
}

/// The number of bytes of memory that the process of this number has, including shared memory.
///
/// # Errors
/// If the process is gone or may not be read.
pub fn resident_bytes(process: i32) -> Result<u64, Error> {
    let status = files::read(process, "status")?;
    let field = files::status_field(&status, "VmRSS").unwrap_or_default();
    let kibibytes = field.strip_suffix(" kB").and_then(|number| number.parse::<u64>().ok());
    let invalid = || {
        Error::new(ErrorKind::Malformed, format!("/proc/{process}/status: expected VmRSS, found {field:?}"))
    };
    kibibytes.map(|kibibytes| kibibytes.saturating_mul(1024)).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Mappings;

    /// The pages of a mapping of this process, from the old or the new interface.
    fn found(is_old: bool, mapping: &MemoryMapping, pages: PageSelection) -> Vec<MemorySpan> {
        let id = i32::try_from(std::process::id()).expect("a small number");
        let mut resident = Resident::open(id).expect("our own");
        if is_old {
            resident.regions.clear();
        }
        let mut spans = Vec::new();
        resident.add(mapping, pages, &mut spans).expect("our own");
        spans
    }

    /// The pages that both interfaces find, at a moment when no other test has touched memory.
    fn agreed(mapping: &MemoryMapping, pages: PageSelection) -> Vec<MemorySpan> {
        loop {
            let [before, new, after] = [true, false, true].map(|is_old| found(is_old, mapping, pages));
            if before == after {
                assert_eq!(before, new, "{mapping:?} {pages:?}");
                return new;
            }
        }
    }

    #[test]
    fn memory_that_was_only_read_is_left_out() {
        let held: Vec<u8> = vec![0; 40 << 20];
        assert_eq!(held.iter().step_by(1024).map(|&byte| u64::from(byte)).sum::<u64>(), 0);
        let start = (held.as_ptr().addr() as u64).next_multiple_of(4096);
        let maps = std::fs::read("/proc/self/maps").expect("our own");
        let mappings = Mappings::parse(&maps).expect("mappings");
        let read = MemoryMapping {
            start,
            end: start + (39 << 20),
            ..mappings.at(start).expect("a mapping").clone()
        };
        let bytes = |is_old| found(is_old, &read, PageSelection::Own).iter().map(|span| span.length).sum();
        let [with, without]: [usize; 2] = [true, false].map(bytes);
        assert!(with > without, "an older interface does not tell");
        assert_eq!(without, 0);
    }

    #[test]
    fn both_ways_to_ask_agree() {
        let held: Vec<u8> = vec![7; 40 << 20];
        let maps = std::fs::read("/proc/self/maps").expect("our own");
        let mappings = Mappings::parse(&maps).expect("mappings");
        let start = held.as_ptr().addr() as u64;
        let first = start.next_multiple_of(4096);
        let end = (start + held.len() as u64) / 4096 * 4096;
        let at = mappings.at(start).expect("a mapping");
        let whole = MemoryMapping { start: first, end, ..at.clone() };
        let length = usize::try_from(end - first).expect("a vector");
        assert_eq!(agreed(&whole, PageSelection::Own), [MemorySpan { address: first, length }]);
        let code = mappings.iter().find(|mapping| mapping.shows_file() && mapping.executable).expect("code");
        assert!(!agreed(code, PageSelection::Present).is_empty());
        assert_eq!(agreed(code, PageSelection::Own), []);
        assert_eq!(held[9], 7);
    }
}
