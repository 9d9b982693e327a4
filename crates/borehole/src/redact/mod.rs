//! Anonymized profiles, for readers who may see where time goes but not the names.

mod events;
mod name;

use std::hash::{BuildHasher as _, RandomState};
use std::ops::ControlFlow;
use std::{fmt, io};

use borehole_model::{
    Column, Context, Event, FrameId, FrameText, Label, LabelValue, LabelsId, ProfileSink, Sample, Segment,
    StackColumn, StackId, StringId, TableFull, Tables, Thread, ValueType, Warning,
};

use events::RedactedShapes;
use name::Namer;

/// The key that generates new names: the same key turns the same name into the same new name.
///
/// Anyone who has the key can guess names and check them, so keep it secret, and prefer long keys.
#[derive(Clone, Copy)]
pub struct RedactKey([u64; 2]);

impl RedactKey {
    /// Creates a random key, so names agree only within one output.
    #[must_use]
    pub fn random() -> Self {
        let random = RandomState::new();
        Self([0, 1].map(|half| random.hash_one(half)))
    }

    /// Creates the key of a text, so that several outputs have the same names.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Self {
        Self([0, 1].map(|half| name::siphash([half, 0], text)))
    }
}

/// Hides the key itself.
impl fmt::Debug for RedactKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RedactKey").finish_non_exhaustive()
    }
}

/// Renames everything before it passes samples on: functions, files, libraries, keys and values of labels, threads, and
/// uncommon value types.
///
/// Equal names stay equal, and names keep their form: each word of a function or path becomes another word, so classes,
/// namespaces and folders stay distinct. Names that every program has (`<main>`, `{closure}`, `.php`) stay. Counts, times,
/// lines, process and thread ids, and instructions stay. Events keep their times, numbers and addresses, and the names that dial9
/// and `borehole-recorder` give; their texts and the program's own names of events and fields become other words, and bytes are
/// left out. Metadata is left out, except that of dial9, whose keys stay. Warnings keep their positions and losses, without their
/// text.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::{Format, Input, InputOptions, Redact, RedactKey, Source, Target, import_all};
///
/// let secret = Source::reader("stacks", &b"Acme\\Pay::charge;PDO::query 3\nAcme\\Pay::refund 1\n"[..]);
/// let mut folded = Vec::new();
/// let exporter = Target::new(Format::Folded).exporter(&mut folded)?;
/// let mut redact = Redact::new(exporter, RedactKey::of_text(b"correct horse battery staple"));
/// import_all([Input::open(secret, &InputOptions::default())?], &mut redact)?;
/// drop(redact);
/// let text = String::from_utf8_lossy(&folded);
/// assert!(!text.contains("Acme") && !text.contains("charge") && text.contains("::"), "{text}");
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct Redact<S> {
    sink: S,
    segment: Segment,
    /// The renamed samples and tables for the sink.
    redacted: RedactedTables,
    stacks: StackColumn<StackId>,
    shapes: RedactedShapes,
}

/// Common value types of profilers, with their units. Programs that know the names treat such values specially, and they
/// reveal nothing about a program.
///
/// Source: Go 1.27, `runtime/pprof`; google/pprof, `internal/measurement`; and the types that our importers create, which a
/// test checks.
const COMMON_TYPES: [&str; 27] = [
    "samples",
    "sample",
    "count",
    "none",
    "objects",
    "space",
    "wall",
    "cpu",
    "time",
    "weight",
    "contentions",
    "delay",
    "goroutine",
    "threadcreate",
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "seconds",
    "minutes",
    "hours",
    "bytes",
    "kilobytes",
    "megabytes",
];

/// Tables of new names, and the state of the renaming.
struct RedactedTables {
    namer: Namer,
    tables: Tables,
    frames: Column<FrameId>,
    labels: Column<LabelsId>,
}

impl<S: ProfileSink> Redact<S> {
    /// Creates a renaming sink in front of `sink`.
    pub fn new(sink: S, key: RedactKey) -> Self {
        let RedactKey(key) = key;
        Self {
            sink,
            segment: Segment::default(),
            redacted: RedactedTables {
                namer: Namer { key },
                tables: Tables::default(),
                frames: Column::default(),
                labels: Column::default(),
            },
            stacks: StackColumn::default(),
            shapes: RedactedShapes::default(),
        }
    }

