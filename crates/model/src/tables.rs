//! The tables of a profile, and their only error.

use std::{fmt, io};

use borehole_memory::OverBudget;
use borehole_text::ReadError;

use crate::distinct::Distinct;
use crate::event::{Shape, ShapeTable};
use crate::frames::{Frame, FrameTable};
use crate::ids::{FrameId, Id as _, LabelsId, ShapeId, StackId, StringId};
use crate::labels::{Label, LabelTable};
use crate::stacks::{FramesLeafFirst, StackTable};

/// Strings, frames, stacks, label sets and shapes of events, each distinct one stored once.
///
/// Ids are only valid in the tables that assigned them.
///
/// # Examples
///
/// ```
/// use borehole_model::{Frame, Tables};
///
/// let mut tables = Tables::default();
/// let [main, query] = [b"<main>".as_slice(), b"App\\Db::query"].map(|name| {
///     let function = tables.intern_string(name).unwrap();
///     tables.intern_frame(&Frame::named(function)).unwrap()
/// });
/// let root = tables.intern_stack(None, main)?;
/// let leaf = tables.intern_stack(Some(root), query)?;
/// assert_eq!(tables.intern_stack_leaf_first(&[query, main])?, Some(leaf));
/// assert_eq!(tables.frames_leaf_first(Some(leaf)).collect::<Vec<_>>(), [query, main]);
/// # Ok::<(), borehole_model::TableFull>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tables {
    strings: StringTable,
    frames: FrameTable,
    stacks: StackTable,
    labels: LabelTable,
    shapes: ShapeTable,
    /// The bytes that these tables may hold; `None` for any number.
    budget_bytes: Option<usize>,
}

impl Tables {
    /// Sets the bytes that these tables may hold, with about what is made of their stacks. Whatever is stored after that and takes
    /// more is an error, whose cause is [`OverBudget`].
    pub const fn set_budget(&mut self, bytes: usize) {
        self.budget_bytes = Some(bytes);
    }

