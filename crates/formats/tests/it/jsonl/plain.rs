//! A profile as plain values without ids: the input of an exporter, and the output that a test compares.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, Label, LabelValue, Measure, Mode, NameParts, NativeFrame, ProfileSink,
    Recovery, Sample, Segment, Status, StringId, Tables, Thread, ValueType, Warning,
};

use super::plain_event::{PlainEvent, plain_event, with_event};

pub(crate) type Bytes = Vec<u8>;

/// One call of a sink.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Source(String),
    Segment(PlainSegment),
    Metadata(Bytes, Bytes),
    Thread(Thread, Bytes),
    Sample(PlainSample),
    Event(PlainEvent),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainSegment {
    pub(crate) format: &'static str,
    pub(crate) index: u64,
    pub(crate) offset: Option<u64>,
    pub(crate) period_ns: Option<u64>,
    pub(crate) has_times: bool,
    pub(crate) is_ordered: bool,
    pub(crate) start_unix_ns: Option<i64>,
    pub(crate) began_ns: Option<i64>,
    pub(crate) depth_limit: Option<u32>,
    pub(crate) process: Option<i64>,
    pub(crate) metadata: Vec<(Bytes, Bytes)>,
    pub(crate) mode: Mode,
    pub(crate) value_types: Vec<ValueType>,
    pub(crate) default_measure: Option<Measure>,
    pub(crate) is_uncounted: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainSample {
    pub(crate) frames: Vec<PlainFrame>,
    pub(crate) count: u64,
    pub(crate) time_ns: Option<i64>,
    pub(crate) delta_us: Option<i64>,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) interpreter: Option<u64>,
    pub(crate) status: Option<u8>,
    pub(crate) labels: Option<Vec<(Bytes, PlainLabel)>>,
    pub(crate) values: Vec<i64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlainLabel {
    Text(Bytes),
    Number(i64, Option<Bytes>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainFrame {
    pub(crate) function: Bytes,
    pub(crate) parts: Option<[Bytes; 3]>,
    pub(crate) file: Option<Bytes>,
    pub(crate) line: Option<i64>,
    pub(crate) end_line: Option<i64>,
    pub(crate) column: Option<u32>,
    pub(crate) end_column: Option<u32>,
    pub(crate) opcode: Option<Bytes>,
    pub(crate) native: Option<(Bytes, Option<i64>)>,
}

/// Makes the calls, passes the warnings, and finishes the sink.
pub(crate) fn play(calls: &[Call], warnings: &[Warning], sink: &mut dyn ProfileSink) {
    let mut tables = Tables::default();
    let mut segment = Segment::default();
    for call in calls {
        if let Call::Segment(plain) = call {
            segment = intern_segment(&mut tables, plain);
        }
        play_one(call, &mut tables, &segment, sink).unwrap();
    }
    warnings.iter().for_each(|warning| sink.warning(warning).unwrap());
    sink.finish(&tables).unwrap();
}

fn play_one(
    call: &Call,
    tables: &mut Tables,
    segment: &Segment,
    sink: &mut dyn ProfileSink,
) -> io::Result<()> {
    match call {
        Call::Source(name) => sink.source(name),
        Call::Segment(_) => sink.segment(Context { tables, segment }),
        Call::Metadata(key, value) => {
            let (key, value) = (tables.intern_string(key)?, tables.intern_string(value)?);
            sink.metadata(Context { tables, segment }, key, value)
        }
        Call::Thread(thread, name) => {
            let name = tables.intern_string(name)?;
            sink.thread(Context { tables, segment }, *thread, name)
        }
        Call::Event(plain) => {
            let pass = |tables: &Tables, event: &Event<'_>| sink.event(Context { tables, segment }, event);
            with_event(tables, plain, pass).map(|_| ())
        }
        Call::Sample(plain) => {
            let sample = intern_sample(tables, plain);
            sink.sample(Context { tables, segment }, &sample).map(|_| ())
        }
    }
}

fn intern(tables: &mut Tables, string: &[u8]) -> StringId {
    tables.intern_string(string).unwrap()
}

fn intern_segment(tables: &mut Tables, plain: &PlainSegment) -> Segment {
    let metadata = plain.metadata.iter().map(|(key, value)| (intern(tables, key), intern(tables, value)));
    Segment {
        format: plain.format,
        index: plain.index,
        offset: plain.offset,
        period_ns: plain.period_ns,
        has_times: plain.has_times,
        is_ordered: plain.is_ordered,
        start_unix_ns: plain.start_unix_ns,
        began_ns: plain.began_ns,
        depth_limit: plain.depth_limit,
        process: plain.process,
        metadata: metadata.collect(),
        mode: plain.mode,
        value_types: plain.value_types.clone(),
        default_measure: plain.default_measure,
        is_uncounted: plain.is_uncounted,
    }
}

fn intern_sample<'a>(tables: &mut Tables, plain: &'a PlainSample) -> Sample<'a> {
    let frames: Vec<_> = plain.frames.iter().map(|frame| intern_frame(tables, frame)).collect();
    let labels = plain.labels.as_ref().map(|labels| {
        let labels: Vec<_> = labels.iter().map(|label| intern_label(tables, label)).collect();
        tables.intern_labels(&labels).unwrap()
    });
    Sample {
        stack: tables.intern_stack_leaf_first(&frames).unwrap(),
        count: plain.count,
        time_ns: plain.time_ns,
        delta_us: plain.delta_us,
        process: plain.process,
        thread: plain.thread,
        interpreter: plain.interpreter,
        status: plain.status.map(Status),
        labels,
        values: &plain.values,
    }
}

fn intern_label(tables: &mut Tables, (key, value): &(Bytes, PlainLabel)) -> Label {
    let value = match value {
        PlainLabel::Text(text) => LabelValue::Text(intern(tables, text)),
        PlainLabel::Number(value, unit) => {
            LabelValue::Number { value: *value, unit: unit.as_ref().map(|unit| intern(tables, unit)) }
        }
    };
    Label { key: intern(tables, key), value }
}

fn intern_frame(tables: &mut Tables, plain: &PlainFrame) -> FrameId {
    let parts = plain.parts.as_ref().map(|[namespace, class, method]| NameParts {
        namespace: intern(tables, namespace),
        class: intern(tables, class),
        method: intern(tables, method),
    });
    let native = plain.native.as_ref().map(|(module, offset)| NativeFrame {
        module: intern(tables, module),
        offset: *offset,
        file_offset: None,
    });
    let frame = Frame {
        function: intern(tables, &plain.function),
        parts,
        file: plain.file.as_ref().map(|file| intern(tables, file)),
        line: plain.line,
        end_line: plain.end_line,
        column: plain.column,
        end_column: plain.end_column,
        opcode: plain.opcode.as_ref().map(|opcode| intern(tables, opcode)),
        native,
    };
    tables.intern_frame(&frame).unwrap()
}

/// A sink that keeps every call.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) calls: Vec<Call>,
    pub(crate) outcome: Recovery,
    /// The number of samples after which it stops.
    pub(crate) stop_after: Option<usize>,
}