    fn stack(&mut self, stack: StackId, tables: &Tables) -> Result<StackId, TableFull> {
        let redacted = &mut self.redacted;
        self.stacks.derive(stack, tables, |caller, stack| {
            let frame = redacted.frame(tables.leaf(stack), tables)?;
            redacted.tables.intern_stack(caller, frame)
        })
    }
}

impl RedactedTables {
    fn words(&mut self, text: &[u8]) -> Result<StringId, TableFull> {
        self.tables.intern_string(&self.namer.words(text))
    }

    fn frame(&mut self, id: FrameId, tables: &Tables) -> Result<FrameId, TableFull> {
        if let Some(known) = self.frames.get(id.index()) {
            return Ok(known);
        }
        let frame = tables.frame(id).try_map(|text, id| match text {
            FrameText::Opcode => self.tables.intern_string(tables.string(id)),
            FrameText::Name | FrameText::File | FrameText::Module => self.words(tables.string(id)),
        })?;
        Ok(self.frames.set(id.index(), self.tables.intern_frame(&frame)?))
    }

    fn value_type(&self, own: &ValueType) -> ValueType {
        let redact = |text: &str| {
            if COMMON_TYPES.contains(&text) {
                return text.to_owned();
            }
            String::from_utf8_lossy(&self.namer.words(text.as_bytes())).into_owned()
        };
        ValueType { kind: redact(&own.kind), unit: redact(&own.unit) }
    }

    fn labels(&mut self, id: LabelsId, tables: &Tables) -> Result<LabelsId, TableFull> {
        if let Some(known) = self.labels.get(id.index()) {
            return Ok(known);
        }
        let mut labels = Vec::new();
        for label in tables.labels(id) {
            let value = match label.value {
                LabelValue::Text(text) => self.namer.whole(tables.string(text)),
                LabelValue::Number { value, .. } => self.namer.whole(value.to_string().as_bytes()),
            };
            let key = self.words(tables.string(label.key))?;
            labels.push(Label { key, value: LabelValue::Text(self.tables.intern_string(&value)?) });
        }
        Ok(self.labels.set(id.index(), self.tables.intern_labels(&labels)?))
    }
}

impl<S: ProfileSink> ProfileSink for Redact<S> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let stack = sample.stack.map(|stack| self.stack(stack, at.tables)).transpose()?;
        let labels = sample.labels.map(|labels| self.redacted.labels(labels, at.tables)).transpose()?;
        self.segment.process = at.segment.process;
        let at = Context { tables: &self.redacted.tables, segment: &self.segment };
        self.sink.sample(at, &Sample { stack, labels, ..*sample })
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let shape = self.shapes.shape(event.shape, at.tables, &mut self.redacted)?;
        let values = self.redacted.values(event, at.tables);
        let at = Context { tables: &self.redacted.tables, segment: &self.segment };
        self.sink.event(at, &Event { shape, values: &values, ..*event })
    }

    fn keeps_events(&mut self) -> bool {
        self.sink.keeps_events()
    }

    fn watches_events(&mut self) -> bool {
        self.sink.watches_events()
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        let name = self.redacted.namer.words(name.as_bytes());
        self.sink.source(&String::from_utf8_lossy(&name))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let value_types = at.segment.value_types.iter().map(|own| self.redacted.value_type(own)).collect();
        self.segment = Segment { metadata: Vec::new(), value_types, ..at.segment.clone() };
        self.sink.segment(Context { tables: &self.redacted.tables, segment: &self.segment })
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        let name = self.redacted.words(at.tables.string(name))?;
        self.sink.thread(Context { tables: &self.redacted.tables, segment: &self.segment }, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        // The original message may quote the input.
        let mut warning = warning.clone();
        "damage".clone_into(&mut warning.message);
        warning.input = None;
        self.sink.warning(&warning)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.sink.finish(&self.redacted.tables)
    }
}
