//! Converts the symbols of a document to frames and stacks of the model.

use std::collections::BTreeSet;

use borehole_model::{
    CodePlaces, Frame, FrameId, NativeFrame, NativeModule, StackId, StringId, Tables, ValueType,
};
use hashbrown::{HashMap, HashSet};

use super::read::{SourceLine, SymbolFunction, SymbolLocation, SymbolMapping, TypeIndexes};
use crate::{Error, ErrorKind, Limits, Position, ReadError};

/// A document with its definitions. `offset` is the position of the reference, for errors.
pub(crate) trait SymbolDocument {
    /// The format, for errors.
    const FORMAT: &'static str;

    /// The length in bytes.
    fn length(&self) -> u64;

    /// The limits of reading it.
    fn limits(&self) -> Limits;

    /// The string at an index.
    ///
    /// # Errors
    /// If there is none.
    fn string(&self, index: u64, offset: u64) -> Result<&[u8], Error>;

    /// The mapping with an id or at an index.
    ///
    /// # Errors
    /// If there is none.
    fn mapping(&self, key: u64, offset: u64) -> Result<SymbolMapping, Error>;

    /// The text of the build ID of a mapping, if it has one.
    fn build_id(&self, key: u64) -> Option<&[u8]>;

    /// The function with an id or at an index.
    ///
    /// # Errors
    /// If there is none.
    fn function(&self, key: u64, offset: u64) -> Result<SymbolFunction, Error>;

    /// A string as text, with U+FFFD for bytes outside UTF-8.
    ///
    /// # Errors
    /// If there is no such string.
    fn text(&self, index: u64, offset: u64) -> Result<String, Error> {
        self.string(index, offset).map(|text| String::from_utf8_lossy(text).into_owned())
    }

    /// The value type with these names.
    ///
    /// # Errors
    /// If a name is missing.
    fn value_type(&self, names: TypeIndexes, offset: u64) -> Result<ValueType, Error> {
        Ok(ValueType { kind: self.text(names.kind, offset)?, unit: self.text(names.unit, offset)? })
    }
}

/// The file of a mapping, if it has a build ID.
fn stated_module<D: SymbolDocument>(document: &D, key: u64) -> Option<NativeModule> {
    let mapping = document.mapping(key, 0).ok().filter(|mapping| key != 0 && mapping.has_range())?;
    let text =
        |bytes: &[u8]| std::str::from_utf8(bytes).ok().filter(|text| !text.is_empty()).map(str::to_owned);
    let is_hex = |id: &&[u8]| id.iter().all(u8::is_ascii_hexdigit);
    let build_id = document.build_id(key).filter(is_hex).and_then(text)?;
    let path = document.string(mapping.file, 0).ok().and_then(text)?;
    let (start, end) = mapping.file_range();
    Some(NativeModule { build_id, start, end, path })
}

/// The files with build IDs that code is in whose place is kept.
#[derive(Debug, Default)]
pub(crate) struct StatedFiles {
    /// The texts of [`NativeModule`].
    pub(crate) texts: BTreeSet<String>,
    /// By mapping: the name of its file.
    names: HashMap<u64, String>,
    places: CodePlaces,
}

impl StatedFiles {
    /// The files of these locations, each with whether it has functions. Several files with one path have their build ID behind it.
    pub(crate) fn of<'l, D: SymbolDocument>(
        document: &D,
        places: CodePlaces,
        locations: impl Iterator<Item = (&'l SymbolLocation, bool)>,
    ) -> Self {
        let is_kept = |&(_, is_named): &(&SymbolLocation, bool)| !is_named || places == CodePlaces::All;
        let mappings: HashSet<u64> =
            locations.filter(is_kept).map(|(location, _)| location.mapping).collect();
        let modules = mappings.into_iter().filter_map(|key| Some((key, stated_module(document, key)?)));
        let mut modules: Vec<_> = modules.collect();
        let mut builds: HashMap<String, HashSet<String>> = HashMap::new();
        for (_, NativeModule { path, build_id, .. }) in &modules {
            builds.entry_ref(path.as_str()).or_default().insert(build_id.clone());
        }
        for (_, module) in &mut modules {
            if builds[&module.path].len() > 1 {
                module.path = format!("{} ({})", module.path, module.build_id);
            }
        }
        let texts = modules.iter().map(|(_, module)| module.to_string()).collect();
        Self { texts, names: modules.into_iter().map(|(key, module)| (key, module.path)).collect(), places }
    }
}

/// The frames of a location, innermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRange {
    start: usize,
    end: usize,
}

