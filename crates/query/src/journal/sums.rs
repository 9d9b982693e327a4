//! The checksums of inputs, of which a lake has millions.
//!
//! A state holds the recent ones. The others are in runs: objects of sorted checksums that never change, a few of each size. A
//! writer reads only the parts of them where the checksums of its inputs would be, so it costs the same however many there are.

use std::collections::BTreeSet;
use std::ops::Range;

use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::place::LakePlace;

/// Half of a SHA-256.
pub(crate) type Sum = [u8; 16];

/// The folder of runs.
pub(super) const RUNS: &str = "_lake/sums";
/// The number of recent checksums from which a run is made of them.
pub(super) const MOST_RECENT: usize = 4096;
/// The size of a checksum in a run.
const SUM_BYTES: u64 = size_of::<Sum>() as u64;

/// Checksums.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SumSet {
    /// Those that are in no run.
    #[serde(with = "in_hex")]
    recent: BTreeSet<Sum>,
    /// The larger ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<SumRun>,
    /// Checksums that were removed, though runs have them.
    #[serde(with = "in_hex", default, skip_serializing_if = "BTreeSet::is_empty")]
    gone: BTreeSet<Sum>,
    /// The number of all.
    count: u64,
}

/// An object of sorted checksums.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SumRun {
    path: String,
    count: u64,
}

impl SumSet {
    pub(crate) const fn len(&self) -> u64 {
        self.count
    }

    /// The number of those that a state holds itself.
    pub(super) fn held(&self) -> usize {
        self.recent.len() + self.gone.len()
    }

    /// The paths of its runs.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().map(|run| &*run.path)
    }

    /// Adds checksums that it does not have.
    pub(super) fn extend(&mut self, sums: impl IntoIterator<Item = Sum>) {
        for sum in sums {
            self.gone.remove(&sum);
            self.count += u64::from(self.recent.insert(sum));
        }
    }

    /// Removes a checksum that it has.
    pub(super) fn remove(&mut self, sum: Sum) {
        self.recent.remove(&sum);
        if !self.runs.is_empty() {
            self.gone.insert(sum);
        }
        self.count = self.count.saturating_sub(1);
    }

    /// The checksums among `sums` that it has.
    pub(crate) async fn among(&self, sums: &[Sum], place: &LakePlace) -> Result<BTreeSet<Sum>, Error> {
        let mut found: BTreeSet<Sum> =
            sums.iter().filter(|sum| self.recent.contains(*sum)).copied().collect();
        let is_unknown = |sum: &&Sum| !found.contains(*sum) && !self.gone.contains(*sum);
        let unknown: Vec<_> = sums.iter().filter(is_unknown).copied().collect();
        for of_run in try_join_all(self.runs.iter().map(|run| run.among(&unknown, place))).await? {
            found.extend(of_run);
        }
        Ok(found)
    }

    /// Moves the recent checksums to a run if there are many. Runs that are no larger become part of it, so there are few, and a
    /// checksum is rewritten a few times only.
    pub(super) async fn settle(&mut self, place: &LakePlace) -> Result<(), Error> {
        if self.held() < MOST_RECENT {
            return Ok(());
        }
        let mut sums = self.recent.clone();
        let mut kept = self.runs.clone();
        let is_cleaned = self.gone.len() >= MOST_RECENT;
        while let Some(run) = kept.pop_if(|run| is_cleaned || run.count <= sums.len() as u64) {
            sums.extend(run.all(place).await?.into_iter().filter(|sum| !self.gone.contains(sum)));
        }
        let is_whole = kept.is_empty();
        if !sums.is_empty() {
            let path = format!("{RUNS}/{}", uuid::Uuid::new_v4().simple());
            place.create(&path, sums.iter().flatten().copied().collect()).await?;
            kept.push(SumRun { path, count: sums.len() as u64 });
        }
        self.runs = kept;
        self.recent.clear();
        if is_whole {
            self.gone.clear();
        }
        Ok(())
    }
}

impl SumRun {
    fn bytes(&self) -> u64 {
        self.count * SUM_BYTES
    }

    async fn all(&self, place: &LakePlace) -> Result<Vec<Sum>, Error> {
        let read = place.get_ranges(&self.path, std::slice::from_ref(&(0..self.bytes()))).await?;
        Ok(read.iter().flat_map(|bytes| bytes.as_chunks().0).copied().collect())
    }

    /// The checksums among `sums` that it has.
    async fn among(&self, sums: &[Sum], place: &LakePlace) -> Result<Vec<Sum>, Error> {
        let ranges: Vec<_> = sums.iter().map(|sum| self.likely(sum)).collect();
        let mut read: Vec<Vec<Sum>> = Vec::new();
        for bytes in
            if ranges.is_empty() { Vec::new() } else { place.get_ranges(&self.path, &ranges).await? }
        {
            read.push(bytes.as_chunks().0.to_vec());
        }
        let mut found = Vec::new();
        let mut whole = None;
        for ((sum, range), part) in sums.iter().zip(&ranges).zip(&read) {
            let is_in = if self.is_decided(sum, range, part) {
                part.binary_search(sum).is_ok()
            } else {
                if whole.is_none() {
                    whole = Some(self.all(place).await?);
                }
                whole.as_ref().is_some_and(|all| all.binary_search(sum).is_ok())
            };
            found.extend(is_in.then_some(*sum));
        }
        Ok(found)
    }

