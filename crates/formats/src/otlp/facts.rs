//! The facts about the format, and how its files are detected.

use borehole_wire::Cursor;

use crate::detect::prefix::trim_start;
use crate::registry::{Detect, Facts};

/// The facts about `otlp`.
pub(crate) const FACTS: Facts = Facts {
    name: "otlp",
    aliases: &["opentelemetry", "otel"],
    extensions: &["otlp", "otlp.pb"],
    description: "OpenTelemetry profiles, development version: protobuf",
    page: "formats/otlp.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_otlp),
};

/// Detects resources with their profiles (field 1), optionally a dictionary (field 2), and nothing else: as length-prefixed
/// bytes or as JSON.
///
/// Source: `profiles.proto` of opentelemetry-proto 1.10.0; output of the file exporter of OpenTelemetry's collector.
fn is_otlp(prefix: &[u8]) -> bool {
    is_otlp_message(prefix, usize::MAX) || is_otlp_behind_length(prefix) || is_otlp_json(prefix)
}

fn is_otlp_message(prefix: &[u8], length: usize) -> bool {
    let there = &prefix[..prefix.len().min(length)];
    let mut fields = Messages { cursor: Cursor::new(there, 0), left: length, is_other: false };
    let mut telling = false;
    while let Some((number, length, payload)) = fields.next() {
        match number {
            1 if has_scopes(payload, length) => telling = true,
            2 => {}
            _ => return false,
        }
    }
    telling && !fields.is_other
}

/// Detects a length in four bytes, big-endian, or as a varint, followed by a document of that length, or a Zstandard frame.
fn is_otlp_behind_length(prefix: &[u8]) -> bool {
    let fixed = prefix.split_first_chunk::<4>().filter(|(length, _)| length[0] <= 7);
    if let Some((length, document)) = fixed {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let there = &document[..document.len().min(length)];
        return is_otlp_message(document, length)
            || is_otlp_json(there)
            || (length > 4 && document.starts_with(b"\x28\xb5\x2f\xfd"));
    }
    let mut cursor = Cursor::new(prefix, 0);
    let length = cursor.varint().ok().and_then(|length| usize::try_from(length).ok());
    length.is_some_and(|length| is_otlp_message(cursor.rest(), length))
}

/// Detects a JSON object that begins with one of the two members that documents have.
fn is_otlp_json(prefix: &[u8]) -> bool {
    const MEMBERS: [&[u8]; 3] = [b"\"resourceProfiles\"", b"\"resource_profiles\"", b"\"dictionary\""];
    let members = trim_start(prefix).strip_prefix(b"{").map(trim_start).unwrap_or_default();
    MEMBERS.iter().any(|name| members.starts_with(name))
}

/// Whether the available fields of a message are those of `ResourceProfiles`: a resource, scopes with profiles, a text.
fn has_scopes(bytes: &[u8], length: usize) -> bool {
    let mut fields = Messages { cursor: Cursor::new(bytes, 0), left: length, is_other: false };
    let mut has_scopes = false;
    while let Some((number, _, payload)) = fields.next() {
        has_scopes |= number == 2 && matches!(payload.first(), None | Some(0x0a | 0x12 | 0x1a));
        fields.is_other |= number > 3;
    }
    has_scopes && !fields.is_other
}

/// The fields of a message that may be cut off; all are messages or texts.
struct Messages<'a> {
    cursor: Cursor<'a>,
    /// The remaining length of the message, available or not.
    left: usize,
    /// Whether something else was found.
    is_other: bool,
}

