//! Processes that are stopped for a sample.

use std::process::{Child, Command};

use borehole_capture::{
    Error, Look, SampleOptions, SampleStatistics, SamplingSession, SegmentMetadata, SessionControl, StopMode,
    Subject,
};
use borehole_model::Tables;
use borehole_process::Stopper;

use crate::fake::{Log, arrived, run, stack};

/// A subject whose reads are torn unless it is stopped.
struct Restless {
    child: Child,
    looks: usize,
}

impl Restless {
    fn start() -> Box<Self> {
        Box::new(Self { child: Command::new("sleep").arg("60").spawn().unwrap(), looks: 0 })
    }
}

impl Drop for Restless {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Subject for Restless {
    fn process(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    fn lanes(&self) -> usize {
        1
    }

    fn forget(&mut self) {}

    fn thread(&self, _lane: usize) -> Option<u64> {
        None
    }

    fn look(&mut self, _lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        self.looks += 1;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let is_still = stat[stat.rfind(')').unwrap()..].starts_with(") t");
        Ok(if is_still { Look::Stack { stack: stack(tables, "still"), omitted: 0 } } else { Look::Torn })
    }

    fn refresh(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

fn options(stop: StopMode) -> SampleOptions {
    SampleOptions { period: None, stop, max_retries: 4, samples: Some(20), ..SampleOptions::default() }
}

#[test]
fn a_process_is_stopped_after_the_retries() {
    let (statistics, _) = run(options(StopMode::WhenTorn), vec![Restless::start()]);
    assert_eq!((statistics.taken, statistics.torn), (20, 0));
    assert_eq!((statistics.stopped, statistics.retried), (20, 80));
}

#[test]
fn a_process_is_stopped_for_every_sample_on_request() {
    let (statistics, _) = run(options(StopMode::Always), vec![Restless::start()]);
    assert_eq!((statistics.taken, statistics.stopped, statistics.retried), (20, 20, 0));
}

#[test]
fn a_process_is_never_stopped_on_request() {
    let duration = Some(std::time::Duration::from_millis(20));
    let (statistics, _) =
        run(SampleOptions { duration, ..options(StopMode::Never) }, vec![Restless::start()]);
    assert_eq!((statistics.taken, statistics.stopped), (0, 0));
    assert!(statistics.torn > 0 && statistics.retried == 4 * statistics.torn, "{statistics:?}");
}

#[test]
fn failed_stops_are_counted_and_retried_later() {
    let subject = Restless::start();
    let mut other = Stopper::new(subject.process());
    let (holds, held) = std::sync::mpsc::channel();
    let shared = SessionControl::default();
    let seen = shared.clone();
    // A process has one tracer at a time.
    let holding = std::thread::spawn(move || {
        let until = |is_enough: fn(&SampleStatistics) -> bool| {
            while !seen.has_ended() && !is_enough(&seen.progress().statistics) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        };
        let stopped = other.stop().unwrap();
        holds.send(()).unwrap();
        until(|statistics| statistics.unstopped >= 5);
        drop(stopped);
        until(|statistics| statistics.stopped >= 5);
        seen.stop();
    });
    held.recv().unwrap();
    let period = Some(std::time::Duration::from_millis(20));
    let options = SampleOptions { period, samples: None, ..options(StopMode::Always) };
    let mut log = Log::default();
    let session = SamplingSession::new(options, SegmentMetadata::default(), &mut log, shared);
    let statistics = session.run(&arrived(vec![subject])).unwrap();
    holding.join().unwrap();
    assert!(statistics.unstopped >= 5 && statistics.stopped >= 5, "{statistics:?}");
    let fact = format!("samples.unstopped={}", statistics.unstopped);
    assert!(log.lines.contains(&fact), "{:?}", log.lines);
}
