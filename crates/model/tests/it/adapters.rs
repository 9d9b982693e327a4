//! Tee, filter, count: every call reaches the right sinks.

use std::io;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Count, Filter, ProfileSink, Sample, Segment, StringId, Tables, Tee, Thread, Warning,
};

/// A sink that records every call, and stops after some samples.
#[derive(Clone, Debug, Default, PartialEq)]
struct Log {
    calls: Vec<String>,
    samples: usize,
    enough: usize,
    fails: bool,
}

impl Log {
    fn until(enough: usize) -> Self {
        Self { enough, ..Self::default() }
    }

    fn note(&mut self, call: String) -> io::Result<()> {
        self.calls.push(call);
        if self.fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl ProfileSink for Log {
    fn sample(&mut self, _at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.note(format!("sample {}", sample.count))?;
        self.samples += 1;
        Ok(if self.samples == self.enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.note(format!("segment {}", at.segment.index))
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        self.note(format!("{} = {}", text(key), text(value)))
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, _name: StringId) -> io::Result<()> {
        self.note(format!("thread {}", thread.number))
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        self.note(format!("warning {}", warning.message))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.note("finish".to_owned())
    }
}

const ALL: [&str; 8] =
    ["segment 0", "k = v", "thread 7", "sample 1", "sample 2", "sample 3", "warning odd", "finish"];

/// Makes every possible call; returns the number of samples after which the sink stopped.
fn play(sink: &mut dyn ProfileSink) -> io::Result<usize> {
    let (mut tables, segment) = (Tables::default(), Segment::default());
    let [key, value] = [b"k", b"v"].map(|text| tables.intern_string(text).unwrap());
    let at = Context { tables: &tables, segment: &segment };
    sink.segment(at)?;
    sink.metadata(at, key, value)?;
    sink.thread(at, Thread { process: None, number: 7 }, key)?;
    let mut taken = 0;
    for count in 1..=3 {
        taken += 1;
        if sink.sample(at, &Sample { count, ..Sample::default() })?.is_break() {
            break;
        }
    }
    sink.warning(&Warning::new("odd"))?;
    sink.finish(&tables)?;
    Ok(taken)
}

#[test]
fn both_sinks_of_a_tee_see_everything() {
    let mut tee = Tee::new(Log::default(), Log::default());
    assert_eq!(play(&mut tee).unwrap(), 3);
    let (first, second) = tee.into_parts();
    assert_eq!(
        (&first.calls[..], &second.calls[..]),
        (&ALL.map(str::to_owned)[..], &ALL.map(str::to_owned)[..])
    );
}

#[test]
fn a_tee_continues_until_both_sinks_stop() {
    let samples = |first, second| {
        let mut tee = Tee::new(Log::until(first), Log::until(second));
        let taken = play(&mut tee).unwrap();
        let (first, second) = tee.into_parts();
        assert_eq!(
            (first.calls.last(), second.calls.last()),
            (Some(&"finish".into()), Some(&"finish".into()))
        );
        (taken, first.samples, second.samples)
    };
    assert_eq!(samples(1, 2), (2, 1, 2));
    assert_eq!(samples(2, 1), (2, 2, 1));
    assert_eq!(samples(1, 9), (3, 1, 3));
    assert_eq!(samples(1, 1), (1, 1, 1));
}

#[test]
fn the_error_of_either_sink_ends_a_tee() {
    let full = || Log { fails: true, ..Log::default() };
    assert!(play(&mut Tee::new(full(), Log::default())).is_err());
    assert!(play(&mut Tee::new(Log::default(), full())).is_err());
}

#[test]
fn a_filter_drops_only_samples() {
    let mut filter = Filter::new(Log::default(), |_: Context<'_>, sample: &Sample<'_>| sample.count == 2);
    assert_eq!(play(&mut filter).unwrap(), 3);
    let kept = ALL.iter().filter(|call| !["sample 1", "sample 3"].contains(call));
    assert_eq!(filter.into_inner().calls, kept.copied().collect::<Vec<_>>());
}

#[test]
fn a_filtered_sink_can_stop_the_reading() {
    let mut filter = Filter::new(Log::until(1), |_: Context<'_>, sample: &Sample<'_>| sample.count > 1);
    assert_eq!(play(&mut filter).unwrap(), 2);
}

#[test]
fn a_count_counts_runs_once_and_in_full() {
    let mut count = Count::default();
    assert_eq!(play(&mut count).unwrap(), 3);
    assert_eq!(count, Count { samples: 6, runs: 3, events: 0, segments: 1, warnings: 1 });
    let (tables, segment) = (Tables::default(), Segment::default());
    let at = Context { tables: &tables, segment: &segment };
    let huge = Sample { count: u64::MAX, ..Sample::default() };
    assert!(count.sample(at, &huge).unwrap().is_continue());
    assert_eq!((count.samples, count.runs), (u64::MAX, 4));
}

/// An adapter that only passes calls on.
struct Between(Log);

impl ProfileSink for Between {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.0)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.sample(at, sample)
    }
}

#[test]
fn adapters_pass_unhandled_calls_on() {
    let (mut between, mut alone) = (Between(Log::default()), Log::default());
    assert_eq!(play(&mut between).unwrap(), play(&mut alone).unwrap());
    assert_eq!(between.0.calls, alone.calls);
    assert_eq!((between.keeps_events(), between.watches_events()), (false, false));
    assert!(!Tee::new(between, Count::default()).keeps_events());
    assert!(Tee::new(Count::default(), Count::default()).keeps_events());
}

#[test]
fn a_borrowed_sink_is_the_sink() {
    let mut log = Log::until(2);
    let mut borrowed: &mut dyn ProfileSink = &mut log;
    assert_eq!(play(&mut borrowed).unwrap(), 2);
    assert_eq!(log.calls.len(), ALL.len() - 1);
}

#[test]
fn a_sample_without_a_process_is_of_its_segments() {
    let (tables, segment) = (Tables::default(), Segment { process: Some(7), ..Segment::default() });
    let at = Context { tables: &tables, segment: &segment };
    assert_eq!(at.process(&Sample::default()), Some(7));
    assert_eq!(at.process(&Sample { process: Some(9), ..Sample::default() }), Some(9));
}
