//! Containers and instances in another process's memory: dicts, lists, tuples, sets and attributes.
//!
//! As in [`objects`](crate::objects), nothing read is trusted. `None` stands for memory that is not there or is not of the kind
//! that is asked for.

use borehole_process::{Error, ForeignMemory, MemoryPiece, mapped, moved, u32_at, u64_at};

use crate::object_layout::{AttributesPlace, DictFormat, ObjectLayout};

/// Larger containers are cut.
pub(crate) const MOST_ITEMS: usize = 1 << 20;

/// The attributes of an instance that are searched for a name.
const MOST_ATTRIBUTES: usize = 1 << 10;

/// The number of texts that are compared in one call.
const BATCH: usize = 32;

/// The longest name that is searched for, with the header of its text.
const LONGEST_SEARCHED: usize = 128;

/// `Py_TPFLAGS_INLINE_VALUES` and `Py_TPFLAGS_MANAGED_DICT`.
///
/// Source: CPython 3.13, `Include/object.h`.
const INLINE_VALUES: u64 = 1 << 2;
const MANAGED_DICT: u64 = 1 << 4;

/// The number at `address`.
pub(crate) fn number(memory: &impl ForeignMemory, address: u64) -> Result<Option<u64>, Error> {
    mapped(memory.read_u64(address))
}

/// `count` numbers from `address` on, cut at [`MOST_ITEMS`].
fn numbers(memory: &impl ForeignMemory, address: u64, count: u64) -> Result<Option<Vec<u64>>, Error> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(MOST_ITEMS);
    let Some(bytes) = block(memory, address, 8 * count)? else { return Ok(None) };
    Ok(Some(bytes.chunks_exact(8).filter_map(|bytes| u64_at(bytes, 0)).collect()))
}

