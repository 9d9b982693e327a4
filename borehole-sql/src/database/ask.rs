//! Runs of a database, and answers to statements.

use super::Database;
use crate::answer::{Answer, Value};
use crate::backend::Field;
use crate::error::{Error, ErrorKind};
use crate::queries::Query;
use crate::{Parameters, Run};

impl Database {
    /// The runs, the oldest first.
    ///
    /// # Errors
    /// When the database has no runs or cannot be read.
    pub fn runs(&mut self) -> Result<Vec<Run>, Error> {
        let statement = "SELECT runs.run_id, created_at, COUNT(node_id) FROM runs \
                         LEFT JOIN context_nodes ON context_nodes.run_id = runs.run_id \
                         GROUP BY runs.run_id, created_at ORDER BY runs.run_id";
        self.check_shape()?;
        let mut runs = Vec::new();
        self.backend.select(statement, &[], &mut |fields| {
            let [id, created_at, nodes] = fields else { return Ok(()) };
            let number = |field: &Field<'_>| field.integer().unwrap_or_default();
            runs.push(Run {
                id: number(id),
                created_at: created_at.text(),
                nodes: number(nodes).cast_unsigned(),
            });
            Ok(())
        })?;
        Ok(runs)
    }

    /// The number of `run`, if there is such a run; of `None`, that of the last one.
    ///
    /// # Errors
    /// When there is no such run.
    pub fn run(&mut self, run: Option<i64>) -> Result<i64, Error> {
        let runs = self.run_ids()?;
        let found = match run {
            Some(wanted) => runs.iter().find(|&&id| id == wanted),
            None => runs.last(),
        };
        let there = || match &runs[..] {
            [] => "none".to_owned(),
            runs => runs.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
        };
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
    pub fn run_ids(&mut self) -> Result<Vec<i64>, Error> {
        self.check_shape()?;
        let mut ids = Vec::new();
        self.backend.select("SELECT run_id FROM runs ORDER BY run_id", &[], &mut |fields| {
            ids.extend(fields[0].integer());
            Ok(())
        })?;
        Ok(ids)
    }

    /// What a statement of the user's answers.
    ///
    /// # Errors
    /// When the statement is wrong.
    pub fn query(&mut self, statement: &str) -> Result<Answer, Error> {
        self.answer(statement, &[])
    }

    /// What a question with a name answers.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn ask(&mut self, query: &Query, parameters: Parameters) -> Result<Answer, Error> {
        let dialect = self.dialect();
        let (statement, numbers) = dialect.bind(&dialect.said(query.sql), parameters);
        self.answer(&statement, &numbers)
    }

    fn answer(&mut self, statement: &str, numbers: &[Option<i64>]) -> Result<Answer, Error> {
        let mut rows = Vec::new();
        let columns = self.backend.select(statement, numbers, &mut |fields| {
            rows.push(fields.iter().copied().map(value).collect());
            Ok(())
        })?;
        Ok(Answer { columns, rows })
    }
}

fn value(field: Field<'_>) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Integer(number) => Value::Integer(number),
        Field::Real(number) => Value::Real(number),
        Field::Text(_) => Value::Text(field.text()),
    }
}
