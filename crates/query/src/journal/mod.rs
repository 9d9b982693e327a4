//! The history of a lake: numbered commits, each an object that is created once and never changed.
//!
//! * A commit names the files that it adds and removes, for all tables together. A reader of the commits up to a number sees
//!   one state of the lake, and nothing that writers have not committed.
//! * Two writers cannot create the same commit, because storage creates an object of a given name only once. The second writer
//!   reads the commit of the first and tries the next number.
//! * Files that no commit names are invisible to everyone.
//! * A number that was taken never becomes free: commits are kept for as long as a writer that has not seen them may run.

mod record;
mod state;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use tokio::sync::Mutex;

pub(crate) use record::{Commit, DataFile, ListedNumber, Operation};
pub(crate) use state::LakeState;
pub(crate) use sums::{Sum, SumSet};

use crate::error::Error;
use crate::place::{LakePlace, ListedObject};
use crate::tables::DAY_US;

/// The time that writers have from their first read or write to their commit: two days.
pub(crate) const WRITERS_US: i64 = 2 * DAY_US;
/// The folder of commits.
const COMMITS: &str = "_lake/commits";
/// The folder of states, each of which sums up all commits up to its number.
const STATES: &str = "_lake/states";
/// The time for which objects age while no others are written: an hour.
const AHEAD_US: i64 = 3_600_000_000;
/// The number of commits between states, which limits how many commits a reader must read.
const COMMITS_PER_STATE: u64 = 32;
/// The number of commits that are asked for at once.
const COMMITS_AT_ONCE: u64 = 16;
/// The time after which a known state is read anew: an hour.
const RELOAD_US: i64 = 3_600_000_000;
/// The number of checksums that a state comes to hold until it is read anew: another writer may have moved them to a run.
const HELD_MORE: usize = 4 * sums::MOST_RECENT;
/// The number of times that a writer tries to commit while others commit first.
const TRIES: u32 = 10_000;

/// The commits of a lake, and the newest state that was read.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    place: LakePlace,
    known: Arc<Mutex<Option<KnownState>>>,
}

/// A state that was the newest one at a time.
#[derive(Debug)]
struct KnownState {
    state: Arc<LakeState>,
    at_us: i64,
    /// The number of checksums that the state held itself when it was loaded.
    held: usize,
}

/// The decision of a writer, given the state of the lake.
pub(crate) enum Intent {
    /// Commit this.
    Commit(Commit),
    /// Leave the lake unchanged.
    Nothing,
}

impl Journal {
    pub(crate) fn new(place: LakePlace) -> Self {
        Self { place, known: Arc::default() }
    }

    /// The newest state; `None` if there is no lake.
    ///
    /// The first call reads the newest stored state and the commits after it; later calls only look for newer commits.
    pub(crate) async fn state(&self) -> Result<Option<Arc<LakeState>>, Error> {
        let mut known = self.known.lock().await;
        let now = now_us();
        // Commits that are older than the time of writers may be deleted, so an old state cannot be continued.
        let recent = known.take().filter(|known| (0..RELOAD_US).contains(&now.saturating_sub(known.at_us)));
        // A state that another writer stored meanwhile holds fewer checksums.
        let recent = recent.filter(|known| known.state.held() < known.held + HELD_MORE);
        let (state, held) = match recent {
            Some(known) => (self.caught_up(Some(known.state)).await?, Some(known.held)),
            None => (self.load().await?, None),
        };
        *known = state.clone().map(|state| {
            let held = held.unwrap_or_else(|| state.held());
            KnownState { state, at_us: now, held }
        });
        Ok(state)
    }

    /// The state that was read last, without a look for newer commits, or else the newest one.
    pub(crate) async fn known_state(&self) -> Result<Option<Arc<LakeState>>, Error> {
        if let Some(known) = &*self.known.lock().await {
            return Ok(Some(Arc::clone(&known.state)));
        }
        self.state().await
    }

    /// The checksums among `sums` that a set has, as far as this handle has read it; `None` if there is no lake.
    pub(crate) async fn among(
        &self,
        set: fn(&LakeState) -> &SumSet,
        sums: &[Sum],
    ) -> Result<Option<BTreeSet<Sum>>, Error> {
        let Some(state) = self.known_state().await? else { return Ok(None) };
        let found = match set(&state).among(sums, &self.place).await {
            Err(error) if error.is_vanished() => {
                self.forget().await;
                let state = self.state().await?.unwrap_or_default();
                set(&state).among(sums, &self.place).await
            }
            found => found,
        };
        found.map(Some)
    }

