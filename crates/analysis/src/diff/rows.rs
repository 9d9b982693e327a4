//! The numbers of one side for each function and path.

use borehole_model::{StackId, Tables};

use super::Per;
use super::noise::Estimate;
use super::side::SideState;
use super::stretches::{STRETCHES, StretchSums};
use super::view::DiffMeasure;
use crate::call_paths::{CallId, CallPaths, Summable};

/// A sum of samples, and its variation over the stretches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SideSum {
    pub(crate) samples: u64,
    /// The amount in the view's measure, before division.
    pub(crate) amount: f64,
    /// Squared differences, in samples, from what each stretch would have if all were alike.
    squares: f32,
}

impl Summable for SideSum {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.amount += other.amount;
    }
}

/// One side as sums over the call tree of both.
#[derive(Clone, Debug)]
pub(crate) struct SideColumns {
    /// By call: self.
    path_self: SelfSums,
    /// By call: total.
    pub(crate) path_total: Vec<SideSum>,
    /// By function: total.
    pub(crate) total_sums: Vec<SideSum>,
    /// By function: self.
    pub(crate) self_sums: Vec<SideSum>,
    pub(crate) whole: SideSum,
    pub(crate) divisor: f64,
    /// The part of the divisor in each stretch.
    parts: [f64; STRETCHES],
    /// The amount that a sample stands for if there is no sample to tell.
    weight: f64,
    /// The number of counted units per observation: 1 if samples are counted.
    pub(crate) observation: f64,
    /// The number of stretches; 1 if samples have no order.
    pub(crate) stretches: usize,
}

impl SideColumns {
    /// `knows_order`: stretches are meaningful.
    pub(crate) fn new(
        side: &SideState,
        paths: &CallPaths,
        per: &Per,
        measure: DiffMeasure,
        divisor: f64,
        knows_order: bool,
    ) -> Self {
        let all: f64 = side.stretches.samples.iter().sum();
        let (path_self, whole) = SelfSums::new(side, paths, measure);
        let mut columns = Self {
            path_self,
            path_total: Vec::new(),
            self_sums: Vec::new(),
            total_sums: Vec::new(),
            whole,
            divisor,
            parts: parts(side, per, divisor),
            weight: 1.0,
            observation: side.observation(),
            stretches: if knows_order { side.stretches.used() } else { 1 },
        };
        columns.add_samples(paths);
        columns.weight =
            if measure == DiffMeasure::Seconds { columns.whole.amount / all.max(1.0) } else { 1.0 };
        if columns.stretches > 1 {
            columns.add_squares(paths);
        }
        columns
    }

    /// The self of a call.
    pub(crate) fn path_self(&self, call: CallId) -> SideSum {
        self.path_self.place(call).map_or_else(SideSum::default, |place| self.path_self.sums[place])
    }

    fn add_samples(&mut self, paths: &CallPaths) {
        let of_calls: Vec<_> = paths.ids().map(|call| self.path_self(call)).collect();
        self.path_total = paths.totals(&of_calls);
        self.self_sums = paths.by_row(&of_calls);
        self.total_sums = paths.totals_by_row(&self.path_total);
    }

    fn add_squares(&mut self, paths: &CallPaths) {
        let (parts, divisor) = (self.parts, self.divisor);
        let squares = |samples, stretches: &StretchSums| squares(samples, stretches, &parts, divisor);
        let mut self_sums = vec![[0.0; STRETCHES]; self.self_sums.len()];
        let mut total_sums = self_sums.clone();
        let depths = paths.depths();
        // Callees come before their caller and are summed up here, by depth.
        let mut called: Vec<StretchSums> = vec![[0.0; STRETCHES]];
        for call in paths.ids().rev() {
            let (depth, row) = (depths[call as usize] as usize, paths.row(call));
            called.resize(called.len().max(depth + 2), [0.0; STRETCHES]);
            let (callers, called) = called.split_at_mut(depth + 1);
            let sums = &mut called[0];
            let mut part = paths.first_called(call).map(|called| self.path_total[called as usize]);
            if let Some(place) = self.path_self.place(call) {
                let (sum, stretches) = (&mut self.path_self.sums[place], &self.path_self.stretches[place]);
                sum.squares = squares(sum.samples, stretches);
                add(&mut self_sums[row], stretches);
                add(sums, stretches);
                part = Some(*sum);
            }
            let samples = self.path_total[call as usize].samples;
            // Often all samples of a call are its self, or those of its first callee.
            let all = part.filter(|part| part.samples == samples);
            self.path_total[call as usize].squares =
                all.map_or_else(|| squares(samples, sums), |all| all.squares);
            if paths.is_outermost(call) {
                add(&mut total_sums[row], sums);
            }
            add(&mut callers[depth], sums);
            *sums = [0.0; STRETCHES];
        }
        for (sums, stretches) in [(&mut self.self_sums, &self_sums), (&mut self.total_sums, &total_sums)] {
            for (sum, stretches) in sums.iter_mut().zip(stretches) {
                sum.squares = squares(sum.samples, stretches);
            }
        }
        self.whole.squares = squares(self.whole.samples, &called[0]);
    }

