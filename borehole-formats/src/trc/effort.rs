//! How much a reader may look at while it searches.
//!
//! A search tries frames that may begin at any byte, and each may be long, so without a bound a crafted input is looked
//! at as often as it has bytes. [`Effort`] counts the bytes that were looked at in vain: those of a frame that failed, of
//! a candidate, of what stands behind a header or a frame in doubt. They may be [`Effort::START`] and
//! [`Effort::PER_BYTE`] for each byte that the search has come to, and as many again for each byte up to the furthest one
//! looked at. When they are spent, the search moves on without looking until it may look again.
//!
//! So the search is linear: what was spent exceeds `START + 2 * PER_BYTE * (bytes of the input)` by one attempt at
//! most, which ends at [`Limits::frame_bytes`](crate::Limits::frame_bytes), and everything else a byte costs is constant.
//! Damage does not come near the bound: most candidates fail at their type, in the first three bytes.

/// How much was looked at, and how far.
#[derive(Debug, Default)]
pub(super) struct Effort {
    spent: u64,
    /// The offset of the furthest byte that was looked at.
    furthest: u64,
}

impl Effort {
    /// What may be spent before anything is earned.
    pub(super) const START: u64 = 1 << 20;

    /// What each byte of the input earns, twice.
    pub(super) const PER_BYTE: u64 = 4;

    /// Counts `looked_at` bytes from `offset` on.
    pub(super) fn spend(&mut self, offset: u64, looked_at: u64) {
        self.spent = self.spent.saturating_add(looked_at);
        self.furthest = self.furthest.max(offset.saturating_add(looked_at));
    }

    /// Whether anything may be looked at where the search stands.
    pub(super) const fn is_left(&self, offset: u64) -> bool {
        let reached = offset.saturating_add(self.furthest);
        self.spent <= Self::START.saturating_add(Self::PER_BYTE.saturating_mul(reached))
    }

    /// How many bytes were looked at.
    #[cfg(test)]
    pub(super) const fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reader;
    use super::*;
    use crate::ReadOptions;

    const LEN: usize = 256 << 10;

    /// A header, a type with a value of bytes (1), one with a list (2), one with a text (3), and `piece` until the stream has [`LEN`] bytes.
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

    /// How many bytes were looked at in vain for each byte of the input.
    fn looked_at(bytes: &[u8]) -> f64 {
        let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
        reader.for_each_event(|_| {}).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let ratio = reader.effort.spent().saturating_sub(Effort::START) as f64 / bytes.len() as f64;
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
            // One attempt beyond the bound may reach to the end.
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
        assert!(reader.effort.spent() < 2 * bytes.len() as u64, "{}", reader.effort.spent());
        let events = (LEN as u64 - 44) / 7;
        assert!(reader.recovery().events.abs_diff(events) < 4, "{} of {events}", reader.recovery().events);
    }
}
