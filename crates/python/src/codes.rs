//! The code objects of a process, with their names and lines.

use borehole_model::{Frame, FrameId, StringId, Tables};
use borehole_process::{ForeignMemory, MemoryPiece, mapped, moved, u32_at, u64_at};
use hashbrown::HashMap;

use crate::attach::Python;
use crate::error::Error;
use crate::layout::{CodeLayout, InstructionsPlace, Layout};
use crate::line_table;
use crate::objects;
use crate::walker::{Instruction, OpcodeNames};

/// The largest table of lines that is read; instructions of larger ones have no line.
const LARGEST_TABLE: usize = 4 << 20;

/// The bytes of all tables of lines that are kept, beyond which all code is forgotten.
const MOST_TABLE_BYTES: usize = 64 << 20;

/// The number of code objects kept, beyond which all are forgotten: programs that compile code all the time have any number.
const MOST_CODES: usize = 1 << 18;

/// The largest code object: a copy of it is on the stack.
const LARGEST_CODE: usize = 1024;

/// The number of a code object among the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodeId(u32);

/// The parts of a code object by which it is told from a later one at its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CodeKey {
    kind: u64,
    file_name: u64,
    name: u64,
    lines: u64,
    first_line: u32,
    /// `ob_size`, or the address of the instructions.
    instructions: u64,
}

#[derive(Debug)]
struct KnownCode {
    address: u64,
    key: CodeKey,
    function: StringId,
    file: StringId,
    lines: Option<Vec<u8>>,
    /// The length of its instructions in bytes.
    instruction_bytes: u64,
    /// The frame of each instruction seen.
    frames: HashMap<Instruction, FrameId>,
    /// The sample at which it was first seen, and that at which it is to be checked again.
    born: u64,
    due: u64,
    is_shim: bool,
}

/// The known code objects.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    by_address: HashMap<u64, CodeId>,
    known: Vec<KnownCode>,
    /// The address of the type of code objects, once one was seen.
    kind: Option<u64>,
    table_bytes: usize,
    /// The number of samples taken.
    now: u64,
    /// Grows whenever a [`CodeId`] becomes invalid.
    pub(crate) generation: u64,
    due: Vec<CodeId>,
    /// The mark of a collection of garbage.
    collection: Option<CodeId>,
}

/// The longest time until a code object is checked again, in samples.
const LONGEST_TRUST: u64 = 64;

