//! The results of the reference programs for the files of the corpus.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::read_corpus;

/// `rbt/MANIFEST.json`: the binary traces, and the texts beside them.
#[derive(Clone, Debug, Deserialize)]
pub struct CorpusManifest {
    /// The traces.
    pub files: Vec<CorpusTrace>,
    /// The phpspy texts. Of some, the corpus contains only the conversions.
    pub text: Vec<CorpusText>,
}

/// A trace of the corpus.
#[derive(Clone, Debug, Deserialize)]
pub struct CorpusTrace {
    /// The path below `rbt/`.
    pub name: String,
    /// The size.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal.
    pub sha256: String,
    /// The point of the file, in a few words.
    #[serde(rename = "desc")]
    pub description: String,
    /// The kinds of file, such as `valid`, `edge` or `corrupt`.
    pub tags: Vec<String>,
    /// The result of strict reading.
    pub strict: ReadOutcome,
    /// The result of recovery.
    pub recover: ReadOutcome,
    /// The results of the converters, by name.
    #[serde(default)]
    pub converters: BTreeMap<String, CorpusConversion>,
}

/// The result of reading a file. The numbers are absent if the reader crashed.
#[derive(Clone, Debug, Deserialize)]
pub struct ReadOutcome {
    /// The number of samples before it ends or fails.
    pub samples: Option<u64>,
    /// The SHA-256 over the lines of `expected`, in hexadecimal.
    pub sha256: Option<String>,
    /// Why it failed.
    pub error: Option<ReadMessage>,
    /// The sampling period in microseconds.
    pub period_us: Option<u64>,
    /// The keys and values of the metadata.
    #[serde(default)]
    pub metadata: Vec<(String, String)>,
    /// The path of the samples below `rbt/`.
    pub expected: String,
}

/// The text of an error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ReadMessage {
    /// The text as it was printed.
    Text(String),
    /// Its bytes in hexadecimal, if they are not UTF-8.
    Bytes {
        /// The bytes.
        hex: String,
    },
}

/// The result of a converter for a file.
#[derive(Clone, Debug, Deserialize)]
pub struct CorpusConversion {
    /// Its exit status.
    pub exit: i32,
    /// The size of its output.
    pub bytes: u64,
    /// The SHA-256 of its output in hexadecimal.
    pub sha256: String,
    /// The path of its output below `rbt/`, if the corpus contains it.
    pub file: Option<String>,
}

/// A phpspy text.
#[derive(Clone, Debug, Deserialize)]
pub struct CorpusText {
    /// The path below `rbt/`.
    pub name: String,
    /// The size.
    pub bytes: u64,
    /// The results of the converters, by name.
    pub converters: BTreeMap<String, CorpusConversion>,
}

impl CorpusManifest {
    /// The manifest of the `rbt` corpus.
    ///
    /// # Panics
    /// If it does not match these types.
    #[must_use]
    pub fn rbt() -> Self {
        serde_json::from_slice(&read_corpus("rbt/MANIFEST.json"))
            .unwrap_or_else(|error| panic!("rbt/MANIFEST.json: {error}"))
    }

    /// The trace called `name`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn trace(&self, name: &str) -> &CorpusTrace {
        let found = self.files.iter().find(|trace| trace.name == name);
        found.unwrap_or_else(|| panic!("the manifest lists no {name}"))
    }
}

impl CorpusTrace {
    /// The contents of the file.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn read(&self) -> Vec<u8> {
        read_corpus(&format!("rbt/{}", self.name))
    }

    /// Whether the file is tagged `tag`.
    #[must_use]
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|found| found == tag)
    }
}
