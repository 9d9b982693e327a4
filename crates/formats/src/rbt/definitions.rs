//! The definitions of one segment so far.
//!
//! Ids of the file may be anything (sparse, huge, negative, redefined), but a reader of samples needs small, stable
//! numbers. So every definition gets a *reference*, a dense row number that is never reused within the segment, and ids
//! map to the current reference.
//!
//! A stack is resolved when it is first sampled, as in the reference reader: its frames may be defined after it, and
//! redefining a frame changes the stacks that name it, but not samples already delivered.

use std::num::NonZeroU32;
use std::ops::Range;

use hashbrown::HashMap;

use super::event::{FrameFields, Varints};
use super::paths::{Call, CallRef, Paths, StepRef};

/// A string of the current segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringRef(u32);

/// A frame of the current segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameRef(u32);

/// A stack of the current segment. Equal references are equal stacks; the reverse need not hold.
// Stores index + 1, so that an option needs no tag: ids are mapped to stacks for each sample, and twice as much of the map
// fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackRef(NonZeroU32);

impl StringRef {
    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl FrameRef {
    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl StackRef {
    const fn of_row(row: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(row))
    }

    /// Dense from 0 within the segment.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0.get() - 1) as usize
    }
}

impl Default for StackRef {
    fn default() -> Self {
        Self::of_row(0)
    }
}

/// A frame with resolved strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A PHP frame.
    Php {
        /// The namespace; empty if there is none.
        namespace: StringRef,
        /// The class; empty if there is none.
        class: StringRef,
        /// The method or function.
        method: StringRef,
        /// The file.
        file: StringRef,
        /// The line; -1 if unknown.
        line: i64,
        /// The opcode.
        opcode: Option<StringRef>,
    },
    /// A native frame.
    Native {
        /// The symbol.
        symbol: StringRef,
        /// The executable or library.
        module: StringRef,
        /// Bytes from the start of the symbol.
        offset: i64,
    },
}

/// A reference to an undefined id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undefined {
    pub(super) what: &'static str,
    pub(super) id: i64,
}

/// The tables of one segment.
#[derive(Debug, Default)]
pub struct Definitions {
    bytes: Vec<u8>,
    string_ends: Vec<usize>,
    strings: IdMap<StringRef>,
    frame_rows: Vec<Frame>,
    frames: IdMap<FrameRef>,
    paths: Paths,
    /// `None` for stacks without frames.
    stacks: IdMap<Option<StepRef>>,
    /// The current meaning of the ids of sampled stacks. Cleared when a frame is redefined.
    sampled: IdMap<StackRef>,
    /// Lost stacks, with their replacements.
    stand_ins: IdMap<StackRef>,
    sampled_rows: Vec<Option<CallRef>>,
    next_ids: NextIds,
}

/// The next ids that a writer would assign: one more than the largest so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NextIds {
    pub(super) string: i64,
    pub(super) frame: i64,
    pub(super) stack: i64,
}

impl Definitions {
    /// The bytes of a string.
    #[must_use]
    pub fn string(&self, string: StringRef) -> &[u8] {
        &self.bytes[range(&self.string_ends, string.index())]
    }

    /// A frame.
    #[must_use]
    pub fn frame(&self, frame: FrameRef) -> &Frame {
        &self.frame_rows[frame.index()]
    }

    /// The frames of a stack, from the leaf to the root.
    pub fn frames_leaf_first(&self, stack: StackRef) -> impl Iterator<Item = FrameRef> {
        let calls = self.calls();
        let path = std::iter::successors(self.leaf(stack), |call| calls[call.index()].caller);
        path.map(|call| calls[call.index()].frame)
    }

    /// The leaf of a stack with its callers; `None` for a stack without frames.
    #[inline]
    pub(super) fn leaf(&self, stack: StackRef) -> Option<CallRef> {
        self.sampled_rows[stack.index()]
    }

