//! Makes the tables of a lake available to the engine, and skips files that cannot match a query.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, StringViewArray, TimestampMicrosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::TableParquetOptions;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, DFSchema, JoinType, Result, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, LogicalPlanBuilder, Operator, TableProviderFilterPushDown, TableType, col, lit,
};
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
    /// Whether rows have the number of their file too, in the column [`FILE`].
    pub(crate) is_numbered: bool,
    /// Whether its files have the columns of earlier builds.
    pub(crate) is_earlier: bool,
}

/// The column of the number of a row's file, counted from 0, in tables that have it.
pub(crate) const FILE: &str = "file";

impl fmt::Debug for TableFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableFiles({}, {} files)", self.table.name(), self.files.len())
    }
}

impl TableFiles {
    /// The files that may hold rows that match all `filters`.
    fn chosen(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<usize>> {
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
        let labels: Vec<_> = filters.iter().filter_map(selected_labels).collect();
        let may_hold = |file: &DataFile| {
            let is_listed = |listed: &Vec<String>| {
                let is_there = |label: &String| listed.binary_search(label).is_ok();
                labels.iter().all(|labels| labels.iter().any(is_there))
            };
            file.labels.as_ref().is_none_or(is_listed)
        };
        let numbers = (0..self.files.len()).zip(keep);
        let numbers = numbers.filter(|&(number, keep)| keep && may_hold(&self.files[number]));
        Ok(numbers.map(|(number, _)| number).collect())
    }

    fn statistics(&self, rows: u64, schema: &SchemaRef) -> Statistics {
        let count = |count: u64| usize::try_from(count).ok();
        let mut statistics = Statistics::new_unknown(schema);
        statistics.num_rows = count(rows).map_or(Precision::Absent, Precision::Exact);
        if let Ok(column) = schema.index_of(STACK_ID) {
            let distinct = count(self.stacks.min(rows)).map_or(Precision::Absent, Precision::Inexact);
            statistics.column_statistics[column].distinct_count = distinct;
        }
        statistics
    }

    fn partitioned(&self, number: usize) -> PartitionedFile {
        let file = &self.files[number];
        let path = format!("{}/{}", self.base, file.path);
        let mut partitioned = PartitionedFile::new(String::new(), file.bytes);
        // The path is encoded already.
        partitioned.object_meta.location =
            object_store::path::Path::parse(&path).unwrap_or_else(|_| path.as_str().into());
        if self.is_numbered {
            partitioned.partition_values = vec![ScalarValue::UInt64(Some(number as u64))];
        }
        partitioned.with_statistics(Arc::new(self.statistics(file.rows, &self.file_schema())))
    }

    /// The columns of its files.
    fn file_schema(&self) -> SchemaRef {
        if self.is_earlier { self.table.earlier_schema() } else { self.table.schema() }
    }

    fn file_column(&self) -> Option<FieldRef> {
        self.is_numbered.then(|| Arc::new(Field::new(FILE, DataType::UInt64, false)))
    }
}

/// The rows of a numbered table of stacks, each stack once: as the first file has it.
pub(crate) fn distinct_stacks(stacks: TableFiles) -> Result<ViewTable> {
    distinct_from(stacks, 0)
}

/// Like [`distinct_stacks`], without the stacks that the files before number `from` have.
pub(crate) fn distinct_from(stacks: TableFiles, from: usize) -> Result<ViewTable> {
    let columns: Vec<_> = stacks.table.description().columns.iter().map(|column| col(column.name)).collect();
    let source = provider_as_source(Arc::new(stacks));
    // Only ids are aggregated: lists of frames stream past a table of the first file of each id.
    let first = LogicalPlanBuilder::scan("owners", Arc::clone(&source), None)?
        .aggregate(vec![col(STACK_ID)], vec![min(col(FILE)).alias("first")])?
        .project(vec![col(STACK_ID).alias("owned"), col("first")])?
        .build()?;
    let mut rows = LogicalPlanBuilder::scan("stacks", source, None)?;
    if from > 0 {
        rows = rows.filter(col(FILE).gt_eq(lit(from as u64)))?;
    }
    let keys = (vec![STACK_ID, FILE], vec!["owned", "first"]);
    let plan = rows.join(first, JoinType::LeftSemi, keys, None)?.project(columns)?.build()?;
    Ok(ViewTable::new(plan, None))
}

#[async_trait]
impl TableProvider for TableFiles {
    fn schema(&self) -> SchemaRef {
        let schema = self.file_schema();
        let Some(file) = self.file_column() else { return schema };
        Arc::new(Schema::new(schema.fields().iter().cloned().chain([file]).collect::<Fields>()))
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
        let rows = files.iter().map(|&number| self.files[number].rows).sum::<u64>();
        let groups = in_groups(&self.files, files, state.config().target_partitions());
        let groups = groups
            .into_iter()
            .map(|group| FileGroup::new(group.into_iter().map(|number| self.partitioned(number)).collect()));
        let mut options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        // Most queries need few stacks, and frames are large, so ids are read first.
        options.global.pushdown_filters |= self.table == LakeTable::Stacks;
        let columns = TableSchema::builder(self.file_schema())
            .with_table_partition_cols(self.file_column().into_iter().collect::<Vec<_>>())
            .build();
        let mut source = ParquetSource::new(columns).with_table_parquet_options(options);
        if let Some(filter) = conjunction(filters.to_vec()) {
            let filter = state.create_physical_expr(filter, &DFSchema::try_from(Arc::clone(&schema))?)?;
            source = source.with_predicate(filter);
        }
        let config = FileScanConfigBuilder::new(self.root.clone(), Arc::new(source))
            .with_file_groups(groups.collect())
            .with_statistics(self.statistics(rows, &self.schema()))
            .with_projection_indices(projection.cloned())?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Splits files, given by number, into at most `count` groups of similar size in bytes.
fn in_groups(files: &[DataFile], mut numbers: Vec<usize>, count: usize) -> Vec<Vec<usize>> {
    let count = count.clamp(1, numbers.len().max(1));
    let mut groups: Vec<(u64, Vec<usize>)> = vec![(0, Vec::new()); count];
    numbers.sort_by(|&one, &other| {
        let (one, other) = (&files[one], &files[other]);
        other.bytes.cmp(&one.bytes).then_with(|| one.path.cmp(&other.path))
    });
    for number in numbers {
        let lightest = groups.iter_mut().min_by_key(|(bytes, _)| *bytes).expect("a group");
        lightest.0 += files[number].bytes;
        lightest.1.push(number);
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The labels, as `key=value`, one of which a filter asks for: `labels['key'] = 'value'`, the same with `IN`, or several of these
/// with `OR`.
fn selected_labels(filter: &Expr) -> Option<Vec<String>> {
    match filter {
        Expr::BinaryExpr(either) if either.op == Operator::Or => {
            let (mut left, right) = (selected_labels(&either.left)?, selected_labels(&either.right)?);
            left.extend(right);
            Some(left)
        }
        Expr::BinaryExpr(equation) if equation.op == Operator::Eq => {
            let key = label_key(&equation.left).map(|key| (key, &*equation.right));
            let (key, value) = key.or_else(|| Some((label_key(&equation.right)?, &*equation.left)))?;
            Some(vec![format!("{key}={}", text(value)?)])
        }
        Expr::InList(listed) if !listed.negated => {
            let key = label_key(&listed.expr)?;
            listed.list.iter().map(|value| Some(format!("{key}={}", text(value)?))).collect()
        }
        _ => None,
    }
}

/// The key in `labels['key']`, and in `label(labels, 'key')`.
fn label_key(call: &Expr) -> Option<&str> {
    let Expr::ScalarFunction(call) = call else { return None };
    let [Expr::Column(column), key] = &*call.args else { return None };
    if !matches!(call.name(), crate::functions::LABEL | INDEX) || column.name != "labels" {
        return None;
    }
    text(key)
}

/// The name of the engine's function for `labels['key']`.
///
/// Source: DataFusion 55, `datafusion_functions::core::getfield`.
const INDEX: &str = "get_field";

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

impl JournalFacts<'_> {
    /// Whether rows of a file may have one of these values: `Some(false)` if none has. `None` if that is not known.
    fn has_one(&self, file: &DataFile, column: &str, values: &[&str]) -> Option<bool> {
        let has = match column {
            "service" if file.service.is_some() => values.contains(&file.service.as_deref()?),
            "host" => {
                let hosts = file.hosts.as_ref()?;
                values.iter().any(|value| hosts.binary_search_by(|host| host.as_str().cmp(value)).is_ok())
            }
            "kind" if self.table == LakeTable::Measures => {
                file.numbers.as_ref()?.iter().any(|number| values.contains(&number.kind.as_str()))
            }
            _ => return None,
        };
        // A file that has one of the values may have others.
        if has { None } else { Some(false) }
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
        column: &Column,
        values: &std::collections::HashSet<ScalarValue>,
    ) -> Option<BooleanArray> {
        let values: Vec<_> = values.iter().filter_map(|value| value.try_as_str().flatten()).collect();
        let contained = |file: &DataFile| self.has_one(file, &column.name, &values);
        Some(self.files.iter().map(contained).collect())
    }
}
