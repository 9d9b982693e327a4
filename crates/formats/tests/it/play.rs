//! Profiles as plain data: passed to a sink, collected from one, or generated.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::{Error, ReadError};
use borehole_model::{
    Context, Frame, Label, LabelValue, Measure, Mode, NativeFrame, ProfileSink, Recovery, Sample, Sampled,
    Segment, Status, StringId, Tables, Thread, ValueType, Weigher,
};
use proptest::prelude::*;

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlainFrame {
    pub(crate) function: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<i64>,
    pub(crate) column: Option<u32>,
    pub(crate) native: Option<(String, Option<i64>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlainLabel {
    Text(String, String),
    Number(String, i64, Option<String>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlainSample {
    pub(crate) frames_leaf_first: Vec<PlainFrame>,
    pub(crate) count: u64,
    pub(crate) time_ns: Option<i64>,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) interpreter: Option<u64>,
    pub(crate) status: Option<u8>,
    pub(crate) labels: Vec<PlainLabel>,
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainSegment {
    pub(crate) period_ns: Option<u64>,
    pub(crate) has_times: bool,
    pub(crate) start_unix_ns: Option<i64>,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) value_types: Vec<(String, String)>,
    pub(crate) mode: Mode,
    pub(crate) default_measure: Option<Measure>,
    pub(crate) is_uncounted: bool,
    pub(crate) samples: Vec<PlainSample>,
}

/// The result of `import`, or the error in its input.
pub(crate) fn collected(
    import: impl FnOnce(&mut Tables, &mut Collect) -> Result<Recovery, ReadError>,
) -> Result<(Collect, Recovery), Error> {
    let (mut tables, mut collect) = (Tables::default(), Collect::default());
    match import(&mut tables, &mut collect) {
        Ok(recovery) => Ok((collect, recovery)),
        Err(ReadError::Input(error)) => Err(error),
        Err(ReadError::Sink(error)) => panic!("{error}"),
    }
}

/// A sink that keeps everything as plain data.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    pub(crate) segments: Vec<PlainSegment>,
    pub(crate) thread_names: Vec<(u64, String)>,
    pub(crate) warnings: usize,
}

impl Collect {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &PlainSample> {
        self.segments.iter().flat_map(|segment| &segment.samples)
    }

    pub(crate) fn count(&self) -> u64 {
        self.samples().map(|sample| sample.count).sum()
    }
}

impl ProfileSink for Collect {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let plain = plain_sample(at, sample);
        self.segments.last_mut().unwrap().samples.push(plain);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let text = |id: StringId| text(at.tables, id);
        let segment = at.segment;
        self.segments.push(PlainSegment {
            period_ns: segment.period_ns,
            has_times: segment.has_times,
            start_unix_ns: segment.start_unix_ns,
            metadata: segment.metadata.iter().map(|&(key, value)| (text(key), text(value))).collect(),
            value_types: segment.value_types.iter().map(|row| (row.kind.clone(), row.unit.clone())).collect(),
            mode: segment.mode,
            default_measure: segment.default_measure,
            is_uncounted: segment.is_uncounted,
            samples: Vec::new(),
        });
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.push((thread.number, text(at.tables, name)));
        Ok(())
    }

    fn warning(&mut self, _warning: &borehole_model::Warning) -> io::Result<()> {
        self.warnings += 1;
        Ok(())
    }
}

/// A sink that adds up the weights of samples by leaf function.
pub(crate) struct Weights {
    pub(crate) weigher: Weigher,
    pub(crate) sums: BTreeMap<String, i64>,
}

impl Weights {
    /// Weighs the requested value type, or else the default.
    pub(crate) fn new(asked: Option<&str>) -> Self {
        Self { weigher: Weigher::new(asked, Sampled::Time), sums: BTreeMap::new() }
    }

    pub(crate) fn value_type(&self) -> String {
        self.weigher.value_type().unwrap().to_string()
    }

    pub(crate) fn total(&self) -> i64 {
        self.sums.values().sum()
    }
}

impl ProfileSink for Weights {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let leaf = at.tables.frames_leaf_first(sample.stack).next();
        let leaf = leaf.map_or(String::new(), |frame| text(at.tables, at.tables.function(frame)));
        if let Some(weight) = self.weigher.weigh(at, sample) {
            let sum = self.sums.entry(leaf).or_default();
            *sum = sum.saturating_add(weight);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.weigher.segment(at.segment);
        Ok(())
    }
}

fn text(tables: &Tables, id: StringId) -> String {
    String::from_utf8_lossy(tables.string(id)).into_owned()
}

fn plain_sample(at: Context<'_>, sample: &Sample<'_>) -> PlainSample {
    let tables = at.tables;
    let frames = tables.frames_leaf_first(sample.stack).map(|id| {
        let frame = tables.frame(id);
        PlainFrame {
            function: text(tables, frame.function),
            file: frame.file.map(|file| text(tables, file)),
            line: frame.line,
            column: frame.column,
            native: frame.native.map(|native| (text(tables, native.module), native.offset)),
        }
    });
    let labels = sample.labels.map_or(&[] as &[Label], |labels| tables.labels(labels));
    let label = |label: &Label| match label.value {
        LabelValue::Text(value) => PlainLabel::Text(text(tables, label.key), text(tables, value)),
        LabelValue::Number { value, unit } => {
            PlainLabel::Number(text(tables, label.key), value, unit.map(|unit| text(tables, unit)))
        }
    };
    PlainSample {
        frames_leaf_first: frames.collect(),
        count: sample.count,
        time_ns: sample.time_ns,
        process: at.process(sample),
        thread: sample.thread,
        interpreter: sample.interpreter,
        status: sample.status.map(|status| status.0),
        labels: labels.iter().map(label).collect(),
        values: sample.values.to_vec(),
    }
}

/// Passes segments to a sink, as an importer would, and finishes it.
pub(crate) fn play(segments: &[PlainSegment], sink: &mut dyn ProfileSink) {
    play_inputs(&[segments], sink);
}

/// Passes the segments of several inputs to a sink, and finishes it.
pub(crate) fn play_inputs(inputs: &[&[PlainSegment]], sink: &mut dyn ProfileSink) {
    let mut tables = Tables::default();
    for (index, plain) in inputs.iter().flat_map(|segments| (0..).zip(*segments)) {
        let mut intern = |text: &String| tables.intern_string(text.as_bytes()).unwrap();
        let metadata = plain.metadata.iter().map(|(key, value)| (intern(key), intern(value))).collect();
        let types = plain.value_types.iter().cloned();
        let segment = Segment {
            format: "test",
            index,
            period_ns: plain.period_ns,
            has_times: plain.has_times,
            start_unix_ns: plain.start_unix_ns,
            metadata,
            value_types: types.map(|(kind, unit)| ValueType { kind, unit }).collect(),
            mode: plain.mode,
            default_measure: plain.default_measure,
            is_uncounted: plain.is_uncounted,
            ..Segment::default()
        };
        sink.segment(Context { tables: &tables, segment: &segment }).unwrap();
        for plain in &plain.samples {
            let sample = intern_sample(&mut tables, plain);
            let at = Context { tables: &tables, segment: &segment };
            let _ = sink.sample(at, &sample).unwrap();
        }
    }
    sink.finish(&tables).unwrap();
}

fn intern_sample<'a>(tables: &mut Tables, plain: &'a PlainSample) -> Sample<'a> {
    let frames: Vec<_> = plain.frames_leaf_first.iter().map(|frame| intern_frame(tables, frame)).collect();
    let mut intern = |text: &String| tables.intern_string(text.as_bytes()).unwrap();
    let labels: Vec<_> = plain
        .labels
        .iter()
        .map(|label| match label {
            PlainLabel::Text(key, value) => {
                Label { key: intern(key), value: LabelValue::Text(intern(value)) }
            }
            PlainLabel::Number(key, value, unit) => {
                let value = LabelValue::Number { value: *value, unit: unit.as_ref().map(&mut intern) };
                Label { key: intern(key), value }
            }
        })
        .collect();
    let labels = (!labels.is_empty()).then(|| tables.intern_labels(&labels).unwrap());
    Sample {
        stack: tables.intern_stack_leaf_first(&frames).unwrap(),
        count: plain.count,
        time_ns: plain.time_ns,
        delta_us: None,
        process: plain.process,
        thread: plain.thread,
        interpreter: plain.interpreter,
        status: plain.status.map(Status),
        labels,
        values: &plain.values,
    }
}

