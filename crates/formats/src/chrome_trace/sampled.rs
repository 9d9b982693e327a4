//! CPU profiles of V8 that a trace has in chunks, as the performance panel of Chrome's DevTools writes them.
//!
//! Source: V8, `src/profiler/profile-generator.cc`, `StreamPendingTraceEvents`: the events `Profile` and `ProfileChunk`.

use borehole_model::{Context, ProfileSink, Segment, StringId, Tables, Thread};
use hashbrown::HashMap;

use super::NAME;
use super::read::{ProfileData, TraceId};
use crate::ReadError;
use crate::documents::whole::DocumentDamage;
use crate::v8::profile::{CallNode, CpuProfile};
use crate::v8::samples::deliver;

/// The sampled profiles of a trace, by process and id.
#[derive(Debug, Default)]
pub(super) struct SampledProfiles {
    index: HashMap<(TraceId, TraceId), usize>,
    pub(super) profiles: Vec<SampledProfile>,
}

/// A profile of a thread.
#[derive(Debug, Default)]
pub(super) struct SampledProfile {
    /// The row of the thread.
    pub(super) row: usize,
    profile: CpuProfile,
}

/// Process and thread of a profile, with their names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProfiledThread {
    pub(super) process: Option<i64>,
    pub(super) thread: Option<u64>,
    pub(super) name: Option<StringId>,
}

/// Whether an event is a part of a sampled profile.
pub(super) fn is_sampled(name: &str) -> bool {
    matches!(name, "Profile" | "ProfileChunk" | "CpuProfile")
}

impl SampledProfiles {
    /// Takes a part of a profile from an event of the thread in `row`; returns how many bytes it holds.
    pub(super) fn take(
        &mut self,
        key: (TraceId, TraceId),
        name: &str,
        row: usize,
        data: ProfileData,
    ) -> usize {
        let next = self.profiles.len();
        let index = *self.index.entry(key).or_insert(next);
        if index == next {
            self.profiles.push(SampledProfile { row, ..SampledProfile::default() });
        }
        let own = &mut self.profiles[index];
        if name == "Profile" {
            // Chunks are of the thread that takes the samples.
            own.row = row;
        }
        let ProfileData { start_time, end_time, time_deltas, cpu_profile } = data;
        let CpuProfile {
            nodes,
            samples,
            time_deltas: own_deltas,
            start_time: own_start,
            end_time: own_end,
            ..
        } = cpu_profile.unwrap_or_default();
        let profile = &mut own.profile;
        profile.start_time = profile.start_time.or(start_time).or(own_start);
        profile.end_time = end_time.or(own_end).or(profile.end_time);
        let nodes = nodes.unwrap_or_default();
        let text = |node: &CallNode| node.call_frame.function_name.len() + node.call_frame.url.len();
        let held: usize = nodes.iter().map(|node| size_of::<CallNode>() + text(node)).sum();
        let samples = samples.unwrap_or_default();
        let times = own_deltas.or(time_deltas).unwrap_or_default();
        // The list of samples that is sorted by time takes more than their ids and times.
        let held = 2 * held + 8 * (samples.len() + times.len()) * size_of::<u64>();
        profile.nodes.get_or_insert_default().extend(nodes);
        profile.samples.get_or_insert_default().extend(samples);
        profile.time_deltas.get_or_insert_default().extend(times);
        held
    }

    /// Passes each profile to `sink` as a segment. `thread` says whose a row is.
    ///
    /// # Errors
    /// If a profile contradicts itself and damage is not skipped, the tables are full, or the sink fails.
    pub(super) fn deliver(
        &self,
        thread: impl Fn(usize) -> ProfiledThread,
        damage: &mut DocumentDamage,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
    ) -> Result<(), ReadError> {
        for SampledProfile { row, profile } in &self.profiles {
            if damage.recovery.stopped {
                break;
            }
            let ProfiledThread { process, thread, name } = thread(*row);
            let index = damage.recovery.segments;
            let base = Segment { format: NAME, index, process, ..Segment::default() };
            if let Some((number, name)) = thread.zip(name) {
                let at = Context { tables, segment: &base };
                sink.thread(at, Thread { process, number }, name)?;
            }
            deliver(profile, (base, thread), damage, tables, sink)?;
        }
        Ok(())
    }
}
