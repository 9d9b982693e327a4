//! Objects that nobody will look at again.

use crate::journal::{WRITERS_US, now_us};
use crate::tables::Table;
use crate::{Error, Lake};

/// Queries that began before a file was taken away may read it for so long: an hour.
const READERS_US: i64 = 3_600_000_000;

/// What was cleared away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// Objects that were deleted.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that wait until no reader can be at them.
    pub waiting: u64,
}

impl Lake {
    /// Deletes files that compactions replaced more than an hour ago, and what writers left behind that never committed.
    pub(super) fn clear(&self) -> Result<Cleared, Error> {
        self.block_on(async {
            let state = self.newest().await?;
            let mut cleared = Cleared::default();
            let now = now_us();
            for table in Table::ALL {
                for object in self.place().list(table.name(), None).await? {
                    if state.files.contains_key(&object.path) {
                        continue;
                    }
                    let may_go = match state.removed.get(&object.path) {
                        Some(removed) => *removed < now - READERS_US,
                        None => object.modified_us() < now - WRITERS_US,
                    };
                    if may_go {
                        self.place().delete(&object.path).await?;
                        cleared.files += 1;
                        cleared.bytes += object.bytes;
                    } else {
                        cleared.waiting += 1;
                    }
                }
            }
            self.journal().clear(&state).await?;
            Ok(cleared)
        })
    }
}
