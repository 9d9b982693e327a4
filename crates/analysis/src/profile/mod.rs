//! A profile in memory, aggregated so that any view under any selection can be derived from it.
//!
//! Samples are counted per stack and situation (process, thread, interpreter, state, labels, metadata, period), and
//! also per slice of time if their times are known. Memory grows with the number of distinct combinations, never with
//! the number of samples: see `slices`.

mod builder;
pub(crate) mod clock;
pub(crate) mod situations;
pub(crate) mod slices;

pub use builder::ProfileBuilder;
pub use clock::Timespan;

use borehole_model::{Mode, Status, Tables, Thread, ThreadNames, ValueType};
use hashbrown::{HashMap, HashSet};

use crate::query::By;
use crate::ranking::Basis;
use crate::recent::label_text;
use crate::selection::{SampleSelection, Weight};
use crate::states::ON_CPU;
use crate::view::{GroupValue, ProfileSummary};
use situations::{Situation, Situations};
use slices::{Pair, SliceCounts};

/// A profile that supports any view under any selection.
///
/// # Examples
///
/// ```
/// use borehole_analysis::ProfileBuilder;
/// use borehole_model::{Context, Frame, ProfileSink, Sample, Segment, Tables};
///
/// let mut tables = Tables::default();
/// let main = tables.intern_string(b"main")?;
/// let main = tables.intern_frame(&Frame::named(main))?;
/// let stack = tables.intern_stack_leaf_first(&[main])?;
///
/// let mut builder = ProfileBuilder::default();
/// let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
/// let at = Context { tables: &tables, segment: &segment };
/// builder.segment(at)?;
/// for time_ns in [0, 500_000_000] {
///     let _ = builder.sample(at, &Sample { stack, count: 1, time_ns: Some(time_ns), ..Sample::default() })?;
/// }
/// builder.finish(&tables)?;
/// let profile = builder.into_profile(tables);
/// assert_eq!((profile.summary().samples, profile.summary().stacks), (2, 1));
/// assert_eq!(profile.timespan().map(|span| span.slices), Some(477));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    pub(crate) tables: Tables,
    pub(crate) situations: Situations,
    counts: SliceCounts,
    /// By source.
    thread_names: HashMap<u32, ThreadNames>,
    summary: ProfileSummary,
    /// The wall time of the origin of the profile's clock.
    origin_unix_ns: Option<i64>,
}

impl Profile {
    /// The summary of the whole profile. `matched` and `frames` are those without any pattern.
    #[must_use]
    pub const fn summary(&self) -> &ProfileSummary {
        &self.summary
    }

    /// The default weight of views: values if the profile has them, times if periods differ, otherwise samples.
    #[must_use]
    pub fn default_weight(&self) -> Weight {
        if self.summary.basis() == Basis::Value { Weight::Value } else { Weight::Samples }
    }

    /// The available weights, the default first.
    #[must_use]
    pub fn weights(&self) -> Vec<Weight> {
        let has_time = !self.summary.is_valued && self.summary.time_ns.is_some();
        let weights = [
            (Weight::Samples, !self.summary.is_valued),
            (Weight::Value, self.summary.is_valued || has_time),
            (Weight::OnCpu, has_time && self.knows_status()),
        ];
        let there = weights.into_iter().filter_map(|(weight, is_there)| is_there.then_some(weight));
        let mut weights: Vec<_> = there.collect();
        let default = weights.iter().position(|&weight| weight == self.default_weight());
        weights.rotate_left(default.unwrap_or(0));
        weights
    }

    /// The value type of a weight.
    #[must_use]
    pub fn value_type(&self, weight: Weight) -> ValueType {
        match weight {
            Weight::Samples => ValueType::samples(),
            Weight::Value if self.summary.is_valued => self.summary.value_type.clone(),
            Weight::Value => ValueType::time(self.summary.mode),
            Weight::OnCpu => ValueType::time(Mode::Cpu),
        }
    }

    /// The time that samples cover; `None` if no sample has a timestamp.
    #[must_use]
    pub fn timespan(&self) -> Option<Timespan> {
        let (first, last) = self.counts.used?;
        Some(Timespan::new(self.counts.shift, first, last, self.origin_unix_ns))
    }