impl<'a> Messages<'a> {
    /// The next field: its number, its length, and its available bytes.
    fn next(&mut self) -> Option<(u64, usize, &'a [u8])> {
        let before = self.cursor.offset();
        let (tag, length) = (self.cursor.varint().ok()?, self.cursor.varint().ok()?);
        let head = usize::try_from(self.cursor.offset() - before).ok()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.left.checked_sub(head).and_then(|left| left.checked_sub(length)) {
            Some(left) if tag & 7 == 2 => self.left = left,
            _ => {
                self.is_other = true;
                return None;
            }
        }
        let there = self.cursor.rest().len().min(length);
        Some((tag >> 3, length, self.cursor.bytes(there).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field that is a message or a text.
    fn field(number: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        assert!(length < 0x80, "a length of one byte");
        [&[number << 3 | 2, length][..], payload].concat()
    }

    /// A document with this content of a resource's profiles.
    fn document(resource: &[Vec<u8>]) -> Vec<u8> {
        field(1, &resource.concat())
    }

    /// A scope with a schema's address.
    fn scope() -> Vec<u8> {
        field(2, &field(3, b"url"))
    }

    #[test]
    fn documents_are_resources_with_scopes() {
        assert!(is_otlp(&document(&[scope()])));
        assert!(is_otlp(&document(&[field(1, b""), scope(), field(3, b"url")])));
        for first in [0x0a, 0x12, 0x1a] {
            assert!(is_otlp(&document(&[field(2, &[first, 0])])), "{first:#x}");
        }
        assert!(is_otlp(&document(&[field(2, b"")])), "a scope of nothing");
        assert!(!is_otlp(&document(&[field(2, &[0x22, 0])])), "no field of a scope");
        assert!(!is_otlp(&document(&[field(1, b""), field(3, b"url")])), "no scope");
        assert!(!is_otlp(&document(&[scope(), field(4, b"")])), "no field of a resource");
        assert!(!is_otlp(&document(&[scope(), vec![0x08, 0]])), "a number");
        assert!(!is_otlp(&document(&[scope(), vec![0x0a, 100]])), "longer than what it is in");
        assert!(!is_otlp(b""));
    }

    #[test]
    fn a_dictionary_may_stand_beside_resources_and_nothing_else() {
        let (resource, dictionary) = (document(&[scope()]), field(2, b"x"));
        assert!(is_otlp(&[&resource[..], &dictionary].concat()));
        assert!(is_otlp(&[&dictionary[..], &resource].concat()));
        assert!(!is_otlp(&dictionary));
        assert!(!is_otlp(&[&resource[..], &field(3, b"x")].concat()));
        assert!(!is_otlp(&[&resource[..], &[0x18, 1]].concat()), "a number");
    }

    #[test]
    fn a_document_that_is_cut_is_known_from_its_scope_on() {
        let whole = document(&[field(1, b"resource"), scope()]);
        let head = whole.len() - scope().len() + 2;
        for cut in 1..=whole.len() {
            assert_eq!(is_otlp(&whole[..cut]), cut >= head, "{cut} of {}", whole.len());
        }
    }

    #[test]
    fn documents_may_follow_their_length() {
        let document = document(&[scope()]);
        let length = u8::try_from(document.len()).unwrap();
        let behind = |length: &[u8]| is_otlp(&[length, &document].concat());
        assert!(behind(&[0, 0, 0, length]) && behind(&[length]));
        assert!(!behind(&[0, 0, 0, length - 1]) && !behind(&[length - 1]), "too short for it");
        let compressed = |length: &[u8]| is_otlp(&[length, b"\x28\xb5\x2f\xfd"].concat());
        assert!(compressed(&[0, 0, 0, 5]) && compressed(&[7, 0xff, 0xff, 0xff]));
        assert!(!compressed(&[0, 0, 0, 4]) && !compressed(&[8, 0, 0, 5]));
        assert!(is_otlp(b"\0\0\0\x18{\"resourceProfiles\":[]}\n"));
    }

    #[test]
    fn documents_in_json_begin_with_a_member_of_theirs() {
        for json in
            ["{\"resourceProfiles\":[]}", " {\n\"resource_profiles\" : []}", "\u{feff}{\"dictionary\":{}}"]
        {
            assert!(is_otlp(json.as_bytes()), "{json}");
        }
        for json in ["{}", "[\"resourceProfiles\"]", "{\"resourceSpans\":[]}", "{\"a\":1,\"dictionary\":{}}"]
        {
            assert!(!is_otlp(json.as_bytes()), "{json}");
        }
    }
}