impl ProfileSink for Recorder {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.outcome.samples = self.outcome.samples.saturating_add(sample.count);
        self.calls.push(Call::Sample(plain_sample(at.tables, sample)));
        let taken = self.calls.iter().filter(|call| matches!(call, Call::Sample(_))).count();
        let enough = self.stop_after.is_some_and(|limit| taken >= limit);
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.outcome.events += 1;
        self.calls.push(Call::Event(plain_event(at.tables, event)));
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.calls.push(Call::Source(name.to_owned()));
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.outcome.segments += 1;
        self.calls.push(Call::Segment(plain_segment(at)));
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.calls.push(Call::Metadata(bytes(at.tables, key), bytes(at.tables, value)));
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.calls.push(Call::Thread(thread, bytes(at.tables, name)));
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.outcome.warn(warning.clone());
        Ok(())
    }
}

fn bytes(tables: &Tables, id: StringId) -> Bytes {
    tables.string(id).to_vec()
}

fn plain_segment(at: Context<'_>) -> PlainSegment {
    let segment = at.segment;
    let metadata =
        segment.metadata.iter().map(|&(key, value)| (bytes(at.tables, key), bytes(at.tables, value)));
    PlainSegment {
        format: segment.format,
        index: segment.index,
        offset: segment.offset,
        period_ns: segment.period_ns,
        has_times: segment.has_times,
        is_ordered: segment.is_ordered,
        start_unix_ns: segment.start_unix_ns,
        began_ns: segment.began_ns,
        depth_limit: segment.depth_limit,
        process: segment.process,
        metadata: metadata.collect(),
        mode: segment.mode,
        value_types: segment.value_types.clone(),
        default_measure: segment.default_measure,
        is_uncounted: segment.is_uncounted,
    }
}

fn plain_sample(tables: &Tables, sample: &Sample<'_>) -> PlainSample {
    let frames =
        tables.frames_leaf_first(sample.stack).map(|frame| plain_frame(tables, &tables.frame(frame)));
    let labels = sample.labels.map(|labels| {
        tables
            .labels(labels)
            .iter()
            .map(|label| (bytes(tables, label.key), plain_label(tables, label)))
            .collect()
    });
    PlainSample {
        frames: frames.collect(),
        count: sample.count,
        time_ns: sample.time_ns,
        delta_us: sample.delta_us,
        process: sample.process,
        thread: sample.thread,
        interpreter: sample.interpreter,
        status: sample.status.map(|status| status.0),
        labels,
        values: sample.values.to_vec(),
    }
}

fn plain_label(tables: &Tables, label: &Label) -> PlainLabel {
    match label.value {
        LabelValue::Text(text) => PlainLabel::Text(bytes(tables, text)),
        LabelValue::Number { value, unit } => PlainLabel::Number(value, unit.map(|unit| bytes(tables, unit))),
    }
}

fn plain_frame(tables: &Tables, frame: &Frame) -> PlainFrame {
    let parts =
        frame.parts.map(|parts| [parts.namespace, parts.class, parts.method].map(|part| bytes(tables, part)));
    PlainFrame {
        function: bytes(tables, frame.function),
        parts,
        file: frame.file.map(|file| bytes(tables, file)),
        line: frame.line,
        end_line: frame.end_line,
        column: frame.column,
        end_column: frame.end_column,
        opcode: frame.opcode.map(|opcode| bytes(tables, opcode)),
        native: frame.native.map(|native| (bytes(tables, native.module), native.offset)),
    }
}
