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
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

pub(crate) use record::{Commit, DataFile, ListedNumber, Operation};
pub(crate) use state::LakeState;

use crate::error::Error;
use crate::place::LakePlace;
use crate::tables::DAY_US;

/// The time that writers have from their first read or write to their commit: two days.
pub(crate) const WRITERS_US: i64 = 2 * DAY_US;
/// The folder of commits.
const COMMITS: &str = "_lake/commits";
/// The folder of states, each of which sums up all commits up to its number.
const STATES: &str = "_lake/states";
/// The number of commits between states, which limits how many commits a reader must read.
const COMMITS_PER_STATE: u64 = 32;
/// The number of times that a writer tries to commit while others commit first.
const TRIES: u32 = 10_000;

/// The commits of a lake.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    place: LakePlace,
}

/// The decision of a writer, given the state of the lake.
pub(crate) enum Intent {
    /// Commit this.
    Commit(Commit),
    /// Leave the lake unchanged.
    Nothing,
}

impl Journal {
    pub(crate) const fn new(place: LakePlace) -> Self {
        Self { place }
    }

    /// The newest state; `None` if there is no lake.
    pub(crate) async fn state(&self) -> Result<Option<LakeState>, Error> {
        // States and commits may be deleted during the read once newer states cover them. The next round finds the newer ones.
        let mut missed = None;
        for _ in 0..3 {
            let sums = self.place.list(STATES, None).await?;
            let mut state = match sums.last() {
                None => None,
                Some(newest) => match self.place.get(&newest.path).await? {
                    Some(bytes) => {
                        Some(LakeState::parse(&bytes).map_err(|error| self.bad(&newest.path, &error))?)
                    }
                    None => continue,
                },
            };
            match self.catch_up(&mut state).await {
                Ok(()) => return Ok(state),
                Err(error) => missed = Some(error),
            }
        }
        let vanished = || {
            Error::lake(format!("{}: states of the lake were deleted while being read", self.place))
                .with_hint("run the command again")
        };
        Err(missed.unwrap_or_else(vanished))
    }

    /// Reads the commits after `state`.
    async fn catch_up(&self, state: &mut Option<LakeState>) -> Result<(), Error> {
        let from = state.as_ref().map_or(0, |state| state.version);
        let after = (from > 0).then(|| commit_path(from));
        for listed in self.place.list(COMMITS, after.as_deref()).await? {
            let Some(bytes) = self.place.get(&listed.path).await? else { continue };
            let commit: Commit = Commit::parse(&bytes).map_err(|error| self.bad(&listed.path, &error))?;
            let expected = state.as_ref().map_or(0, |state| state.version) + 1;
            if listed.path != commit_path(expected) {
                let text = format!("expected {}, found {}", commit_path(expected), listed.path);
                return Err(Error::lake(format!("{}: missing commit: {text}", self.place)));
            }
            state.get_or_insert_default().apply(commit, expected);
        }
        Ok(())
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
    ) -> Result<LakeState, Error> {
        let mut state = self.state().await?;
        for attempt in 0..TRIES {
            let known = state.clone().unwrap_or_default();
            let Intent::Commit(commit) = intend(&known).await? else { return Ok(known) };
            let version = known.version + 1;
            if self.make(&commit, version).await? {
                let mut state = known;
                state.apply(commit, version);
                if version % COMMITS_PER_STATE == 0 {
                    // The commit stands even if its state cannot be written: later writers write one.
                    let _ = self.sum_up(&state).await;
                }
                return Ok(state);
            }
            // Different waits keep two writers that collided from colliding again.
            let wait_ms = u64::from(attempt.min(20)) * (1 + jitter() % 8);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            if self.catch_up(&mut state).await.is_err() {
                state = self.state().await?;
            }
        }
        Err(Error::lake(format!("{}: other writers committed first {TRIES} times", self.place)))
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
        let before_us = now_us() - WRITERS_US;
        for commit in self.place.list(COMMITS, None).await? {
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

/// The current time in microseconds since 1970 (UTC).
pub(crate) fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
