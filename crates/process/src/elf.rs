//! Reads the symbols of the ELF files that a process has mapped.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use borehole_text::cause;
use object::elf::{PT_LOAD, PT_TLS, ProgramHeader64, STT_TLS};
use object::read::StringTable;
use object::read::elf::{ElfFile64, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache};

use crate::error::{Error, ErrorKind};
use crate::files;
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

/// The dynamic symbols of `file`, at the addresses where `mapping` maps a part of it.
pub(crate) fn symbols(file: &File, mapping: &MemoryMapping) -> Result<ElfSymbols, Error> {
    let invalid = |error: object::Error| {
        let path = String::from_utf8_lossy(&mapping.path);
        Error::new(ErrorKind::Malformed, format!("{path}: expected a 64-bit ELF file: {error}"))
    };
    let data = ReadCache::new(file);
    let elf: ElfFile64<'_, Endianness, _> = ElfFile64::parse(&data).map_err(invalid)?;
    let endian = elf.endian();
    let headers = elf.elf_program_headers();
    let bias = bias(headers, endian, mapping)?;
    let mut symbols = ElfSymbols::new(thread_local_block(headers, endian));
    let table = elf.elf_dynamic_symbol_table();
    // Read all names at once: the table would read each name separately.
    let names = elf.elf_section_table().section(table.string_section());
    let names = names.and_then(|section| section.data(endian, &data)).unwrap_or_default();
    let names = StringTable::new(names, 0, names.len() as u64);
    for symbol in table.iter() {
        let Ok(name) = symbol.name(endian, names) else { continue };
        if symbol.is_undefined(endian) || name.is_empty() {
            continue;
        }
        let thread_local = symbol.st_type() == STT_TLS;
        let value = symbol.st_value(endian);
        let address = if thread_local { value } else { value.wrapping_add(bias) };
        symbols.add(name, ElfSymbol { address, size: symbol.st_size(endian), thread_local });
    }
    Ok(symbols)
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
