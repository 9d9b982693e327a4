//! Finds the boundaries of concatenated documents.
//!
//! Nothing marks the end of a message, so protobuf reads several as one, with contradicting indexes and ids. The
//! command `go tool pprof` rejects them when it meets a second time ("concatenated profiles detected"). A document
//! begins with the same field as the first one: the next document is searched for there, once a field was repeated that
//! a document has only once.

use super::NAME;
use super::layout::profile;
use crate::documents::protobuf_fields::{MessageFields, WireField};

/// Fields that a document has at most once.
const SINGULAR: [u32; 8] = [
    profile::DROP_FRAMES,
    profile::KEEP_FRAMES,
    profile::TIME_NANOS,
    profile::DURATION_NANOS,
    profile::PERIOD_TYPE,
    profile::PERIOD,
    profile::DEFAULT_SAMPLE_TYPE,
    profile::DOC_URL,
];

/// The fields seen of a document.
#[derive(Default)]
struct SeenFields {
    first: u32,
    /// The id of the first field, if it has one.
    first_id: Option<u64>,
    last: u32,
    /// The start of the last run of fields with the number of the first one.
    run: u64,
    /// Bit by field: whether it was seen.
    once: u32,
    has_strings: bool,
}

impl SeenFields {
    /// Takes a field; returns whether it repeats one that a document has only once.
    fn take(&mut self, field: &WireField<'_>) -> bool {
        let number = field.number;
        let is_first = self.first == 0;
        let is_new_run = std::mem::replace(&mut self.last, number) != number;
        if is_first {
            (self.first, self.first_id) = (number, id_of(field));
        }
        if number == self.first && is_new_run {
            self.run = field.offset;
            if self.first_id.is_some() {
                return !is_first && id_of(field) == self.first_id;
            }
        }
        if number == profile::STRING_TABLE {
            // The first string is empty, and no other one need be.
            let is_empty = field.bytes("a string").is_ok_and(<[u8]>::is_empty);
            return std::mem::replace(&mut self.has_strings, true) && is_new_run && is_empty;
        }
        let bit = if SINGULAR.contains(&number) { 1 << number } else { 0 };
        let again = self.once & bit != 0;
        self.once |= bit;
        again
    }
}

/// The id of a mapping, location or function: its field 1.
fn id_of(field: &WireField<'_>) -> Option<u64> {
    let mut fields = match field.number {
        profile::MAPPING | profile::LOCATION | profile::FUNCTION => field.message().ok()?,
        _ => return None,
    };
    while let Ok(Some(field)) = fields.next_field() {
        if field.number == 1 {
            return field.number().ok();
        }
    }
    None
}

/// The starts of the documents in `bytes`, in order. The first one is 0, whatever is there.
///
/// Each byte is read at most twice: the next document begins at the last run, so that its own next run begins after the
/// repeated field.
pub(super) fn beginnings(bytes: &[u8]) -> Vec<usize> {
    let mut beginnings = vec![0];
    let (mut seen, mut begin) = (SeenFields::default(), 0);
    let mut fields = MessageFields::within_document(NAME, bytes, 0);
    while let Ok(Some(field)) = fields.next_field() {
        if seen.take(&field) && seen.run > begin {
            begin = seen.run;
            // The document is in memory.
            let at = usize::try_from(begin).unwrap_or(bytes.len());
            beginnings.push(at);
            fields = MessageFields::within_document(NAME, &bytes[at..], begin);
            seen = SeenFields::default();
        }
    }
    beginnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::protobuf::Message;

    /// A document of these fields; 6 is the empty string, and 60 another; messages with ids are numbered.
    fn document(fields: &[u32]) -> Vec<u8> {
        let mut message = Message::default();
        for (id, &field) in (1..).zip(fields) {
            match field {
                60 => message.bytes(6, b"name"),
                3..=5 => message.bytes(field, &[8, id]),
                1..=6 | 11 => message.bytes(field, b""),
                _ => message.explicit(field, 1),
            };
        }
        message.as_bytes().to_vec()
    }

    #[test]
    fn documents_are_separated_whatever_their_first_field() {
        for fields in [
            &[1, 1, 2, 2, 6, 60, 60][..],
            &[9, 1, 1, 11, 12, 4, 5, 2, 4, 2, 6, 60],
            &[11, 12, 1, 4, 5, 2, 9, 6, 60, 14],
            &[6, 60, 1, 2, 3, 4],
            &[4, 5, 2, 4, 5, 2, 9, 6],
        ] {
            let one = document(fields);
            let len = one.len();
            assert_eq!(beginnings(&one), [0], "{fields:?}");
            assert_eq!(beginnings(&one.repeat(3)), [0, len, 2 * len], "{fields:?}");
        }
    }

    #[test]
    fn repeated_fields_of_one_document_do_not_split_it() {
        for fields in [&[9, 1, 2, 6, 60, 6][..], &[1, 2, 6, 60, 9, 9], &[6, 60, 2, 60, 2, 60], &[1, 1, 1]] {
            assert_eq!(beginnings(&document(fields)), [0], "{fields:?}");
        }
        assert_eq!(beginnings(&[]), [0]);
        assert_eq!(beginnings(&[0x13, 1]), [0]);
    }
}