/// Interns the symbols of a document. The format remembers the frames of each location.
pub(crate) struct SymbolResolver<'d, D> {
    pub(crate) document: &'d D,
    pub(crate) tables: &'d mut Tables,
    frames: Vec<FrameId>,
    stack: Vec<FrameId>,
    /// The number of frames charged for the current stack.
    stack_frames: usize,
    frames_left: u64,
    limits: Limits,
    /// The number of stacks in the tables before.
    stacks_before: usize,
    /// The files of code whose place is kept.
    pub(crate) files: StatedFiles,
}

/// The bytes that become of a location in a stack, or of a frame, about: what the resolvers and the tables hold of it, and what
/// is made of that.
pub(crate) const MADE_OF_LOCATION_BYTES: usize = 64 + Tables::MADE_OF_STACK_BYTES;

impl<'d, D: SymbolDocument> SymbolResolver<'d, D> {
    /// The number of frames that any document may have, beyond which frames are limited per byte.
    ///
    /// A location stands for all functions inlined at it, so two bytes in a stack can name thousands of frames. Real
    /// profiles stay below one frame per byte; this bounds time and memory by the size of the document.
    const FRAMES_FREE: u64 = 1 << 20;
    const FRAMES_PER_BYTE: u64 = 16;
    /// The number of frames of a stack from which on their memory is checked.
    const FEW_FRAMES: usize = 1 << 12;

    pub(crate) fn new(document: &'d D, files: StatedFiles, tables: &'d mut Tables) -> Self {
        let frames_left = Self::FRAMES_PER_BYTE.saturating_mul(document.length());
        let frames_left = frames_left.saturating_add(Self::FRAMES_FREE);
        let (frames, stack, limits) = (Vec::new(), Vec::new(), document.limits());
        let stacks_before = tables.stack_count();
        Self { document, tables, frames, stack, stack_frames: 0, frames_left, limits, stacks_before, files }
    }

