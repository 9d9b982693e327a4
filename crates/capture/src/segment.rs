//! The metadata of a segment.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use borehole_model::{Segment, StringId, Tables};

use crate::schedule::now_ns;
use crate::subject::Subject;

/// The maximum difference between two measurements of one wall clock. A larger one shows that the clock was set, or that the
/// machine slept.
const CLOCK_NOISE_NS: u64 = 10_000_000;

/// The metadata of every segment, beside the facts of its processes.
#[derive(Clone, Debug, Default)]
pub struct SegmentMetadata {
    facts: Vec<(String, String)>,
    /// The wall time of the zero of the samples' clock, as of the segment before.
    start_unix_ns: Option<i64>,
}

impl SegmentMetadata {
    /// Adds the name of this machine, if it has one.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        let facts = host.map(|host| ("host".to_owned(), host)).into_iter().collect();
        Self { facts, ..Self::default() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.facts.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Creates a segment of these processes, whose samples count their time from `start_ns` on.
    pub(crate) fn segment(
        &mut self,
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
            start_unix_ns: self.start_unix_ns(start_ns),
            process,
            metadata: metadata.map_err(|full: borehole_model::TableFull| io::Error::from(full))?,
            ..Segment::default()
        })
    }

    /// The wall time at which the clock of the samples was zero: the same for all segments while the wall clock is not set, so
    /// that the noise of measuring it moves no sample.
    fn start_unix_ns(&mut self, start_ns: u64) -> Option<i64> {
        let measured = start_unix_ns(start_ns)?;
        let known = self.start_unix_ns.filter(|known| known.abs_diff(measured) < CLOCK_NOISE_NS);
        self.start_unix_ns = known.or(Some(measured));
        self.start_unix_ns
    }
}

/// Measures the wall time at which the clock of the samples was zero.
fn start_unix_ns(start_ns: u64) -> Option<i64> {
    let measure = |_| {
        let (before_ns, wall, after_ns) = (now_ns(), SystemTime::now(), now_ns());
        (after_ns - before_ns, before_ns, wall)
    };
    // Of several measurements, the one that was interrupted least.
    let (_, now_ns, wall) = (0..3).map(measure).min_by_key(|&(took_ns, ..)| took_ns)?;
    let wall_ns = i64::try_from(wall.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()?;
    wall_ns.checked_sub(i64::try_from(now_ns - start_ns).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_segments_have_one_clock_until_the_wall_clock_is_set() {
        let mut metadata = SegmentMetadata::of_this_machine();
        let first = metadata.start_unix_ns(now_ns()).unwrap();
        let start_ns = now_ns();
        metadata.start_unix_ns = start_unix_ns(start_ns).map(|start| start + 5_000_000);
        let known = metadata.start_unix_ns;
        assert_eq!(metadata.start_unix_ns(start_ns), known);
        metadata.start_unix_ns = known.map(|known| known + 3_600_000_000_000);
        let after = metadata.start_unix_ns(start_ns).unwrap();
        assert!(after.abs_diff(known.unwrap()) < 3_000_000_000_000 && after >= first, "{after} {known:?}");
    }
}
