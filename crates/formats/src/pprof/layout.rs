//! The field numbers of the messages, except those of symbols.
//!
//! Source: google/pprof, `proto/profile.proto` (field numbers), `profile/encode.go` (Go 1.27's copy: what the tool
//! accepts, `Line.column`, `Profile.doc_url`).

use crate::symbols::layout::SymbolKeys;

/// Symbols have ids.
pub(super) const KEYS: SymbolKeys = SymbolKeys::Ids;

/// Fields of `Profile`, the outermost message.
pub(super) mod profile {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING_TABLE: u32 = 6;
    pub(crate) const DROP_FRAMES: u32 = 7;
    pub(crate) const KEEP_FRAMES: u32 = 8;
    pub(crate) const TIME_NANOS: u32 = 9;
    pub(crate) const DURATION_NANOS: u32 = 10;
    pub(crate) const PERIOD_TYPE: u32 = 11;
    pub(crate) const PERIOD: u32 = 12;
    pub(crate) const COMMENT: u32 = 13;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    pub(crate) const DOC_URL: u32 = 15;
}

/// Fields of `Sample`.
pub(super) mod sample {
    /// Leaf first.
    pub(crate) const LOCATION_ID: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
    pub(crate) const LABEL: u32 = 3;
}

/// Fields of `Label`; all but the number are string indexes.
pub(super) mod label {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const STR: u32 = 2;
    pub(crate) const NUM: u32 = 3;
    pub(crate) const NUM_UNIT: u32 = 4;
}

/// Fields of `Mapping` beside those of all [symbols](crate::symbols::layout).
pub(super) mod mapping {
    pub(crate) const BUILD_ID: u32 = 6;
    pub(crate) const HAS_FUNCTIONS: u32 = 7;
    pub(crate) const HAS_FILENAMES: u32 = 8;
    pub(crate) const HAS_LINE_NUMBERS: u32 = 9;
    pub(crate) const HAS_INLINE_FRAMES: u32 = 10;
}

/// The label keys of a sample's properties, for which the format has no fields.
pub(super) mod key {
    pub(crate) const PROCESS: &str = "pid";
    pub(crate) const THREAD: &str = "thread";
    /// The label of a thread in perf's converter; read, never written.
    pub(crate) const THREAD_OF_PERF: &str = "tid";
    pub(crate) const THREAD_NAME: &str = "thread_name";
    pub(crate) const INTERPRETER: &str = "interpreter";
    /// One label per flag that is set.
    pub(crate) const STATUS: &str = "thread_status";
}

/// The metadata keys of fields of `Profile` that the model cannot hold.
pub(super) mod metadata {
    pub(crate) const COMMENT: &str = "comment";
    pub(crate) const DEFAULT_SAMPLE_TYPE: &str = "default_sample_type";
    pub(crate) const DOC_URL: &str = "doc_url";
}

/// The prefix of a comment with the periods of a file that has several: the format can hold one.
pub(super) const PERIODS_COMMENT: &str = "sampling_periods_ns=";

/// The number of periods listed: enough to show the mixture; a comment is not a table.
pub(super) const SHOWN_PERIODS: usize = 16;