fn intern_frame(tables: &mut Tables, plain: &PlainFrame) -> borehole_model::FrameId {
    let mut intern = |text: &String| tables.intern_string(text.as_bytes()).unwrap();
    let native = plain.native.as_ref();
    let frame = Frame {
        file: plain.file.as_ref().map(&mut intern),
        line: plain.line,
        column: plain.column,
        native: native.map(|(module, offset)| NativeFrame {
            module: intern(module),
            offset: *offset,
            file_offset: None,
        }),
        ..Frame::named(intern(&plain.function))
    };
    tables.intern_frame(&frame).unwrap()
}

/// A frame with only a name.
pub(crate) fn named(function: &str) -> PlainFrame {
    PlainFrame { function: function.to_owned(), ..PlainFrame::default() }
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,2}", "App\\\\[A-C]::[a-b]{1,2}", "\\PC{0,6}", Just("\"\\\n\u{1}".to_owned())]
}

/// Frames that every format with files, lines, columns and modules can hold.
pub(crate) fn any_frame() -> impl Strategy<Value = PlainFrame> {
    let line = prop_oneof![Just(None), (0..200_i64).prop_map(Some), Just(Some(i64::MAX))];
    let column = prop_oneof![Just(None), (0..100_u32).prop_map(Some)];
    let source = (any_text(), proptest::option::of(any_text()), line, column);
    let source = source.prop_map(|(function, file, line, column)| PlainFrame {
        function,
        file,
        line,
        column,
        native: None,
    });
    let native = (any_text(), "lib[ab]|", proptest::option::of(known_offset())).prop_map(
        |(function, module, offset)| PlainFrame { native: Some((module, offset)), ..named(&function) },
    );
    prop_oneof![3 => source, 1 => native]
}

