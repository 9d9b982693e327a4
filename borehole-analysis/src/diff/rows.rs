//! What one side has of each function and each path.

use borehole_model::{StackId, Tables};

use super::Per;
use super::blocks::{BLOCKS, Sums};
use super::noise::Estimate;
use super::side::Side;
use super::tree::Tree;
use super::view::Measure;

/// A sum of samples, and how much it varies over the stretches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) samples: u64,
    /// As the view measures, not yet divided.
    pub(crate) amount: f64,
    /// Squared differences from what each stretch would have if all were alike, in samples.
    squares: f32,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.amount += other.amount;
    }
}

/// One side as sums over the tree of both.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// By path, and by function: when it was executing, and when it was on the stack.
    pub(crate) path_own: Vec<Sum>,
    pub(crate) path_total: Vec<Sum>,
    pub(crate) own: Vec<Sum>,
    pub(crate) total: Vec<Sum>,
    pub(crate) whole: Sum,
    pub(crate) divisor: f64,
    /// The part of the divisor that each stretch has.
    parts: [f64; BLOCKS],
    /// What a sample of which nothing was seen would stand for.
    weight: f64,
    /// How many stretches; 1 where samples keep no order.
    pub(crate) blocks: usize,
}

impl Columns {
    /// `knows_order`: stretches tell something.
    pub(crate) fn new(
        side: &Side,
        tree: &Tree,
        per: &Per,
        measure: Measure,
        divisor: f64,
        knows_order: bool,
    ) -> Self {
        let all: f64 = side.blocks.samples().iter().sum();
        let mut columns = Self {
            path_own: vec![Sum::default(); tree.len()],
            path_total: Vec::new(),
            own: vec![Sum::default(); tree.tables.frame_count()],
            total: vec![Sum::default(); tree.tables.frame_count()],
            whole: Sum::default(),
            divisor,
            parts: parts(side, per, divisor),
            weight: 1.0,
            blocks: if knows_order { side.blocks.used() } else { 1 },
        };
        columns.add_samples(side, tree, measure);
        columns.weight = if measure == Measure::Seconds { columns.whole.amount / all.max(1.0) } else { 1.0 };
        if columns.blocks > 1 {
            columns.add_squares(side, tree);
        }
        columns
    }

    // Shares and times have no use for the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    fn add_samples(&mut self, side: &Side, tree: &Tree, measure: Measure) {
        for (stack, tally) in side.counts.iter() {
            let Some(path) = tree.path(stack) else { continue };
            let amount =
                if measure == Measure::Seconds { tally.wall_ns as f64 / 1e9 } else { tally.count as f64 };
            let sum = Sum { samples: tally.count, amount, squares: 0.0 };
            self.path_own[path.index()].add(sum);
            self.whole.add(sum);
        }
        self.path_total = self.path_own.clone();
        tree.add_up(&mut self.path_total, Sum::add);
        for path in tree.tables.stack_ids() {
            let group = tree.group(path);
            self.own[group].add(self.path_own[path.index()]);
            if tree.is_first[path.index()] {
                self.total[group].add(self.path_total[path.index()]);
            }
        }
    }

    fn add_squares(&mut self, side: &Side, tree: &Tree) {
        let zero = [0.0; BLOCKS];
        let mut of_paths: Vec<Sums> = vec![zero; tree.len()];
        let mut whole = zero;
        // In the order of the columns that are read, not in that of the samples.
        for stack in side.counts.in_order() {
            if let Some(path) = tree.path(stack) {
                let sums = side.blocks.of(stack);
                add(&mut of_paths[path.index()], sums);
                add(&mut whole, sums);
            }
        }
        let mut of_functions: Vec<Sums> = vec![zero; self.own.len()];
        for path in tree.tables.stack_ids() {
            add(&mut of_functions[tree.group(path)], of_paths[path.index()]);
        }
        let (parts, divisor) = (self.parts, self.divisor);
        let squares = |sums: &mut [Sum], stretches: &[Sums]| {
            for (sum, stretches) in sums.iter_mut().zip(stretches) {
                sum.squares = self::squares(sum.samples, stretches, &parts, divisor);
            }
        };
        squares(&mut self.path_own, &of_paths);
        squares(&mut self.own, &of_functions);
        tree.add_up(&mut of_paths, add);
        of_functions.fill(zero);
        let firsts = tree.tables.stack_ids().filter(|path| tree.is_first[path.index()]);
        firsts.for_each(|path| add(&mut of_functions[tree.group(path)], of_paths[path.index()]));
        squares(&mut self.path_total, &of_paths);
        squares(&mut self.total, &of_functions);
        squares(std::slice::from_mut(&mut self.whole), &[whole]);
    }

    /// What the side says about a sum.
    // As above.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn estimate(&self, sum: &Sum) -> Estimate {
        Estimate {
            amount: sum.amount,
            divisor: self.divisor,
            weight: if sum.samples > 0 { sum.amount / sum.samples as f64 } else { self.weight },
            squares: f64::from(sum.squares),
            blocks: self.blocks,
        }
    }
}

fn add(sums: &mut Sums, others: Sums) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

// The digits that are lost are none that variation has.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn squares(samples: u64, stretches: &Sums, parts: &[f64; BLOCKS], divisor: f64) -> f32 {
    if samples == 0 {
        return 0.0;
    }
    let rate = samples as f64 / divisor;
    let differences = stretches.iter().zip(parts).map(|(&seen, part)| f64::from(seen) - rate * part);
    differences.map(|difference| difference * difference).sum::<f64>() as f32
}

/// The part of the divisor that each stretch has. What is not seen of it is spread as the samples are.
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
        super::frames::file(frame, tables).is_some()
    };
    side.counts.iter().any(|(stack, _)| has_file(stack))
}
