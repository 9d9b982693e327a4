//! Which samples of a profile a view is of, and what they weigh.

use borehole_model::{LabelValue, Status, Tables};

use crate::profile::TimeRange;
use crate::profile::situations::{Situation, Situations};

/// What a sample adds to the numbers of a view. [`Profile::value_type`](crate::Profile::value_type) says what that is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// One, of samples that are counted.
    #[default]
    Samples,
    /// The value that the profile was built of, or else the nanoseconds that a sample stands for: the period of its own
    /// segment.
    Value,
    /// Those nanoseconds, of samples that say that their thread was on a CPU.
    OnCpu,
}

/// Which samples count, by what they are beside their stack. An empty list takes all; what a sample does not know
/// it does not meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// When they were taken. A slice of time of which some is in it counts as a whole.
    pub time: Option<TimeRange>,
    /// Their threads, as the operating system numbers them.
    pub threads: Vec<u64>,
    /// Their processes.
    pub processes: Vec<i64>,
    /// Their interpreters.
    pub interpreters: Vec<u64>,
    /// Labels that they have, all of them: key and value. Numbers are compared by their digits. A key that a sample has no
    /// label of is looked up in the metadata of its profile.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// The states that their thread was in, all of them.
    pub status: Status,
}

impl Selection {
    /// Whether a selection takes the samples of a situation, leaving time aside.
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
