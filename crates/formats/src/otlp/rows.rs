//! Samples grouped into rows: one for each stack and its samples' properties, followed by its observations.
//!
//! Observations with times wait in a spool, one chain per row and value; those without are added up.

use std::io::{self, Read, Seek, Write};

use borehole_model::{LabelsId, Mode, StackId, Status, StringId, Thread};
use hashbrown::{HashMap, HashSet};

use crate::chains::{Chain, Spool};
use crate::cut_sums::cut_sums;
use crate::stated_duration::StatedDuration;

/// The properties of samples beside their stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    pub(super) thread: Option<Thread>,
    pub(super) interpreter: Option<u64>,
    pub(super) status: Option<Status>,
    pub(super) labels: Option<LabelsId>,
}

/// The common properties of the samples of one profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kind {
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
pub(super) struct Series {
    pub(super) chain: Chain,
    last_ns: i64,
    pub(super) points: u64,
    /// The length of the values as varints, in bytes.
    pub(super) value_bytes: u64,
}

/// One stack with its samples' properties.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) stack: Option<StackId>,
    pub(super) scope: usize,
    /// By value: observations with times; empty if there are none.
    pub(super) series: Vec<Series>,
    /// By value: the sum of the observations without times; empty if there are none.
    pub(super) sums: Vec<i64>,
}

/// The samples of one profile for each value.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) kind: Kind,
    pub(super) rows: Vec<Row>,
    index: HashMap<(Option<StackId>, usize, bool), usize>,
    pub(super) metadata: Vec<(StringId, StringId)>,
    metadata_seen: HashSet<(StringId, StringId)>,
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

impl Batch {
    pub(super) fn new(kind: Kind, width: usize) -> Self {
        Self {
            kind,
            rows: Vec::new(),
            index: HashMap::new(),
            metadata: Vec::new(),
            metadata_seen: HashSet::new(),
            stated: StatedDuration::default(),
            span_ns: None,
            start_unix_ns: None,
            began_ns: None,
            all_ones: vec![true; width],
        }
    }

    pub(super) fn add_metadata(&mut self, pair: (StringId, StringId)) {
        if self.metadata_seen.insert(pair) {
            self.metadata.push(pair);
        }
    }

    /// The number of sums that overflowed in either direction and were cut.
    pub(super) fn cut_sums(&self) -> u64 {
        cut_sums(self.rows.iter().flat_map(|row| row.sums.iter().copied()))
    }

    /// Adds the values of a sample.
    pub(super) fn add<S, F>(
        &mut self,
        stack: Option<StackId>,
        scope: usize,
        time_ns: Option<i64>,
        values: &[i64],
        spool: &mut Spool<S, F>,
    ) -> io::Result<()>
    where
        S: Read + Write + Seek,
        F: FnMut() -> io::Result<S>,
    {
        let rows = &mut self.rows;
        let row = *self.index.entry((stack, scope, time_ns.is_some())).or_insert_with(|| {
            rows.push(Row { stack, scope, series: Vec::new(), sums: Vec::new() });
            rows.len() - 1
        });
        let row = &mut self.rows[row];
        let Some(time_ns) = time_ns else {
            row.sums.resize(values.len(), 0);
            row.sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(*value));
            return Ok(());
        };
        row.series.resize_with(values.len(), Series::default);
        for ((series, &value), all_ones) in row.series.iter_mut().zip(values).zip(&mut self.all_ones) {
            *all_ones &= value == 1;
            series.push(time_ns, value, spool)?;
        }
        self.span_ns = Some(match self.span_ns {
            Some((first, last)) => (first.min(time_ns), last.max(time_ns)),
            None => (time_ns, time_ns),
        });
        Ok(())
    }
}

impl Series {
    fn push<S, F>(&mut self, time_ns: i64, value: i64, spool: &mut Spool<S, F>) -> io::Result<()>
    where
        S: Read + Write + Seek,
        F: FnMut() -> io::Result<S>,
    {
        let since = time_ns.wrapping_sub(self.last_ns).cast_unsigned();
        self.last_ns = time_ns;
        self.points += 1;
        self.value_bytes += borehole_wire::varint_len(value.cast_unsigned()) as u64;
        spool.push(&mut self.chain, [since, value.cast_unsigned(), 0])
    }
}
