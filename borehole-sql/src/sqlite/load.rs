//! Rows into tables of SQLite.

use rusqlite::{Statement, Transaction, types::Null};

use super::refused;
use crate::error::Error;
use crate::rows::{self, Cell, RowSink};
use crate::schema::Table;

/// Inserts row by row.
pub(super) struct Loader<'t> {
    transaction: &'t Transaction<'t>,
    statement: Option<Statement<'t>>,
}

impl<'t> Loader<'t> {
    pub(super) const fn new(transaction: &'t Transaction<'t>) -> Self {
        Self { transaction, statement: None }
    }
}

impl RowSink for Loader<'_> {
    type Error = Error;

    fn begin(&mut self, table: &'static Table) -> Result<(), Error> {
        let columns: Vec<_> = rows::given(table).collect();
        let values = vec!["?"; columns.len()].join(", ");
        let statement = format!("INSERT INTO {} ({}) VALUES ({values})", table.name, columns.join(", "));
        self.statement = Some(self.transaction.prepare(&statement).map_err(refused)?);
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        let statement = self.statement.as_mut().expect("begin was called before");
        for (index, cell) in (1..).zip(cells) {
            match cell {
                Cell::Null => statement.raw_bind_parameter(index, Null),
                Cell::Integer(number) => statement.raw_bind_parameter(index, number),
                Cell::Text(text) => statement.raw_bind_parameter(index, &**text),
            }
            .map_err(refused)?;
        }
        statement.raw_execute().map_err(refused)?;
        Ok(())
    }
}
