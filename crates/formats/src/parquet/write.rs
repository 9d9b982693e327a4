//! The columns of the table, and the file that they are written to in groups of rows.
//!
//! Source: the Parquet format 2.12, `LogicalTypes.md` for lists and maps; the crate parquet 59.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// The table.
pub(super) const SCHEMA: &str = "
message samples {
    optional int64 time_ns;
    optional int64 time (TIMESTAMP(NANOS, true));
    required int64 count;
    optional int64 period_ns;
    required binary mode (STRING);
    optional int64 process;
    optional int64 thread;
    optional binary thread_name (STRING);
    optional int64 interpreter;
    optional binary state (STRING);
    required group measures (MAP) {
        repeated group key_value {
            required binary key (STRING);
            required int64 value;
        }
    }
    required group labels (MAP) {
        repeated group key_value {
            required binary key (STRING);
            required binary value (STRING);
        }
    }
    required group stack (LIST) {
        repeated group list {
            required group element {
                required binary function (STRING);
                optional binary file (STRING);
                optional int64 line;
                optional binary module (STRING);
            }
        }
    }
}";

/// The most rows of a group.
const MAX_GROUP_ROWS: usize = 1 << 16;

/// The most elements of the lists of a group: frames, values and labels. They are held until the group is written.
const MAX_GROUP_ELEMENTS: usize = 1 << 18;

/// The values of a column with their levels.
#[derive(Debug)]
struct Column<T> {
    values: Vec<T>,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() }
    }
}

impl<T> Column<T> {
    /// Adds a value outside lists.
    fn put(&mut self, value: Option<T>) {
        self.definitions.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// Adds an element of a list; `index` is its 0-based place.
    fn put_element(&mut self, index: usize, value: T) {
        self.repetitions.push(i16::from(index > 0));
        self.definitions.push(1);
        self.values.push(value);
    }

    /// Adds a member of an element of a list, which may be absent.
    fn put_member(&mut self, index: usize, value: Option<T>) {
        self.repetitions.push(i16::from(index > 0));
        self.definitions.push(if value.is_some() { 2 } else { 1 });
        self.values.extend(value);
    }

    /// Adds a list without elements.
    fn put_empty(&mut self) {
        self.repetitions.push(0);
        self.definitions.push(0);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.definitions.clear();
        self.repetitions.clear();
    }
}

/// A row without its lists.
#[derive(Debug)]
pub(super) struct SampleRow {
    pub(super) time_ns: Option<i64>,
    pub(super) unix_ns: Option<i64>,
    pub(super) count: i64,
    pub(super) period_ns: Option<i64>,
    pub(super) mode: ByteArray,
    pub(super) process: Option<i64>,
    pub(super) thread: Option<i64>,
    pub(super) thread_name: Option<ByteArray>,
    pub(super) interpreter: Option<i64>,
    pub(super) state: Option<ByteArray>,
}

/// A frame of a stack.
#[derive(Debug)]
pub(super) struct FrameRow {
    pub(super) function: ByteArray,
    pub(super) file: Option<ByteArray>,
    pub(super) line: Option<i64>,
    pub(super) module: Option<ByteArray>,
}

/// The rows of a group, by column.
#[derive(Debug, Default)]
pub(super) struct RowGroup {
    rows: usize,
    elements: usize,
    time_ns: Column<i64>,
    unix_ns: Column<i64>,
    count: Column<i64>,
    period_ns: Column<i64>,
    mode: Column<ByteArray>,
    process: Column<i64>,
    thread: Column<i64>,
    thread_name: Column<ByteArray>,
    interpreter: Column<i64>,
    state: Column<ByteArray>,
    value_keys: Column<ByteArray>,
    values: Column<i64>,
    label_keys: Column<ByteArray>,
    labels: Column<ByteArray>,
    functions: Column<ByteArray>,
    files: Column<ByteArray>,
    lines: Column<i64>,
    modules: Column<ByteArray>,
}

impl RowGroup {
    /// Adds a row; its lists follow.
    pub(super) fn row(&mut self, row: SampleRow) {
        self.rows += 1;
        self.time_ns.put(row.time_ns);
        self.unix_ns.put(row.unix_ns);
        self.count.put(Some(row.count));
        self.period_ns.put(row.period_ns);
        self.mode.put(Some(row.mode));
        self.process.put(row.process);
        self.thread.put(row.thread);
        self.thread_name.put(row.thread_name);
        self.interpreter.put(row.interpreter);
        self.state.put(row.state);
    }

    pub(super) fn values(&mut self, values: impl Iterator<Item = (ByteArray, i64)>) {
        let mut count = 0;
        for (key, value) in values {
            self.value_keys.put_element(count, key);
            self.values.put_element(count, value);
            count += 1;
        }
        self.elements += count;
        if count == 0 {
            self.value_keys.put_empty();
            self.values.put_empty();
        }
    }

    pub(super) fn labels(&mut self, labels: impl Iterator<Item = (ByteArray, ByteArray)>) {
        let mut count = 0;
        for (key, value) in labels {
            self.label_keys.put_element(count, key);
            self.labels.put_element(count, value);
            count += 1;
        }
        self.elements += count;
        if count == 0 {
            self.label_keys.put_empty();
            self.labels.put_empty();
        }
    }

