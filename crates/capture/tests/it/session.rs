//! The samples that a session requests, counts and writes.

use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use borehole_capture::{
    Grouping, Idle, SampleOptions, SamplingSession, SegmentMetadata, SessionControl, StopMode, Subject,
};

use crate::fake::Act::{Deep, Failed, Gone, Idle as Idles, Stack, Torn};
use crate::fake::{Fake, Log, run};

fn fast() -> SampleOptions {
    SampleOptions { period: None, stop: StopMode::Never, max_retries: 2, ..SampleOptions::default() }
}

#[test]
fn every_look_is_counted_by_its_result() {
    let script = [Stack, Idles, Torn, Stack, Torn, Torn, Torn, Failed, Deep, Torn, Torn, Idles, Gone];
    let (statistics, log) = run(fast(), vec![Fake::boxed(7, &script)]);
    assert_eq!((statistics.taken, statistics.idle, statistics.torn), (3, 2, 1));
    assert_eq!((statistics.failed, statistics.retried, statistics.truncated), (2, 5, 1));
    assert_eq!((statistics.stopped, statistics.attached, statistics.missed), (0, 1, 0));
    let wanted = [
        "segment 0 pid=7 test=yes fake=yes",
        "main",
        "main",
        "deep",
        "samples.asked=8",
        "samples.taken=3",
        "samples.idle=2",
        "samples.torn=1",
        "samples.failed=2",
        "samples.retried=5",
        "samples.truncated=1",
        "finish",
    ];
    assert_eq!(log.lines, wanted);
    assert!(log.flushes > 0);
}

#[test]
fn idle_processes_are_sampled_on_request() {
    let options = SampleOptions { idle: Idle::Sample, ..fast() };
    let (statistics, log) = run(options, vec![Fake::boxed(7, &[Idles, Stack, Idles, Gone])]);
    assert_eq!(log.lines[1..4], ["<idle>", "main", "<idle>"]);
    assert_eq!((statistics.taken, statistics.idle), (1, 2));
}

#[test]
fn each_sample_names_its_process() {
    let first: Vec<_> = [Stack; 3].into_iter().chain([Gone]).collect();
    let (statistics, log) = run(fast(), vec![Fake::boxed(7, &first), Fake::boxed(8, &[Stack, Gone])]);
    assert_eq!(log.lines[0], "segment 0 pid=7 pid=8 test=yes fake=yes");
    assert_eq!(log.lines[1..5], ["main of 7", "main of 8", "main of 7", "main of 7"]);
    assert_eq!((statistics.attached, statistics.failed), (2, 2));
}

#[test]
fn a_segment_begins_with_each_process_that_arrives() {
    let (sender, arrivals) = mpsc::channel();
    sender.send(Fake::boxed(7, &[Stack, Gone])).unwrap();
    let shared = SessionControl::default();
    let progress = shared.clone();
    let send_later = std::thread::spawn(move || {
        while progress.progress().statistics.failed == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        sender.send(Fake::boxed(8, &[Deep, Gone])).unwrap();
    });
    let mut log = Log::default();
    let statistics =
        SamplingSession::new(fast(), SegmentMetadata::default(), &mut log, shared).run(&arrivals).unwrap();
    send_later.join().unwrap();
    assert_eq!(statistics.attached, 2);
    let samples = |line: &&String| !line.starts_with("samples.");
    let lines: Vec<_> = log.lines.iter().filter(samples).collect();
    assert_eq!(lines, ["segment 0 pid=7 fake=yes", "main", "segment 1 pid=8 fake=yes", "deep", "finish"]);
    // Each process has its own counts.
    assert_eq!(log.lines.iter().filter(|line| *line == "samples.taken=1").count(), 2);
}

#[test]
fn a_bundle_is_one_segment_and_names_the_process_in_each_sample() {
    let options = SampleOptions { grouping: Grouping::Bundled, ..fast() };
    let (_, log) = run(options, vec![Fake::boxed(7, &[Stack, Gone])]);
    assert_eq!(log.lines[..2], ["segment 0 test=yes", "main of 7"]);
}

#[test]
fn a_session_ends_at_its_limits() {
    let forever = || Fake::boxed(7, &[Stack; 100_000]);
    let (statistics, _) = run(SampleOptions { samples: Some(10), ..fast() }, vec![forever()]);
    assert_eq!(statistics.taken, 10);
    let period = Some(Duration::from_millis(1));
    let duration = Some(Duration::from_millis(50));
    let (statistics, _) = run(SampleOptions { period, duration, ..fast() }, vec![forever()]);
    assert!(statistics.elapsed_ns >= 50_000_000);
    assert!(statistics.asked >= 49, "{statistics:?}");
}