    /// The part of the run that holds a checksum, if it has it: they are spread evenly.
    fn likely(&self, sum: &Sum) -> Range<u64> {
        let first = u64::from_be_bytes(sum.first_chunk().copied().unwrap_or_default());
        let place = u64::try_from((u128::from(first) * u128::from(self.count)) >> 64).unwrap_or(0);
        // The number of checksums before a place differs from its mean by four standard deviations once in 16,000 times.
        let around = 2 * self.count.isqrt() + 16;
        let end = place.saturating_add(around).min(self.count);
        place.saturating_sub(around) * SUM_BYTES..end * SUM_BYTES
    }

    /// Whether a checksum is in this part or nowhere.
    fn is_decided(&self, sum: &Sum, range: &Range<u64>, part: &[Sum]) -> bool {
        let begins_before = range.start == 0 || part.first().is_some_and(|first| first <= sum);
        begins_before && (range.end >= self.bytes() || part.last().is_some_and(|last| last >= sum))
    }
}

/// Parses a checksum in hexadecimal.
pub(super) fn parsed(text: &str) -> Option<Sum> {
    // A sign would be a number too.
    let is_whole = text.len() == 2 * size_of::<Sum>() && !text.starts_with('+');
    let number = u128::from_str_radix(text, 16).ok().filter(|_| is_whole);
    number.map(u128::to_be_bytes)
}

/// Checksums as one text in hexadecimal, a fifth shorter than a list and much faster to read.
mod in_hex {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{Sum, parsed};

    const LETTERS: usize = 2 * size_of::<Sum>();

    pub(super) fn serialize<S: Serializer>(sums: &BTreeSet<Sum>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(LETTERS * sums.len());
        for &sum in sums {
            write!(text, "{:032x}", u128::from_be_bytes(sum)).map_err(S::Error::custom)?;
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Sum>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let invalid = || D::Error::custom("invalid checksums: expected 32 hexadecimal digits each");
        let sums = text.as_bytes().chunks(LETTERS).map(|sum| parsed(std::str::from_utf8(sum).ok()?));
        sums.collect::<Option<_>>().ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use sha2::{Digest as _, Sha256};

    use super::*;

    fn sum(number: u64) -> Sum {
        let mut sum = Sum::default();
        sum.copy_from_slice(&Sha256::digest(number.to_le_bytes())[..16]);
        sum
    }

    /// The numbers among `numbers` that are in a set.
    async fn known(set: &SumSet, numbers: Range<u64>, place: &LakePlace) -> Vec<u64> {
        let sums: Vec<_> = numbers.clone().map(sum).collect();
        let found = set.among(&sums, place).await.unwrap();
        numbers.filter(|&number| found.contains(&sum(number))).collect()
    }

    #[test]
    fn sums_are_found_in_runs_of_any_age() {
        let place = LakePlace::of_store(Arc::new(InMemory::new()));
        crate::lake::runtime().unwrap().block_on(async {
            let mut set = SumSet::default();
            for hundred in 0..400 {
                set.extend((hundred * 100..hundred * 100 + 100).map(sum));
                set.settle(&place).await.unwrap();
            }
            assert_eq!((set.len(), set.recent.len() < MOST_RECENT), (40_000, true));
            assert!(set.runs.len() > 1 && set.runs.len() < 6, "{:?}", set.runs);
            let stored = serde_json::to_string(&set).unwrap();
            assert!(stored.len() < 33 * MOST_RECENT, "{} bytes", stored.len());
            let set: SumSet = serde_json::from_str(&stored).unwrap();
            assert_eq!(known(&set, 0..40_000, &place).await.len(), 40_000);
            assert_eq!(known(&set, 39_990..50_000, &place).await, (39_990..40_000).collect::<Vec<_>>());
        });
    }

    #[test]
    fn removed_sums_are_gone_from_runs_and_may_come_back() {
        let place = LakePlace::of_store(Arc::new(InMemory::new()));
        crate::lake::runtime().unwrap().block_on(async {
            let mut set = SumSet::default();
            set.extend((0..5000).map(sum));
            set.settle(&place).await.unwrap();
            (10..20).for_each(|number| set.remove(sum(number)));
            assert_eq!(known(&set, 0..30, &place).await, (0..10).chain(20..30).collect::<Vec<_>>());
            set.extend([sum(15)]);
            assert_eq!((known(&set, 10..20, &place).await, set.len()), (vec![15], 4991));
            (100..4900).for_each(|number| set.remove(sum(number)));
            set.settle(&place).await.unwrap();
            assert_eq!((set.held(), set.runs.len(), set.len()), (0, 1, 191));
            assert_eq!(known(&set, 0..5000, &place).await.len(), 191);
        });
    }

    #[test]
    fn sums_that_are_not_spread_evenly_are_found_too() {
        let place = LakePlace::of_store(Arc::new(InMemory::new()));
        let crowded = |number: u64| {
            let mut sum = Sum::default();
            sum[8..].copy_from_slice(&number.to_be_bytes());
            sum
        };
        crate::lake::runtime().unwrap().block_on(async {
            let mut set = SumSet::default();
            set.extend((0..10_000).map(crowded));
            set.settle(&place).await.unwrap();
            let found = set.among(&[crowded(9999), crowded(10_000)], &place).await.unwrap();
            assert_eq!(found, [crowded(9999)].into());
        });
    }
}
