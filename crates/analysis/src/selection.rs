//! The samples of a profile that a view covers, and their weights.

use borehole_model::{LabelValue, Status, Tables};

use crate::profile::TimeRange;
use crate::profile::situations::{Situation, Situations};

/// The amount that a sample adds to a view. [`Profile::value_type`](crate::Profile::value_type) returns its value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// 1 for each sample, in profiles whose samples are counted.
    #[default]
    Samples,
    /// The value that the profile was built from, or else the nanoseconds that a sample stands for: the period of its
    /// segment.
    Value,
    /// The nanoseconds that a sample stands for, if its thread is known to have been on a CPU.
    OnCpu,
}

/// A filter of samples by their context, which is everything except the stack.
///
/// An empty list accepts all samples. A sample whose property is unknown does not match a filter on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The time range. A slice that is partly in the range counts as a whole.
    pub time: Option<TimeRange>,
    /// Threads, as numbered by the operating system.
    pub threads: Vec<u64>,
    /// Processes.
    pub processes: Vec<i64>,
    /// Interpreters.
    pub interpreters: Vec<u64>,
    /// Labels that samples must have, all of them, as keys and values. Numbers are compared as decimal text. If a sample
    /// has no label with a key, the metadata of its profile is searched.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// Thread states that samples must have, all of them.
    pub status: Status,
}

impl Selection {
    /// Whether a selection accepts the samples of a situation, ignoring time.
    pub(crate) fn takes(&self, situation: &Situation, all: &Situations, tables: &Tables) -> bool {
        among(&self.threads, situation.thread)
            && among(&self.processes, situation.process)
            && among(&self.interpreters, situation.interpreter)
            && self.status_takes(situation.status)
            && self.labels.iter().all(|(key, value)| {
                all.label(situation, key, tables).is_some_and(|found| reads(found, value, tables))
            })
    }

    fn status_takes(&self, status: Option<Status>) -> bool {
        let Status(asked) = self.status;
        asked == 0 || status.is_some_and(|Status(bits)| bits & asked == asked)
    }
}

fn among<T: PartialEq>(asked: &[T], found: Option<T>) -> bool {
    asked.is_empty() || found.is_some_and(|found| asked.contains(&found))
}

fn reads(found: LabelValue, text: &[u8], tables: &Tables) -> bool {
    match found {
        LabelValue::Text(found) => tables.string(found) == text,
        LabelValue::Number { value, .. } => value.to_string().as_bytes() == text,
    }
}
