//! A sink that reshapes stacks for another sink: frames hidden, collapsed, folded, or from a focus on.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Annotation, Column, Context, Event, FieldShape, Frame, FrameId, FrameText, Label, LabelValue, LabelsId,
    ProfileSink, Sample, Segment, Shape, ShapeId, StackColumn, StackId, StringId, TableFull, Tables, Thread,
    Warning,
};

use crate::call_tree::CallTree;
use crate::query::{LineRows, Query};

/// Passes on the samples that a [`Query`] counts, with the frames that it shows.
///
/// If the query ignores lines, frames have none. Events pass unchanged, except events with stacks, which pass as samples.
///
/// # Examples
///
/// ```
/// use borehole_analysis::{Pattern, ProfileBuilder, Query, ReshapeSink};
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
/// let mut reshape = ReshapeSink::new(ProfileBuilder::default(), Query { hide, ..Query::default() });
/// let at = Context { tables: &tables, segment: &Segment::default() };
/// reshape.segment(at)?;
/// let _ = reshape.sample(at, &Sample { stack, count: 3, ..Sample::default() })?;
/// reshape.finish(&tables)?;
/// let (builder, tables) = reshape.into_parts();
/// assert_eq!(builder.into_profile(tables).summary().frames, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ReshapeSink<S> {
    sink: S,
    query: Query,
    tree: CallTree,
    segment: Segment,
    /// The tables for the sink.
    reshaped: Reshaped,
    /// By stack: its new stack; `None` if all its frames are hidden.
    stacks: StackColumn<Option<StackId>>,
    samples: u64,
    is_any_passed: bool,
}

/// The new tables, and the new id of each old one.
#[derive(Default)]
struct Reshaped {
    tables: Tables,
    strings: Column<StringId>,
    frames: Column<FrameId>,
    labels: Column<LabelsId>,
    shapes: Column<ShapeId>,
}

impl<S: ProfileSink> ReshapeSink<S> {
    /// Creates a sink that reshapes stacks by `query` and passes samples to `sink`.
    pub fn new(sink: S, query: Query) -> Self {
        Self {
            sink,
            query,
            tree: CallTree::default(),
            segment: Segment::default(),
            reshaped: Reshaped::default(),
            stacks: StackColumn::default(),
            samples: 0,
            is_any_passed: false,
        }
    }

    /// The number of samples, if none of them was passed on.
    pub fn all_left_out(&self) -> Option<u64> {
        Some(self.samples).filter(|&samples| samples > 0 && !self.is_any_passed)
    }

    /// The inner sink.
    pub const fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// The inner sink, and the tables that its ids belong to.
    pub fn into_parts(self) -> (S, Tables) {
        (self.sink, self.reshaped.tables)
    }

    /// Whether samples without frames count.
    const fn takes_empty(&self) -> bool {
        self.query.keep.is_none() && self.query.focus.is_none()
    }

    /// The new stack of a stack that counts.
    fn stack(&mut self, stack: StackId, tables: &Tables) -> Result<Option<StackId>, TableFull> {
        let Self { query, tree, reshaped, stacks, .. } = self;
        stacks.derive(stack, tables, |caller, stack| {
            let caller = caller.flatten();
            if !tree.is_shown(stack) {
                return Ok(caller);
            }
            let frame = reshaped.frame(tables.leaf(stack), tables, tree, query)?;
            reshaped.tables.intern_stack(caller, frame).map(Some)
        })
    }
}

impl Reshaped {
    fn frame(
        &mut self,
        id: FrameId,
        tables: &Tables,
        tree: &CallTree,
        query: &Query,
    ) -> Result<FrameId, TableFull> {
        if let Some(known) = self.frames.get(id.index()) {
            return Ok(known);
        }
        let frame = match tree.groups.renamed(id) {
            Some(name) => Frame::named(self.tables.intern_string(&name.function)?),
            None => self.shown_frame(&tables.frame(id), tables, query)?,
        };
        Ok(self.frames.set(id.index(), self.tables.intern_frame(&frame)?))
    }

    fn shown_frame(&mut self, frame: &Frame, tables: &Tables, query: &Query) -> Result<Frame, TableFull> {
        let shown = frame.try_map(|text, id| match text {
            FrameText::File | FrameText::Module => {
                self.tables.intern_string(&query.path_map.apply(tables.string(id)))
            }
            FrameText::Name | FrameText::Opcode => self.string(id, tables),
        })?;
        Ok(match query.lines {
            LineRows::Apart => shown,
            _ => Frame { line: None, end_line: None, column: None, end_column: None, ..shown },
        })
    }

    fn string(&mut self, id: StringId, tables: &Tables) -> Result<StringId, TableFull> {
        match self.strings.get(id.index()) {
            Some(known) => Ok(known),
            None => Ok(self.strings.set(id.index(), self.tables.intern_string(tables.string(id))?)),
        }
    }

