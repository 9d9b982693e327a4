//! Frames: the levels of stacks, without a string per sample.

use std::hash::BuildHasher as _;

use borehole_memory::HeldBytes as _;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{FrameId, Id as _, StringId};

/// One level of a stack.
///
/// Frames with equal fields are the same frame and have the same [`FrameId`].
///
/// Units: lines are 1-based, columns 0-based in UTF-8 bytes, as the sources count them.
///
/// Absent: `None` is unknown; an empty string was stored as empty by the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The whole name as people read it: `App\Db::query`, `zend_execute`, `Widget.render`.
    pub function: StringId,
    /// The name in parts, if the source stores them separately. Present on PHP frames of `rbt` files.
    pub parts: Option<NameParts>,
    /// The source file.
    pub file: Option<StringId>,
    /// The line that was executing; `None` if the source says "unknown" (`rbt`: -1).
    pub line: Option<i64>,
    /// The last line of the executing expression.
    pub end_line: Option<i64>,
    /// The first column of the executing expression.
    pub column: Option<u32>,
    /// The column after the executing expression.
    pub end_column: Option<u32>,
    /// The opcode of the virtual machine, such as `ZEND_DO_FCALL`.
    pub opcode: Option<StringId>,
    /// The position in machine code; present on native frames only.
    pub native: Option<NativeFrame>,
}

/// The role of a string in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameText {
    /// The function name, or a part of it.
    Name,
    /// The source file.
    File,
    /// The executable or shared library.
    Module,
    /// The opcode of the virtual machine.
    Opcode,
}

/// The parts of a PHP function's name; a missing part is the empty string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameParts {
    /// The namespace, without a leading or trailing backslash.
    pub namespace: StringId,
    /// The class, without its namespace.
    pub class: StringId,
    /// The method, or the function if there is no class.
    pub method: StringId,
}

/// The position of a frame in machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// The executable or shared library.
    pub module: StringId,
    /// Bytes from the start of the symbol.
    pub offset: Option<i64>,
    /// The offset of its code in the module, of functions read with [`CodePlaces::All`](crate::CodePlaces).
    pub file_offset: Option<u64>,
}

impl Frame {
    /// A frame of which only the function name is known.
    #[must_use]
    pub const fn named(function: StringId) -> Self {
        Self {
            function,
            parts: None,
            file: None,
            line: None,
            end_line: None,
            column: None,
            end_column: None,
            opcode: None,
            native: None,
        }
    }

    /// Replaces the strings of a frame, for example by those of other tables.
    ///
    /// # Errors
    /// Those of `text`.
    pub fn try_map<E>(
        self,
        mut text: impl FnMut(FrameText, StringId) -> Result<StringId, E>,
    ) -> Result<Self, E> {
        let mut of = |what, id: Option<StringId>| id.map(|id| text(what, id)).transpose();
        let file = of(FrameText::File, self.file)?;
        let opcode = of(FrameText::Opcode, self.opcode)?;
        let native = match self.native {
            Some(native) => Some(NativeFrame { module: text(FrameText::Module, native.module)?, ..native }),
            None => None,
        };
        let mut name = |id| text(FrameText::Name, id);
        let parts = match self.parts {
            Some(NameParts { namespace, class, method }) => {
                Some(NameParts { namespace: name(namespace)?, class: name(class)?, method: name(method)? })
            }
            None => None,
        };
        Ok(Self { function: name(self.function)?, parts, file, opcode, native, ..self })
    }
}

/// The distinct frames. Rare fields are stored in separate columns, so that other frames take little more than a third
/// of the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameTable {
    rows: Vec<PackedFrame>,
    parts: Vec<NameParts>,
    natives: Vec<NativeFrame>,
    /// Frames that do not fit into a row.
    whole: Vec<Frame>,
    index: HashTable<FrameId>,
    hasher: DefaultHashBuilder,
}

/// A frame as it is stored.
#[derive(Clone, Copy, Debug)]
struct PackedFrame {
    function: StringId,
    file: Option<StringId>,
    opcode: Option<StringId>,
    /// Lines, or [`NO_LINE`].
    line: i32,
    end_line: i32,
    /// Columns, or [`NO_COLUMN`].
    column: u32,
    end_column: u32,
    apart: Apart,
}

const NO_LINE: i32 = i32::MIN;
const NO_COLUMN: u32 = u32::MAX;

/// The part of a frame that is stored elsewhere, by its index there.
#[derive(Clone, Copy, Debug)]
enum Apart {
    Nothing,
    Parts(u32),
    Native(u32),
    /// The whole frame.
    Frame(u32),
}

