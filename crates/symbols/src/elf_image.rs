//! ELF files: headers, sections and notes. Only what is asked for is read.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use object::Endianness;
use object::elf::{
    CompressionHeader64, ELFCLASS64, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, ELFMAG, FileHeader64,
    NT_GNU_BUILD_ID, NoteHeader64, PF_X, PT_LOAD, PT_NOTE, ProgramHeader64, SHF_COMPRESSED, SHT_NOBITS,
    SHT_NOTE, SectionHeader64,
};
use object::pod::{Pod, from_bytes, slice_from_bytes};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _};

use crate::build_id::BuildId;
use crate::fault::{Fault, Unresolved};

/// The bytes that may still be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    left: u64,
    limit: u64,
}

impl Allowance {
    pub(crate) const fn new(bytes: u64) -> Self {
        Self { left: bytes, limit: bytes }
    }

    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let limit = borehole_text::bytes(self.limit);
            Fault::new(Unresolved::TooLarge, format!("needs more than {limit}"))
        })?;
        Ok(())
    }

    /// The bytes that were taken.
    pub(crate) const fn taken(&self) -> u64 {
        self.limit - self.left
    }
}

/// The most bytes of a table of headers, of their names, or of notes.
const HEADER_BYTES: u64 = 8 << 20;

/// The most bytes of a section's name that matter.
const SECTION_NAME: usize = 64;

/// Segments begin at pages, whatever their headers state. No supported machine has smaller pages, and larger sizes are
/// multiples.
const PAGE_BYTES: u64 = 4096;

/// Where the bytes of an image are.
#[derive(Clone, Debug)]
pub(crate) enum ImageSource {
    /// A file with its length.
    File(Arc<File>, u64),
    /// Bytes copied from memory.
    Memory(Arc<[u8]>),
}

impl ImageSource {
    pub(crate) fn file(file: File) -> Result<Self, Fault> {
        let length = file.metadata().map_err(|error| Fault::of_io(&error))?.len();
        Ok(Self::File(Arc::new(file), length))
    }

    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::File(_, length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Reads a part of the image, which must be inside it.
    pub(crate) fn read(&self, offset: u64, size: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
        let outside = || Fault::damaged(format!("truncated: expected {size} bytes at {offset:#x}"));
        offset.checked_add(size).filter(|&end| end <= self.length()).ok_or_else(outside)?;
        allowance.take(size)?;
        let (start, length) = (usize::try_from(offset), usize::try_from(size).map_err(|_| outside())?);
        match self {
            Self::Memory(bytes) => {
                let start = start.map_err(|_| outside())?;
                Ok(bytes[start..start + length].to_vec())
            }
            Self::File(file, _) => {
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset).map_err(|error| Fault::of_io(&error))?;
                Ok(bytes)
            }
        }
    }
}

/// A part of the file that is loaded into memory.
#[derive(Clone, Copy, Debug)]
struct Segment {
    file_offset: u64,
    file_size: u64,
    address: u64,
    is_code: bool,
}

/// The header of a section.
#[derive(Clone, Debug)]
pub(crate) struct SectionPlace {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) link: usize,
    file_offset: u64,
}

/// The headers of an ELF file of 64 bits.
#[derive(Clone, Debug)]
pub(crate) struct ElfImage {
    pub(crate) source: ImageSource,
    pub(crate) endian: Endianness,
    pub(crate) build_id: Option<BuildId>,
    pub(crate) sections: Vec<SectionPlace>,
    segments: Vec<Segment>,
}

impl ElfImage {
    /// Reads the headers.
    pub(crate) fn read(source: ImageSource) -> Result<Self, Fault> {
        let mut allowance = Allowance::new(HEADER_BYTES);
        let bytes = source.read(0, size_of::<FileHeader64<Endianness>>() as u64, &mut allowance);
        let bytes = bytes.map_err(|fault| match fault.reason {
            Unresolved::Damaged => no_elf(),
            _ => fault,
        })?;
        let header = one::<FileHeader64<Endianness>>(&bytes)?;
        if header.e_ident.magic != ELFMAG || header.e_ident.class != ELFCLASS64 {
            return Err(no_elf());
        }
        let endian = header.endian().map_err(|_| no_elf())?;
        let mut image = Self { source, endian, build_id: None, sections: Vec::new(), segments: Vec::new() };
        let notes = image.read_segments(header)?;
        image.read_sections(header)?;
        image.build_id = image.find_build_id(&notes);
        Ok(image)
    }

