//! What can be wrong with a lake, or with what is asked of it.

use std::{fmt, io};

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
    pub(crate) fn cluster(address: &str, cause: &Self) -> Self {
        // What the transport says is written for its makers.
        if cause.message.contains("transport::Error") {
            let error = Self::new(Kind::Storage, format!("{address}: the cluster does not answer"));
            return error.with_hint("borehole lake scheduler and borehole lake executor are its programs");
        }
        Self::new(cause.kind, format!("{address}: {}", cause.message))
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
        let root = error.find_root().strip_backtrace();
        let message = root.split_once("error: ").map_or(root.as_str(), |(_, message)| message);
        let message = message.trim().replace(".\n", "; ").replace('\n', " ");
        let mut characters = message.chars();
        // Messages of the engine begin with a capital letter.
        let first = characters.next().map(|first| first.to_ascii_lowercase());
        let message: String = first.into_iter().chain(characters).collect();
        Self::new(Kind::Question, message.trim_end_matches('.'))
    }
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
