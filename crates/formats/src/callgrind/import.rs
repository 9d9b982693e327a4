//! Imports a profile into the model.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use borehole_model::{
    Frame, FrameId, NativeFrame, ProfileSink, Recovery, Sample, Segment, StringId, TableFull, Tables,
};
use hashbrown::HashMap;

use super::NAME;
use super::events::{FileEvents, FileHead};
use super::read::{self, FileLine, NameKey, NumberedName, Positions, is_known};
use crate::lines::import::{LineFault, LineOutput, LineParser};
use crate::lines::text::{excerpt, head_of};
use crate::sums::calls::RootStacks;
use crate::{Error, Limits, Position, ReadError, ReadOptions};

/// The bytes from the start of an input that have its events.
const HEAD_BYTES: usize = 64 << 10;

/// The number of functions and names between checks of their memory.
const CHECKED_ROWS: usize = 1024;

/// Reads costs of lines and calls, as Callgrind, Cachegrind, Xdebug and others write them.
///
/// A line with costs is a stack of its function alone. A call is a stack of the caller, at the line of the call, and the
/// function: its values are the costs with all that was called (`Ir_total` beside `Ir`), and the number of calls. A function that
/// nobody calls has the sum of its lines and calls. So the numbers of leaves are those of `callgrind_annotate`, exclusive and
/// inclusive; longer paths are not known.
///
/// # Errors
/// If a line is invalid and damage is not skipped, a limit is reached, the input cannot be read, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, callgrind};
/// use borehole_model::{Count, Tables};
///
/// let text = b"events: Ir\nfn=main\n3 10\ncfn=f\ncalls=2 7\n4 32\n\nfn=f\n7 32\n";
/// let mut count = Count::default();
/// let recovery = callgrind::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// // Two lines, a call, and the sum of `main`.
/// assert_eq!(recovery.samples, 4);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let (start, rest) =
        head_of(input, HEAD_BYTES).map_err(|error| Error::io(NAME, Position::Whole, error))?;
    let head = head(&start);
    let events = head.events();
    let mut metadata = Vec::new();
    for (key, value) in [("creator", &head.creator), ("command line", &head.command)] {
        if !value.is_empty() {
            metadata.push((tables.intern_string(key.as_bytes())?, tables.intern_string(value)?));
        }
    }
    let mut segment = Segment { format: NAME, metadata, ..Segment::default() };
    events.describe(&mut segment);
    let output = LineOutput::begin(segment, options, tables, sink)?;
    let mut importer = Importer {
        tables,
        limits: options.limits,
        head: FileHead { events: Vec::new(), ..head },
        costs: vec![0; events.count()],
        events,
        values: Vec::new(),
        positions: Positions::default(),
        names: Default::default(),
        place: CodePlace::default(),
        called: CodePlace::default(),
        calls: None,
        functions: HashMap::new(),
        sums: Vec::new(),
        roots: RootStacks::default(),
    };
    output.import(io::Read::chain(io::Cursor::new(start), rest), &mut importer)
}

/// The headers up to the events.
fn head(start: &[u8]) -> FileHead {
    let mut head = FileHead::default();
    for text in start.split(|&byte| byte == b'\n') {
        if let Some(FileLine::Header(key, value)) = read::line(text) {
            head.take(key, value);
            if key == b"events" {
                break;
            }
        }
    }
    head
}

/// Where code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct CodePlace {
    object: Option<StringId>,
    file: Option<StringId>,
    function: Option<StringId>,
}

impl CodePlace {
    fn frame(&self, line: u64, tables: &mut Tables) -> Result<FrameId, TableFull> {
        let function = match self.function {
            Some(function) => function,
            None => tables.intern_string(super::write::UNKNOWN)?,
        };
        let line = i64::try_from(line).ok().filter(|&line| line > 0);
        let native = self.object.map(|module| NativeFrame { module, offset: None, file_offset: None });
        tables.intern_frame(&Frame { file: self.file, line, native, ..Frame::named(function) })
    }
}

/// The costs of a function's lines and calls.
struct FunctionSum {
    place: CodePlace,
    costs: Vec<i64>,
    is_called: bool,
}

struct Importer<'a> {
    tables: &'a mut Tables,
    limits: Limits,
    head: FileHead,
    events: FileEvents,
    /// The costs of the line being read.
    costs: Vec<i64>,
    /// The values of the sample being delivered.
    values: Vec<i64>,
    positions: Positions,
    /// Names by number: of objects, files and functions.
    names: [HashMap<u64, Option<StringId>>; 3],
    place: CodePlace,
    called: CodePlace,
    /// The number of calls that the next line has the cost of.
    calls: Option<u64>,
    /// The indexes of `sums`, by file and function.
    functions: HashMap<[Option<StringId>; 2], usize>,
    sums: Vec<FunctionSum>,
    roots: RootStacks,
}

