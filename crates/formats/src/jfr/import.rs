//! Imports samples into the model.

use std::io::BufRead;

use borehole_model::{
    Context, Mode, ProfileSink, Recovery, Sample, Segment, StringId, Tables, Thread, ThreadNames, ValueType,
    Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::chunks::{Chunk, ChunkEvent};
use super::kinds::{EventMeasure, KIND_COUNT, KINDS, SampleKind};
use super::layout::event;
use super::metadata::{KnownTypes, TypeField, TypeTable, ValueForm};
use super::pools::ConstantPools;
use super::resolve::{ConstantId, Resolved, Unresolved};
use crate::documents::whole::{DocumentDamage, read_whole};
use crate::frames::composed::ComposedBytes;
use crate::registry::Document;
use crate::{Error, Limits, Position, ReadError, ReadOptions};

/// The events that are sorted by time together: those of a chunk, unless there are more.
const SORTED_EVENTS: usize = 1 << 20;

/// The events between checks of the memory held.
const CHECKED_EVENTS: u64 = 1024;

/// Reads a recording. Each kind of event that is a sample is a value type: execution samples count, allocations have bytes, and
/// waits have nanoseconds. Samples have times, threads and stacks, and labels `state` and `class`.
///
/// Events that are no samples are not read, with a note.
///
/// # Errors
/// If the input is no such recording, is damaged and damage is not skipped, exceeds the limit, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, jfr};
/// use borehole_model::{Count, Tables};
///
/// let error = jfr::import(&b"FLR\0"[..], &ReadOptions::default(), &mut Tables::default(), &mut Count::default());
/// assert_eq!(error.unwrap_err().to_string(), "truncated: 4 bytes missing (jfr, at byte 0x0)");
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let bytes = read_whole(NAME, input, &options.limits)?;
    import_document(Document { bytes: &bytes, sibling: None, on_passed: None }, options, tables, sink)
}

/// Like [`import`], for a document in memory.
///
/// # Errors
/// Those of [`import`].
pub fn import_document(
    document: Document<'_>,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let mut types = KnownTypes::default();
    let survey = Survey::of(document.bytes, &mut types, &options.limits);
    let (value_types, columns) = survey.columns();
    let segment = Segment {
        format: NAME,
        has_times: true,
        is_ordered: true,
        start_unix_ns: survey.start_unix_ns,
        process: survey.process,
        mode: Mode::Cpu,
        default_measure: (!value_types.is_empty()).then_some(borehole_model::Measure::Value(0)),
        is_uncounted: !value_types.is_empty(),
        value_types,
        ..Segment::default()
    };
    damage.recovery.segments = 1;
    sink.segment(Context { tables, segment: &segment })?;
    let mut importer = Importer {
        document,
        types,
        values: vec![0; segment.value_types.len()],
        segment,
        columns,
        names: ThreadNames::default(),
        others: 0,
        truncated: 0,
        missing: 0,
        name_bytes: ComposedBytes::default(),
        damage,
        tables,
        sink,
    };
    importer.chunks()?;
    importer.note();
    let Importer { damage, sink, .. } = importer;
    damage.finish(sink)
}

/// The start, process and kinds of events of a recording, of all chunks that can be read.
#[derive(Debug, Default)]
struct Survey {
    start_unix_ns: Option<i64>,
    process: Option<i64>,
    /// Whether there is an event of each kind.
    has_kind: [bool; KIND_COUNT],
}