    pub(super) fn stack(&mut self, frames_leaf_first: impl Iterator<Item = FrameRow>) {
        let mut count = 0;
        for FrameRow { function, file, line, module } in frames_leaf_first {
            self.functions.put_element(count, function);
            self.files.put_member(count, file);
            self.lines.put_member(count, line);
            self.modules.put_member(count, module);
            count += 1;
        }
        self.elements += count;
        if count == 0 {
            self.functions.put_empty();
            self.files.put_empty();
            self.lines.put_empty();
            self.modules.put_empty();
        }
    }

    /// Whether the group is large enough to be written.
    pub(super) const fn is_full(&self) -> bool {
        self.rows >= MAX_GROUP_ROWS || self.elements >= MAX_GROUP_ELEMENTS
    }

    fn clear(&mut self) {
        let Self { rows, elements, .. } = self;
        (*rows, *elements) = (0, 0);
        self.integers().into_iter().for_each(Column::clear);
        self.texts().into_iter().for_each(Column::clear);
    }

    fn integers(&mut self) -> [&mut Column<i64>; 9] {
        [
            &mut self.time_ns,
            &mut self.unix_ns,
            &mut self.count,
            &mut self.period_ns,
            &mut self.process,
            &mut self.thread,
            &mut self.interpreter,
            &mut self.values,
            &mut self.lines,
        ]
    }

    fn texts(&mut self) -> [&mut Column<ByteArray>; 9] {
        [
            &mut self.mode,
            &mut self.thread_name,
            &mut self.state,
            &mut self.value_keys,
            &mut self.label_keys,
            &mut self.labels,
            &mut self.functions,
            &mut self.files,
            &mut self.modules,
        ]
    }

    /// Writes the columns in the order of the schema.
    fn write<W: Write + Send>(&self, mut to: SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        integers(&mut to, &self.time_ns)?;
        integers(&mut to, &self.unix_ns)?;
        integers(&mut to, &self.count)?;
        integers(&mut to, &self.period_ns)?;
        texts(&mut to, &self.mode)?;
        integers(&mut to, &self.process)?;
        integers(&mut to, &self.thread)?;
        texts(&mut to, &self.thread_name)?;
        integers(&mut to, &self.interpreter)?;
        texts(&mut to, &self.state)?;
        texts(&mut to, &self.value_keys)?;
        integers(&mut to, &self.values)?;
        texts(&mut to, &self.label_keys)?;
        texts(&mut to, &self.labels)?;
        texts(&mut to, &self.functions)?;
        texts(&mut to, &self.files)?;
        integers(&mut to, &self.lines)?;
        texts(&mut to, &self.modules)?;
        to.close().map(|_| ())
    }
}

fn integers<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<i64>,
) -> Result<(), ParquetError> {
    write_column::<Int64Type, W>(to, column)
}

fn texts<W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<ByteArray>,
) -> Result<(), ParquetError> {
    write_column::<ByteArrayType, W>(to, column)
}

fn write_column<T: DataType, W: Write + Send>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    column: &Column<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut writer) = to.next_column()? else {
        return Err(ParquetError::General("more columns than the schema has".to_owned()));
    };
    // The crate ignores the levels that a column of the schema does not have.
    let repetitions = Some(&column.repetitions[..]).filter(|levels| !levels.is_empty());
    writer.typed::<T>().write_batch(&column.values, Some(&column.definitions), repetitions)?;
    writer.close()
}

/// Bytes that the crate has written, and that the output has not yet. The crate wants an output that may move to another thread.
#[derive(Clone, Default)]
struct WrittenBytes(Arc<Mutex<Vec<u8>>>);

impl Write for WrittenBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WrittenBytes {
    fn move_to(&self, output: &mut impl Write) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(&bytes)?;
        bytes.clear();
        Ok(())
    }
}

/// A file that is being written.
pub(super) struct TableFile<W> {
    output: W,
    written: WrittenBytes,
    writer: SerializedFileWriter<WrittenBytes>,
}

impl<W: Write> TableFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If the crate fails.
    pub(super) fn begin(output: W) -> io::Result<Self> {
        let schema = parse_message_type(SCHEMA).map_err(io::Error::other)?;
        let gzip = Compression::GZIP(parquet::basic::GzipLevel::default());
        let properties =
            WriterProperties::builder().set_compression(gzip).set_created_by("borehole".to_owned()).build();
        let written = WrittenBytes::default();
        let writer = SerializedFileWriter::new(written.clone(), Arc::new(schema), Arc::new(properties));
        Ok(Self { output, written, writer: writer.map_err(io::Error::other)? })
    }

    /// Writes the rows of a group, and empties it.
    ///
    /// # Errors
    /// If the output fails.
    pub(super) fn write(&mut self, group: &mut RowGroup) -> io::Result<()> {
        if group.rows > 0 {
            let to = self.writer.next_row_group().map_err(io::Error::other)?;
            group.write(to).map_err(io::Error::other)?;
            group.clear();
        }
        self.written.move_to(&mut self.output)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the output fails.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer.finish().map_err(io::Error::other)?;
        self.written.move_to(&mut self.output)?;
        self.output.flush()
    }
}
