//! Facts about the process and the recording, which each file states.

use std::fs;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::trc::dial9::metadata;

/// Keys and values, and whether a file has yet to be told of a change.
pub(crate) struct Metadata(Mutex<MetadataEntries>);

#[derive(Default)]
struct MetadataEntries {
    entries: Vec<(String, String)>,
    has_changed: bool,
}

/// The maximum number of keys: a key that changes forever must not fill the memory.
const MOST_KEYS: usize = 1_000;

impl Metadata {
    /// The facts that tell this process from all others, and then those that the program gave.
    pub(crate) fn of_process(given: &[(String, String)]) -> Self {
        let facts = [
            (metadata::HOST, read("/proc/sys/kernel/hostname")),
            (metadata::BOOT, read("/proc/sys/kernel/random/boot_id")),
            (metadata::PROCESS, Some(process::id().to_string())),
        ];
        let this = Self(Mutex::default());
        for (key, value) in facts {
            if let Some(value) = value {
                this.set(key, &value);
            }
        }
        for (key, value) in given {
            this.set(key, value);
        }
        // The first file begins with them.
        this.lock().has_changed = false;
        this
    }

    /// Sets the value of a key. Returns whether that changed anything.
    pub(crate) fn set(&self, key: &str, value: &str) -> bool {
        let mut metadata = self.lock();
        let count = metadata.entries.len();
        match metadata.entries.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) if entry.1 == value => return false,
            Some(entry) => value.clone_into(&mut entry.1),
            None if count >= MOST_KEYS => return false,
            None => metadata.entries.push((key.to_owned(), value.to_owned())),
        }
        metadata.has_changed = true;
        true
    }

    pub(crate) fn entries(&self) -> Vec<(String, String)> {
        self.lock().entries.clone()
    }

    /// The entries, if they have changed since the previous call.
    pub(crate) fn take_changed(&self) -> Option<Vec<(String, String)>> {
        let mut metadata = self.lock();
        std::mem::take(&mut metadata.has_changed).then(|| metadata.entries.clone())
    }

    fn lock(&self) -> MutexGuard<'_, MetadataEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a small file of the system; `None` on systems without it.
fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_has_the_last_word_and_a_change_is_told_once() {
        let given = [("service".to_owned(), "shop".to_owned()), ("pid".to_owned(), "7".to_owned())];
        let metadata = Metadata::of_process(&given);
        let value = |key| metadata.entries().into_iter().find(|entry| entry.0 == key).map(|entry| entry.1);
        assert_eq!((value("service").as_deref(), value("pid").as_deref()), (Some("shop"), Some("7")));
        assert!(value("host").is_some() || !cfg!(target_os = "linux"));
        assert_eq!(metadata.take_changed(), None);
        assert!(metadata.set("runtime.main", "0,1") && !metadata.set("runtime.main", "0,1"));
        assert_eq!(metadata.take_changed().unwrap().last().unwrap().1, "0,1");
        assert_eq!(metadata.take_changed(), None);
        let set = (0..2 * MOST_KEYS).filter(|key| metadata.set(&key.to_string(), ""));
        assert!(set.count() < MOST_KEYS);
        assert_eq!(metadata.entries().len(), MOST_KEYS);
    }
}
