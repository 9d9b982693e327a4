//! Stacks in another shape, for what comes behind: frames hidden, collapsed, folded, from a focus on.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, Label, LabelValue, LabelsId, NameParts, NativeFrame, ProfileSink, Sample,
    Segment, StackId, StringId, TableFull, Tables, Warning,
};

use crate::call_tree::CallTree;
use crate::query::{Lines, Query};

/// Passes samples on with their stacks as a [`Query`] shapes them: those that it counts, with the frames that it shows.
///
/// Lines that are not told apart are left out. Events do not pass; those that tell of stacks pass as samples.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{Pattern, ProfileBuilder, Query, Reshape};
/// use borehole_model::{Context, Frame, ProfileSink, Sample, Segment, Tables};
///
/// let mut tables = Tables::default();
/// let [main, query] = ["main", "query"].map(|name| {
///     let name = tables.intern_string(name.as_bytes()).unwrap();
///     tables.intern_frame(&Frame::named(name)).unwrap()
/// });
/// let stack = tables.intern_stack_leaf_first(&[query, main])?;
///
/// let hide = Some(Pattern::new("^main$")?);
/// let mut reshape = Reshape::new(ProfileBuilder::default(), Query { hide, ..Query::default() });
/// let at = Context { tables: &tables, segment: &Segment::default() };
/// reshape.segment(at)?;
/// let _ = reshape.sample(at, &Sample { stack, count: 3, ..Sample::default() })?;
/// reshape.finish(&tables)?;
/// let (builder, tables) = reshape.into_parts();
/// assert_eq!(builder.into_profile(tables).summary().frames, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reshape<S> {
    sink: S,
    query: Query,
    tree: CallTree,
    tables: Tables,
    segment: Segment,
    strings: Vec<Option<StringId>>,
    frames: Vec<Option<FrameId>>,
    /// By stack, once it is known: its new one, which is none if all its frames are hidden.
    stacks: Vec<Option<Option<StackId>>>,
    labels: Vec<Option<LabelsId>>,
    path: Vec<StackId>,
}

impl<S: ProfileSink> Reshape<S> {
    /// `sink` behind what `query` makes of stacks.
    pub fn new(sink: S, query: Query) -> Self {
        Self {
            sink,
            query,
            tree: CallTree::default(),
            tables: Tables::default(),
            segment: Segment::default(),
            strings: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            labels: Vec::new(),
            path: Vec::new(),
        }
    }

    /// The sink, and the tables that its ids are of.
    pub fn into_parts(self) -> (S, Tables) {
        (self.sink, self.tables)
    }

    /// Whether samples without frames count.
    const fn takes_empty(&self) -> bool {
        self.query.keep.is_none() && self.query.focus.is_none()
    }

    /// The new stack of one that counts.
    fn stack(&mut self, stack: StackId, tables: &Tables) -> Result<Option<StackId>, TableFull> {
        let mut path = std::mem::take(&mut self.path);
        let (mut known, mut next) = (None, Some(stack));
        while let Some(stack) = next {
            known = self.stacks.get(stack.index()).copied().flatten();
            if known.is_some() {
                break;
            }
            path.push(stack);
            next = tables.parent(stack);
        }
        let mut new = known.flatten();
        for stack in path.drain(..).rev() {
            if self.tree.node(stack).shown {
                let frame = self.frame(tables.leaf(stack), tables)?;
                new = Some(self.tables.intern_stack(new, frame)?);
            }
            put(&mut self.stacks, stack.index(), new);
        }
        self.path = path;
        Ok(new)
    }

    fn frame(&mut self, id: FrameId, tables: &Tables) -> Result<FrameId, TableFull> {
        if let Some(known) = self.frames.get(id.index()).copied().flatten() {
            return Ok(known);
        }
        let frame = match self.tree.groups().renamed(id) {
            Some(name) => Frame::named(self.tables.intern_string(&name.function)?),
            None => self.shown_frame(tables.frame(id), tables)?,
        };
        let new = self.tables.intern_frame(&frame)?;
        put(&mut self.frames, id.index(), new);
        Ok(new)
    }

    fn shown_frame(&mut self, frame: &Frame, tables: &Tables) -> Result<Frame, TableFull> {
        let function = self.string(frame.function, tables)?;
        let mut shown = Frame {
            opcode: frame.opcode.map(|opcode| self.string(opcode, tables)).transpose()?,
            file: frame.file.map(|file| self.path(file, tables)).transpose()?,
            ..Frame::named(function)
        };
        if let Some(NameParts { namespace, class, method }) = frame.parts {
            let mut string = |id| self.string(id, tables);
            let (namespace, class) = (string(namespace)?, string(class)?);
            shown.parts = Some(NameParts { namespace, class, method: string(method)? });
        }
        if let Some(native) = frame.native {
            shown.native = Some(NativeFrame { module: self.path(native.module, tables)?, ..native });
        }
        if self.query.lines == Lines::Apart {
            let Frame { line, end_line, column, end_column, .. } = *frame;
            shown = Frame { line, end_line, column, end_column, ..shown };
        }
        Ok(shown)
    }

    fn string(&mut self, id: StringId, tables: &Tables) -> Result<StringId, TableFull> {
        if let Some(known) = self.strings.get(id.index()).copied().flatten() {
            return Ok(known);
        }
        let new = self.tables.intern_string(tables.string(id))?;
        put(&mut self.strings, id.index(), new);
        Ok(new)
    }

    fn path(&mut self, id: StringId, tables: &Tables) -> Result<StringId, TableFull> {
        self.tables.intern_string(&self.query.path_map.apply(tables.string(id)))
    }

    fn labels(&mut self, id: LabelsId, tables: &Tables) -> Result<LabelsId, TableFull> {
        if let Some(known) = self.labels.get(id.index()).copied().flatten() {
            return Ok(known);
        }
        let mut labels = Vec::new();
        for label in tables.labels(id) {
            let value = match label.value {
                LabelValue::Text(text) => LabelValue::Text(self.string(text, tables)?),
                LabelValue::Number { value, unit } => {
                    let unit = unit.map(|unit| self.string(unit, tables)).transpose()?;
                    LabelValue::Number { value, unit }
                }
            };
            labels.push(Label { key: self.string(label.key, tables)?, value });
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

impl<S: ProfileSink> ProfileSink for Reshape<S> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let counts = match sample.stack {
            Some(stack) => self.tree.place(stack, at.tables, &self.query),
            None => self.takes_empty(),
        };
        if !counts {
            return Ok(ControlFlow::Continue(()));
        }
        let stack = match sample.stack {
            Some(stack) => self.stack(stack, at.tables)?,
            None => None,
        };
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
        self.sink.source(name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let mut metadata = Vec::new();
        for &(key, value) in &at.segment.metadata {
            metadata.push((self.string(key, at.tables)?, self.string(value, at.tables)?));
        }
        self.segment = Segment { metadata, ..at.segment.clone() };
        self.sink.segment(Context { tables: &self.tables, segment: &self.segment })
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        let (key, value) = (self.string(key, at.tables)?, self.string(value, at.tables)?);
        self.sink.metadata(Context { tables: &self.tables, segment: &self.segment }, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: u64, name: StringId) -> io::Result<()> {
        let name = self.string(name, at.tables)?;
        self.sink.thread(Context { tables: &self.tables, segment: &self.segment }, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(warning)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.sink.finish(&self.tables)
    }
}
