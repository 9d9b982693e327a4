//! The loop of importers that take one line after the other.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::{
    Context, ProfileSink, Recovery, Sample, Segment, StringId, Tables, Thread, ThreadNames, ValueType,
};

use super::text::Lines;
use crate::{Error, Position, ReadError, ReadOptions, Warning};

/// The reason why a line could not be taken.
pub(crate) enum LineFault {
    /// The line is invalid, with the message of its error.
    Invalid(String),
    /// Reading ends.
    Read(ReadError),
}

impl<E: Into<ReadError>> From<E> for LineFault {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}

/// The part of an importer that its format defines.
pub(crate) trait LineParser {
    /// Takes a line without its line feed.
    ///
    /// # Errors
    /// If the line is invalid, a table is full or the sink fails.
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault>;

    /// A note about the last line, which has this number.
    fn note(&mut self, number: u64) -> Option<String>;

    /// Takes the end of the input.
    ///
    /// # Errors
    /// If a table is full or the sink fails.
    fn end(&mut self, _output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The sink of an importer, with the current segment of the input.
pub(crate) struct LineOutput<'a> {
    options: &'a ReadOptions,
    sink: &'a mut dyn ProfileSink,
    segment: Segment,
    names: ThreadNames,
    recovery: Recovery,
}

impl<'a> LineOutput<'a> {
    /// Begins `segment`.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn begin(
        segment: Segment,
        options: &'a ReadOptions,
        tables: &Tables,
        sink: &'a mut dyn ProfileSink,
    ) -> Result<Self, ReadError> {
        sink.segment(Context { tables, segment: &segment })?;
        let recovery = Recovery { segments: 1, ..Recovery::default() };
        Ok(Self { options, sink, segment, names: ThreadNames::default(), recovery })
    }

    /// Begins a further segment with other value types.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn begin_segment(
        &mut self,
        tables: &Tables,
        value_types: Vec<ValueType>,
    ) -> Result<(), ReadError> {
        self.segment.index = self.recovery.segments;
        self.segment.value_types = value_types;
        self.recovery.segments += 1;
        Ok(self.sink.segment(Context { tables, segment: &self.segment })?)
    }

    /// Passes a sample to the sink.
    ///
    /// # Errors
    /// If the sink fails.
    #[inline]
    pub(crate) fn sample(
        &mut self,
        tables: &Tables,
        sample: &Sample<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.recovery.samples = self.recovery.samples.saturating_add(sample.count);
        Ok(self.sink.sample(Context { tables, segment: &self.segment }, sample)?)
    }

    /// Passes the name of a thread to the sink, unless it is the known one.
    ///
    /// # Errors
    /// If the sink fails.
    #[inline]
    pub(crate) fn name_thread(
        &mut self,
        tables: &Tables,
        thread: Thread,
        name: StringId,
    ) -> Result<(), ReadError> {
        if self.names.name(thread, name) {
            self.sink.thread(Context { tables, segment: &self.segment }, thread, name)?;
        }
        Ok(())
    }

    /// Passes on an entry of metadata.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn state(&mut self, tables: &Tables, key: StringId, value: StringId) -> Result<(), ReadError> {
        Ok(self.sink.metadata(Context { tables, segment: &self.segment }, key, value)?)
    }

    /// Imports all lines. An invalid last line without a line feed is a cut-off end: a warning.
    ///
    /// # Errors
    /// If the input cannot be read, a limit is reached, the sink fails, or a line is invalid and damage is not skipped.
    pub(crate) fn import(
        mut self,
        input: impl BufRead,
        parser: &mut impl LineParser,
    ) -> Result<Recovery, ReadError> {
        let mut lines = Lines::new(input, self.segment.format, &self.options.limits);
        while let Some(line) = lines.next_line()? {
            let length = line.len() as u64;
            match parser.line(line, &mut self) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => {
                    self.recovery.stopped = true;
                    return Ok(self.recovery);
                }
                Err(LineFault::Invalid(message)) => self.invalid(message, length, &lines)?,
                Err(LineFault::Read(error)) => return Err(error),
            }
            if let Some(message) = parser.note(lines.number()) {
                self.recovery.note(Warning::new(message).at(lines.offset()));
            }
        }
        self.recovery.stopped = parser.end(&mut self)?.is_break();
        Ok(self.recovery)
    }

    #[cold]
    fn invalid(
        &mut self,
        message: String,
        lost_bytes: u64,
        lines: &Lines<impl BufRead>,
    ) -> Result<(), ReadError> {
        let number = lines.number();
        if lines.is_terminated() && !self.options.is_lenient() {
            return Err(Error::malformed(self.segment.format, Position::Line(number), message).into());
        }
        let message = format!("{message} (line {number})");
        let warning = if lines.is_terminated() { Warning::new(message) } else { Warning::truncated(message) };
        let warning = warning.at(lines.offset()).losing(lost_bytes);
        self.sink.warning(&warning)?;
        self.recovery.warn(warning);
        Ok(())
    }
}