    /// Forgets the state, so that the newest one is read from the storage.
    async fn forget(&self) {
        *self.known.lock().await = None;
    }

    /// Reads the newest stored state and the commits after it.
    async fn load(&self) -> Result<Option<Arc<LakeState>>, Error> {
        // States and commits may be deleted during the read once newer states cover them. The next round finds the newer ones.
        let mut missed = None;
        for _ in 0..3 {
            let sums = self.place.list(STATES, None).await?;
            let state = match sums.last() {
                None => None,
                Some(newest) => match self.place.get(&newest.path).await? {
                    Some(bytes) => {
                        Some(LakeState::parse(&bytes).map_err(|error| self.bad(&newest.path, &error))?)
                    }
                    None => continue,
                },
            };
            let caught_up = match self.caught_up(state.map(Arc::new)).await {
                Ok(None) => self.check_first().await.map(|()| None),
                other => other,
            };
            match caught_up {
                Ok(state) => return Ok(state),
                Err(error) => missed = Some(error),
            }
        }
        let vanished = || {
            Error::lake(format!("{}: states of the lake were deleted while being read", self.place))
                .with_hint("run the command again")
        };
        Err(missed.unwrap_or_else(vanished))
    }

    /// Checks that a lake without a first commit has no later ones.
    async fn check_first(&self) -> Result<(), Error> {
        let commits = self.place.list(COMMITS, None).await?;
        commits.first().map_or(Ok(()), |found| Err(self.missing(1, &found.path)))
    }

    fn missing(&self, version: u64, found: &str) -> Error {
        let text = format!("expected {}, found {found}", commit_path(version));
        Error::lake(format!("{}: missing commit: {text}", self.place))
    }

    /// Reads the commits after `state`.
    ///
    /// Commits are asked for by number. A list would name all commits of the last days, which writers keep.
    async fn caught_up(&self, mut state: Option<Arc<LakeState>>) -> Result<Option<Arc<LakeState>>, Error> {
        let mut asked = 2;
        loop {
            let next = state.as_ref().map_or(0, |state| state.version) + 1;
            let commits = join_all((next..next + asked).map(|version| self.commit(version))).await;
            let commits = commits.into_iter().collect::<Result<Vec<_>, _>>()?;
            let last = commits.iter().rposition(Option::is_some);
            let whole = (next..).zip(commits).map_while(|(version, commit)| Some((version, commit?)));
            let mut applied = next - 1;
            for (version, commit) in whole {
                Arc::make_mut(state.get_or_insert_default()).apply(commit, version);
                applied = version;
            }
            let end = last.map_or(next - 1, |last| next + last as u64);
            if applied < end && self.commit(applied + 1).await?.is_none() {
                return Err(self.missing(applied + 1, &commit_path(end)));
            }
            // Two numbers without a commit end a lake: a single one may be a commit that was lost.
            if applied == end && end + 2 < next + asked {
                return Ok(state);
            }
            asked = if applied == next + asked - 1 { (asked * 2).min(COMMITS_AT_ONCE) } else { 2 };
        }
    }

    async fn commit(&self, version: u64) -> Result<Option<Commit>, Error> {
        let path = commit_path(version);
        let Some(bytes) = self.place.get(&path).await? else { return Ok(None) };
        Commit::parse(&bytes).map(Some).map_err(|error| self.bad(&path, &error))
    }

    fn bad(&self, path: &str, cause: &dyn std::fmt::Display) -> Error {
        let error = Error::lake(format!("{}/{path}: {cause}", self.place));
        error.with_hint(
            "a newer version of borehole may have written it: update borehole, or restore the file",
        )
    }

