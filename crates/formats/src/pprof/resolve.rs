//! Resolves the references of a document's samples, each location once.

use borehole_model::{Label, LabelValue, Sample, StackId, Status, Tables};
use hashbrown::HashMap;

use super::layout::key;
use super::prune::{Cut, Pruning};
use super::read::{PprofDocument, PprofLabel, PprofSample, malformed};
use crate::documents::samples::ResolvedSample;
use crate::symbols::read::{SymbolFunction, SymbolMapping};
use crate::symbols::resolve::{FrameRange, StatedFiles, SymbolDocument as _, SymbolResolver};
use crate::{Error, ReadError};

/// Resolves samples.
pub(super) struct SampleResolver<'d> {
    pub(super) symbols: SymbolResolver<'d, PprofDocument>,
    pruning: Pruning,
    /// By location: its frames, and the part of them that is dropped.
    known: HashMap<u64, (FrameRange, Cut)>,
    /// Those of the current stack.
    locations: Vec<(FrameRange, Cut)>,
    labels: Vec<Label>,
}

impl<'d> SampleResolver<'d> {
    pub(super) fn new(
        document: &'d PprofDocument,
        files: StatedFiles,
        tables: &'d mut Tables,
        pruning: Pruning,
    ) -> Self {
        Self {
            symbols: SymbolResolver::new(document, files, tables),
            pruning,
            known: HashMap::new(),
            locations: Vec::new(),
            labels: Vec::new(),
        }
    }

    pub(super) fn resolve(&mut self, record: &PprofSample) -> Result<ResolvedSample, ReadError> {
        let (expected, found) = (self.symbols.document.sample_types.len(), record.values.len());
        if found != expected {
            let message = format!("expected {expected} values in a sample, found {found}");
            return Err(malformed(record.offset, message).into());
        }
        let (stack, thread) = (self.stack(record)?, self.thread(record)?);
        let mut resolved =
            ResolvedSample { sample: Sample { stack, thread, ..Sample::default() }, thread_name: None };
        self.labels.clear();
        for label in &record.labels {
            if !self.take_property(label, record.offset, &mut resolved)? {
                let label = self.label(label, record.offset)?;
                self.labels.push(label);
            }
        }
        if !self.labels.is_empty() {
            resolved.sample.labels = Some(self.symbols.tables.intern_labels(&self.labels)?);
        }
        Ok(resolved)
    }

    fn stack(&mut self, record: &PprofSample) -> Result<Option<StackId>, ReadError> {
        self.locations.clear();
        for &id in &record.locations {
            let location = match self.known.get(&id) {
                Some(&known) => known,
                None => self.location(id, record.offset)?,
            };
            self.symbols.charge(location.0, record.offset)?;
            self.locations.push(location);
        }
        let dropped = Cut::dropped(self.locations.iter().map(|(_, cut)| *cut));
        self.symbols.stack(self.locations[dropped..].iter().map(|(frames, _)| *frames))
    }

    fn location(&mut self, id: u64, offset: u64) -> Result<(FrameRange, Cut), ReadError> {
        let document = self.symbols.document;
        let location = document.location(id, offset)?;
        let lines = document.lines(location);
        let cut = self.pruning.cut(document, lines);
        let lines = lines[cut.lines()..].iter().copied();
        let frames = self.symbols.location(&location.symbol, lines, is_native, |frame| frame)?;
        self.known.insert(id, (frames, cut));
        Ok((frames, cut))
    }

    /// The thread named by a sample's labels.
    fn thread(&self, record: &PprofSample) -> Result<Option<u64>, Error> {
        for label in &record.labels {
            let key = self.symbols.document.string(label.key, record.offset)?;
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
        label: &PprofLabel,
        offset: u64,
        resolved: &mut ResolvedSample,
    ) -> Result<bool, ReadError> {
        let key = self.symbols.document.string(label.key, offset)?;
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
                let Some(flag) = status_flag(self.symbols.document.string(text, offset)?) else {
                    return Ok(false);
                };
                sample.status = Some(Status(sample.status.unwrap_or_default().0 | flag.0));
            }
            (key::THREAD_NAME, _, Some(text)) => {
                if sample.thread.is_none() {
                    return Ok(false);
                }
                resolved.thread_name = Some(self.symbols.intern(text, offset)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn label(&mut self, label: &PprofLabel, offset: u64) -> Result<Label, ReadError> {
        let key = self.symbols.intern(label.key, offset)?;
        let value = match label.text {
            Some(text) if text != 0 || label.number.is_none() => {
                LabelValue::Text(self.symbols.intern(text, offset)?)
            }
            _ => {
                let unit = (label.unit != 0).then(|| self.symbols.intern(label.unit, offset)).transpose()?;
                LabelValue::Number { value: label.number.unwrap_or(0), unit }
            }
        };
        Ok(Label { key, value })
    }
}

/// Whether frames of `function` in `mapping` are native.
///
/// Programs that profile themselves (Go) put source functions into mappings too; those have a file. The exporter's
/// mappings have a name and no address range, because it knows only offsets in functions.
fn is_native(mapping: Option<&SymbolMapping>, function: &SymbolFunction) -> bool {
    mapping.is_some_and(|mapping| !function.has_file() || (!mapping.has_range() && mapping.file != 0))
}

/// The value of a label that is a number without a unit.
fn plain_number(label: &PprofLabel) -> Option<i64> {
    label.number.filter(|_| label.unit == 0 && label.text.unwrap_or(0) == 0)
}

/// The flag of a status; the empty text is a status without flags.
fn status_flag(name: &[u8]) -> Option<Status> {
    if name.is_empty() { Some(Status::default()) } else { Status::flag(name) }
}
