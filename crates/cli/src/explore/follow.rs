//! Files that grow while they are looked at.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::ExploreArgs;

/// How often files are looked at: more often nobody could read what has changed.
const PERIOD: Duration = Duration::from_millis(500);

/// What was last seen of files.
#[derive(Clone, Debug)]
pub(super) struct Followed {
    paths: Vec<PathBuf>,
    seen: Vec<Option<(u64, SystemTime)>>,
    looked: Instant,
}

impl Followed {
    pub(super) fn new(args: &ExploreArgs) -> Self {
        let paths = args.paths.clone();
        Self { seen: look(&paths), paths, looked: Instant::now() }
    }

    /// Whether a file has another length or time than when it was last looked at.
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
