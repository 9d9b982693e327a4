//! Imports a processed profile into the model.

use std::io::{BufRead, BufReader};
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, LaneId, NativeFrame, ProfileSink, Recovery, Sample, Segment, StackId, StringId,
    Tables, Thread, ValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::markers::{MarkerCounts, ThreadMarkers};
use super::read::{INDEX_BYTES, Lib, ProcessedProfile, SamplesTable, ThreadTables, nanoseconds};
use super::symbols_file::{FunctionAt, SymbolsFile};
use super::texts::SharedTexts;
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::registry::Companion;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// Reads a processed profile of Firefox Profiler, of any version from 1 to 75, or an unprocessed one of Firefox with all its
/// processes; each thread becomes a segment.
///
/// Weights are counts, or values if they are times or bytes. Markers and counters are events.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    import_with_symbols(input, None, options, tables, sink)
}

/// Like [`import`], with the file of symbols that samply writes beside a profile: addresses without names have its functions, files
/// and lines.
///
/// # Errors
/// Those of [`import`], and if the file of symbols is none and damage is not skipped.
///
/// # Examples
///
/// ```
/// use borehole_formats::registry::Companion;
/// use borehole_formats::{ReadOptions, gecko};
/// use borehole_model::{Count, Tables};
///
/// let profile = br#"{"meta":{"preprocessedProfileVersion":56},
///     "libs":[{"debugName":"work","breakpadId":"DFB8E43AF2423D73A453AEB6A777EF750"}],
///     "threads":[{"tid":1,"stringArray":["0x46"],"samples":{"stack":[0]},"stackTable":{"frame":[0],"prefix":[null]},
///     "frameTable":{"func":[0],"address":[70]},"funcTable":{"name":[0],"resource":[0]},"resourceTable":{"lib":[0]}}]}"#;
/// let mut symbols = &br#"{"string_table":["main"],"data":[{"debug_name":"work","debug_id":"dfb8e43a-f242-3d73-a453-aeb6a777ef75",
///     "symbol_table":[{"rva":64,"symbol":0}],"known_addresses":[[70,0]]}]}"#[..];
/// let companion = Companion { name: "work.syms.json", input: &mut symbols };
/// let (mut tables, mut count) = (Tables::default(), Count::default());
/// gecko::import_with_symbols(&profile[..], Some(companion), &ReadOptions::default(), &mut tables, &mut count)?;
/// assert!(tables.frame_ids().any(|frame| tables.string(tables.frame(frame).function) == b"main"));
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import_with_symbols(
    input: impl BufRead,
    symbols: Option<Companion<'_>>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    match read_document(input, options) {
        Ok(document) => {
            let symbols = match symbols {
                Some(companion) => read_symbols(companion, options, &mut damage)?,
                None => SymbolsFile::default(),
            };
            let reading = ProfileReading {
                document: &document,
                symbols: &symbols,
                tables,
                sink,
                damage: &mut damage,
                processes: HashMap::new(),
                named: 0,
                marker_counts: MarkerCounts::default(),
            };
            reading.run()?;
        }
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

/// The symbols of a file beside the profile; none if it is damaged and damage is skipped.
fn read_symbols(
    companion: Companion<'_>,
    options: &ReadOptions,
    damage: &mut DocumentDamage,
) -> Result<SymbolsFile, Error> {
    let Companion { name, input } = companion;
    match SymbolsFile::read(BufReader::new(input), options.limits) {
        Ok(mut symbols) => {
            name.clone_into(&mut symbols.name);
            Ok(symbols)
        }
        Err(error) if error.is_limit() => Err(error),
        Err(error) => {
            let message = format!("{name} has no symbols that can be read: {}", error.message());
            damage.meet(Error::new(error.kind(), NAME, Position::Whole, message), 0)?;
            Ok(SymbolsFile::default())
        }
    }
}

fn read_document(input: impl BufRead, options: &ReadOptions) -> Result<ProcessedProfile, Error> {
    let seed = PhantomData::<ProcessedProfile>;
    let memory = JsonMemory::of_texts(options.limits, INDEX_BYTES);
    let document = json::parse(NAME, input, &memory, seed)?;
    if document.meta.preprocessed_profile_version.or(document.meta.version).is_none() {
        let message = "expected a profile of Firefox, found one without a version";
        return Err(Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message));
    }
    Ok(document)
}

