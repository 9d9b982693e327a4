//! Compares samples of running threads with samples of stopped ones.
//!
//! A stopped thread cannot change while it is read, so its samples are true. Now and then a sample is taken that way. How far
//! the distribution of the others is from that of these, beside how far one half of these is from the other half, says how
//! true a recording is.

use borehole_model::{StackId, Tables};
use hashbrown::HashMap;

/// The number of distinct stacks that are told apart. Others count as one.
const MOST_STACKS: usize = 1 << 16;

/// Fewer samples of stopped threads say nothing.
const FEWEST: u64 = 20;

/// How far the samples of running threads are from those of stopped ones: half the sum of the differences of the shares of each
/// stack of functions, in millionths. 0 is equal, a million has nothing in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTruth {
    /// The distance between both kinds of samples. `None`: there were too few.
    pub distance_millionths: Option<u32>,
    /// The distance between two halves of the samples of stopped threads: the noise.
    pub noise_millionths: Option<u32>,
}

impl MeasuredTruth {
    /// The distances as keys and values, for the metadata of a file.
    pub(crate) fn facts(self) -> impl Iterator<Item = (&'static str, String)> {
        let all = [("oracle.distance", self.distance_millionths), ("oracle.noise", self.noise_millionths)];
        all.into_iter().filter_map(|(key, value)| Some((key, format!("{:.4}", f64::from(value?) / 1e6))))
    }

    /// The one with the larger distance.
    pub(crate) fn max(self, other: Self) -> Self {
        if other.distance_millionths > self.distance_millionths { other } else { self }
    }
}

/// The number of samples by stack of functions.
#[derive(Debug, Default)]
struct StackCounts {
    running: u64,
    halves: [u64; 2],
}

/// Decides which samples are taken with their thread stopped, and counts both kinds.
#[derive(Debug)]
pub(crate) struct Oracle {
    one_in: Option<u32>,
    /// The state of the random numbers.
    random: u64,
    references: u64,
    counts: HashMap<u64, StackCounts>,
    /// The stack of functions of each stack.
    functions: HashMap<StackId, u64>,
}

impl Oracle {
    /// One in this many samples is taken with its thread stopped; `None`: none.
    pub(crate) fn one_in(one_in: Option<u32>) -> Self {
        Self {
            one_in: one_in.filter(|&count| count > 0),
            random: 0x9e37_79b9_7f4a_7c15,
            references: 0,
            counts: HashMap::new(),
            functions: HashMap::new(),
        }
    }

    /// Whether the next sample is one of them. At random, so that no rhythm of the program meets that of the samples.
    pub(crate) fn is_due(&mut self) -> bool {
        let Some(one_in) = self.one_in else { return false };
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 32).is_multiple_of(one_in.into())
    }

    /// Drops all ids of tables.
    pub(crate) fn forget(&mut self) {
        self.functions.clear();
    }

    pub(crate) fn note_running(&mut self, stack: Option<StackId>, tables: &Tables) {
        if self.one_in.is_some()
            && let Some(stack) = stack
        {
            self.counts(stack, tables).running += 1;
        }
    }

    pub(crate) fn note_reference(&mut self, stack: Option<StackId>, tables: &Tables) {
        let Some(stack) = stack else { return };
        let half = usize::from(!self.references.is_multiple_of(2));
        self.references += 1;
        self.counts(stack, tables).halves[half] += 1;
    }

    fn counts(&mut self, stack: StackId, tables: &Tables) -> &mut StackCounts {
        let mut functions = self.functions_of(stack, tables);
        if self.counts.len() >= MOST_STACKS && !self.counts.contains_key(&functions) {
            functions = 0;
        }
        self.counts.entry(functions).or_default()
    }

    /// The hash of the functions of a stack, whatever their lines.
    fn functions_of(&mut self, stack: StackId, tables: &Tables) -> u64 {
        let mut unknown = Vec::new();
        let (mut next, mut hash) = (Some(stack), 0xcbf2_9ce4_8422_2325);
        while let Some(at) = next {
            if let Some(&known) = self.functions.get(&at) {
                hash = known;
                break;
            }
            unknown.push(at);
            next = tables.parent(at);
        }
        for at in unknown.into_iter().rev() {
            let frame = tables.frame(tables.leaf(at));
            let file = frame.file.map(|file| tables.string(file)).unwrap_or_default();
            for &byte in tables.string(frame.function).iter().chain(&[0]).chain(file) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
            self.functions.insert(at, hash);
        }
        hash
    }

    /// The distances so far.
    pub(crate) fn measured(&self) -> MeasuredTruth {
        let running: u64 = self.counts.values().map(|counts| counts.running).sum();
        if self.references < FEWEST || running == 0 {
            return MeasuredTruth::default();
        }
        let halves = |counts: &StackCounts| counts.halves;
        let both = |counts: &StackCounts| [counts.running, counts.halves.iter().sum()];
        MeasuredTruth {
            distance_millionths: Some(self.distance(both)),
            noise_millionths: Some(self.distance(halves)),
        }
    }

    fn distance(&self, of: impl Fn(&StackCounts) -> [u64; 2]) -> u32 {
        let sums = self.counts.values().map(&of);
        let sums = sums.fold([0_u64; 2], |sums, counts| [sums[0] + counts[0], sums[1] + counts[1]]);
        let share = |counts: [u64; 2], side: usize| {
            u128::from(counts[side]) * 1_000_000_000 / u128::from(sums[side].max(1))
        };
        let differences =
            self.counts.values().map(|counts| share(of(counts), 0).abs_diff(share(of(counts), 1)));
        u32::try_from(differences.sum::<u128>() / 2000).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::Frame;

    use super::*;

    fn stack(tables: &mut Tables, name: &str, line: i64) -> Option<StackId> {
        let function = tables.intern_string(name.as_bytes()).unwrap();
        let frame = tables.intern_frame(&Frame { line: Some(line), ..Frame::named(function) }).unwrap();
        Some(tables.intern_stack(None, frame).unwrap())
    }

    #[test]
    fn the_distance_is_that_of_shares_of_functions() {
        let mut tables = Tables::default();
        let mut oracle = Oracle::one_in(Some(100));
        for index in 0..100 {
            let a = stack(&mut tables, "a", index);
            let b = stack(&mut tables, "b", index);
            // Of the running ones a quarter is in `b`, of the stopped ones half.
            oracle.note_running(if index % 4 == 0 { b } else { a }, &tables);
            oracle.note_reference(if index % 4 < 2 { a } else { b }, &tables);
        }
        let MeasuredTruth { distance_millionths, noise_millionths } = oracle.measured();
        assert_eq!((distance_millionths, noise_millionths), (Some(250_000), Some(0)));
        let facts: Vec<_> = oracle.measured().facts().collect();
        assert_eq!(facts[0], ("oracle.distance", "0.2500".to_owned()));
    }

    #[test]
    fn one_in_a_hundred_is_stopped_and_none_if_so_asked() {
        let mut oracle = Oracle::one_in(Some(100));
        let count = (0..100_000).filter(|_| oracle.is_due()).count();
        assert!((900..1100).contains(&count), "{count}");
        assert!(!(0..1000).any(|_| Oracle::one_in(None).is_due()));
        assert_eq!(Oracle::one_in(Some(1)).measured(), MeasuredTruth::default());
    }
}
