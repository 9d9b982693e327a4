//! Stacks as the format displays them: those that differ only in data that it cannot hold are one.

use std::convert::Infallible;
use std::num::NonZeroU32;

use borehole_model::{Column, FrameId, StackColumn, StackId, Tables};
use hashbrown::HashMap;

use super::names::Shown;

/// Numbers stacks by their displayed form, from 1.
#[derive(Debug, Default)]
pub(super) struct ShownStacks {
    numbers: StackColumn<NonZeroU32>,
    /// By the number of the caller and the frame.
    index: HashMap<(Option<NonZeroU32>, NonZeroU32), NonZeroU32>,
    frames: ShownFrames,
}

/// Numbers frames by their displayed form.
#[derive(Debug, Default)]
struct ShownFrames {
    numbers: Column<NonZeroU32>,
    index: HashMap<Shown, NonZeroU32>,
}

impl ShownStacks {
    /// The number of a stack, shared by all stacks of equal displayed form.
    pub(super) fn number(&mut self, stack: StackId, tables: &Tables) -> NonZeroU32 {
        let Self { numbers, index, frames } = self;
        let Ok(number) = numbers.derive(stack, tables, |caller, stack| {
            let frame = frames.number(tables.leaf(stack), tables);
            let fresh = next_number(index.len());
            Ok::<_, Infallible>(*index.entry((caller, frame)).or_insert(fresh))
        });
        number
    }
}

impl ShownFrames {
    fn number(&mut self, frame: FrameId, tables: &Tables) -> NonZeroU32 {
        self.numbers.get(frame.index()).unwrap_or_else(|| {
            let fresh = next_number(self.index.len());
            let number = *self.index.entry(Shown::of(&tables.frame(frame))).or_insert(fresh);
            self.numbers.set(frame.index(), number)
        })
    }
}

fn next_number(len: usize) -> NonZeroU32 {
    let number = u32::try_from(len).ok().and_then(|len| NonZeroU32::MIN.checked_add(len));
    number.expect("there are as many rows as ids at most")
}
