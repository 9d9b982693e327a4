//! The results of queries.

use crate::backend::{Field, Rows};
use crate::error::{Error, ErrorKind};

/// A table of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each with one value per column.
    pub rows: Vec<Vec<Value>>,
}

/// A value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
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
    fn row(&mut self, row: Vec<Value>) -> Result<(), Self::Error>;
}

impl AnswerSink for Answer {
    type Error = Error;

    fn columns(&mut self, names: &[String]) -> Result<(), Error> {
        names.clone_into(&mut self.columns);
        Ok(())
    }

    fn row(&mut self, row: Vec<Value>) -> Result<(), Error> {
        self.rows.push(row);
        Ok(())
    }
}

/// Passes the result of `ask` to `sink`.
pub(crate) fn give<S: AnswerSink>(
    sink: &mut S,
    ask: impl FnOnce(&mut dyn Rows) -> Result<(), Error>,
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
            Error::new(ErrorKind::Io, "the answer is taken no further")
        })
    }
}

impl<S: AnswerSink> Rows for Giver<'_, S> {
    fn columns(&mut self, names: &[String]) -> Result<(), Error> {
        let given = self.sink.columns(names);
        self.keep(given)
    }

    fn row(&mut self, fields: &[Field<'_>]) -> Result<(), Error> {
        let given = self.sink.row(fields.iter().copied().map(value).collect());
        self.keep(given)
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
