//! The unfinished files of this process, for a program that has to end at once.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use tempfile::{PathPersistError, TempPath};

/// The unfinished files, one in a place. More of them at a time are not known.
static PLACES: [Mutex<Option<PathBuf>>; 64] = [const { Mutex::new(None) }; 64];

/// The entry of an unfinished file, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedEntry(usize);

impl UnfinishedEntry {
    /// Enters `path`, a file that this process has just created; `None` if there are too many. It does not allocate, so no file
    /// is left because the memory for its entry is lacking.
    pub(crate) fn new(path: PathBuf) -> Option<Self> {
        let mut path = Some(path);
        PLACES.iter().enumerate().find_map(|(index, place)| {
            let mut place = place.try_lock().ok().filter(|place| place.is_none())?;
            *place = path.take();
            Some(Self(index))
        })
    }
}

impl Drop for UnfinishedEntry {
    fn drop(&mut self) {
        let path = PLACES[self.0].lock().map(|mut place| place.take());
        // Freed after the lock is released.
        drop(path);
    }
}

/// The path of an unfinished file, which is removed when this is dropped, or by [`remove_unfinished`].
#[derive(Debug)]
pub(crate) struct UnfinishedPath {
    pub(super) path: TempPath,
    /// Kept until the file is gone.
    pub(super) entry: Option<UnfinishedEntry>,
}

impl UnfinishedPath {
    /// Enters a file that this process has just created.
    #[cfg(feature = "tachyon")]
    pub(crate) fn of(path: TempPath) -> Self {
        let entry = UnfinishedEntry::new(path.to_path_buf());
        Self { path, entry }
    }

    /// Gives the file its final name, in the place of any file that has it.
    pub(crate) fn persist(self, path: &Path) -> Result<(), PathPersistError> {
        let Self { path: unfinished, entry: _entry } = self;
        unfinished.persist(path)
    }

    /// Gives the file its final name, if no file has it.
    pub(crate) fn persist_noclobber(self, path: &Path) -> Result<(), PathPersistError> {
        let Self { path: unfinished, entry: _entry } = self;
        unfinished.persist_noclobber(path)
    }
}

impl Deref for UnfinishedPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

/// Removes the temporary files of all outputs that are not complete, for a program that has to end without dropping them: because
/// an allocation failed, for example. It allocates only for very long paths.
///
/// # Examples
///
/// ```
/// use borehole::{Compression, Existing, Output, remove_unfinished};
///
/// let folder = tempfile::tempdir()?;
/// let output = Output::create(folder.path().join("a.folded"), Existing::Keep, Compression::None)?;
/// let unfinished = output.unfinished().map(std::path::Path::to_owned).unwrap_or_default();
/// assert!(unfinished.exists());
/// remove_unfinished();
/// assert!(!unfinished.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove_unfinished() {
    for place in &PLACES {
        let path = match place.try_lock() {
            Ok(place) => place,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => continue,
        };
        if let Some(path) = path.as_deref() {
            let _ = fs::remove_file::<&Path>(path);
        }
    }
}
