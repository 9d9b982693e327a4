//! A document into the model.

use std::io::BufRead;

use borehole_model::{
    Context, Frame, FrameId, Label as ModelLabel, LabelValue, NativeFrame, ProfileSink, Recovery,
    Sample as ModelSample, Segment, StackId, Status, StringId, Tables, ThreadNames,
    ValueType as ModelValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::layout::{PERIODS_COMMENT, SHOWN_PERIODS, key, metadata};
use super::read::{Document, Function, Label, Line, Mapping, Sample, Samples, malformed};
use crate::document::{self, Damage};
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions, stated_duration};
use borehole_model::nanoseconds_per;

/// Reads a decompressed `profile.proto`.
///
/// Of the sample types, `samples/count` becomes the count and the others become values, but for a
/// `wall/nanoseconds` that is the count times a period that the file names in every sample: that one is derived again by
/// whoever needs it. Samples of one period after another are a segment. A file that is cut off is an error, since samples
/// refer to what stands elsewhere; a lenient reading delivers the samples that are whole.
///
/// # Errors
/// When the input is not a profile, is larger than the limit, or the sink fails.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let bytes = document::read_whole(NAME, input, options.limits.document_bytes)?;
    let mut damage = Damage::new(options);
    let (document, samples) = Document::read(bytes, &mut damage)?;
    let columns = Columns::choose(&document, &samples)?;
    let mut segment = segment(&document, &columns, tables)?;
    if columns.count.is_none() {
        damage.note_uncounted(&segment);
    }
    if document.drops_frames {
        damage.recovery.note(Warning::new("drop_frames and keep_frames are not applied"));
    }
    sink.segment(Context { tables, segment: &segment })?;
    damage.recovery.segments = 1;
    deliver(samples, &columns, &mut segment, &mut Resolver::new(&document, tables), sink, &mut damage)?;
    damage.finish(sink)
}

/// What the sample types become.
struct Columns {
    /// The one that counts samples.
    count: Option<usize>,
    /// The one that says of which period a sample is.
    wall: Option<Wall>,
    /// Those that are kept as values.
    own: Vec<usize>,
    /// The period of the first samples.
    period_ns: Option<u64>,
}

impl Columns {
    fn choose(document: &Document, samples: &Samples) -> Result<Self, Error> {
        let mut names = Vec::new();
        for row in &document.sample_types {
            names.push((document.string(row.kind, 0)?, document.string(row.unit, 0)?));
        }
        let is_count =
            |&(kind, unit): &(&[u8], &[u8])| matches!(kind, b"samples" | b"sample") && unit == b"count";
        let mut count = names.iter().position(is_count);
        let wall = names.iter().position(|name| *name == (b"wall".as_slice(), b"nanoseconds".as_slice()));
        let periods = Periods::of(document)?;
        // What the first sample is of, or `NoneNamed` as soon as one is.
        let mut derived = None;
        // A malformed sample is met again, and told of, when it is delivered.
        samples.look_at(|sample| {
            let value = |column: Option<usize>| column.and_then(|index| sample.values.get(index).copied());
            // A difference of two profiles has negative counts, which the model keeps as values.
            if value(count).is_some_and(i64::is_negative) {
                count = None;
            }
            let Some(wall_ns) = value(wall) else { return };
            let this = value(count).map_or(Derived::NoneNamed, |count| periods.derive(count, wall_ns));
            if derived.is_none() || this == Derived::NoneNamed {
                derived = Some(this);
            }
        });
        // Whoever multiplied by a period would get another time than the one that is stated.
        let wall = wall.filter(|_| derived != Some(Derived::NoneNamed));
        let own = (0..names.len()).filter(|&index| Some(index) != count && Some(index) != wall);
        Ok(Self {
            count,
            own: own.collect(),
            period_ns: derived.map_or_else(|| periods.first(), Derived::period_ns),
            wall: wall.map(|column| Wall { column, periods }),
        })
    }

    /// The period of a sample.
    fn period_ns(&self, record: &Sample) -> Option<u64> {
        let wall = self.wall.as_ref().zip(self.count);
        wall.map_or(self.period_ns, |(wall, count)| wall.period_ns(count, record))
    }

    fn has_periods(&self) -> bool {
        self.wall.as_ref().is_some_and(|wall| wall.periods.0.len() > 1)
    }
}

/// The column of times that are counts times a period, and the periods.
struct Wall {
    column: usize,
    periods: Periods,
}

impl Wall {
    /// The period of a sample; `count` is the column of counts.
    fn period_ns(&self, count: usize, record: &Sample) -> Option<u64> {
        self.periods.derive(record.values[count], record.values[self.column]).period_ns()
    }
}

/// Of which period samples are, by how many they are and how long they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Derived {
    /// Of this one, in nanoseconds.
    Period(u64),
    /// Of an unknown one: they take no time.
    Unknown,
    /// Of none that the file names.
    NoneNamed,
}