    /// The part of that time that a selection covers; `None` also if it covers nothing of it.
    pub(crate) fn timespan_of(&self, selection: &SampleSelection) -> Option<Timespan> {
        let Some(time) = selection.time else { return self.timespan() };
        let ((first, last), shift) = (self.counts.used?, self.counts.shift);
        let (from, to) = time.slices(shift);
        let (first, last) = (first.max(from), last.min(to));
        (first <= last).then(|| Timespan::new(shift, first, last, self.origin_unix_ns))
    }

    /// Whether any sample has a thread state.
    #[must_use]
    pub fn knows_status(&self) -> bool {
        self.situations.iter().any(|situation| situation.status.is_some())
    }

    /// The keys of sample labels, in order of first appearance, followed by the keys of metadata that differs between the
    /// merged profiles.
    #[must_use]
    pub fn label_keys(&self) -> Vec<Vec<u8>> {
        let sets = self.situations.iter().filter_map(|situation| situation.labels);
        let labels = sets.flat_map(|set| self.tables.labels(set)).map(|label| label.key);
        let mut known = HashSet::new();
        let keys = labels.chain(self.situations.telling_keys()).filter(|&key| known.insert(key));
        keys.map(|key| self.tables.string(key).to_vec()).collect()
    }

    /// Calls `take` with each sum of samples in a selection: their pair, their slice of time if it is known and the
    /// selection has a time range, and their weight.
    pub(crate) fn each(
        &self,
        selection: &SampleSelection,
        weight: Weight,
        mut take: impl FnMut(&Pair, Option<i64>, i64),
    ) {
        let factors: Vec<_> =
            self.situations.iter().map(|situation| self.factor(situation, selection, weight)).collect();
        let factor = |pair: &Pair| factors[pair.situation as usize];
        let Some(time) = selection.time else {
            for pair in self.counts.pairs.iter().filter(|pair| factor(pair) > 0) {
                take(pair, None, pair.sum.saturating_mul(factor(pair)));
            }
            return;
        };
        let (first, last) = time.slices(self.counts.shift);
        for row in self.counts.rows.iter().filter(|row| first <= row.slice && row.slice <= last) {
            let pair = &self.counts.pairs[row.pair];
            if factor(pair) > 0 {
                take(pair, Some(row.slice), row.sum.saturating_mul(factor(pair)));
            }
        }
    }

    /// The factor of a situation's sums: its period for times, 0 if the selection excludes it.
    fn factor(&self, situation: &Situation, selection: &SampleSelection, weight: Weight) -> i64 {
        if !self.situations.are_selected(situation, selection, &self.tables) {
            return 0;
        }
        let period_ns = || i64::try_from(situation.period_ns.unwrap_or(0)).unwrap_or(i64::MAX);
        match weight {
            Weight::Value if situation.is_valued => 1,
            _ if situation.is_valued => 0,
            Weight::Samples => 1,
            Weight::Value => period_ns(),
            // The thread must be known to have been on a CPU.
            Weight::OnCpu => match situation.status {
                Some(Status(bits)) if bits & ON_CPU != 0 => period_ns(),
                _ => 0,
            },
        }
    }

    /// Whether there are samples of several interpreters.
    #[must_use]
    pub fn has_interpreters(&self) -> bool {
        let mut known = self.situations.iter().filter_map(|situation| situation.interpreter);
        let first = known.next();
        known.any(|interpreter| Some(interpreter) != first)
    }

    /// The value of a property of samples; absent if `by` is a property of frames.
    pub(crate) fn group_of(&self, situation: &Situation, by: &By) -> GroupValue {
        let value = match by {
            By::Label(key) => {
                let label = self.situations.label(situation, key, &self.tables);
                label.map(|value| GroupValue::Label(label_text(value, &self.tables)))
            }
            By::Process => situation.process.map(GroupValue::Process),
            By::Thread => Some(self.thread_of(situation)),
            By::Interpreter => situation.interpreter.map(GroupValue::Interpreter),
            By::File | By::Class => None,
        };
        value.unwrap_or(GroupValue::Absent)
    }

    /// The thread of a situation, in the form that views show.
    pub(crate) fn thread_of(&self, situation: &Situation) -> GroupValue {
        let Situation { source, process, thread, .. } = *situation;
        let Some(thread) = thread else { return GroupValue::Absent };
        let names = self.thread_names.get(&source);
        let name = names.and_then(|names| names.of(Thread { process, number: thread }));
        GroupValue::Thread { process, thread, name: name.map(|&name| self.tables.string(name).to_vec()) }
    }
}
