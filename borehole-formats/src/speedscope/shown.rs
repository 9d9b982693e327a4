//! Stacks as the format shows them: those that differ only in what it cannot hold are one.

use borehole_model::{FrameId, StackId, Tables};
use hashbrown::HashMap;

use super::names::Shown;

/// Numbers stacks by what is shown of them. 0 is the empty stack.
#[derive(Debug, Default)]
pub(super) struct ShownStacks {
    /// By stack of the tables its number plus one, 0 where it has none yet.
    numbers: Vec<u32>,
    /// By the number of the caller and the frame.
    index: HashMap<(u32, u32), u32>,
    /// By frame of the tables its number plus one.
    frames: Vec<u32>,
    frame_index: HashMap<Shown, u32>,
    path: Vec<StackId>,
}

impl ShownStacks {
    /// The number of a stack, which is that of every stack shown like it.
    pub(super) fn number(&mut self, stack: StackId, tables: &Tables) -> u32 {
        let mut caller = 0;
        let mut next = Some(stack);
        while let Some(stack) = next {
            match self.numbers.get(stack.index()) {
                Some(&known) if known != 0 => {
                    caller = known - 1;
                    break;
                }
                _ => self.path.push(stack),
            }
            next = tables.parent(stack);
        }
        while let Some(stack) = self.path.pop() {
            let frame = self.frame(tables.leaf(stack), tables);
            let fresh = next_number(self.index.len());
            caller = *self.index.entry((caller, frame)).or_insert(fresh);
            put(&mut self.numbers, stack.index(), caller + 1);
        }
        caller
    }

    fn frame(&mut self, frame: FrameId, tables: &Tables) -> u32 {
        if let Some(&known) = self.frames.get(frame.index())
            && known != 0
        {
            return known;
        }
        let fresh = next_number(self.frame_index.len());
        let number = *self.frame_index.entry(Shown::of(tables.frame(frame))).or_insert(fresh);
        put(&mut self.frames, frame.index(), number);
        number
    }
}

fn next_number(len: usize) -> u32 {
    u32::try_from(len + 1).expect("there are as many rows as ids at most")
}

fn put(column: &mut Vec<u32>, index: usize, number: u32) {
    if column.len() <= index {
        column.resize(index + 1, 0);
    }
    column[index] = number;
}