impl Survey {
    fn of<'a>(file: &'a [u8], types: &mut KnownTypes<'a>, limits: &Limits) -> Self {
        let mut survey = Self::default();
        let mut at = 0;
        while at < file.len()
            && let Ok(chunk) = Chunk::at(file, at)
        {
            survey.start_unix_ns = survey.start_unix_ns.or(Some(chunk.clock.start_unix_ns));
            survey.add(&chunk, types, limits);
            at = chunk.end();
        }
        survey
    }

    fn add<'a>(&mut self, chunk: &Chunk<'a>, types: &mut KnownTypes<'a>, limits: &Limits) {
        let (mut found, mut last) = (HashMap::<u64, ChunkEvent<'_>>::new(), None);
        let mut described = None;
        for event in chunk.events().map_while(Result::ok) {
            // Events of a kind follow each other.
            if last.replace(event.event_type) != Some(event.event_type) {
                found.entry(event.event_type).or_insert(event);
            }
            if event.event_type == event::METADATA {
                described = Some(event.values);
            }
        }
        let Some(types) = described.and_then(|described| types.read(described, limits).ok()) else { return };
        for (&id, event) in &found {
            let Some(class) = types.index(id).map(|index| &types.types[index]) else { continue };
            if let Some(kind) = SampleKind::index(&class.name) {
                self.has_kind[kind] = true;
            }
            if *class.name == *b"jdk.JVMInformation" {
                let process = number_in(event, &class.fields, b"pid", &types);
                self.process = self.process.or(process.and_then(|process| i64::try_from(process).ok()));
            }
        }
    }

    /// The value types, and the column of each kind.
    fn columns(&self) -> (Vec<ValueType>, [Option<usize>; KIND_COUNT]) {
        let mut types = Vec::new();
        let mut columns = [None; KIND_COUNT];
        for (index, kind) in KINDS.iter().enumerate().filter(|(index, _)| self.has_kind[*index]) {
            columns[index] = Some(types.len());
            types.push(ValueType::new(kind.value.0, kind.value.1));
        }
        (types, columns)
    }
}

/// The number in a field of an event.
fn number_in<'a>(
    event: &ChunkEvent<'a>,
    fields: &[TypeField<'a>],
    name: &[u8],
    types: &TypeTable<'a>,
) -> Option<u64> {
    let mut values = event.values;
    for field in fields {
        if *field.name == *name {
            return values.number().ok();
        }
        types.skip_field(field, &mut values).ok()?;
    }
    None
}

/// The use of a field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldRole {
    Other,
    Start,
    Measured,
    Thread,
    Stack,
    State,
    Class,
}

impl FieldRole {
    fn of(field: &TypeField<'_>, kind: &SampleKind, form: ValueForm) -> Self {
        let is_number = form == ValueForm::Number && !field.is_constant && !field.is_list;
        let is_constant = field.is_constant && !field.is_list;
        let measured = match kind.measured {
            EventMeasure::One => "",
            EventMeasure::Field(name) | EventMeasure::Ticks(name) => name,
        };
        match &*field.name {
            b"startTime" if is_number => Self::Start,
            name if is_number && name == measured.as_bytes() => Self::Measured,
            b"eventThread" | b"sampledThread" if is_constant => Self::Thread,
            b"stackTrace" if is_constant => Self::Stack,
            b"state" if is_constant => Self::State,
            name if is_constant && !kind.class.is_empty() && name == kind.class.as_bytes() => Self::Class,
            _ => Self::Other,
        }
    }
}

/// How events of a type are read.
#[derive(Debug)]
struct EventPlan {
    /// The index of the type.
    event: usize,
    kind: usize,
    column: usize,
    roles: Vec<FieldRole>,
}

impl EventPlan {
    /// The start of an event; 0 if it cannot be read.
    #[inline]
    fn start<'a>(&self, event: &ChunkEvent<'a>, types: &TypeTable<'a>) -> u64 {
        let mut values = event.values;
        for (field, role) in types.types[self.event].fields.iter().zip(&self.roles) {
            if *role == FieldRole::Start {
                return values.number().unwrap_or(0);
            }
            if types.skip_field(field, &mut values).is_err() {
                break;
            }
        }
        0
    }
}

