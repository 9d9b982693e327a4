//! Resolves the stacks of a document, each once.

use borehole_model::{CodePlaces, Frame, StackId, StringId, Tables};
use hashbrown::HashMap;

use super::layout::key;
use super::read::{Any, AttributeKey, OtlpDocument, OtlpLocation, at};
use crate::ReadError;
use crate::symbols::resolve::{FrameRange, SymbolResolver};

pub(super) struct StackResolver<'d, 'a> {
    pub(super) symbols: SymbolResolver<'d, OtlpDocument<'a>>,
    stacks: HashMap<u64, Option<StackId>>,
    locations: HashMap<u64, FrameRange>,
    /// The locations of the current stack.
    indices: Vec<u64>,
    ranges: Vec<FrameRange>,
}

/// The attributes of a location about its innermost frame.
#[derive(Clone, Copy, Debug, Default)]
struct FrameAttributes {
    opcode: Option<StringId>,
    end_line: Option<i64>,
    end_column: Option<u32>,
    is_native: bool,
}

impl<'d, 'a> StackResolver<'d, 'a> {
    pub(super) fn new(document: &'d OtlpDocument<'a>, places: CodePlaces, tables: &'d mut Tables) -> Self {
        Self {
            symbols: SymbolResolver::new(document, document.files(places), tables),
            stacks: HashMap::new(),
            locations: HashMap::new(),
            indices: Vec::new(),
            ranges: Vec::new(),
        }
    }

    pub(super) fn stack(&mut self, index: u64, offset: u64) -> Result<Option<StackId>, ReadError> {
        if let Some(&known) = self.stacks.get(&index) {
            return Ok(known);
        }
        self.indices.clear();
        self.symbols.document.stack(index, offset, &mut self.indices)?;
        self.ranges.clear();
        for place in 0..self.indices.len() {
            let location = self.indices[place];
            let frames = match self.locations.get(&location) {
                Some(&frames) => frames,
                None => self.location(location, offset)?,
            };
            self.symbols.charge(frames, offset)?;
            self.ranges.push(frames);
        }
        let stack = self.symbols.stack(self.ranges.iter().copied())?;
        self.stacks.insert(index, stack);
        Ok(stack)
    }

    fn location(&mut self, index: u64, offset: u64) -> Result<FrameRange, ReadError> {
        let location = *at(&self.symbols.document.locations, index, "a location", offset)?;
        let FrameAttributes { opcode, end_line, end_column, is_native } = self.attributes(&location)?;
        let frames = self.symbols.location(
            &location.symbol,
            location.lines(),
            // Programs that profile themselves put source functions into mappings too; those have a file.
            |mapping, function| is_native || (mapping.is_some() && !function.has_file()),
            // Attributes belong to the code at the address, which is the innermost function's.
            |frame| Frame { opcode, end_line, end_column, ..frame },
        )?;
        self.locations.insert(index, frames);
        Ok(frames)
    }

    fn attributes(&mut self, location: &OtlpLocation<'a>) -> Result<FrameAttributes, ReadError> {
        let mut known = FrameAttributes::default();
        let document = self.symbols.document;
        let mut indices = Vec::new();
        location.each_attribute(|index| indices.push(index));
        for index in indices.into_iter().filter(|&index| index != 0) {
            let attribute = at(&document.attributes, index, "an attribute", location.symbol.offset)?;
            let AttributeKey::Index(name) = attribute.key else { continue };
            let name = document.string(name, attribute.offset)?;
            let mut value = None;
            attribute.each_value(|found| value = value.or(Some(found)))?;
            match (std::str::from_utf8(name).unwrap_or_default(), value) {
                (key::OPCODE, Some(Any::Text(text))) => {
                    known.opcode = Some(self.symbols.tables.intern_string(text)?);
                }
                (key::END_LINE, Some(Any::Number(line))) => known.end_line = Some(line),
                (key::END_COLUMN, Some(Any::Number(column))) => {
                    known.end_column = u32::try_from(column).ok();
                }
                (key::FRAME_TYPE, Some(Any::Text(text))) => {
                    known.is_native = text == key::NATIVE.as_bytes();
                }
                _ => {}
            }
        }
        Ok(known)
    }
}
