//! A profile, read from JSON.
//!
//! Memory is proportional to the document. Every column may be absent: versions have different ones, and the tables of
//! unprocessed profiles have a schema and rows instead.
//!
//! Source: Firefox Profiler, `docs-developer/CHANGELOG-formats.md` (versions up to 58), and the upgraders in the
//! package `@firefox-devtools/profiler-cli` 0.10.0 (versions up to 75).

use serde::Deserialize;

use super::counters::ProcessCounter;
use super::marker_table::MarkerTable;
use super::rows::{CellRows, RowTable, Schema};

/// An integer of a column, or none.
type Index = Option<i64>;

/// The bytes of most values.
pub(super) const INDEX_BYTES: usize = size_of::<Index>();

/// A document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProcessedProfile {
    pub(super) meta: Meta,
    pub(super) libs: Vec<Lib>,
    pub(super) threads: Vec<ThreadTables>,
    pub(super) shared: ThreadTables,
    pub(super) counters: Vec<ProcessCounter>,
    /// The other processes of an unprocessed profile.
    pub(super) processes: Vec<Self>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    /// Absent in unprocessed profiles from Firefox, which have another format.
    pub(super) preprocessed_profile_version: Option<i64>,
    /// The version of the data of Firefox.
    pub(super) version: Option<i64>,
    /// The period, in milliseconds.
    pub(super) interval: Option<f64>,
    /// The origin of all times, in milliseconds since 1970.
    pub(super) start_time: Option<f64>,
    pub(super) product: Option<String>,
    pub(super) categories: Vec<CategoryName>,
    pub(super) marker_schema: Vec<MarkerSchema>,
}

/// A category of markers and frames.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CategoryName {
    pub(super) name: Option<String>,
}

/// The fields of markers of a type.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MarkerSchema {
    pub(super) name: Option<String>,
    /// In older versions `data`.
    #[serde(alias = "data")]
    pub(super) fields: Vec<MarkerField>,
}

/// A field of the data of markers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MarkerField {
    key: Option<String>,
    format: serde_json::Value,
}

