//! The tables of a lake as views of DuckDB, and as tables of DuckLake.
//!
//! Source: DuckLake 1.0, `ducklake_add_data_files`.

use datafusion::arrow::datatypes::FieldRef;

use crate::journal::{DataFile, LakeState};
use crate::literal::text;
use crate::tables::{ColumnKind, LakeTable, frame_fields};
use crate::{Error, Lake};

/// Functions of the same names as ours. Source: the functions on lists and maps of DuckDB 1.4 and 2.0.
const MACROS: [&str; 5] = [
    "leaf(stack) AS stack[-1]",
    "root(stack) AS stack[1]",
    "depth(stack) AS len(stack)",
    "folded(stack) AS array_to_string(stack, ';')",
    "label(labels, key) AS labels[key]",
];

/// The name of the table behind the view that shows each stack once.
const ALL_STACKS: &str = "all_stacks";

impl Lake {
    /// SQL for DuckDB that makes a view of each table in its current state, and functions for stacks and labels. Files that are
    /// replaced later stay for an hour.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn duckdb_views(&self) -> Result<String, Error> {
        let state = self.state()?;
        let views = LakeTable::ALL.map(|table| self.duckdb_view(table, &state));
        let macros = MACROS.iter().map(|function| format!("CREATE OR REPLACE MACRO {function};\n"));
        Ok(views.into_iter().chain(macros).collect())
    }

    /// SQL for DuckDB that makes the tables of an attached, empty DuckLake catalog, called `lake`, of the files of the current state:
    /// other programs read the catalog without a list of files. All tables appear in one transaction.
    ///
    /// # Errors
    /// If the lake cannot be read.
    pub fn ducklake_catalog(&self) -> Result<String, Error> {
        let state = self.state()?;
        let tables = LakeTable::ALL.map(|table| self.ducklake_table(table, &state));
        Ok(format!("BEGIN;\n{}COMMIT;\n", tables.concat()))
    }

    fn ducklake_table(&self, table: LakeTable, state: &LakeState) -> String {
        let is_view = table == LakeTable::Stacks;
        let name = if is_view { ALL_STACKS } else { table.name() };
        let columns = table.description().columns.iter();
        let columns: Vec<_> =
            columns.map(|column| format!("{} {}", column.name, duckdb_type(column.kind))).collect();
        let mut sql = format!("CREATE TABLE lake.{name} ({});\n", columns.join(", "));
        for file in state.files_of(table) {
            let path = text(&self.place.address(&file.path));
            sql += &format!(
                "CALL ducklake_add_data_files('lake', '{name}', {path}, hive_partitioning => false, \
                 allow_missing => true);\n"
            );
        }
        if is_view {
            sql += &format!(
                "CREATE VIEW lake.{} AS SELECT DISTINCT ON (stack_id) * FROM lake.{name};\n",
                table.name()
            );
        }
        sql
    }

    fn duckdb_view(&self, table: LakeTable, state: &LakeState) -> String {
        let columns = table.description().columns.iter();
        let columns: Vec<_> =
            columns.map(|column| format!("NULL::{} AS {}", duckdb_type(column.kind), column.name)).collect();
        // Files may lack columns.
        let empty = format!("SELECT {} WHERE false", columns.join(", "));
        let name = table.name();
        let (named, others): (Vec<_>, Vec<_>) = state.files_of(table).partition(|file| file.named);
        let of = |files: &[&DataFile]| {
            let files = files.iter().map(|file| text(&self.place.address(&file.path))).collect::<Vec<_>>();
            format!(
                "read_parquet([\n  {}], union_by_name = true, hive_partitioning = false)",
                files.join(",\n  ")
            )
        };
        let rows = match (named.is_empty(), others.is_empty()) {
            (true, true) => return format!("CREATE OR REPLACE VIEW {name} AS {empty};\n"),
            (false, false) => {
                let (named, others) = (of(&named), of(&others));
                return format!(
                    "CREATE OR REPLACE VIEW {name} AS SELECT DISTINCT ON (stack_id) * EXCLUDE (rank) FROM (\n  \
                     SELECT *, 0 AS rank FROM {named}\n  UNION ALL BY NAME SELECT *, 1 AS rank FROM {others}) \
                     ORDER BY stack_id, rank;\n"
                );
            }
            (false, true) => of(&named),
            (true, false) => of(&others),
        };
        let once = if table == LakeTable::Stacks { "DISTINCT ON (stack_id) " } else { "" };
        format!(
            "CREATE OR REPLACE VIEW {name} AS SELECT {once}* FROM (\n  {empty}\n  UNION ALL BY NAME SELECT * FROM {rows});\n"
        )
    }
}

fn duckdb_type(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Text => "VARCHAR".to_owned(),
        ColumnKind::Time => "TIMESTAMPTZ".to_owned(),
        ColumnKind::Int => "BIGINT".to_owned(),
        ColumnKind::Unsigned => "UBIGINT".to_owned(),
        ColumnKind::Float => "DOUBLE".to_owned(),
        ColumnKind::Id => "BLOB".to_owned(),
        ColumnKind::Names => "VARCHAR[]".to_owned(),
        ColumnKind::Labels => "MAP(VARCHAR, VARCHAR)".to_owned(),
        ColumnKind::Frames => {
            let field = |field: &FieldRef| {
                let kind = if field.data_type().is_integer() { "BIGINT" } else { "VARCHAR" };
                format!("\"{}\" {kind}", field.name())
            };
            format!("STRUCT({})[]", frame_fields().iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}