impl Derived {
    const fn period_ns(self) -> Option<u64> {
        match self {
            Self::Period(period_ns) => Some(period_ns),
            Self::Unknown | Self::NoneNamed => None,
        }
    }
}

/// The periods that a file names, its own first.
struct Periods(Vec<u64>);

impl Periods {
    fn of(document: &Document) -> Result<Self, Error> {
        let mut periods: Vec<_> = period_ns(document)?.into_iter().collect();
        for &comment in &document.comments {
            let comment = str::from_utf8(document.string(comment, 0)?).unwrap_or_default();
            let listed = comment.strip_prefix(PERIODS_COMMENT).unwrap_or_default();
            let listed = listed.split(',').filter_map(|period| period.parse().ok());
            for period in listed.take(SHOWN_PERIODS) {
                if period > 0 && !periods.contains(&period) {
                    periods.push(period);
                }
            }
        }
        Ok(Self(periods))
    }

    fn first(&self) -> Option<u64> {
        self.0.first().copied()
    }

    /// Of which period so many samples are that take so long.
    fn derive(&self, count: i64, wall: i64) -> Derived {
        match (self.first(), wall) {
            (None, _) => Derived::NoneNamed,
            (Some(first), 0) if count == 0 => Derived::Period(first),
            (Some(_), 0) => Derived::Unknown,
            (Some(_), _) => {
                let named = self.0.iter().find(|&&period| wall_ns(count, period) == wall);
                named.map_or(Derived::NoneNamed, |&period| Derived::Period(period))
            }
        }
    }
}

/// `count` samples as time, clamped as the exporter clamps it.
fn wall_ns(count: i64, period_ns: u64) -> i64 {
    let product = i128::from(count) * i128::from(period_ns);
    i64::try_from(product).unwrap_or(i64::MAX)
}

fn period_ns(document: &Document) -> Result<Option<u64>, Error> {
    let unit = document.string(document.period_type.unit, 0)?;
    let factor = std::str::from_utf8(unit).ok().and_then(nanoseconds_per);
    let period = u64::try_from(document.period).ok().filter(|&period| period > 0);
    Ok(period.zip(factor).and_then(|(period, factor)| period.checked_mul(factor)))
}

fn segment(document: &Document, columns: &Columns, tables: &mut Tables) -> Result<Segment, ReadError> {
    let mut value_types = Vec::new();
    for &index in &columns.own {
        let row = &document.sample_types[index];
        let text = |index| document.string(index, 0).map(|text| String::from_utf8_lossy(text).into_owned());
        value_types.push(ModelValueType { kind: text(row.kind)?, unit: text(row.unit)? });
    }
    Ok(Segment {
        format: NAME,
        period_ns: columns.period_ns,
        start_unix_ns: Some(document.time_ns).filter(|&time| time != 0),
        metadata: file_metadata(document, columns.has_periods(), tables)?,
        value_types,
        ..Segment::default()
    })
}

/// Comments as keys and values, and the fields that the model has no place for.
///
/// `has_periods`: the segments say the periods.
fn file_metadata(
    document: &Document,
    has_periods: bool,
    tables: &mut Tables,
) -> Result<Vec<(StringId, StringId)>, ReadError> {
    let mut pairs = Vec::new();
    let mut put = |key: &[u8], value: &[u8]| -> Result<(), ReadError> {
        pairs.push((tables.intern_string(key)?, tables.intern_string(value)?));
        Ok(())
    };
    for &index in &document.comments {
        let comment = document.string(index, 0)?;
        match memchr::memchr(b'=', comment) {
            _ if has_periods && comment.starts_with(PERIODS_COMMENT.as_bytes()) => {}
            Some(at) if at > 0 => put(&comment[..at], &comment[at + 1..])?,
            _ => put(metadata::COMMENT.as_bytes(), comment)?,
        }
    }
    if document.duration_ns > 0 {
        put(stated_duration::KEY.as_bytes(), document.duration_ns.to_string().as_bytes())?;
    }
    for (key, index) in
        [(metadata::DEFAULT_SAMPLE_TYPE, document.default_sample_type), (metadata::DOC_URL, document.doc_url)]
    {
        if index != 0 {
            put(key.as_bytes(), document.string(index, 0)?)?;
        }
    }
    Ok(pairs)
}

