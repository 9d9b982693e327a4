//! The identity of an input, and the result of adding it.

use borehole_model::StatedModules;

use crate::Error;
use crate::checksum::{ContentPrefixes, input_id};

/// The properties of an input other than its contents.
#[derive(Clone, Debug, Default)]
pub struct InputDetails {
    /// Its name.
    pub name: String,
    /// The short name of its format.
    pub format: String,
    /// The SHA-256 of its bytes: an input that is in the lake is not added again.
    pub sha256: [u8; 32],
    /// The checksums of its beginnings, so that it is known again when it has grown.
    pub prefixes: ContentPrefixes,
    /// The inputs that it continues, which are removed when it is added.
    pub replaces: Vec<Precursor>,
    /// Its service; `None` to use its metadata.
    pub service: Option<String>,
    /// Its host; `None` to use its metadata.
    pub host: Option<String>,
    /// The labels given by the user, for all rows of the input. They replace facts of the input with the same name.
    pub labels: Vec<(String, String)>,
    /// The files of native code that the input states behind its samples; those before them are known anyway.
    pub modules: StatedModules,
    /// The start given by the user, in nanoseconds since 1970 (UTC). It applies to inputs that do not record theirs.
    pub began_unix_ns: Option<i64>,
    /// The last modification, in nanoseconds since 1970 (UTC): the fallback for an unknown start.
    pub modified_unix_ns: Option<i64>,
}

/// An input in the lake that a longer one may continue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precursor {
    /// Its id: the first half of the SHA-256 of its bytes, in hexadecimal.
    pub source: String,
    /// Its length. If as many bytes of another input have its checksum, that one continues it.
    pub bytes: u64,
    /// The first and the last time of its rows.
    pub(crate) span_us: (i64, i64),
}

impl Precursor {
    /// Whether `sha256` is the checksum of its bytes.
    #[must_use]
    pub fn is_of(&self, sha256: &[u8; 32]) -> bool {
        input_id(sha256) == self.source
    }
}

/// The result of adding an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedInput {
    /// The number of samples, with each run counted in full.
    pub samples: u64,
    /// The number of rows in all tables.
    pub rows: u64,
    /// The bytes of all files written for it alone.
    pub bytes: u64,
    /// The number of its distinct stacks.
    pub stacks: u64,
    /// The services of the input.
    pub services: Vec<String>,
    /// The number of samples and events more than a day in the future.
    pub future: u64,
    /// Whether times come from the file's last modification because the input has no dates.
    pub is_dated_by_file: bool,
}

/// The result of a commit of inputs.
#[derive(Debug, Default)]
pub struct CommittedInputs {
    /// The inputs, in the order in which they were added.
    pub inputs: Vec<AddedInput>,
    /// The bytes of all files written for them.
    pub bytes: u64,
    /// Why the maintenance after the commit failed, if it did. The inputs were added, and later commits try again.
    pub maintenance: Option<Error>,
}
