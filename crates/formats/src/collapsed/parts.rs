//! Lines as paths in a tree of the parts between separators, for names that contain separators or look like a thread.

use std::io;

use borehole_model::{Frame, StackId, TableFull, Tables};
use hashbrown::HashMap;

use super::lines::{LineNames, SEPARATOR};

/// The parts of lines. Lines with equal text are one path, whatever their frames.
#[derive(Default)]
pub(super) struct LineParts {
    /// All parts, each followed by a separator, as names of frames, and their paths.
    tables: Tables,
    /// The path of a thread's stack.
    paths: HashMap<(Option<u64>, StackId), Option<StackId>>,
    new: Vec<StackId>,
}

impl LineParts {
    /// The path of the line of a thread, printed as `prefix` with its separator, and a stack of `tree`.
    ///
    /// # Errors
    /// If a table is full, or there are more parts than memory.
    pub(super) fn path(
        &mut self,
        (thread, prefix): (Option<u64>, &str),
        stack: StackId,
        tree: &Tables,
        names: &LineNames,
    ) -> io::Result<Option<StackId>> {
        let mut next = Some(stack);
        let mut path = None;
        while let Some(stack) = next {
            if let Some(&known) = self.paths.get(&(thread, stack)) {
                path = known;
                break;
            }
            self.new.push(stack);
            next = tree.parent(stack);
        }
        if next.is_none() {
            path = self.follow(None, prefix.as_bytes())?;
        }
        while let Some(stack) = self.new.pop() {
            path = self.follow(path, names.text(tree.leaf(stack)))?;
            self.paths.insert((thread, stack), path);
            borehole_memory::check()?;
        }
        Ok(path)
    }

    /// Follows the parts of a text, each of which ends with a separator.
    fn follow(&mut self, mut path: Option<StackId>, text: &[u8]) -> Result<Option<StackId>, TableFull> {
        for part in text.split_inclusive(|&byte| byte == SEPARATOR) {
            let name = self.tables.intern_string(part)?;
            let frame = self.tables.intern_frame(&Frame::named(name))?;
            path = Some(self.tables.intern_stack(path, frame)?);
        }
        Ok(path)
    }

    /// The parts as names, whose texts are also the tree of paths.
    pub(super) fn into_names(self) -> LineNames {
        LineNames::of_frames(self.tables)
    }
}