    /// The image without its content: it keeps no file open, and still knows its addresses.
    pub(crate) fn closed(self) -> Self {
        Self { source: ImageSource::Memory(Arc::default()), sections: Vec::new(), ..self }
    }

    /// Reads the program headers. Returns where notes are in the file: offset, size and alignment.
    fn read_segments(&mut self, header: &FileHeader64<Endianness>) -> Result<Vec<(u64, u64, u64)>, Fault> {
        let endian = self.endian;
        let table = self.table(
            header.e_phoff(endian),
            header.e_phnum(endian),
            size_of::<ProgramHeader64<Endianness>>(),
        )?;
        let mut notes = Vec::new();
        for segment in many::<ProgramHeader64<Endianness>>(&table)? {
            let (file_offset, file_size) = segment.file_range(endian);
            if segment.p_type(endian) == PT_LOAD {
                let is_code = segment.p_flags(endian).0 & PF_X.0 != 0;
                self.segments.push(Segment {
                    file_offset,
                    file_size,
                    address: segment.p_vaddr(endian),
                    is_code,
                });
            } else if segment.p_type(endian) == PT_NOTE {
                notes.push((file_offset, file_size, segment.p_align(endian)));
            }
        }
        Ok(notes)
    }

    fn read_sections(&mut self, header: &FileHeader64<Endianness>) -> Result<(), Fault> {
        let endian = self.endian;
        let table = self.table(
            header.e_shoff(endian),
            header.e_shnum(endian),
            size_of::<SectionHeader64<Endianness>>(),
        )?;
        let headers = many::<SectionHeader64<Endianness>>(&table)?;
        let names = match headers.get(usize::from(header.e_shstrndx.get(endian).0)) {
            Some(names) => {
                let mut allowance = Allowance::new(HEADER_BYTES);
                self.source.read(names.sh_offset(endian), names.sh_size(endian), &mut allowance)?
            }
            None => Vec::new(),
        };
        self.sections = headers
            .iter()
            .map(|section| SectionPlace {
                name: name_at(&names, section.sh_name(endian), SECTION_NAME).unwrap_or_default().to_vec(),
                kind: section.sh_type(endian).0,
                flags: section.sh_flags(endian).0,
                address: section.sh_addr(endian),
                size: section.sh_size(endian),
                link: usize::try_from(section.sh_link(endian)).unwrap_or(usize::MAX),
                file_offset: section.sh_offset(endian),
            })
            .collect();
        Ok(())
    }

    fn table(&self, offset: u64, entries: u16, entry_bytes: usize) -> Result<Vec<u8>, Fault> {
        if offset == 0 || entries == 0 {
            return Ok(Vec::new());
        }
        let size = u64::from(entries) * entry_bytes as u64;
        self.source.read(offset, size, &mut Allowance::new(HEADER_BYTES))
    }

    /// Notes are in segments of programs, and in sections of debug files.
    fn find_build_id(&self, segments: &[(u64, u64, u64)]) -> Option<BuildId> {
        let is_note = |section: &&SectionPlace| section.kind == SHT_NOTE.0;
        let sections =
            self.sections.iter().filter(is_note).map(|section| (section.file_offset, section.size, 4));
        let mut allowance = Allowance::new(HEADER_BYTES);
        segments.iter().copied().chain(sections).find_map(|(offset, size, alignment)| {
            let notes = self.source.read(offset, size, &mut allowance).ok()?;
            build_id_in(&notes, self.endian, if alignment == 8 { 8 } else { 4 })
        })
    }