    /// Interns a string of the document.
    ///
    /// # Errors
    /// If it is missing or the tables are full.
    pub(crate) fn intern(&mut self, index: u64, offset: u64) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(self.document.string(index, offset)?)?)
    }

    /// Interns the frames of a location with these lines, innermost first; without lines it is one frame. `is_native`
    /// decides about a function and its mapping; `complete` adds what is known of the innermost frame.
    ///
    /// # Errors
    /// If a reference is to a missing entry, or the tables are full.
    pub(crate) fn location(
        &mut self,
        location: &SymbolLocation,
        lines: impl Iterator<Item = SourceLine>,
        is_native: impl Fn(Option<&SymbolMapping>, &SymbolFunction) -> bool,
        complete: impl Fn(Frame) -> Frame,
    ) -> Result<FrameRange, ReadError> {
        let mapping = match location.mapping {
            0 => None,
            key => Some(self.document.mapping(key, location.offset)?),
        };
        let start = self.frames.len();
        for line in lines {
            let frame = match line.function {
                0 => self.nameless(location, mapping)?,
                key => {
                    let function = self.document.function(key, location.offset)?;
                    let native = is_native(mapping.as_ref(), &function);
                    // Native code without a mapping is in memory without a name.
                    let native = native.then(|| mapping.unwrap_or_default());
                    self.frame(location, &line, &function, native)?
                }
            };
            let frame = if self.frames.len() == start { complete(frame) } else { frame };
            self.frames.push(self.tables.intern_frame(&frame)?);
        }
        if self.frames.len() == start {
            let frame = complete(self.nameless(location, mapping)?);
            self.frames.push(self.tables.intern_frame(&frame)?);
        }
        Ok(FrameRange { start, end: self.frames.len() })
    }

    fn frame(
        &mut self,
        location: &SymbolLocation,
        line: &SourceLine,
        function: &SymbolFunction,
        native: Option<SymbolMapping>,
    ) -> Result<Frame, ReadError> {
        let offset = location.offset;
        let name = if function.name == 0 { function.system_name } else { function.name };
        let name = self.intern(name, offset)?;
        let file = function.file.map(|file| self.intern(file, offset)).transpose()?;
        let native = match self.code(location)? {
            None => native.map(|mapping| self.native(location, mapping)).transpose()?,
            code => code,
        };
        Ok(Frame {
            file,
            line: line.line,
            column: line.column.checked_sub(1).and_then(|column| u32::try_from(column).ok()),
            native,
            ..Frame::named(name)
        })
    }

    /// A frame of which only the address is known. Its name is the offset in a file with a build ID, which is equal wherever the
    /// file is loaded, or else the address.
    fn nameless(
        &mut self,
        location: &SymbolLocation,
        mapping: Option<SymbolMapping>,
    ) -> Result<Frame, ReadError> {
        let name = self.files.names.get(&location.mapping);
        let offset =
            mapping.and_then(|mapping| mapping.offset_of(location.address)).filter(|_| name.is_some());
        let address = offset.unwrap_or(location.address);
        let function = self.tables.intern_string(format!("{address:#x}").as_bytes())?;
        let module = match (name.filter(|_| offset.is_some()), mapping) {
            (Some(name), _) => Some(self.tables.intern_string(name.as_bytes())?),
            (None, Some(mapping)) => Some(self.intern(mapping.file, location.offset)?),
            (None, None) => None,
        };
        let native = module.map(|module| NativeFrame { module, offset: None, file_offset: None });
        Ok(Frame { native, ..Frame::named(function) })
    }

    /// The place of the code of functions, if it is kept.
    fn code(&mut self, location: &SymbolLocation) -> Result<Option<NativeFrame>, ReadError> {
        let is_kept = self.files.places == CodePlaces::All;
        let Some(name) = self.files.names.get(&location.mapping).filter(|_| is_kept) else { return Ok(None) };
        let mapping = self.document.mapping(location.mapping, location.offset)?;
        let Some(file_offset) = mapping.offset_of(location.address) else { return Ok(None) };
        let module = self.tables.intern_string(name.as_bytes())?;
        Ok(Some(NativeFrame { module, offset: None, file_offset: Some(file_offset) }))
    }

    fn native(
        &mut self,
        location: &SymbolLocation,
        mapping: SymbolMapping,
    ) -> Result<NativeFrame, ReadError> {
        let module = self.intern(mapping.file, location.offset)?;
        // In a mapping with a range the address is one of the process or of the file, and its distance from the start
        // of the function is not stated. An address of 0 is unknown.
        let is_offset = !mapping.has_range() && location.address != 0;
        Ok(NativeFrame {
            module,
            offset: is_offset.then_some(location.address.cast_signed()),
            file_offset: None,
        })
    }

    /// Counts the frames of a location in a stack.
    ///
    /// # Errors
    /// If the document or the stack has too many.
    pub(crate) fn charge(&mut self, frames: FrameRange, offset: u64) -> Result<(), Error> {
        let count = frames.end - frames.start;
        let left = self.frames_left.checked_sub(count as u64);
        self.frames_left = left.ok_or_else(|| too_many_frames(D::FORMAT, offset))?;
        self.stack_frames += count;
        if self.stack_frames < Self::FEW_FRAMES {
            return Ok(());
        }
        let made = self.stack_frames.saturating_mul(MADE_OF_LOCATION_BYTES);
        self.limits.check(made).map_err(|over| Error::memory(D::FORMAT, Position::Byte(offset), over))
    }

    /// Interns the stack of these locations, leaf first; `None` without frames.
    ///
    /// # Errors
    /// If the tables are full, or the stacks take more memory than allowed.
    pub(crate) fn stack(
        &mut self,
        locations: impl Iterator<Item = FrameRange>,
    ) -> Result<Option<StackId>, ReadError> {
        self.stack.clear();
        self.stack_frames = 0;
        for range in locations {
            self.stack.extend_from_slice(&self.frames[range.start..range.end]);
        }
        let before = self.tables.stack_count();
        let stack = self.tables.intern_stack_leaf_first(&self.stack)?;
        if self.tables.stack_count() == before {
            return Ok(stack);
        }
        let made = self.tables.bytes_of_stacks_since(self.stacks_before);
        let length = usize::try_from(self.document.length()).unwrap_or(usize::MAX);
        let checked = self.limits.check(made.saturating_add(length));
        checked.map_err(|over| Error::memory(D::FORMAT, Position::Whole, over))?;
        Ok(stack)
    }
}

#[cold]
fn too_many_frames(format: &'static str, offset: u64) -> Error {
    let message = "too many frames: expected at most 16 for each byte of the document";
    Error::new(ErrorKind::Limit, format, Position::Byte(offset), message)
}

/// The error of an index beyond a table of `count` entries.
#[cold]
pub(crate) fn missing_entry(
    format: &'static str,
    what: &str,
    count: usize,
    index: u64,
    offset: u64,
) -> Error {
    let message = format!("expected {what} index below {count}, found {}", index.cast_signed());
    Error::malformed(format, Position::Byte(offset), message)
}
