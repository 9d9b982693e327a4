//! Files that grow while they are explored.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::ExploreArgs;

/// How often files are checked; changes that come faster could not be read.
const PERIOD: Duration = Duration::from_millis(500);

/// Files, with the lengths and times that they had when they were last checked.
#[derive(Clone, Debug)]
pub(super) struct FollowedFiles {
    paths: Vec<PathBuf>,
    seen: Vec<Option<(u64, SystemTime)>>,
    looked: Instant,
}

impl FollowedFiles {
    pub(super) fn new(args: &ExploreArgs) -> Self {
        let paths = args.paths.clone();
        Self { seen: look(&paths), paths, looked: Instant::now() }
    }

    /// Whether the length or time of a file has changed since the last check.
    pub(super) fn has_changed(&mut self) -> bool {
        if self.looked.elapsed() < PERIOD {
            return false;
        }
        self.looked = Instant::now();
        let seen = look(&self.paths);
        std::mem::replace(&mut self.seen, seen) != self.seen
    }
}

fn look(paths: &[PathBuf]) -> Vec<Option<(u64, SystemTime)>> {
    let facts = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        Some((found.len(), found.modified().ok()?))
    };
    paths.iter().map(facts).collect()
}