impl Codes {
    /// Begins the next sample.
    pub(crate) fn begin(&mut self) {
        self.now += 1;
        if self.known.len() > MOST_CODES || self.table_bytes > MOST_TABLE_BYTES {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.by_address.clear();
        self.known.clear();
        self.collection = None;
        self.table_bytes = 0;
        self.generation += 1;
    }

    /// The code object at `address`, read if it is new; `None` if there is none.
    pub(crate) fn find(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Option<CodeId>, Error> {
        if let Some(&id) = self.by_address.get(&address) {
            return Ok(Some(id));
        }
        let Some(code) = self.read(memory, layout, address, tables)? else { return Ok(None) };
        let Ok(row) = u32::try_from(self.known.len()) else { return Ok(None) };
        self.table_bytes += code.lines.as_ref().map_or(0, Vec::len);
        self.known.push(code);
        self.by_address.insert(address, CodeId(row));
        Ok(Some(CodeId(row)))
    }

    /// The mark of a collection of garbage, if a stack has one.
    pub(crate) fn known_collection(&self) -> Option<CodeId> {
        self.collection
    }

    /// The mark of a collection of garbage, which stands in stacks like code that is called.
    ///
    /// Source: CPython 3.15's profiler calls it `<GC>` in the file `~`.
    pub(crate) fn collection(&mut self, tables: &mut Tables) -> Result<CodeId, Error> {
        if let Some(id) = self.collection {
            return Ok(id);
        }
        let id = CodeId(u32::try_from(self.known.len()).unwrap_or(u32::MAX));
        self.known.push(KnownCode {
            address: 0,
            key: CodeKey::default(),
            function: tables.intern_string(b"<GC>")?,
            file: tables.intern_string(b"~")?,
            lines: None,
            instruction_bytes: 0,
            frames: HashMap::new(),
            born: self.now,
            due: self.now,
            is_shim: false,
        });
        self.collection = Some(id);
        Ok(id)
    }

    /// The address of the first instruction, unless a thread has its own copy.
    pub(crate) fn instructions(&self, id: CodeId, layout: &Layout) -> u64 {
        match layout.code.instructions {
            InstructionsPlace::Within(offset) => moved(self.of(id).address, offset),
            InstructionsPlace::Apart(_) => moved(self.of(id).key.instructions, layout.object.bytes),
        }
    }

    /// Whether it has an instruction at this offset, or is about to execute its first one.
    pub(crate) fn has_instruction(&self, id: CodeId, offset: i64) -> bool {
        let is_within = u64::try_from(offset).is_ok_and(|offset| offset < self.of(id).instruction_bytes);
        is_within || matches!(offset, -2 | -1)
    }

    /// Whether it only cleans up behind `__init__`, which is not code of the program.
    ///
    /// Source: CPython 3.13, `Python/specialize.c`, `_Py_InitCleanup`.
    pub(crate) fn is_shim(&self, id: CodeId) -> bool {
        self.of(id).is_shim
    }

    /// Like [`Self::is_shim`], for the code object at an address.
    pub(crate) fn is_shim_at(&self, address: u64) -> bool {
        self.by_address.get(&address).is_some_and(|&id| self.is_shim(id))
    }

    fn of(&self, id: CodeId) -> &KnownCode {
        &self.known[id.0 as usize]
    }

    /// Notes that a sample used it: it is checked now and then, the more seldom the longer it has been known.
    pub(crate) fn note_use(&mut self, id: CodeId) {
        let now = self.now;
        let code = &mut self.known[id.0 as usize];
        if code.due < now {
            code.due = now + ((now - code.born) / 4).min(LONGEST_TRUST);
            self.due.push(id);
        }
    }

    /// Whether the code objects that are due are still those that were read. Forgets those that are not.
    pub(crate) fn check(&mut self, memory: &impl ForeignMemory, layout: &Layout) -> Result<bool, Error> {
        let mut is_same = true;
        for id in std::mem::take(&mut self.due) {
            let code = self.of(id);
            let (address, key, born) = (code.address, code.key, code.born);
            if born == self.now {
                continue;
            }
            let found = mapped(read_code(memory, layout, address))?.and_then(|bytes| key_of(&bytes, layout));
            if found != Some(key) {
                self.by_address.remove(&address);
                self.generation += 1;
                is_same = false;
            }
        }
        Ok(is_same)
    }

    /// The frame of an instruction, which is named if there are names.
    pub(crate) fn frame(
        &mut self,
        (id, at): (CodeId, Instruction),
        python: &Python,
        names: Option<OpcodeNames>,
        tables: &mut Tables,
    ) -> Result<FrameId, Error> {
        let code = &mut self.known[id.0 as usize];
        if let Some(&frame) = code.frames.get(&at) {
            return Ok(frame);
        }
        let (format, first_line) = (python.layout.code.line_format, i64::from(code.key.first_line));
        let location = code.lines.as_deref();
        let location = location.map(|lines| line_table::locate(format, lines, first_line, at.offset));
        let location = location.unwrap_or_default();
        let name = names.zip(at.opcode).map(|(name, opcode)| name(python.identity.version, opcode));
        let opcode = name.map(|name| tables.intern_string(name.as_bytes())).transpose()?;
        let frame = Frame {
            file: Some(code.file),
            opcode,
            line: location.line,
            end_line: location.end_line,
            column: location.column,
            end_column: location.end_column,
            ..Frame::named(code.function)
        };
        let frame = tables.intern_frame(&frame)?;
        code.frames.insert(at, frame);
        Ok(frame)
    }

    fn read(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Option<KnownCode>, Error> {
        let Some(bytes) = mapped(read_code(memory, layout, address))? else { return Ok(None) };
        let Some(key) = key_of(&bytes, layout) else { return Ok(None) };
        if !self.is_kind_of_code(memory, layout, key.kind)? {
            return Ok(None);
        }
        let name = layout.code.qualified_name.unwrap_or(layout.code.name);
        let name = u64_at(&bytes, name).unwrap_or_default();
        let texts = (text(memory, layout, name)?, text(memory, layout, key.file_name)?);
        let (Some(name), Some(file)) = texts else { return Ok(None) };
        let lines = mapped(objects::bytes(memory, &layout.object, key.lines, LARGEST_TABLE))?;
        let Some(lines) = lines else { return Ok(None) };
        let instruction_bytes = match layout.code.instructions {
            InstructionsPlace::Within(_) => key.instructions.saturating_mul(2),
            InstructionsPlace::Apart(_) => {
                let length = memory.read_u64(moved(key.instructions, layout.object.length));
                mapped(length)?.unwrap_or_default()
            }
        };
        Ok(Some(KnownCode {
            address,
            key,
            function: tables.intern_string(&name)?,
            file: tables.intern_string(&file)?,
            lines,
            instruction_bytes,
            frames: HashMap::new(),
            born: self.now,
            due: self.now,
            is_shim: name == b"__init__" && file == b"__init__",
        }))
    }

    /// Whether the type at `kind` is that of code objects.
    fn is_kind_of_code(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        kind: u64,
    ) -> Result<bool, Error> {
        if let Some(known) = self.kind {
            return Ok(known == kind);
        }
        let name = mapped(objects::name_of_type(memory, &layout.object, kind))?;
        let is_code = name.as_deref() == Some(b"code");
        self.kind = is_code.then_some(kind);
        Ok(is_code)
    }
}

fn text(memory: &impl ForeignMemory, layout: &Layout, address: u64) -> Result<Option<Vec<u8>>, Error> {
    Ok(mapped(objects::text(memory, &layout.object, address))?.flatten())
}

fn read_code(
    memory: &impl ForeignMemory,
    layout: &Layout,
    address: u64,
) -> Result<[u8; LARGEST_CODE], borehole_process::Error> {
    let mut bytes = [0; LARGEST_CODE];
    let wanted = layout.code.size.min(LARGEST_CODE);
    let into = &mut bytes[..wanted];
    let filled = memory.read_pieces(&mut [MemoryPiece { address, into }])?;
    if filled < wanted {
        return Err(borehole_process::Error::unmapped(moved(address, filled)));
    }
    Ok(bytes)
}

fn key_of(bytes: &[u8], layout: &Layout) -> Option<CodeKey> {
    let CodeLayout { file_name, name, lines, first_line, instructions, .. } = layout.code;
    let instructions = match instructions {
        InstructionsPlace::Within(_) => layout.object.length,
        InstructionsPlace::Apart(place) => place,
    };
    Some(CodeKey {
        kind: u64_at(bytes, layout.object.kind)?,
        file_name: u64_at(bytes, file_name)?,
        name: u64_at(bytes, name)?,
        lines: u64_at(bytes, lines)?,
        first_line: u32_at(bytes, first_line)?,
        instructions: u64_at(bytes, instructions)?,
    })
}
