//! Imports a processed profile into the model.

use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, LaneId, NativeFrame, ProfileSink, Recovery, Sample, Segment, StackId, StringId,
    Tables, Thread, ValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::read::{INDEX_BYTES, ProcessedProfile, SamplesTable, ThreadTables, nanoseconds};
use super::texts::SharedTexts;
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// Reads a processed profile of Firefox Profiler, of any version from 1 to 75, or an unprocessed one of Firefox with all its
/// processes; each thread becomes a segment.
///
/// Weights are counts, or values if they are times or bytes. Markers and counters are not read.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    match read_document(input, options) {
        Ok(document) => {
            let (damage, processes) = (&mut damage, HashMap::new());
            ProfileReading { document: &document, tables, sink, damage, processes }.run()?;
        }
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

fn read_document(input: impl BufRead, options: &ReadOptions) -> Result<ProcessedProfile, Error> {
    let seed = PhantomData::<ProcessedProfile>;
    let memory = JsonMemory::of_values(options.limits, INDEX_BYTES);
    let document = json::parse(NAME, input, &memory, seed)?;
    if document.meta.preprocessed_profile_version.or(document.meta.version).is_none() {
        let message = "expected a profile of Firefox, found one without a version";
        return Err(Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message));
    }
    Ok(document)
}

pub(super) struct ProfileReading<'d> {
    pub(super) document: &'d ProcessedProfile,
    pub(super) tables: &'d mut Tables,
    pub(super) sink: &'d mut dyn ProfileSink,
    pub(super) damage: &'d mut DocumentDamage,
    /// The processes whose names are not numbers, by the first of their threads.
    processes: HashMap<String, u64>,
}

/// The texts of the frames of a table.
#[derive(Default)]
struct FrameTexts {
    /// By the place among the strings.
    names: SharedTexts,
    /// By the place among the libraries.
    modules: SharedTexts,
}

/// The stacks of the document; `None` if one cannot be resolved.
pub(super) type ResolvedStacks = Vec<Option<StackId>>;

/// The kind of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeightKind {
    Counts,
    Times,
    Bytes,
    /// Counts that are negative or have fractions, as in differences and averages.
    Numbers,
}

impl WeightKind {
    fn of(samples: &SamplesTable) -> Self {
        let whole = |weight: &f64| *weight >= 0.0 && weight.fract() == 0.0;
        match (samples.weight_type.as_deref(), &samples.weight) {
            (Some("tracing-ms"), Some(_)) => Self::Times,
            (Some("bytes"), Some(_)) => Self::Bytes,
            (_, Some(weights)) if !weights.iter().all(whole) => Self::Numbers,
            _ => Self::Counts,
        }
    }

    fn value_types(self) -> Vec<ValueType> {
        let (kind, unit) = match self {
            Self::Counts => return Vec::new(),
            Self::Times => ("wall", "nanoseconds"),
            Self::Bytes => ("weight", "bytes"),
            Self::Numbers => ("weight", "count"),
        };
        vec![ValueType::new(kind, unit)]
    }
}