    /// Commits what `intend` returns, and calls it again whenever another writer committed first. Returns the state after the
    /// commit.
    pub(crate) async fn transact(
        &self,
        mut intend: impl AsyncFnMut(&LakeState) -> Result<Intent, Error>,
    ) -> Result<Arc<LakeState>, Error> {
        for attempt in 0..TRIES {
            let known = self.state().await?.unwrap_or_default();
            let intent = match intend(&known).await {
                Err(error) if error.is_vanished() && attempt == 0 => {
                    self.forget().await;
                    continue;
                }
                intent => intent?,
            };
            let Intent::Commit(commit) = intent else { return Ok(known) };
            let version = known.version + 1;
            if self.make(&commit, version).await? {
                return Ok(self.committed(known, commit, version).await);
            }
            // Different waits keep two writers that collided from colliding again.
            let wait_ms = u64::from(attempt.min(20)) * (1 + jitter() % 8);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        Err(Error::lake(format!("{}: other writers committed first {TRIES} times", self.place)))
    }

    /// The state after a commit that was made; stores it if it is its turn.
    async fn committed(&self, mut state: Arc<LakeState>, commit: Commit, version: u64) -> Arc<LakeState> {
        let mut known = self.known.lock().await;
        // A state with one owner changes in place.
        let held = known.take().map_or(0, |known| known.held);
        let changed = Arc::make_mut(&mut state);
        changed.apply(commit, version);
        if version.is_multiple_of(COMMITS_PER_STATE) {
            // The commit stands even if its state cannot be written: later writers write one.
            let _ = changed.inputs.settle(&self.place).await;
            let _ = changed.beginnings.settle(&self.place).await;
            let _ = self.sum_up(changed).await;
        }
        *known = Some(KnownState { state: Arc::clone(&state), at_us: now_us(), held });
        state
    }

    /// Creates commit `version`, and returns whether it is now `commit`.
    async fn make(&self, commit: &Commit, version: u64) -> Result<bool, Error> {
        let path = commit_path(version);
        let created = self.place.create(&path, commit.to_bytes()).await;
        if matches!(created, Ok(true)) {
            return Ok(true);
        }
        // A request whose reply was lost may have succeeded, and then fails as a duplicate when it is sent again.
        match (self.place.get(&path).await, created) {
            (Ok(Some(bytes)), _) => Ok(bytes == commit.to_bytes()),
            (Ok(None), Ok(_)) => Ok(false),
            // A request to another machine may still be on its way.
            (Ok(None), Err(error)) if self.place.is_folder() => Err(error),
            (_, Err(error)) | (Err(error), Ok(_)) => Err(error.uncertain()),
        }
    }

    async fn sum_up(&self, state: &LakeState) -> Result<(), Error> {
        let path = format!("{STATES}/{:020}.json", state.version);
        self.place.create(&path, state.to_bytes()).await?;
        Ok(())
    }

    /// Deletes states and commits that newer states cover. Keeps the last two states, the commits after them, and commits that
    /// a writer may not have seen: that writer would take the number of a deleted one, and its commit would never be read.
    pub(crate) async fn clear(&self, state: &LakeState) -> Result<(), Error> {
        self.sum_up(state).await?;
        let sums = self.place.list(STATES, None).await?;
        let Some(kept) = sums.len().checked_sub(2).map(|row| &sums[row]) else { return Ok(()) };
        let number = kept.path.trim_start_matches(STATES).trim_matches(|c: char| !c.is_ascii_digit());
        let version: u64 = number.parse().unwrap_or(0);
        for sum in sums.iter().filter(|sum| sum.path < kept.path) {
            self.place.delete(&sum.path).await?;
        }
        let commits = self.place.list(COMMITS, None).await?;
        let newest_us = commits.iter().map(ListedObject::modified_us).max().unwrap_or(0);
        let before_us = now_of_storage(newest_us) - WRITERS_US;
        for run in self.place.list(sums::RUNS, None).await? {
            let is_used = state.inputs.paths().chain(state.beginnings.paths()).any(|path| path == run.path);
            if !is_used && run.modified_us() < before_us {
                self.place.delete(&run.path).await?;
            }
        }
        for commit in commits {
            if commit.path < commit_path(version) && commit.modified_us() < before_us {
                self.place.delete(&commit.path).await?;
            }
        }
        Ok(())
    }
}

fn commit_path(version: u64) -> String {
    format!("{COMMITS}/{version:020}.json")
}

/// A number that usually differs between two writers.
fn jitter() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// The current time for the age of objects, of which the newest was modified at `newest_us`. A clock that went ahead must not make
/// the files of writers look old: objects age only while others are written.
pub(crate) fn now_of_storage(newest_us: i64) -> i64 {
    now_us().min(newest_us.saturating_add(AHEAD_US))
}

/// The current time in microseconds since 1970 (UTC).
pub(crate) fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
