//! Checks which tables and columns a database has.

use super::Database;
use crate::backend::{ResultField, ResultRows};
use crate::error::{Error, ErrorKind};
use crate::schema::{SchemaColumn, SchemaTable, SqlType, TABLES};

/// Receives the names of columns.
#[derive(Default)]
struct ColumnNames(Vec<String>);

impl ResultRows for ColumnNames {
    fn columns(&mut self, names: &[String]) -> Result<(), Error> {
        names.clone_into(&mut self.0);
        Ok(())
    }

    fn row(&mut self, _fields: &[ResultField<'_>]) -> Result<(), Error> {
        Ok(())
    }
}

impl Database {
    /// Rejects a database without a table or column that every program writes.
    pub(super) fn check_shape(&mut self) -> Result<(), Error> {
        TABLES.iter().try_for_each(|table| self.lacking(table).map(drop))
    }

    /// The columns that a table lacks, of those that other programs may leave out. Rejects a table that lacks other ones.
    pub(super) fn lacking(&mut self, table: &SchemaTable) -> Result<Vec<&'static SchemaColumn>, Error> {
        let mut there = ColumnNames::default();
        let probed = self.backend.answer(&format!("SELECT * FROM {} LIMIT 0", table.name), &[], &mut there);
        probed.map_err(|error| match error.kind() {
            ErrorKind::Statement => unsuited(table, &error.to_string()),
            _ => error,
        })?;
        let there = there.0;
        let is_there =
            |column: &&SchemaColumn| there.iter().any(|name| name.eq_ignore_ascii_case(column.name));
        let lacking = table.columns.iter().filter(|column| !is_there(column));
        let (may_lack, needed): (Vec<_>, Vec<_>) = lacking.partition(|column| column.absent.is_some());
        match needed[..] {
            [] => Ok(may_lack),
            _ => Err(unsuited(table, &format!("found {}", there.join(", ")))),
        }
    }

    /// The SQL that selects a column of a table, even if the table lacks it.
    pub(super) fn selected(&mut self, table: &SchemaTable, name: &str) -> Result<String, Error> {
        let lacking = self.lacking(table)?;
        let absent = lacking.iter().find(|column| column.name == name).and_then(|column| column.absent);
        Ok(match absent {
            Some(value) => format!("{value} AS {name}"),
            None => self.dialect().quoted(name),
        })
    }

    /// The SQL that orders the rows of a table as they were written.
    pub(super) fn written_order(&mut self, table: &SchemaTable) -> Result<&'static str, Error> {
        let has_numbers = table.columns.iter().any(|column| column.kind == SqlType::Serial);
        let has_numbers =
            has_numbers && self.lacking(table)?.iter().all(|column| column.kind != SqlType::Serial);
        Ok(self.dialect().written_order(has_numbers))
    }

    /// Whether a table lacks a column that is written.
    pub(super) fn lacks_columns(&mut self, table: &SchemaTable) -> Result<bool, Error> {
        Ok(self.lacking(table)?.into_iter().any(is_written))
    }

    /// Adds the missing columns that are written to a table.
    pub(super) fn add_columns(&mut self, table: &SchemaTable) -> Result<(), Error> {
        for column in self.lacking(table)?.into_iter().filter(|column| is_written(column)) {
            let added = self.backend.execute(&self.dialect().add_column(table, column));
            added.map_err(|error| match error.kind() {
                ErrorKind::Statement => {
                    let message = format!(
                        "the database was written by an older program: {} lacks the column {}, which cannot be added ({error}); \
                         add runs to a new database, and export those of this one into it",
                        table.name, column.name
                    );
                    Error::new(ErrorKind::Unsupported, message)
                }
                _ => error,
            })?;
        }
        Ok(())
    }
}

/// Whether rows contain a value of the column.
fn is_written(column: &SchemaColumn) -> bool {
    column.kind != SqlType::Serial
}

#[cold]
fn unsuited(table: &SchemaTable, why: &str) -> Error {
    let needed = table.columns.iter().filter(|column| column.absent.is_none());
    let columns = needed.map(|column| column.name).collect::<Vec<_>>().join(", ");
    let message = format!("expected a heap database with a table {} of {columns}: {why}", table.name);
    Error::new(ErrorKind::Unsupported, message)
}
