//! Chosen samples as a profile that keeps what is known of each sample.

use borehole_model::{ProfileSink, TableFull};
use datafusion::arrow::array::{Array as _, AsArray as _};
use datafusion::arrow::datatypes::{DataType, UInt64Type};

use crate::ask::LakeSession;
use crate::choice::SampleChoice;
use crate::error::Error;
use crate::ids;
use crate::profile::{AnswerProfile, cast_to};
use crate::replay::missing;
use crate::row_facts::FactColumns;

/// The facts that a profile of chosen samples keeps beside their stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChosenFacts {
    /// The labels. Samples with equal ones are added up.
    Labels,
    /// The time, the process, the thread and the labels of each sample, in order of time.
    All,
}

/// The key of the metadata that states how long a profile lasts, in nanoseconds, as importers have it.
const DURATION: &[u8] = b"duration_ns";

impl SampleChoice {
    /// SQL for the chosen rows with these facts.
    fn rows_with(&self, facts: ChosenFacts) -> String {
        let condition = self.condition();
        match facts {
            ChosenFacts::Labels => {
                let (rows, value) = (self.addend.rows(&condition, ", labels"), self.addend.whole("value"));
                format!(
                    "SELECT stack_id, labels, {value} AS value FROM \
                     (SELECT stack_id, labels, sum(value) AS value FROM ({rows}) GROUP BY stack_id, labels) \
                     ORDER BY stack_id, value DESC"
                )
            }
            ChosenFacts::All => {
                let rows = self.addend.rows(&condition, ", process, thread, labels");
                let value = self.addend.whole("value");
                format!(
                    "SELECT stack_id, time, process, thread, labels, {value} AS value FROM ({rows}) ORDER BY time"
                )
            }
        }
    }
}

impl LakeSession<'_> {
    /// Streams the chosen samples into `sink` with these facts, and finishes it. Returns the number of rows passed on.
    ///
    /// # Errors
    /// If a query fails, or the sink fails ([`Error::into_sink_error`]).
    pub fn export_chosen(
        &self,
        choice: &SampleChoice,
        facts: ChosenFacts,
        sink: &mut dyn ProfileSink,
    ) -> Result<u64, Error> {
        let mut profile = AnswerProfile::new(&choice.addend, sink);
        if facts == ChosenFacts::Labels {
            self.state_span(choice, &mut profile)?;
        }
        let stacks = self.chosen_stacks(choice, &choice.focused(), &mut profile.tables)?;
        let mut answer = self.ask(&choice.rows_with(facts))?;
        let columns = FactColumns::of(&answer.schema);
        (profile.segment.has_times, profile.segment.is_ordered) = (columns.has_times(), columns.has_times());
        while !profile.is_full
            && let Some(batch) = answer.next_batch()?
        {
            let rows = columns.read(&batch)?;
            // This cast makes negative numbers absent.
            let numbers = cast_to(batch.column(batch.num_columns() - 1), &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            for row in (0..batch.num_rows()).filter(|&row| !numbers.is_null(row)) {
                let stack = match ids::at(batch.column(0), row) {
                    None if choice.focus.is_some() => continue,
                    None => None,
                    Some(id) => match stacks.get(&id) {
                        Some(&stack) => Some(stack),
                        None if choice.focus.is_some() => continue,
                        None => return Err(missing()),
                    },
                };
                let facts = profile.facts(&rows, row)?;
                profile.sample(|_| Ok(stack), [(facts, numbers.value(row))])?;
            }
        }
        profile.finish()
    }

    /// States when the chosen samples begin, and how long they last.
    fn state_span(&self, choice: &SampleChoice, profile: &mut AnswerProfile<'_>) -> Result<(), Error> {
        let Some(span) = self.span(choice)? else { return Ok(()) };
        profile.segment.start_unix_ns = span.first_us.checked_mul(1000);
        let duration_ns = span.last_us.saturating_sub(span.first_us).saturating_mul(1000);
        if duration_ns > 0 {
            let tables = &mut profile.tables;
            let full = |error: TableFull| Error::question(error.to_string());
            let mut text = |text: &[u8]| tables.intern_string(text).map_err(full);
            let entry = (text(DURATION)?, text(duration_ns.to_string().as_bytes())?);
            profile.segment.metadata.push(entry);
        }
        Ok(())
    }
}
