//! Samples grouped into rows: one for each stack and its samples' properties, followed by its observations.
//!
//! Observations with times wait in a spool, one chain per row and value; those without are added up.

use std::io;

use borehole_model::{Mode, StackId, StringId};
use hashbrown::HashMap;

use crate::documents::chains::{EntryChain, SampleSpool};
use crate::documents::numbered::Numbered;
use crate::sums::losses::cut_sums;
use crate::times::stated_duration::StatedDuration;

/// The common properties of the samples of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BatchKey {
    pub(super) process: Option<i64>,
    /// The number of its resource.
    pub(super) resource: usize,
    pub(super) period_ns: Option<u64>,
    pub(super) mode: Mode,
    /// The number of its list of value types.
    pub(super) types: usize,
    /// Whether its times have an unknown origin.
    pub(super) is_relative: bool,
}

/// The observations of one value.
#[derive(Debug, Default)]
pub(super) struct ValueSeries {
    pub(super) chain: EntryChain,
    last_ns: i64,
    pub(super) points: u64,
    /// The length of the values as varints, in bytes.
    pub(super) value_bytes: u64,
}

/// One stack with its samples' properties.
#[derive(Debug)]
pub(super) struct StackObservations {
    pub(super) stack: Option<StackId>,
    pub(super) scope: usize,
    /// By value: observations with times; empty if there are none.
    pub(super) series: Vec<ValueSeries>,
    /// By value: the sum of the observations without times; empty if there are none.
    pub(super) sums: Vec<i64>,
}

/// The samples of one profile for each value.
#[derive(Debug)]
pub(super) struct ObservationBatch {
    pub(super) key: BatchKey,
    pub(super) rows: Vec<StackObservations>,
    index: HashMap<(Option<StackId>, usize, bool), usize>,
    pub(super) metadata: Numbered<(StringId, StringId)>,
    /// The last segment whose metadata was taken, and how many pairs of it.
    pub(super) taken: (u64, usize),
    /// The duration that the inputs state.
    pub(super) stated: StatedDuration,
    /// The times of the first and the last sample.
    pub(super) span_ns: Option<(i64, i64)>,
    /// The start of the profile, if its samples do not state it.
    pub(super) start_unix_ns: Option<i64>,
    /// The start of profiling, on the clock of times with an unknown origin.
    pub(super) began_ns: Option<i64>,
    /// By value: whether all observations with times are 1, which are omitted.
    pub(super) all_ones: Vec<bool>,
}

impl ObservationBatch {
    pub(super) fn new(key: BatchKey, width: usize) -> Self {
        Self {
            key,
            rows: Vec::new(),
            index: HashMap::new(),
            metadata: Numbered::default(),
            taken: (0, 0),
            stated: StatedDuration::default(),
            span_ns: None,
            start_unix_ns: None,
            began_ns: None,
            all_ones: vec![true; width],
        }
    }

    /// The number of sums that overflowed in either direction and were cut.
    pub(super) fn cut_sums(&self) -> u64 {
        cut_sums(self.rows.iter().flat_map(|row| row.sums.iter().copied()))
    }

    /// Adds the values of a sample.
    pub(super) fn add(
        &mut self,
        stack: Option<StackId>,
        scope: usize,
        time_ns: Option<i64>,
        values: &[i64],
        spool: &mut SampleSpool,
    ) -> io::Result<()> {
        let rows = &mut self.rows;
        let row = *self.index.entry((stack, scope, time_ns.is_some())).or_insert_with(|| {
            rows.push(StackObservations { stack, scope, series: Vec::new(), sums: Vec::new() });
            rows.len() - 1
        });
        let row = &mut self.rows[row];
        let Some(time_ns) = time_ns else {
            row.sums.resize(values.len(), 0);
            row.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
            return Ok(());
        };
        row.series.resize_with(values.len(), ValueSeries::default);
        for ((series, &value), all_ones) in row.series.iter_mut().zip(values).zip(&mut self.all_ones) {
            *all_ones &= value == 1;
            series.push(time_ns, value, spool)?;
        }
        let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
        self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        Ok(())
    }
}

impl ValueSeries {
    fn push(&mut self, time_ns: i64, value: i64, spool: &mut SampleSpool) -> io::Result<()> {
        let since = time_ns.wrapping_sub(self.last_ns).cast_unsigned();
        self.last_ns = time_ns;
        self.points += 1;
        self.value_bytes += borehole_wire::varint_len(value.cast_unsigned()) as u64;
        spool.push(&mut self.chain, [since, value.cast_unsigned(), 0])
    }
}
