//! The memory of a crashed process, from its ELF core file.
//!
//! Source: Linux, `fs/binfmt_elf.c`: what `elf_core_dump`, `fill_files_note` and `fill_prstatus` write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use borehole_text::cause;
use object::elf::{
    ET_CORE, FileHeader64, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, PF_R, PF_W, PF_X, PT_LOAD, ProgramHeader64,
};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache};

use crate::dump::MemorySpan;
use crate::elf;
use crate::error::{Error, ErrorKind};
use crate::limited::{ByteBudget, LimitedFile};
use crate::maps::{Mappings, MemoryMapping};
use crate::memory::{ForeignMemory, ForeignProcess, MemoryPiece, fill_pieces};
use crate::open::{open_below, open_regular};
use crate::symbols::ElfSymbols;

/// A core file, and the mapped files of its process.
#[derive(Debug)]
pub struct CoreFile {
    file: File,
    /// In order of their addresses.
    segments: Vec<CoreSegment>,
    mappings: Mappings,
    threads: Vec<CoreThread>,
    /// The folder to use as the root folder of the process.
    root: PathBuf,
    symbol_budget: ByteBudget,
    /// The mapped files by path; `None` if one cannot be opened or is not known to be the one that was mapped.
    files: Mutex<BTreeMap<Vec<u8>, Option<Arc<File>>>>,
}

#[derive(Clone, Copy, Debug)]
struct CoreSegment {
    address: u64,
    bytes: u64,
    offset: u64,
}

impl CoreSegment {
    /// The number of its bytes that a file of this size contains.
    fn bytes_within(self, file_bytes: u64) -> u64 {
        self.bytes.min(file_bytes.saturating_sub(self.offset))
    }
}

#[derive(Clone, Copy, Debug)]
struct CoreThread {
    id: i32,
    pointer: u64,
}

/// The offset of the process number in `elf_prpsinfo`.
const PRPSINFO_ID: usize = 24;
/// The offset of the thread number in `elf_prstatus`.
const PRSTATUS_ID: usize = 32;
/// The offset of the base of the segment `fs` in `elf_prstatus` on x86-64: the registers begin at 112, and it is the 22nd.
const PRSTATUS_FS_BASE: usize = 112 + 21 * 8;

/// The number of bytes compared to recognise a file.
const FIRST_PAGE_BYTES: usize = 4096;

impl CoreFile {
    /// Opens a core file. Looks for the mapped files below `root`, which is `/` for a process of this system.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a core file of a 64-bit process.
    pub fn open(path: &Path, root: &Path) -> Result<Self, Error> {
        let name = path.display();
        let file = open_regular(path).map_err(|error| unreadable(&name.to_string(), &error))?;
        let invalid = |error| Error::new(ErrorKind::Malformed, format!("{name}: invalid core file: {error}"));
        let Parsed { segments, mappings, threads } = Parsed::of(&file, PATH_BYTES).map_err(invalid)?;
        Ok(Self {
            file,
            segments,
            mappings: Mappings::new(mappings),
            threads,
            root: root.to_owned(),
            symbol_budget: ByteBudget::new(elf::SYMBOL_BYTES),
            files: Mutex::default(),
        })
    }

    /// The number of bytes that the headers promise and the file lacks, because a full disk or a limit truncated it.
    #[must_use]
    pub fn missing_bytes(&self) -> u64 {
        let length = self.file_bytes();
        let missing = self.segments.iter().map(|segment| segment.bytes - segment.bytes_within(length));
        // Only the headers state the sizes.
        missing.fold(0, u64::saturating_add)
    }

    /// The memory in the core file, at most as much as the file has; includes memory that is only code if `with_code`.
    #[must_use]
    pub fn spans(&self, with_code: bool) -> Vec<MemorySpan> {
        let length = self.file_bytes();
        let is_code = |address| {
            self.mappings.at(address).is_some_and(|mapping| mapping.executable && !mapping.writable)
        };
        let mut left = length;
        let mut spans = Vec::new();
        for segment in self.segments.iter().filter(|segment| with_code || !is_code(segment.address)) {
            let bytes = segment.bytes_within(length).min(left);
            left -= bytes;
            if let Ok(length @ 1..) = usize::try_from(bytes) {
                spans.push(MemorySpan { address: segment.address, length });
            }
        }
        spans
    }