fn deliver(
    mut samples: Samples,
    columns: &Columns,
    segment: &mut Segment,
    resolver: &mut Resolver<'_>,
    sink: &mut dyn ProfileSink,
    damage: &mut Damage,
) -> Result<(), ReadError> {
    let mut record = Sample::default();
    let mut values = Vec::new();
    let mut thread_names = ThreadNames::default();
    loop {
        let resolved = match samples.next_sample(&mut record) {
            Ok(false) => return Ok(()),
            Err(error) => Err(error.into()),
            Ok(true) => resolver.resolve(&record),
        };
        let resolved = match resolved {
            Ok(resolved) => resolved,
            Err(ReadError::Input(error)) => {
                damage.meet(error, 0)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let period_ns = columns.period_ns(&record);
        if period_ns != segment.period_ns {
            segment.period_ns = period_ns;
            segment.index += 1;
            segment.metadata.clear();
            damage.recovery.segments += 1;
            sink.segment(Context { tables: &*resolver.tables, segment })?;
        }
        let at = Context { tables: &*resolver.tables, segment };
        if let Some((thread, name)) = at.thread(&resolved.sample).zip(resolved.thread_name)
            && thread_names.name(thread, name)
        {
            sink.thread(at, thread, name)?;
        }
        values.clear();
        values.extend(columns.own.iter().map(|&index| record.values[index]));
        // Without a column of counts each record is one observation.
        let count = columns.count.map_or(1, |index| record.values[index].unsigned_abs());
        let sample = ModelSample { count, values: &values, ..resolved.sample };
        damage.recovery.samples = damage.recovery.samples.saturating_add(count);
        if sink.sample(at, &sample)?.is_break() {
            damage.recovery.stopped = true;
            return Ok(());
        }
    }
}

/// Looks up what samples refer to, each location once.
struct Resolver<'d> {
    document: &'d Document,
    tables: &'d mut Tables,
    /// Where in `frames` the frames of a location are.
    locations: HashMap<u64, (usize, usize)>,
    frames: Vec<FrameId>,
    stack: Vec<FrameId>,
    labels: Vec<ModelLabel>,
    frames_left: u64,
}

/// A sample without its numbers.
struct Resolved {
    sample: ModelSample<'static>,
    thread_name: Option<StringId>,
}

impl<'d> Resolver<'d> {
    /// Frames that any document may have, and frames per byte beyond that.
    ///
    /// A location stands for all functions that were inlined at it, so two bytes in a sample can name
    /// thousands of frames. Real profiles stay below one frame a byte; this bounds time and memory by the
    /// size of the document.
    const FRAMES_FREE: u64 = 1 << 20;
    const FRAMES_PER_BYTE: u64 = 16;

    fn new(document: &'d Document, tables: &'d mut Tables) -> Self {
        let frames_left =
            Self::FRAMES_PER_BYTE.saturating_mul(document.len).saturating_add(Self::FRAMES_FREE);
        Self {
            document,
            tables,
            locations: HashMap::new(),
            frames: Vec::new(),
            stack: Vec::new(),
            labels: Vec::new(),
            frames_left,
        }
    }

    fn resolve(&mut self, record: &Sample) -> Result<Resolved, ReadError> {
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
        self.stack.clear();
        for &id in &record.locations {
            let (start, end) = match self.locations.get(&id) {
                Some(&range) => range,
                None => self.location(id, record.offset)?,
            };
            let left = self.frames_left.checked_sub((end - start) as u64);
            self.frames_left = left.ok_or_else(|| too_many_frames(record.offset))?;
            self.stack.extend_from_slice(&self.frames[start..end]);
        }
        Ok(self.tables.intern_stack_leaf_first(&self.stack)?)
    }

    /// Interns the frames of a location, innermost first.
    fn location(&mut self, id: u64, sample_offset: u64) -> Result<(usize, usize), ReadError> {
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
        for line in document.lines(location) {
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
        let range = (start, self.frames.len());
        self.locations.insert(id, range);
        Ok(range)
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
            // -1 is how reli writes that it does not know.
            line: line.line.filter(|&line| line != -1),
            column: line.column.checked_sub(1).and_then(|column| u32::try_from(column).ok()),
            native,
            ..Frame::named(function_name)
        })
    }

    /// A frame of which only the address is known: that is its name.
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
        // In a mapping that has a range the address is one of the process; how far that is from the start of
        // the function is not in the file. An address of 0 is one that is not known.
        let known = !has_range(mapping) && address != 0;
        let offset = known.then_some(address.cast_signed());
        Ok(NativeFrame { module, offset })
    }

    fn intern(&mut self, index: i64, offset: u64) -> Result<StringId, ReadError> {
        Ok(self.tables.intern_string(self.document.string(index, offset)?)?)
    }

    /// The thread that a sample's labels name.
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

    /// Takes a label that stands for a property of the sample; false if it is a label like any other.
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

/// Whether frames of `function` in `mapping` are machine code.
///
/// Programs that profile themselves (Go) put source functions into mappings, too; those have a file.
fn is_native(mapping: &Mapping, function: &Function) -> bool {
    function.file.unwrap_or(0) == 0 || (!has_range(mapping) && mapping.file != 0)
}

/// Whether a mapping says which addresses it covers. The exporter's do not: it knows offsets in functions.
const fn has_range(mapping: &Mapping) -> bool {
    mapping.limit > mapping.start
}

/// The number of a label that is a number without a unit.
fn plain_number(label: &Label) -> Option<i64> {
    label.number.filter(|_| label.unit == 0 && label.text.unwrap_or(0) == 0)
}

/// The flag of a status; the empty text is a status without flags.
fn status_flag(name: &[u8]) -> Option<Status> {
    if name.is_empty() { Some(Status::default()) } else { Status::flag(name) }
}
