//! Rings in memory that are written when something happens, and metadata.

use std::fs::{self, File};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use borehole_recorder::trc::{Reader, Value};
use borehole_recorder::{Compression, Handle, Recorder, Source, SourceState, TailLatency};
use borehole_testkit::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::ends::{into, start, wait_for};
use super::{Found, Step, files};

fn record(handle: &Handle, numbers: std::ops::Range<u64>) {
    for number in numbers {
        handle.record_now(|at_ns| Step { at_ns, thread: "main", number });
    }
}

/// The last value of a key of the metadata in the file.
fn metadata(file: &Path, key: &str) -> Option<String> {
    let mut found = None;
    let mut reader = Reader::new(File::open(file).unwrap());
    while let Some(event) = reader.next_event().unwrap() {
        if let Some(Value::TextMap(mut entries)) = event.value_of("entries") {
            let value = entries.find(|(entry, _)| *entry == key.as_bytes());
            found = value.map(|(_, value)| String::from_utf8(value.to_vec()).unwrap());
        }
    }
    found
}

#[test]
fn a_ring_is_written_when_it_is_asked_for_and_only_once() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).ring_bytes(1 << 20).start().unwrap();
    let handle = recorder.handle();
    record(&handle, 0..100);
    assert!(handle.flush());
    assert!(files(folder.folder()).is_empty());
    assert!(handle.dump("first"));
    record(&handle, 100..150);
    assert!(handle.dump("second"));
    record(&handle, 150..200);
    let summary = recorder.finish().unwrap();
    assert_eq!((summary.events, summary.dumps, summary.segments), (150, 2, 2));
    let files = files(folder.folder());
    let reasons = files.iter().map(|file| metadata(file, "dump.reason").unwrap()).collect::<Vec<_>>();
    assert_eq!(reasons, ["first", "second"]);
    let found = Found::in_folder(folder.folder());
    assert!(found.numbers("main").into_iter().eq(0..150));
    assert_eq!((found.complete, found.warnings), (2, 0));
}

#[test]
fn a_ring_has_the_newest_events() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).ring_bytes(20_000).start().unwrap();
    let handle = recorder.handle();
    for round in 0..100 {
        record(&handle, round * 100..(round + 1) * 100);
        assert!(handle.flush());
    }
    assert!(handle.dump("end"));
    recorder.finish().unwrap();
    let numbers = Found::in_folder(folder.folder()).numbers("main");
    assert!(numbers[0] > 5_000 && numbers.iter().copied().eq(numbers[0]..10_000), "{}", numbers[0]);
    let size: u64 = files(folder.folder()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(size < 40_000, "{size}");
}

#[test]
fn without_a_ring_a_dump_completes_the_file() {
    let folder = Scratch::new();
    let (sender, completed) = mpsc::channel();
    let builder =
        Recorder::builder(folder.folder()).on_complete(move |path| drop(sender.send(path.to_owned())));
    let recorder = builder.start().unwrap();
    let handle = recorder.handle();
    record(&handle, 0..10);
    assert!(handle.dump("a look"));
    let first = completed.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(first, files(folder.folder())[0]);
    assert_eq!(metadata(&first, "dump.reason").as_deref(), Some("a look"));
    record(&handle, 10..20);
    recorder.finish().unwrap();
    let second = completed.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(metadata(&second, "dump.reason"), None);
    assert!(Found::in_folder(folder.folder()).numbers("main").into_iter().eq(0..20));
}

#[test]
fn triggers_dump_once_and_the_rest_are_counted() {
    let folder = Scratch::new();
    let builder =
        Recorder::builder(folder.folder()).ring_bytes(1 << 20).dump_every(Duration::from_secs(3600));
    let recorder = builder.start().unwrap();
    let handle = recorder.handle();
    record(&handle, 0..10);
    let latency = TailLatency::new(handle.clone(), "checkout", Duration::from_millis(5));
    let exceeded = (0..3_000)
        .filter(|number| latency.observe(Duration::from_millis(if number % 20 == 0 { 9 } else { 1 })));
    assert!(exceeded.count() > 1);
    assert!(!handle.trigger("again"));
    assert!(handle.flush());
    let summary = recorder.finish().unwrap();
    assert_eq!(summary.dumps, 1);
    assert!(summary.skipped_dumps >= 2, "{summary:?}");
    let reason = metadata(&files(folder.folder())[0], "dump.reason").unwrap();
    assert_eq!(reason, "p99 of checkout over 5ms");
}