impl FrameTable {
    pub(crate) fn intern(&mut self, frame: &Frame) -> Option<FrameId> {
        let hash = self.hasher.hash_one(frame);
        if let Some(&id) = self.index.find(hash, |&id| self.get(id) == *frame) {
            return Some(id);
        }
        let id = FrameId::from_row(self.rows.len())?;
        let row = self.row(frame)?;
        self.rows.push(row);
        let mut index = std::mem::take(&mut self.index);
        index.insert_unique(hash, id, |&id| self.hasher.hash_one(self.get(id)));
        self.index = index;
        Some(id)
    }

    /// Makes the row of a new frame. There are never more rows than ids.
    fn row(&mut self, frame: &Frame) -> Option<PackedFrame> {
        let Frame { function, parts, file, line, end_line, column, end_column, opcode, native } = *frame;
        let numbers = small_line(line).zip(small_line(end_line));
        let numbers = numbers.zip(small_column(column).zip(small_column(end_column)));
        let apart = match (numbers, parts, native) {
            (Some(_), None, None) => Apart::Nothing,
            (Some(_), Some(parts), None) => Apart::Parts(put(&mut self.parts, parts)?),
            (Some(_), None, Some(native)) => Apart::Native(put(&mut self.natives, native)?),
            _ => Apart::Frame(put(&mut self.whole, *frame)?),
        };
        let ((line, end_line), (column, end_column)) =
            numbers.unwrap_or(((NO_LINE, NO_LINE), (NO_COLUMN, NO_COLUMN)));
        Some(PackedFrame { function, file, opcode, line, end_line, column, end_column, apart })
    }

    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> Frame {
        let row = &self.rows[id.row()];
        let (parts, native) = match row.apart {
            Apart::Nothing => (None, None),
            Apart::Parts(at) => (Some(self.parts[at as usize]), None),
            Apart::Native(at) => (None, Some(self.natives[at as usize])),
            Apart::Frame(at) => return self.whole[at as usize],
        };
        let line = |line: i32| (line != NO_LINE).then_some(i64::from(line));
        let column = |column: u32| (column != NO_COLUMN).then_some(column);
        Frame {
            function: row.function,
            parts,
            file: row.file,
            line: line(row.line),
            end_line: line(row.end_line),
            column: column(row.column),
            end_column: column(row.end_column),
            opcode: row.opcode,
            native,
        }
    }

    #[inline]
    pub(crate) fn function(&self, id: FrameId) -> StringId {
        self.rows[id.row()].function
    }

    pub(crate) fn held_bytes(&self) -> usize {
        let frames = self.rows.held_bytes() + self.parts.held_bytes() + self.natives.held_bytes();
        frames + self.whole.held_bytes() + self.index.allocation_size()
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }
}

/// Appends `value` and returns its index.
fn put<T>(column: &mut Vec<T>, value: T) -> Option<u32> {
    let at = u32::try_from(column.len()).ok()?;
    column.push(value);
    Some(at)
}

/// A line as stored in a row; `None` if it does not fit.
fn small_line(line: Option<i64>) -> Option<i32> {
    match line {
        None => Some(NO_LINE),
        Some(line) => i32::try_from(line).ok().filter(|&line| line != NO_LINE),
    }
}

fn small_column(column: Option<u32>) -> Option<u32> {
    match column {
        None => Some(NO_COLUMN),
        Some(column) => Some(column).filter(|&column| column != NO_COLUMN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_any_fields_are_restored() {
        let id = |row| StringId::from_row(row).unwrap();
        let named = Frame::named(id(1));
        let native = |offset| Some(NativeFrame { module: id(3), offset, file_offset: None });
        let parts = Some(NameParts { namespace: id(4), class: id(5), method: id(6) });
        let frames = [
            named,
            Frame { line: Some(0), ..named },
            Frame { line: Some(-1), end_line: Some(i64::from(i32::MAX)), ..named },
            Frame { line: Some(i64::MAX), ..named },
            Frame { end_line: Some(i64::from(i32::MIN)), column: Some(2), ..named },
            Frame { column: Some(0), end_column: Some(u32::MAX - 1), file: Some(id(2)), ..named },
            Frame { end_column: Some(u32::MAX), native: native(None), parts, ..named },
            Frame { parts, ..named },
            Frame { native: native(Some(i64::MIN)), opcode: Some(id(7)), ..named },
            Frame { parts, native: native(None), line: Some(9), ..named },
            Frame {
                native: native(None).map(|native| NativeFrame { file_offset: Some(8), ..native }),
                ..named
            },
        ];
        let mut table = FrameTable::default();
        for _ in 0..2 {
            for (row, frame) in frames.iter().enumerate() {
                assert_eq!(table.intern(frame), FrameId::from_row(row));
            }
        }
        assert_eq!(table.len(), frames.len());
        for (row, frame) in frames.into_iter().enumerate() {
            let id = FrameId::from_row(row).unwrap();
            assert_eq!((table.get(id), table.function(id)), (frame, frame.function));
        }
        // A row, which is all that most frames take, must stay this small.
        assert_eq!(size_of::<PackedFrame>(), 36);
    }
}
