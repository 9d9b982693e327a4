//! Stacks with other frames in the place of theirs.

use borehole_model::{FrameId, StackId, TableFull, Tables};

/// Stacks of other frames: those that are alike then are one.
///
/// Mostly no two frames become one and none is left out. Then the stacks are what they were, and nothing is copied.
pub(super) struct Renamed<'a> {
    source: &'a Tables,
    merged: Option<Merged>,
}

struct Merged {
    /// The stacks; their frames are in the tables of the source.
    tables: Tables,
    /// By stack of the source; `None` where nothing is left of it.
    stacks: Vec<Option<StackId>>,
}

impl<'a> Renamed<'a> {
    /// The stacks of `source`, of which `frames` says which other one each frame becomes, or whether it is left out.
    ///
    /// # Errors
    /// When a table is full.
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

    /// Whether stacks are what they were.
    pub(super) const fn is_same(&self) -> bool {
        self.merged.is_none()
    }

    /// The tables that have the stacks; frames are those of the source.
    pub(super) fn tree(&self) -> &Tables {
        self.merged.as_ref().map_or(self.source, |merged| &merged.tables)
    }

    /// What a stack of the source has become; `None` where nothing is left of it.
    pub(super) fn stack(&self, stack: StackId) -> Option<StackId> {
        self.merged.as_ref().map_or(Some(stack), |merged| merged.stacks[stack.index()])
    }
}