    /// The estimate of a sum on this side.
    // As below.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn estimate(&self, sum: &SideSum) -> Estimate {
        Estimate {
            amount: sum.amount,
            divisor: self.divisor,
            weight: if sum.samples > 0 { sum.amount / sum.samples as f64 } else { self.weight },
            observation: self.observation,
            squares: f64::from(sum.squares),
            stretches: self.stretches,
        }
    }
}

/// The self of calls. Only the few calls that have samples of their own have a row.
#[derive(Clone, Debug)]
struct SelfSums {
    /// In tree order, once sorted.
    sums: Vec<SideSum>,
    stretches: Vec<StretchSums>,
    /// By call: one more than its row; 0 if it has no samples.
    places: Vec<u32>,
}

impl SelfSums {
    /// The self of calls of one side, and their sum.
    // Shares and times do not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    fn new(side: &SideState, paths: &CallPaths, measure: DiffMeasure) -> (Self, SideSum) {
        let (mut stretches, mut places) = (side.stretches.rows(), vec![0_u32; paths.len()]);
        let (mut sums, mut whole) = (vec![SideSum::default(); stretches.len()], SideSum::default());
        // There are no more stacks than their numbers.
        for (number, (stack, tally)) in (1..).zip(side.stretches.counts.iter()) {
            let Some(call) = paths.of_stack(stack) else { continue };
            let amount = match measure {
                DiffMeasure::Seconds if side.values.is_some() => tally.count as f64 / 1e9,
                DiffMeasure::Seconds => tally.value as f64 / 1e9,
                DiffMeasure::Share | DiffMeasure::Samples => tally.count as f64,
            };
            let sum = SideSum { samples: tally.count, amount, squares: 0.0 };
            whole.add(sum);
            let row = number as usize - 1;
            match places[call as usize].checked_sub(1) {
                None => (places[call as usize], sums[row]) = (number, sum),
                Some(place) => {
                    sums[place as usize].add(sum);
                    let others = stretches[row];
                    add(&mut stretches[place as usize], &others);
                }
            }
        }
        (Self { sums, stretches, places }.sorted(), whole)
    }

    /// Puts the rows into tree order, in which they are read from here on.
    fn sorted(mut self) -> Self {
        let (mut sums, mut stretches) =
            (Vec::with_capacity(self.sums.len()), Vec::with_capacity(self.sums.len()));
        for place in self.places.iter_mut().filter(|place| **place > 0) {
            let from = *place as usize - 1;
            sums.push(self.sums[from]);
            stretches.push(self.stretches[from]);
            // There are no more rows than before.
            *place = u32::try_from(sums.len()).unwrap_or(u32::MAX);
        }
        Self { sums, stretches, ..self }
    }

    fn place(&self, call: CallId) -> Option<usize> {
        self.places[call as usize].checked_sub(1).map(|place| place as usize)
    }
}

// Neither this function nor the next is inlined: inside a long function, neither becomes vector instructions.
#[inline(never)]
fn add(sums: &mut StretchSums, others: &StretchSums) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

// The precision lost is below that of any variation.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
#[inline(never)]
fn squares(samples: u64, stretches: &StretchSums, parts: &[f64; STRETCHES], divisor: f64) -> f32 {
    if samples == 0 {
        return 0.0;
    }
    let rate = samples as f64 / divisor;
    let mut sum = 0.0;
    for (&seen, part) in stretches.iter().zip(parts) {
        let difference = f64::from(seen) - rate * part;
        sum += difference * difference;
    }
    sum as f32
}

/// The part of the divisor in each stretch. What cannot be observed of it is distributed like the samples.
fn parts(side: &SideState, per: &Per, divisor: f64) -> [f64; STRETCHES] {
    let of = match per {
        Per::Label(_) => side.stretches.labels,
        Per::Time if side.is_of_time() => side.stretches.positions(),
        Per::Input if side.is_of_inputs() => side.stretches.positions(),
        Per::Samples | Per::Time | Per::Input => side.stretches.samples,
    };
    let sum: f64 = of.iter().sum();
    of.map(|part| if sum > 0.0 { part * divisor / sum } else { 0.0 })
}

/// Whether any stack of a side has a frame with a file.
pub(crate) fn has_files(side: &SideState, tables: &Tables) -> bool {
    let has_file = |stack: StackId| {
        let frame = tables.frame(tables.leaf(stack));
        super::frames::file(&frame, tables).is_some()
    };
    side.stretches.counts.iter().any(|(stack, _)| has_file(stack))
}