impl MarkerField {
    /// The key, if the field is the place of a string.
    pub(super) fn key_of_string(&self) -> Option<&str> {
        let format = self.format.as_str()?;
        let is_place = matches!(format, "unique-string" | "flow-id" | "terminating-flow-id");
        self.key.as_deref().filter(|_| is_place)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Lib {
    pub(super) name: Option<String>,
    pub(super) path: Option<String>,
    pub(super) debug_name: Option<String>,
    /// The identity of its build.
    pub(super) breakpad_id: Option<String>,
    /// Where it is mapped, in unprocessed profiles.
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Lib {
    /// Its path, or else its name.
    pub(super) fn module(&self) -> &str {
        let path = self.path.as_deref().filter(|path| !path.is_empty());
        path.or(self.name.as_deref()).unwrap_or_default()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Sources {
    pub(super) filename: Vec<Index>,
}

/// A thread. The shared data has the same shape: strings since version 56, all tables since version 60.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ThreadTables {
    pub(super) name: Option<String>,
    pub(super) process_name: Option<String>,
    pub(super) process_type: Option<String>,
    pub(super) pid: serde_json::Value,
    pub(super) tid: serde_json::Value,
    #[serde(rename = "borehole")]
    pub(super) own: ThreadExtras,
    pub(super) samples: Option<SamplesTable>,
    #[serde(alias = "stringTable")]
    pub(super) string_array: Option<Vec<String>>,
    pub(super) stack_table: Option<StackTableColumns>,
    pub(super) frame_table: FrameTableColumns,
    pub(super) func_table: FuncTable,
    pub(super) resource_table: ResourceTable,
    pub(super) native_symbols: NativeSymbols,
    /// Only in shared data.
    pub(super) sources: Sources,
    pub(super) markers: MarkerTable,
}

/// The exporter's additions to a thread.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ThreadExtras {
    pub(super) interpreter: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SamplesTable {
    schema: Schema,
    data: CellRows,
    pub(super) stack: Vec<Index>,
    /// In milliseconds.
    pub(super) time: Option<Vec<f64>>,
    /// The times as differences, since version 50.
    pub(super) time_deltas: Option<Vec<f64>>,
    pub(super) weight: Option<Vec<f64>>,
    pub(super) weight_type: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StackTableColumns {
    schema: Schema,
    data: CellRows,
    pub(super) frame: Vec<i64>,
    pub(super) prefix: Vec<Index>,
    /// The distance to the caller's row, upwards, 0 for none, since version 66.
    pub(super) prefix_offset: Vec<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FrameTableColumns {
    schema: Schema,
    data: CellRows,
    pub(super) func: Vec<i64>,
    pub(super) address: Vec<Index>,
    pub(super) line: Vec<Index>,
    pub(super) column: Vec<Index>,
    pub(super) native_symbol: Vec<Index>,
    /// Since version 70.
    pub(super) lib: Vec<Index>,
    /// The flags of the known columns, since version 71.
    pub(super) flags: Vec<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FuncTable {
    pub(super) name: Vec<i64>,
    pub(super) resource: Vec<Index>,
    /// Before version 58.
    pub(super) file_name: Vec<Index>,
    /// Since version 58.
    pub(super) source: Vec<Index>,
    /// The flags of the known columns, since version 75.
    pub(super) flags: Vec<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResourceTable {
    pub(super) name: Vec<Index>,
    /// Before version 70.
    pub(super) lib: Vec<Index>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NativeSymbols {
    pub(super) address: Vec<Index>,
}

/// Bits of `FrameTableColumns::flags`.
mod frame_flags {
    pub(super) const ADDRESS: i64 = 2;
    pub(super) const NATIVE_SYMBOL: i64 = 8;
    pub(super) const LINE: i64 = 16;
    pub(super) const COLUMN: i64 = 32;
}

/// Bits of `FuncTable::flags`.
mod func_flags {
    pub(super) const RESOURCE: i64 = 4;
    pub(super) const SOURCE: i64 = 8;
}

/// The number of a column at `row`, unless the flags of the row mark it as unknown.
fn known(column: &[Index], flags: &[i64], row: usize, flag: i64) -> Option<i64> {
    let is_known = flags.get(row).is_none_or(|flags| flags & flag != 0);
    column.get(row).copied().flatten().filter(|_| is_known)
}

fn row_of(index: i64) -> Option<usize> {
    usize::try_from(index).ok()
}

impl StackTableColumns {
    /// The table of an unprocessed profile.
    pub(super) const fn rows(&self) -> RowTable<'_> {
        RowTable { schema: &self.schema, data: &self.data }
    }

    /// The row of the caller; `Err` if it is not before its callee.
    pub(super) fn caller(&self, row: usize) -> Result<Option<usize>, i64> {
        let before = |caller: i64| row_of(caller).filter(|&caller| caller < row).ok_or(caller).map(Some);
        match (self.prefix.get(row), self.prefix_offset.get(row)) {
            (Some(&Some(prefix)), _) if prefix >= 0 => before(prefix),
            (None, Some(&offset)) if offset != 0 => match row_of(offset).and_then(|up| row.checked_sub(up)) {
                Some(caller) => Ok(Some(caller)),
                None => Err(offset),
            },
            _ => Ok(None),
        }
    }
}

impl FrameTableColumns {
    /// The table of an unprocessed profile.
    pub(super) const fn rows(&self) -> RowTable<'_> {
        RowTable { schema: &self.schema, data: &self.data }
    }

    pub(super) fn line(&self, row: usize) -> Option<i64> {
        known(&self.line, &self.flags, row, frame_flags::LINE)
    }

    pub(super) fn column(&self, row: usize) -> Option<u32> {
        known(&self.column, &self.flags, row, frame_flags::COLUMN)
            .and_then(|column| u32::try_from(column).ok())
    }

    /// The address in its library.
    pub(super) fn address(&self, row: usize) -> Option<i64> {
        known(&self.address, &self.flags, row, frame_flags::ADDRESS).filter(|&address| address >= 0)
    }

    pub(super) fn native_symbol(&self, row: usize) -> Option<usize> {
        known(&self.native_symbol, &self.flags, row, frame_flags::NATIVE_SYMBOL).and_then(row_of)
    }

    pub(super) fn lib(&self, row: usize) -> Option<usize> {
        known(&self.lib, &self.flags, row, frame_flags::ADDRESS).and_then(row_of)
    }
}

impl FuncTable {
    pub(super) fn resource(&self, row: usize) -> Option<usize> {
        known(&self.resource, &self.flags, row, func_flags::RESOURCE).and_then(row_of)
    }

    /// The index of the string that names the file.
    pub(super) fn file(&self, row: usize, sources: &Sources) -> Option<usize> {
        let named = known(&self.file_name, &[], row, 0);
        let source = known(&self.source, &self.flags, row, func_flags::SOURCE).and_then(row_of);
        let sourced = source.and_then(|source| sources.filename.get(source).copied().flatten());
        named.or(sourced).and_then(row_of)
    }
}

impl ResourceTable {
    pub(super) fn name(&self, row: usize) -> Option<usize> {
        self.name.get(row).copied().flatten().and_then(row_of)
    }

    pub(super) fn lib(&self, row: usize) -> Option<usize> {
        self.lib.get(row).copied().flatten().and_then(row_of)
    }
}

impl SamplesTable {
    /// The table of an unprocessed profile.
    pub(super) const fn rows(&self) -> RowTable<'_> {
        RowTable { schema: &self.schema, data: &self.data }
    }

    /// The time of each sample, in nanoseconds from the origin, if known.
    pub(super) fn times_ns(&self) -> Option<Vec<i64>> {
        if let Some(times) = &self.time {
            return Some(times.iter().map(|&time| nanoseconds(time)).collect());
        }
        let mut now = 0.0;
        let deltas = self.time_deltas.as_ref()?.iter();
        Some(
            deltas
                .map(|delta| {
                    now += delta;
                    nanoseconds(now)
                })
                .collect(),
        )
    }
}

/// Converts milliseconds to nanoseconds, rounded.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
pub(super) fn nanoseconds(milliseconds: f64) -> i64 {
    (milliseconds * 1e6).round() as i64
}
