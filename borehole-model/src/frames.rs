//! Frames: what each kind of source knows about one level of a stack, without a string per sample.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{FrameId, Id as _, StringId};

/// One level of a stack.
///
/// Two frames with equal fields are the same frame and get the same [`FrameId`].
///
/// Units: lines are 1-based, columns 0-based in UTF-8 bytes, as the sources count them.
///
/// Absent: `None` is unknown; an empty string is a string that the source stored empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The whole name as a person reads it: `App\Db::query`, `zend_execute`, `Widget.render`.
    pub function: StringId,
    /// The same name in parts, where the source keeps them apart. Present on PHP frames of `rbt` files.
    pub parts: Option<NameParts>,
    /// The source file.
    pub file: Option<StringId>,
    /// The line that was executing; `None` where the source says "unknown" (`rbt`: -1).
    pub line: Option<i64>,
    /// The last line of the executing expression.
    pub end_line: Option<i64>,
    /// The first column of the executing expression.
    pub column: Option<u32>,
    /// The column after the executing expression.
    pub end_column: Option<u32>,
    /// The name of the virtual machine's instruction, such as `ZEND_DO_FCALL`.
    pub opcode: Option<StringId>,
    /// Present on frames of machine code.
    pub native: Option<NativeFrame>,
}

/// What a string of a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameText {
    /// The name of the function, or a part of it.
    Name,
    /// The source file.
    File,
    /// The executable or shared library.
    Module,
    /// The name of the virtual machine's instruction.
    Opcode,
}

/// A PHP function's name in its parts; the empty string where there is no such part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameParts {
    /// The namespace, without a leading or trailing backslash.
    pub namespace: StringId,
    /// The class, without its namespace.
    pub class: StringId,
    /// The method, or the function where there is no class.
    pub method: StringId,
}

/// Where in machine code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NativeFrame {
    /// The executable or shared library.
    pub module: StringId,
    /// Bytes from the start of the symbol.
    pub offset: Option<i64>,
}

impl Frame {
    /// A frame of which only the name is known.
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

    /// The same frame with other strings: those of other tables, say.
    ///
    /// # Errors
    /// That of `text`.
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

#[derive(Clone, Debug, Default)]
pub(crate) struct FrameTable {
    rows: Vec<Frame>,
    index: HashTable<FrameId>,
    hasher: DefaultHashBuilder,
}

impl FrameTable {
    pub(crate) fn intern(&mut self, frame: &Frame) -> Option<FrameId> {
        let hash = self.hasher.hash_one(frame);
        if let Some(&id) = self.index.find(hash, |&id| self.rows[id.row()] == *frame) {
            return Some(id);
        }
        let id = FrameId::from_row(self.rows.len())?;
        self.rows.push(*frame);
        let Self { rows, index, hasher } = self;
        index.insert_unique(hash, id, |&id| hasher.hash_one(rows[id.row()]));
        Some(id)
    }

    #[inline]
    pub(crate) fn get(&self, id: FrameId) -> &Frame {
        &self.rows[id.row()]
    }

    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }
}
