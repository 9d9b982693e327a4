//! The operations that each database implements differently.

use std::borrow::Cow;
use std::time::Duration;

use crate::dialect::SqlDialect;
use crate::error::Error;
use crate::rows::RowSink;

/// The maximum time to wait for a turn, in seconds: other writers may have much to write.
#[cfg(any(feature = "postgresql", feature = "mysql"))]
pub(crate) const TURN_PATIENCE_S: u32 = 600;

/// A connection to a database of some dialect.
pub(crate) trait Backend: Send {
    fn dialect(&self) -> SqlDialect;

    /// Runs a statement without a result.
    fn execute(&mut self, statement: &str) -> Result<(), Error>;

    /// Runs a statement with numbers for its placeholders, and passes the names of its columns and its rows to `rows`.
    fn answer(
        &mut self,
        statement: &str,
        numbers: &[Option<i64>],
        rows: &mut dyn ResultRows,
    ) -> Result<(), Error>;

    /// Like [`Self::answer`], without the names of the columns.
    fn select(&mut self, statement: &str, numbers: &[Option<i64>], take: &mut Take<'_>) -> Result<(), Error> {
        self.answer(statement, numbers, &mut Unnamed(take))
    }

    /// Sets the time limit for the next row of an answer. A connection to a server has its own.
    fn set_timeout(&mut self, _timeout: Duration) {}

    /// Adds a row to `runs`, and returns its number.
    fn insert_run(&mut self, created_at: &str) -> Result<i64, Error>;

    /// Waits for the turn to write, which lasts until the end of the transaction, or until [`Self::end_turn`] if
    /// creating something ends a transaction. A file allows only one writer at a time anyway.
    fn take_turn(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Passes the turn on.
    fn end_turn(&mut self) {}

    /// Loads the rows that `fill` provides.
    fn load(&mut self, fill: &mut Fill<'_>) -> Result<(), Error>;
}

/// Receives the result of a statement.
pub(crate) trait ResultRows {
    /// Receives the names of the columns, before the rows.
    fn columns(&mut self, names: &[String]) -> Result<(), Error>;

    /// Receives a row.
    fn row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error>;
}

/// Receives the rows only.
struct Unnamed<'u, 't>(&'u mut Take<'t>);

impl ResultRows for Unnamed<'_, '_> {
    fn columns(&mut self, _names: &[String]) -> Result<(), Error> {
        Ok(())
    }

    fn row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        (self.0)(fields)
    }
}

/// Receives a row.
pub(crate) type Take<'t> = dyn FnMut(&[ResultField<'_>]) -> Result<(), Error> + 't;

/// Provides rows.
pub(crate) type Fill<'f> = dyn FnMut(&mut dyn RowSink) -> Result<(), Error> + 'f;

/// A value in a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ResultField<'r> {
    Null,
    Integer(i64),
    Real(f64),
    /// Text, which may be invalid UTF-8 in files of other programs.
    Text(&'r [u8]),
}

impl<'r> ResultField<'r> {
    /// Like [`Self::text`], without a copy if it is valid text.
    pub(crate) fn borrowed(self) -> Cow<'r, str> {
        match self {
            Self::Null => Cow::Borrowed(""),
            Self::Integer(number) => number.to_string().into(),
            Self::Real(number) => number.to_string().into(),
            Self::Text(bytes) => String::from_utf8_lossy(bytes),
        }
    }

    /// The integer; `None` for other values.
    pub(crate) const fn integer(self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(number),
            Self::Null | Self::Real(_) | Self::Text(_) => None,
        }
    }

    /// The value as text, with invalid bytes replaced.
    pub(crate) fn text(self) -> String {
        self.borrowed().into_owned()
    }
}
