//! The numbers of one side for each function and path.

use borehole_model::{StackId, Tables};

use super::Per;
use super::blocks::{BLOCKS, Sums};
use super::noise::Estimate;
use super::side::Side;
use super::view::Measure;
use crate::call_paths::{CallId, CallPaths, Summable};

/// A sum of samples, and its variation over the stretches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) samples: u64,
    /// The amount in the view's measure, before division.
    pub(crate) amount: f64,
    /// Squared differences, in samples, from what each stretch would have if all were alike.
    squares: f32,
}

impl Summable for Sum {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.amount += other.amount;
    }
}

/// One side as sums over the call tree of both.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// By call: self.
    path_own: Owns,
    /// By call: total.
    pub(crate) path_total: Vec<Sum>,
    /// By function: total.
    pub(crate) total: Vec<Sum>,
    /// By function: self.
    pub(crate) own: Vec<Sum>,
    pub(crate) whole: Sum,
    pub(crate) divisor: f64,
    /// The part of the divisor in each stretch.
    parts: [f64; BLOCKS],
    /// The amount that a sample stands for if there is no sample to tell.
    weight: f64,
    /// The number of counted units per observation: 1 if samples are counted.
    pub(crate) observation: f64,
    /// The number of stretches; 1 if samples have no order.
    pub(crate) blocks: usize,
}

impl Columns {
    /// `knows_order`: stretches are meaningful.
    pub(crate) fn new(
        side: &Side,
        paths: &CallPaths,
        per: &Per,
        measure: Measure,
        divisor: f64,
        knows_order: bool,
    ) -> Self {
        let all: f64 = side.blocks.samples().iter().sum();
        let (path_own, whole) = Owns::new(side, paths, measure);
        let mut columns = Self {
            path_own,
            path_total: Vec::new(),
            own: Vec::new(),
            total: Vec::new(),
            whole,
            divisor,
            parts: parts(side, per, divisor),
            weight: 1.0,
            observation: side.observation(),
            blocks: if knows_order { side.blocks.used() } else { 1 },
        };
        columns.add_samples(paths);
        columns.weight = if measure == Measure::Seconds { columns.whole.amount / all.max(1.0) } else { 1.0 };
        if columns.blocks > 1 {
            columns.add_squares(paths);
        }
        columns
    }

    /// The self of a call.
    pub(crate) fn path_own(&self, call: CallId) -> Sum {
        self.path_own.place(call).map_or_else(Sum::default, |place| self.path_own.sums[place])
    }

    fn add_samples(&mut self, paths: &CallPaths) {
        let own: Vec<_> = paths.ids().map(|call| self.path_own(call)).collect();
        self.path_total = paths.totals(&own);
        self.own = paths.by_row(&own);
        self.total = paths.totals_by_row(&self.path_total);
    }

    fn add_squares(&mut self, paths: &CallPaths) {
        let (parts, divisor) = (self.parts, self.divisor);
        let squares = |samples, stretches: &Sums| squares(samples, stretches, &parts, divisor);
        let mut own = vec![[0.0; BLOCKS]; self.own.len()];
        let mut total = own.clone();
        let depths = paths.depths();
        // Callees come before their caller and are summed up here, by depth.
        let mut called: Vec<Sums> = vec![[0.0; BLOCKS]];
        for call in paths.ids().rev() {
            let (depth, row) = (depths[call as usize] as usize, paths.row(call));
            called.resize(called.len().max(depth + 2), [0.0; BLOCKS]);
            let (callers, called) = called.split_at_mut(depth + 1);
            let sums = &mut called[0];
            let mut part = paths.first_called(call).map(|called| self.path_total[called as usize]);
            if let Some(place) = self.path_own.place(call) {
                let (sum, stretches) = (&mut self.path_own.sums[place], &self.path_own.stretches[place]);
                sum.squares = squares(sum.samples, stretches);
                add(&mut own[row], stretches);
                add(sums, stretches);
                part = Some(*sum);
            }
            let samples = self.path_total[call as usize].samples;
            // Often all samples of a call are its self, or those of its first callee.
            let all = part.filter(|part| part.samples == samples);
            self.path_total[call as usize].squares =
                all.map_or_else(|| squares(samples, sums), |all| all.squares);
            if paths.is_outermost(call) {
                add(&mut total[row], sums);
            }
            add(&mut callers[depth], sums);
            *sums = [0.0; BLOCKS];
        }
        for (sums, stretches) in [(&mut self.own, &own), (&mut self.total, &total)] {
            for (sum, stretches) in sums.iter_mut().zip(stretches) {
                sum.squares = squares(sum.samples, stretches);
            }
        }
        self.whole.squares = squares(self.whole.samples, &called[0]);
    }

