//! Cached knowledge of functions, so that a frame needs no extra reads: names, file, and the line of each instruction.
//!
//! Declared functions stay at their address until the request ends. Closures, the code of files and of `eval`, and stand-ins
//! for calls of `__call` come and go, and others take their place. Their identifying fields are read with each sample (see
//! [`FunctionIdentity`]), together with their instructions unless these are in memory that opcache never reuses.

use std::borrow::Cow;

use borehole_model::{Frame, FrameId, StringId, Tables};
use borehole_process::ForeignMemory;
use hashbrown::HashMap;

use crate::attach::Php;
use crate::error::Error;
use crate::layout::{Layout, fixed};
use crate::name::{self, InternedName};
use crate::opcodes;
use crate::release::PhpRelease;
use crate::remote::{self, moved, u32_at, u64_at};

/// The file of internal functions, as phpspy and reli write it.
const INTERNAL_FILE: &[u8] = b"<internal>";

/// The maximum number of instructions of a function: a hundred times that of generated code.
const MOST_OPS: u32 = 1 << 20;

/// The maximum number of functions, more than any program has; those that come and go may reach it.
pub(crate) const MOST_FUNCTIONS: usize = 1 << 16;

/// The maximum size of all known functions, in bytes: four million instructions, or the names of [`MOST_FUNCTIONS`] functions.
/// Instructions are kept once for each function, even if several share them.
const MOST_BYTES: usize = 64 << 20;

/// The size of what is kept for each instruction, in bytes.
const BYTES_OF_OP: usize = size_of::<Op>() + size_of::<Option<FrameId>>();

// Opcode numbers, equal in every release; a test compares them with [`opcodes`]. Source: `Zend/zend_vm_opcodes.h`.

/// `ZEND_HANDLE_EXCEPTION`: the instruction of a function while no handler for its exception has been found yet.
const HANDLE_EXCEPTION: u8 = 149;

/// `ZEND_CALL_TRAMPOLINE`: the only instruction of a function made up for a call of `__call`.
const CALL_TRAMPOLINE: u8 = 158;

/// `ZEND_RETURN`, `ZEND_RETURN_BY_REF`, `ZEND_GENERATOR_RETURN`.
const RETURNS: [u8; 3] = [62, 111, 161];

// `zend_function.type`. Source: `Zend/zend_compile.h`.

const USER_FUNCTION: u8 = 2;
/// An internal function in older releases.
const OVERLOADED_FUNCTION: u8 = 3;
const EVAL_CODE: u8 = 4;

/// The identity of a function: the fields of `zend_function` that do not change during its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionIdentity {
    pub(crate) is_user: bool,
    /// Whether another function may take its place during a request.
    pub(crate) short_lived: bool,
    made_up: bool,
    name: u64,
    class: u64,
    /// The address of its instructions.
    pub(crate) ops: u64,
    op_count: u32,
    file: u64,
    lines: (u32, u32),
}

impl FunctionIdentity {
    /// Parses the bytes of a `zend_function`; `None` if they are not valid.
    pub(crate) fn parse(bytes: &[u8], layout: &Layout) -> Option<Self> {
        let is_user = match *bytes.get(fixed::FUNCTION_TYPE)? {
            fixed::FUNCTION_INTERNAL | OVERLOADED_FUNCTION => false,
            USER_FUNCTION | EVAL_CODE => true,
            _ => return None,
        };
        let flags = u32_at(bytes, fixed::FUNCTION_FLAGS)?;
        let name = u64_at(bytes, fixed::FUNCTION_NAME)?;
        let own = |offset| if is_user { u64_at(bytes, offset) } else { Some(0) };
        let own_u32 = |offset| if is_user { u32_at(bytes, offset) } else { Some(0) };
        let ops = own(layout.function_ops)?;
        Some(Self {
            is_user,
            short_lived: flags & layout.function_short_lived != 0 || (is_user && name == 0),
            made_up: flags >> layout.function_made_up_bit & 1 == 1 || (is_user && ops == 0),
            name,
            class: u64_at(bytes, fixed::FUNCTION_SCOPE)?,
            ops,
            op_count: own_u32(layout.function_op_count)?,
            file: own(layout.function_file)?,
            lines: (own_u32(layout.function_file + 8)?, own_u32(layout.function_file + 12)?),
        })
    }

    /// Whether it is the code of a file or of `eval`, outside of functions.
    pub(crate) fn is_code_of_file(&self) -> bool {
        self.is_user && self.name == 0 && !self.made_up
    }

    /// The address of its instructions and their size in bytes; `None` if there are too many.
    pub(crate) fn ops_range(&self) -> Option<(u64, usize)> {
        let bytes = usize::try_from(self.op_count).ok()? * fixed::OP_SIZE;
        match (self.is_user, self.made_up) {
            (true, false) if self.op_count > MOST_OPS => None,
            (true, false) => Some((self.ops, bytes)),
            _ => Some((0, 0)),
        }
    }