pub(super) struct ProfileReading<'d> {
    pub(super) document: &'d ProcessedProfile,
    /// The symbols beside the profile.
    symbols: &'d SymbolsFile,
    pub(super) tables: &'d mut Tables,
    pub(super) sink: &'d mut dyn ProfileSink,
    pub(super) damage: &'d mut DocumentDamage,
    /// The processes whose names are not numbers, by the first of their threads.
    pub(super) processes: HashMap<String, u64>,
    /// The number of addresses with names of the file of symbols.
    named: u64,
    pub(super) marker_counts: MarkerCounts,
}

/// The texts of the frames of a table.
#[derive(Default)]
struct FrameTexts {
    /// By the place among the strings.
    names: SharedTexts,
    /// By the place among the libraries.
    modules: SharedTexts,
}

/// The frames of a table.
#[derive(Default)]
struct ResolvedFrames {
    /// By row; `None` if it cannot be resolved.
    outer: Vec<Option<FrameId>>,
    /// By row: the frames that are inlined into it, each a callee of the one before.
    inlined: HashMap<usize, Vec<FrameId>>,
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
        match document.meta.preprocessed_profile_version {
            Some(_) => {
                self.threads(document)?;
                self.counters(document, 0)?;
            }
            None => self.processes(document)?,
        }
        if self.named > 0 {
            let (named, name) = (self.named, &self.symbols.name);
            self.damage.recovery.note(Warning::new(format!("{named} addresses have the names in {name}")));
        }
        self.marker_counts.notes().for_each(|note| self.damage.recovery.note(note));
        Ok(())
    }

    fn threads(&mut self, document: &ProcessedProfile) -> Result<(), ReadError> {
        let shared_strings = document.shared.string_array.as_deref().unwrap_or_default();
        let shared = match &document.shared.stack_table {
            Some(_) => Some(self.stacks(&document.shared, shared_strings)?),
            None => None,
        };
        for (index, thread) in (0..).zip(&document.threads) {
            let none = SamplesTable::default();
            let no_samples = Some(&none).filter(|_| thread.markers.len() > 0);
            let Some(samples) = thread.samples.as_ref().or(no_samples) else { continue };
            let strings = thread.string_array.as_deref().unwrap_or(shared_strings);
            let own = match &shared {
                Some(_) => None,
                None => Some(self.stacks(thread, strings)?),
            };
            if let Some(stacks) = own.as_ref().or(shared.as_ref()) {
                self.thread(index, (thread, strings), samples, stacks)?;
            }
            if self.damage.recovery.stopped {
                break;
            }
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
        let before = self.tables.stack_count();
        let mut stacks: ResolvedStacks = Vec::new();
        for (row, &frame) in stack_table.frame.iter().enumerate() {
            let frame_row = usize::try_from(frame).ok();
            let frame = frame_row.and_then(|frame| frames.outer.get(frame).copied().flatten());
            let caller = match stack_table.caller(row) {
                Ok(None) => Some(None),
                Ok(Some(caller)) => stacks[caller].map(Some),
                Err(_) => None,
            };
            let mut stack = self.stack(row, caller.zip(frame))?;
            if let Some(inlined) =
                frame_row.and_then(|frame| frames.inlined.get(&frame)).filter(|_| stack.is_some())
            {
                for &frame in inlined {
                    stack = Some(self.tables.intern_stack(stack, frame)?);
                }
                self.check_stacks(before)?;
            }
            stacks.push(stack);
        }
        Ok(stacks)
    }

    /// Checks the memory of stacks that are longer than the document says.
    fn check_stacks(&self, before: usize) -> Result<(), Error> {
        let made = self.tables.bytes_of_stacks_since(before);
        self.damage.limits.check(made).map_err(|over| Error::memory(NAME, Position::Whole, over))
    }

    fn frames(&mut self, tables: &ThreadTables, strings: &[String]) -> Result<ResolvedFrames, ReadError> {
        let (mut frames, mut texts) = (ResolvedFrames::default(), FrameTexts::default());
        for (row, &function) in tables.frame_table.func.iter().enumerate() {
            let function = usize::try_from(function).ok();
            let name = function.and_then(|function| tables.func_table.name.get(function).copied());
            let name = name.and_then(|name| usize::try_from(name).ok()).filter(|&name| name < strings.len());
            let frame = match function.zip(name) {
                Some((function, name)) => {
                    let (outer, inlined) =
                        self.frame((tables, strings), (row, function, name), &mut texts)?;
                    if !inlined.is_empty() {
                        frames.inlined.insert(row, inlined);
                    }
                    Some(outer)
                }
                None => {
                    self.meet(format!("invalid frame {row}: missing function or name"))?;
                    None
                }
            };
            frames.outer.push(frame);
        }
        Ok(frames)
    }

    /// The frame in a row, of a function whose name is a string, and those that are inlined into it.
    fn frame(
        &mut self,
        (tables, strings): (&ThreadTables, &[String]),
        (row, function, name): (usize, usize, usize),
        texts: &mut FrameTexts,
    ) -> Result<(FrameId, Vec<FrameId>), ReadError> {
        let (frame_table, resources) = (&tables.frame_table, &tables.resource_table);
        let file = tables.func_table.file(function, &self.document.shared.sources);
        let resource = tables.func_table.resource(function);
        let lib = frame_table.lib(row).or_else(|| resource.and_then(|resource| resources.lib(resource)));
        let lib = lib.and_then(|index| Some((index, self.document.libs.get(index)?)));
        let nameless = frame_table.address(row).zip(lib).filter(|_| strings[name].starts_with("0x"));
        if let Some((address, (_, lib))) = nameless
            && let Some(frames) = self.named_frames(lib, address)?
        {
            return Ok(frames);
        }
        let native = match frame_table.address(row).zip(lib) {
            Some((address, (index, lib))) => {
                let symbol = frame_table.native_symbol(row);
                let start =
                    symbol.and_then(|symbol| tables.native_symbols.address.get(symbol).copied().flatten());
                let offset = start.and_then(|start| address.checked_sub(start));
                let module = texts.modules.intern(index, lib.module(), self.tables)?;
                Some(NativeFrame { module, offset, file_offset: None })
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
        Ok((self.tables.intern_frame(&frame)?, Vec::new()))
    }

    /// The frames at an address that has a name in the file of symbols.
    fn named_frames(
        &mut self,
        lib: &Lib,
        address: i64,
    ) -> Result<Option<(FrameId, Vec<FrameId>)>, ReadError> {
        let symbols = self.symbols;
        let Some(found) = symbols.find(lib, address) else { return Ok(None) };
        let module = self.text(lib.module())?;
        let mut frames = Vec::new();
        for FunctionAt { name, file, line } in found.functions {
            let native = Some(NativeFrame {
                module,
                offset: Some(found.offset).filter(|_| frames.is_empty()),
                file_offset: None,
            });
            let file = file.map(|file| self.text(file)).transpose()?;
            let frame = Frame { file, line, native, ..Frame::named(self.text(name)?) };
            frames.push(self.tables.intern_frame(&frame)?);
        }
        self.named += 1;
        let outer = frames.remove(0);
        Ok(Some((outer, frames)))
    }

    pub(super) fn text(&mut self, text: &str) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(text.as_bytes())?)
    }

    fn thread(
        &mut self,
        index: u64,
        (thread, strings): (&ThreadTables, &[String]),
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
                return Ok(());
            }
        }
        let (table, meta) = (&thread.markers, &self.document.meta);
        let markers = ThreadMarkers { table, strings, stacks, meta, thread: who.thread, later_ns: 0 };
        self.markers(markers, &segment)
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
