//! Small profiles, written as literals.

use std::ops::ControlFlow;

use borehole_analysis::{Profile, ProfileBuilder, Query, ReportSink, ReportView, ReshapeSink};
use borehole_model::{
    Context, Frame, Label, LabelValue, NativeFrame, ProfileSink, Sample, Segment, StackId, Tables,
};

/// A frame, as tests write it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct F {
    pub(crate) function: Vec<u8>,
    pub(crate) file: Option<Vec<u8>>,
    pub(crate) line: Option<i64>,
    pub(crate) module: Option<Vec<u8>>,
    pub(crate) opcode: Option<Vec<u8>>,
}

/// A sample, as tests write it. `frames` is leaf first.
#[derive(Clone, Debug, Default)]
pub(crate) struct S {
    pub(crate) frames: Vec<F>,
    pub(crate) count: u64,
    pub(crate) period_ns: Option<u64>,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) labels: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    pub(crate) time_ns: Option<i64>,
}

/// Functions that have only names, leaf first.
pub(crate) fn named(functions: &[&str]) -> Vec<F> {
    functions.iter().map(|name| F { function: name.as_bytes().to_vec(), ..F::default() }).collect()
}

/// `count` samples of functions.
pub(crate) fn sample(functions: &[&str], count: u64) -> S {
    S { frames: named(functions), count, ..S::default() }
}

fn intern_stack(tables: &mut Tables, frames: &[F]) -> Option<StackId> {
    let ids = frames.iter().map(|frame| {
        let mut string = |text: &Vec<u8>| tables.intern_string(text).unwrap();
        let interned = Frame {
            file: frame.file.as_ref().map(&mut string),
            line: frame.line,
            opcode: frame.opcode.as_ref().map(&mut string),
            native: frame.module.as_ref().map(|module| NativeFrame {
                module: string(module),
                offset: Some(1),
                file_offset: None,
            }),
            ..Frame::named(string(&frame.function))
        };
        tables.intern_frame(&interned).unwrap()
    });
    let ids: Vec<_> = ids.collect();
    tables.intern_stack_leaf_first(&ids).unwrap()
}

/// The report of a query on samples.
pub(crate) fn view(samples: &[S], query: Query) -> ReportView {
    let mut sink = ReportSink::new(query);
    read(samples, &mut sink);
    sink.into_view()
}

/// Samples as a profile in memory.
pub(crate) fn profile(samples: &[S]) -> Profile {
    let mut builder = ProfileBuilder::default();
    let tables = read(samples, &mut builder);
    builder.into_profile(tables)
}

/// Samples as a profile in memory, reshaped by a query before they are counted.
pub(crate) fn reshaped(samples: &[S], query: &Query) -> Profile {
    let mut reshape = ReshapeSink::new(ProfileBuilder::default(), query.clone());
    read(samples, &mut reshape);
    let (builder, tables) = reshape.into_parts();
    builder.into_profile(tables)
}

/// Passes samples to a sink. A segment begins whenever the period changes.
fn read(samples: &[S], sink: &mut dyn ProfileSink) -> Tables {
    let mut tables = Tables::default();
    let mut segment = Segment::default();
    for (index, sample) in samples.iter().enumerate() {
        let stack = intern_stack(&mut tables, &sample.frames);
        let labels = sample.labels.as_ref().map(|labels| {
            let mut label = |(key, value): &(Vec<u8>, Vec<u8>)| Label {
                key: tables.intern_string(key).unwrap(),
                value: LabelValue::Text(tables.intern_string(value).unwrap()),
            };
            let labels: Vec<_> = labels.iter().map(&mut label).collect();
            tables.intern_labels(&labels).unwrap()
        });
        if index == 0 || segment.period_ns != sample.period_ns {
            segment = Segment { index: index as u64, period_ns: sample.period_ns, ..Segment::default() };
            sink.segment(Context { tables: &tables, segment: &segment }).unwrap();
        }
        let S { count, process, thread, time_ns, .. } = *sample;
        let sample = Sample { stack, count, process, thread, labels, time_ns, ..Sample::default() };
        let flow = sink.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
        assert_eq!(flow, ControlFlow::Continue(()));
    }
    sink.finish(&tables).unwrap();
    tables
}