    fn file_bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len())
    }

    /// Copies dumped memory from `address` on. Returns the number of bytes.
    fn copy_dumped(&self, address: u64, into: &mut [u8]) -> usize {
        let behind = self.segments.partition_point(|segment| segment.address <= address);
        let Some(segment) = self.segments[..behind].last() else { return 0 };
        let skipped = address - segment.address;
        let left = segment.bytes.saturating_sub(skipped);
        copy(&self.file, segment.offset.saturating_add(skipped), left, into)
    }

    fn mapped_file(&self, mapping: &MemoryMapping) -> Option<Arc<File>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(&mapping.path) {
            return known.clone();
        }
        let file = self.open_mapped(&mapping.path).ok().map(Arc::new);
        files.insert(mapping.path.clone(), file.clone());
        file
    }

    /// Opens a mapped file, if its first page is the one that the process had mapped. A core file may name any file of this machine,
    /// and a program may have been upgraded since. The first page of a program has its headers and usually its build id, and the
    /// kernel dumps it.
    ///
    /// Source: Linux, `core(5)`, bit 4 of `coredump_filter`.
    fn open_mapped(&self, path: &[u8]) -> io::Result<File> {
        let file = open_below(&self.root, path)?;
        let is_first = |mapping: &&MemoryMapping| mapping.path == path && mapping.file_offset == 0;
        let (mut dumped, mut found) = ([0; FIRST_PAGE_BYTES], [0; FIRST_PAGE_BYTES]);
        let first = self.mappings.iter().filter(is_first);
        let length =
            first.map(|mapping| self.copy_dumped(mapping.start, &mut dumped)).find(|&length| length > 0);
        let Some(length) = length else {
            return Err(io::Error::other(
                "the core file lacks its first page, which would show that it is the same file",
            ));
        };
        file.read_exact_at(&mut found[..length], 0)?;
        if dumped[..length] == found[..length] {
            return Ok(file);
        }
        Err(io::Error::other("it is not the file that the process had mapped"))
    }

    /// Copies memory that was not dumped because a mapped file contains it.
    fn copy_mapped(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = self.mappings.at(address).filter(|mapping| mapping.shows_file()) else {
            return 0;
        };
        let Some(file) = self.mapped_file(mapping) else { return 0 };
        let offset = mapping.file_offset.saturating_add(address - mapping.start);
        copy(&file, offset, mapping.end - address, into)
    }
}

fn unreadable(path: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{path}: {}", cause(error)))
}

/// Copies at most `left` bytes; 0 where the file is truncated.
fn copy(file: &File, offset: u64, left: u64, into: &mut [u8]) -> usize {
    let length = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
    file.read_at(&mut into[..length], offset).unwrap_or(0)
}

impl ForeignMemory for CoreFile {
    fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
        fill_pieces(pieces, |address, into| match self.copy_dumped(address, into) {
            0 => Ok(self.copy_mapped(address, into)),
            copied => Ok(copied),
        })
    }
}

impl ForeignProcess for CoreFile {
    fn mappings(&self) -> &Mappings {
        &self.mappings
    }

    fn symbols(&self, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
        let opened = self.open_mapped(&mapping.path);
        let file = opened.map_err(|error| unreadable(&String::from_utf8_lossy(&mapping.path), &error))?;
        elf::symbols(&file, mapping, &self.symbol_budget)
    }

    fn threads(&self) -> Result<Vec<i32>, Error> {
        Ok(self.threads.iter().map(|thread| thread.id).collect())
    }

    fn thread_pointer(&self, thread: i32) -> Result<u64, Error> {
        let found = self.threads.iter().find(|known| known.id == thread);
        let missing = || Error::new(ErrorKind::Gone, format!("thread {thread} is not in the core file"));
        found.map(|thread| thread.pointer).ok_or_else(missing)
    }
}

/// The maximum number of bytes of headers and notes. Linux writes at most 4 MiB about mapped files unless told otherwise, and
/// some kilobytes for each thread.
const HEADER_BYTES: u64 = 256 << 20;

/// The maximum memory for the paths of mappings. Each mapping has its own copy of the path, so a file could demand far
/// more memory than its size. The 65,530 mappings that Linux allows a process take a tenth of this, with paths of a
/// hundred bytes.
const PATH_BYTES: usize = 64 << 20;

/// The end of the addresses that programs can have: no segment beyond it is read, and no sum of an address and a length overflows.
///
/// Source: Linux, `Documentation/arch/x86/x86_64/mm.rst` and `Documentation/arch/arm64/memory.rst`.
const USER_END: u64 = 1 << 57;

#[derive(Debug)]
struct Parsed {
    segments: Vec<CoreSegment>,
    mappings: Vec<MemoryMapping>,
    threads: Vec<CoreThread>,
}

