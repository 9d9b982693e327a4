//! Rewriting of tables that earlier builds wrote.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, ListArray, StructArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};

use super::compact::{CompactionGroup, SORT_BYTES, sorted_as};
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::scan::TableFiles;
use crate::tables::{ColumnKind, DAY_US, LakeTable, TableColumn, frame_fields};
use crate::{Error, Lake, labels};

/// The number of files that a commit replaces.
const UPGRADED_TOGETHER: usize = 64;

/// The result of an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Upgraded {
    /// The number of Parquet files rewritten.
    pub files: u64,
    /// The number of their rows.
    pub rows: u64,
}

impl Lake {
    /// Rewrites the tables of the lake at `name` that earlier builds wrote, file by file, so that this build can use them. If it is
    /// interrupted, the next one goes on.
    ///
    /// # Errors
    /// If the lake does not exist, or the storage fails. Work finished by then stays intact.
    pub fn upgrade(name: &str) -> Result<Upgraded, Error> {
        let lake = Self::at(name)?;
        let mut upgraded = Upgraded::default();
        loop {
            let state = lake.state()?;
            let earlier = state.files.values().filter(|file| !file.is_current());
            let files: Vec<_> = earlier.take(UPGRADED_TOGETHER).cloned().collect();
            if files.is_empty() {
                return Ok(upgraded);
            }
            if lake.upgrade_files(&files)? {
                upgraded.files += files.len() as u64;
                upgraded.rows += files.iter().map(|file| file.rows).sum::<u64>();
            }
        }
    }

    /// Rewrites files in one commit; `false` if another program has replaced one of them.
    fn upgrade_files(&self, files: &[DataFile]) -> Result<bool, Error> {
        let mut commit = Commit::new(Operation::Upgrade, now_us());
        for file in files {
            match self.upgraded(file) {
                Ok(written) => commit.add.extend(written),
                Err(error) => {
                    self.block_on(self.discard(&commit.add));
                    return Err(error);
                }
            }
            commit.remove.push(file.path.clone());
        }
        let mut is_current = false;
        let intend = async |now: &LakeState| {
            is_current = commit.remove.iter().all(|path| now.files.contains_key(path));
            Ok(if is_current { Intent::Commit(commit.clone()) } else { Intent::Nothing })
        };
        self.block_on(self.journal.transact(intend))?;
        if !is_current {
            self.block_on(self.discard(&commit.add));
        }
        Ok(is_current)
    }

    /// The rows of a file of an earlier build in new files.
    fn upgraded(&self, file: &DataFile) -> Result<Vec<DataFile>, Error> {
        let Some(table) = file.table() else {
            return Err(Error::lake(format!("{}: unknown table {}", file.path, file.table)));
        };
        let context = self.engine(Some(SORT_BYTES))?;
        [label_function(), frame_function()].into_iter().for_each(|function| context.register_udf(function));
        let files = self.table_files(table, vec![file.clone()], file.rows)?;
        context.register_table(table.name(), Arc::new(TableFiles { is_earlier: true, ..files }))?;
        let day = file.span_us.map(|(_, last)| last.div_euclid(DAY_US));
        let service = file.service.clone().filter(|_| table != LakeTable::Sources);
        let group: CompactionGroup = (table, service, day);
        let written = self.rewrite_in(&context, &group, &sorted_as(table, "true", upgraded_column))?;
        let described = |new: DataFile| {
            let DataFile { path, rows, bytes, sha256, schema, sorted, .. } = new;
            DataFile { path, rows, bytes, sha256, schema, sorted, ..file.clone() }
        };
        Ok(written.into_iter().map(described).collect())
    }
}

/// SQL for a column of an earlier build as it is now.
fn upgraded_column(column: &TableColumn) -> String {
    match column.kind {
        ColumnKind::Labels => format!("{LABELS_OF}({})", column.name),
        ColumnKind::Frames => format!("{FRAMES_OF}({})", column.name),
        _ => column.name.to_owned(),
    }
}

/// The functions that convert columns.
const LABELS_OF: &str = "upgraded_labels";
const FRAMES_OF: &str = "upgraded_frames";

fn label_function() -> ScalarUDF {
    let convert = |arguments: &[ColumnarValue]| -> EngineResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let objects = cast(&arrays[0], &DataType::Utf8View)?;
        Ok(ColumnarValue::Array(labels::of_objects(objects.as_string_view().iter())))
    };
    let (from, to) = (vec![DataType::Utf8View], labels::data_type());
    create_udf(LABELS_OF, from, to, Volatility::Immutable, Arc::new(convert))
}

fn frame_function() -> ScalarUDF {
    let convert = |arguments: &[ColumnarValue]| -> EngineResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        Ok(ColumnarValue::Array(with_all_fields(arrays[0].as_list())))
    };
    let frames = |schema: &datafusion::arrow::datatypes::SchemaRef| {
        schema.field_with_name("frames").expect("a column of stacks").data_type().clone()
    };
    let (from, to) = (frames(&LakeTable::Stacks.earlier_schema()), frames(&LakeTable::Stacks.schema()));
    create_udf(FRAMES_OF, vec![from], to, Volatility::Immutable, Arc::new(convert))
}

/// Lists of frames with the fields that they lack, which are absent.
fn with_all_fields(lists: &ListArray) -> ArrayRef {
    let frames = lists.values().as_struct();
    let fields = frame_fields();
    let columns = fields.iter().map(|field| match frames.column_by_name(field.name()) {
        Some(column) => Arc::clone(column),
        None => new_null_array(field.data_type(), frames.len()),
    });
    let columns = columns.collect();
    let frames = StructArray::new(fields.clone(), columns, frames.nulls().cloned());
    let item = Arc::new(Field::new("item", DataType::Struct(fields), true));
    Arc::new(ListArray::new(item, lists.offsets().clone(), Arc::new(frames), lists.nulls().cloned()))
}
