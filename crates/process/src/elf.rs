//! Reads the symbols of the ELF files that a process has mapped.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use borehole_text::cause;
use object::elf::{FileHeader64, PT_LOAD, PT_TLS, ProgramHeader64, SHF_ALLOC, SHT_DYNSYM, STT_TLS};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, SectionTable, Sym as _};
use object::{Endianness, ReadCache, ReadRef};

use crate::error::{Error, ErrorKind};
use crate::files;
use crate::limited::{ByteBudget, LimitedFile};
use crate::maps::{DELETED, MemoryMapping};
use crate::open::{open_below, open_regular};
use crate::symbols::{ElfSymbol, ElfSymbols, ThreadLocalBlock};

/// Segments begin at pages, whatever their headers state. No supported machine has smaller pages, and larger sizes are
/// multiples.
const PAGE_BYTES: u64 = 4096;

/// Opens the file of `mapping`, even if the process sees another file system.
///
/// Tries in order: its path below the root of the process, unless the file was deleted or replaced; the kernel's link
/// to the mapped file, which needs privileges; the file of the program, if it is the mapped one.
pub(crate) fn open_mapped(process: i32, mapping: &MemoryMapping) -> Result<File, Error> {
    if !mapping.shows_file() {
        let what = format!("no file is mapped at {:#x} in process {process}", mapping.start);
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    let root = files::path(process, "root");
    let below_root = || (!mapping.deleted).then(|| open_below(&root, &mapping.path));
    let link = files::path(process, &format!("map_files/{:x}-{:x}", mapping.start, mapping.end));
    let program = files::path(process, "exe");
    let as_program = || shows_program(&program, mapping).then(|| open_regular(&program));
    let ways: [&dyn Fn() -> Option<io::Result<File>>; 3] =
        [&below_root, &|| Some(open_regular(&link)), &as_program];
    let mut first_error = None;
    for opened in ways.iter().filter_map(|open| open()) {
        match opened {
            Ok(file) => return Ok(file),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    let error = first_error.unwrap_or_else(|| io::ErrorKind::NotFound.into());
    let path = String::from_utf8_lossy(&mapping.path);
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let kind = if is_denied { ErrorKind::Denied } else { ErrorKind::Unsupported };
    let state = if mapping.deleted { ", deleted after the process started" } else { "" };
    Err(Error::new(kind, format!("cannot read {path} of process {process}{state}: {}", cause(&error))))
}

fn shows_program(program: &Path, mapping: &MemoryMapping) -> bool {
    let Ok(link) = std::fs::read_link(program) else { return false };
    let link = link.as_os_str().as_bytes();
    link.strip_suffix(DELETED).unwrap_or(link) == mapping.path
}

/// The budget for the symbols of all files of a process, in bytes. The libraries of a large program take a tenth of it.
pub(crate) const SYMBOL_BYTES: u64 = 128 << 20;

/// The maximum number of bytes of a name. Longer ones are left out: some programs in C++ have such names, and PHP has none.
const LONGEST_NAME: usize = 1024;

/// The memory that a symbol takes beside its name, in bytes, rounded up.
const SYMBOL_OVERHEAD: u64 = 128;

impl ElfSymbols {
    /// Reads the dynamic symbols of `file`, at the addresses where `mapping` maps a part of it.
    ///
    /// # Errors
    /// If it is not a 64-bit ELF file, does not contain what is mapped, or takes more memory than the symbols of a process may.
    pub fn of_file(file: &File, mapping: &MemoryMapping) -> Result<Self, Error> {
        symbols(file, mapping, &ByteBudget::new(SYMBOL_BYTES))
    }
}

/// The dynamic symbols of `file`, at the addresses where `mapping` maps a part of it. Takes what is read and kept from `budget`.
pub(crate) fn symbols(
    file: &File,
    mapping: &MemoryMapping,
    budget: &ByteBudget,
) -> Result<ElfSymbols, Error> {
    let path = String::from_utf8_lossy(&mapping.path);
    read_symbols(file, mapping, budget).map_err(|error| match error {
        _ if budget.is_exhausted() => {
            let limit = borehole_text::bytes(SYMBOL_BYTES);
            let what =
                format!("{path}: too many symbols: expected at most {limit} in all files of a process");
            Error::new(ErrorKind::Unsupported, what)
        }
        SymbolsError::Elf(error) => {
            Error::new(ErrorKind::Malformed, format!("{path}: expected a 64-bit ELF file: {error}"))
        }
        SymbolsError::Other(error) => error,
    })
}

enum SymbolsError {
    Elf(object::Error),
    Other(Error),
}

impl From<object::Error> for SymbolsError {
    fn from(error: object::Error) -> Self {
        Self::Elf(error)
    }
}

impl From<Error> for SymbolsError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

fn read_symbols(
    file: &File,
    mapping: &MemoryMapping,
    budget: &ByteBudget,
) -> Result<ElfSymbols, SymbolsError> {
    let cache = ReadCache::new(file);
    let data = LimitedFile { cache: &cache, budget };
    let elf = FileHeader64::<Endianness>::parse(data)?;
    let endian = elf.endian()?;
    let headers = elf.program_headers(endian, data)?;
    let bias = bias(headers, endian, mapping)?;
    let mut symbols = ElfSymbols::new(thread_local_block(headers, endian));
    let sections = elf.sections(endian, data)?;
    let table = sections.symbols(endian, data, SHT_DYNSYM)?;
    // Read all names at once: the table would read each name separately.
    let names = sections.section(table.string_section());
    let names = names.and_then(|section| section.data(endian, data)).unwrap_or_default();
    for symbol in table.iter().filter(|symbol| !symbol.is_undefined(endian)) {
        let Some(name) = name_at(names, symbol.st_name(endian)) else { continue };
        if !budget.take(name.len() as u64 + SYMBOL_OVERHEAD) {
            return Err(Error::new(ErrorKind::Unsupported, "too many symbols").into());
        }
        let thread_local = symbol.st_type() == STT_TLS;
        let value = symbol.st_value(endian);
        let address = if thread_local { value } else { value.wrapping_add(bias) };
        symbols.add(name, ElfSymbol { address, size: symbol.st_size(endian), thread_local });
    }
    add_sections(&mut symbols, &sections, endian, bias);
    Ok(symbols)
}

/// Adds the sections that are in memory, such as `.PyRuntime`: a file without symbols still has them.
fn add_sections<'d, R: ReadRef<'d>>(
    symbols: &mut ElfSymbols,
    sections: &SectionTable<'d, FileHeader64<Endianness>, R>,
    endian: Endianness,
    bias: u64,
) {
    for section in sections.iter() {
        let is_in_memory = section.sh_flags(endian).0 & SHF_ALLOC.0 != 0;
        let name = sections.section_name(endian, section).unwrap_or_default();
        if is_in_memory && name.starts_with(b".") && name.len() <= LONGEST_NAME {
            let address = section.sh_addr(endian).wrapping_add(bias);
            symbols.add(name, ElfSymbol { address, size: section.sh_size(endian), thread_local: false });
        }
    }
}

/// The name at this offset; `None` if it is empty or too long. Does not look further than that for its end, because all names
/// may share one.
fn name_at(names: &[u8], offset: u32) -> Option<&[u8]> {
    let name = names.get(usize::try_from(offset).ok()?..)?;
    let name = &name[..name.len().min(LONGEST_NAME + 1)];
    let length = name.iter().position(|&byte| byte == 0)?;
    (length > 0).then(|| &name[..length])
}

/// The difference between an address in the process and the address in the file.
fn bias(
    headers: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    mapping: &MemoryMapping,
) -> Result<u64, Error> {
    let shown = |header: &&ProgramHeader64<Endianness>| {
        let (offset, size) = header.file_range(endian);
        let first_page = offset / PAGE_BYTES * PAGE_BYTES;
        let end = offset.saturating_add(size);
        header.p_type(endian) == PT_LOAD && (first_page..end).contains(&mapping.file_offset)
    };
    let header = headers.iter().find(shown).ok_or_else(|| {
        let path = String::from_utf8_lossy(&mapping.path);
        let what = format!("{path}: no segment contains the file offset {:#x}", mapping.file_offset);
        Error::new(ErrorKind::Malformed, what)
    })?;
    let (offset, address) = (header.p_offset(endian), header.p_vaddr(endian));
    let address = address.wrapping_add(mapping.file_offset).wrapping_sub(offset);
    Ok(mapping.start.wrapping_sub(address))
}

fn thread_local_block(
    headers: &[ProgramHeader64<Endianness>],
    endian: Endianness,
) -> Option<ThreadLocalBlock> {
    let header = headers.iter().find(|header| header.p_type(endian) == PT_TLS)?;
    Some(ThreadLocalBlock { size: header.p_memsz(endian), alignment: header.p_align(endian) })
}
