//! The lines.
//!
//! Source: rbspy 0.55.0, `src/storage/mod.rs` and `v2.rs`, `src/core/types.rs`.

use std::borrow::Cow;

use serde::Deserialize;

/// The first line of the version that is read, which releases since 0.3.6 write.
pub(super) const VERSION_LINE: &[u8] = b"rbspy02";

/// The second line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RecordingHeader<'a> {
    /// Samples a second.
    pub(super) sample_rate: Option<u32>,
    #[serde(borrow)]
    pub(super) rbspy_version: Option<Cow<'a, str>>,
    pub(super) start_time: Option<SystemTime>,
}

/// A time of the system's clock.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct SystemTime {
    secs_since_epoch: i64,
    nanos_since_epoch: u32,
}

impl SystemTime {
    /// Nanoseconds since 1970.
    pub(super) fn unix_ns(self) -> i64 {
        self.secs_since_epoch.saturating_mul(1_000_000_000).saturating_add(i64::from(self.nanos_since_epoch))
    }
}

/// A stack.
#[derive(Debug, Deserialize)]
pub(super) struct RubyTrace<'a> {
    /// The leaf first.
    #[serde(borrow)]
    pub(super) trace: Vec<RubyTraceFrame<'a>>,
    #[serde(default)]
    pub(super) pid: Option<i64>,
    #[serde(default)]
    pub(super) thread_id: Option<u64>,
    #[serde(default)]
    pub(super) time: Option<SystemTime>,
}

/// A frame of a stack.
#[derive(Debug, Deserialize)]
pub(super) struct RubyTraceFrame<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) relative_path: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) absolute_path: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) lineno: Option<i64>,
}

/// In place of the path: of functions in C, and of those that rbspy does not know.
const UNKNOWN: [&str; 2] = ["(unknown)", "unknown"];

impl RubyTraceFrame<'_> {
    /// The file, if it is known.
    pub(super) fn file(&self) -> Option<&str> {
        let path = self.absolute_path.as_deref().unwrap_or(&self.relative_path);
        Some(path).filter(|&path| !path.is_empty() && !UNKNOWN.contains(&path))
    }
}
