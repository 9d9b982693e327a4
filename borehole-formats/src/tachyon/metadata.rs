//! The keys under which the facts of a file travel as metadata, so that they come back when it is written.

/// Of Python: `3.15.2`.
pub(super) const PYTHON_VERSION: &str = "python_version";
/// What was sampled: `wall`, `cpu`, `gil`, `all`, `exception`.
pub(super) const MODE: &str = "mode";
/// How it was sampled, joined by commas: `all_threads`, `native`, `gc`, `opcodes`, `blocking`.
pub(super) const FEATURES: &str = "features";
/// When profiling began, in microseconds on the clock of the samples. Of a format that counts from elsewhere it says nothing.
pub(super) const START_TIME_US: &str = "start_time_us";
/// How the samples were compressed: [`NONE`] or [`ZSTD`].
pub(super) const COMPRESSION: &str = "compression";
/// How long profiling took.
pub(super) const DURATION_S: &str = "duration_s";
/// How many ticks a second there were.
pub(super) const SAMPLE_RATE: &str = "sample_rate";
/// How many ticks failed, in per cent.
pub(super) const ERROR_RATE: &str = "error_rate";
/// How many ticks were missed, in per cent.
pub(super) const MISSED_SAMPLES: &str = "missed_samples";

/// Not compressed.
pub(super) const NONE: &str = "none";
/// Zstandard.
pub(super) const ZSTD: &str = "zstd";
