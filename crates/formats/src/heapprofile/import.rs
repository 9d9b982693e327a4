//! Imports a document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables, ValueType,
};

use super::NAME;
use super::read::{TreeStep, TreeSteps};
use crate::documents::whole::{DocumentDamage, read_whole};
use crate::v8::frames::CallFrame;
use crate::{Error, Position, ReadError, ReadOptions};

/// The number of open functions between checks of their memory.
const CHECKED_DEPTH: usize = 1 << 12;

/// Reads a heap profile of V8: a sample for each function as it was called, with the bytes that it allocated and that were in use
/// at the end, `inuse_space/bytes`.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, heapprofile};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0,"children":[
///     {"callFrame":{"functionName":"f","url":"/f.js","lineNumber":0},"selfSize":4096,"children":[]}]}}"#;
/// let mut count = Count::default();
/// let recovery = heapprofile::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let text = read_whole(NAME, input, &options.limits)?;
    let value_types = vec![ValueType::new("inuse_space", "bytes")];
    let segment = Segment { format: NAME, value_types, is_uncounted: true, ..Segment::default() };
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments = 1;
    let mut steps = TreeSteps::new(&text);
    let mut open = OpenFunctions::default();
    while !damage.recovery.stopped {
        let step = match steps.next() {
            Ok(Some(step)) => step,
            Ok(None) if open.has_begun => break,
            Ok(None) => {
                damage.meet(Error::malformed(NAME, Position::Whole, "missing field `head`"), 0)?;
                break;
            }
            Err(error) => {
                damage.meet(error, 0)?;
                break;
            }
        };
        if let Some((stack, bytes)) = open.take(step, tables)? {
            let sample = Sample { stack, count: 1, values: &[bytes], ..Sample::default() };
            damage.recovery.samples += 1;
            damage.recovery.stopped = sink.sample(Context { tables, segment: &segment }, &sample)?.is_break();
        }
        if (open.functions.len() + 1).is_multiple_of(CHECKED_DEPTH) {
            let held = text.len().saturating_add(open.held_bytes());
            let position = || Position::Line(steps.line());
            options.limits.check(held).map_err(|over| Error::memory(NAME, position(), over))?;
        }
    }
    damage.finish(sink)
}

/// The functions from the root to the one being read.
#[derive(Debug, Default)]
struct OpenFunctions {
    functions: Vec<OpenFunction>,
    has_begun: bool,
}

/// A function whose end has not been read.
#[derive(Debug, Default)]
struct OpenFunction {
    frame: CallFrame,
    bytes: f64,
    /// Its stack, once one of those that it called is read, or its end.
    stack: Option<Option<StackId>>,
}

impl OpenFunctions {
    /// Takes a step; returns the stack of a function that ends, with its bytes if it has any.
    fn take(
        &mut self,
        step: TreeStep,
        tables: &mut Tables,
    ) -> Result<Option<(Option<StackId>, i64)>, TableFull> {
        match step {
            TreeStep::Begin => {
                self.has_begun = true;
                self.stack(tables)?;
                self.functions.push(OpenFunction::default());
            }
            TreeStep::Function(frame) => {
                if let Some(function) = self.functions.last_mut() {
                    function.frame = frame;
                }
            }
            TreeStep::SelfSize(bytes) => {
                if let Some(function) = self.functions.last_mut() {
                    function.bytes = bytes;
                }
            }
            TreeStep::End => {
                let stack = self.stack(tables)?;
                let bytes = self.functions.pop().map_or(0.0, |function| function.bytes);
                return Ok((bytes != 0.0).then(|| (stack, whole(bytes))));
            }
        }
        Ok(None)
    }

    /// The stack of the function being read.
    fn stack(&mut self, tables: &mut Tables) -> Result<Option<StackId>, TableFull> {
        let mut caller = None;
        let Some((last, callers)) = self.functions.split_last_mut() else { return Ok(None) };
        if let Some(stack) = last.stack {
            return Ok(stack);
        }
        if let Some(function) = callers.last() {
            caller = function.stack.flatten();
        }
        let stack = if callers.is_empty() && last.frame.is_root() {
            None
        } else {
            let frame = last.frame.intern(tables)?;
            Some(tables.intern_stack(caller, frame)?)
        };
        last.stack = Some(stack);
        Ok(stack)
    }

    fn held_bytes(&self) -> usize {
        self.functions.capacity() * size_of::<OpenFunction>()
    }
}

/// A number of bytes. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn whole(bytes: f64) -> i64 {
    bytes.round() as i64
}
