//! The definitions of one segment so far.
//!
//! Ids of the file may be anything (sparse, huge, negative, redefined), but a reader of samples needs small, stable
//! numbers. So every definition gets an *index*, a dense row number that is never reused within the segment, and ids map to
//! the current index.
//!
//! A stack is resolved when it is first sampled, as in reli: its frames may be defined after it, and redefining a frame
//! changes the stacks that name it, but not the samples already returned.

use std::ops::Range;

use borehole_memory::HeldBytes as _;
use hashbrown::HashMap;

use super::event::{FrameFields, Varints};
use super::indices::{DefinitionKind, FrameIndex, StackIndex, StringIndex, Undefined};
use super::paths::{CallIndex, CallPath, Paths, StepIndex};

/// The most definitions of one kind that one damage loses: ids that much beyond the next one are plausible.
pub(super) const MAX_LOST: i64 = 64;

/// A frame with resolved strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinedFrame {
    /// A PHP frame.
    Php {
        /// The namespace; empty if there is none.
        namespace: StringIndex,
        /// The class; empty if there is none.
        class: StringIndex,
        /// The method or function.
        method: StringIndex,
        /// The file.
        file: StringIndex,
        /// The line; -1 if unknown.
        line: i64,
        /// The opcode.
        opcode: Option<StringIndex>,
    },
    /// A native frame.
    Native {
        /// The symbol.
        symbol: StringIndex,
        /// The executable or library.
        module: StringIndex,
        /// Bytes from the start of the symbol.
        offset: i64,
    },
}

/// The tables of one segment.
#[derive(Debug, Default)]
pub struct Definitions {
    bytes: Vec<u8>,
    string_ends: Vec<usize>,
    strings: IdMap<StringIndex>,
    frame_rows: Vec<DefinedFrame>,
    frames: IdMap<FrameIndex>,
    paths: Paths,
    /// `None` for stacks without frames.
    stacks: IdMap<Option<StepIndex>>,
    /// The current meaning of the ids of sampled stacks. Cleared when a frame is redefined.
    sampled: IdMap<StackIndex>,
    /// Lost stacks, with their replacements.
    stand_ins: IdMap<StackIndex>,
    sampled_rows: Vec<Option<CallIndex>>,
    next_ids: NextIds,
}

/// The next ids that a writer would assign, by kind: one more than the largest so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NextIds([i64; 3]);

impl NextIds {
    pub(super) const fn of(self, kind: DefinitionKind) -> i64 {
        self.0[kind as usize]
    }

    pub(super) const fn set(&mut self, kind: DefinitionKind, next: i64) {
        self.0[kind as usize] = next;
    }

    /// Notes a definition of `id`.
    pub(super) fn pass(&mut self, kind: DefinitionKind, id: i64) {
        self.set(kind, self.of(kind).max(id.saturating_add(1)));
    }
}

impl Definitions {
    /// The bytes of a string.
    #[must_use]
    pub fn string(&self, string: StringIndex) -> &[u8] {
        &self.bytes[range(&self.string_ends, string.index())]
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, frame: FrameIndex) -> &DefinedFrame {
        &self.frame_rows[frame.index()]
    }

    /// The frames of a stack, from the leaf to the root.
    pub fn frames_leaf_first(&self, stack: StackIndex) -> impl Iterator<Item = FrameIndex> {
        let calls = self.calls();
        let path = std::iter::successors(self.leaf(stack), |call| calls[call.index()].caller);
        path.map(|call| calls[call.index()].frame)
    }

    /// The leaf of a stack with its callers; `None` for a stack without frames.
    #[inline]
    pub(super) fn leaf(&self, stack: StackIndex) -> Option<CallIndex> {
        self.sampled_rows[stack.index()]
    }

    /// All paths that stacks have had, by their indices.
    #[inline]
    pub(super) fn calls(&self) -> &[CallPath] {
        self.paths.calls()
    }

    /// The numbers of strings, frames and sampled stacks.
    #[must_use]
    pub const fn counts(&self) -> [usize; 3] {
        [self.string_ends.len(), self.frame_rows.len(), self.sampled_rows.len()]
    }