    /// The id of `string`, stored if it is new.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_string(&mut self, string: &[u8]) -> Result<StringId, TableFull> {
        let rows = self.strings.len();
        let id = self.strings.intern(string).ok_or(TableFull::of("strings"))?;
        self.budget_after(rows, self.strings.len()).map(|()| id)
    }

    /// The id of `frame`, stored if it is new.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_frame(&mut self, frame: &Frame) -> Result<FrameId, TableFull> {
        let rows = self.frames.len();
        let id = self.frames.intern(frame).ok_or(TableFull::of("frames"))?;
        self.budget_after(rows, self.frames.len()).map(|()| id)
    }

    /// The id of the stack in which `parent` called `frame`, stored if it is new. Without a parent, `frame` is the
    /// root.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_stack(&mut self, parent: Option<StackId>, frame: FrameId) -> Result<StackId, TableFull> {
        let rows = self.stacks.len();
        let id = self.stacks.intern(parent, frame).ok_or(TableFull::of("stacks"))?;
        self.budget_after_stacks(rows).map(|()| id)
    }

    /// The id of a whole stack, given leaf first, stored if it is new; `None` for no frames.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_stack_leaf_first(&mut self, frames: &[FrameId]) -> Result<Option<StackId>, TableFull> {
        let rows = self.stacks.len();
        let id = self.stacks.intern_leaf_first(frames).ok_or(TableFull::of("stacks"))?;
        self.budget_after_stacks(rows).map(|()| id)
    }

    /// Asks for the memory of the program, with that of what will be made of the stacks, if there were `before` stacks.
    #[inline]
    fn budget_after_stacks(&self, before: usize) -> Result<(), TableFull> {
        let after = self.stacks.len();
        if before == after {
            return Ok(());
        }
        let made_bytes = after.saturating_mul(Self::MADE_OF_STACK_BYTES);
        borehole_memory::check_with(made_bytes).and_then(|()| self.check_budget()).map_err(TableFull::from)
    }

    /// Asks for the memory of the program and of these tables, if one of them has grown from `before` rows to `after`.
    #[inline]
    fn budget_after(&self, before: usize, after: usize) -> Result<(), TableFull> {
        if before == after {
            return Ok(());
        }
        borehole_memory::check().and_then(|()| self.check_budget()).map_err(TableFull::from)
    }

    #[inline]
    fn check_budget(&self) -> Result<(), OverBudget> {
        let Some(budget) = self.budget_bytes else { return Ok(()) };
        let held_bytes = self.held_bytes().saturating_add(self.made_bytes());
        if held_bytes <= budget { Ok(()) } else { Err(OverBudget { budget }) }
    }

    /// The bytes that sinks and views hold for each stack, about: their columns and rows beside the tables. Of a program's
    /// budget, a stack takes as much ahead, so that a small file of huge stacks ends early.
    pub const MADE_OF_STACK_BYTES: usize = 64;

    /// The bytes that the sinks that hold most make of each frame, with its name and their indexes: exporters of `pstats`,
    /// `callgrind`, `speedscope` and `rbt`. What grows with the texts of whole stacks is not among them: such sinks ask
    /// [`Tables::check_room`].
    const MADE_OF_FRAME_BYTES: usize = 256;

    /// The memory of the stacks since there were `before`, and of what will be made of them, in bytes, about: for limits of
    /// readers that make many frames of few bytes.
    #[must_use]
    pub const fn bytes_of_stacks_since(&self, before: usize) -> usize {
        let new = self.stacks.len().saturating_sub(before);
        new.saturating_mul(StackTable::ROW_BYTES + Self::MADE_OF_STACK_BYTES)
    }

    /// The stack of functions of which only the names are known, from the root to the leaf; `None` for none.
    ///
    /// # Errors
    /// If a table is full, or the program holds more memory than allowed.
    pub fn intern_functions_root_first<'n>(
        &mut self,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Option<StackId>, TableFull> {
        let mut stack = None;
        for name in names {
            let function = self.intern_string(name.as_bytes())?;
            let frame = self.intern_frame(&Frame::named(function))?;
            stack = Some(self.intern_stack(stack, frame)?);
        }
        Ok(stack)
    }

    /// The memory that the tables have allocated, in bytes, with the indexes by which they find what they hold.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let names = self.strings.held_bytes() + self.frames.held_bytes() + self.labels.held_bytes();
        names + self.stacks.held_bytes() + self.shapes.held_bytes()
    }

    /// Whether the budgets of the program and of these tables have room for `more` bytes. For sinks, before they make something
    /// that grows with more than the number of stacks, such as a text of each.
    ///
    /// # Errors
    /// If there is no room.
    pub fn check_room(&self, more: usize) -> Result<(), OverBudget> {
        borehole_memory::check_with(more)?;
        match self.budget_bytes {
            Some(budget) if self.held_bytes().saturating_add(more) > budget => Err(OverBudget { budget }),
            _ => Ok(()),
        }
    }

    /// The bytes that may still be stored; `None` for any number. For tables that a sink makes of these.
    #[must_use]
    pub fn room_bytes(&self) -> Option<usize> {
        self.budget_bytes.map(|budget| budget.saturating_sub(self.held_bytes()))
    }

    /// The bytes that sinks make of the stacks and frames, about.
    fn made_bytes(&self) -> usize {
        let of_stacks = self.stacks.len().saturating_mul(Self::MADE_OF_STACK_BYTES);
        of_stacks.saturating_add(self.frames.len().saturating_mul(Self::MADE_OF_FRAME_BYTES))
    }

    /// Removes all stacks, whose ids become invalid. Frames stay.
    ///
    /// Call it only after everything that holds such ids has agreed: see
    /// [`ProfileSink::settle`](crate::ProfileSink::settle).
    pub fn forget_stacks(&mut self) {
        self.stacks.clear();
    }

    /// The id of an ordered label set, stored if it is new. The common labels come before its own.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_labels(&mut self, labels: &[Label]) -> Result<LabelsId, TableFull> {
        let rows = self.labels.len();
        let id = self.labels.intern(labels).ok_or(TableFull::of("label sets"))?;
        self.budget_after(rows, self.labels.len()).map(|()| id)
    }

    /// Adds `labels` to every set interned from now on, except those whose key the set already has. Returns the
    /// previous common labels. Samples without a set stay without one.
    pub fn set_common_labels(&mut self, labels: Vec<Label>) -> Vec<Label> {
        self.labels.set_common(labels)
    }

    /// The id of an event type, stored if it is new.
    ///
    /// # Errors
    /// If the table is full, or the program holds more memory than allowed.
    pub fn intern_shape(&mut self, shape: &Shape) -> Result<ShapeId, TableFull> {
        let rows = self.shapes.len();
        let id = self.shapes.intern(shape).ok_or(TableFull::of("shapes of events"))?;
        self.budget_after(rows, self.shapes.len()).map(|()| id)
    }

    /// The id of `string`; `None` if it is not stored.
    #[must_use]
    pub fn find_string(&self, string: &[u8]) -> Option<StringId> {
        self.strings.find(string)
    }

    /// The bytes of a string, usually but not necessarily UTF-8.
    #[inline]
    #[must_use]
    pub fn string(&self, id: StringId) -> &[u8] {
        self.strings.get(id)
    }

    /// A frame.
    #[inline]
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Frame {
        self.frames.get(id)
    }

    /// The function name of a frame. Faster than [`Tables::frame`] if nothing else is needed.
    #[inline]
    #[must_use]
    pub fn function(&self, id: FrameId) -> StringId {
        self.frames.function(id)
    }

    /// The leaf frame of a stack.
    #[inline]
    #[must_use]
    pub fn leaf(&self, stack: StackId) -> FrameId {
        self.stacks.frame(stack)
    }

    /// The stack of the caller; `None` at the root.
    #[inline]
    #[must_use]
    pub fn parent(&self, stack: StackId) -> Option<StackId> {
        self.stacks.parent(stack)
    }

    /// One of the stacks called from `parent`, or a root stack for `None`; `None` if there are none.
    /// [`Tables::next_sibling`] leads to the others.
    #[inline]
    #[must_use]
    pub fn first_child(&self, parent: Option<StackId>) -> Option<StackId> {
        self.stacks.first_child(parent)
    }

    /// The next stack with the same parent; `None` after the last one. The order is unspecified.
    #[inline]
    #[must_use]
    pub fn next_sibling(&self, stack: StackId) -> Option<StackId> {
        self.stacks.next_sibling(stack)
    }

    /// The number of frames of a stack.
    #[inline]
    #[must_use]
    pub fn depth(&self, stack: StackId) -> u32 {
        self.stacks.depth(stack)
    }

    /// The frames of a stack from the leaf to the root; none for the empty stack.
    #[must_use]
    pub const fn frames_leaf_first(&self, stack: Option<StackId>) -> FramesLeafFirst<'_> {
        self.stacks.frames_leaf_first(stack)
    }

    /// The labels of a set, in order.
    #[inline]
    #[must_use]
    pub fn labels(&self, id: LabelsId) -> &[Label] {
        self.labels.get(id)
    }

    /// The name and fields of an event type.
    #[inline]
    #[must_use]
    pub fn shape(&self, id: ShapeId) -> &Shape {
        self.shapes.get(id)
    }

    /// The name of an event type.
    #[must_use]
    pub fn event_name(&self, id: ShapeId) -> &[u8] {
        self.string(self.shape(id).name)
    }

    /// All event types, in order of first appearance.
    pub fn shape_ids(&self) -> impl DoubleEndedIterator<Item = ShapeId> + use<> {
        (0..self.shapes.len()).filter_map(ShapeId::from_row)
    }

    /// The number of distinct event types.
    #[must_use]
    pub const fn shape_count(&self) -> usize {
        self.shapes.len()
    }

    /// The number of distinct strings; their ids are `1..=string_count()`.
    #[must_use]
    pub const fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// The total length of all distinct strings, in bytes.
    #[must_use]
    pub const fn string_bytes(&self) -> usize {
        self.strings.byte_len()
    }

    /// The number of distinct frames.
    #[must_use]
    pub const fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The number of stacks, including every caller of a sampled stack.
    #[must_use]
    pub const fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// All label sets, in order of first appearance.
    pub fn labels_ids(&self) -> impl DoubleEndedIterator<Item = LabelsId> + use<> {
        (0..self.labels.len()).filter_map(LabelsId::from_row)
    }

    /// All strings, in order of first appearance.
    pub fn string_ids(&self) -> impl DoubleEndedIterator<Item = StringId> + use<> {
        (0..self.strings.len()).filter_map(StringId::from_row)
    }

    /// All frames, in order of first appearance.
    pub fn frame_ids(&self) -> impl DoubleEndedIterator<Item = FrameId> + use<> {
        (0..self.frames.len()).filter_map(FrameId::from_row)
    }

    /// All stacks, callers before their callees.
    pub fn stack_ids(&self) -> impl DoubleEndedIterator<Item = StackId> + use<> {
        (0..self.stacks.len()).filter_map(StackId::from_row)
    }

    /// The number of distinct label sets.
    #[must_use]
    pub const fn labels_count(&self) -> usize {
        self.labels.len()
    }
}

