//! Makes the tables of a lake available to the engine, and skips files that cannot match a query.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::TableParquetOptions;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::journal::DataFile;
use crate::tables::{LakeTable, STACK_ID, UTC};

/// A table of a lake in one of its states.
pub(crate) struct TableFiles {
    pub(crate) table: LakeTable,
    /// The store of the files, and the lake's path in it.
    pub(crate) root: ObjectStoreUrl,
    pub(crate) base: String,
    pub(crate) files: Arc<Vec<DataFile>>,
    /// The number of stacks in the lake, an upper limit for distinct stack ids in any table. It tells the engine which side of a
    /// join is smaller.
    pub(crate) stacks: u64,
}

impl fmt::Debug for TableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableFiles({}, {} files)", self.table.name(), self.files.len())
    }
}

impl TableFiles {
    /// The files that may hold rows that match all `filters`.
    fn chosen(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<&DataFile>> {
        let mut keep = vec![true; self.files.len()];
        if let Some(filter) = conjunction(filters.to_vec()) {
            let schema = DFSchema::try_from(self.schema())?;
            let filter = state.create_physical_expr(filter, &schema)?;
            // Not every filter can be applied to files.
            let predicate = PruningPredicateBuilder::new().with_file_schema(self.schema()).build(filter);
            if let Some(predicate) = predicate {
                keep = predicate.prune(&JournalFacts { table: self.table, files: &self.files })?;
            }
        }
        let labels: Vec<_> = filters.iter().filter_map(selected_label).collect();
        let may_hold = |file: &DataFile| {
            let listed = file.labels.as_ref();
            listed.is_none_or(|listed| labels.iter().all(|label| listed.binary_search(label).is_ok()))
        };
        let files = self.files.iter().zip(keep).filter(|(file, keep)| *keep && may_hold(file));
        Ok(files.map(|(file, _)| file).collect())
    }

    fn statistics(&self, rows: u64) -> Statistics {
        let count = |count: u64| usize::try_from(count).ok();
        let schema = self.schema();
        let mut statistics = Statistics::new_unknown(&schema);
        statistics.num_rows = count(rows).map_or(Precision::Absent, Precision::Exact);
        if let Ok(column) = schema.index_of(STACK_ID) {
            let distinct = count(self.stacks.min(rows)).map_or(Precision::Absent, Precision::Inexact);
            statistics.column_statistics[column].distinct_count = distinct;
        }
        statistics
    }

    fn partitioned(&self, file: &DataFile) -> PartitionedFile {
        let path = format!("{}/{}", self.base, file.path);
        let mut partitioned = PartitionedFile::new(String::new(), file.bytes);
        // The path is encoded already.
        partitioned.object_meta.location =
            object_store::path::Path::parse(&path).unwrap_or_else(|_| path.as_str().into());
        partitioned.with_statistics(Arc::new(self.statistics(file.rows)))
    }
}

#[async_trait]
impl TableProvider for TableFiles {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let files = self.chosen(state, filters)?;
        let limit = limit.filter(|_| filters.is_empty());
        let schema = self.schema();
        if files.is_empty() {
            let schema = match projection {
                Some(columns) => Arc::new(schema.project(columns)?),
                None => schema,
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let rows = files.iter().map(|file| file.rows).sum::<u64>();
        let groups = in_groups(&files, state.config().target_partitions());
        let groups = groups
            .into_iter()
            .map(|group| FileGroup::new(group.into_iter().map(|file| self.partitioned(file)).collect()));
        let mut options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        // Most queries need few stacks, and frames are large, so ids are read first.
        options.global.pushdown_filters |= self.table == LakeTable::Stacks;
        let mut source = ParquetSource::new(Arc::clone(&schema)).with_table_parquet_options(options);
        if let Some(filter) = conjunction(filters.to_vec()) {
            let filter = state.create_physical_expr(filter, &DFSchema::try_from(Arc::clone(&schema))?)?;
            source = source.with_predicate(filter);
        }
        let config = FileScanConfigBuilder::new(self.root.clone(), Arc::new(source))
            .with_file_groups(groups.collect())
            .with_statistics(self.statistics(rows))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Splits the files into at most `count` groups of similar size in bytes.
fn in_groups<'f>(files: &[&'f DataFile], count: usize) -> Vec<Vec<&'f DataFile>> {
    let count = count.clamp(1, files.len().max(1));
    let mut groups: Vec<(u64, Vec<&DataFile>)> = vec![(0, Vec::new()); count];
    let mut files = files.to_vec();
    files.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.path.cmp(&other.path)));
    for file in files {
        let lightest = groups.iter_mut().min_by_key(|(bytes, _)| *bytes).expect("a group");
        lightest.0 += file.bytes;
        lightest.1.push(file);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The label, as `key=value`, that a filter `label(labels, 'key') = 'value'` selects.
fn selected_label(filter: &Expr) -> Option<String> {
    let Expr::BinaryExpr(equation) = filter else { return None };
    if equation.op != Operator::Eq {
        return None;
    }
    let (call, value) = match (&*equation.left, &*equation.right) {
        (Expr::ScalarFunction(call), value) | (value, Expr::ScalarFunction(call)) => (call, value),
        _ => return None,
    };
    let [Expr::Column(column), key] = &*call.args else { return None };
    if call.name() != crate::functions::LABEL || column.name != "labels" {
        return None;
    }
    Some(format!("{}={}", text(key)?, text(value)?))
}

fn text(literal: &Expr) -> Option<&str> {
    match literal {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// The journal's facts about files.
struct JournalFacts<'f> {
    table: LakeTable,
    files: &'f [DataFile],
}

impl JournalFacts<'_> {
    fn ends(&self, column: &Column, end: impl Fn((i64, i64)) -> i64) -> Option<ArrayRef> {
        match column.name.as_str() {
            "service" => {
                let services = self.files.iter().map(|file| file.service.as_deref());
                Some(Arc::new(StringViewArray::from_iter(services)))
            }
            // For sources, earlier builds recorded only when they ended.
            "time" if self.table != LakeTable::Sources => {
                let times = self.files.iter().map(|file| file.span_us.map(&end));
                Some(Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone(UTC)))
            }
            _ => None,
        }
    }
}

impl PruningStatistics for JournalFacts<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |(first, _)| first)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |(_, last)| last)
    }

    fn num_containers(&self) -> usize {
        self.files.len()
    }

    fn null_counts(&self, _column: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        Some(Arc::new(UInt64Array::from_iter_values(self.files.iter().map(|file| file.rows))))
    }

    fn contained(
        &self,
        _column: &Column,
        _values: &std::collections::HashSet<ScalarValue>,
    ) -> Option<BooleanArray> {
        None
    }
}
