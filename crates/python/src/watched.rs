//! The memory of many owners, of which one look tells who has changed.

use borehole_process::{Error, ForeignMemory};
use hashbrown::HashSet;

use crate::noted::NotedReads;
use crate::spans::MemorySpans;

/// A place in memory that an owner has, perhaps beside others.
#[derive(Clone, Copy, Debug)]
struct OwnedPlace {
    start: u64,
    end: u64,
    owner: u64,
}

/// The places of owners, which are named by their addresses, and copies of them.
#[derive(Debug, Default)]
pub(crate) struct WatchedPlaces {
    spans: MemorySpans,
    /// In order of where they start.
    places: Vec<OwnedPlace>,
    /// The length of the longest place.
    longest: u64,
}

impl WatchedPlaces {
    /// The places of what was read of each owner. No copy is made yet.
    pub(crate) fn of<'n>(owners: impl Iterator<Item = (u64, &'n NotedReads)> + Clone) -> Self {
        let spans = MemorySpans::over(owners.clone().flat_map(|(_, noted)| noted.places()));
        let place = |owner, (start, length): (u64, usize)| OwnedPlace {
            start,
            end: start.saturating_add(length as u64),
            owner,
        };
        let mut places: Vec<OwnedPlace> =
            owners.flat_map(|(owner, noted)| noted.places().map(move |read| place(owner, read))).collect();
        places.sort_unstable_by_key(|place| place.start);
        let longest = places.iter().map(|place| place.end - place.start).max().unwrap_or_default();
        Self { spans, places, longest }
    }

    /// Copies all places, and returns the owners of those that are not as they were in the copy before.
    pub(crate) fn look(&mut self, memory: &impl ForeignMemory) -> Result<HashSet<u64>, Error> {
        self.spans.read(memory)?;
        let mut changed = HashSet::new();
        for (start, end) in self.spans.changes() {
            let first = start.saturating_sub(self.longest);
            let at = self.places.partition_point(|place| place.start < first);
            let near = self.places[at..].iter().take_while(|place| place.start < end);
            changed.extend(near.filter(|place| place.end > start).map(|place| place.owner));
        }
        Ok(changed)
    }

    /// The last copies.
    pub(crate) fn copies(&self) -> &MemorySpans {
        &self.spans
    }
}