#[test]
fn signals_and_panics_write_the_ring() {
    if let Some(folder) = into() {
        let recorder = Recorder::builder(folder).ring_bytes(1 << 20).start().unwrap();
        recorder.finish_on_signals().unwrap();
        recorder.dump_on_signal(Signal::SIGUSR1 as i32).unwrap();
        record(&recorder.handle(), 0..10);
        // The second one comes too soon.
        for _ in 0..2 {
            assert!(thread::spawn(|| panic!("this is part of the test")).join().is_err());
        }
        record(&recorder.handle(), 10..20);
        println!("\nflushed 0");
        loop {
            thread::park();
        }
    }
    let folder = Scratch::new();
    let (mut child, mut output) = start("dumps::signals_and_panics_write_the_ring", folder.folder());
    wait_for(&mut output, 0);
    let process = Pid::from_raw(child.id().try_into().unwrap());
    let reasons = || -> Vec<String> {
        let files = files(folder.folder());
        let files = files.iter().filter(|file| file.extension().is_some_and(|end| end == "gz"));
        files.map(|file| metadata(file, "dump.reason").unwrap()).collect()
    };
    kill(process, Signal::SIGUSR1).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while reasons().len() < 2 && std::time::Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    kill(process, Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    assert_eq!(reasons(), ["panic", "SIGUSR1", "SIGTERM"]);
    assert!(Found::in_folder(folder.folder()).numbers("main").into_iter().eq(0..20));
}

#[test]
fn metadata_that_change_are_in_the_file_of_a_process_that_is_killed() {
    let folder = Scratch::new();
    let builder = Recorder::builder(folder.folder()).metadata("service", "shop");
    let recorder = builder.compression(Compression::None).start().unwrap();
    let handle = recorder.handle();
    assert!(handle.set_metadata("runtime.main", "0,1"));
    // The first flush may be under way, and have looked already.
    assert!(handle.flush() && handle.flush());
    let file = &files(folder.folder())[0];
    assert!(file.extension().unwrap() == "active");
    for (key, value) in
        [("service", "shop"), ("runtime.main", "0,1"), ("pid", &std::process::id().to_string())]
    {
        assert_eq!(metadata(file, key).as_deref(), Some(value));
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert_eq!(metadata(file, "boot_id").as_deref(), Some(boot.trim()));
    assert!(metadata(file, "host").is_some());
}

/// Counts its measurements, and does not survive the third.
struct Fragile(u64);

impl Source for Fragile {
    fn name(&self) -> &'static str {
        "fragile"
    }

    fn interval(&self) -> Duration {
        Duration::ZERO
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        record(handle, self.0..self.0 + 1);
        self.0 += 1;
        assert!(self.0 < 3, "this is part of the test");
        SourceState::Continues
    }
}

#[test]
fn a_source_that_panics_ends_alone() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let handle = recorder.handle();
    handle.add_source(Box::new(Fragile(0))).unwrap();
    // Another one goes on after that.
    let (sender, receiver) = mpsc::channel();
    struct Ticks(mpsc::Sender<()>);
    impl Source for Ticks {
        fn name(&self) -> &'static str {
            "ticks"
        }
        fn interval(&self) -> Duration {
            Duration::from_millis(5)
        }
        fn sample(&mut self, _: &Handle) -> SourceState {
            if self.0.send(()).is_ok() { SourceState::Continues } else { SourceState::Ended }
        }
    }
    handle.add_source(Box::new(Ticks(sender))).unwrap();
    (0..20).for_each(|_| receiver.recv_timeout(Duration::from_secs(60)).unwrap());
    recorder.finish().unwrap();
    assert_eq!(Found::in_folder(folder.folder()).numbers("main"), [0, 1, 2]);
    assert_eq!(metadata(&files(folder.folder())[0], "source.fragile.panicked").as_deref(), Some("true"));
}
