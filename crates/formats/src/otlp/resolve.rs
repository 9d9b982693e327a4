//! Converts the stacks of a document to stacks of the model, each once.

use borehole_model::{Frame, FrameId, NativeFrame, StackId, StringId, Tables};
use hashbrown::HashMap;

use super::NAME;
use super::layout::key;
use super::read::{Any, Document, Key, Line, Location, Mapping, at};
use crate::{Error, ErrorKind, Position, ReadError};

pub(super) struct Resolver<'d, 'a> {
    pub(super) document: &'d Document<'a>,
    pub(super) tables: &'d mut Tables,
    stacks: HashMap<u64, Option<StackId>>,
    /// The ranges of locations' frames in `frames`.
    locations: HashMap<u64, (usize, usize)>,
    frames: Vec<FrameId>,
    stack: Vec<FrameId>,
    indices: Vec<u64>,
    frames_left: u64,
}

/// The attributes of a location about its innermost frame.
#[derive(Clone, Copy, Debug, Default)]
struct Extras {
    opcode: Option<StringId>,
    end_line: Option<i64>,
    end_column: Option<u32>,
    is_native: bool,
}

impl<'d, 'a> Resolver<'d, 'a> {
    /// The number of frames that any document may have, beyond which frames are limited per byte.
    ///
    /// A location stands for all functions inlined at it, so two bytes in a stack can name thousands of frames. Real
    /// profiles stay below one frame per byte; this bounds time and memory by the size of the document.
    const FRAMES_FREE: u64 = 1 << 20;
    const FRAMES_PER_BYTE: u64 = 16;

    pub(super) fn new(document: &'d Document<'a>, tables: &'d mut Tables) -> Self {
        let frames_left =
            Self::FRAMES_PER_BYTE.saturating_mul(document.length).saturating_add(Self::FRAMES_FREE);
        Self {
            document,
            tables,
            stacks: HashMap::new(),
            locations: HashMap::new(),
            frames: Vec::new(),
            stack: Vec::new(),
            indices: Vec::new(),
            frames_left,
        }
    }

    pub(super) fn stack(&mut self, index: u64, offset: u64) -> Result<Option<StackId>, ReadError> {
        if let Some(&known) = self.stacks.get(&index) {
            return Ok(known);
        }
        let mut indices = std::mem::take(&mut self.indices);
        indices.clear();
        self.document.stack(index, offset, |location| indices.push(location))?;
        self.stack.clear();
        for &location in &indices {
            let (start, end) = match self.locations.get(&location) {
                Some(&range) => range,
                None => self.location(location, offset)?,
            };
            let left = self.frames_left.checked_sub((end - start) as u64);
            self.frames_left = left.ok_or_else(|| too_many_frames(offset))?;
            self.stack.extend_from_slice(&self.frames[start..end]);
        }
        self.indices = indices;
        let stack = self.tables.intern_stack_leaf_first(&self.stack)?;
        self.stacks.insert(index, stack);
        Ok(stack)
    }

    /// Interns the frames of a location, innermost first.
    fn location(&mut self, index: u64, offset: u64) -> Result<(usize, usize), ReadError> {
        let document = self.document;
        let location = *at(&document.locations, index, "a location", offset)?;
        let mapping = match location.mapping {
            0 => None,
            index => Some(*at(&document.mappings, index, "a mapping", location.offset)?),
        };
        let extras = self.extras(&location)?;
        let start = self.frames.len();
        for line in location.lines() {
            let frame = self.frame(&line, mapping, &location, &extras)?;
            // Attributes belong to the code at the address, which is the innermost function's.
            let frame = match self.frames.len() - start {
                0 => with_extras(frame, &extras),
                _ => frame,
            };
            self.frames.push(self.tables.intern_frame(&frame)?);
        }
        if self.frames.len() == start {
            let frame = self.nameless(mapping, &location)?;
            self.frames.push(self.tables.intern_frame(&with_extras(frame, &extras))?);
        }
        let range = (start, self.frames.len());
        self.locations.insert(index, range);
        Ok(range)
    }

