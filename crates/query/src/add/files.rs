//! Writers of Parquet files.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Fields, Schema};
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use datafusion::parquet::schema::types::ColumnPath;
use sha2::{Digest as _, Sha256};

use super::upload::Upload;
use crate::Error;
use crate::checksum::hex;
use crate::journal::DataFile;
use crate::place::{LakePlace, encoded};
use crate::tables::{LakeTable, SCHEMA_VERSION};

/// Rows per row group: enough to make a dictionary of thousands of stacks cheap.
pub(crate) const GROUP_ROWS: usize = 1 << 19;

/// The Zstandard level, which is its default. Other levels have not been measured.
const ZSTD_LEVEL: i32 = 3;

/// Writes a file of a table, which becomes visible only when it is finished.
pub(crate) struct FileWriter {
    table: LakeTable,
    path: String,
    writer: ArrowWriter<Vec<u8>>,
    upload: Upload,
    sum: Sha256,
    rows: u64,
    bytes: u64,
}

impl FileWriter {
    /// Creates a file of `table` for batches with the schema of `like`.
    pub(crate) fn new(
        place: &LakePlace,
        table: LakeTable,
        partition: &Partition,
        like: &RecordBatch,
    ) -> Result<Self, Error> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = format!("{}/{}{name}.parquet", table.name(), partition.folder());
        let options =
            ArrowWriterOptions::new().with_properties(properties(table, like)).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(Vec::new(), like.schema(), options)?;
        let upload = Upload::new(Arc::clone(place.store()), place.path(&path));
        Ok(Self { table, path, writer, upload, sum: Sha256::new(), rows: 0, bytes: 0 })
    }

    /// Writes rows as a row group.
    pub(crate) async fn write(&mut self, batch: &RecordBatch, place: &LakePlace) -> Result<(), Error> {
        self.writer.write(batch)?;
        self.writer.flush()?;
        self.rows += batch.num_rows() as u64;
        let bytes = std::mem::take(self.writer.inner_mut());
        self.send(&bytes, place).await
    }

    async fn send(&mut self, bytes: &[u8], place: &LakePlace) -> Result<(), Error> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        self.upload.write(bytes).await.map_err(|error| place.error(&self.path, &error))
    }

    /// Finishes the file; on failure nothing of it remains.
    pub(crate) async fn finish(mut self, place: &LakePlace) -> Result<DataFile, Error> {
        if let Err(error) = self.write_end(place).await {
            self.abandon().await;
            return Err(error);
        }
        self.upload.finish().await.map_err(|error| place.error(&self.path, &error))?;
        Ok(DataFile {
            table: self.table.name().to_owned(),
            path: self.path,
            rows: self.rows,
            bytes: self.bytes,
            sha256: hex(&self.sum.finalize()),
            schema: SCHEMA_VERSION,
            sorted: true,
            ..DataFile::default()
        })
    }

    async fn write_end(&mut self, place: &LakePlace) -> Result<(), Error> {
        self.writer.finish()?;
        let bytes = std::mem::take(self.writer.inner_mut());
        self.send(&bytes, place).await
    }

    pub(crate) async fn abandon(self) {
        self.upload.abandon().await;
    }
}

/// The rows of a table that go into one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Partition {
    pub(crate) service: Option<String>,
    /// Days since 1970 (UTC).
    pub(crate) day: Option<i64>,
}

impl Partition {
    fn folder(&self) -> String {
        let service = self.service.as_deref().map(|service| format!("service={}/", encoded(service)));
        let day = self.day.map(|day| format!("day={}/", date(day)));
        [service, day].into_iter().flatten().collect()
    }
}

/// Formats a day, such as `2026-11-22`.
pub(crate) fn date(day: i64) -> String {
    let day = chrono::DateTime::from_timestamp(day.saturating_mul(86_400), 0);
    day.map_or_else(|| "unknown".to_owned(), |day| day.format("%Y-%m-%d").to_string())
}

fn properties(table: LakeTable, like: &RecordBatch) -> WriterProperties {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("a level of Zstandard");
    let (all, there) = (table.schema(), like.schema());
    let fields = all.fields().iter().filter(|field| there.index_of(field.name()).is_ok()).cloned();
    let schema = Schema::new(fields.collect::<Fields>());
    let facts = vec![
        KeyValue::new("borehole.lake".to_owned(), SCHEMA_VERSION.to_string()),
        // With this schema, readers get texts in lists in the type that queries work on, without a copy.
        KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema)),
    ];
    let builder = WriterProperties::builder()
        .set_created_by(concat!("borehole ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(facts))
        .set_compression(Compression::ZSTD(level))
        .set_dictionary_page_size_limit(8 << 20)
        .set_max_row_group_row_count(None);
    let columns = table.description().columns;
    let builder = columns.iter().fold(builder, |builder, column| encoding(builder, column.name));
    let builder = columns.iter().fold(builder, |builder, column| filtered(builder, column.name));
    unordered(builder, table).build()
}

/// Turns off minimum and maximum values for columns in no order, which cannot exclude rows, because queries filter by file
/// labels and times. Columns with one value per file do not need them either.
fn unordered(builder: WriterPropertiesBuilder, table: LakeTable) -> WriterPropertiesBuilder {
    // Stacks are looked up by their ids.
    let columns: &[&[&str]] = if table == LakeTable::Stacks {
        &[]
    } else {
        &[
            &["service"],
            &["stack_id"],
            &["labels", "key_value", "key"],
            &["labels", "key_value", "value"],
            &["status"],
            &["mode"],
            &["trace_id"],
            &["span_id"],
        ]
    };
    let without = |builder: WriterPropertiesBuilder, path: &&[&str]| {
        let path = path.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
        builder.set_column_statistics_enabled(ColumnPath::new(path), EnabledStatistics::None)
    };
    columns.iter().fold(builder, without)
}

/// The maximum number of values in a Bloom filter, which gets no larger than the values that are there need.
const FILTERED_VALUES: u64 = 1 << 17;

/// Adds Bloom filters to columns of names and ids in no order, by which rows are looked for.
fn filtered(builder: WriterPropertiesBuilder, column: &str) -> WriterPropertiesBuilder {
    if !matches!(column, "host" | "source" | "trace_id" | "span_id" | "kind") {
        return builder;
    }
    let path = ColumnPath::from(column);
    builder
        .set_column_bloom_filter_enabled(path.clone(), true)
        .set_column_bloom_filter_max_ndv(path, FILTERED_VALUES)
}

/// Picks the encoding of a column. Times differ little from row to row, and periods mostly not at all; dictionaries suit
/// all other repeated values.
fn encoding(builder: WriterPropertiesBuilder, column: &str) -> WriterPropertiesBuilder {
    if !matches!(column, "time" | "duration_ns" | "period_ns") {
        return builder;
    }
    let path = ColumnPath::from(column);
    builder
        .set_column_dictionary_enabled(path.clone(), false)
        .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
}