    pub(super) const fn next_ids(&self) -> NextIds {
        self.next_ids
    }

    /// The memory that the definitions have allocated. It costs some twenty additions.
    pub(super) fn held_bytes(&self) -> usize {
        let strings = self.bytes.held_bytes() + self.string_ends.held_bytes() + self.strings.held_bytes();
        let frames = self.frame_rows.held_bytes() + self.frames.held_bytes();
        let stacks = self.stacks.held_bytes() + self.sampled.held_bytes() + self.stand_ins.held_bytes();
        strings + frames + stacks + self.sampled_rows.held_bytes() + self.paths.held_bytes()
    }

    /// Removes all definitions for a new segment. Keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.string_ends.clear();
        self.strings.clear();
        self.frame_rows.clear();
        self.frames.clear();
        self.paths.clear();
        self.stacks.clear();
        self.sampled_rows.clear();
        self.sampled.clear();
        self.stand_ins.clear();
        self.next_ids = NextIds::default();
    }

    fn push_string(&mut self, string: &[u8]) -> StringIndex {
        let index = StringIndex(row(self.string_ends.len()));
        self.bytes.extend_from_slice(string);
        self.string_ends.push(self.bytes.len());
        index
    }

    pub(super) fn define_string(&mut self, id: i64, string: &[u8]) {
        let index = self.push_string(string);
        self.strings.insert(id, index);
        self.next_ids.pass(DefinitionKind::String, id);
    }

    pub(super) fn define_frame(&mut self, id: i64, fields: FrameFields) -> Result<(), Undefined> {
        let frame = match fields {
            FrameFields::Php { namespace, class, method, file, line, opcode } => DefinedFrame::Php {
                namespace: self.string_index(namespace)?,
                class: self.string_index(class)?,
                method: self.string_index(method)?,
                file: self.string_index(file)?,
                line,
                opcode: opcode.map(|opcode| self.string_index(opcode)).transpose()?,
            },
            FrameFields::Native { symbol, module, offset } => DefinedFrame::Native {
                symbol: self.string_index(symbol)?,
                module: self.string_index(module)?,
                offset,
            },
        };
        let index = self.push_frame(frame);
        if self.frames.insert(id, index).is_some() {
            // Not cleared: clearing takes time for everything that was ever in it, for each of any number of frames.
            self.sampled = IdMap::default();
            self.paths.forget();
        }
        self.next_ids.pass(DefinitionKind::Frame, id);
        Ok(())
    }

    fn push_frame(&mut self, frame: DefinedFrame) -> FrameIndex {
        let index = FrameIndex(row(self.frame_rows.len()));
        self.frame_rows.push(frame);
        index
    }

    pub(super) fn define_stack(&mut self, id: i64, frames_leaf_first: Varints<'_>) {
        let path = self.paths.define(frames_leaf_first);
        // Now the whole stack is defined. If a frame is missing, sampling the stack reports it.
        let _ = self.resolve(path);
        self.stacks.insert(id, path);
        self.sampled.vacate(id);
        self.next_ids.pass(DefinitionKind::Stack, id);
    }

    pub(super) fn string_index(&self, id: i64) -> Result<StringIndex, Undefined> {
        self.strings.get(id).copied().ok_or(Undefined { kind: DefinitionKind::String, id })
    }

    /// The stack that `id` currently means, if it has been sampled with this meaning.
    #[inline]
    pub(super) fn sampled(&self, id: i64) -> Option<StackIndex> {
        self.sampled.get(id).copied()
    }

    /// The stack that `id` currently means.
    pub(super) fn stack_index(&mut self, id: i64) -> Result<StackIndex, Undefined> {
        if let Some(known) = self.sampled(id) {
            return Ok(known);
        }
        let index = match (self.stacks.get(id), self.stand_ins.get(id)) {
            (Some(&path), _) => {
                let leaf = self.resolve(path)?;
                self.push_sampled(leaf)
            }
            (None, Some(&stand_in)) => stand_in,
            (None, None) => return Err(Undefined { kind: DefinitionKind::Stack, id }),
        };
        self.sampled.insert(id, index);
        Ok(index)
    }

    /// The current meaning of a path.
    fn resolve(&mut self, path: Option<StepIndex>) -> Result<Option<CallIndex>, Undefined> {
        let Self { paths, frames, .. } = self;
        paths.resolve(path, |id| frames.get(id).copied().ok_or(Undefined { kind: DefinitionKind::Frame, id }))
    }

    fn push_sampled(&mut self, leaf: Option<CallIndex>) -> StackIndex {
        let index = StackIndex::of_row(row(self.sampled_rows.len()));
        self.sampled_rows.push(leaf);
        index
    }

    /// Defines `<lost KIND ID>` in place of a lost definition, unless its id is beyond all that one damage loses.
    pub(super) fn stand_in(&mut self, undefined: Undefined) -> Option<String> {
        let Undefined { kind, id } = undefined;
        let bound = self.next_ids.of(kind).saturating_add(MAX_LOST);
        if !(0..bound).contains(&id) {
            return None;
        }
        let name = format!("<lost {undefined}>");
        let method = self.push_string(name.as_bytes());
        match kind {
            DefinitionKind::String => drop(self.strings.insert(id, method)),
            DefinitionKind::Frame => {
                let frame = self.push_stand_in_frame(method);
                self.frames.insert(id, frame);
            }
            DefinitionKind::Stack => {
                let frame = self.push_stand_in_frame(method);
                let leaf = self.paths.push_root(frame);
                let stack = self.push_sampled(Some(leaf));
                self.stand_ins.insert(id, stack);
            }
        }
        self.next_ids.pass(kind, id);
        Some(name)
    }

    fn push_stand_in_frame(&mut self, method: StringIndex) -> FrameIndex {
        let empty = self.push_string(b"");
        let (namespace, class, file) = (empty, empty, empty);
        self.push_frame(DefinedFrame::Php { namespace, class, method, file, line: -1, opcode: None })
    }
}