#[test]
fn a_period_of_zero_is_absent() {
    let options = SampleOptions { period: Some(Duration::ZERO), samples: Some(1000), ..fast() };
    let (statistics, _) = run(options, vec![Fake::boxed(7, &[Stack; 1000])]);
    assert_eq!((statistics.asked, statistics.missed), (1000, 0));
}

#[test]
fn a_stopped_session_ends_properly() {
    let shared = SessionControl::default();
    let stop = shared.clone();
    let (sender, arrivals) = mpsc::channel::<Box<dyn Subject>>();
    sender.send(Fake::boxed(7, &[Stack; 10])).unwrap();
    let stopper = std::thread::spawn(move || {
        while stop.progress().processes.is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.stop();
        stop
    });
    let options = SampleOptions { period: Some(Duration::from_secs(3600)), ..fast() };
    let (mut log, start) = (Log::default(), Instant::now());
    let statistics =
        SamplingSession::new(options, SegmentMetadata::default(), &mut log, shared).run(&arrivals).unwrap();
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!((statistics.taken, statistics.missed), (1, 0));
    assert_eq!(log.lines.last().unwrap(), "finish");
    assert!(stopper.join().unwrap().has_ended());
}

#[test]
fn recordings_end_and_flush_in_time_between_samples() {
    let period = Some(Duration::from_secs(3600));
    let duration = Some(Duration::from_millis(1500));
    let start = Instant::now();
    let (statistics, log) =
        run(SampleOptions { period, duration, ..fast() }, vec![Fake::boxed(7, &[Stack; 9])]);
    assert!((Duration::from_millis(1500)..Duration::from_secs(60)).contains(&start.elapsed()));
    assert_eq!((statistics.taken, statistics.asked), (1, 1));
    assert!(log.flushes > 0);
    assert!(statistics.elapsed_ns >= 1_500_000_000);
}

#[test]
fn ended_processes_are_released_between_samples() {
    let mut child = Command::new("sleep").arg("0.2").spawn().unwrap();
    let subject = Fake::boxed(child.id().try_into().unwrap(), &[Stack; 9]);
    let waiting = std::thread::spawn(move || child.wait().unwrap());
    let start = Instant::now();
    let options = SampleOptions { period: Some(Duration::from_secs(3600)), ..fast() };
    let (statistics, _) = run(options, vec![subject]);
    assert!(start.elapsed() < Duration::from_secs(60));
    assert_eq!(statistics.taken, 1);
    assert!(waiting.join().unwrap().success());
}

#[test]
fn missed_deadlines_are_counted_and_not_repeated() {
    struct Slow(Box<dyn Subject>);
    impl Subject for Slow {
        fn process(&self) -> i32 {
            self.0.process()
        }
        fn lanes(&self) -> usize {
            self.0.lanes()
        }
        fn forget(&mut self) {}
        fn thread(&self, lane: usize) -> Option<u64> {
            self.0.thread(lane)
        }
        fn look(
            &mut self,
            lane: usize,
            tables: &mut borehole_model::Tables,
        ) -> Result<borehole_capture::Look, borehole_capture::Error> {
            std::thread::sleep(Duration::from_millis(10));
            self.0.look(lane, tables)
        }
        fn refresh(&mut self) -> Result<(), borehole_capture::Error> {
            self.0.refresh()
        }
        fn facts(&self) -> Vec<(String, String)> {
            self.0.facts()
        }
    }
    let options = SampleOptions { period: Some(Duration::from_millis(1)), ..fast() };
    let slow = Box::new(Slow(Fake::boxed(7, &[Stack, Stack, Stack, Gone])));
    let (statistics, _) = run(options, vec![slow]);
    assert_eq!((statistics.taken, statistics.failed), (3, 1));
    assert!(statistics.missed >= 3 * 8, "{statistics:?}");
}

#[test]
fn segments_rotate_by_time() {
    let options = SampleOptions {
        period: Some(Duration::from_millis(10)),
        rotate: Some(Duration::from_millis(1)),
        duration: Some(Duration::from_millis(1300)),
        ..fast()
    };
    let (_, log) = run(options, vec![Fake::boxed(7, &[Stack; 100_000])]);
    // The session looks after its processes twice a second.
    let segments = log.lines.iter().filter(|line| line.starts_with("segment")).count();
    assert_eq!(segments, 3, "{:?}", log.lines);
}