    fn bytes_of_ops(&self) -> usize {
        self.ops_range().map_or(0, |(_, length)| length / fixed::OP_SIZE * BYTES_OF_OP)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Op {
    line: u32,
    extended: u32,
    code: u8,
}

impl Op {
    /// Whether it equals `other`, ignoring the fields that may change during its lifetime.
    fn is(&self, other: &Self) -> bool {
        (self.line, self.code) == (other.line, other.code)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            line: u32_at(bytes, fixed::OP_LINE)?,
            extended: u32_at(bytes, fixed::OP_EXTENDED)?,
            code: *bytes.get(fixed::OP_CODE)?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct CachedFunction {
    pub(crate) header: FunctionIdentity,
    name: InternedName,
    /// The name that PHP has for it; empty if it has none.
    own_name: StringId,
    file: Option<StringId>,
    ops: Vec<Op>,
    /// The frame of each instruction seen in a stack, then the frame while it raises, then the frame without an instruction.
    frames: Vec<Option<FrameId>>,
    /// The size of its names and instructions.
    bytes: usize,
}

/// Instructions outside of the function that a frame may be at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere {
    /// The executor's state, which contains the instructions that handle exceptions and stand-in calls.
    pub(crate) state: (u64, u64),
    /// The address of the instruction that raised the exception being handled.
    pub(crate) before_exception: u64,
}

impl Elsewhere {
    pub(crate) fn holds(&self, op: u64) -> bool {
        self.state.0 <= op && op < self.state.1
    }
}

impl CachedFunction {
    pub(crate) fn read(
        memory: &impl ForeignMemory,
        header: FunctionIdentity,
        tables: &mut Tables,
    ) -> Result<Option<Self>, Error> {
        let Some(texts) = Texts::read(memory, &header)? else { return Ok(None) };
        let Some(ops) = read_ops(memory, &header)? else { return Ok(None) };
        let name = InternedName::intern(tables, texts.class.as_deref(), texts.shown(&header).as_deref())?;
        let own_name = tables.intern_string(texts.function.as_deref().unwrap_or_default())?;
        let file = match &texts.file {
            Some(file) => Some(tables.intern_string(file)?),
            None if header.is_user => None,
            None => Some(tables.intern_string(INTERNAL_FILE)?),
        };
        let frames = vec![None; ops.len() + 2];
        let bytes = header.bytes_of_ops() + texts.len();
        Ok(Some(Self { header, name, own_name, file, ops, frames, bytes }))
    }

    /// The addresses and lengths to compare, if the function is at `address`: its header, its name and its file.
    pub(crate) fn places(&self, address: u64, tables: &Tables) -> [(u64, usize); 3] {
        let [name, file] = self.texts(tables);
        let string = |address, text: &[u8]| match address {
            0 => (0, 0),
            _ => (
                moved(address, fixed::STRING_LENGTH),
                fixed::STRING_BYTES - fixed::STRING_LENGTH + text.len(),
            ),
        };
        [(address, fixed::FUNCTION_SIZE), string(self.header.name, name), string(self.header.file, file)]
    }

    pub(crate) fn is_at(&self, [own, name, file]: [&[u8]; 3], layout: &Layout, tables: &Tables) -> bool {
        let is = |bytes: &[u8], text: &[u8]| {
            let length = u64_at(bytes, 0).and_then(|length| usize::try_from(length).ok());
            let is_cut = text.len() == remote::LONGEST_NAME;
            bytes.is_empty()
                || (bytes.ends_with(text)
                    && (length == Some(text.len()) || (is_cut && length > Some(text.len()))))
        };
        let [own_name, own_file] = self.texts(tables);
        FunctionIdentity::parse(own, layout) == Some(self.header) && is(name, own_name) && is(file, own_file)
    }

    /// The texts at `header.name` and `header.file`, as far as they are kept.
    fn texts<'t>(&self, tables: &'t Tables) -> [&'t [u8]; 2] {
        let file = self.file.filter(|_| self.header.file != 0);
        let kept = |text: &'t [u8]| &text[..text.len().min(remote::LONGEST_NAME)];
        [kept(tables.string(self.own_name)), file.map_or(&[], |file| kept(tables.string(file)))]
    }

    /// Whether it is a function that PHP puts into a stack for its own use: below a fiber, or around an attribute.
    pub(crate) fn is_nameless(&self) -> bool {
        self.header.name == 0 && (!self.header.is_user || self.header.made_up)
    }

    pub(crate) fn begins_with(&self, bytes: &[u8]) -> bool {
        let ops = bytes.chunks_exact(fixed::OP_SIZE).map(Op::parse);
        ops.zip(&self.ops).all(|(found, known)| found.is_some_and(|found| found.is(known)))
    }

    /// The frame of this function at the instruction at `op`; `None` if it cannot be there.
    pub(crate) fn frame(
        &mut self,
        op: u64,
        elsewhere: &Elsewhere,
        release: Option<PhpRelease>,
        tables: &mut Tables,
    ) -> Result<Option<FrameId>, Error> {
        match self.row(op, elsewhere) {
            Some(row) => self.frame_at(row, release, tables).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn frame_anywhere(
        &mut self,
        release: Option<PhpRelease>,
        tables: &mut Tables,
    ) -> Result<FrameId, Error> {
        self.frame_at(self.unknown_row(), release, tables)
    }

    fn frame_at(
        &mut self,
        row: usize,
        release: Option<PhpRelease>,
        tables: &mut Tables,
    ) -> Result<FrameId, Error> {
        if let Some(frame) = self.frames[row] {
            return Ok(frame);
        }
        let frame = self.describe(row, release, tables)?;
        Ok(*self.frames[row].insert(tables.intern_frame(&frame)?))
    }

    /// The number of the internal function that the instruction at `op` calls without a frame.
    pub(crate) fn frameless_call(&self, op: u64, layout: &Layout) -> Option<u32> {
        let op = self.ops[self.own(op)?];
        let arguments = op.code.checked_sub(layout.op_frameless)?;
        (arguments < 4).then_some(op.extended)
    }

    /// Whether the instruction at `op` leaves the function. Such an instruction calls only destructors. If a caller seems to be
    /// at one, it is nearly always left over from an earlier call.
    pub(crate) fn is_leaving(&self, op: u64) -> bool {
        self.own(op).is_some_and(|row| RETURNS.contains(&self.ops[row].code))
    }

    /// The place in `frames` of the frame at `op`; `None` if it cannot be there.
    fn row(&self, op: u64, elsewhere: &Elsewhere) -> Option<usize> {
        if !self.header.is_user || self.header.made_up {
            return Some(self.unknown_row());
        }
        if elsewhere.holds(op) {
            return Some(self.own(elsewhere.before_exception).unwrap_or(self.ops.len()));
        }
        self.own(op)
    }

    fn unknown_row(&self) -> usize {
        self.ops.len() + 1
    }

    /// The number of the instruction at `op`, if it belongs to this function.
    fn own(&self, op: u64) -> Option<usize> {
        let distance = usize::try_from(op.checked_sub(self.header.ops)?).ok()?;
        let row = distance / fixed::OP_SIZE;
        (distance.is_multiple_of(fixed::OP_SIZE) && row < self.ops.len()).then_some(row)
    }

    fn describe(&self, row: usize, release: Option<PhpRelease>, tables: &mut Tables) -> Result<Frame, Error> {
        let (line, code) = match self.ops.get(row) {
            Some(op) => (Some(i64::from(op.line)), Some(op.code)),
            None if row == self.ops.len() => (Some(i64::from(self.header.lines.1)), Some(HANDLE_EXCEPTION)),
            None => (None, self.header.made_up.then_some(CALL_TRAMPOLINE)),
        };
        let opcode = match release.zip(code).and_then(|(release, code)| opcodes::name(release, code)) {
            Some(name) => Some(tables.intern_string(name.as_bytes())?),
            None => None,
        };
        Ok(Frame {
            parts: Some(self.name.parts),
            file: self.file,
            line,
            opcode,
            ..Frame::named(self.name.whole)
        })
    }
}

struct Texts {
    function: Option<Vec<u8>>,
    class: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
}

impl Texts {
    fn read(memory: &impl ForeignMemory, header: &FunctionIdentity) -> Result<Option<Self>, Error> {
        let text = |address: u64| match address {
            0 => Ok(None),
            _ => remote::string(memory, address).map(Some),
        };
        let read = || {
            // Code of `eval` in a method has the method's class, but is not a method of it.
            let has_class = header.class != 0 && header.name != 0;
            let class = if has_class { memory.read_u64(moved(header.class, fixed::CLASS_NAME))? } else { 0 };
            Ok(Self { function: text(header.name)?, class: text(class)?, file: text(header.file)? })
        };
        Ok(remote::mapped(read())?)
    }

    /// The function's name as it is shown.
    fn shown(&self, header: &FunctionIdentity) -> Option<Cow<'_, [u8]>> {
        let (class, file) = (self.class.as_deref(), self.file.as_deref());
        self.function.as_deref().map(|name| name::shown(name, class, file, header.lines.0))
    }

    fn len(&self) -> usize {
        [&self.function, &self.class, &self.file].into_iter().flatten().map(Vec::len).sum()
    }
}

fn read_ops(memory: &impl ForeignMemory, header: &FunctionIdentity) -> Result<Option<Vec<Op>>, Error> {
    let Some((address, length)) = header.ops_range() else { return Ok(None) };
    let mut ops = Vec::new();
    let mut part = vec![0; length.min(64 << 10)];
    let mut done = 0;
    while done < length {
        let part = &mut part[..(length - done).min(64 << 10)];
        if remote::mapped(memory.read(moved(address, done), part))?.is_none() {
            return Ok(None);
        }
        ops.extend(part.chunks_exact(fixed::OP_SIZE).filter_map(Op::parse));
        done += part.len();
    }
    Ok(Some(ops))
}

#[derive(Debug, Default)]
pub(crate) struct FunctionCache {
    pub(crate) all: Vec<CachedFunction>,
    by_header: HashMap<FunctionIdentity, usize>,
    by_address: HashMap<u64, KnownAddress>,
    /// The size of all functions.
    bytes: usize,
    /// Whether a function was refused because of the size limit.
    is_full: bool,
    /// Whether anything was remembered since the last time a request was forgotten.
    has_request: bool,
    /// A number that changes whenever a function's number may have passed to another function.
    pub(crate) generation: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum KnownAddress {
    /// This function stays there.
    Stays(usize),
    /// A function that does not stay is, or was, there.
    ComesAndGoes,
}

impl FunctionCache {
    pub(crate) fn at(&self, address: u64) -> Option<KnownAddress> {
        self.by_address.get(&address).copied()
    }

    pub(crate) fn remember(&mut self, address: u64, known: KnownAddress) {
        self.by_address.insert(address, known);
        self.has_request = true;
    }

    pub(crate) fn find(&self, header: &FunctionIdentity) -> Option<usize> {
        self.by_header.get(header).copied()
    }

    pub(crate) fn has_room_for(&mut self, header: &FunctionIdentity) -> bool {
        let fits = self.bytes + header.bytes_of_ops() <= MOST_BYTES;
        self.is_full |= !fits;
        fits
    }

    /// Adds a function, replacing one with an equal header.
    pub(crate) fn add(&mut self, function: CachedFunction) -> usize {
        let header = function.header;
        self.bytes += function.bytes;
        if let Some(at) = self.find(&header) {
            self.bytes -= self.all[at].bytes;
            self.all[at] = function;
            self.generation += 1;
            return at;
        }
        self.all.push(function);
        self.by_header.insert(header, self.all.len() - 1);
        self.all.len() - 1
    }

    pub(crate) fn forget(&mut self, address: u64) {
        self.by_address.remove(&address);
        self.generation += 1;
    }

    /// Forgets all functions that do not outlive a request: all except internal ones and those in opcache's memory.
    pub(crate) fn forget_request(&mut self, php: &Php) {
        if !self.has_request {
            return;
        }
        let outlives =
            |header: &FunctionIdentity| !header.short_lived && (!header.is_user || php.is_shared(header.ops));
        let old = std::mem::take(self);
        self.generation = old.generation + 1;
        let kept = old.all.into_iter().map(|function| outlives(&function.header).then(|| self.add(function)));
        let places: Vec<Option<usize>> = kept.collect();
        for (address, known) in old.by_address {
            if let KnownAddress::Stays(number) = known
                && let Some(number) = places[number]
            {
                self.by_address.insert(address, KnownAddress::Stays(number));
            }
        }
        self.has_request = false;
    }

    pub(crate) fn are_too_many(&self) -> bool {
        self.is_full || self.all.len() > MOST_FUNCTIONS || self.by_address.len() > MOST_FUNCTIONS
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, has_request: self.has_request, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_same_numbers_in_every_release() {
        let expected = [
            (HANDLE_EXCEPTION, "ZEND_HANDLE_EXCEPTION"),
            (CALL_TRAMPOLINE, "ZEND_CALL_TRAMPOLINE"),
            (RETURNS[0], "ZEND_RETURN"),
            (RETURNS[1], "ZEND_RETURN_BY_REF"),
            (RETURNS[2], "ZEND_GENERATOR_RETURN"),
        ];
        for (release, (code, name)) in
            PhpRelease::all().flat_map(|release| expected.map(|case| (release, case)))
        {
            assert_eq!(opcodes::name(release, code), Some(name), "{release}");
        }
    }

    #[test]
    fn addresses_where_functions_come_and_go_do_not_add_up_for_ever() {
        let mut functions = FunctionCache::default();
        for address in 0..=MOST_FUNCTIONS {
            assert!(!functions.are_too_many(), "{address}");
            functions.remember(address as u64, KnownAddress::ComesAndGoes);
        }
        assert!(functions.are_too_many());
        let generation = functions.generation;
        functions.clear();
        assert!(!functions.are_too_many());
        assert_ne!(functions.generation, generation);
    }
}
