//! What each database does in a way of its own.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::rows::RowSink;

/// How long a turn is waited for, in seconds: others may have much to write.
#[cfg(any(feature = "postgresql", feature = "mysql"))]
pub(crate) const TURN_PATIENCE_S: u32 = 600;

/// A connection to a database of some dialect.
pub(crate) trait Backend: Send {
    fn dialect(&self) -> Dialect;

    /// Runs a statement that answers nothing.
    fn execute(&mut self, statement: &str) -> Result<(), Error>;

    /// Runs a statement with numbers for its places, and gives out the names of its columns and its rows.
    fn answer(&mut self, statement: &str, numbers: &[Option<i64>], rows: &mut dyn Rows) -> Result<(), Error>;

    /// The same, where the names of the columns are known.
    fn select(&mut self, statement: &str, numbers: &[Option<i64>], take: &mut Take<'_>) -> Result<(), Error> {
        self.answer(statement, numbers, &mut Unnamed(take))
    }

    /// Adds a row to `runs`, and answers its number.
    fn insert_run(&mut self, created_at: &str) -> Result<i64, Error>;

    /// Waits until nobody else has the turn to write, which is then ours to the end of the transaction, or until
    /// [`Self::end_turn`] where making something ends a transaction. A file has one writer at a time in any case.
    fn take_turn(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Lets the next one have the turn.
    fn end_turn(&mut self) {}

    /// Takes in the rows that `fill` gives.
    fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error>;
}

/// Takes what a statement answers.
pub(crate) trait Rows {
    /// The names of the columns, before the rows.
    fn columns(&mut self, names: &[String]) -> Result<(), Error>;

    /// A row.
    fn row(&mut self, fields: &[Field<'_>]) -> Result<(), Error>;
}

/// Takes the rows only.
struct Unnamed<'u, 't>(&'u mut Take<'t>);

impl Rows for Unnamed<'_, '_> {
    fn columns(&mut self, _names: &[String]) -> Result<(), Error> {
        Ok(())
    }

    fn row(&mut self, fields: &[Field<'_>]) -> Result<(), Error> {
        (self.0)(fields)
    }
}

/// Takes a row.
pub(crate) type Take<'t> = dyn FnMut(&[Field<'_>]) -> Result<(), Error> + 't;

/// Gives rows.
pub(crate) type Fill<'f> = dyn FnMut(&mut dyn RowSink) -> Result<(), Error> + 'f;

/// A value that a database answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'r> {
    Null,
    Integer(i64),
    Real(f64),
    /// Text, which need not be UTF-8 in files that others wrote.
    Text(&'r [u8]),
}

impl<'r> Field<'r> {
    /// The same, without a copy of what is text.
    pub(crate) fn borrowed(self) -> Cow<'r, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::Integer(number) => number.to_string().into(),
            Self::Real(number) => number.to_string().into(),
            Self::Text(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// The number; of what is none, `None`.
    pub(crate) const fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Null | Self::Real(_) | Self::Text(_) => None,
        }
    }

    /// The text, what cannot stand in one replaced.
    pub(crate) fn text(self) -> String {
        self.borrowed().into_owned()
    }
}
