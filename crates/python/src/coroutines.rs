//! The frames of a coroutine that waits, and of those that it awaits.

use borehole_process::{Error, ForeignMemory, mapped, moved, u32_at, u64_at};
use hashbrown::HashMap;

use crate::chain::{self, RawFrame};
use crate::containers::number;
use crate::layout::{Layout, StackTop};
use crate::object_layout::{CoroutineFrame, CoroutineStates, STATE_BEFORE_FRAME};
use crate::objects::name_of_type;
use crate::values::{HeldValue, held};

/// The most coroutines that are followed, each awaited by the one before.
const MOST_AWAITED: usize = 1 << 10;

/// The number of types that are remembered.
const MOST_TYPES: usize = 1 << 12;

/// The kind of an awaited object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedKind {
    /// A coroutine, a generator or an asynchronous generator.
    Coroutine,
    /// An object whose first field is one.
    Wrapper,
    /// A future that waits for all of several.
    Gathering,
    /// A method of an object.
    BoundMethod,
    /// A group of tasks.
    TaskGroup,
    Weakref,
    Other,
}

/// The known types of objects.
#[derive(Debug, Default)]
pub(crate) struct AwaitedTypes(HashMap<u64, AwaitedKind>);

impl AwaitedTypes {
    /// The kind of the object at `address`.
    pub(crate) fn of(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        address: u64,
    ) -> Result<AwaitedKind, Error> {
        let Some(kind) = number(memory, moved(address, layout.object.kind))? else {
            return Ok(AwaitedKind::Other);
        };
        if let Some(&known) = self.0.get(&kind) {
            return Ok(known);
        }
        let name = mapped(name_of_type(memory, &layout.object, kind))?.unwrap_or_default();
        let found = match name.as_slice() {
            b"coroutine" | b"generator" | b"async_generator" => AwaitedKind::Coroutine,
            b"coroutine_wrapper" | b"async_generator_asend" | b"async_generator_athrow" => {
                AwaitedKind::Wrapper
            }
            b"_GatheringFuture" => AwaitedKind::Gathering,
            b"method" => AwaitedKind::BoundMethod,
            b"TaskGroup" => AwaitedKind::TaskGroup,
            name if name.starts_with(b"weakref") => AwaitedKind::Weakref,
            _ => AwaitedKind::Other,
        };
        if self.0.len() >= MOST_TYPES {
            self.0.clear();
        }
        self.0.insert(kind, found);
        Ok(found)
    }
}

/// The address of the frame of the coroutine at `address`; 0 if it has none any more.
pub(crate) fn frame_of(memory: &impl ForeignMemory, layout: &Layout, address: u64) -> Result<u64, Error> {
    match layout.object.coroutine_frame {
        CoroutineFrame::Within(offset) => Ok(moved(address, offset)),
        CoroutineFrame::Pointer(offset) => Ok(number(memory, moved(address, offset))?.unwrap_or_default()),
    }
}

/// Whether the coroutine whose frame is at `frame` waits, as far as it says so.
fn waits(memory: &impl ForeignMemory, layout: &Layout, frame: u64) -> Result<bool, Error> {
    let is_stated = layout.object.coroutine_states != CoroutineStates::Unstated;
    let mut state = [0];
    if is_stated && mapped(memory.read(frame.wrapping_sub(STATE_BEFORE_FRAME), &mut state))?.is_none() {
        return Ok(false);
    }
    Ok(match layout.object.coroutine_states {
        CoroutineStates::Unstated => true,
        CoroutineStates::Signed => state[0].cast_signed() < 0,
        CoroutineStates::Numbered => state[0] <= 3,
    })
}

/// The frames of the coroutine at `address` and of those that it awaits, the innermost first. Empty if it does not wait.
pub(crate) fn waiting_frames(
    memory: &impl ForeignMemory,
    layout: &Layout,
    types: &mut AwaitedTypes,
    address: u64,
) -> Result<Vec<RawFrame>, Error> {
    let mut frames = Vec::new();
    let mut next = address;
    for _ in 0..MOST_AWAITED {
        match types.of(memory, layout, next)? {
            AwaitedKind::Coroutine => {}
            AwaitedKind::Wrapper => {
                next = number(memory, moved(next, layout.object.header))?.unwrap_or_default();
                continue;
            }
            _ => break,
        }
        let place = frame_of(memory, layout, next)?;
        let mut bytes = [0; LARGEST_FRAME];
        let Some(bytes) = bytes.get_mut(..layout.frame.size.max(layout.frame.locals)) else { break };
        let is_there = place != 0 && mapped(memory.read(place, bytes))?.is_some();
        if !is_there || !waits(memory, layout, place)? {
            return Ok(Vec::new());
        }
        let Some(awaited) = awaited(memory, layout, place, bytes)? else { return Ok(Vec::new()) };
        frames.extend(chain::waiting(&layout.frame, place, bytes));
        if awaited == 0 {
            break;
        }
        next = awaited;
    }
    frames.reverse();
    Ok(frames)
}

/// More than the fixed part of a frame takes in any release.
const LARGEST_FRAME: usize = 512;

/// The object on top of the values of a frame that waits: that which it awaits. 0 for none; `None` if the frame runs.
fn awaited(
    memory: &impl ForeignMemory,
    layout: &Layout,
    frame: u64,
    bytes: &[u8],
) -> Result<Option<u64>, Error> {
    /// More values than any frame has.
    const MOST_VALUES: u32 = 1 << 16;
    let count = |at: usize| u32_at(bytes, at).filter(|&count| count < MOST_VALUES);
    let (start, end) = match layout.frame.stack_top {
        StackTop::Address(at) => (moved(frame, layout.frame.locals), u64_at(bytes, at)),
        StackTop::Count(at) => {
            let start = moved(frame, layout.frame.locals);
            (start, count(at).map(|count| moved(start, 8 * count as usize)))
        }
        StackTop::Depth { start, count: at } => {
            let start = u64_at(bytes, start).unwrap_or_default();
            (start, count(at).map(|count| moved(start, 8 * count as usize)))
        }
    };
    let Some(end) = end.filter(|&end| end != 0) else { return Ok(None) };
    let mut words = [0; 16];
    if end <= start || mapped(memory.read(end.wrapping_sub(16), &mut words))?.is_none() {
        return Ok(Some(0));
    }
    // 3.15 has a place for an index above the object.
    let objects = [8, 0].map(|at| match held(u64_at(&words, at).unwrap_or_default()) {
        HeldValue::Object(object) => object,
        HeldValue::Integer(_) => 0,
    });
    Ok(Some(objects.into_iter().find(|&object| object != 0).unwrap_or_default()))
}
