//! The identity of an input, and the result of adding it.

/// The properties of an input other than its contents.
#[derive(Clone, Debug, Default)]
pub struct InputDetails {
    /// Its name.
    pub name: String,
    /// The short name of its format.
    pub format: String,
    /// The SHA-256 of its bytes: an input that is in the lake is not added again.
    pub sha256: [u8; 32],
    /// Its service; `None` to use its metadata.
    pub service: Option<String>,
    /// Its host; `None` to use its metadata.
    pub host: Option<String>,
    /// The start given by the user, in nanoseconds since 1970 (UTC). It applies to inputs that do not record theirs.
    pub began_unix_ns: Option<i64>,
    /// The last modification, in nanoseconds since 1970 (UTC): the fallback for an unknown start.
    pub modified_unix_ns: Option<i64>,
}

/// The result of adding an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddedInput {
    /// The number of samples, with each run counted in full.
    pub samples: u64,
    /// The number of rows in all tables.
    pub rows: u64,
    /// The bytes of all files written.
    pub bytes: u64,
    /// The number of stacks new to the lake.
    pub stacks: u64,
    /// The services of the input.
    pub services: Vec<String>,
    /// The number of samples and events more than a day in the future.
    pub future: u64,
    /// Whether times come from the file's last modification because the input has no dates.
    pub is_dated_by_file: bool,
}
