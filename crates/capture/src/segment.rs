//! The metadata of a segment.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use borehole_model::{Segment, StringId, Tables};

use crate::schedule::now_ns;
use crate::subject::Subject;

/// The metadata of every segment, beside the facts of its processes.
#[derive(Clone, Debug, Default)]
pub struct SegmentMetadata {
    facts: Vec<(String, String)>,
}

impl SegmentMetadata {
    /// Adds the name of this machine, if it has one.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        Self { facts: host.map(|host| ("host".to_owned(), host)).into_iter().collect() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.facts.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Creates a segment of these processes, whose samples count their time from `start_ns` on.
    pub(crate) fn segment(
        &self,
        index: u64,
        period_ns: Option<u64>,
        start_ns: u64,
        subjects: &[&dyn Subject],
        tables: &mut Tables,
    ) -> io::Result<Segment> {
        let process = match subjects {
            [subject] => Some(i64::from(subject.process())),
            _ => None,
        };
        let mut facts: Vec<(String, String)> =
            subjects.iter().map(|subject| ("pid".to_owned(), subject.process().to_string())).collect();
        facts.extend(self.facts.iter().cloned());
        for fact in subjects.iter().flat_map(|subject| subject.facts()) {
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        let mut intern = |text: &str| tables.intern_string(text.as_bytes());
        let metadata: Result<Vec<(StringId, StringId)>, _> =
            facts.iter().map(|(key, value)| Ok((intern(key)?, intern(value)?))).collect();
        Ok(Segment {
            format: "capture",
            index,
            period_ns,
            has_times: true,
            start_unix_ns: start_unix_ns(start_ns),
            process,
            metadata: metadata.map_err(|full: borehole_model::TableFull| io::Error::from(full))?,
            ..Segment::default()
        })
    }
}

/// The wall-clock time at which the clock of the samples was zero.
fn start_unix_ns(start_ns: u64) -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(now.as_nanos()).ok()?.checked_sub(i64::try_from(now_ns() - start_ns).ok()?)
}
