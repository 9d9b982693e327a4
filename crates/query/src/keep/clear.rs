//! Deletion of objects that nobody needs any more.

use crate::journal::{LakeState, WRITERS_US, now_of_storage, now_us};
use crate::place::ListedObject;
use crate::tables::LakeTable;
use crate::{Error, Lake};

/// The time for which queries may still read a removed file: an hour.
const READERS_US: i64 = 3_600_000_000;

/// The result of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The number of deleted objects.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of objects that are kept until no reader can be using them.
    pub waiting: u64,
}

impl Lake {
    /// Deletes files that compactions replaced more than an hour ago, and the remains of writers that never committed.
    pub(super) fn clear(&self) -> Result<Cleared, Error> {
        self.block_on(async {
            let state = self.newest().await?;
            let mut cleared = Cleared::default();
            let UnusedObjects { objects, newest_us } = self.unused_objects(&state).await?;
            let now = now_of_storage(newest_us);
            for object in objects {
                let may_go = match state.removed.get(&object.path) {
                    Some(&removed) if removed <= now_us() => removed < now - READERS_US,
                    _ => object.modified_us() < now - WRITERS_US,
                };
                if may_go {
                    self.place.delete(&object.path).await?;
                    cleared.files += 1;
                    cleared.bytes += object.bytes;
                } else {
                    cleared.waiting += 1;
                }
            }
            self.journal.clear(&state).await?;
            Ok(cleared)
        })
    }

    /// The objects in the folders of tables that are not files of `state`: removed files, and files that no commit names.
    pub(super) async fn unused_objects(&self, state: &LakeState) -> Result<UnusedObjects, Error> {
        let mut unused = UnusedObjects::default();
        for table in LakeTable::ALL {
            for object in self.place.list(table.name(), None).await? {
                unused.newest_us = unused.newest_us.max(object.modified_us());
                if !state.files.contains_key(&object.path) {
                    unused.objects.push(object);
                }
            }
        }
        Ok(unused)
    }
}

/// Objects that are not files of a state.
#[derive(Default)]
pub(super) struct UnusedObjects {
    pub(super) objects: Vec<ListedObject>,
    /// The time of the last modification of any object.
    newest_us: i64,
}