/// Distinct byte strings. Strings are bytes, not text: PHP names need not be UTF-8.
#[derive(Clone, Debug, Default)]
struct StringTable(Distinct<u8>);

impl StringTable {
    fn intern(&mut self, string: &[u8]) -> Option<StringId> {
        StringId::from_row(self.0.intern(string)? as usize)
    }

    fn find(&self, string: &[u8]) -> Option<StringId> {
        StringId::from_row(self.0.find(string)? as usize)
    }

    #[inline]
    fn get(&self, id: StringId) -> &[u8] {
        self.0.get(id.row())
    }

    const fn len(&self) -> usize {
        self.0.count()
    }

    const fn byte_len(&self) -> usize {
        self.0.item_count()
    }

    fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }
}

/// A table is full: it holds 2³² − 1 distinct rows, or the program more memory than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull(FullReason);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FullReason {
    /// No row is left in this table.
    Rows(&'static str),
    Memory(OverBudget),
}

impl TableFull {
    const fn of(table: &'static str) -> Self {
        Self(FullReason::Rows(table))
    }
}

impl From<OverBudget> for TableFull {
    fn from(over: OverBudget) -> Self {
        Self(FullReason::Memory(over))
    }
}

impl fmt::Display for TableFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FullReason::Rows(table) => write!(f, "too many distinct {table}: expected at most {}", u32::MAX),
            FullReason::Memory(over) => over.fmt(f),
        }
    }
}

impl std::error::Error for TableFull {}

impl From<TableFull> for io::Error {
    fn from(full: TableFull) -> Self {
        match full.0 {
            FullReason::Rows(_) => Self::other(full),
            FullReason::Memory(over) => over.into(),
        }
    }
}

impl From<TableFull> for ReadError {
    fn from(full: TableFull) -> Self {
        Self::Sink(full.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_is_named_with_its_limit() {
        let full = TableFull::of("frames");
        assert_eq!(full.to_string(), "too many distinct frames: expected at most 4294967295");
        let error = io::Error::from(full);
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::Other, full.to_string()));
        assert!(
            matches!(ReadError::from(full), ReadError::Sink(error) if error.to_string() == full.to_string())
        );
    }
}