    fn extras(&mut self, location: &Location<'a>) -> Result<Extras, ReadError> {
        let mut extras = Extras::default();
        let mut indices = Vec::new();
        location.each_attribute(|index| indices.push(index));
        for index in indices.into_iter().filter(|&index| index != 0) {
            let attribute = at(&self.document.attributes, index, "an attribute", location.offset)?;
            let Key::Index(name) = attribute.key else { continue };
            let name = self.document.string(name, attribute.offset)?;
            let mut value = None;
            attribute.each_value(|found| value = value.or(Some(found)))?;
            match (std::str::from_utf8(name).unwrap_or_default(), value) {
                (key::OPCODE, Some(Any::Text(text))) => {
                    extras.opcode = Some(self.tables.intern_string(text)?);
                }
                (key::END_LINE, Some(Any::Number(line))) => extras.end_line = Some(line),
                (key::END_COLUMN, Some(Any::Number(column))) => {
                    extras.end_column = u32::try_from(column).ok();
                }
                (key::FRAME_TYPE, Some(Any::Text(text))) => {
                    extras.is_native = text == key::NATIVE.as_bytes();
                }
                _ => {}
            }
        }
        Ok(extras)
    }

    fn frame(
        &mut self,
        line: &Line,
        mapping: Option<Mapping>,
        location: &Location<'a>,
        extras: &Extras,
    ) -> Result<Frame, ReadError> {
        if line.function == 0 {
            return self.nameless(mapping, location);
        }
        let function = *at(&self.document.functions, line.function, "a function", location.offset)?;
        let name = if function.name == 0 { function.system_name } else { function.name };
        let name = self.intern(name, location.offset)?;
        let file = function.file.map(|file| self.intern(file, location.offset)).transpose()?;
        // Programs that profile themselves put source functions into mappings too; those have a file.
        let is_native = extras.is_native || (mapping.is_some() && function.file.unwrap_or(0) == 0);
        // Native code without a mapping is in memory without a name.
        let native =
            if is_native { Some(self.native(&mapping.unwrap_or_default(), location)?) } else { None };
        Ok(Frame {
            file,
            line: line.line,
            column: line.column.checked_sub(1).and_then(|column| u32::try_from(column).ok()),
            native,
            ..Frame::named(name)
        })
    }

    /// A frame of which only the address is known: the address is its name.
    fn nameless(&mut self, mapping: Option<Mapping>, location: &Location<'a>) -> Result<Frame, ReadError> {
        let function = self.tables.intern_string(format!("{:#x}", location.address).as_bytes())?;
        let native = match mapping {
            Some(mapping) => {
                Some(NativeFrame { module: self.intern(mapping.file, location.offset)?, offset: None })
            }
            None => None,
        };
        Ok(Frame { native, ..Frame::named(function) })
    }

    fn native(&mut self, mapping: &Mapping, location: &Location<'a>) -> Result<NativeFrame, ReadError> {
        let module = self.intern(mapping.file, location.offset)?;
        // In a mapping with a range the address is one of the process or of the file, and its distance from the start
        // of the function is not stated. An address of 0 is unknown.
        let is_offset = mapping.limit <= mapping.start && location.address != 0;
        Ok(NativeFrame { module, offset: is_offset.then_some(location.address.cast_signed()) })
    }

    pub(super) fn intern(&mut self, index: u64, offset: u64) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(self.document.string(index, offset)?)?)
    }
}

fn with_extras(frame: Frame, extras: &Extras) -> Frame {
    let Extras { opcode, end_line, end_column, .. } = *extras;
    Frame { opcode, end_line, end_column, ..frame }
}

#[cold]
fn too_many_frames(offset: u64) -> Error {
    let message = "too many frames: expected at most 16 for each byte of the document";
    Error::new(ErrorKind::Limit, NAME, Position::Byte(offset), message)
}
