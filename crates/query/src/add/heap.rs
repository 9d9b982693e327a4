//! Rows of heaps: the sizes of classes and of types of locations.

use borehole_heap::{HeapInfo, MemoryTotal};
use borehole_text::lossless::escape;

use super::Addition;
use super::rows::RowCell;
use crate::Error;
use crate::tables::LakeTable;

impl Addition<'_> {
    /// Takes a heap: a row for each class, each type of location and each number in its summary.
    ///
    /// # Errors
    /// If the storage fails.
    pub fn take_heap(&mut self, info: &HeapInfo) -> Result<(), Error> {
        let created = chrono::DateTime::parse_from_rfc3339(&info.created).ok();
        self.date(created.and_then(|created| created.timestamp_nanos_opt()).map(i128::from));
        let time_us = self.seen(self.here.origin_ns, 1);
        let totals = &info.everything;
        totals.classes.iter().try_for_each(|total| self.heap_row(time_us, "class", total))?;
        totals.location_types.iter().try_for_each(|total| self.heap_row(time_us, "type", total))?;
        for (key, value) in &info.summary {
            let Ok(memory_usage) = value.parse() else { continue };
            let total = MemoryTotal { name: key.clone().into_bytes(), count: 1, memory_usage };
            self.heap_row(time_us, "summary", &total)?;
        }
        Ok(())
    }

    fn heap_row(&mut self, time_us: i64, kind: &str, total: &MemoryTotal) -> Result<(), Error> {
        let cells = [
            RowCell::Absent,
            RowCell::Word(self.words.word(kind)),
            RowCell::Word(self.words.word(&escape(&total.name))),
            RowCell::Unsigned(total.count),
            RowCell::Unsigned(total.memory_usage),
        ];
        self.row(LakeTable::Heaps, time_us, &cells)
    }
}