    /// All paths that stacks have had, by their references.
    #[inline]
    pub(super) fn calls(&self) -> &[Call] {
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

    /// The approximate memory of the definitions.
    const fn size_bytes(&self) -> usize {
        let strings = self.bytes.len() + self.string_ends.len() * 24;
        let frames = self.frame_rows.len() * (size_of::<Frame>() + 16);
        strings + frames + self.sampled_rows.len() * 64 + self.paths.size_bytes()
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

    /// Whether the definitions use more memory than allowed.
    pub(super) const fn exceed(&self, limit_bytes: usize) -> bool {
        self.size_bytes() > limit_bytes
    }

    fn push_string(&mut self, string: &[u8]) -> StringRef {
        let reference = StringRef(row(self.string_ends.len()));
        self.bytes.extend_from_slice(string);
        self.string_ends.push(self.bytes.len());
        reference
    }

    pub(super) fn define_string(&mut self, id: i64, string: &[u8]) {
        let reference = self.push_string(string);
        self.strings.insert(id, reference);
        self.next_ids.string = self.next_ids.string.max(id.saturating_add(1));
    }

    pub(super) fn define_frame(&mut self, id: i64, fields: FrameFields) -> Result<(), Undefined> {
        let frame = match fields {
            FrameFields::Php { namespace, class, method, file, line, opcode } => Frame::Php {
                namespace: self.string_ref(namespace)?,
                class: self.string_ref(class)?,
                method: self.string_ref(method)?,
                file: self.string_ref(file)?,
                line,
                opcode: opcode.map(|opcode| self.string_ref(opcode)).transpose()?,
            },
            FrameFields::Native { symbol, module, offset } => {
                Frame::Native { symbol: self.string_ref(symbol)?, module: self.string_ref(module)?, offset }
            }
        };
        let reference = FrameRef(row(self.frame_rows.len()));
        self.frame_rows.push(frame);
        if self.frames.insert(id, reference).is_some() {
            // Not cleared: clearing takes time for everything that was ever in it, for each of any number of frames.
            self.sampled = IdMap::default();
            self.paths.forget();
        }
        self.next_ids.frame = self.next_ids.frame.max(id.saturating_add(1));
        Ok(())
    }

    pub(super) fn define_stack(&mut self, id: i64, frames_leaf_first: Varints<'_>) {
        let path = self.paths.define(frames_leaf_first);
        // Now the whole stack is defined. If a frame is missing, sampling the stack reports it.
        let _ = self.resolve(path);
        self.stacks.insert(id, path);
        self.sampled.vacate(id);
        self.next_ids.stack = self.next_ids.stack.max(id.saturating_add(1));
    }

    pub(super) fn string_ref(&self, id: i64) -> Result<StringRef, Undefined> {
        self.strings.get(id).copied().ok_or(Undefined { what: "string", id })
    }

    /// The stack that `id` currently means, if it has been sampled with this meaning.
    #[inline]
    pub(super) fn sampled(&self, id: i64) -> Option<StackRef> {
        self.sampled.get(id).copied()
    }

    /// The stack that `id` currently means.
    pub(super) fn stack_ref(&mut self, id: i64) -> Result<StackRef, Undefined> {
        if let Some(known) = self.sampled(id) {
            return Ok(known);
        }
        let reference = match (self.stacks.get(id), self.stand_ins.get(id)) {
            (Some(&path), _) => {
                let leaf = self.resolve(path)?;
                self.push_sampled(leaf)
            }
            (None, Some(&stand_in)) => stand_in,
            (None, None) => return Err(Undefined { what: "stack", id }),
        };
        self.sampled.insert(id, reference);
        Ok(reference)
    }

    /// The current meaning of a path.
    fn resolve(&mut self, path: Option<StepRef>) -> Result<Option<CallRef>, Undefined> {
        let Self { paths, frames, .. } = self;
        paths.resolve(path, |id| frames.get(id).copied().ok_or(Undefined { what: "frame", id }))
    }

    fn push_sampled(&mut self, leaf: Option<CallRef>) -> StackRef {
        let reference = StackRef::of_row(row(self.sampled_rows.len()));
        self.sampled_rows.push(leaf);
        reference
    }

    /// Defines `<lost WHAT ID>` in place of a lost definition.
    pub(super) fn define_stand_in(&mut self, what: &str, id: i64) {
        let name = self.push_string(format!("<lost {what} {id}>").as_bytes());
        if what == "string" {
            self.strings.insert(id, name);
            self.next_ids.string = self.next_ids.string.max(id.saturating_add(1));
            return;
        }
        let empty = self.push_string(b"");
        let (namespace, class, file) = (empty, empty, empty);
        let frame = FrameRef(row(self.frame_rows.len()));
        self.frame_rows.push(Frame::Php { namespace, class, method: name, file, line: -1, opcode: None });
        if what == "frame" {
            self.frames.insert(id, frame);
            self.next_ids.frame = self.next_ids.frame.max(id.saturating_add(1));
            return;
        }
        let leaf = self.paths.push_root(frame);
        let reference = self.push_sampled(Some(leaf));
        self.stand_ins.insert(id, reference);
        self.next_ids.stack = self.next_ids.stack.max(id.saturating_add(1));
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

    fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }
}
