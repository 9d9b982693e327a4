//! Recorded events are read back.

use std::thread;
use std::time::{Duration, Instant};

use borehole_recorder::{Compression, Handle, Recorder};
use borehole_testkit::Scratch;
use borehole_testkit::allocations::allocations;

use super::{Found, Step, files};

fn record(handle: &Handle, thread: &str, numbers: std::ops::Range<u64>) {
    for number in numbers {
        handle.record_now(|at_ns| Step { at_ns, thread, number });
    }
}

#[test]
fn events_of_all_threads_are_recorded_even_ended_ones() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).metadata("service", "test").start().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|index| {
            let handle = recorder.handle();
            thread::spawn(move || record(&handle, &index.to_string(), 0..10_000))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    record(&recorder.handle(), "main", 0..3);
    let late = recorder.handle();
    let summary = recorder.finish().unwrap();
    record(&late, "late", 0..3);
    assert_eq!((summary.events, summary.lost_events, summary.segments), (40_003, 0, 1));
    let found = Found::in_folder(folder.folder());
    assert_eq!((found.complete, found.warnings, found.steps.len()), (1, 0, 40_003));
    for index in 0..4 {
        assert!(found.numbers(&index.to_string()).into_iter().eq(0..10_000));
    }
    assert!(found.numbers("main").into_iter().eq(0..3));
}

#[test]
fn a_flush_writes_all_events_before_it() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let handle = recorder.handle();
    for round in 1..20 {
        record(&handle, "main", round - 1..round);
        assert!(handle.flush());
        assert!(Found::in_folder(folder.folder()).numbers("main").into_iter().eq(0..round));
    }
}

#[test]
fn a_flush_reports_write_errors() {
    let folder = Scratch::new();
    let traces = folder.folder().join("traces");
    let builder = Recorder::builder(&traces).segment_bytes(1).compression(Compression::None);
    let recorder = builder.flush_every(Duration::from_secs(3600)).start().unwrap();
    let handle = recorder.handle();
    let flushed = |number| {
        record(&handle, "main", number..number + 1);
        handle.flush()
    };
    assert!(flushed(0));
    // Each flush begins a new file, and a file now blocks their folder.
    std::fs::rename(&traces, folder.folder().join("before")).unwrap();
    std::fs::write(&traces, "").unwrap();
    assert!(!flushed(1));
    std::fs::remove_file(&traces).unwrap();
    assert!(flushed(2));
    assert!(recorder.finish().is_err());
    assert!(!flushed(3), "lost events must not be in the file");
    assert_eq!(Found::in_folder(&traces).numbers("main"), [2]);
}

#[test]
fn a_flush_reports_lost_events() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).buffer_bytes(0).start().unwrap();
    let handle = recorder.handle();
    record(&handle, "main", 0..1);
    // The first flush that ends after the loss reports it, even if it was collected before.
    assert!(!handle.flush());
    assert!(handle.flush());
    assert_eq!(recorder.finish().unwrap().lost_events, 1);
}

#[test]
fn two_recordings_of_one_process_do_not_mix() {
    let (first, second) = (Scratch::new(), Scratch::new());
    let recorders = [&first, &second].map(|folder| Recorder::builder(folder.folder()).start().unwrap());
    for (recorder, name) in recorders.iter().zip(["first", "second"]) {
        record(&recorder.handle(), name, 0..2);
    }
    for recorder in recorders {
        recorder.finish().unwrap();
    }
    assert_eq!(Found::in_folder(first.folder()).numbers("first"), [0, 1]);
    assert_eq!(Found::in_folder(second.folder()).numbers("second"), [0, 1]);
    assert_eq!(Found::in_folder(second.folder()).steps.len(), 2);
}

#[test]
fn files_are_rotated_by_size_and_complete() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).segment_bytes(4_000).compression(Compression::None);
    let recorder = builder.start().unwrap();
    let handle = recorder.handle();
    for round in 0..20 {
        record(&handle, "main", round * 100..(round + 1) * 100);
        handle.flush();
    }
    let summary = recorder.finish().unwrap();
    let files = files(folder.folder());
    assert!(files.len() > 3 && files.len() as u64 == summary.segments, "{files:?}");
    assert!(files.iter().all(|path| path.extension().unwrap() == "bin"), "{files:?}");
    let found = Found::in_folder(folder.folder());
    assert!(found.numbers("main").into_iter().eq(0..2_000));
    assert_eq!((found.complete, found.warnings), (files.len(), 0));
}

