//! What can be wrong with a lake, or with what is asked of it.

use std::{fmt, io};

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

/// What is wrong, where, and what may help.
#[derive(Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
    kind: Kind,
    /// What the sink of an answer says.
    sink: Option<io::Error>,
}

/// What kind of thing is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Missing,
    Storage,
    /// The storage did not say whether it has done what it was asked for.
    Uncertain,
    Lake,
    Question,
    Added,
    Sink,
}

impl Error {
    #[cold]
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind, sink: None }
    }

    /// There is no such lake, or no such thing in it.
    #[cold]
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(Kind::Missing, message)
    }

    /// The lake holds what it must not.
    #[cold]
    pub(crate) fn lake(message: impl Into<String>) -> Self {
        Self::new(Kind::Lake, message)
    }

    /// The question is wrong.
    #[cold]
    pub(crate) fn question(message: impl Into<String>) -> Self {
        Self::new(Kind::Question, message)
    }

    /// The storage at `place` does not do what it should.
    #[cold]
    pub(crate) fn storage(place: &dyn fmt::Display, cause: &dyn fmt::Display) -> Self {
        Self::new(Kind::Storage, format!("{place}: {cause}"))
    }

    /// The same, where what was asked for may have been done all the same.
    #[must_use]
    pub(crate) fn uncertain(self) -> Self {
        Self { kind: Kind::Uncertain, ..self }
    }

    /// Whether what failed may have been done all the same.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.kind == Kind::Uncertain
    }

    /// The cluster at `address` does not answer a question.
    #[cold]
    pub(crate) fn cluster(address: &str, cause: Self) -> Self {
        // What the transport says is written for its makers.
        if cause.message.contains("transport::Error") {
            let error = Self::new(Kind::Storage, format!("{address}: the cluster does not answer"));
            return error.with_hint("borehole lake scheduler and borehole lake executor are its programs");
        }
        Self { message: format!("{address}: {}", cause.message), ..cause }
    }

    /// The sink that takes an answer has failed.
    #[cold]
    pub(crate) fn sink(error: io::Error) -> Self {
        Self { sink: Some(error), ..Self::new(Kind::Sink, "output") }
    }

    /// The input has been added already.
    #[cold]
    pub(crate) fn added(message: impl Into<String>) -> Self {
        Self::new(Kind::Added, message)
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What the user may try next.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether there is no lake, or not what was asked for in it.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.kind == Kind::Missing
    }

    /// What the sink said that an answer was streamed into, if that is what failed.
    ///
    /// # Errors
    /// This error, where something else did.
    pub fn into_sink_error(mut self) -> Result<io::Error, Self> {
        self.sink.take().ok_or(self)
    }

    /// Whether the lake itself is damaged, or of a later version.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.kind == Kind::Lake
    }

    /// Whether the input is in the lake already: nothing was added, and nothing is wrong.
    #[must_use]
    pub fn is_already_added(&self) -> bool {
        self.kind == Kind::Added
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sink {
            Some(error) => write!(f, "{}: {error}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        let root = error.find_root();
        match unknown(root) {
            Some(message) => Self::question(message).with_hint(
                "borehole lake query LAKE --schema prints the tables, views and functions that there are",
            ),
            None => Self::question(said(root)),
        }
    }
}

/// That there is nothing of a name that a question has.
fn unknown(error: &DataFusionError) -> Option<String> {
    let message = match error {
        DataFusionError::SchemaError(error, _) => {
            let SchemaError::FieldNotFound { field, valid_fields } = &**error else { return None };
            let there: Vec<_> = valid_fields.iter().map(Column::quoted_flat_name).collect();
            let there =
                if there.is_empty() { String::new() } else { format!("; there are {}", there.join(", ")) };
            return Some(format!("no column named {}{there}", field.quoted_flat_name()));
        }
        DataFusionError::Plan(message) => message,
        _ => return None,
    };
    if let Some(table) = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) {
        return Some(format!(
            "no table named {}",
            table.trim_start_matches("datafusion.").trim_start_matches("public.")
        ));
    }
    let (function, other) = message.strip_prefix("Invalid function '")?.split_once("'.\nDid you mean ")?;
    Some(format!("no function named {function}; did you mean {other}"))
}

/// What the engine says, as our own messages are written.
fn said(error: &DataFusionError) -> String {
    let message = match error {
        DataFusionError::SQL(error, _) => return parser_said(&error.to_string()),
        DataFusionError::NotImplemented(what) => return format!("unsupported: {}", lines(what)),
        DataFusionError::ArrowError(error, _) => error.to_string(),
        error => error.message().into_owned(),
    };
    // What a function of ours refuses, and arrow's sorts of errors, stand behind words of the engine's.
    let ours = message.split_once("coercion failed with: Error during planning: ");
    let ours = ours.and_then(|(_, ours)| ours.split_once(" No function matches")).map(|(ours, _)| ours);
    let of_arrow =
        || message.split_once(" error: ").filter(|_| matches!(error, DataFusionError::ArrowError(..)));
    lines(ours.or_else(|| of_arrow().map(|(_, text)| text)).unwrap_or(&message))
}

/// What the parser says, of which the place is the last.
fn parser_said(message: &str) -> String {
    let message = message.trim_start_matches("sql parser error: ");
    let (text, place) = message.rsplit_once(" at Line: ").unwrap_or((message, ""));
    let text = text.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    let place = place.replace(" Column: ", " column ");
    lines(&text) + &if place.is_empty() { place } else { format!(" at line {place}") }
}

/// Sentences on one line, without their capital letters and full stops.
fn lines(text: &str) -> String {
    let sentences = text.trim().lines().map(|line| {
        let line = line.trim().trim_end_matches('.');
        let mut letters = line.chars();
        match letters.next() {
            // One that begins with an abbreviation stays.
            Some(first) if !letters.as_str().starts_with(char::is_uppercase) => {
                first.to_lowercase().chain(letters).collect()
            }
            _ => line.to_owned(),
        }
    });
    sentences.collect::<Vec<_>>().join("; ")
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        Self::lake(error.to_string())
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_what_helps() {
        let hint = "CAST(... AS BIGINT) makes whole numbers";
        let error = Error::cluster("df://a:1", Error::question("no number").with_hint(hint));
        assert_eq!((error.to_string().as_str(), error.hint()), ("df://a:1: no number", Some(hint)));
    }
}