impl LineParser for Importer<'_> {
    fn line(&mut self, text: &[u8], output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, LineFault> {
        match read::line(text) {
            None => return Err(LineFault::Invalid(bad_line(text))),
            Some(FileLine::Nothing) => {}
            Some(FileLine::Header(key, value)) => self.header(key, value, output)?,
            Some(FileLine::Name(key, value)) => self.name(key, value)?,
            Some(FileLine::Calls(count)) => self.calls = Some(count),
            Some(FileLine::Costs(text)) => {
                let Some(line) = self.positions.costs(text, &mut self.costs) else {
                    self.calls = None;
                    return Err(LineFault::Invalid(bad_line(text)));
                };
                return Ok(match self.calls.take() {
                    Some(calls) => self.call(line, calls, output)?,
                    None => self.own(line, output)?,
                });
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn note(&mut self, _number: u64) -> Option<String> {
        None
    }

    /// Delivers the sums of functions that nobody calls.
    fn end(&mut self, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        for sum in std::mem::take(&mut self.sums).iter().filter(|sum| !sum.is_called) {
            let frame = sum.place.frame(0, self.tables)?;
            let count = self.events.called(&sum.costs, 0, &mut self.values);
            if self.deliver(None, frame, count, output)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.functions.clear();
        Ok(ControlFlow::Continue(()))
    }
}

impl Importer<'_> {
    fn header(&mut self, key: &[u8], value: &[u8], output: &mut LineOutput<'_>) -> Result<(), LineFault> {
        if key == b"positions" {
            self.positions = Positions::of(value);
        }
        let is_first = self.head.events.is_empty();
        let before = std::mem::take(&mut self.head.events);
        self.head.take(key, value);
        if self.head.events.is_empty() {
            self.head.events = before;
        } else if !is_first && self.head.events != before {
            // A part with other events.
            let _ = self.end(output)?;
            self.events = self.head.events();
            self.costs = vec![0; self.events.count()];
            output.begin_segment(self.tables, self.events.value_types())?;
        }
        Ok(())
    }

    fn name(&mut self, key: NameKey, value: &[u8]) -> Result<(), LineFault> {
        let names = match key {
            NameKey::Object | NameKey::CalledObject => 0,
            NameKey::File | NameKey::InlinedFile | NameKey::CalledFile => 1,
            NameKey::Function | NameKey::CalledFunction => 2,
        };
        let name = self.known(names, NumberedName::of(value))?;
        match key {
            NameKey::Object => self.place.object = name,
            NameKey::File | NameKey::InlinedFile => self.place.file = name,
            NameKey::Function => {
                self.place.function = name;
                self.calls = None;
            }
            NameKey::CalledObject => self.called.object = name,
            NameKey::CalledFile => self.called.file = name,
            NameKey::CalledFunction => {
                self.called.function = name;
                self.called.file = self.called.file.or(self.place.file);
                self.called.object = self.called.object.or(self.place.object);
            }
        }
        Ok(())
    }

    fn known(&mut self, names: usize, name: NumberedName<'_>) -> Result<Option<StringId>, LineFault> {
        let text = match name.text {
            Some(text) => is_known(text).then(|| self.tables.intern_string(text)).transpose()?,
            None => {
                let number = name.number.unwrap_or_default();
                return match self.names[names].get(&number) {
                    Some(&known) => Ok(known),
                    None => Err(LineFault::Invalid(format!("unknown name: ({number})"))),
                };
            }
        };
        if let Some(number) = name.number {
            self.names[names].insert(number, text);
            self.check(self.names[names].len())?;
        }
        Ok(text)
    }

    /// Checks the memory held, once in a while.
    fn check(&self, rows: usize) -> Result<(), Error> {
        if !rows.is_multiple_of(CHECKED_ROWS) {
            return Ok(());
        }
        let each = size_of::<FunctionSum>() + self.events.count() * size_of::<i64>();
        let names: usize = self.names.iter().map(HashMap::allocation_size).sum();
        let held = names + self.functions.allocation_size() + self.sums.capacity().saturating_mul(each);
        self.limits.check(held).map_err(|over| Error::memory(NAME, Position::Whole, over))
    }

    /// The sum of a function.
    fn sum(&mut self, place: CodePlace) -> Result<&mut FunctionSum, Error> {
        let next = self.sums.len();
        let index = *self.functions.entry([place.file, place.function]).or_insert(next);
        if index == next {
            let costs = vec![0; self.events.count()];
            self.sums.push(FunctionSum { place, costs, is_called: false });
            self.check(next)?;
        }
        Ok(&mut self.sums[index])
    }

    /// Adds the costs of the line to the sum of its function.
    fn add(&mut self) -> Result<(), Error> {
        let costs = std::mem::take(&mut self.costs);
        let sum = self.sum(self.place)?;
        for (sum, &cost) in sum.costs.iter_mut().zip(&costs) {
            *sum = sum.saturating_add(cost);
        }
        self.costs = costs;
        Ok(())
    }

    /// Takes the costs of a line.
    fn own(&mut self, line: u64, output: &mut LineOutput<'_>) -> Result<ControlFlow<()>, ReadError> {
        self.add()?;
        let frame = self.place.frame(line, self.tables)?;
        let count = self.events.own(&self.costs, &mut self.values);
        self.deliver(None, frame, count, output)
    }

    /// Takes the costs of calls.
    fn call(
        &mut self,
        line: u64,
        calls: u64,
        output: &mut LineOutput<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        self.add()?;
        let called = std::mem::take(&mut self.called);
        self.sum(called)?.is_called = true;
        let caller = self.place.frame(line, self.tables)?;
        let frame = called.frame(0, self.tables)?;
        let count = self.events.called(&self.costs, calls, &mut self.values);
        self.deliver(Some(caller), frame, count, output)
    }

    fn deliver(
        &mut self,
        caller: Option<FrameId>,
        frame: FrameId,
        count: u64,
        output: &mut LineOutput<'_>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if self.values.iter().all(|&value| value == 0) && (count == 0 || self.events.are_values()) {
            return Ok(ControlFlow::Continue(()));
        }
        let stack = Some(self.roots.called(caller, frame, self.tables)?);
        let count = if self.events.are_values() { 1 } else { count };
        output.sample(self.tables, &Sample { stack, count, values: &self.values, ..Sample::default() })
    }
}

#[cold]
fn bad_line(text: &[u8]) -> String {
    format!("expected costs, a name or a header, found {:?}", excerpt(text.trim_ascii()))
}
