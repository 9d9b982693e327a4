//! Recordings, read back: whole, rotated, lossy, and of processes that were killed.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod dumps;
mod ends;
mod recording;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use borehole_recorder::EventsLostEvent;
use borehole_recorder::trc::{Reader, TraceEvent, TypedEvents};

/// An event that differs from all others.
#[derive(TraceEvent, Debug, PartialEq)]
struct Step<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    thread: &'a str,
    number: u64,
}

/// The contents of a folder of recordings.
#[derive(Debug, Default)]
struct Found {
    steps: Vec<(String, u64)>,
    lost_events: u64,
    warnings: usize,
    /// The number of sealed files.
    complete: usize,
}

impl Found {
    fn in_folder(folder: &Path) -> Self {
        let mut found = Self::default();
        files(folder).iter().for_each(|path| found.add(path));
        found
    }

    fn add(&mut self, path: &Path) {
        let mut reader = Reader::new(File::open(path).unwrap());
        let mut typed = TypedEvents::default();
        let mut before = String::new();
        while let Some(event) = reader.next_event().unwrap() {
            let first = if before.is_empty() { "ClockSyncEvent" } else { event.name() };
            assert_eq!(event.name(), first, "{}", path.display());
            if before == "SegmentMetadataEvent" {
                assert_eq!(event.name(), "ClockSyncEvent", "{}", path.display());
            }
            event.name().clone_into(&mut before);
            if let Some(step) = typed.read::<Step<'_>>(&event).unwrap() {
                self.steps.push((step.thread.to_owned(), step.number));
            } else if let Some(lost) = typed.read::<EventsLostEvent<'_>>(&event).unwrap() {
                self.lost_events += lost.lost_events;
            } else {
                self.complete += usize::from(is_end(&event));
            }
        }
        self.warnings += reader.recovery().warnings.len();
    }

    /// The numbers of a thread, in the order of the files.
    fn numbers(&self, thread: &str) -> Vec<u64> {
        self.steps.iter().filter(|step| step.0 == thread).map(|step| step.1).collect()
    }
}

/// Whether an event marks the file as complete.
fn is_end(event: &borehole_recorder::trc::Event<'_>) -> bool {
    use borehole_recorder::trc::Value;
    match event.value_of("entries") {
        Some(Value::TextMap(mut entries)) => {
            entries.any(|(key, value)| key == b"segment.complete" && value == b"true")
        }
        _ => false,
    }
}

/// The files of a folder, in the order of their numbers.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let number = |path: &PathBuf| -> u64 {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.split('.').nth(2).unwrap().parse().unwrap()
    };
    files.sort_by_key(number);
    files
}
