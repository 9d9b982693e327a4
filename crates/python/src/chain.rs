//! Follows the frames of a thread from the current one to the outermost.

use borehole_process::{ForeignMemory, u32_at, u64_at};

use crate::error::Error;
use crate::layout::{CallMark, FrameLayout, InstructionPosition, Layout};
use crate::snapshot::{FramePlace, Snapshot};

/// The most frames followed: more than any stack has, and a chain that is a circle ends.
pub(crate) const MOST_FRAMES: usize = 1 << 16;

/// A frame as it is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawFrame {
    pub(crate) address: u64,
    pub(crate) code: u64,
    pub(crate) position: RawPosition,
    /// The index of the thread's own copy of the code.
    pub(crate) code_copy: u32,
}

/// The current instruction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RawPosition {
    /// The offset in bytes; negative before the first instruction.
    Offset(i64),
    Address(u64),
}

/// How following a chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the outermost frame.
    Whole,
    /// At a frame that changed while it was copied, is not there, or is none.
    Broken,
}

/// Frames owned by interpreters and by the C stack mark entries from C, and are no code of the program.
///
/// Source: CPython, `FRAME_OWNED_BY_*` in `pycore_interpframe_structs.h` (3.12 and 3.13: `pycore_frame.h`).
const FIRST_HIDDEN_OWNER: u8 = 3;
const LAST_OWNER: u8 = 4;

/// The frames from the current one on, without entries from C.
#[derive(Debug, Default)]
pub(crate) struct FrameChain {
    pub(crate) frames: Vec<RawFrame>,
    /// The ends of the calls of the interpreter.
    pub(crate) calls: Vec<CallEnd>,
}

/// The end of a call of the interpreter, seen from the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallEnd {
    /// The number of frames up to it.
    pub(crate) frames: usize,
    /// The address of a variable of the interpreter, if the frames tell one.
    pub(crate) place: Option<u64>,
}

impl FrameChain {
    /// Follows the chain that begins at the frame at `current`.
    pub(crate) fn follow(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        snapshot: &mut Snapshot,
        current: u64,
    ) -> Result<End, Error> {
        self.frames.clear();
        self.calls.clear();
        let base = layout.thread.base_frame.and_then(|base| u64_at(snapshot.state(), base));
        let (mut address, mut last) = (current, 0);
        let mut is_leaf = true;
        for _ in 0..MOST_FRAMES {
            if address == 0 {
                let is_base = base.is_none_or(|base| base == last);
                return Ok(if is_base { End::Whole } else { End::Broken });
            }
            if !address.is_multiple_of(8) {
                return Ok(End::Broken);
            }
            let Some(copied) = snapshot.find(memory, address, layout.frame.size)? else {
                return Ok(End::Broken);
            };
            let Some((frame, previous)) = standing(snapshot, (address, copied), &layout.frame, is_leaf)
            else {
                return Ok(End::Broken);
            };
            let place = frame.is_none().then_some(address);
            if let Some(frame) = frame {
                self.frames.push(frame);
                is_leaf = false;
            }
            if place.is_some() || ends_call(snapshot, copied, &layout.frame) {
                self.calls.push(CallEnd { frames: self.frames.len(), place });
            }
            last = address;
            address = previous;
        }
        Ok(End::Broken)
    }
}

/// The frame at `place`, and the one before it, if both copies agree: of the leaf, on all but the instruction, because it goes
/// on. `None` instead of the frame for an entry from C.
fn standing(
    snapshot: &Snapshot,
    (address, place): (u64, FramePlace),
    layout: &FrameLayout,
    is_leaf: bool,
) -> Option<(Option<RawFrame>, u64)> {
    let equal = |offset: usize| {
        let [before, behind] = snapshot.numbers(place, offset)?;
        (before == behind).then_some(before)
    };
    let previous = equal(layout.previous)?;
    let owner = match layout.owner {
        Some(offset) => {
            let owners = snapshot.numbers(place, offset)?.map(|number| number.to_le_bytes()[0]);
            if owners[0] != owners[1] || owners[0] > LAST_OWNER {
                return None;
            }
            owners[0]
        }
        None => 0,
    };
    if owner >= FIRST_HIDDEN_OWNER {
        return Some((None, previous));
    }
    // The lowest bits say who counts the reference, from 3.14 on; objects lie at multiples of eight.
    let code = equal(layout.code)? & !7;
    let at = match layout.position {
        InstructionPosition::Index { at, .. } | InstructionPosition::Address(at) => at,
    };
    let [before, behind] = snapshot.numbers(place, at)?.map(|number| position(layout, number));
    if !is_leaf && before != behind {
        return None;
    }
    let code_copy = match layout.code_copy {
        Some(offset) => low_half(equal(offset)?),
        None => 0,
    };
    Some((Some(RawFrame { address, code, position: behind, code_copy }), previous))
}

/// Whether a frame of the program is the last of a call of the interpreter.
fn ends_call(snapshot: &Snapshot, place: FramePlace, layout: &FrameLayout) -> bool {
    match layout.call {
        CallMark::EachFrame => true,
        CallMark::Flag(offset) => {
            snapshot.numbers(place, offset).is_some_and(|[before, _]| before.to_le_bytes()[0] != 0)
        }
        CallMark::OwnFrame => false,
    }
}

/// The lower four bytes of a number.
const fn low_half(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// The frame at `address` whose bytes were copied once, of a coroutine that waits.
pub(crate) fn waiting(layout: &FrameLayout, address: u64, bytes: &[u8]) -> Option<RawFrame> {
    let at = match layout.position {
        InstructionPosition::Index { at, .. } | InstructionPosition::Address(at) => at,
    };
    let code_copy = layout.code_copy.and_then(|offset| u32_at(bytes, offset)).unwrap_or_default();
    let position = position(layout, u64_at(bytes, at)?);
    Some(RawFrame { address, code: u64_at(bytes, layout.code)? & !7, position, code_copy })
}

fn position(layout: &FrameLayout, number: u64) -> RawPosition {
    match layout.position {
        InstructionPosition::Index { unit, .. } => {
            RawPosition::Offset(i64::from(low_half(number).cast_signed()) * i64::from(unit))
        }
        InstructionPosition::Address(_) => RawPosition::Address(number),
    }
}
