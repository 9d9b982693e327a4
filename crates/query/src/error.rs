//! Errors of lakes and queries.

use std::{fmt, io};

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;

/// An error of a lake or a query, with its place and a hint if there are any.
#[derive(Debug)]
pub struct Error {
    message: String,
    hint: Option<String>,
    kind: ErrorKind,
    /// The error of the sink that an answer was streamed into.
    sink: Option<io::Error>,
}

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ErrorKind {
    Missing,
    Storage,
    /// The storage did not confirm whether the request succeeded.
    Uncertain,
    /// An object of a state that newer states do not have any more.
    Vanished,
    Lake,
    Question,
    Added,
    Sink,
}

impl Error {
    #[cold]
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind, sink: None }
    }

    /// A lake, or something in it, that does not exist.
    pub(crate) fn missing(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Missing, message)
    }

    /// A lake with invalid contents.
    pub(crate) fn lake(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Lake, message)
    }

    /// An invalid query.
    pub(crate) fn question(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Question, message)
    }

    /// A failure of the storage at `place`.
    pub(crate) fn storage(place: &dyn fmt::Display, cause: &dyn fmt::Display) -> Self {
        Self::new(ErrorKind::Storage, format!("{place}: {cause}"))
    }

    /// Marks a request that may have succeeded despite the error.
    #[must_use]
    pub(crate) fn uncertain(self) -> Self {
        Self { kind: ErrorKind::Uncertain, ..self }
    }

    /// Whether the failed request may have succeeded.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.kind == ErrorKind::Uncertain
    }

    /// Marks an object that was deleted since the state that names it was read.
    #[must_use]
    pub(crate) fn vanished(self) -> Self {
        Self { kind: ErrorKind::Vanished, ..self }.with_hint("run the command again")
    }

    pub(crate) fn is_vanished(&self) -> bool {
        self.kind == ErrorKind::Vanished
    }

    /// A failure of the cluster at `address`.
    pub(crate) fn cluster(address: &str, cause: Self) -> Self {
        // The transport's messages are written for its developers.
        if cause.message.contains("transport::Error") {
            let error = Self::new(ErrorKind::Storage, format!("{address}: no response from the cluster"));
            return error.with_hint("start it with borehole lake scheduler and borehole lake executor");
        }
        Self { message: format!("{address}: {}", cause.message), ..cause }
    }

    /// A failure of the sink that takes an answer.
    pub(crate) fn sink(error: io::Error) -> Self {
        Self { sink: Some(error), ..Self::new(ErrorKind::Sink, "output") }
    }

    /// An input that has already been added.
    pub(crate) fn added(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Added, message)
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A suggestion of what to try next.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether the lake, or something requested from it, does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.kind == ErrorKind::Missing
    }

    /// The error of the sink that an answer was streamed into.
    ///
    /// # Errors
    /// Returns this error if something else failed.
    pub fn into_sink_error(mut self) -> Result<io::Error, Self> {
        self.sink.take().ok_or(self)
    }

    /// Whether the lake itself is damaged, or of a later version.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.kind == ErrorKind::Lake
    }

    /// Whether the input is already in the lake: nothing was added, and nothing is wrong.
    #[must_use]
    pub fn is_already_added(&self) -> bool {
        self.kind == ErrorKind::Added
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
            Some(message) => Self::question(message)
                .with_hint("run borehole lake query LAKE --schema to list the tables, views and functions"),
            None if matches!(root, DataFusionError::ResourcesExhausted(_)) => Self::question(restyled(root))
                .with_hint("narrow the time range or the services, or raise --max-memory"),
            None => Self::question(restyled(root)),
        }
    }
}

/// The message for an unknown name in a query.
fn unknown(error: &DataFusionError) -> Option<String> {
    let message = match error {
        DataFusionError::SchemaError(error, _) => {
            let SchemaError::FieldNotFound { field, valid_fields } = &**error else { return None };
            let known: Vec<_> = valid_fields.iter().map(Column::quoted_flat_name).collect();
            let known = match &known[..] {
                [] => String::new(),
                known => format!(": expected one of {}", known.join(", ")),
            };
            return Some(format!("unknown column {}{known}", field.quoted_flat_name()));
        }
        DataFusionError::Plan(message) => message,
        _ => return None,
    };
    if let Some(table) = message.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) {
        return Some(format!(
            "unknown table {}",
            table.trim_start_matches("datafusion.").trim_start_matches("public.")
        ));
    }
    let (function, other) = message.strip_prefix("Invalid function '")?.split_once("'.\nDid you mean ")?;
    Some(format!("unknown function {function}; did you mean {other}"))
}

/// Rewrites a message of the engine in the style of this program.
fn restyled(error: &DataFusionError) -> String {
    let message = match error {
        DataFusionError::SQL(error, _) => return restyled_parser(&error.to_string()),
        DataFusionError::ResourcesExhausted(_) => {
            return "query too large: it needs more memory than it may hold".to_owned();
        }
        DataFusionError::NotImplemented(what) => return format!("unsupported: {}", one_line(what)),
        DataFusionError::ArrowError(error, _) => error.to_string(),
        error => error.message().into_owned(),
    };
    // Errors of our functions and of Arrow follow words of the engine.
    let ours = message.split_once("coercion failed with: Error during planning: ");
    let ours = ours.and_then(|(_, ours)| ours.split_once(" No function matches")).map(|(ours, _)| ours);
    let of_arrow =
        || message.split_once(" error: ").filter(|_| matches!(error, DataFusionError::ArrowError(..)));
    one_line(ours.or_else(|| of_arrow().map(|(_, text)| text)).unwrap_or(&message))
}

/// Rewrites a message of the SQL parser, which ends with a position.
fn restyled_parser(message: &str) -> String {
    let message = message.trim_start_matches("sql parser error: ");
    let (text, place) = message.rsplit_once(" at Line: ").unwrap_or((message, ""));
    let text = text.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    let place = place.replace(" Column: ", " column ");
    one_line(&text) + &if place.is_empty() { place } else { format!(" at line {place}") }
}

/// Joins sentences on one line, without capital letters and full stops.
fn one_line(text: &str) -> String {
    let sentences = text.trim().lines().map(|line| {
        let line = line.trim().trim_end_matches('.');
        let mut letters = line.chars();
        match letters.next() {
            // A sentence that begins with an abbreviation keeps its capital letters.
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
    fn an_error_of_a_cluster_keeps_its_hint() {
        let hint = "CAST(... AS BIGINT) makes whole numbers";
        let error = Error::cluster("df://a:1", Error::question("no number").with_hint(hint));
        assert_eq!((error.to_string().as_str(), error.hint()), ("df://a:1: no number", Some(hint)));
    }
}
