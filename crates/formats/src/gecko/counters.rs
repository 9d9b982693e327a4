//! Counters as events: each sample of a counter is an event of its name with its value at that time.
//!
//! Source: Firefox Profiler, `src/types/profile.ts`, `RawCounter`: samples hold the change since the sample before.

use borehole_model::{Context, Event, LaneId, Segment, Value};
use serde::Deserialize;

use super::NAME;
use super::import::{ProfileReading, id_text};
use super::read::{ProcessedProfile, nanoseconds};
use super::rows::{CellRows, RowTable, Schema};
use crate::ReadError;
use crate::occurrences;

/// A counter of a process.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProcessCounter {
    name: String,
    pid: serde_json::Value,
    samples: CounterSamples,
    /// The samples, in versions before 48.
    #[serde(alias = "sample_groups")]
    sample_groups: Vec<CounterGroup>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CounterGroup {
    samples: CounterSamples,
}

/// The samples of a counter: columns in processed profiles, rows in unprocessed ones.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CounterSamples {
    schema: Schema,
    data: CellRows,
    count: Vec<Option<f64>>,
    /// In milliseconds.
    time: Vec<Option<f64>>,
    time_deltas: Vec<Option<f64>>,
}

impl CounterSamples {
    /// The time of each sample in milliseconds, and the change since the one before.
    fn changes(&self) -> Vec<(f64, f64)> {
        let rows = RowTable { schema: &self.schema, data: &self.data };
        let (time, count) = (rows.column("time"), rows.column("count"));
        let cells = (0..rows.len()).filter_map(|row| rows.cell(row, time).zip(rows.cell(row, count)));
        let mut now = 0.0;
        let summed = self.time_deltas.iter().map(|delta| {
            now += delta.unwrap_or(0.0);
            Some(now)
        });
        let times = self.time.iter().copied().chain(summed);
        let columns = times.zip(&self.count).filter_map(|(time, &count)| time.zip(count));
        cells.chain(columns).collect()
    }
}

impl ProfileReading<'_> {
    /// Passes the counters of a document to the sink. `later_ns` is the time from the origin of all times to that of the document.
    pub(super) fn counters(&mut self, document: &ProcessedProfile, later_ns: i64) -> Result<(), ReadError> {
        for counter in &document.counters {
            let groups = counter.sample_groups.iter().map(|group| &group.samples);
            for samples in std::iter::once(&counter.samples).chain(groups) {
                self.counter(counter, &samples.changes(), later_ns)?;
            }
        }
        Ok(())
    }

    fn counter(
        &mut self,
        counter: &ProcessCounter,
        changes: &[(f64, f64)],
        later_ns: i64,
    ) -> Result<(), ReadError> {
        if changes.is_empty() || self.damage.recovery.stopped {
            return Ok(());
        }
        let shape =
            occurrences::counter_shape(&counter.name, std::slice::from_ref(&counter.name), self.tables)?;
        let segment = self.counter_segment(counter);
        self.sink.segment(Context { tables: self.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        let mut value = 0.0;
        for &(time, change) in changes {
            value += change;
            let values = [Value::Float(value), Value::Absent];
            let time_ns = u64::try_from(nanoseconds(time).saturating_add(later_ns)).ok();
            let at = Context { tables: self.tables, segment: &segment };
            let event = Event { shape, type_id: None, time_ns, values: &values };
            self.damage.recovery.events += 1;
            self.damage.recovery.stopped = self.sink.event(at, &event)?.is_break();
            if self.damage.recovery.stopped {
                break;
            }
        }
        Ok(())
    }

    fn counter_segment(&self, counter: &ProcessCounter) -> Segment {
        let text = id_text(&counter.pid);
        let named =
            || text.as_ref().and_then(|text| self.processes.get(text)).map(|&index| LaneId::Profile(index));
        let process = text.as_deref().and_then(LaneId::parse).or_else(named).map(LaneId::to_process);
        Segment {
            format: NAME,
            index: self.damage.recovery.segments,
            has_times: true,
            start_unix_ns: self.document.meta.start_time.map(nanoseconds).filter(|&start| start > 0),
            process: process.filter(|&process| process != 0),
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_the_same_changes() {
        for json in [
            r#"{"time":[1,2.5],"count":[10,-4],"length":2}"#,
            r#"{"timeDeltas":[1,1.5],"count":[10,-4]}"#,
            r#"{"schema":{"time":0,"count":1},"data":[[1,10],[2.5,-4],[3]]}"#,
        ] {
            let samples: CounterSamples = serde_json::from_str(json).unwrap();
            assert_eq!(samples.changes(), [(1.0, 10.0), (2.5, -4.0)], "{json}");
        }
    }
}