fn any_label() -> impl Strategy<Value = PlainLabel> {
    prop_oneof![
        ("[xyz]", any_text()).prop_map(|(key, value)| PlainLabel::Text(key, value)),
        ("[xyz]", any::<i64>(), proptest::option::of("bytes|s"))
            .prop_map(|(key, value, unit)| PlainLabel::Number(key, value, unit)),
    ]
}

/// Samples over a few frames and processes, so that stacks and properties repeat.
pub(crate) fn any_samples() -> impl Strategy<Value = Vec<PlainSample>> {
    let frames = proptest::collection::vec(any_frame(), 1..6);
    frames.prop_flat_map(|frames| {
        let stack = proptest::collection::vec(proptest::sample::select(frames), 0..5);
        let labels = prop_oneof![3 => Just(Vec::new()), 1 => proptest::collection::vec(any_label(), 0..3)];
        let process = prop_oneof![Just(None), (-1..3_i64).prop_map(Some)];
        let thread = prop_oneof![3 => Just(None), 1 => prop_oneof![0..3_u64, Just(u64::MAX)].prop_map(Some)];
        let state = (proptest::option::of(0..2_u64), proptest::option::of(0..64_u8));
        let count = prop_oneof![3 => 1..4_u64, 1 => 1..1_u64 << 41];
        let sample = (stack, count, process, thread, state, labels).prop_map(
            |(frames_leaf_first, count, process, thread, (interpreter, status), labels)| PlainSample {
                frames_leaf_first,
                count,
                process,
                thread,
                interpreter,
                status,
                labels,
                ..PlainSample::default()
            },
        );
        proptest::collection::vec(sample, 0..12)
    })
}

/// In pprof, 0 stands for unknown.
fn known_offset() -> impl Strategy<Value = i64> {
    any::<i64>().prop_filter("an offset that is known", |offset| *offset != 0)
}
