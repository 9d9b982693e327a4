//! The metadata keys of a file's facts, so that exporting restores them.

/// The version of Python: `3.15.2`.
pub(super) const PYTHON_VERSION: &str = "python_version";
/// The sampling mode: `wall`, `cpu`, `gil`, `all`, `exception`.
pub(super) const MODE: &str = "mode";
/// The sampling features, joined by commas: `all_threads`, `native`, `gc`, `opcodes`, `blocking`.
pub(super) const FEATURES: &str = "features";
/// The start of profiling, in microseconds on the clock of the samples. Not valid for formats with another origin.
pub(super) const START_TIME_US: &str = "start_time_us";
/// The compression of the samples: [`NONE`] or [`ZSTD`].
pub(super) const COMPRESSION: &str = "compression";
/// The duration of profiling.
pub(super) const DURATION_S: &str = "duration_s";
/// The number of ticks per second.
pub(super) const SAMPLE_RATE: &str = "sample_rate";
/// The percentage of failed ticks.
pub(super) const ERROR_RATE: &str = "error_rate";
/// The percentage of missed ticks.
pub(super) const MISSED_SAMPLES: &str = "missed_samples";

/// Not compressed.
pub(super) const NONE: &str = "none";
/// Zstandard.
pub(super) const ZSTD: &str = "zstd";
