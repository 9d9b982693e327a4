//! The state of a search for a position to continue at after damage, and its limit.
//!
//! [`Effort`] limits how many bytes are examined in vain: those of a failed frame, of a candidate, and after a doubtful
//! header or frame. One attempt ends at [`Limits::frame_bytes`](crate::Limits::frame_bytes), and every other cost per
//! byte is constant. Damage does not come near the limit: most candidates fail at their type, in the first three bytes.

use borehole_wire::Effort;

use super::value::Slot;

/// The state of the recovery of one stream.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The offset of the first loss in the batch since the time was last set.
    pub(super) damage: Option<u64>,
    pub(super) uncertain: Option<Uncertain>,
    pub(super) headers: Headers,
    pub(super) effort: Effort,
    /// For reading events other than the current one.
    pub(super) spare_slots: Vec<Slot>,
}

/// The start of the next batch, as far as it is known: offsets after decompression.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// No batch begins before it, except at `next`.
    pub(super) searched_until: u64,
    pub(super) next: Option<u64>,
}

impl Headers {
    /// Whether it is known that no batch begins inside a frame between these offsets.
    #[inline]
    pub(super) fn are_none_in(&self, start: u64, end: u64) -> bool {
        match self.next {
            Some(next) if next > start => next >= end,
            _ => self.searched_until >= end,
        }
    }

    /// Forgets everything: the bytes at an offset have changed.
    pub(super) const fn forget(&mut self, offset: u64) {
        *self = Self { searched_until: offset, next: None };
    }
}

/// Events with uncertain times, because an earlier part was lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uncertain {
    /// The offset of the loss.
    pub(super) damage: u64,
    /// The offset of the first of the events.
    pub(super) first: u64,
    /// Their number.
    pub(super) events: u64,
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use crate::ReadOptions;

    const LEN: usize = 256 << 10;

    /// A header, a type with a value of bytes (1), one with a list (2), one with a text (3), and `piece` until the
    /// stream has [`LEN`] bytes.
    fn stream(piece: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
        let mut bytes = b"TRC\0\x01".to_vec();
        for (type_id, kind) in [(1, 5), (2, 14), (3, 4)] {
            bytes.extend_from_slice(&[1, type_id, 0, 1, 0, b'E', 0, 1, 0, 1, 0, b'f', kind]);
        }
        while bytes.len() < LEN {
            let next = piece(LEN.saturating_sub(bytes.len()));
            bytes.extend_from_slice(&next);
        }
        bytes
    }

    fn event(type_id: u8, count: usize) -> Vec<u8> {
        [&[2, type_id, 0][..], &u32::try_from(count).unwrap().to_le_bytes()].concat()
    }

    /// The number of bytes examined in vain per byte of the input.
    fn looked_at(bytes: &[u8]) -> f64 {
        let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
        reader.for_each_event(|_| {}).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = reader.search.effort.spent().saturating_sub(Effort::START) as f64 / bytes.len() as f64;
        ratio
    }

    #[test]
    fn no_input_is_looked_at_more_often_than_so() {
        let header = b"TRC\0\x01";
        // A schema whose names fill it, and one whose fields have no names.
        let schema = [&[1, 9, 0, 1, 0, b'S', 0, 0xff, 0xff][..], &[0, 0, 9].repeat(400)].concat();
        let crafted: [(&str, Vec<u8>); 9] = [
            ("headers", stream(|_| header.to_vec())),
            ("headers before schemas", stream(|_| [&header[..], &schema[..9]].concat())),
            ("tags of schemas", stream(|_| vec![1])),
            ("tags of events", stream(|_| vec![2])),
            ("tags of pools", stream(|_| vec![3, 0xff])),
            ("events to the end", stream(|left| event(1, left + 1000))),
            ("texts to the end", stream(|left| event(3, left / 2))),
            ("lists to the end", stream(|left| [event(2, left), [11, 0].repeat(3)].concat())),
            ("schemas that do not end", stream(|_| schema.clone())),
        ];
        for (name, bytes) in &crafted {
            let ratio = looked_at(bytes);
            // One attempt beyond the limit may reach to the end.
            assert!(ratio <= 2.0 * Effort::PER_BYTE as f64 + 2.0, "{name}: {ratio}");
        }
    }

    #[test]
    fn lists_in_believable_chains_are_looked_at_so_often_too() {
        let small = [event(1, 0), event(1, 0), event(1, 0)].concat();
        let bytes = stream(|left| [&small[..], &event(2, left), &[5], &12_u32.to_le_bytes()].concat());
        let ratio = looked_at(&bytes);
        assert!(ratio <= 2.0 * Effort::PER_BYTE as f64 + 2.0, "{ratio}");
    }

    #[test]
    fn holes_and_noise_cost_a_fraction() {
        let noise = |len: usize| {
            let mut state = 88_172_645_463_325_252_u64;
            (0..len).map(move |_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0]
            })
        };
        let mut bytes = stream(|_| event(1, 0));
        let middle = bytes.len() / 2;
        bytes.splice(middle..middle, vec![0; LEN]);
        bytes.splice(middle..middle, noise(LEN));
        let mut reader = Reader::with_options(bytes.as_slice(), ReadOptions::lenient());
        reader.for_each_event(|_| {}).unwrap();
        assert!(reader.search.effort.spent() < 2 * bytes.len() as u64, "{}", reader.search.effort.spent());
        let events = (LEN as u64 - 44) / 7;
        assert!(reader.recovery().events.abs_diff(events) < 4, "{} of {events}", reader.recovery().events);
    }
}
