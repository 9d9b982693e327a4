//! Values of Python in another process's memory: types, bytes and texts.
//!
//! Nothing read here is trusted: lengths are capped, and nothing is allocated before its bytes are there.

use borehole_process::{Error, ForeignMemory, MemoryPiece, mapped, moved, u32_at, u64_at};

use crate::object_layout::{IntegerFormat, ObjectLayout};

/// The maximum length of a name or path that is kept, in characters.
pub(crate) const LONGEST_NAME: usize = 4096;

/// The end of a name that was longer than [`LONGEST_NAME`].
const CUT: &[u8] = "…".as_bytes();

/// The name of the type at `kind`, up to 64 bytes of it.
pub(crate) fn name_of_type(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    kind: u64,
) -> Result<Vec<u8>, Error> {
    let name = memory.read_u64(moved(kind, layout.types.name))?;
    let mut bytes = [0; 64];
    let filled = memory.read_pieces(&mut [MemoryPiece { address: name, into: &mut bytes }])?;
    let length = bytes[..filled].iter().position(|&byte| byte == 0).unwrap_or(filled);
    Ok(bytes[..length].to_vec())
}

/// The contents of the object of bytes at `address`; `None` if there are more than `most`.
pub(crate) fn bytes(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let length = memory.read_u64(moved(address, layout.length))?;
    let Some(length) = usize::try_from(length).ok().filter(|&length| length <= most) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    // Piece by piece, so that a wrong length allocates no more than there is.
    while bytes.len() < length {
        let start = bytes.len();
        bytes.resize(length.min(start + PIECE), 0);
        memory.read(moved(address, layout.bytes + start), &mut bytes[start..])?;
    }
    Ok(Some(bytes))
}

const PIECE: usize = 64 << 10;

/// The text at `address` in UTF-8, cut at [`LONGEST_NAME`]. Lone surrogates are kept in the three bytes that UTF-8 would give
/// them, because names of files have them for bytes that are not text.
///
/// Absent: `None` if the object is no text.
///
/// Source: CPython, `Include/cpython/unicodeobject.h`, `PyASCIIObject`, `PyCompactUnicodeObject`, `PyUnicodeObject`.
pub(crate) fn text(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<u8>>, Error> {
    let mut head = [0; 96];
    let wanted = layout.compact + 8;
    let Some(head) = head.get_mut(..wanted) else { return Ok(None) };
    memory.read(address, head)?;
    let (Some(length), Some(state)) = (u64_at(head, layout.text_length), u32_at(head, layout.text_state))
    else {
        return Ok(None);
    };
    let flags = state >> layout.text_kind_bit;
    // The width takes three bits; then come whether it is compact, and whether it is ASCII.
    let (width, is_compact, is_ascii) = (flags & 7, flags >> 3 & 1 == 1, flags >> 4 & 1 == 1);
    if !matches!(width, 1 | 2 | 4) {
        return Ok(None);
    }
    let start = match (is_compact, is_ascii) {
        (true, true) => moved(address, layout.ascii),
        (true, false) => moved(address, layout.compact),
        (false, _) => u64_at(head, layout.compact).unwrap_or_default(),
    };
    let width = width as usize;
    let whole = usize::try_from(length).unwrap_or(usize::MAX);
    let kept = whole.min(LONGEST_NAME);
    let mut units = vec![0; kept * width];
    memory.read(start, &mut units)?;
    let mut text = if is_ascii { units } else { encoded(&units, width) };
    if kept < whole {
        text.extend_from_slice(CUT);
    }
    Ok(Some(text))
}

/// Like [`text`], with `None` for memory that is not there too.
pub(crate) fn read_text(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<Vec<u8>>, Error> {
    Ok(mapped(text(memory, layout, address))?.flatten())
}

/// The integer at `address`, of at most [`MOST_DIGITS`] digits; `None` for larger ones. The caller knows that it is one.
///
/// Source: CPython, `Include/cpython/longintrepr.h`: digits of 30 bits, the lowest first.
pub(crate) fn integer(
    memory: &impl ForeignMemory,
    layout: &ObjectLayout,
    address: u64,
) -> Result<Option<i128>, Error> {
    let mut head = [0; 8 + 4 * MOST_DIGITS];
    let filled =
        memory.read_pieces(&mut [MemoryPiece { address: moved(address, layout.length), into: &mut head }])?;
    let Some(size) = u64_at(&head[..filled], 0) else { return Ok(None) };
    let (count, is_negative) = match layout.integers {
        IntegerFormat::SignedLength => (size.cast_signed().unsigned_abs(), size.cast_signed() < 0),
        IntegerFormat::Tagged => (if size & 3 == 1 { 0 } else { size >> 3 }, size & 3 == 2),
    };
    let Some(count) = usize::try_from(count).ok().filter(|&count| count <= MOST_DIGITS) else {
        return Ok(None);
    };
    let mut value = 0_i128;
    for digit in (0..count).rev() {
        let Some(digit) = u32_at(&head[..filled], 8 + 4 * digit) else { return Ok(None) };
        value = value << 30 | i128::from(digit & 0x3fff_ffff);
    }
    Ok(Some(if is_negative { -value } else { value }))
}

/// The digits of integers up to 2¹²⁰.
pub(crate) const MOST_DIGITS: usize = 4;

/// Characters of `width` bytes each, in UTF-8.
fn encoded(units: &[u8], width: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(units.len());
    for unit in units.chunks_exact(width) {
        let mut number = [0; 4];
        number[..width].copy_from_slice(unit);
        let number = u32::from_le_bytes(number);
        match char::from_u32(number) {
            Some(character) => text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            None => text.extend_from_slice(&surrogate(number)),
        }
    }
    text
}

/// A number between U+D800 and U+DFFF in three bytes; anything else becomes the replacement character.
fn surrogate(number: u32) -> [u8; 3] {
    let low = |bits: u32| u8::try_from(number >> bits & 0x3f).unwrap_or_default();
    if matches!(number, 0xd800..=0xdfff) { [0xed, 0x80 | low(6), 0x80 | low(0)] } else { [0xef, 0xbf, 0xbd] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_any_width_become_utf_8() {
        assert_eq!(encoded(b"a\xe9", 1), "aé".as_bytes());
        assert_eq!(encoded(b"\x20\x26\x41\x00", 2), "☠A".as_bytes());
        assert_eq!(encoded(b"\x00\xf6\x01\x00", 4), "😀".as_bytes());
        // `\udcff`, which stands for the byte 0xff in the name of a file.
        assert_eq!(encoded(b"\xff\xdc", 2), b"\xed\xb3\xbf");
        assert_eq!(encoded(b"\xff\xff\xff\xff", 4), "\u{fffd}".as_bytes());
    }
}
