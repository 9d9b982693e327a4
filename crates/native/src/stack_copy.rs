//! The copy of a thread's stack, made in one piece and extended when more is needed.

use borehole_process::{Error, ErrorKind, ForeignMemory, MemoryPiece};

/// The size of the first copy. Most stacks take less.
const FIRST_BYTES: usize = 8 << 10;

/// The most bytes copied of a stack.
const MOST_BYTES: usize = 8 << 20;

/// A copy may begin below the stack pointer: code may use that much without moving it.
///
/// Source: System V ABI, AMD64 supplement, section 3.2.2, "red zone".
const RED_ZONE: u64 = 128;

/// Extensions are of this size.
const GRAIN: usize = 4 << 10;

/// A copy of the memory from a stack pointer on.
#[derive(Debug)]
pub(crate) struct StackCopy {
    start: u64,
    bytes: Vec<u8>,
    /// The size of the next copy: what stacks needed lately.
    wanted: usize,
    /// Whether the process can no longer be read.
    pub(crate) failure: Option<Error>,
    /// Whether only what is copied may be used: the thread runs on.
    is_given: bool,
    /// Whether more than what was given was asked for.
    pub(crate) is_short: bool,
}

impl Default for StackCopy {
    fn default() -> Self {
        Self {
            start: 0,
            bytes: Vec::new(),
            wanted: FIRST_BYTES,
            failure: None,
            is_given: false,
            is_short: false,
        }
    }
}

impl StackCopy {
    /// Copies the stack from `sp` on, as much as stacks needed lately.
    pub(crate) fn take(&mut self, memory: &impl ForeignMemory, sp: u64) {
        self.start = sp.saturating_sub(RED_ZONE) & !7;
        self.bytes.clear();
        self.failure = None;
        (self.is_given, self.is_short) = (false, false);
        self.extend(memory, self.wanted);
    }

    /// Takes a copy that was made while the thread was there. It runs on, so that nothing can be added.
    pub(crate) fn give(&mut self, sp: u64, bytes: &[u8]) {
        self.start = sp;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.failure = None;
        (self.is_given, self.is_short) = (true, false);
    }

    /// The copied bytes from `start` up to `end`; `None` if they are not all copied.
    pub(crate) fn between(&self, start: u64, end: u64) -> Option<&[u8]> {
        let offset = |address: u64| usize::try_from(address.checked_sub(self.start)?).ok();
        self.bytes.get(offset(start)?..offset(end)?)
    }

    /// Learns how far the last stack reached, to `end`.
    pub(crate) fn learn(&mut self, end: u64) {
        let needed = usize::try_from(end.saturating_sub(self.start)).unwrap_or(MOST_BYTES);
        let rounded = needed.saturating_add(GRAIN / 2).next_multiple_of(GRAIN / 4).min(MOST_BYTES);
        // It shrinks slowly: a copy that is too short costs another call.
        self.wanted = rounded.max(self.wanted - self.wanted / 64);
    }

    /// The eight bytes at `address`, copied or, if they are elsewhere, read now.
    pub(crate) fn u64_at(&mut self, memory: &impl ForeignMemory, address: u64) -> Option<u64> {
        loop {
            let offset = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset).ok());
            let offset = offset.filter(|offset| offset.saturating_add(8) <= MOST_BYTES);
            let Some(offset) = offset else { return self.elsewhere(memory, address) };
            if let Some(bytes) = self.bytes.get(offset..offset + 8) {
                return bytes.try_into().ok().map(u64::from_le_bytes);
            }
            if self.is_given {
                self.is_short = true;
                return None;
            }
            let missing = offset + 8 - self.bytes.len();
            if missing > 64 * GRAIN {
                return self.elsewhere(memory, address);
            }
            if !self.extend(memory, missing.next_multiple_of(GRAIN)) {
                return None;
            }
        }
    }

    /// Another stack, such as that of a signal handler.
    fn elsewhere(&mut self, memory: &impl ForeignMemory, address: u64) -> Option<u64> {
        if self.is_given {
            self.is_short = true;
            return None;
        }
        memory.read_u64(address).map_err(|error| self.note(error)).ok()
    }

    /// Adds up to `more` bytes; `false` if there are none.
    fn extend(&mut self, memory: &impl ForeignMemory, more: usize) -> bool {
        let done = self.bytes.len();
        self.bytes.resize(done + more, 0);
        let piece =
            MemoryPiece { address: self.start.wrapping_add(done as u64), into: &mut self.bytes[done..] };
        let filled = memory.read_pieces(&mut [piece]).unwrap_or_else(|error| {
            self.note(error);
            0
        });
        self.bytes.truncate(done + filled);
        filled > 0
    }

    fn note(&mut self, error: Error) {
        if error.kind() != ErrorKind::Unmapped {
            self.failure = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Memory in which each number is its own address, from 0x10000 to 0x40000, that counts the calls.
    #[derive(Default)]
    struct Numbered(Cell<usize>);

    impl ForeignMemory for Numbered {
        fn read_pieces(&self, pieces: &mut [MemoryPiece<'_>]) -> Result<usize, Error> {
            self.0.set(self.0.get() + 1);
            let mut filled = 0;
            for piece in pieces {
                for (place, byte) in (piece.address..).zip(piece.into.iter_mut()) {
                    if !(0x1_0000..0x4_0000).contains(&place) {
                        return Ok(filled);
                    }
                    *byte = (place & !7).to_le_bytes()[usize::try_from(place % 8).unwrap()];
                    filled += 1;
                }
            }
            Ok(filled)
        }
    }

    #[test]
    fn a_deep_stack_is_extended_once_and_then_copied_at_once() {
        let (memory, mut copy) = (Numbered::default(), StackCopy::default());
        copy.take(&memory, 0x2_0000);
        assert_eq!(copy.u64_at(&memory, 0x2_8000), Some(0x2_8000));
        copy.learn(0x2_8008);
        let calls = memory.0.replace(0);
        assert!(calls > 1);
        copy.take(&memory, 0x2_0000);
        assert_eq!(copy.u64_at(&memory, 0x2_8000), Some(0x2_8000));
        assert_eq!(memory.0.get(), 1);
    }

    #[test]
    fn a_given_copy_is_all_that_is_read_of_a_thread_that_runs() {
        let (memory, mut copy) = (Numbered::default(), StackCopy::default());
        copy.give(0x2_0000, &7_u64.to_le_bytes());
        assert_eq!((copy.u64_at(&memory, 0x2_0000), copy.is_short), (Some(7), false));
        for address in [0x2_0008, 0x1_fff8, 0x3_0000] {
            copy.is_short = false;
            assert_eq!((copy.u64_at(&memory, address), copy.is_short), (None, true), "{address:#x}");
        }
        assert_eq!(memory.0.get(), 0);
    }

    #[test]
    fn the_red_zone_the_end_and_other_stacks_are_read_and_no_more() {
        let (memory, mut copy) = (Numbered::default(), StackCopy::default());
        copy.take(&memory, 0x3_ff00);
        assert_eq!(copy.u64_at(&memory, 0x3_fe80), Some(0x3_fe80), "in the red zone");
        assert_eq!(copy.u64_at(&memory, 0x3_fff8), Some(0x3_fff8), "the last of the stack");
        assert_eq!(copy.u64_at(&memory, 0x3_fffc), None, "half of it is not there");
        assert_eq!(copy.u64_at(&memory, 0x1_0000), Some(0x1_0000), "another stack");
        assert_eq!(copy.u64_at(&memory, u64::MAX - 3), None);
        assert!(copy.failure.is_none());
    }
}
