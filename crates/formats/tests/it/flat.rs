//! Samples without tables, to compare and to generate.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use borehole_formats::{ReadError, ReadOptions, rbt};
use borehole_model::{
    Context, Frame, FrameId, Label, LabelValue, NativeFrame, ProfileSink, Recovery, Sample, Segment, Tables,
};
use borehole_testkit::{corpus_files, read_corpus};
use proptest::prelude::*;

/// The sorted names in a folder of the corpus that end with `suffix`, without the suffix.
pub(crate) fn corpus_names(folder: &str, suffix: &str) -> Vec<String> {
    let name =
        |path: PathBuf| path.file_name().unwrap().to_str().unwrap().strip_suffix(suffix).unwrap().to_owned();
    corpus_files(folder, suffix).into_iter().map(name).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlatFrame {
    pub(crate) function: Vec<u8>,
    pub(crate) file: Option<Vec<u8>>,
    pub(crate) line: Option<i64>,
    pub(crate) opcode: Option<Vec<u8>>,
    /// Module and offset.
    pub(crate) native: Option<(Vec<u8>, Option<i64>)>,
}

impl FlatFrame {
    pub(crate) fn php(function: &str, file: &str, line: i64) -> Self {
        let file = Some(file.into());
        Self { function: function.into(), file, line: (line != -1).then_some(line), ..Self::default() }
    }

    fn intern(&self, tables: &mut Tables) -> FrameId {
        let mut string = |text: &Vec<u8>| tables.intern_string(text).unwrap();
        let frame = Frame {
            file: self.file.as_ref().map(&mut string),
            line: self.line,
            opcode: self.opcode.as_ref().map(&mut string),
            native: self.native.as_ref().map(|(module, offset)| NativeFrame {
                module: string(module),
                offset: *offset,
                file_offset: None,
            }),
            ..Frame::named(string(&self.function))
        };
        tables.intern_frame(&frame).unwrap()
    }

    fn of(tables: &Tables, frame: &Frame) -> Self {
        let string = |id| tables.string(id).to_vec();
        Self {
            function: string(frame.function),
            file: frame.file.map(string),
            line: frame.line,
            opcode: frame.opcode.map(string),
            native: frame.native.map(|native| (string(native.module), native.offset)),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlatSample {
    pub(crate) frames_leaf_first: Vec<FlatFrame>,
    pub(crate) count: u64,
    pub(crate) process: Option<i64>,
    pub(crate) labels: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A sink that keeps samples in flat form.
#[derive(Default)]
pub(crate) struct Collect(pub(crate) Vec<FlatSample>);

impl ProfileSink for Collect {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let tables = at.tables;
        let labels = sample.labels.map_or(&[][..], |labels| tables.labels(labels));
        let text = |label: &Label| match label.value {
            LabelValue::Text(text) => (tables.string(label.key).to_vec(), tables.string(text).to_vec()),
            LabelValue::Number { .. } => panic!("no text format has numbers"),
        };
        self.0.push(FlatSample {
            frames_leaf_first: tables
                .frames_leaf_first(sample.stack)
                .map(|frame| FlatFrame::of(tables, &tables.frame(frame)))
                .collect(),
            count: sample.count,
            process: sample.process,
            labels: labels.iter().map(text).collect(),
        });
        Ok(ControlFlow::Continue(()))
    }
}

type Import<'a> = &'a dyn Fn(
    &mut dyn io::BufRead,
    &ReadOptions,
    &mut Tables,
    &mut dyn ProfileSink,
) -> Result<Recovery, ReadError>;

pub(crate) fn read(
    import: Import<'_>,
    text: &[u8],
    options: &ReadOptions,
) -> Result<(Vec<FlatSample>, Recovery), ReadError> {
    let mut collect = Collect::default();
    let recovery = import(&mut &text[..], options, &mut Tables::default(), &mut collect)?;
    Ok((collect.0, recovery))
}

/// Passes samples to a sink, and finishes it.
pub(crate) fn play(samples: &[FlatSample], segment: &Segment, sink: &mut dyn ProfileSink) -> io::Result<()> {
    let mut tables = Tables::default();
    sink.segment(Context { tables: &tables, segment })?;
    for sample in samples {
        let frames: Vec<_> = sample.frames_leaf_first.iter().map(|frame| frame.intern(&mut tables)).collect();
        let stack = tables.intern_stack_leaf_first(&frames).unwrap();
        let mut label = |(key, value): &(Vec<u8>, Vec<u8>)| Label {
            key: tables.intern_string(key).unwrap(),
            value: LabelValue::Text(tables.intern_string(value).unwrap()),
        };
        let labels: Vec<_> = sample.labels.iter().map(&mut label).collect();
        let labels = (!labels.is_empty()).then(|| tables.intern_labels(&labels).unwrap());
        let FlatSample { count, process, .. } = *sample;
        let sample = Sample { stack, count, process, labels, ..Sample::default() };
        let _ = sink.sample(Context { tables: &tables, segment }, &sample)?;
    }
    sink.finish(&tables)
}

/// The samples of an `rbt` file of the corpus, up to its first error.
pub(crate) fn rbt_samples(name: &str) -> Vec<FlatSample> {
    let mut collect = Collect::default();
    let bytes = read_corpus(&format!("rbt/{name}"));
    let _ = rbt::import(&*bytes, &ReadOptions::default(), &mut Tables::default(), &mut collect);
    collect.0
}

/// Whether text formats keep a text as it is: it has no control characters.
#[expect(clippy::ptr_arg, reason = "strategies of vectors are filtered by it")]
pub(crate) fn is_kept(text: &Vec<u8>) -> bool {
    !text.iter().any(u8::is_ascii_control) && !text.windows(2).any(|pair| pair[0] == 0xc2 && pair[1] < 0xa0)
}

/// Typical names, without spaces.
pub(crate) fn name() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(0x21..=0xffu8, 1..12);
    prop_oneof![
        "[a-zA-Z_\\\\:{}<>$@.()é;-]{1,12}".prop_map(String::into_bytes),
        bytes.prop_filter("control characters", is_kept),
        Just(b"{closure:/a b/c.php:12}".to_vec()),
        Just(b"{closure:12}".to_vec()),
    ]
}

/// Paths, some with spaces.
pub(crate) fn path() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "/[a-z .:()'é-]{0,16}[a-z.]".prop_map(String::into_bytes),
        Just(b"<internal>".to_vec()),
        Just(b"Command line code".to_vec()),
        Just(b"C:\\dir\\f.php".to_vec()),
    ]
}

/// Line numbers, except for the one that means "unknown".
pub(crate) fn line() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![Just(None), (1..10_000i64).prop_map(Some), any::<i64>().prop_map(|n| (n != -1).then_some(n))]
}

/// Every prefix of `text`, and `text` with every byte changed in a few ways.
pub(crate) fn damaged(text: &[u8], mut check: impl FnMut(&[u8])) {
    for end in 0..text.len() {
        check(&text[..end]);
    }
    let mut copy = text.to_vec();
    for at in 0..text.len() {
        for byte in [0, b' ', b'\n', b'\t', b':', b'#', b';', b'0', 0xff, text[at] ^ 1] {
            copy[at] = byte;
            check(&copy);
        }
        copy[at] = text[at];
    }
}