impl ProfileReading<'_> {
    fn run(mut self) -> Result<(), ReadError> {
        let document = self.document;
        if document.meta.preprocessed_profile_version.is_none() {
            return self.processes(document);
        }
        let shared_strings = document.shared.string_array.as_deref().unwrap_or_default();
        let shared = match &document.shared.stack_table {
            Some(_) => Some(self.stacks(&document.shared, shared_strings)?),
            None => None,
        };
        let mut markers = 0_u64;
        for (index, thread) in (0..).zip(&document.threads) {
            markers = markers.saturating_add(thread.markers.length);
            let Some(samples) = &thread.samples else { continue };
            let own = match &shared {
                Some(_) => None,
                None => {
                    let strings = thread.string_array.as_deref().unwrap_or(shared_strings);
                    Some(self.stacks(thread, strings)?)
                }
            };
            if let Some(stacks) = own.as_ref().or(shared.as_ref()) {
                self.thread(index, thread, samples, stacks)?;
            }
            if self.damage.recovery.stopped {
                break;
            }
        }
        if markers > 0 {
            self.damage.recovery.note(Warning::new(format!("{markers} markers are not read")));
        }
        Ok(())
    }

    pub(super) fn meet(&mut self, message: String) -> Result<(), Error> {
        self.damage.meet(Error::malformed(NAME, Position::Whole, message), 0)
    }

    /// The stack of a caller, which may be none, and a frame.
    pub(super) fn stack(
        &mut self,
        row: usize,
        parts: Option<(Option<StackId>, FrameId)>,
    ) -> Result<Option<StackId>, ReadError> {
        let Some((caller, frame)) = parts else {
            self.meet(format!("invalid stack {row}: missing caller or frame"))?;
            return Ok(None);
        };
        Ok(Some(self.tables.intern_stack(caller, frame)?))
    }

    /// All stacks of a table. Callers come before callees.
    fn stacks(&mut self, tables: &ThreadTables, strings: &[String]) -> Result<ResolvedStacks, ReadError> {
        let Some(stack_table) = &tables.stack_table else { return Ok(Vec::new()) };
        let frames = self.frames(tables, strings)?;
        let mut stacks: ResolvedStacks = Vec::new();
        for (row, &frame) in stack_table.frame.iter().enumerate() {
            let frame = usize::try_from(frame).ok().and_then(|frame| frames.get(frame).copied().flatten());
            let caller = match stack_table.caller(row) {
                Ok(None) => Some(None),
                Ok(Some(caller)) => stacks[caller].map(Some),
                Err(_) => None,
            };
            stacks.push(self.stack(row, caller.zip(frame))?);
        }
        Ok(stacks)
    }

    fn frames(
        &mut self,
        tables: &ThreadTables,
        strings: &[String],
    ) -> Result<Vec<Option<FrameId>>, ReadError> {
        let (mut frames, mut texts) = (Vec::new(), FrameTexts::default());
        for (row, &function) in tables.frame_table.func.iter().enumerate() {
            let function = usize::try_from(function).ok();
            let name = function.and_then(|function| tables.func_table.name.get(function).copied());
            let name = name.and_then(|name| usize::try_from(name).ok()).filter(|&name| name < strings.len());
            let frame = match function.zip(name) {
                Some((function, name)) => {
                    Some(self.frame((tables, strings), (row, function, name), &mut texts)?)
                }
                None => {
                    self.meet(format!("invalid frame {row}: missing function or name"))?;
                    None
                }
            };
            frames.push(frame);
        }
        Ok(frames)
    }

    /// The frame in a row, of a function whose name is a string.
    fn frame(
        &mut self,
        (tables, strings): (&ThreadTables, &[String]),
        (row, function, name): (usize, usize, usize),
        texts: &mut FrameTexts,
    ) -> Result<FrameId, ReadError> {
        let (frame_table, resources) = (&tables.frame_table, &tables.resource_table);
        let file = tables.func_table.file(function, &self.document.shared.sources);
        let resource = tables.func_table.resource(function);
        let lib = frame_table.lib(row).or_else(|| resource.and_then(|resource| resources.lib(resource)));
        let lib = lib.and_then(|index| Some((index, self.document.libs.get(index)?)));
        let native = match frame_table.address(row).zip(lib) {
            Some((address, (index, lib))) => {
                let symbol = frame_table.native_symbol(row);
                let start =
                    symbol.and_then(|symbol| tables.native_symbols.address.get(symbol).copied().flatten());
                let offset = start.and_then(|start| address.checked_sub(start));
                let module = texts.modules.intern(index, lib.module(), self.tables)?;
                Some(NativeFrame { module, offset })
            }
            None => None,
        };
        // A function without a file is identified by its resource.
        let place = || resource.filter(|_| native.is_none()).and_then(|resource| resources.name(resource));
        let file = file.or_else(place).filter(|&file| file < strings.len());
        let mut text = |index: usize| texts.names.intern(index, &strings[index], self.tables);
        let frame = Frame {
            file: file.map(&mut text).transpose()?,
            line: frame_table.line(row),
            column: frame_table.column(row),
            native,
            ..Frame::named(text(name)?)
        };
        Ok(self.tables.intern_frame(&frame)?)
    }

    pub(super) fn text(&mut self, text: &str) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(text.as_bytes())?)
    }

    fn thread(
        &mut self,
        index: u64,
        thread: &ThreadTables,
        samples: &SamplesTable,
        stacks: &[Option<StackId>],
    ) -> Result<(), ReadError> {
        let (weights, times) = (WeightKind::of(samples), samples.times_ns());
        let rows = samples.stack.len();
        for found in
            [times.as_ref().map(Vec::len), samples.weight.as_ref().map(Vec::len)].into_iter().flatten()
        {
            if found != rows {
                self.meet(format!("expected {rows} times and weights in thread {index}, found {found}"))?;
            }
        }
        let segment = self.segment(index, thread, weights, times.is_some())?;
        self.sink.segment(Context { tables: self.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        let who = self.who(index, thread, &segment)?;
        for (row, stack) in samples.stack.iter().enumerate() {
            let stack = match stack {
                None => None,
                Some(number) => match usize::try_from(*number).ok().and_then(|number| stacks.get(number)) {
                    Some(&Some(stack)) => Some(stack),
                    _ => {
                        self.meet(format!("unknown stack {number} in sample {row} of thread {index}"))?;
                        continue;
                    }
                },
            };
            let weight = samples.weight.as_ref().and_then(|weights| weights.get(row).copied());
            let (count, value) = measure(weights, weight);
            let time_ns = times.as_ref().and_then(|times| times.get(row).copied());
            let values = if weights == WeightKind::Counts { &[][..] } else { &[value] };
            self.give(&segment, &Sample { stack, count, time_ns, values, ..who })?;
            if self.damage.recovery.stopped {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn give(&mut self, segment: &Segment, sample: &Sample<'_>) -> Result<(), ReadError> {
        self.damage.recovery.samples = self.damage.recovery.samples.saturating_add(sample.count);
        let at = Context { tables: self.tables, segment };
        self.damage.recovery.stopped = self.sink.sample(at, sample)?.is_break();
        Ok(())
    }

    fn segment(
        &mut self,
        index: u64,
        thread: &ThreadTables,
        weights: WeightKind,
        has_times: bool,
    ) -> Result<Segment, ReadError> {
        let meta = &self.document.meta;
        let interval = meta.interval.map(nanoseconds).and_then(|period| u64::try_from(period).ok());
        let mut metadata = Vec::new();
        if let Some(product) = meta.product.as_deref().filter(|product| !product.is_empty()) {
            metadata.push((self.text("product")?, self.text(product)?));
        }
        Ok(Segment {
            format: NAME,
            index: self.damage.recovery.segments,
            period_ns: interval.filter(|&period| period > 0),
            has_times,
            start_unix_ns: meta.start_time.map(nanoseconds).filter(|&start| start > 0),
            process: self.process(index, thread),
            value_types: weights.value_types(),
            is_uncounted: weights != WeightKind::Counts,
            metadata,
            ..Segment::default()
        })
    }

    /// The process of a thread. Names that are not numbers also distinguish processes.
    fn process(&mut self, index: u64, thread: &ThreadTables) -> Option<i64> {
        let text = id_text(&thread.pid)?;
        let id = LaneId::parse(&text);
        let id = id.unwrap_or_else(|| LaneId::Profile(*self.processes.entry(text).or_insert(index)));
        // Some versions write an unknown number as 0.
        Some(id.to_process()).filter(|&process| process != 0)
    }

    /// The number of a thread. If there are several, threads without one are numbered by their index.
    fn thread_number(&self, index: u64, thread: &ThreadTables) -> Option<u64> {
        let id = id_text(&thread.tid).and_then(|text| LaneId::parse(&text));
        let place = || (self.document.threads.len() > 1).then_some(LaneId::Profile(index));
        id.or_else(place).map(LaneId::to_u64).filter(|&number| number != 0)
    }

    /// The common properties of a thread's samples; passes the thread's name to the sink.
    fn who(
        &mut self,
        index: u64,
        thread: &ThreadTables,
        segment: &Segment,
    ) -> Result<Sample<'static>, ReadError> {
        let number = self.thread_number(index, thread);
        let (name, interpreter) = split_interpreter(thread.name.as_deref().unwrap_or_default());
        let made_up = |number: u64| name == format!("Thread-{}", LaneId::of(number));
        if let Some(number) = number.filter(|&number| !name.is_empty() && !made_up(number)) {
            let name = self.text(name)?;
            let thread = Thread { process: segment.process, number };
            self.sink.thread(Context { tables: self.tables, segment }, thread, name)?;
        }
        let interpreter = thread.own.interpreter.or(interpreter);
        Ok(Sample { thread: number, interpreter, ..Sample::default() })
    }
}

/// The count of a sample, and its value.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is too large becomes the largest"
)]
fn measure(weights: WeightKind, weight: Option<f64>) -> (u64, i64) {
    match (weights, weight) {
        (WeightKind::Counts, weight) => (weight.unwrap_or(1.0) as u64, 0),
        (WeightKind::Times, weight) => (1, nanoseconds(weight.unwrap_or(0.0))),
        (WeightKind::Bytes | WeightKind::Numbers, weight) => (1, weight.unwrap_or(0.0) as i64),
    }
}

/// The id of a process or thread: a number in some versions, and a text such as `100.1` in others.
pub(super) fn id_text(id: &serde_json::Value) -> Option<String> {
    match id {
        serde_json::Value::String(text) if !text.is_empty() => Some(text.clone()),
        serde_json::Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The name of a thread, and the interpreter that the exporter appends to it.
fn split_interpreter(name: &str) -> (&str, Option<u64>) {
    let behind = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (interpreter "));
    match behind.and_then(|(name, number)| Some((name, number.parse().ok()?))) {
        Some((name, interpreter)) => (name, Some(interpreter)),
        None => (name, None),
    }
}
