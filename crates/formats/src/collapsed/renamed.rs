//! Stacks with replaced frames.

use borehole_model::{FrameId, StackId, TableFull, Tables};

/// Stacks with replaced frames, in which equal stacks are merged.
///
/// Usually no frames are merged or removed. Then the stacks are unchanged, and nothing is copied.
pub(super) struct Renamed<'a> {
    source: &'a Tables,
    merged: Option<Merged>,
}

struct Merged {
    /// The stacks; their frames are in the tables of the source.
    tables: Tables,
    /// The new stack of each source stack; `None` if nothing is left of it.
    stacks: Vec<Option<StackId>>,
}

impl<'a> Renamed<'a> {
    /// Replaces the frames in the stacks of `source`. `frames` gives the replacement of each frame; `None` removes it.
    ///
    /// # Errors
    /// If a table is full.
    pub(super) fn new(source: &'a Tables, frames: &[Option<FrameId>]) -> Result<Self, TableFull> {
        let is_same = |(row, frame): (usize, &Option<FrameId>)| frame.is_some_and(|id| id.index() == row);
        if frames.iter().enumerate().all(is_same) {
            return Ok(Self { source, merged: None });
        }
        let mut tables = Tables::default();
        let mut stacks: Vec<Option<StackId>> = Vec::with_capacity(source.stack_count());
        for stack in source.stack_ids() {
            let caller = source.parent(stack).and_then(|caller| stacks[caller.index()]);
            stacks.push(match frames[source.leaf(stack).index()] {
                Some(frame) => Some(tables.intern_stack(caller, frame)?),
                None => caller,
            });
        }
        Ok(Self { source, merged: Some(Merged { tables, stacks }) })
    }

    /// Whether the stacks are unchanged.
    pub(super) const fn is_same(&self) -> bool {
        self.merged.is_none()
    }

    /// The tables with the stacks; frames are those of the source.
    pub(super) fn tree(&self) -> &Tables {
        self.merged.as_ref().map_or(self.source, |merged| &merged.tables)
    }

    /// The new stack of a source stack; `None` if nothing is left of it.
    pub(super) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.merged.as_ref().map_or(Some(stack), |merged| merged.stacks[stack.index()])
    }
}
