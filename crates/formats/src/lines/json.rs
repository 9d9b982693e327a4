//! The loop of importers that take one JSON object per line, each with its type.

use std::borrow::Cow;
use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::Recovery;
use serde::Deserialize;

use super::text::Lines;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions, Warning, WarningKind};

/// The reason why a line could not be taken.
pub(crate) enum JsonLineFault {
    /// The line is invalid, with the kind and the message of its error.
    Invalid {
        kind: ErrorKind,
        message: String,
        /// Whether the line may be the beginning of a valid one.
        is_cut: bool,
    },
    /// Reading ends.
    Read(ReadError),
}

impl JsonLineFault {
    /// A line of valid JSON with an invalid meaning.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Invalid { kind: ErrorKind::Malformed, message: message.into(), is_cut: false }
    }

    /// The parser's error in `line`, without the line number 1 that it gives to every line.
    pub(crate) fn parse(error: &serde_json::Error, line: &[u8]) -> Self {
        let text = error.to_string();
        let cause = text.split(" at line 1 ").next().unwrap_or_default();
        let message = format!("invalid line: {cause} at column {}", error.column());
        // The parser takes a sign or a point at the end for a bad number, not for a number that is cut off.
        let number_is_cut =
            matches!(line.last(), Some(b'-' | b'+' | b'.' | b'e')) && cause == "invalid number";
        let is_cut = error.is_eof() || number_is_cut;
        Self::Invalid { kind: ErrorKind::Malformed, message, is_cut }
    }
}

impl<E: Into<ReadError>> From<E> for JsonLineFault {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}

/// The part of an importer that its format defines.
pub(crate) trait JsonLineParser {
    /// Takes a line that is not blank, with its 1-based number.
    ///
    /// # Errors
    /// If the line is invalid, a limit is reached, a table is full or the sink fails.
    fn line(&mut self, line: &[u8], number: u64) -> Result<ControlFlow<()>, JsonLineFault>;

    /// Takes the warning about a line that is skipped.
    ///
    /// # Errors
    /// If the sink fails.
    fn skipped(&mut self, warning: Warning) -> Result<(), ReadError>;
}

/// The reason why there are no more lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinesEnd {
    /// The parser stopped.
    Stopped,
    /// The input ended within its last line.
    CutOff,
    /// The input ended at this offset.
    At(u64),
}

/// Passes all lines to `parser`. A last line that is cut off is skipped.
///
/// # Errors
/// If the input cannot be read, a limit is reached, the sink fails, or a line is invalid and damage is not skipped.
pub(crate) fn import(
    input: impl BufRead,
    format: &'static str,
    options: &ReadOptions,
    parser: &mut impl JsonLineParser,
) -> Result<LinesEnd, ReadError> {
    let mut lines = Lines::new(input, format, &options.limits);
    let mut skipped = 0;
    for number in 1.. {
        let Some(line) = lines.next_line()? else { break };
        let length = line.len() as u64;
        match line.trim_ascii_start().first() {
            None => continue,
            Some(b'{') => {}
            // Nobody sees why so many lines are skipped, and asking a parser takes far longer than reading them.
            Some(_) if skipped >= Recovery::MAX_WARNINGS => {
                parser.skipped(Warning::new("invalid line").at(lines.offset()).losing(length))?;
                continue;
            }
            Some(_) => {}
        }
        let (kind, message, is_cut) = match parser.line(line, number) {
            Ok(ControlFlow::Continue(())) => continue,
            Ok(ControlFlow::Break(())) => return Ok(LinesEnd::Stopped),
            Err(JsonLineFault::Read(error)) => return Err(error),
            Err(JsonLineFault::Invalid { kind, message, is_cut }) => (kind, message, is_cut),
        };
        let is_cut = is_cut && !lines.is_terminated();
        let message = match is_cut {
            true => format!("truncated: line {number} is cut off"),
            false if options.is_lenient() => format!("{message} (line {number})"),
            false => return Err(Error::new(kind, format, Position::Line(number), message).into()),
        };
        skipped += 1;
        let kind = if is_cut { WarningKind::Truncated } else { kind.into() };
        parser.skipped(Warning::new(message).of_kind(kind).at(lines.offset()).losing(length))?;
        if is_cut {
            return Ok(LinesEnd::CutOff);
        }
    }
    Ok(LinesEnd::At(lines.offset()))
}

/// The type of a line.
///
/// Lines are parsed twice, once for their type and once for their keys: a tagged enum would copy every line into a tree
/// of values first.
///
/// # Errors
/// If the line is not an object with a type.
pub(crate) fn line_type(line: &[u8]) -> Result<Cow<'_, str>, serde_json::Error> {
    #[derive(Deserialize)]
    struct TypedLine<'a> {
        #[serde(rename = "type", borrow)]
        name: Cow<'a, str>,
    }
    serde_json::from_slice(line).map(|TypedLine { name }| name)
}
