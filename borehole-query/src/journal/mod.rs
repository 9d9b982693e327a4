//! What has become of a lake: numbered commits, each an object that is made once and never changed.
//!
//! * A commit names the files that it adds and those that it takes away, of all tables together; who reads the commits up to
//!   a number sees one state of the lake, and nothing of what writers are doing.
//! * Two writers cannot make the same number: storage makes an object of a name once. The second looks at what the first did
//!   and tries the next number.
//! * Files that no commit names are not there for anybody.
//! * A number is free for nobody once it was taken: commits stay for as long as a writer may be at work that has not seen them.

mod record;
mod state;
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

pub(crate) use record::{Commit, DataFile, Number, Operation};
pub(crate) use state::State;

use crate::Error;
use crate::place::Place;
use crate::tables::{DAY_US, SCHEMA_VERSION};

/// Writers may take so long to commit what they have written, or what they have seen: two days.
pub(crate) const WRITERS_US: i64 = 2 * DAY_US;
/// Where commits are.
const COMMITS: &str = "_lake/commits";
/// Where states are that sum up all commits up to theirs.
const STATES: &str = "_lake/states";
/// After so many commits their sum is written, so that nobody has to read more than that.
const COMMITS_PER_STATE: u64 = 32;
/// So often a writer that was overtaken tries again.
const TRIES: u32 = 10_000;

/// The commits of a lake.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    place: Place,
}

/// What a writer wants done, given the state of the lake.
pub(crate) enum Intent {
    /// To commit this.
    Commit(Commit),
    /// Nothing.
    Nothing,
}

impl Journal {
    pub(crate) const fn new(place: Place) -> Self {
        Self { place }
    }

    /// The newest state; `None` where there is no lake.
    pub(crate) async fn state(&self) -> Result<Option<State>, Error> {
        // Who reads while sums and commits are cleared away that newer sums hold finds those when it looks again.
        let mut missed = None;
        for _ in 0..3 {
            let sums = self.place.list(STATES, None).await?;
            let mut state = match sums.last() {
                None => None,
                Some(newest) => match self.place.get(&newest.path).await? {
                    Some(bytes) => {
                        Some(State::parse(&bytes).map_err(|error| self.bad(&newest.path, &error))?)
                    }
                    None => continue,
                },
            };
            match self.catch_up(&mut state).await {
                Ok(()) => return Ok(state),
                Err(error) => missed = Some(error),
            }
        }
        let vanished =
            || Error::lake(format!("{}: the states of the lake vanish while they are read", self.place));
        Err(missed.unwrap_or_else(vanished))
    }

    /// Reads the commits behind `state`.
    async fn catch_up(&self, state: &mut Option<State>) -> Result<(), Error> {
        let from = state.as_ref().map_or(0, |state| state.version);
        let after = (from > 0).then(|| commit_path(from));
        for listed in self.place.list(COMMITS, after.as_deref()).await? {
            let Some(bytes) = self.place.get(&listed.path).await? else { continue };
            let commit: Commit = Commit::parse(&bytes).map_err(|error| self.bad(&listed.path, &error))?;
            let expected = state.as_ref().map_or(0, |state| state.version) + 1;
            if listed.path != commit_path(expected) {
                let text = format!("expected {}, found {}", commit_path(expected), listed.path);
                return Err(Error::lake(format!("{}: a commit is missing: {text}", self.place)));
            }
            state.get_or_insert_default().apply(commit, expected);
        }
        Ok(())
    }

    fn bad(&self, path: &str, cause: &dyn std::fmt::Display) -> Error {
        let error = Error::lake(format!("{}/{path}: {cause}", self.place));
        error.with_hint(
            "a later borehole may have written it; otherwise `borehole lake check` says what is left",
        )
    }

    /// Commits what `intend` wants, which is asked again whenever another writer was faster. Answers the state after it.
    pub(crate) async fn transact(
        &self,
        mut intend: impl AsyncFnMut(&State) -> Result<Intent, Error>,
    ) -> Result<State, Error> {
        let mut state = self.state().await?;
        for attempt in 0..TRIES {
            let known = state.clone().unwrap_or_default();
            let Intent::Commit(commit) = intend(&known).await? else { return Ok(known) };
            let version = known.version + 1;
            if self.make(&commit, version).await? {
                let mut state = known;
                state.apply(commit, version);
                if version % COMMITS_PER_STATE == 0 {
                    // The commit is made, whatever becomes of its sum: others sum up later.
                    let _ = self.sum_up(&state).await;
                }
                return Ok(state);
            }
            // Writers that met once do not meet again when they wait for different times.
            let wait_ms = u64::from(attempt.min(20)) * (1 + jitter() % 8);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            if self.catch_up(&mut state).await.is_err() {
                state = self.state().await?;
            }
        }
        Err(Error::lake(format!("{}: overtaken by other writers {TRIES} times", self.place)))
    }

    /// Whether commit `version` is `commit` now.
    async fn make(&self, commit: &Commit, version: u64) -> Result<bool, Error> {
        let path = commit_path(version);
        let created = self.place.create(&path, commit.to_bytes()).await;
        if matches!(created, Ok(true)) {
            return Ok(true);
        }
        // A request whose answer was lost may have been heeded, and meets itself when it is sent again.
        match (self.place.get(&path).await, created) {
            (Ok(Some(bytes)), _) => Ok(bytes == commit.to_bytes()),
            (Ok(None), Ok(_)) => Ok(false),
            // What is sent to other machines may still be on its way.
            (Ok(None), Err(error)) if self.place.is_folder() => Err(error),
            (_, Err(error)) | (Err(error), Ok(_)) => Err(error.uncertain()),
        }
    }

    async fn sum_up(&self, state: &State) -> Result<(), Error> {
        let path = format!("{STATES}/{:020}.json", state.version);
        self.place.create(&path, state.to_bytes()).await?;
        Ok(())
    }

    /// Clears away sums and commits that newer sums hold, but for the last two sums and what is behind them, and for commits that
    /// some writer may not have seen: it would take their number for a free one, and its commit would be one that nobody reads.
    pub(crate) async fn clear(&self, state: &State) -> Result<(), Error> {
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

/// Numbers that two writers hardly share.
fn jitter() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// The current time in microseconds since 1970 (UTC).
pub(crate) fn now_us() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}

/// Whether this build reads what was written as `schema`.
fn supported(schema: u32) -> Result<(), String> {
    if schema <= SCHEMA_VERSION {
        return Ok(());
    }
    Err(format!("unsupported version of a lake: expected at most {SCHEMA_VERSION}, found {schema}"))
}
