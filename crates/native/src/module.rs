//! Loads the unwind information of a mapped file from the memory of the process.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use borehole_process::{Error, ForeignMemory, ForeignProcess, Mappings, MemoryMapping, MemoryPiece};
use framehop::{ExplicitModuleSectionInfo, Module};
use hashbrown::HashMap;
use object::elf::{FileHeader64, PT_GNU_EH_FRAME, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};

use crate::frame_table::FrameTable;

/// The bytes from the start of a module in which its headers are expected. Linkers put them right behind each other.
const HEADER_BYTES: usize = 4096;

/// The most bytes of unwind information read of a module. That of a browser takes 30 MB.
const MOST_SECTION_BYTES: u64 = 128 << 20;

/// The bytes of a section, shared by all processes that have mapped the same file.
pub(crate) type SectionBytes = Arc<[u8]>;

/// The sections that are in use, each distinct one once. A clone is the same pool.
///
/// They are compared by their content: what a process says about its files is not trusted for other processes.
#[derive(Clone, Debug, Default)]
pub struct SectionPool(Arc<Mutex<HashMap<u64, Weak<[u8]>>>>);

impl SectionPool {
    fn intern(&self, bytes: Vec<u8>) -> SectionBytes {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = hasher.finish();
        if let Some(same) = known.get(&hash).and_then(Weak::upgrade).filter(|same| **same == *bytes) {
            return same;
        }
        known.retain(|_, section| section.strong_count() > 0);
        let section: SectionBytes = bytes.into();
        known.insert(hash, Arc::downgrade(&section));
        section
    }
}

/// Where a module has its unwind information, as its headers state it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnwindPlace {
    /// The difference between an address in the process and the address in the file.
    bias: u64,
    /// `.eh_frame_hdr`, at addresses in the file.
    index: Range<u64>,
    /// The end of the segment that holds it, which bounds `.eh_frame`.
    segment_end: u64,
}

/// The content of an executable mapping.
pub(crate) enum Loaded {
    /// A part of a file with unwind information.
    Module(Module<SectionBytes>, FrameTable),
    /// A part of a file without such information, as far as can be found.
    Bare,
    /// Code that the program made itself.
    Made,
}

/// Loads what `mapping` shows.
pub(crate) fn load(
    process: &impl ForeignProcess,
    mapping: &MemoryMapping,
    pool: &SectionPool,
) -> Result<Loaded, Error> {
    let Some(first) = first_mapping(process.mappings(), mapping) else { return Ok(Loaded::Made) };
    let header = read_up_to(process, first.start, HEADER_BYTES)?;
    if !header.starts_with(&elf::ELFMAG) {
        return Ok(Loaded::Made);
    }
    let found = match unwind_place(&header, first.start) {
        Some(place) => load_sections(process, mapping, &place, pool)?,
        None => load_plain(process, mapping, pool)?,
    };
    Ok(found.map_or(Loaded::Bare, |(module, table)| Loaded::Module(module, table)))
}

