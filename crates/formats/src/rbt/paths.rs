//! The stacks of a segment as paths from the root.
//!
//! Most stacks share most of their callers with the stack defined before, and only the difference is stored. Paths are kept
//! twice: as ids of frames, which the file defines, and as the frames that the ids meant when the path was sampled.

use std::num::NonZeroU32;

use borehole_memory::HeldBytes as _;

use super::event::Varints;
use super::indices::{FrameIndex, Undefined};

/// A frame of a sampled stack together with all of its callers. Equal indices are equal paths; the reverse need not
/// hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallIndex(NonZeroU32);

impl CallIndex {
    /// Dense from 0 within the segment, callers before callees.
    #[inline]
    pub(super) const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

/// A path of frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallPath {
    pub(super) caller: Option<CallIndex>,
    pub(super) frame: FrameIndex,
}

/// A defined path.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepIndex(NonZeroU32);

impl StepIndex {
    const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct DefinedStep {
    caller: Option<StepIndex>,
    /// The meaning of the path when it was last sampled.
    call: Option<CallIndex>,
    frame: i64,
}

/// All paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    steps: Vec<DefinedStep>,
    calls: Vec<CallPath>,
    /// Calls before this index may be of outdated frames.
    outdated: usize,
    /// The last list of frames defined, with its path, root first.
    last_list: Vec<u8>,
    last_path: Vec<StepIndex>,
    /// A reused buffer.
    ids: Vec<i64>,
    new_calls: Vec<(StepIndex, FrameIndex)>,
}

impl Paths {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.calls.clear();
        self.outdated = 0;
        self.last_list.clear();
        self.last_path.clear();
    }

    /// The memory that the paths have allocated.
    pub(super) fn held_bytes(&self) -> usize {
        let buffers = self.last_list.held_bytes() + self.last_path.held_bytes() + self.ids.held_bytes();
        self.steps.held_bytes() + self.calls.held_bytes() + self.new_calls.held_bytes() + buffers
    }

    /// The path of a list of frame ids; `None` if it is empty.
    pub(super) fn define(&mut self, frames_leaf_first: Varints<'_>) -> Option<StepIndex> {
        let list = frames_leaf_first.bytes();
        let shared = shared_numbers(&self.last_list, list);
        self.last_path.truncate(shared);
        self.last_list.clear();
        self.last_list.extend_from_slice(list);
        let new = frames_leaf_first.len() - shared;
        self.ids.clear();
        self.ids.extend(frames_leaf_first.take(new));
        for &frame in self.ids.iter().rev() {
            let caller = self.last_path.last().copied();
            self.steps.push(DefinedStep { caller, call: None, frame });
            self.last_path.push(StepIndex(number(self.steps.len())));
        }
        self.last_path.last().copied()
    }

    /// Resolves the ids of `path` to their current frames with `frame_of`.
    ///
    /// # Errors
    /// The undefined frame nearest to the leaf.
    pub(super) fn resolve(
        &mut self,
        path: Option<StepIndex>,
        frame_of: impl Fn(i64) -> Result<FrameIndex, Undefined>,
    ) -> Result<Option<CallIndex>, Undefined> {
        self.new_calls.clear();
        let (mut at, mut caller) = (path, None);
        while let Some(path) = at {
            let step = self.steps[path.index()];
            caller = step.call.filter(|call| call.index() >= self.outdated);
            if caller.is_some() {
                break;
            }
            self.new_calls.push((path, frame_of(step.frame)?));
            at = step.caller;
        }
        for &(path, frame) in self.new_calls.iter().rev() {
            self.calls.push(CallPath { caller, frame });
            caller = Some(CallIndex(number(self.calls.len())));
            self.steps[path.index()].call = caller;
        }
        Ok(caller)
    }

    /// Notes that from here on ids may mean other frames than before.
    pub(super) const fn forget(&mut self) {
        self.outdated = self.calls.len();
    }

    /// Adds a path of one frame that no definition leads to.
    pub(super) fn push_root(&mut self, frame: FrameIndex) -> CallIndex {
        self.calls.push(CallPath { caller: None, frame });
        CallIndex(number(self.calls.len()))
    }

    /// All calls, by [`CallIndex::index`].
    #[inline]
    pub(super) fn calls(&self) -> &[CallPath] {
        &self.calls
    }
}

/// The number of the last of `len` rows. The limit on definitions ends a segment long before rows run out.
fn number(len: usize) -> NonZeroU32 {
    u32::try_from(len).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX)
}

/// The number of equal varints at the end of two lists.
fn shared_numbers(one: &[u8], other: &[u8]) -> usize {
    let shared = shared_end(one, other);
    let ends = other[other.len() - shared..].iter().filter(|byte| is_last(**byte)).count();
    // A varint that ends within the shared bytes may begin before them.
    let begins = |list: &[u8]| list[..list.len() - shared].last().is_none_or(|byte| is_last(*byte));
    if begins(one) && begins(other) { ends } else { ends.saturating_sub(1) }
}

/// Whether `byte` is the last of a varint.
const fn is_last(byte: u8) -> bool {
    byte < 0x80
}

/// The number of equal bytes at the end of both.
fn shared_end(one: &[u8], other: &[u8]) -> usize {
    let eights = one.rchunks_exact(8).zip(other.rchunks_exact(8));
    let whole = 8 * eights.take_while(|(one, other)| one == other).count();
    let rest = |list: &[u8]| list.len() - whole;
    let ones = one[..rest(one)].iter().rev().zip(other[..rest(other)].iter().rev());
    whole + ones.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_whole_numbers_only() {
        for (one, other, shared) in [
            (&[][..], &[1, 2][..], 0),
            (&[1, 2], &[1, 2], 2),
            (&[9, 1, 2], &[1, 2], 2),
            (&[0x81, 2], &[0x82, 2], 0),
            (&[0x81, 2], &[2], 0),
            (&[2, 2], &[0x81, 2, 2], 1),
            (&[7, 0x81, 2, 3], &[8, 0x81, 2, 3], 2),
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[0, 2, 3, 4, 5, 6, 7, 8, 9, 10], 9),
            (&[0x80, 0x81, 2, 3, 4, 5, 6, 7, 8, 9], &[0x81, 2, 3, 4, 5, 6, 7, 8, 9], 7),
        ] {
            assert_eq!(shared_numbers(one, other), shared, "{one:?} {other:?}");
            assert_eq!(shared_numbers(other, one), shared, "{other:?} {one:?}");
        }
    }
}
