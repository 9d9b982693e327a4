//! Chosen samples as a profile in order of time, for comparisons that measure noise.

use borehole_model::{Context, ProfileSink, Sample, Segment, StackId, Tables};
use datafusion::arrow::array::{Array as _, AsArray as _, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use hashbrown::HashMap;

use crate::ask::LakeSession;
use crate::choice::SampleChoice;
use crate::error::Error;
use crate::ids::{self, LakeStackId};
use crate::keys::SampleKey;
use crate::profile::StackArrays;
use crate::value::LakeValue;

/// The number of moments that the time of a choice is cut into: enough for a comparison to merge them into stretches of equal
/// length.
const MOMENTS: i64 = 256;

/// The times and hosts of the samples of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChosenSpan {
    /// The time of the first sample, in microseconds since 1970 (UTC).
    pub first_us: i64,
    /// The time of the last sample.
    pub last_us: i64,
    /// The number of hosts.
    pub hosts: u64,
}

impl LakeSession<'_> {
    /// The times and hosts of the chosen samples; `None` if there are no samples.
    ///
    /// # Errors
    /// If the query fails.
    pub fn span(&self, choice: &SampleChoice) -> Result<Option<ChosenSpan>, Error> {
        let rows = choice.rows_by(&[SampleKey::new("host")]);
        let sql = format!(
            "SELECT CAST(min(time) AS BIGINT), CAST(max(time) AS BIGINT), count(DISTINCT key0) FROM ({rows})"
        );
        let mut answer = self.ask(&sql)?;
        while let Some(rows) = answer.next_rows()? {
            let integers = |row: &Vec<LakeValue>| {
                let [LakeValue::Integer(first), LakeValue::Integer(last), LakeValue::Integer(hosts)] =
                    row[..]
                else {
                    return None;
                };
                Some(ChosenSpan {
                    first_us: i64::try_from(first).ok()?,
                    last_us: i64::try_from(last).ok()?,
                    hosts: u64::try_from(hosts).ok()?,
                })
            };
            if let Some(row) = rows.first() {
                return Ok(integers(row));
            }
        }
        Ok(None)
    }

    /// Passes the chosen samples to `sink` in order of time, over `tables`, without finishing it. The samples of a stack within a
    /// moment are one. `by_host`: each host is an input of its own. The focus of the choice is left to the sink.
    ///
    /// # Errors
    /// If a query or the sink fails ([`Error::into_sink_error`]).
    pub fn replay(
        &self,
        choice: &SampleChoice,
        by_host: bool,
        tables: &mut Tables,
        sink: &mut dyn ProfileSink,
    ) -> Result<(), Error> {
        let Some(span) = self.span(choice)? else { return Ok(()) };
        let step_us = (span.last_us.saturating_sub(span.first_us) / MOMENTS).saturating_add(1);
        let stacks = self.chosen_stacks(choice, "true", tables)?;
        let segment = Segment { has_times: true, is_ordered: true, ..choice.addend.segment() };
        let mut replay = Replay { stacks, tables, segment, sink, host: None, step_us };
        let mut answer = self.ask(&moments(choice, by_host, span.first_us, step_us))?;
        while let Some(batch) = answer.next_batch()? {
            replay.take(&batch)?;
        }
        Ok(())
    }

    /// The chosen stacks that match a condition, read into `tables`.
    pub(crate) fn chosen_stacks(
        &self,
        choice: &SampleChoice,
        condition: &str,
        tables: &mut Tables,
    ) -> Result<HashMap<LakeStackId, StackId>, Error> {
        let rows = choice.rows();
        let sql = format!(
            "SELECT stack_id, stack, frames FROM stacks LEFT SEMI JOIN \
             (SELECT DISTINCT stack_id FROM ({rows})) AS chosen USING (stack_id) WHERE {condition}"
        );
        let (mut answer, mut stacks) = (self.ask(&sql)?, HashMap::new());
        while let Some(batch) = answer.next_batch()? {
            let arrays = StackArrays::new(batch.column(1), Some(batch.column(2)))?;
            for row in 0..batch.num_rows() {
                let stack = arrays.stack(row, tables).map_err(|error| Error::question(error.to_string()))?;
                if let (Some(id), Some(stack)) = (ids::at(batch.column(0), row), stack) {
                    stacks.insert(id, stack);
                }
            }
        }
        Ok(stacks)
    }
}

/// SQL for the sum of each stack in each moment, and for the host if hosts are told apart.
fn moments(choice: &SampleChoice, by_host: bool, first_us: i64, step_us: i64) -> String {
    let keys = [SampleKey::new("host")];
    let keys = if by_host { &keys[..] } else { &[] };
    let host = if by_host { "key0" } else { "''" };
    let (rows, value) = (choice.rows_by(keys), choice.addend.whole("sum(value)"));
    format!(
        "SELECT stack_id, moment, {value} AS value, host FROM \
         (SELECT stack_id, (CAST(time AS BIGINT) - ({first_us})) / {step_us} AS moment, value, \
         coalesce({host}, '') AS host FROM ({rows})) GROUP BY stack_id, moment, host ORDER BY host, moment"
    )
}

/// Samples on their way to a sink.
struct Replay<'r> {
    stacks: HashMap<LakeStackId, StackId>,
    tables: &'r Tables,
    segment: Segment,
    sink: &'r mut dyn ProfileSink,
    /// The host of the current input; `None` before the first.
    host: Option<String>,
    step_us: i64,
}

impl Replay<'_> {
    fn take(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let integers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let (moments, values, hosts) = (integers(1), integers(2), batch.column(3));
        for row in 0..batch.num_rows() {
            let host = crate::value::value_at(hosts, row).to_text();
            if self.host.as_ref() != Some(&host) {
                self.host = Some(host);
                let at = Context { tables: self.tables, segment: &self.segment };
                self.sink.segment(at).map_err(Error::sink)?;
            }
            let value = if values.is_null(row) { 0 } else { values.value(row) };
            self.give(ids::at(batch.column(0), row), moments.value(row), value)?;
        }
        Ok(())
    }

    fn give(&mut self, id: Option<LakeStackId>, moment: i64, value: i64) -> Result<(), Error> {
        let stack = id.map(|id| self.stacks.get(&id).copied().ok_or_else(missing)).transpose()?;
        let time_ns = Some(moment.saturating_mul(self.step_us).saturating_mul(1000));
        let values = [value];
        let at = Context { tables: self.tables, segment: &self.segment };
        let sample = match self.segment.is_uncounted {
            true => Sample { stack, time_ns, count: 1, values: &values, ..Sample::default() },
            false => Sample { stack, time_ns, count: u64::try_from(value).unwrap_or(0), ..Sample::default() },
        };
        // A comparison never has enough.
        self.sink.sample(at, &sample).map(drop).map_err(Error::sink)
    }
}

pub(crate) fn missing() -> Error {
    Error::lake("stacks of samples are missing").with_hint("run borehole lake check to find damaged files")
}
