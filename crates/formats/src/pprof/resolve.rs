//! Resolves the references of a document's samples, each location once.

use borehole_model::{
    Frame, FrameId, Label as ModelLabel, LabelValue, NativeFrame, Sample as ModelSample, StackId, Status,
    StringId, Tables,
};
use hashbrown::HashMap;

use super::NAME;
use super::layout::key;
use super::prune::{Cut, Pruning};
use super::read::{Document, Function, Label, Line, Mapping, Sample, malformed};
use crate::{Error, ErrorKind, Position, ReadError};

/// Resolves the references of samples, each location once.
pub(super) struct Resolver<'d> {
    document: &'d Document,
    pub(super) tables: &'d mut Tables,
    pruning: Pruning,
    locations: HashMap<u64, Place>,
    frames: Vec<FrameId>,
    places: Vec<Place>,
    stack: Vec<FrameId>,
    labels: Vec<ModelLabel>,
    frames_left: u64,
}

/// The frames of a location in `frames`, and the part of them that is dropped.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    end: usize,
    cut: Cut,
}

/// A sample without its numbers.
pub(super) struct Resolved {
    pub(super) sample: ModelSample<'static>,
    pub(super) thread_name: Option<StringId>,
}

impl<'d> Resolver<'d> {
    /// The number of frames that any document may have, beyond which frames are limited per byte.
    ///
    /// A location stands for all functions inlined at it, so two bytes in a sample can name thousands of frames. Real
    /// profiles stay below one frame per byte; this bounds time and memory by the size of the document.
    const FRAMES_FREE: u64 = 1 << 20;
    const FRAMES_PER_BYTE: u64 = 16;

    pub(super) fn new(document: &'d Document, tables: &'d mut Tables, pruning: Pruning) -> Self {
        let frames_left =
            Self::FRAMES_PER_BYTE.saturating_mul(document.len).saturating_add(Self::FRAMES_FREE);
        Self {
            document,
            tables,
            pruning,
            locations: HashMap::new(),
            frames: Vec::new(),
            places: Vec::new(),
            stack: Vec::new(),
            labels: Vec::new(),
            frames_left,
        }
    }

    pub(super) fn resolve(&mut self, record: &Sample) -> Result<Resolved, ReadError> {
        let value_count = self.document.sample_types.len();
        if record.values.len() != value_count {
            let found = record.values.len();
            let message = format!("expected {value_count} values in a sample, found {found}");
            return Err(malformed(record.offset, message).into());
        }
        let stack = self.stack(record)?;
        let mut resolved = Resolved {
            sample: ModelSample { stack, thread: self.thread(record)?, ..ModelSample::default() },
            thread_name: None,
        };
        self.labels.clear();
        for label in &record.labels {
            if !self.take_property(label, record.offset, &mut resolved)? {
                let label = self.label(label, record.offset)?;
                self.labels.push(label);
            }
        }
        if !self.labels.is_empty() {
            resolved.sample.labels = Some(self.tables.intern_labels(&self.labels)?);
        }
        Ok(resolved)
    }

    fn stack(&mut self, record: &Sample) -> Result<Option<StackId>, ReadError> {
        self.places.clear();
        for &id in &record.locations {
            let place = match self.locations.get(&id) {
                Some(&place) => place,
                None => self.location(id, record.offset)?,
            };
            let left = self.frames_left.checked_sub((place.end - place.start) as u64);
            self.frames_left = left.ok_or_else(|| too_many_frames(record.offset))?;
            self.places.push(place);
        }
        let dropped = Cut::dropped(self.places.iter().map(|place| place.cut));
        self.stack.clear();
        for place in &self.places[dropped..] {
            self.stack.extend_from_slice(&self.frames[place.start..place.end]);
        }
        Ok(self.tables.intern_stack_leaf_first(&self.stack)?)
    }

    /// Interns the frames of a location, innermost first.
    fn location(&mut self, id: u64, sample_offset: u64) -> Result<Place, ReadError> {
        let document = self.document;
        let location = document
            .locations
            .get(&id)
            .ok_or_else(|| malformed(sample_offset, format!("expected the id of a location, found {id}")))?;
        let mapping = match location.mapping {
            0 => None,
            id => Some(document.mappings.get(&id).ok_or_else(|| {
                malformed(location.offset, format!("expected the id of a mapping, found {id}"))
            })?),
        };
        let start = self.frames.len();
        let lines = document.lines(location);
        let cut = self.pruning.cut(document, lines);
        for line in &lines[cut.lines()..] {
            let frame = match line.function {
                0 => self.nameless_frame(location.address, mapping, location.offset)?,
                id => {
                    let function = document.functions.get(&id).ok_or_else(|| {
                        malformed(location.offset, format!("expected the id of a function, found {id}"))
                    })?;
                    self.frame(function, line, mapping, location.address, location.offset)?
                }
            };
            self.frames.push(self.tables.intern_frame(&frame)?);
        }
        if self.frames.len() == start {
            let frame = self.nameless_frame(location.address, mapping, location.offset)?;
            self.frames.push(self.tables.intern_frame(&frame)?);
        }
        let place = Place { start, end: self.frames.len(), cut };
        self.locations.insert(id, place);
        Ok(place)
    }

