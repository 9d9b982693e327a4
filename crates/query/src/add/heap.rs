//! Rows of heaps: the sizes of classes and of types of locations.

use borehole_heap::{Info, Total};
use borehole_model::text::escape;

use super::labels::Set;
use super::rows::Cell;
use super::{Addition, word};
use crate::Error;
use crate::tables::Table;

impl Addition<'_> {
    /// Takes a heap: a row for each class, each type of location and each number in its summary.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn take_heap(&mut self, info: &Info) -> Result<(), Error> {
        let created = chrono::DateTime::parse_from_rfc3339(&info.created).ok();
        if let Some(created) = created.and_then(|created| created.timestamp_nanos_opt()) {
            (self.here.origin_ns, self.here.clock) = (created.into(), super::Clock::Recorded);
        } else if let Some(began) = self.source.began_unix_ns {
            (self.here.origin_ns, self.here.clock) = (began.into(), super::Clock::Given);
        } else {
            self.here.origin_ns = self.source.modified_unix_ns.unwrap_or(0).into();
        }
        let time_us = self.seen(self.here.origin_ns, 1);
        let totals = &info.everything;
        totals.classes.iter().try_for_each(|total| self.heap_row(time_us, "class", total))?;
        totals.location_types.iter().try_for_each(|total| self.heap_row(time_us, "type", total))?;
        for (key, value) in &info.summary {
            let Ok(memory_usage) = value.parse() else { continue };
            let total = Total { name: key.clone().into_bytes(), count: 1, memory_usage };
            self.heap_row(time_us, "summary", &total)?;
        }
        Ok(())
    }

    fn heap_row(&mut self, time_us: i64, kind: &str, total: &Total) -> Result<(), Error> {
        let cells = [
            Cell::Word(self.here.service),
            Cell::Time(time_us),
            word(self.here.host),
            Cell::Absent,
            Cell::Word(self.words.word(kind)),
            Cell::Word(self.words.word(&escape(&total.name))),
            Cell::Unsigned(total.count),
            Cell::Unsigned(total.memory_usage),
        ];
        self.row(Table::Heaps, time_us, &Set::NONE, &cells)
    }
}
