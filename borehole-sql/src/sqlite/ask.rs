//! Runs of a database, and answers to statements.

use rusqlite::types::ValueRef;
use rusqlite::{Params, Row};

use super::{Sqlite, check_shape, refused};
use crate::answer::{Answer, Value};
use crate::error::{Error, ErrorKind};
use crate::queries::Query;
use crate::schema::TABLES;
use crate::{Parameters, Run};

impl Sqlite {
    /// The runs, the oldest first.
    ///
    /// # Errors
    /// When the database has no runs or cannot be read.
    pub fn runs(&self) -> Result<Vec<Run>, Error> {
        let statement = "SELECT runs.run_id, created_at, COUNT(node_id) FROM runs \
                         LEFT JOIN context_nodes ON context_nodes.run_id = runs.run_id \
                         GROUP BY runs.run_id, created_at ORDER BY runs.run_id";
        check_shape(&self.connection)?;
        let mut statement = self.connection.prepare(statement).map_err(refused)?;
        let run = |row: &Row<'_>| {
            Ok(Run { id: row.get(0)?, created_at: row.get(1)?, nodes: row.get::<_, i64>(2)?.cast_unsigned() })
        };
        let runs = statement.query_map([], run).map_err(refused)?;
        runs.collect::<Result<_, _>>().map_err(refused)
    }

    /// The number of `run`, if there is such a run; of `None`, that of the last one.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn run(&self, run: Option<i64>) -> Result<i64, Error> {
        let runs = self.run_ids()?;
        let found = match run {
            Some(wanted) => runs.iter().find(|&&id| id == wanted),
            None => runs.last(),
        };
        let there = || runs.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        found.copied().ok_or_else(|| {
            let message = match run {
                Some(run) => format!("missing run {run}: the database has {}", there()),
                None => "missing run: the database has none".to_owned(),
            };
            Error::new(ErrorKind::Missing, message)
        })
    }

    /// The numbers of the runs, the oldest first.
    ///
    /// # Errors
    /// When the database has no runs or cannot be read.
    pub fn run_ids(&self) -> Result<Vec<i64>, Error> {
        check_shape(&self.connection)?;
        let mut statement =
            self.connection.prepare("SELECT run_id FROM runs ORDER BY run_id").map_err(refused)?;
        let ids = statement.query_map([], |row| row.get(0)).map_err(refused)?;
        ids.collect::<Result<_, _>>().map_err(refused)
    }

    /// Deletes a run and all its rows, or nothing.
    ///
    /// # Errors
    /// When there is no such run, or the database cannot be written.
    pub fn delete_run(&mut self, run: i64) -> Result<(), Error> {
        self.run(Some(run))?;
        let transaction = self.connection.transaction().map_err(refused)?;
        for table in TABLES {
            let statement = format!("DELETE FROM {} WHERE run_id = ?1", table.name);
            transaction.execute(&statement, [run]).map_err(refused)?;
        }
        if super::paths::exist(&transaction)? {
            transaction.execute("DELETE FROM node_paths WHERE run_id = ?1", [run]).map_err(refused)?;
        }
        transaction.commit().map_err(refused)
    }

    /// What a statement of the user's answers.
    ///
    /// # Errors
    /// When the statement is wrong.
    pub fn query(&self, statement: &str) -> Result<Answer, Error> {
        self.answer(statement, [])
    }

    /// What a question with a name answers.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn ask(&self, query: &Query, parameters: Parameters) -> Result<Answer, Error> {
        let all = [(":run", parameters.run), (":other", parameters.other), (":node", parameters.node)];
        let needed: Vec<_> = all.iter().filter(|(name, _)| query.needs(name)).copied().collect();
        let bound: Vec<(&str, &dyn rusqlite::ToSql)> =
            needed.iter().map(|(name, value)| (*name, value as &dyn rusqlite::ToSql)).collect();
        self.answer(query.sql, bound.as_slice())
    }

    fn answer(&self, statement: &str, parameters: impl Params) -> Result<Answer, Error> {
        let mut statement = self.connection.prepare(statement).map_err(refused)?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = statement.query(parameters).map_err(refused)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(refused)? {
            let values = (0..columns.len()).map(|index| row.get_ref(index).map(value));
            rows.push(values.collect::<Result<_, _>>().map_err(refused)?);
        }
        Ok(Answer { columns, rows })
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}