impl Parsed {
    /// Parses a file; the paths of all mappings may take at most `path_bytes`.
    fn of(file: &File, path_bytes: usize) -> Result<Self, String> {
        let cache = ReadCache::new(file);
        let budget = ByteBudget::new(HEADER_BYTES);
        let data = LimitedFile { cache: &cache, budget: &budget };
        let said = |error: object::Error| error.to_string();
        let elf = FileHeader64::<Endianness>::parse(data).map_err(said)?;
        let endian = elf.endian().map_err(said)?;
        if elf.e_type(endian) != ET_CORE {
            return Err("expected an ELF file of type CORE, found another type".to_owned());
        }
        let headers = elf.program_headers(endian, data).map_err(said)?;
        let loads = || headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
        let segment = |header: &ProgramHeader64<Endianness>| CoreSegment {
            address: header.p_vaddr(endian),
            bytes: header.p_filesz(endian).min(USER_END.saturating_sub(header.p_vaddr(endian))),
            offset: header.p_offset(endian),
        };
        let segments = loads().map(segment).collect();
        let mut parsed = Self { segments, mappings: Vec::new(), threads: Vec::new() };
        parsed.segments.sort_by_key(|segment| segment.address);
        let mut files = None;
        let mut process = 0;
        for header in headers {
            let Some(mut notes) = header.notes(endian, data).map_err(said)? else {
                continue;
            };
            while let Some(note) = notes.next().map_err(said)? {
                match note.n_type(endian) {
                    NT_FILE if files.is_none() => {
                        files = Some(mapped_files(note.desc()).ok_or("invalid list of mapped files")?);
                    }
                    NT_PRSTATUS => parsed.threads.extend(thread(note.desc())),
                    NT_PRPSINFO => process = number(note.desc(), PRPSINFO_ID).unwrap_or(0),
                    _ => {}
                }
            }
        }
        // The crashed thread is first in the file; put the main thread first.
        parsed.threads.sort_by_key(|thread| thread.id != process);
        parsed.mappings = mappings(loads(), endian, files.unwrap_or_default(), path_bytes)?;
        Ok(parsed)
    }
}

fn mappings<'h>(
    headers: impl Iterator<Item = &'h ProgramHeader64<Endianness>>,
    endian: Endianness,
    mut files: Vec<MappedFile>,
    path_bytes: usize,
) -> Result<Vec<MemoryMapping>, String> {
    files.sort_by_key(|file| file.start);
    let mut left = path_bytes;
    let mapping = |header| {
        let mapping = mapping(header, endian, &files);
        left = left.checked_sub(mapping.path.len()).ok_or_else(|| {
            format!("too many mapped files: expected paths of at most {path_bytes} bytes in total")
        })?;
        Ok(mapping)
    };
    headers.map(mapping).collect()
}

struct MappedFile {
    start: u64,
    end: u64,
    file_offset: u64,
    path: Vec<u8>,
}

/// Creates a mapping; `files` are in order of their addresses.
fn mapping(header: &ProgramHeader64<Endianness>, endian: Endianness, files: &[MappedFile]) -> MemoryMapping {
    let (start, flags) = (header.p_vaddr(endian), header.p_flags(endian));
    let behind = files.partition_point(|file| file.start <= start);
    let file = files[..behind].last().filter(|file| start < file.end);
    let file_offset = file.map_or(0, |file| file.file_offset.saturating_add(start - file.start));
    MemoryMapping {
        start,
        end: start.saturating_add(header.p_memsz(endian)),
        file_offset,
        readable: flags.contains(PF_R),
        writable: flags.contains(PF_W),
        executable: flags.contains(PF_X),
        shared: false,
        path: file.map(|file| file.path.clone()).unwrap_or_default(),
        deleted: false,
    }
}

/// Parses `NT_FILE`: the number of files, the page size, three numbers per file, then the paths.
fn mapped_files(note: &[u8]) -> Option<Vec<MappedFile>> {
    let word = |index: usize| Some(u64::from_le_bytes(note.get(index * 8..)?.first_chunk().copied()?));
    let (count, page_bytes) = (usize::try_from(word(0)?).ok()?, word(1)?);
    let paths = note.get(count.checked_mul(3)?.checked_add(2)?.checked_mul(8)?..)?;
    let paths = paths.split(|&byte| byte == 0);
    let mut files = Vec::new();
    for (index, path) in (0..count).zip(paths) {
        let row = 2 + index * 3;
        let file_offset = word(row + 2)?.checked_mul(page_bytes)?;
        files.push(MappedFile { start: word(row)?, end: word(row + 1)?, file_offset, path: path.to_owned() });
    }
    Some(files)
}

fn thread(note: &[u8]) -> Option<CoreThread> {
    let pointer = u64::from_le_bytes(note.get(PRSTATUS_FS_BASE..)?.first_chunk().copied()?);
    Some(CoreThread { id: number(note, PRSTATUS_ID)?, pointer })
}

