//! A CPU profile, read from JSON. Memory is proportional to it.
//!
//! Source: V8, `src/profiler/profile-generator.cc` and `src/inspector/v8-profiler-agent-impl.cc`; the Chrome DevTools Protocol,
//! domain Profiler, types `Profile` and `ProfileNode`.

use serde::Deserialize;

use super::frames::CallFrame;

/// The bytes of most values: the numbers of samples, and members of nodes.
pub(crate) const VALUE_BYTES: usize = 16;

/// A profile. Times are in microseconds, from an origin that is not stated.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CpuProfile {
    pub(crate) nodes: Option<Vec<CallNode>>,
    pub(crate) start_time: Option<f64>,
    pub(crate) end_time: Option<f64>,
    /// The node of each sample.
    pub(crate) samples: Option<Vec<u64>>,
    /// The time of each sample since the one before; of the first, since the start.
    pub(crate) time_deltas: Option<Vec<f64>>,
    /// The times of the samples, in older files.
    pub(crate) timestamps: Option<Vec<f64>>,
}

/// A function, as it was called from the nodes above.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CallNode {
    pub(crate) id: u64,
    pub(crate) call_frame: CallFrame,
    /// The samples with the function as leaf.
    pub(crate) hit_count: u64,
    pub(crate) children: Vec<u64>,
    /// In place of `children`, in parts of traces.
    pub(crate) parent: Option<u64>,
}

impl CpuProfile {
    /// The times of the samples in nanoseconds; `None` if there are none.
    pub(crate) fn times_ns(&self) -> Option<Vec<i64>> {
        if let Some(times) = &self.timestamps {
            return Some(times.iter().map(|&time| nanoseconds(time)).collect());
        }
        let mut time = self.start_time.unwrap_or(0.0);
        let times = self.time_deltas.as_ref()?.iter().map(|delta| {
            time += delta;
            nanoseconds(time)
        });
        Some(times.collect())
    }
}

/// Converts microseconds. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
pub(crate) fn nanoseconds(microseconds: f64) -> i64 {
    (microseconds * 1000.0).round() as i64
}
