//! Imports calls into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_memory::HeldBytes as _;
use borehole_model::{
    Frame, Measure, ProfileSink, Recovery, Sample, Segment, StackId, StringId, TableFull, Tables, ValueType,
};

use super::NAME;
use super::read::{self, TraceLine, TracedCall};
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::lines::text::excerpt;
use crate::{Error, Position, ReadError, ReadOptions};

/// The number of open calls between checks of their memory.
const CHECKED_DEPTH: usize = 1 << 12;

/// Reads a trace: each stretch of time with one stack is a sample, with the values `calls/count`, which is 1 of the first one of a
/// call, and `wall/nanoseconds`, the default.
///
/// A caller has the file and line at which it made the call; the leaf has none, because the format does not say where functions are.
/// An include is a call of the included file. Arguments, return values and assignments are not read. Calls that do not end last
/// until the end of the trace.
///
/// # Errors
/// If a line is none of a trace and damage is not skipped, a limit is reached, the input cannot be read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, xdebug_trace};
/// use borehole_model::{Count, Tables};
///
/// let text = b"TRACE START [2026-11-29 01:11:57.508636]
///     0.0002     398672   -> {main}() /a.php:0
///     0.0010     398672     -> usleep($microseconds = 2000) /a.php:6
///     0.0031     394208
/// TRACE END   [2026-11-29 01:11:57.516102]
/// ";
/// let mut count = Count::default();
/// let recovery = xdebug_trace::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 2);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let segment = Segment {
        format: NAME,
        has_times: true,
        is_ordered: true,
        value_types: vec![ValueType::new("calls", "count"), ValueType::new("wall", "nanoseconds")],
        default_measure: Some(Measure::Value(1)),
        is_uncounted: true,
        ..Segment::default()
    };
    let output = LineOutput::begin(segment, options, tables, sink)?;
    let mut calls =
        TracedCalls { tables, options, parse: None, open: Vec::new(), at_ns: 0, lines: 0, unended: 0 };
    output.import(input, &mut calls)
}

/// A parser of lines.
type ParseLine = for<'l> fn(&'l [u8]) -> Option<TraceLine<'l>>;

/// The calls in progress.
struct TracedCalls<'a> {
    tables: &'a mut Tables,
    options: &'a ReadOptions,
    /// The parser of the format, which the first line decides on.
    parse: Option<ParseLine>,
    open: Vec<OpenTracedCall>,
    /// Up to when samples were passed.
    at_ns: i64,
    lines: u64,
    /// Calls in progress at the end of the input.
    unended: usize,
}

/// A call in progress.
struct OpenTracedCall {
    depth: u32,
    function: StringId,
    /// The stack with this call as leaf.
    stack: StackId,
    /// The stack of its callers, and their places.
    callers: Option<StackId>,
    /// Whether a sample has counted it.
    is_counted: bool,
}

impl LineParser for TracedCalls<'_> {
    fn line(&mut self, line: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        self.lines += 1;
        let computerized: ParseLine = read::computerized;
        let parse = *self
            .parse
            .get_or_insert_with(|| if read::is_computerized(line) { computerized } else { read::textual });
        let Some(parsed) = parse(line) else {
            return Err(LineFault::Invalid(format!("expected a call or its end, found {:?}", excerpt(line))));
        };
        match parsed {
            TraceLine::Begin(call) => {
                if self.end_down_to(call.depth, call.time_ns, output)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                let shown = self.show(call.time_ns, output)?;
                self.begin(call)?;
                self.check()?;
                Ok(shown)
            }
            TraceLine::End { depth, time_ns } => Ok(self.end_down_to(depth, time_ns, output)?),
            TraceLine::Finish { time_ns } => Ok(self.end_down_to(0, time_ns, output)?),
            TraceLine::Other => Ok(ControlFlow::Continue(())),
        }
    }

    fn note(&mut self, _number: u64) -> Option<String> {
        None
    }

    fn end(&mut self, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        self.unended = self.open.len();
        self.end_down_to(0, self.at_ns, output)
    }
}

impl TracedCalls<'_> {
    fn begin(&mut self, call: TracedCall<'_>) -> Result<(), TableFull> {
        let function = self.tables.intern_string(call.function)?;
        let callers = match self.open.last() {
            Some(caller) => {
                let file = Some(self.tables.intern_string(call.call_file)?);
                let line = (call.call_line > 0).then_some(call.call_line);
                let frame = Frame { file, line, ..Frame::named(caller.function) };
                let (frame, callers) = (self.tables.intern_frame(&frame)?, caller.callers);
                Some(self.tables.intern_stack(callers, frame)?)
            }
            None => None,
        };
        let frame = self.tables.intern_frame(&Frame::named(function))?;
        let stack = self.tables.intern_stack(callers, frame)?;
        self.open.push(OpenTracedCall { depth: call.depth, function, stack, callers, is_counted: false });
        Ok(())
    }

    /// Ends the calls of `depth` and those that they made.
    fn end_down_to(
        &mut self,
        depth: u32,
        time_ns: i64,
        output: &mut LineOutput<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        while self.open.last().is_some_and(|call| call.depth >= depth) {
            let shown = self.show(time_ns, output)?;
            self.open.pop();
            if shown.is_break() {
                return Ok(shown);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes the time of the innermost call until `until_ns`.
    fn show(&mut self, until_ns: i64, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        let from_ns = self.at_ns;
        self.at_ns = until_ns.max(from_ns);
        let Some(call) = self.open.last_mut() else { return Ok(ControlFlow::Continue(())) };
        let lasts_ns = until_ns.saturating_sub(from_ns).max(0);
        let calls = i64::from(!std::mem::replace(&mut call.is_counted, true));
        if calls == 0 && lasts_ns == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let values = &[calls, lasts_ns];
        let sample =
            Sample { stack: Some(call.stack), count: 1, time_ns: Some(from_ns), values, ..Sample::default() };
        output.sample(self.tables, &sample)
    }

    /// Whether the calls in progress take no more memory than allowed.
    fn check(&self) -> Result<(), Error> {
        if !self.open.len().is_multiple_of(CHECKED_DEPTH) {
            return Ok(());
        }
        let position = Position::Line(self.lines);
        self.options.limits.check(self.open.held_bytes()).map_err(|over| Error::memory(NAME, position, over))
    }
}
