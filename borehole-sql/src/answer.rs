//! What a query answers.

use crate::backend::{Field, Rows};
use crate::error::{Error, ErrorKind};

/// A table of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text, as the database has it: see [`text`](crate::text).
    Text(String),
}

/// Takes an answer as it comes, row by row. When a method fails, no other one is called: the question ends, with that error.
pub trait AnswerSink {
    /// What goes wrong, here or with the question.
    type Error: From<Error>;

    /// The names of the columns, once, before the rows.
    ///
    /// # Errors
    /// When the answer is not to be taken.
    fn columns(&mut self, names: &[String]) -> Result<(), Self::Error>;

    /// A row, as long as there are columns.
    ///
    /// # Errors
    /// When nothing further is to be taken.
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

/// Gives `sink` what `ask` answers.
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

/// Gives rows to a sink, and keeps what that failed of.
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