    /// The estimate of a sum on this side.
    // As below.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn estimate(&self, sum: &Sum) -> Estimate {
        Estimate {
            amount: sum.amount,
            divisor: self.divisor,
            weight: if sum.samples > 0 { sum.amount / sum.samples as f64 } else { self.weight },
            observation: self.observation,
            squares: f64::from(sum.squares),
            blocks: self.blocks,
        }
    }
}

/// The self of calls. Only the few calls that have samples of their own have a row.
#[derive(Clone, Debug)]
struct Owns {
    /// In tree order, once sorted.
    sums: Vec<Sum>,
    stretches: Vec<Sums>,
    /// By call: one more than its row; 0 if it has no samples.
    places: Vec<u32>,
}

impl Owns {
    /// The self of calls of one side, and their sum.
    // Shares and times do not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    fn new(side: &Side, paths: &CallPaths, measure: Measure) -> (Self, Sum) {
        let (mut stretches, mut places) = (side.blocks.rows(), vec![0_u32; paths.len()]);
        let (mut sums, mut whole) = (vec![Sum::default(); stretches.len()], Sum::default());
        // There are no more stacks than their numbers.
        for (number, (stack, tally)) in (1..).zip(side.blocks.counts.iter()) {
            let Some(call) = paths.of_stack(stack) else { continue };
            let amount = match measure {
                Measure::Seconds if side.values.is_some() => tally.count as f64 / 1e9,
                Measure::Seconds => tally.value as f64 / 1e9,
                Measure::Share | Measure::Samples => tally.count as f64,
            };
            let sum = Sum { samples: tally.count, amount, squares: 0.0 };
            whole.add(sum);
            let own = number as usize - 1;
            match places[call as usize].checked_sub(1) {
                None => (places[call as usize], sums[own]) = (number, sum),
                Some(place) => {
                    sums[place as usize].add(sum);
                    let others = stretches[own];
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
fn add(sums: &mut Sums, others: &Sums) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

// The precision lost is below that of any variation.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
#[inline(never)]
fn squares(samples: u64, stretches: &Sums, parts: &[f64; BLOCKS], divisor: f64) -> f32 {
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
fn parts(side: &Side, per: &Per, divisor: f64) -> [f64; BLOCKS] {
    let of = match per {
        Per::Label(_) => *side.blocks.labels(),
        Per::Time if side.is_of_time() => side.blocks.positions(),
        Per::Input if side.is_of_inputs() => side.blocks.positions(),
        Per::Samples | Per::Time | Per::Input => *side.blocks.samples(),
    };
    let sum: f64 = of.iter().sum();
    of.map(|part| if sum > 0.0 { part * divisor / sum } else { 0.0 })
}

/// Whether any stack of a side has a frame with a file.
pub(crate) fn has_files(side: &Side, tables: &Tables) -> bool {
    let has_file = |stack: StackId| {
        let frame = tables.frame(tables.leaf(stack));
        super::frames::file(&frame, tables).is_some()
    };
    side.blocks.counts.iter().any(|(stack, _)| has_file(stack))
}
