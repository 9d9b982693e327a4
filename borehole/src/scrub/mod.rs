//! Profiles without the names in them, for those who may see where time goes but not in what.

mod name;

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, Label, LabelValue, LabelsId, NameParts, NativeFrame, ProfileSink, Sample,
    Segment, StackId, StringId, TableFull, Tables, Warning,
};

use name::Namer;

/// What makes the new names: with the same key the same name becomes the same.
///
/// Who knows the key can try names until one fits, so it is a secret, and better long than short.
#[derive(Clone, Copy, Debug)]
pub struct ScrubKey([u64; 2]);

impl ScrubKey {
    /// A key that nobody knows: names are the same within one output only.
    #[must_use]
    pub fn random() -> Self {
        let random = RandomState::new();
        Self([0, 1].map(|half| random.hash_one(half)))
    }

    /// The key that a text stands for, so that several outputs have the same names.
    #[must_use]
    pub fn of_text(text: &[u8]) -> Self {
        Self([0, 1].map(|half| name::siphash([half, 0], text)))
    }
}

/// Gives everything a new name before it passes samples on: functions, files, libraries, keys and values of labels, threads.
///
/// Equal names stay equal, and names keep their form: each word of a function or path becomes another word, so that
/// classes, namespaces and folders are still told apart. Names that every program has (`<main>`, `{closure}`, `.php`) stay.
/// Counts, times, lines, numbers of processes and threads, and instructions stay. Metadata is left out, and so are
/// events: those that tell of stacks pass as samples.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "folded")] {
/// use borehole::{Format, Input, InputOptions, Scrub, ScrubKey, Source, Target, import_all};
///
/// let secret = Source::reader("stacks", &b"Acme\\Pay::charge;PDO::query 3\nAcme\\Pay::refund 1\n"[..]);
/// let mut folded = Vec::new();
/// let exporter = Target::new(Format::Folded).exporter(&mut folded)?;
/// let mut scrub = Scrub::new(exporter, ScrubKey::of_text(b"correct horse battery staple"));
/// import_all([Input::open(secret, &InputOptions::default())?], &mut scrub)?;
/// drop(scrub);
/// let text = String::from_utf8_lossy(&folded);
/// assert!(!text.contains("Acme") && !text.contains("charge") && text.contains("::"), "{text}");
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct Scrub<S> {
    sink: S,
    namer: Namer,
    tables: Tables,
    segment: Segment,
    frames: Vec<Option<FrameId>>,
    stacks: Vec<Option<StackId>>,
    labels: Vec<Option<LabelsId>>,
    path: Vec<StackId>,
}

impl<S: ProfileSink> Scrub<S> {
    /// `sink` behind new names.
    pub fn new(sink: S, key: ScrubKey) -> Self {
        let ScrubKey(key) = key;
        Self {
            sink,
            namer: Namer { key },
            tables: Tables::default(),
            segment: Segment::default(),
            frames: Vec::new(),
            stacks: Vec::new(),
            labels: Vec::new(),
            path: Vec::new(),
        }
    }

    /// The sink.
    pub fn into_inner(self) -> S {
        self.sink
    }

    fn stack(&mut self, stack: StackId, tables: &Tables) -> Result<StackId, TableFull> {
        let mut path = std::mem::take(&mut self.path);
        let mut next = Some(stack);
        let mut known = None;
        while let Some(stack) = next {
            known = self.stacks.get(stack.index()).copied().flatten();
            if known.is_some() {
                break;
            }
            path.push(stack);
            next = tables.parent(stack);
        }
        for stack in path.drain(..).rev() {
            let frame = self.frame(tables.leaf(stack), tables)?;
            let new = self.tables.intern_stack(known, frame)?;
            put(&mut self.stacks, stack.index(), new);
            known = Some(new);
        }
        self.path = path;
        Ok(known.expect("a stack has a frame"))
    }

    fn frame(&mut self, id: FrameId, tables: &Tables) -> Result<FrameId, TableFull> {
        if let Some(known) = self.frames.get(id.index()).copied().flatten() {
            return Ok(known);
        }
        let frame = tables.frame(id);
        let (namer, new) = (&self.namer, &mut self.tables);
        let mut words = |id: StringId| new.intern_string(&namer.words(tables.string(id)));
        let mut scrubbed = Frame {
            function: words(frame.function)?,
            parts: None,
            file: frame.file.map(&mut words).transpose()?,
            native: None,
            opcode: None,
            ..*frame
        };
        if let Some(parts) = frame.parts {
            scrubbed.parts = Some(NameParts {
                namespace: words(parts.namespace)?,
                class: words(parts.class)?,
                method: words(parts.method)?,
            });
        }
        if let Some(native) = frame.native {
            scrubbed.native = Some(NativeFrame { module: words(native.module)?, ..native });
        }
        scrubbed.opcode = frame.opcode.map(|opcode| new.intern_string(tables.string(opcode))).transpose()?;
        let new = self.tables.intern_frame(&scrubbed)?;
        put(&mut self.frames, id.index(), new);
        Ok(new)
    }

    fn labels(&mut self, id: LabelsId, tables: &Tables) -> Result<LabelsId, TableFull> {
        if let Some(known) = self.labels.get(id.index()).copied().flatten() {
            return Ok(known);
        }
        let mut labels = Vec::new();
        for label in tables.labels(id) {
            let value = match label.value {
                LabelValue::Text(text) => self.namer.whole(tables.string(text)),
                LabelValue::Number { value, .. } => self.namer.whole(value.to_string().as_bytes()),
            };
            labels.push(Label {
                key: self.tables.intern_string(&self.namer.words(tables.string(label.key)))?,
                value: LabelValue::Text(self.tables.intern_string(&value)?),
            });
        }
        let new = self.tables.intern_labels(&labels)?;
        put(&mut self.labels, id.index(), new);
        Ok(new)
    }
}

fn put<T: Copy>(column: &mut Vec<Option<T>>, row: usize, value: T) {
    if row >= column.len() {
        column.resize(row + 1, None);
    }
    column[row] = Some(value);
}

impl<S: ProfileSink> ProfileSink for Scrub<S> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let stack = sample.stack.map(|stack| self.stack(stack, at.tables)).transpose()?;
        let labels = sample.labels.map(|labels| self.labels(labels, at.tables)).transpose()?;
        let at = Context { tables: &self.tables, segment: &self.segment };
        self.sink.sample(at, &Sample { stack, labels, ..*sample })
    }

    fn event(&mut self, _at: Context<'_>, _event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        false
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        let name = self.namer.words(name.as_bytes());
        self.sink.source(&String::from_utf8_lossy(&name))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.segment = Segment { metadata: Vec::new(), ..at.segment.clone() };
        self.sink.segment(Context { tables: &self.tables, segment: &self.segment })
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        let name = self.tables.intern_string(&self.namer.words(at.tables.string(name)))?;
        self.sink.thread(Context { tables: &self.tables, segment: &self.segment }, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(warning)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.sink.finish(&self.tables)
    }
}
