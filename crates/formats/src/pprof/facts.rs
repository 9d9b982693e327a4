//! The facts about the format, and how its files are detected.

use borehole_wire::Cursor;

use crate::registry::{Detect, Facts};

/// The facts about `pprof`.
pub(crate) const FACTS: Facts = Facts {
    name: "pprof",
    aliases: &["pb"],
    extensions: &["pprof", "pb"],
    description: "pprof profile: protobuf, usually gzipped",
    page: "formats/pprof.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_pprof),
};

/// Detects protobuf fields that all have the numbers and wire types of a profile, among them a value type or a string.
fn is_pprof(prefix: &[u8]) -> bool {
    let mut cursor = Cursor::new(prefix, 0);
    let mut telling = false;
    while !cursor.is_empty() {
        match profile_field(&mut cursor) {
            Some(DetectedField::Telling) => telling = true,
            Some(DetectedField::Other) => {}
            Some(DetectedField::Cut) => break,
            None => return false,
        }
    }
    telling
}

enum DetectedField {
    /// A value type or a string.
    Telling,
    /// Another field of a profile.
    Other,
    /// A field that continues after the prefix.
    Cut,
}

/// Reads one field of a profile message.
///
/// Source: `profile.proto` of pprof: fields 1 to 6 and 11 are messages or strings, 7 to 10, 12, 14 and 15
/// are integers, 13 is a list of integers, packed or not.
fn profile_field(cursor: &mut Cursor<'_>) -> Option<DetectedField> {
    let Ok(tag) = cursor.varint() else { return Some(DetectedField::Cut) };
    match (tag >> 3, tag & 7) {
        (7..=10 | 12..=15, 0) => Some(cursor.varint().map_or(DetectedField::Cut, |_| DetectedField::Other)),
        (number @ (1..=6 | 11 | 13), 2) => {
            let Ok(length) = cursor.varint() else { return Some(DetectedField::Cut) };
            let length = usize::try_from(length).ok().filter(|&length| length <= MAX_FIELD_BYTES)?;
            let Ok(payload) = cursor.bytes(length) else { return Some(DetectedField::Cut) };
            match number {
                1 | 11 => is_value_type(payload).then_some(DetectedField::Telling),
                6 => Some(DetectedField::Telling),
                _ => Some(DetectedField::Other),
            }
        }
        _ => None,
    }
}

/// The maximum length of a profile's field.
const MAX_FIELD_BYTES: usize = 1 << 28;

/// Whether the payload is two integers, fields 1 and 2, either of which may be absent.
fn is_value_type(payload: &[u8]) -> bool {
    let mut cursor = Cursor::new(payload, 0);
    while !cursor.is_empty() {
        match (cursor.varint(), cursor.varint()) {
            (Ok(0x08 | 0x10), Ok(_)) => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string of the table, which tells that it is a profile.
    const STRING: &[u8] = &[6 << 3 | 2, 1, b'a'];

    #[test]
    fn each_field_has_its_wire_type() {
        for number in 0..20_u8 {
            let with = |wire: u8| {
                let tag = u64::from(number) << 3 | u64::from(wire);
                let mut field = Vec::new();
                borehole_wire::put_varint(&mut field, tag);
                field.push(0);
                is_pprof(&[STRING, &field].concat())
            };
            let is_number = matches!(number, 7..=10 | 12..=15);
            let is_bytes = matches!(number, 1..=6 | 11 | 13);
            assert_eq!([0, 1, 2, 5].map(with), [is_number, false, is_bytes, false], "field {number}");
        }
    }

    #[test]
    fn value_types_and_strings_tell_and_nothing_else() {
        assert!(!is_pprof(b""));
        assert!(is_pprof(STRING));
        assert!(!is_pprof(&[2 << 3 | 2, 1, b'a']) && !is_pprof(&[9 << 3, 1]));
        for number in [1, 11] {
            let of = |payload: &[u8]| {
                let length = u8::try_from(payload.len()).unwrap();
                is_pprof(&[&[number << 3 | 2, length][..], payload].concat())
            };
            assert!(of(&[]) && of(&[0x08, 1]) && of(&[0x10, 2]) && of(&[0x08, 1, 0x10, 2]), "{number}");
            assert!(!of(&[0x18, 1]) && !of(&[0x08]) && !of(&[0x08, 1, 0x0a, 0]), "{number}");
        }
    }

    #[test]
    fn a_field_may_go_on_behind_the_prefix_unless_it_is_too_long() {
        let cut = |length: usize| {
            let mut bytes = [STRING, &[2 << 3 | 2]].concat();
            borehole_wire::put_varint(&mut bytes, length as u64);
            is_pprof(&bytes)
        };
        assert!(cut(1) && cut(MAX_FIELD_BYTES));
        assert!(!cut(MAX_FIELD_BYTES + 1));
        for tail in [&[0x80][..], &[9 << 3, 0x80], &[2 << 3 | 2, 0x80]] {
            assert!(is_pprof(&[STRING, tail].concat()), "{tail:?}");
            assert!(!is_pprof(tail), "{tail:?}");
        }
    }
}
