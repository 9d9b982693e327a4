//! Why a question has no answer: in the words of every way to ask.

use std::path::Path;

use serde::Serialize;

/// The reason why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The kind.
    pub kind: RefusalKind,
    /// The problem, and its place.
    pub message: String,
    /// The way out; absent if it is obvious.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// The question is not understood.
    Invalid,
    /// There is no such input, view or function.
    Missing,
    /// The input cannot be read.
    Unreadable,
    /// Who asks may not.
    Forbidden,
    /// The answer needs more than a limit allows.
    TooLarge,
    /// Too much is asked at once; later it may work.
    Busy,
    /// The server itself failed.
    Internal,
}

impl Refusal {
    /// Creates a refusal without help.
    #[must_use]
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    /// A question that is not understood.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Invalid, message)
    }

    /// Something that does not exist.
    #[must_use]
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(RefusalKind::Missing, message)
    }

    /// Calls the file at `path` by the name that it is listed under: where the server keeps files is nobody's business.
    #[must_use]
    pub(crate) fn calling(mut self, path: &Path, name: &str) -> Self {
        let path = path.display().to_string();
        for text in [Some(&mut self.message), self.help.as_mut()].into_iter().flatten() {
            *text = text.replace(&path, name);
        }
        self
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<borehole::Error> for Refusal {
    fn from(error: borehole::Error) -> Self {
        let kind = match &error {
            borehole::Error::Memory { .. } => RefusalKind::TooLarge,
            _ => RefusalKind::Unreadable,
        };
        Self { kind, message: error.to_string(), help: error.advice().map(|advice| advice.to_string()) }
    }
}

impl From<borehole::heap::Error> for Refusal {
    fn from(error: borehole::heap::Error) -> Self {
        let kind = if error.is_memory() { RefusalKind::TooLarge } else { RefusalKind::Unreadable };
        Self { kind, message: error.to_string(), help: error.advice().map(|advice| advice.to_string()) }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
