//! Field numbers of the messages.
//!
//! Source: google/pprof, `proto/profile.proto` (field numbers), `profile/encode.go` (Go 1.27's copy: what the
//! tool accepts, `Line.column`, `Profile.doc_url`).

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

/// Fields of `ValueType`; both are string indexes.
pub(super) mod value_type {
    pub(crate) const TYPE: u32 = 1;
    pub(crate) const UNIT: u32 = 2;
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

/// Fields of `Mapping`.
pub(super) mod mapping {
    pub(crate) const ID: u32 = 1;
    pub(crate) const MEMORY_START: u32 = 2;
    pub(crate) const MEMORY_LIMIT: u32 = 3;
    pub(crate) const FILENAME: u32 = 5;
    pub(crate) const HAS_FUNCTIONS: u32 = 7;
}

/// Fields of `Location`.
pub(super) mod location {
    pub(crate) const ID: u32 = 1;
    pub(crate) const MAPPING_ID: u32 = 2;
    pub(crate) const ADDRESS: u32 = 3;
    /// Innermost inlined function first; the last one is the function that has the code.
    pub(crate) const LINE: u32 = 4;
}

/// Fields of `Line`.
pub(super) mod line {
    pub(crate) const FUNCTION_ID: u32 = 1;
    /// 1-based, 0 where unknown.
    pub(crate) const LINE: u32 = 2;
    /// 1-based, 0 where unknown.
    pub(crate) const COLUMN: u32 = 3;
}

/// Fields of `Function`; all but the id are string indexes.
pub(super) mod function {
    pub(crate) const ID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const SYSTEM_NAME: u32 = 3;
    pub(crate) const FILENAME: u32 = 4;
}

/// Label keys that stand for a sample's own properties, since the format has no fields for them.
pub(super) mod key {
    pub(crate) const PROCESS: &str = "pid";
    pub(crate) const THREAD: &str = "thread";
    /// What perf's converter calls the thread; read, never written.
    pub(crate) const THREAD_OF_PERF: &str = "tid";
    pub(crate) const THREAD_NAME: &str = "thread_name";
    pub(crate) const INTERPRETER: &str = "interpreter";
    /// One label for each flag that is set.
    pub(crate) const STATUS: &str = "thread_status";
}

/// Metadata keys that stand for fields of `Profile` which the model has no place for.
pub(super) mod metadata {
    pub(crate) const COMMENT: &str = "comment";
    pub(crate) const DEFAULT_SAMPLE_TYPE: &str = "default_sample_type";
    pub(crate) const DOC_URL: &str = "doc_url";
}

/// What a comment begins with that names the periods of a file that has several: the format has room for one.
pub(super) const PERIODS_COMMENT: &str = "sampling_periods_ns=";

/// Enough to see what was mixed; a comment is not a table.
pub(super) const SHOWN_PERIODS: usize = 16;
