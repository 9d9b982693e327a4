//! The results of queries.

use crate::backend::{ResultField, ResultRows};
use crate::error::{Error, ErrorKind};

/// A table of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryAnswer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<SqlValue>>,
}

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    /// SQL's `NULL`.
    Null,
    /// An integer.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text as stored in the database: see [`text`](crate::text).
    Text(String),
}

/// Receives a result row by row. If a method fails, no other one is called, and the query ends with its error.
pub trait AnswerSink {
    /// An error of the sink or of the query.
    type Error: From<Error>;

    /// Receives the names of the columns, once, before the rows.
    ///
    /// # Errors
    /// If the result is not wanted.
    fn columns(&mut self, names: &[String]) -> Result<(), Self::Error>;

    /// Receives a row, with one value per column.
    ///
    /// # Errors
    /// If no more rows are wanted.
    fn row(&mut self, row: Vec<SqlValue>) -> Result<(), Self::Error>;
}

impl AnswerSink for QueryAnswer {
    type Error = Error;

    fn columns(&mut self, names: &[String]) -> Result<(), Error> {
        names.clone_into(&mut self.columns);
        Ok(())
    }

    fn row(&mut self, row: Vec<SqlValue>) -> Result<(), Error> {
        self.rows.push(row);
        Ok(())
    }
}

/// Passes the result of `ask` to `sink`.
pub(crate) fn give<S: AnswerSink>(
    sink: &mut S,
    ask: impl FnOnce(&mut dyn ResultRows) -> Result<(), Error>,
) -> Result<(), S::Error> {
    let mut giver = Giver { sink, failed: None };
    let asked = ask(&mut giver);
    match giver.failed {
        Some(error) => Err(error),
        None => Ok(asked?),
    }
}

/// Passes rows to a sink, and keeps its error.
struct Giver<'s, S: AnswerSink> {
    sink: &'s mut S,
    failed: Option<S::Error>,
}

impl<S: AnswerSink> Giver<'_, S> {
    fn keep(&mut self, given: Result<(), S::Error>) -> Result<(), Error> {
        given.map_err(|error| {
            self.failed = Some(error);
            Error::new(ErrorKind::Io, "the receiver of the result stopped")
        })
    }
}

impl<S: AnswerSink> ResultRows for Giver<'_, S> {
    fn columns(&mut self, names: &[String]) -> Result<(), Error> {
        let given = self.sink.columns(names);
        self.keep(given)
    }

    fn row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let given = self.sink.row(fields.iter().copied().map(value).collect());
        self.keep(given)
    }
}

fn value(field: ResultField<'_>) -> SqlValue {
    match field {
        ResultField::Null => SqlValue::Null,
        ResultField::Integer(number) => SqlValue::Integer(number),
        ResultField::Real(number) => SqlValue::Real(number),
        ResultField::Text(_) => SqlValue::Text(field.text()),
    }
}
