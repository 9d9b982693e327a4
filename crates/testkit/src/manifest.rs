//! What the reference programs read in the files of the corpus.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::read_corpus;

/// `rbt/MANIFEST.json`: the binary traces, and the texts beside them.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// The traces.
    pub files: Vec<Trace>,
    /// The phpspy texts. Of some only the conversions are in the corpus.
    pub text: Vec<Text>,
}

/// A trace of the corpus.
#[derive(Clone, Debug, Deserialize)]
pub struct Trace {
    /// The path below `rbt/`.
    pub name: String,
    /// The size.
    pub bytes: u64,
    /// The SHA-256 in hexadecimal.
    pub sha256: String,
    /// What the file shows, in a few words.
    #[serde(rename = "desc")]
    pub description: String,
    /// What sort of file it is, such as `valid`, `edge` or `corrupt`.
    pub tags: Vec<String>,
    /// What the reader finds.
    pub strict: Outcome,
    /// What recovery finds.
    pub recover: Outcome,
    /// What each converter makes of it.
    #[serde(default)]
    pub converters: BTreeMap<String, Conversion>,
}

/// What a reader finds in a file. The numbers are absent where the reader itself broke down.
#[derive(Clone, Debug, Deserialize)]
pub struct Outcome {
    /// How many samples it yields before it ends or fails.
    pub samples: Option<u64>,
    /// The SHA-256 over the lines of `expected`, in hexadecimal.
    pub sha256: Option<String>,
    /// Why it failed.
    pub error: Option<Message>,
    /// The sampling period in microseconds.
    pub period_us: Option<u64>,
    /// Keys and values.
    #[serde(default)]
    pub metadata: Vec<(String, String)>,
    /// The path below `rbt/` of the samples.
    pub expected: String,
}

/// The text of an error.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Message {
    /// As it was printed.
    Text(String),
    /// Its bytes in hexadecimal, where they are not UTF-8.
    Bytes {
        /// The bytes.
        hex: String,
    },
}

/// What a converter makes of a file.
#[derive(Clone, Debug, Deserialize)]
pub struct Conversion {
    /// Its exit status.
    pub exit: i32,
    /// The size of its output.
    pub bytes: u64,
    /// The SHA-256 of its output in hexadecimal.
    pub sha256: String,
    /// The path below `rbt/` of its output, where that is kept.
    pub file: Option<String>,
}

/// A phpspy text.
#[derive(Clone, Debug, Deserialize)]
pub struct Text {
    /// The path below `rbt/`.
    pub name: String,
    /// The size.
    pub bytes: u64,
    /// What each converter makes of it.
    pub converters: BTreeMap<String, Conversion>,
}

impl Manifest {
    /// The manifest of the `rbt` corpus.
    ///
    /// # Panics
    /// When it does not fit these types.
    #[must_use]
    pub fn rbt() -> Self {
        serde_json::from_slice(&read_corpus("rbt/MANIFEST.json"))
            .unwrap_or_else(|error| panic!("rbt/MANIFEST.json: {error}"))
    }

    /// The trace called `name`.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn trace(&self, name: &str) -> &Trace {
        let found = self.files.iter().find(|trace| trace.name == name);
        found.unwrap_or_else(|| panic!("the manifest lists no {name}"))
    }
}

impl Trace {
    /// What stands in the file.
    ///
    /// # Panics
    /// When it cannot be read.
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
