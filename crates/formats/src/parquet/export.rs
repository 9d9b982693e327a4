//! Exports samples as rows.

use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, LabelValue, ProfileSink, Sample, StringId, Tables, Thread, ThreadNames, ValueType,
};
use hashbrown::HashMap;
use parquet::data_type::ByteArray;

use super::write::{FrameRow, RowGroup, SampleRow, TableFile};
use crate::sums::losses::SampleLosses;
use crate::{Export, Losses};

/// Writes a row for each sample, in the order of the input.
///
/// Memory: the rows of a group, and the distinct names.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, folded, parquet};
/// use borehole_model::{ProfileSink as _, Tables};
///
/// let (mut tables, mut file) = (Tables::default(), Vec::new());
/// let mut exporter = parquet::Exporter::new(&mut file);
/// folded::import(&b"main;query 3\n"[..], &ReadOptions::default(), &mut tables, &mut exporter)?;
/// exporter.finish(&tables)?;
/// drop(exporter);
/// assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Exporter<W: Write> {
    /// The output before the first row, and the file from then on.
    output: Option<W>,
    file: Option<TableFile<W>>,
    group: RowGroup,
    names: SharedNames,
    thread_names: ThreadNames,
    losses: SampleLosses,
    /// Texts that are not UTF-8, of which replacement characters were made.
    replaced: u64,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter that writes to `output`.
    pub fn new(output: W) -> Self {
        Self {
            output: Some(output),
            file: None,
            group: RowGroup::default(),
            names: SharedNames::default(),
            thread_names: ThreadNames::default(),
            losses: SampleLosses::default(),
            replaced: 0,
        }
    }

    fn file(&mut self) -> io::Result<&mut TableFile<W>> {
        if let Some(output) = self.output.take() {
            self.file = Some(TableFile::begin(output)?);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("the file could not be begun"))
    }

    fn row(&mut self, at: Context<'_>, sample: &Sample<'_>) -> SampleRow {
        let names = &mut self.names;
        let wall = at.segment.start_unix_ns.filter(|_| sample.time_ns.is_some());
        let thread_name = at.thread(sample).and_then(|thread| self.thread_names.of(thread)).copied();
        let state = sample.status.map(|status| status.names().collect::<Vec<_>>().join(","));
        SampleRow {
            time_ns: sample.time_ns,
            unix_ns: wall.and_then(|start_ns| start_ns.checked_add(sample.time_ns?)),
            count: i64::try_from(sample.count).unwrap_or(i64::MAX),
            period_ns: at.segment.period_ns.and_then(|period_ns| i64::try_from(period_ns).ok()),
            mode: ByteArray::from(at.segment.mode.name()),
            process: at.process(sample),
            thread: sample.thread.map(u64::cast_signed),
            thread_name: thread_name.map(|name| names.of(at.tables, name)),
            interpreter: sample.interpreter.map(u64::cast_signed),
            state: state.map(|state| ByteArray::from(&*state)),
        }
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let row = self.row(at, sample);
        self.group.row(row);
        let types = at.segment.value_types.iter().zip(sample.values);
        let names = &mut self.names;
        self.group.values(types.map(|(value_type, &value)| (names.of_type(value_type), value)));
        let labels = sample.labels.map_or(&[][..], |labels| at.tables.labels(labels));
        self.group.labels(labels.iter().map(|label| {
            let value = match label.value {
                LabelValue::Text(text) => names.of(at.tables, text),
                LabelValue::Number { value, .. } => ByteArray::from(&*value.to_string()),
            };
            (names.of(at.tables, label.key), value)
        }));
        self.group.stack(at.tables.frames_leaf_first(sample.stack).map(|frame| {
            let frame = at.tables.frame(frame);
            FrameRow {
                function: names.of(at.tables, frame.function),
                file: frame.file.map(|file| names.of(at.tables, file)),
                line: frame.line,
                module: frame.native.map(|native| names.of(at.tables, native.module)),
            }
        }));
        if self.group.is_full() {
            let mut group = std::mem::take(&mut self.group);
            self.file()?.write(&mut group)?;
            self.group = group;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.losses)
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        let mut group = std::mem::take(&mut self.group);
        self.replaced = self.names.replaced;
        let file = self.file()?;
        file.write(&mut group)?;
        file.finish()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = self.losses.report();
        losses.add("bytes of names that are not UTF-8", self.replaced);
        losses
    }
}

/// The texts of names, which rows share.
#[derive(Default)]
struct SharedNames {
    texts: HashMap<StringId, ByteArray>,
    types: Vec<(ValueType, ByteArray)>,
    replaced: u64,
}

impl SharedNames {
    fn of(&mut self, tables: &Tables, name: StringId) -> ByteArray {
        let replaced = &mut self.replaced;
        let text = self.texts.entry(name).or_insert_with(|| {
            let bytes = tables.string(name);
            let text = String::from_utf8_lossy(bytes);
            *replaced += u64::from(text.as_bytes() != bytes);
            ByteArray::from(&*text)
        });
        text.clone()
    }

    /// The key of a value: `alloc_space/bytes`.
    fn of_type(&mut self, value_type: &ValueType) -> ByteArray {
        if let Some((_, key)) = self.types.iter().find(|(known, _)| known == value_type) {
            return key.clone();
        }
        let key = ByteArray::from(&*format!("{}/{}", value_type.kind, value_type.unit));
        self.types.push((value_type.clone(), key.clone()));
        key
    }
}