fn number(note: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_le_bytes(note.get(at..)?.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    /// A core file of this many pages from address 0x1000 on, and mapped files of the given page counts from there on.
    fn core(pages: u64, files: &[(u64, &str)]) -> File {
        let mut note = vec![files.len() as u64, 0x1000];
        let mut start = 0x1000;
        for (pages, _) in files {
            note.extend([start, start + pages * 0x1000, 0]);
            start += pages * 0x1000;
        }
        let mut note: Vec<u8> = note.into_iter().flat_map(u64::to_le_bytes).collect();
        for (_, path) in files {
            note.extend([path.as_bytes(), b"\0"].concat());
        }
        let header = |kind: u32, offset: u64, address: u64, in_file: u64, in_memory: u64| {
            let words = [offset, address, 0, in_file, in_memory, 4];
            let start = [kind, 4].map(u32::to_le_bytes).concat();
            [start, words.map(u64::to_le_bytes).concat()].concat()
        };
        let note_at = 64 + 56 * (pages + 1);
        let size = u32::try_from(note.len()).unwrap();
        // The type is `NT_FILE`.
        let head = [5, size, 0x4649_4c45].map(u32::to_le_bytes).concat();
        let note = [&head[..], b"CORE\0\0\0\0", &note].concat();
        let half_words = |words: &[u64]| -> Vec<u8> {
            words.iter().flat_map(|&word| u16::try_from(word).unwrap().to_le_bytes()).collect()
        };
        let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend([half_words(&[4, 62]), 1_u32.to_le_bytes().to_vec()].concat());
        bytes.extend([0, 64, 0].map(u64::to_le_bytes).concat());
        bytes.extend([0_u32.to_le_bytes().to_vec(), half_words(&[64, 56, pages + 1, 0, 0, 0])].concat());
        for page in 1..=pages {
            bytes.extend(header(1, 0, page * 0x1000, 0, 0x1000));
        }
        bytes.extend(header(4, note_at, 0, note.len() as u64, 0));
        assert_eq!(bytes.len() as u64, note_at);
        bytes.extend(note);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn segments_have_the_files_that_were_mapped_there() {
        let parsed = Parsed::of(&core(4, &[(2, "/lib/a.so"), (1, "/lib/b.so")]), PATH_BYTES).unwrap();
        let found: Vec<(&[u8], u64)> =
            parsed.mappings.iter().map(|mapping| (&*mapping.path, mapping.file_offset)).collect();
        let expected = [("/lib/a.so", 0), ("/lib/a.so", 0x1000), ("/lib/b.so", 0), ("", 0)];
        assert_eq!(found, expected.map(|(path, offset)| (path.as_bytes(), offset)));
    }

    #[test]
    fn segments_end_where_the_memory_of_programs_does() {
        let mut file = core(2, &[]);
        // The address and the size in the file of the first segment.
        let mut write = |at: u64, word: u64| {
            file.seek(io::SeekFrom::Start(at)).unwrap();
            file.write_all(&word.to_le_bytes()).unwrap();
        };
        write(64 + 16, USER_END - 0x1000);
        write(64 + 32, u64::MAX);
        write(64 + 56 + 16, u64::MAX - 0xfff);
        write(64 + 56 + 32, 0x1000);
        let found = Parsed::of(&file, PATH_BYTES).unwrap().segments;
        let found: Vec<_> = found.iter().map(|segment| (segment.address, segment.bytes)).collect();
        assert_eq!(found, [(USER_END - 0x1000, 0x1000), (u64::MAX - 0xfff, 0)]);
    }

    #[test]
    fn paths_that_many_segments_share_take_no_more_memory_than_they_may() {
        let file = core(5, &[(5, "/0123456789")]);
        assert_eq!(Parsed::of(&file, 55).unwrap().mappings.len(), 5);
        let error = Parsed::of(&file, 54).unwrap_err();
        assert_eq!(error, "too many mapped files: expected paths of at most 54 bytes in total");
    }

    #[test]
    fn files_are_not_read_only_because_a_core_file_names_them() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "a secret of this machine").unwrap();
        let mut file = core(1, &[(1, secret.path().to_str().unwrap())]);
        let written = tempfile::NamedTempFile::new().unwrap();
        file.rewind().unwrap();
        io::copy(&mut file, &mut written.as_file()).unwrap();
        let core = CoreFile::open(written.path(), Path::new("/")).unwrap();
        let mapping = core.mappings().at(0x1000).unwrap();
        assert_eq!(mapping.path, secret.path().as_os_str().as_encoded_bytes());
        assert_eq!(core.read_u64(0x1000).unwrap_err().kind(), ErrorKind::Unmapped);
        let error = core.symbols(mapping).unwrap_err().to_string();
        assert!(error.contains("the core file lacks its first page"), "{error}");
    }
}