    fn labels(&mut self, id: LabelsId, tables: &Tables) -> Result<LabelsId, TableFull> {
        if let Some(known) = self.labels.get(id.index()) {
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
        Ok(self.labels.set(id.index(), self.tables.intern_labels(&labels)?))
    }

    fn shape(&mut self, id: ShapeId, tables: &Tables) -> Result<ShapeId, TableFull> {
        if let Some(known) = self.shapes.get(id.index()) {
            return Ok(known);
        }
        let Shape { name, fields, annotations } = tables.shape(id);
        let mut shape = Shape {
            name: self.string(*name, tables)?,
            fields: Vec::with_capacity(fields.len()),
            annotations: Vec::with_capacity(annotations.len()),
        };
        for field in fields {
            shape.fields.push(FieldShape { name: self.string(field.name, tables)?, ..*field });
        }
        for annotation in annotations {
            let (key, value) = (self.string(annotation.key, tables)?, self.string(annotation.value, tables)?);
            shape.annotations.push(Annotation { key, value, ..*annotation });
        }
        Ok(self.shapes.set(id.index(), self.tables.intern_shape(&shape)?))
    }
}

impl<S: ProfileSink> ProfileSink for ReshapeSink<S> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let counts = match sample.stack {
            Some(stack) => self.tree.place(stack, at.tables, &self.query),
            None => self.takes_empty(),
        };
        self.samples = self.samples.saturating_add(sample.count);
        if !counts {
            return Ok(ControlFlow::Continue(()));
        }
        self.is_any_passed = true;
        let stack = match sample.stack {
            Some(stack) => self.stack(stack, at.tables)?,
            None => None,
        };
        let labels = sample.labels.map(|labels| self.reshaped.labels(labels, at.tables)).transpose()?;
        self.segment.process = at.segment.process;
        let at = Context { tables: &self.reshaped.tables, segment: &self.segment };
        self.sink.sample(at, &Sample { stack, labels, ..*sample })
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let shape = self.reshaped.shape(event.shape, at.tables)?;
        let at = Context { tables: &self.reshaped.tables, segment: &self.segment };
        self.sink.event(at, &Event { shape, ..*event })
    }

    /// Events with stacks contain addresses, but frames are selected by name.
    fn keeps_events(&mut self) -> bool {
        false
    }

    fn watches_events(&mut self) -> bool {
        self.sink.watches_events()
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.sink.source(name)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let mut metadata = Vec::new();
        for &(key, value) in &at.segment.metadata {
            metadata.push((self.reshaped.string(key, at.tables)?, self.reshaped.string(value, at.tables)?));
        }
        self.segment = Segment { metadata, ..at.segment.clone() };
        self.sink.segment(Context { tables: &self.reshaped.tables, segment: &self.segment })
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        // The metadata may have set the process of the segment.
        self.segment.process = at.segment.process;
        let (key, value) = (self.reshaped.string(key, at.tables)?, self.reshaped.string(value, at.tables)?);
        self.sink.metadata(Context { tables: &self.reshaped.tables, segment: &self.segment }, key, value)
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        let name = self.reshaped.string(name, at.tables)?;
        self.sink.thread(Context { tables: &self.reshaped.tables, segment: &self.segment }, thread, name)
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.sink.warning(warning)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.sink.finish(&self.reshaped.tables)
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{FieldKind, Value};

    use super::*;

    /// Whose process each sample is, and the texts of what events say: their name, and each field with its annotation.
    #[derive(Default)]
    struct Said(Vec<String>);

    impl ProfileSink for Said {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push(format!("process {:?}", at.process(sample)));
            Ok(ControlFlow::Continue(()))
        }

        fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
            let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
            let Shape { name, fields, annotations } = at.tables.shape(event.shape);
            let names = fields.iter().map(|field| text(field.name));
            let units = annotations.iter().map(|unit| format!("{}={}", text(unit.key), text(unit.value)));
            let names: Vec<_> = std::iter::once(text(*name)).chain(names).chain(units).collect();
            self.0.push(format!("{} {:?} {:?}", names.join(" "), event.values, event.time_ns));
            Ok(ControlFlow::Continue(()))
        }

        fn watches_events(&mut self) -> bool {
            true
        }
    }

    #[test]
    fn events_pass_with_their_names_in_the_other_tables() {
        let mut tables = Tables::default();
        // The first one is left behind, so that the others have other ids there.
        let [_, name, field, key, value] = ["unused", "write", "size", "unit", "B"]
            .map(|text| tables.intern_string(text.as_bytes()).unwrap());
        let shape = tables
            .intern_shape(&Shape {
                name,
                fields: vec![FieldShape { name: field, kind: FieldKind::Unsigned64, optional: false }],
                annotations: vec![Annotation { field: 0, key, value }],
            })
            .unwrap();
        let mut reshape = ReshapeSink::new(Said::default(), Query::default());
        let at = Context { tables: &tables, segment: &Segment::default() };
        for size in [7, 8] {
            let event = Event { shape, type_id: None, time_ns: Some(size), values: &[Value::Unsigned(size)] };
            assert!(reshape.event(at, &event).unwrap().is_continue());
        }
        assert!(reshape.watches_events() && !reshape.keeps_events());
        let said = reshape.into_parts().0.0;
        assert_eq!(
            said,
            ["write size unit=B [Unsigned(7)] Some(7)", "write size unit=B [Unsigned(8)] Some(8)"]
        );
    }

    #[test]
    fn metadata_that_comes_late_tells_whose_process_samples_are() {
        let mut tables = Tables::default();
        let [key, value] = ["pid", "5"].map(|text| tables.intern_string(text.as_bytes()).unwrap());
        let [early, late] = [None, Some(5)].map(|process| Segment { process, ..Segment::default() });
        let mut reshape = ReshapeSink::new(Said::default(), Query::default());
        let [early, late] = [&early, &late].map(|segment| Context { tables: &tables, segment });
        reshape.segment(early).unwrap();
        let sample = Sample { count: 1, ..Sample::default() };
        assert!(reshape.sample(early, &sample).unwrap().is_continue());
        reshape.metadata(late, key, value).unwrap();
        assert!(reshape.sample(late, &sample).unwrap().is_continue());
        assert_eq!(reshape.into_parts().0.0, ["process None", "process Some(5)"]);
    }
}