    /// The section called `name`, if it has content in this file.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&SectionPlace> {
        self.sections
            .iter()
            .find(|section| section.name == name && section.kind != SHT_NOBITS.0 && section.size > 0)
    }

    /// The content of a section, decompressed.
    pub(crate) fn content(
        &self,
        section: &SectionPlace,
        allowance: &mut Allowance,
    ) -> Result<Vec<u8>, Fault> {
        if section.kind == SHT_NOBITS.0 {
            return Ok(Vec::new());
        }
        let bytes = self.source.read(section.file_offset, section.size, allowance)?;
        let damaged =
            || Fault::damaged(format!("invalid section {}", String::from_utf8_lossy(&section.name)));
        if section.flags & SHF_COMPRESSED.0 != 0 {
            let (header, packed) =
                bytes.split_at_checked(size_of::<CompressionHeader64<Endianness>>()).ok_or_else(damaged)?;
            let header = one::<CompressionHeader64<Endianness>>(header)?;
            let size = header.ch_size.get(self.endian);
            return match header.ch_type.get(self.endian) {
                kind if kind == ELFCOMPRESS_ZLIB => unpacked(ZlibDecoder::new(packed), size, allowance),
                kind if kind == ELFCOMPRESS_ZSTD => {
                    let decoder = zstd::Decoder::with_buffer(packed).map_err(|error| Fault::of_io(&error))?;
                    unpacked(decoder, size, allowance)
                }
                _ => Err(damaged()),
            };
        }
        if section.name.starts_with(b".zdebug_") {
            let size = bytes.get(4..12).and_then(|size| size.try_into().ok()).map(u64::from_be_bytes);
            let packed = bytes.strip_prefix(b"ZLIB").and_then(|rest| rest.get(8..));
            let (size, packed) = size.zip(packed).ok_or_else(damaged)?;
            return unpacked(ZlibDecoder::new(packed), size, allowance);
        }
        Ok(bytes)
    }

    /// The address that the file states for the byte at `file_offset`; `None` if that is not loaded.
    pub(crate) fn stated_address(&self, file_offset: u64) -> Option<u64> {
        let contains = |segment: &&Segment| {
            let first_page = segment.file_offset / PAGE_BYTES * PAGE_BYTES;
            (first_page..segment.file_offset.saturating_add(segment.file_size)).contains(&file_offset)
        };
        // Neighbours share a page of the file, so the offset may be in two segments. The address is one of code.
        let segment = self.segments.iter().filter(|segment| segment.is_code).find(contains);
        let segment = segment.or_else(|| self.segments.iter().find(contains))?;
        Some(segment.address.wrapping_add(file_offset).wrapping_sub(segment.file_offset))
    }
}

/// Reads what a decoder yields, but no more than `size`, which the file states, and what is allowed.
fn unpacked(decoder: impl Read, size: u64, allowance: &mut Allowance) -> Result<Vec<u8>, Fault> {
    allowance.take(size)?;
    let mut bytes = Vec::new();
    let read = decoder.take(size).read_to_end(&mut bytes);
    read.map_err(|_| Fault::damaged("a compressed section is damaged"))?;
    Ok(bytes)
}

fn no_elf() -> Fault {
    Fault::damaged("expected a 64-bit ELF file")
}

fn one<T: Pod>(bytes: &[u8]) -> Result<&T, Fault> {
    from_bytes::<T>(bytes).map(|(header, _)| header).map_err(|()| no_elf())
}

/// All whole entries of a table.
pub(crate) fn many<T: Pod>(bytes: &[u8]) -> Result<&[T], Fault> {
    slice_from_bytes::<T>(bytes, bytes.len() / size_of::<T>()).map(|(rows, _)| rows).map_err(|()| no_elf())
}

/// The text at `offset`, which ends before a zero; `None` if it is longer than `longest`.
pub(crate) fn name_at(names: &[u8], offset: u32, longest: usize) -> Option<&[u8]> {
    let name = names.get(usize::try_from(offset).ok()?..)?;
    let name = &name[..name.len().min(longest + 1)];
    memchr::memchr(0, name).map(|length| &name[..length])
}

/// The build ID among notes.
///
/// Source: System V ABI, "Note Section"; binutils, `elf/common.h`, NT_GNU_BUILD_ID.
fn build_id_in(mut notes: &[u8], endian: Endianness, alignment: usize) -> Option<BuildId> {
    const HEADER: usize = size_of::<NoteHeader64<Endianness>>();
    while notes.len() >= HEADER {
        let header = one::<NoteHeader64<Endianness>>(notes).ok()?;
        let length = |length: u32| usize::try_from(length).ok();
        let name_end = HEADER.checked_add(length(header.n_namesz.get(endian))?)?;
        let start = name_end.checked_next_multiple_of(alignment)?;
        let end = start.checked_add(length(header.n_descsz.get(endian))?)?;
        let (name, content) = (notes.get(HEADER..name_end)?, notes.get(start..end)?);
        if name == b"GNU\0" && header.n_type.get(endian) == NT_GNU_BUILD_ID {
            return BuildId::new(content);
        }
        notes = notes.get(end.checked_next_multiple_of(alignment)?..)?;
    }
    None
}