/// A chunk being read.
struct ChunkReading<'a, 'c> {
    chunk: &'c Chunk<'a>,
    /// How events are read that are samples, by the ids of their types.
    plans: HashMap<u64, EventPlan>,
    pools: ConstantPools<'a>,
    resolved: Resolved,
    /// The starts and positions of events that are not yet sorted.
    waiting: Vec<(u64, usize)>,
}

/// The fields of an event that is a sample.
#[derive(Clone, Copy, Debug, Default)]
struct SampleFields {
    start: u64,
    measured: u64,
    thread: ConstantId,
    stack: ConstantId,
    state: ConstantId,
    class: ConstantId,
}

struct Importer<'a, 's> {
    document: Document<'a>,
    types: KnownTypes<'a>,
    segment: Segment,
    columns: [Option<usize>; KIND_COUNT],
    values: Vec<i64>,
    names: ThreadNames,
    /// The events that are no samples.
    others: u64,
    truncated: u64,
    /// The references to constants that are not there.
    missing: u64,
    name_bytes: ComposedBytes,
    damage: DocumentDamage,
    tables: &'s mut Tables,
    sink: &'s mut dyn ProfileSink,
}

impl<'a> Importer<'a, '_> {
    fn chunks(&mut self) -> Result<(), ReadError> {
        let file = self.document.bytes;
        let mut at = 0;
        while at < file.len() && !self.damage.recovery.stopped {
            match Chunk::at(file, at) {
                Ok(chunk) => {
                    self.chunk(&chunk)?;
                    at = chunk.end();
                }
                // The header of a further chunk that is cut off.
                Err(error) if error.is_truncated() && at > 0 => {
                    self.cut(at, (file.len() - at) as u64);
                    break;
                }
                Err(error) => {
                    self.damage.meet(error, (file.len() - at) as u64)?;
                    break;
                }
            }
            if let Some(on_passed) = self.document.on_passed {
                on_passed(at);
            }
        }
        Ok(())
    }

    #[cold]
    fn cut(&mut self, at: usize, lost_bytes: u64) {
        let warning = Warning::truncated("truncated: the last chunk is incomplete").at(Some(at as u64));
        self.damage.recovery.warn(warning.losing(lost_bytes));
    }

    fn chunk(&mut self, chunk: &Chunk<'a>) -> Result<(), ReadError> {
        let Some(pools) = self.pools(chunk)? else { return Ok(()) };
        let plans = self.plans(&pools.types);
        let resolved = Resolved::new(self.name_bytes, self.document.bytes.len() as u64);
        let mut reading = ChunkReading { chunk, plans, pools, resolved, waiting: Vec::new() };
        let mut fault = None;
        for event in chunk.events() {
            match event {
                Ok(event) => match reading.plans.get(&event.event_type) {
                    Some(plan) => {
                        let start = plan.start(&event, &reading.pools.types);
                        reading.waiting.push((start, event.offset));
                    }
                    None => self.others += u64::from(event.event_type > event::CONSTANTS),
                },
                Err(error) => fault = Some(error),
            }
            if reading.waiting.len() == SORTED_EVENTS {
                self.sorted(&mut reading)?;
            }
            if self.damage.recovery.stopped {
                break;
            }
        }
        self.sorted(&mut reading)?;
        self.truncated += reading.resolved.truncated;
        self.name_bytes = reading.resolved.name_bytes;
        match fault {
            Some(error) if !self.damage.recovery.stopped => self.end_of_events(chunk, error),
            _ => Ok(()),
        }
    }

    /// Takes the events that wait, in the order of time.
    fn sorted(&mut self, reading: &mut ChunkReading<'a, '_>) -> Result<(), ReadError> {
        let mut waiting = std::mem::take(&mut reading.waiting);
        waiting.sort_by_key(|&(start, _)| start);
        let waiting_bytes = waiting.len() * size_of::<(u64, usize)>();
        for (number, &(_, offset)) in (1_u64..).zip(&waiting) {
            self.event(reading, &reading.chunk.event_at(offset)?)?;
            if number.is_multiple_of(CHECKED_EVENTS) {
                let held = reading.pools.held_bytes() + reading.resolved.held_bytes();
                self.check(held + waiting_bytes, offset)?;
            }
            if self.damage.recovery.stopped {
                break;
            }
        }
        waiting.clear();
        reading.waiting = waiting;
        Ok(())
    }

    fn check(&self, held: usize, at: usize) -> Result<(), Error> {
        let position = Position::Byte(at as u64);
        self.damage.limits.check(held).map_err(|over| Error::memory(NAME, position, over))
    }

    /// Meets a fault after which no event of the chunk can be found. A cut-off end is no damage.
    #[cold]
    fn end_of_events(&mut self, chunk: &Chunk<'a>, error: Error) -> Result<(), ReadError> {
        let at = error.offset().unwrap_or(0);
        let lost_bytes = (chunk.end() as u64).saturating_sub(at);
        let is_last = chunk.end() == self.document.bytes.len();
        if error.is_truncated() && is_last {
            self.cut(usize::try_from(at).unwrap_or(0), lost_bytes);
            return Ok(());
        }
        Ok(self.damage.meet(error, lost_bytes)?)
    }

    /// The types and constants of a chunk; `None` if there are none, which is said.
    fn pools(&mut self, chunk: &Chunk<'a>) -> Result<Option<ConstantPools<'a>>, ReadError> {
        let events = || chunk.events().map_while(Result::ok);
        let Some(found) = events().filter(|found| found.event_type == event::METADATA).last() else {
            let lost_bytes = (chunk.end() - chunk.offset) as u64;
            let message = "truncated: the chunk has no metadata, without which nothing of it can be read";
            if chunk.is_cut || chunk.end() == self.document.bytes.len() {
                let warning = Warning::truncated(message).at(Some(chunk.offset as u64));
                self.damage.recovery.warn(warning.losing(lost_bytes));
            } else {
                let error = Error::malformed(NAME, Position::Byte(chunk.offset as u64), message);
                self.damage.meet(error, lost_bytes)?;
            }
            return Ok(None);
        };
        let types = match self.types.read(found.values, &self.damage.limits) {
            Ok(types) => types,
            Err(error) => {
                self.damage.meet(error, (chunk.end() - chunk.offset) as u64)?;
                return Ok(None);
            }
        };
        let mut pools = ConstantPools::new(self.document.bytes, types);
        for constants in events().filter(|found| found.event_type == event::CONSTANTS) {
            if let Err(error) = pools.add(constants.values, &self.damage.limits) {
                self.damage.meet(error, constants.values.cursor.rest().len() as u64)?;
            }
            self.check(pools.held_bytes(), constants.offset)?;
        }
        Ok(Some(pools))
    }

    /// How the events of each type are read that are samples, by the ids of their types.
    fn plans(&self, types: &TypeTable<'a>) -> HashMap<u64, EventPlan> {
        let plan = |(id, event): (u64, usize)| {
            let class = &types.types[event];
            let kind = SampleKind::index(&class.name)?;
            let role = |field: &TypeField<'_>| {
                FieldRole::of(field, &KINDS[kind], types.types[field.value_type].form)
            };
            let roles = class.fields.iter().map(role).collect();
            Some((id, EventPlan { event, kind, column: self.columns[kind]?, roles }))
        };
        types.ids().filter_map(plan).collect()
    }

    /// Takes an event that is a sample.
    fn event(&mut self, reading: &mut ChunkReading<'a, '_>, event: &ChunkEvent<'a>) -> Result<(), ReadError> {
        let ChunkReading { chunk, plans, pools, resolved, .. } = reading;
        let Some(plan) = plans.get(&event.event_type) else { return Ok(()) };
        let fields = match fields(event, plan, &pools.types) {
            Ok(fields) => fields,
            Err(error) => return Ok(self.damage.meet(error, event.values.cursor.rest().len() as u64)?),
        };
        let stack = resolved.stack(fields.stack, pools, self.tables);
        let stack = self.or_none(stack)?;
        let thread = resolved.thread(fields.thread, pools, self.tables);
        let thread = self.or_none(thread)?;
        let labels = resolved.labels(fields.state, fields.class, pools, self.tables);
        let labels = self.or_none(labels)?;
        self.values.fill(0);
        let value = match KINDS[plan.kind].measured {
            EventMeasure::One => 1,
            EventMeasure::Field(_) => i64::try_from(fields.measured).unwrap_or(i64::MAX),
            EventMeasure::Ticks(_) => chunk.clock.duration_ns(fields.measured),
        };
        self.values[plan.column] = value;
        let first = self.segment.start_unix_ns.unwrap_or(0);
        let later_ns = chunk.clock.start_unix_ns.saturating_sub(first);
        let time_ns = chunk.clock.after_start_ns(fields.start).saturating_add(later_ns);
        self.name(thread.number, thread.name)?;
        let sample = Sample {
            stack,
            count: 1,
            time_ns: Some(time_ns),
            thread: thread.number,
            labels,
            values: &self.values,
            ..Sample::default()
        };
        self.damage.recovery.samples += 1;
        let at = Context { tables: self.tables, segment: &self.segment };
        self.damage.recovery.stopped = self.sink.sample(at, &sample)?.is_break();
        Ok(())
    }

    /// Takes what was resolved, or nothing in its place. The JDK reads missing constants as nothing, too: those of threads that ended
    /// early are not written.
    fn or_none<T: Default>(&mut self, found: Result<T, Unresolved>) -> Result<T, ReadError> {
        match found {
            Ok(found) => Ok(found),
            Err(Unresolved::Full(full)) => Err(full.into()),
            Err(Unresolved::LongNames(long)) => Err(long.at(NAME, Position::Whole).into()),
            Err(Unresolved::Missing) => {
                self.missing += 1;
                Ok(T::default())
            }
        }
    }

    fn name(&mut self, number: Option<u64>, name: Option<StringId>) -> Result<(), ReadError> {
        let Some((number, name)) = number.zip(name) else { return Ok(()) };
        let thread = Thread { process: self.segment.process, number };
        if self.names.name(thread, name) {
            self.sink.thread(Context { tables: self.tables, segment: &self.segment }, thread, name)?;
        }
        Ok(())
    }

    fn note(&mut self) {
        if self.others > 0 {
            let message = format!("{} events are not samples and not read", self.others);
            self.damage.recovery.note(Warning::new(message));
        }
        if self.missing > 0 {
            let message = format!("{} threads, stacks or classes are not in the recording", self.missing);
            self.damage.recovery.note(Warning::new(message));
        }
        if self.truncated > 0 {
            let message = format!("{} stacks lack their outer frames (raise stackdepth)", self.truncated);
            self.damage.recovery.note(Warning::new(message));
        }
    }
}

/// Reads the fields of an event.
#[inline]
fn fields<'a>(
    event: &ChunkEvent<'a>,
    plan: &EventPlan,
    types: &TypeTable<'a>,
) -> Result<SampleFields, Error> {
    let mut values = event.values;
    let mut found = SampleFields::default();
    for (field, role) in types.types[plan.event].fields.iter().zip(&plan.roles) {
        match role {
            FieldRole::Other => types.skip_field(field, &mut values)?,
            FieldRole::Start => found.start = values.number()?,
            FieldRole::Measured => found.measured = values.number()?,
            FieldRole::Thread => found.thread = (field.value_type, values.number()?),
            FieldRole::Stack => found.stack = (field.value_type, values.number()?),
            FieldRole::State => found.state = (field.value_type, values.number()?),
            FieldRole::Class => found.class = (field.value_type, values.number()?),
        }
    }
    Ok(found)
}