/// The module of a file without an index, such as a program that was linked statically. Only the sections of the file say where its
/// unwind information is.
fn load_plain(
    process: &impl ForeignProcess,
    mapping: &MemoryMapping,
    pool: &SectionPool,
) -> Result<Option<(Module<SectionBytes>, FrameTable)>, Error> {
    let section = process.symbols(mapping).ok().and_then(|symbols| symbols.find(".eh_frame"));
    let Some(section) = section.filter(|section| section.size > 0) else { return Ok(None) };
    let frames = section.address..section.address.saturating_add(section.size);
    let Some(bytes) = read_section(process, 0, &frames)? else { return Ok(None) };
    let bytes = pool.intern(bytes);
    let table = FrameTable::plain((bytes.clone(), frames.start));
    // Its addresses are relative to itself, so that those of the process serve as those of the file.
    let sections = ExplicitModuleSectionInfo {
        base_svma: mapping.start,
        eh_frame_svma: Some(frames),
        eh_frame: Some(bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    Ok(Some((Module::new(String::new(), mapping.start..mapping.end, mapping.start, sections), table)))
}

fn load_sections(
    memory: &impl ForeignMemory,
    mapping: &MemoryMapping,
    place: &UnwindPlace,
    pool: &SectionPool,
) -> Result<Option<(Module<SectionBytes>, FrameTable)>, Error> {
    let UnwindPlace { bias, ref index, segment_end } = *place;
    let Some(index_bytes) = read_section(memory, bias, index)? else { return Ok(None) };
    let Some(frames_start) = frames_start(&index_bytes, index.start) else { return Ok(None) };
    let frames = frames_start..segment_end;
    let Some(frames_bytes) = read_section(memory, bias, &frames)? else { return Ok(None) };
    let frames = frames_start..frames_start + frames_bytes.len() as u64;
    let (frames_bytes, index_bytes) = (pool.intern(frames_bytes), pool.intern(index_bytes));
    let index_part = (index_bytes.clone(), index.start);
    let table = FrameTable::indexed(bias, index_part, (frames_bytes.clone(), frames_start));
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_svma: Some(frames),
        eh_frame: Some(frames_bytes),
        eh_frame_hdr_svma: Some(index.clone()),
        eh_frame_hdr: Some(index_bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    // The name is of no use to the unwinder.
    Ok(Some((Module::new(String::new(), mapping.start..mapping.end, bias, sections), table)))
}

/// The mapping with the ELF header of the file that `mapping` shows a part of: the nearest below it.
fn first_mapping<'m>(mappings: &'m Mappings, mapping: &MemoryMapping) -> Option<&'m MemoryMapping> {
    let below = mappings.iter().take_while(|other| other.start <= mapping.start);
    below
        .filter(|other| other.file_offset == 0 && other.path == mapping.path && !other.path.is_empty())
        .last()
}

fn unwind_place(header: &[u8], start: u64) -> Option<UnwindPlace> {
    let file = FileHeader64::<Endianness>::parse(header).ok()?;
    let endian = file.endian().ok().filter(|endian| *endian == Endianness::Little)?;
    file.e_machine(endian).eq(&elf::EM_X86_64).then_some(())?;
    let headers = file.program_headers(endian, header).ok()?;
    let loads = || headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
    let first = loads().find(|header| header.p_offset(endian) == 0)?;
    let bias = start.wrapping_sub(first.p_vaddr(endian));
    let index = headers.iter().find(|header| header.p_type(endian) == PT_GNU_EH_FRAME)?;
    let range = |header: &elf::ProgramHeader64<Endianness>| {
        let start = header.p_vaddr(endian);
        Some(start..start.checked_add(header.p_memsz(endian))?)
    };
    let index = range(index)?;
    let segment_end = loads().filter_map(range).find(|segment| segment.contains(&index.start))?.end;
    Some(UnwindPlace { bias, index, segment_end })
}

/// The start of `.eh_frame` that its index states.
///
/// Source: Linux Standard Base 5.0, "Exception Frames", section 10.6.2. Only the encoding that linkers use is understood: four
/// bytes, relative to their own place.
fn frames_start(index: &[u8], index_start: u64) -> Option<u64> {
    const RELATIVE_I32: u8 = 0x1b;
    let [1, RELATIVE_I32, _, _, a, b, c, d, ..] = *index else { return None };
    let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
    index_start.checked_add(4)?.checked_add_signed(distance)
}

/// The bytes of a section, as far as they can be read; `None` if none can, or there are too many.
fn read_section(
    memory: &impl ForeignMemory,
    bias: u64,
    range: &Range<u64>,
) -> Result<Option<Vec<u8>>, Error> {
    let length = range.end.checked_sub(range.start).filter(|&length| length <= MOST_SECTION_BYTES);
    let Some(length) = length.and_then(|length| usize::try_from(length).ok()) else { return Ok(None) };
    let bytes = read_up_to(memory, range.start.wrapping_add(bias), length)?;
    Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
}

/// The bytes from `address` on, up to the first that cannot be read. Memory is allocated for what has arrived.
fn read_up_to(memory: &impl ForeignMemory, address: u64, length: usize) -> Result<Vec<u8>, Error> {
    const STEP: usize = 1 << 16;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let done = bytes.len();
        let step = STEP.min(length - done);
        bytes.resize(done + step, 0);
        let piece = MemoryPiece { address: address.wrapping_add(done as u64), into: &mut bytes[done..] };
        let filled = memory.read_pieces(&mut [piece])?;
        bytes.truncate(done + filled);
        if filled < step {
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sections_are_kept_once_and_forgotten_with_their_last_process() {
        let pool = SectionPool::default();
        let first = pool.intern(vec![1, 2, 3]);
        let second = pool.clone().intern(vec![1, 2, 3]);
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        let _other = pool.intern(vec![4]);
        assert_eq!(pool.0.lock().unwrap().len(), 1);
    }

    #[test]
    fn an_index_with_another_encoding_is_none() {
        assert_eq!(frames_start(&[1, 0x1b, 3, 0x3b, 8, 0, 0, 0], 0x1000), Some(0x100c));
        assert_eq!(frames_start(&[1, 0x1b, 3, 0x3b, 0xfc, 0xff, 0xff, 0xff], 0x1000), Some(0x1000));
        for index in
            [&[][..], &[1, 0x1b, 3, 0x3b], &[2, 0x1b, 3, 0x3b, 8, 0, 0, 0], &[1, 0x10, 3, 0x3b, 8, 0, 0, 0]]
        {
            assert_eq!(frames_start(index, 0x1000), None, "{index:?}");
        }
        assert_eq!(frames_start(&[1, 0x1b, 3, 0x3b, 0, 0, 0, 0x80], 0), None, "before the first address");
    }

    #[test]
    fn headers_that_are_no_elf_file_are_no_module() {
        assert_eq!(unwind_place(b"", 0x1000), None);
        assert_eq!(unwind_place(&[0x7f; 4096], 0x1000), None);
    }
}