    fn frame(
        &mut self,
        function: &Function,
        line: &Line,
        mapping: Option<&Mapping>,
        address: u64,
        offset: u64,
    ) -> Result<Frame, ReadError> {
        let name = match function.name {
            0 => function.system_name,
            name => name,
        };
        let function_name = self.intern(name, offset)?;
        let file = function.file.map(|file| self.intern(file, offset)).transpose()?;
        let native = mapping.filter(|mapping| is_native(mapping, function));
        let native = native.map(|mapping| self.native(mapping, address, offset)).transpose()?;
        Ok(Frame {
            file,
            // reli writes -1 for an unknown line.
            line: line.line.filter(|&line| line != -1),
            column: line.column.checked_sub(1).and_then(|column| u32::try_from(column).ok()),
            native,
            ..Frame::named(function_name)
        })
    }

    /// A frame of which only the address is known: the address is its name.
    fn nameless_frame(
        &mut self,
        address: u64,
        mapping: Option<&Mapping>,
        offset: u64,
    ) -> Result<Frame, ReadError> {
        let function = self.tables.intern_string(format!("{address:#x}").as_bytes())?;
        let native = match mapping {
            Some(mapping) => {
                let module = self.intern(mapping.file, offset)?;
                Some(NativeFrame { module, offset: None })
            }
            None => None,
        };
        Ok(Frame { native, ..Frame::named(function) })
    }

    fn native(&mut self, mapping: &Mapping, address: u64, offset: u64) -> Result<NativeFrame, ReadError> {
        let module = self.intern(mapping.file, offset)?;
        // In a mapping with a range the address is absolute, and the file does not state its distance from the start of
        // the function. An address of 0 is unknown.
        let known = !has_range(mapping) && address != 0;
        let offset = known.then_some(address.cast_signed());
        Ok(NativeFrame { module, offset })
    }

    fn intern(&mut self, index: i64, offset: u64) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(self.document.string(index, offset)?)?)
    }

    /// The thread named by a sample's labels.
    fn thread(&self, record: &Sample) -> Result<Option<u64>, Error> {
        for label in &record.labels {
            let key = self.document.string(label.key, record.offset)?;
            if (key == key::THREAD.as_bytes() || key == key::THREAD_OF_PERF.as_bytes())
                && let Some(number) = plain_number(label)
            {
                return Ok(Some(number.cast_unsigned()));
            }
        }
        Ok(None)
    }

    /// Takes a label that stands for a property of the sample; false if it is an ordinary label.
    fn take_property(
        &mut self,
        label: &Label,
        offset: u64,
        resolved: &mut Resolved,
    ) -> Result<bool, ReadError> {
        let key = self.document.string(label.key, offset)?;
        let Ok(key) = std::str::from_utf8(key) else { return Ok(false) };
        let sample = &mut resolved.sample;
        match (key, plain_number(label), label.text) {
            (key::PROCESS, Some(number), _) if sample.process.is_none() => sample.process = Some(number),
            (key::THREAD | key::THREAD_OF_PERF, Some(number), _) => {
                return Ok(sample.thread == Some(number.cast_unsigned()));
            }
            (key::INTERPRETER, Some(number), _) if sample.interpreter.is_none() => {
                sample.interpreter = Some(number.cast_unsigned());
            }
            (key::STATUS, _, Some(text)) => {
                let Some(flag) = status_flag(self.document.string(text, offset)?) else { return Ok(false) };
                sample.status = Some(Status(sample.status.unwrap_or_default().0 | flag.0));
            }
            (key::THREAD_NAME, _, Some(text)) => {
                if sample.thread.is_none() {
                    return Ok(false);
                }
                resolved.thread_name = Some(self.intern(text, offset)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn label(&mut self, label: &Label, offset: u64) -> Result<ModelLabel, ReadError> {
        let key = self.intern(label.key, offset)?;
        let value = match label.text {
            Some(text) if text != 0 || label.number.is_none() => LabelValue::Text(self.intern(text, offset)?),
            _ => {
                let unit = (label.unit != 0).then(|| self.intern(label.unit, offset)).transpose()?;
                LabelValue::Number { value: label.number.unwrap_or(0), unit }
            }
        };
        Ok(ModelLabel { key, value })
    }
}

#[cold]
fn too_many_frames(offset: u64) -> Error {
    let message = "too many frames: expected at most 16 for each byte of the document";
    Error::new(ErrorKind::Limit, NAME, Position::Byte(offset), message)
}

/// Whether frames of `function` in `mapping` are native.
///
/// Programs that profile themselves (Go) put source functions into mappings too; those have a file.
fn is_native(mapping: &Mapping, function: &Function) -> bool {
    function.file.unwrap_or(0) == 0 || (!has_range(mapping) && mapping.file != 0)
}

/// Whether a mapping states its address range. The exporter's mappings do not: it has only offsets in functions.
const fn has_range(mapping: &Mapping) -> bool {
    mapping.limit > mapping.start
}

/// The value of a label that is a number without a unit.
fn plain_number(label: &Label) -> Option<i64> {
    label.number.filter(|_| label.unit == 0 && label.text.unwrap_or(0) == 0)
}

/// The flag of a status; the empty text is a status without flags.
fn status_flag(name: &[u8]) -> Option<Status> {
    if name.is_empty() { Some(Status::default()) } else { Status::flag(name) }
}