#[test]
fn files_are_rotated_by_time() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).rotate_every(Duration::from_millis(20));
    let recorder = builder.flush_every(Duration::from_millis(5)).start().unwrap();
    let handle = recorder.handle();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut number = 0;
    // While a segment is compressed, it is in two files, so only compressed ones are counted.
    let done = || files(folder.folder()).iter().filter(|path| path.extension().unwrap() == "gz").count();
    while done() < 3 && Instant::now() < deadline {
        record(&handle, "main", number..number + 1);
        number += 1;
        thread::sleep(Duration::from_millis(1));
    }
    let summary = recorder.finish().unwrap();
    assert!(summary.segments >= 3, "{summary:?}");
    let found = Found::in_folder(folder.folder());
    assert!(found.numbers("main").into_iter().eq(0..number));
    let files = files(folder.folder());
    assert!(files.iter().all(|path| path.extension().unwrap() == "gz"), "{files:?}");
}

#[test]
fn the_oldest_files_make_room() {
    let folder = Scratch::new();
    let budget = 40_000;
    // Files of a killed process count; files of other programs do not.
    let left = ["trace.4194304.0.bin.gz.part", "trace.4194304.1.bin.active"]
        .map(|name| folder.write(name, &[0; 30_000]));
    let foreign = folder.write("notes.0.0.txt", &[0; 50_000]);
    let builder = Recorder::builder(folder.folder()).compression(Compression::None).budget_bytes(budget);
    let recorder = builder.segment_bytes(8_000).start().unwrap();
    let handle = recorder.handle();
    for round in 0..60 {
        record(&handle, "main", round * 100..(round + 1) * 100);
        handle.flush();
    }
    recorder.finish().unwrap();
    assert!(left.iter().all(|path| !path.exists()) && foreign.exists());
    std::fs::remove_file(foreign).unwrap();
    let sizes = files(folder.folder()).iter().map(|path| path.metadata().unwrap().len()).sum::<u64>();
    assert!(sizes <= budget, "{sizes}");
    let numbers = Found::in_folder(folder.folder()).numbers("main");
    assert!(numbers[0] > 0 && numbers.iter().copied().eq(numbers[0]..6_000), "{numbers:?}");
}

#[test]
fn compression_does_not_follow_links() {
    let folder = Scratch::new();
    let precious = folder.write("precious", b"precious");
    let part = folder.path(&format!("trace.{}.0.bin.gz.part", std::process::id()));
    std::os::unix::fs::symlink(&precious, part).unwrap();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    record(&recorder.handle(), "main", 0..3);
    recorder.finish().unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    std::fs::remove_file(precious).unwrap();
    assert_eq!(Found::in_folder(folder.folder()).numbers("main"), [0, 1, 2]);
}

#[test]
fn losses_are_counted_in_the_trace() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).buffer_bytes(2_000).flush_every(Duration::from_secs(1));
    let recorder = builder.start().unwrap();
    record(&recorder.handle(), "main", 0..200_000);
    let summary = recorder.finish().unwrap();
    let found = Found::in_folder(folder.folder());
    assert!(summary.lost_events > 0 && summary.events > 0, "{summary:?}");
    assert_eq!(summary.events + summary.lost_events, 200_000);
    assert_eq!((found.lost_events, found.steps.len() as u64), (summary.lost_events, summary.events));
    assert_eq!(found.warnings, 0);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_at_the_start() {
    let folder = Scratch::new();
    let file = folder.write("file", b"");
    assert!(Recorder::builder(file).start().is_err());
}

#[test]
fn after_warm_up_an_event_allocates_nothing() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let handle = recorder.handle();
    // Two buffers are swapped, so both must have grown.
    for _ in 0..4 {
        record(&handle, "main", 0..2_000);
        assert!(handle.flush());
    }
    let ((), found) = allocations(|| record(&handle, "main", 0..1_000));
    // The event type is defined in each batch, of which there may be two here.
    assert!(found.count <= 8, "{found:?}");
    let ((), found) = allocations(|| record(&handle, "main", 0..100));
    assert!(found.count <= 4, "{found:?}");
}

#[test]
fn the_reference_reads_recordings() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).compression(Compression::None);
    let recorder = builder.start().unwrap();
    record(&recorder.handle(), "main", 0..100);
    recorder.finish().unwrap();
    let trace = std::fs::read(&files(folder.folder())[0]).unwrap();
    let mut decoder = dial9_trace_format::decoder::Decoder::new(&trace).unwrap();
    let mut names = Vec::new();
    decoder.for_each_event(|event| names.push(event.name.to_owned())).unwrap();
    assert_eq!(names.len(), 3 + 100 + 2, "{names:?}");
    assert_eq!(names[..4], ["ClockSyncEvent", "SegmentMetadataEvent", "ClockSyncEvent", "Step"]);
    assert_eq!(names[103..], ["SegmentMetadataEvent", "ClockSyncEvent"]);
}