/// The number of the next row. The limit on definitions ends a segment long before rows run out.
fn row(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn range(ends: &[usize], index: usize) -> Range<usize> {
    let start = if index == 0 { 0 } else { ends[index - 1] };
    start..ends[index]
}

/// A map from ids. They are 0, 1, 2, … in files of real writers and may be anything in others.
#[derive(Debug)]
struct IdMap<T> {
    dense: Vec<Option<T>>,
    sparse: HashMap<i64, T>,
}

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::default() }
    }
}

impl<T> IdMap<T> {
    /// The distance from an id to the dense part up to which it still extends that part.
    const MAX_GAP: usize = 1024;

    #[inline]
    fn get(&self, id: i64) -> Option<&T> {
        let dense = usize::try_from(id).ok().and_then(|index| self.dense.get(index));
        match dense {
            Some(Some(value)) => Some(value),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&id),
        }
    }

    /// Stores `value` and returns the replaced one.
    fn insert(&mut self, id: i64, value: T) -> Option<T> {
        match self.dense_place(id) {
            Some(place) => place.replace(value).or_else(|| self.sparse.remove(&id)),
            None => self.sparse.insert(id, value),
        }
    }

    /// Removes the value of `id` and keeps its place for the next one: vacated ids become dense whatever order new
    /// values come in.
    fn vacate(&mut self, id: i64) {
        if let Some(place) = self.dense_place(id) {
            *place = None;
        }
        if !self.sparse.is_empty() {
            self.sparse.remove(&id);
        }
    }

    /// The place of `id` in the dense part, if that reaches it or nearly does.
    fn dense_place(&mut self, id: i64) -> Option<&mut Option<T>> {
        let index = usize::try_from(id).ok().filter(|&index| index < self.dense.len() + Self::MAX_GAP)?;
        if self.dense.len() <= index {
            self.dense.resize_with(index + 1, || None);
        }
        Some(&mut self.dense[index])
    }

    fn held_bytes(&self) -> usize {
        self.dense.held_bytes() + self.sparse.allocation_size()
    }

    fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }
}