/// The bytes from `address` on. Reads piece by piece, so that a wrong length allocates no more than there is.
fn block(memory: &impl ForeignMemory, address: u64, length: usize) -> Result<Option<Vec<u8>>, Error> {
    const PIECE: usize = 64 << 10;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let start = bytes.len();
        bytes.resize(length.min(start + PIECE), 0);
        if mapped(memory.read(moved(address, start), &mut bytes[start..]))?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// The items of a tuple.
pub(crate) fn tuple(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<u64>>, Error> {
    let Some(length) = number(memory, moved(address, layout.length))? else { return Ok(None) };
    numbers(memory, moved(address, layout.tuple_items), length)
}

/// The items of a list.
pub(crate) fn list(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<u64>>, Error> {
    // `ob_size`, and then `ob_item`.
    let mut head = [0; 16];
    if mapped(memory.read(moved(address, layout.length), &mut head))?.is_none() {
        return Ok(None);
    }
    let [length, items] = [0, 8].map(|at| u64_at(&head, at).unwrap_or_default());
    numbers(memory, items, length)
}

/// The entries of the table of a set: its members, and a placeholder for removed ones.
pub(crate) fn set(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<u64>>, Error> {
    let mut head = [0; 16];
    if mapped(memory.read(moved(address, layout.set_mask()), &mut head))?.is_none() {
        return Ok(None);
    }
    let [mask, table] = [0, 8].map(|at| u64_at(&head, at).unwrap_or_default());
    // Each entry is a member and its hash.
    let entries = numbers(memory, table, mask.saturating_add(1).saturating_mul(2))?;
    Ok(entries.map(|entries| entries.chunks(2).map(|entry| entry[0]).filter(|&key| key != 0).collect()))
}

/// The keys of a dict, each with its value, unless the values are elsewhere because instances share the keys.
fn keys(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<[u64; 2]>>, Error> {
    let mut head = [0; 40];
    if mapped(memory.read(address, &mut head))?.is_none() {
        return Ok(None);
    }
    let (index_bytes, count, start, has_hashes) = match layout.dicts {
        DictFormat::Sized => {
            let size = u64_at(&head, 8).unwrap_or_default();
            let width = match size {
                0..=0xff => 1,
                0x100..=0xffff => 2,
                0x1_0000..=0xffff_ffff => 4,
                _ => 8,
            };
            (size.saturating_mul(width), u64_at(&head, 32), 40, true)
        }
        DictFormat::Logarithmic | DictFormat::LogarithmicWithHeader => {
            let [logarithm, kind] = [head[9], head[10]];
            let Some(index_bytes) = 1_u64.checked_shl(logarithm.into()) else { return Ok(None) };
            (index_bytes, u64_at(&head, 24), 32, kind == 0)
        }
    };
    let Some(start) = usize::try_from(index_bytes)
        .ok()
        .filter(|&bytes| bytes <= 16 * MOST_ITEMS)
        .map(|bytes| start + bytes)
    else {
        return Ok(None);
    };
    let width = if has_hashes { 3 } else { 2 };
    let count = count.unwrap_or_default();
    let numbers = numbers(memory, moved(address, start), count.saturating_mul(width as u64))?;
    let entry = |entry: &[u64]| [entry[width - 2], entry[width - 1]];
    Ok(numbers.map(|numbers| numbers.chunks_exact(width).map(entry).collect()))
}

/// The keys and values of a dict, in order.
pub(crate) fn dict(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<[u64; 2]>>, Error> {
    let mut head = [0; 16];
    if mapped(memory.read(moved(address, layout.dict_keys()), &mut head))?.is_none() {
        return Ok(None);
    }
    let [place, values] = [0, 8].map(|at| u64_at(&head, at).unwrap_or_default());
    let Some(mut entries) = keys(memory, layout, place)? else { return Ok(None) };
    if values != 0 {
        let Some(split) = split_values(memory, layout, values, entries.len())? else { return Ok(None) };
        for (entry, value) in entries.iter_mut().zip(split) {
            entry[1] = value;
        }
    }
    entries.retain(|&[key, value]| key != 0 && value != 0);
    Ok(Some(entries))
}

/// The values of an instance, in the order of its shared keys.
fn split_values(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
    count: usize,
) -> Result<Option<Vec<u64>>, Error> {
    let header = if layout.dicts == DictFormat::LogarithmicWithHeader { 8 } else { 0 };
    numbers(memory, moved(address, header), count as u64)
}

/// The value of a key that is a text.
pub(crate) fn dict_value(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
    name: &[u8],
) -> Result<Option<u64>, Error> {
    let Some(entries) = dict(memory, layout, address)? else { return Ok(None) };
    let found = position(memory, layout, &entries, name)?;
    Ok(found.map(|at| entries[at][1]))
}

/// The index of the first key that is the text `name`, in ASCII.
fn position(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    entries: &[[u64; 2]],
    name: &[u8],
) -> Result<Option<usize>, Error> {
    let length = layout.ascii + name.len();
    if length > LONGEST_SEARCHED {
        return Ok(None);
    }
    let mut start = 0;
    while start < entries.len() {
        let mut bytes = [[0; LONGEST_SEARCHED]; BATCH];
        let count = BATCH.min(entries.len() - start);
        let mut pieces: [MemoryPiece<'_>; BATCH] =
            std::array::from_fn(|_| MemoryPiece { address: 0, into: &mut [] });
        for ((piece, into), entry) in pieces.iter_mut().zip(&mut bytes).zip(&entries[start..]) {
            *piece = MemoryPiece { address: entry[0], into: &mut into[..length] };
        }
        let filled = memory.read_pieces(&mut pieces[..count])? / length;
        let is_name = |text: &[u8; LONGEST_SEARCHED]| is_ascii_text(layout, &text[..length], name);
        if let Some(at) = bytes[..filled].iter().position(is_name) {
            return Ok(Some(start + at));
        }
        // A key that cannot be read is not the name.
        start += if filled == count { count } else { filled + 1 };
    }
    Ok(None)
}

/// Whether `text` is the object of a text in ASCII with the characters `name`.
fn is_ascii_text(layout: &ObjectLayout, text: &[u8], name: &[u8]) -> bool {
    let flags = u32_at(text, layout.text_state).map(|state| state >> layout.text_kind_bit);
    // One byte a character, compact, ASCII.
    u64_at(text, layout.text_length) == Some(name.len() as u64)
        && flags.is_some_and(|flags| flags & 0x1f == 0x19)
        && text.ends_with(name)
}

/// The attribute of an instance that the instance itself has.
pub(crate) fn attribute(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    object: u64,
    name: &[u8],
) -> Result<Option<u64>, Error> {
    let Some(kind) = number(memory, moved(object, layout.kind))? else { return Ok(None) };
    let Some(flags) = number(memory, moved(kind, layout.types.flags))? else { return Ok(None) };
    match place_of_attributes(memory, layout, object, (kind, flags))? {
        None => Ok(None),
        Some(Attributes::Dict(dict)) => dict_value(memory, layout, dict, name),
        Some(Attributes::Values(values)) => {
            let shared = number(memory, moved(kind, layout.types.cached_keys))?.unwrap_or_default();
            let Some(mut entries) = keys(memory, layout, shared)? else { return Ok(None) };
            entries.truncate(MOST_ATTRIBUTES);
            let Some(at) = position(memory, layout, &entries, name)? else { return Ok(None) };
            let Some(values) = split_values(memory, layout, values, at + 1)? else { return Ok(None) };
            Ok(values.last().copied().filter(|&value| value != 0))
        }
    }
}

/// Where an instance has its attributes.
enum Attributes {
    Dict(u64),
    Values(u64),
}

fn place_of_attributes(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    object: u64,
    (kind, flags): (u64, u64),
) -> Result<Option<Attributes>, Error> {
    let before = |distance: usize| number(memory, object.wrapping_sub(distance as u64));
    let some_dict = |dict: u64| (dict != 0).then_some(Attributes::Dict(dict));
    let is_managed = flags & MANAGED_DICT != 0;
    Ok(match layout.attributes {
        AttributesPlace::ValuesBefore if is_managed => match before(32)?.unwrap_or_default() {
            0 => some_dict(before(24)?.unwrap_or_default()),
            values => Some(Attributes::Values(values)),
        },
        AttributesPlace::Tagged if is_managed => match before(24)?.unwrap_or_default() {
            tagged if tagged & 1 == 1 => Some(Attributes::Values(tagged.wrapping_add(1))),
            dict => some_dict(dict),
        },
        AttributesPlace::Inline(distance) if is_managed => match before(distance)?.unwrap_or_default() {
            0 if flags & INLINE_VALUES != 0 => {
                let size = number(memory, moved(kind, layout.type_size()))?.unwrap_or_default();
                Some(Attributes::Values(object.wrapping_add(size)))
            }
            dict => some_dict(dict),
        },
        _ => {
            let offset = number(memory, moved(kind, layout.type_dict()))?.unwrap_or_default();
            if offset == 0 || offset.cast_signed() < 0 {
                return Ok(None);
            }
            some_dict(number(memory, object.wrapping_add(offset))?.unwrap_or_default())
        }
    })
}
