//! Sorting of events by time, in bounded memory.

mod event;
mod runs;
mod sample;
mod segments;

use std::io;
use std::ops::ControlFlow;

use borehole_formats::{Export, Losses};
use borehole_model::{Context, Event, ProfileSink, Sample, Segment, ShapeId, StringId, Tables, Thread};

use self::runs::Runs;
use self::sample::SampleIds;
use self::segments::Segments;

/// Passes events on in order of time: those without a time first, equal ones in their original order.
///
/// The events of a source are passed on when the next one begins, as one segment. Samples pass unsorted, or are sorted like
/// events ([`with_samples`](Self::with_samples)), so that those of a tick, which share a time, are adjacent. If samples of
/// several segments alternate, so do the segments: a sample stays in the segment that it was read in.
///
/// Memory: a fixed number of bytes for sorting; the rest waits in temporary files. For sorted samples, their segments and
/// late metadata stay in memory.
///
/// # Examples
///
/// ```
/// use std::ops::ControlFlow;
/// use borehole::SortByTime;
/// use borehole::model::{Context, Event, ProfileSink, Sample, Segment, Shape, Tables};
///
/// #[derive(Default)]
/// struct Times(Vec<Option<u64>>);
///
/// impl ProfileSink for Times {
///     fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> std::io::Result<ControlFlow<()>> {
///         Ok(ControlFlow::Continue(()))
///     }
///     fn event(&mut self, _: Context<'_>, event: &Event<'_>) -> std::io::Result<ControlFlow<()>> {
///         self.0.push(event.time_ns);
///         Ok(ControlFlow::Continue(()))
///     }
/// }
///
/// let (mut tables, segment) = (Tables::default(), Segment::default());
/// let name = tables.intern_string(b"tick")?;
/// let shape = tables.intern_shape(&Shape { name, fields: Vec::new(), annotations: Vec::new() })?;
/// let mut sorted = SortByTime::new(Times::default());
/// for time_ns in [Some(30), Some(10), None, Some(20)] {
///     let at = Context { tables: &tables, segment: &segment };
///     let _ = sorted.event(at, &Event { shape, type_id: None, time_ns, values: &[] })?;
/// }
/// sorted.finish(&tables)?;
/// assert_eq!(sorted.into_inner().0, [None, Some(10), Some(20), Some(30)]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SortByTime<S> {
    sink: S,
    runs: Runs,
    /// The waiting samples, if samples are sorted.
    samples: Option<Runs>,
    /// The segments of those samples, and their late metadata.
    segments: Vec<Segment>,
    /// The index of the incoming samples' segment; `None` before it was announced.
    current: Option<usize>,
    late_metadata: Vec<(usize, (StringId, StringId))>,
    /// The first segment of the source.
    segment: Option<Segment>,
    /// The name of a source whose events have not been passed on.
    next_source: Option<String>,
    /// Whether the sink has had enough.
    is_done: bool,
}

impl<S: ProfileSink> SortByTime<S> {
    /// Creates a sorter in front of `sink`.
    pub fn new(sink: S) -> Self {
        Self::with_memory(sink, runs::MEMORY_BYTES)
    }

    fn with_memory(sink: S, bytes: usize) -> Self {
        Self {
            sink,
            runs: Runs::new(bytes),
            samples: None,
            segments: Vec::new(),
            current: None,
            late_metadata: Vec::new(),
            segment: None,
            next_source: None,
            is_done: false,
        }
    }

    /// Sorts samples too.
    #[must_use]
    pub fn with_samples(self) -> Self {
        let samples = Some(Runs::new(self.runs.memory_bytes()));
        Self { samples, ..self }
    }

    /// The sink.
    pub fn into_inner(self) -> S {
        self.sink
    }

    /// Passes on everything that waits.
    fn drain(&mut self, tables: &Tables) -> io::Result<()> {
        self.drain_samples(tables)?;
        let segment = self.segment.take().unwrap_or_default();
        let at = Context { tables, segment: &segment };
        let runs = std::mem::take(&mut self.runs);
        self.runs = Runs::new(runs.memory_bytes());
        if runs.is_empty() || self.is_done {
            return Ok(());
        }
        if self.sink.keeps_events() {
            self.sink.segment(at)?;
        }
        let (sink, shapes) = (&mut self.sink, tables.shape_ids().collect::<Vec<ShapeId>>());
        let pass =
            |time_ns, bytes: &[u8]| sink.event(at, &event::decode(bytes, time_ns, &shapes, &mut Vec::new())?);
        self.is_done = runs.each(pass)?.is_break();
        Ok(())
    }

    fn drain_samples(&mut self, tables: &Tables) -> io::Result<()> {
        let Some(samples) = &mut self.samples else { return Ok(()) };
        let empty = Runs::new(samples.memory_bytes());
        let samples = std::mem::replace(samples, empty);
        let mut segments = self.take_segments();
        if self.is_done {
            return Ok(());
        }
        let (sink, ids, mut values) = (&mut self.sink, SampleIds::of(tables), Vec::new());
        let pass = |_key, bytes: &[u8]| {
            let (place, sample) = sample::decode(bytes, &ids, &mut values)?;
            let segment = segments.enter(place, tables, sink)?;
            sink.sample(Context { tables, segment }, &sample)
        };
        self.is_done = samples.each(pass)?.is_break();
        if self.is_done { Ok(()) } else { segments.enter_others(tables, &mut self.sink) }
    }

    fn take_segments(&mut self) -> Segments {
        self.current = None;
        let mut segments = std::mem::take(&mut self.segments);
        for (place, pair) in self.late_metadata.drain(..) {
            segments[place].metadata.push(pair);
        }
        Segments::new(segments)
    }

    /// The index of a segment among those of the waiting samples.
    fn place(&mut self, segment: &Segment) -> usize {
        if self.segments.last() != Some(segment) {
            self.segments.push(segment.clone());
        }
        self.segments.len() - 1
    }

    /// Begins the announced source, now that its tables are available.
    fn begin_source(&mut self, tables: &Tables) -> io::Result<()> {
        let Some(name) = self.next_source.take() else { return Ok(()) };
        self.drain(tables)?;
        self.sink.source(&name)
    }

    const fn flow(&self) -> ControlFlow<()> {
        if self.is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl<S: ProfileSink> ProfileSink for SortByTime<S> {
    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut self.sink)
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.begin_source(at.tables)?;
        if self.samples.is_none() {
            return self.sink.sample(at, sample);
        }
        let place = self.current.unwrap_or_else(|| self.place(at.segment));
        if let Some(samples) = &mut self.samples {
            let key = sample::time_key(at.segment, sample);
            samples.push(key, |out| sample::encode(out, place, sample))?;
        }
        Ok(self.flow())
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.begin_source(at.tables)?;
        self.segment.get_or_insert_with(|| at.segment.clone());
        self.runs.push(event.time_ns, |out| event::encode(out, event))?;
        Ok(self.flow())
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next_source = Some(name.to_owned());
        Ok(())
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.begin_source(at.tables)?;
        self.current = None;
        // A sink that keeps events gets the segments of a trace as one.
        if self.sink.keeps_events() && at.segment.format == "trc" {
            return Ok(());
        }
        if self.samples.is_none() {
            return self.sink.segment(at);
        }
        self.current = Some(self.place(at.segment));
        Ok(())
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.begin_source(at.tables)?;
        if self.samples.is_none() {
            return self.sink.metadata(at, key, value);
        }
        // The call may have set the segment's process.
        let place = self.place(at.segment);
        self.current = Some(place);
        self.late_metadata.push((place, (key, value)));
        Ok(())
    }

    fn thread(&mut self, at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.begin_source(at.tables)?;
        self.sink.thread(at, thread, name)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.begin_source(tables)?;
        self.drain(tables)?;
        self.sink.finish(tables)
    }
}

impl<S: Export> Export for SortByTime<S> {
    fn losses(&self) -> Losses {
        self.sink.losses()
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Shape, Value};

    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(Option<u64>, String)>);

    impl ProfileSink for Seen {
        fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            Ok(ControlFlow::Continue(()))
        }

        fn event(&mut self, _: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push((event.time_ns, format!("{:?}", event.values)));
            Ok(ControlFlow::Continue(()))
        }

        fn source(&mut self, name: &str) -> io::Result<()> {
            self.0.push((None, name.to_owned()));
            Ok(())
        }
    }

    /// Twenty thousand events through a few hundred bytes: more runs than are kept apart.
    #[test]
    fn many_runs_come_out_as_one_and_equal_times_keep_their_order() {
        let (mut tables, segment) = (Tables::default(), Segment::default());
        let name = tables.intern_string(b"tick").unwrap();
        let shape =
            tables.intern_shape(&Shape { name, fields: Vec::new(), annotations: Vec::new() }).unwrap();
        let mut sorted = SortByTime::with_memory(Seen::default(), 600);
        let mut expected = Vec::new();
        for number in 0..20_000_u64 {
            let time_ns = (number % 7 > 0).then_some(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54);
            let values = [Value::Unsigned(number)];
            let at = Context { tables: &tables, segment: &segment };
            let _ = sorted.event(at, &Event { shape, type_id: Some(1), time_ns, values: &values }).unwrap();
            expected.push((time_ns, format!("{values:?}")));
        }
        expected.sort_by_key(|&(time_ns, _)| time_ns);
        sorted.finish(&tables).unwrap();
        assert_eq!(sorted.into_inner().0, expected);
    }

    /// The times and threads of samples.
    #[derive(Default)]
    struct Samples(Vec<(Option<i64>, u64, Vec<i64>)>);

    impl ProfileSink for Samples {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            assert_eq!(at.segment.period_ns, sample.interpreter);
            assert_eq!((sample.stack, sample.delta_us, sample.count), (None, None, 3));
            self.0.push((sample.time_ns, sample.thread.unwrap(), sample.values.to_vec()));
            Ok(ControlFlow::Continue(()))
        }
    }

    #[test]
    fn samples_of_all_threads_are_sorted_and_those_of_a_tick_keep_their_order() {
        let tables = Tables::default();
        let mut sorted = SortByTime::with_memory(Samples::default(), 2000).with_samples();
        let mut expected = Vec::new();
        for thread in 0..4_u64 {
            let segment = Segment { period_ns: Some(thread), ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            for tick in -500..500 {
                let values = [tick];
                let sample = Sample {
                    count: 3,
                    time_ns: Some(tick),
                    delta_us: Some(1),
                    thread: Some(thread),
                    interpreter: Some(thread),
                    values: &values,
                    ..Sample::default()
                };
                let _ = sorted.sample(at, &sample).unwrap();
                expected.push((Some(tick), thread, vec![tick]));
            }
        }
        sorted.finish(&tables).unwrap();
        expected.sort();
        assert_eq!(sorted.into_inner().0, expected);
    }

    /// The last announced segment, and for each sample its time, period and origin.
    #[derive(Default)]
    struct Announced {
        last: Option<Segment>,
        announced: u64,
        processes: Vec<i64>,
        seen: Vec<(Option<i64>, Option<u64>, u64, usize)>,
    }

    impl ProfileSink for Announced {
        fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
            self.last = Some(at.segment.clone());
            self.announced += 1;
            Ok(())
        }

        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            assert_eq!(self.last.as_ref().and_then(|last| last.period_ns), at.segment.period_ns);
            self.processes.extend(at.segment.process);
            let Segment { period_ns, index, metadata, .. } = at.segment;
            self.seen.push((sample.time_ns, *period_ns, *index, metadata.len()));
            Ok(ControlFlow::Continue(()))
        }
    }

    #[test]
    fn the_segment_of_a_sample_is_announced_before_it_and_its_metadata_once() {
        let mut tables = Tables::default();
        let word = tables.intern_string(b"word").unwrap();
        let mut sorted = SortByTime::new(Announced::default()).with_samples();
        for (period_ns, times_ns) in [(1, [10, 20, 50]), (2, [30, 40, 60])] {
            let metadata = vec![(word, word)];
            let segment = Segment { period_ns: Some(period_ns), metadata, ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            sorted.segment(at).unwrap();
            for time_ns in times_ns.map(Some) {
                let _ = sorted.sample(at, &Sample { count: 1, time_ns, ..Sample::default() }).unwrap();
            }
            sorted.metadata(at, word, word).unwrap();
        }
        let without_samples = Segment { period_ns: Some(3), ..Segment::default() };
        sorted.segment(Context { tables: &tables, segment: &without_samples }).unwrap();
        sorted.finish(&tables).unwrap();
        let Announced { last, seen, .. } = sorted.into_inner();
        let first = [(Some(10), Some(1), 0, 2), (Some(20), Some(1), 0, 2)];
        let then = [(Some(30), Some(2), 1, 2), (Some(40), Some(2), 1, 2)];
        assert_eq!(
            seen,
            [&first[..], &then, &[(Some(50), Some(1), 2, 0), (Some(60), Some(2), 3, 0)]].concat()
        );
        assert_eq!(last.map(|last| (last.period_ns, last.index)), Some((Some(3), 4)));
    }

    #[test]
    fn processes_that_are_treated_the_same_come_in_turn_without_further_segments() {
        let tables = Tables::default();
        let mut sorted = SortByTime::new(Announced::default()).with_samples();
        for process in [1, 2] {
            let segment = Segment { process: Some(process), ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            for time_ns in (0..100).map(Some) {
                let _ = sorted.sample(at, &Sample { count: 1, time_ns, ..Sample::default() }).unwrap();
            }
        }
        sorted.finish(&tables).unwrap();
        let Announced { announced, processes, .. } = sorted.into_inner();
        assert_eq!((announced, processes), (2, [1, 2].repeat(100)));
    }

    #[test]
    fn a_process_that_metadata_name_is_that_of_the_samples_behind_them() {
        let mut tables = Tables::default();
        let pid = tables.intern_string(b"pid").unwrap();
        let mut sorted = SortByTime::new(Announced::default()).with_samples();
        let mut segment = Segment::default();
        let sample = Sample { count: 1, ..Sample::default() };
        sorted.segment(Context { tables: &tables, segment: &segment }).unwrap();
        for process in [Some(7), None, Some(8)] {
            let at = Context { tables: &tables, segment: &segment };
            let _ = sorted.sample(at, &sample).unwrap();
            segment.process = process;
            sorted.metadata(Context { tables: &tables, segment: &segment }, pid, pid).unwrap();
        }
        let _ = sorted.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
        sorted.finish(&tables).unwrap();
        let Announced { processes, seen, .. } = sorted.into_inner();
        assert_eq!((processes, seen.len()), (vec![7, 8], 4));
    }

    #[test]
    fn clocks_of_different_origins_are_one_order() {
        let tables = Tables::default();
        let mut sorted = SortByTime::new(Announced::default()).with_samples();
        for (start_unix_ns, times_ns) in [(1000, [5, 25]), (1020, [0, 10])] {
            let start_unix_ns = Some(start_unix_ns);
            let segment = Segment { start_unix_ns, ..Segment::default() };
            let at = Context { tables: &tables, segment: &segment };
            for time_ns in times_ns.map(Some) {
                let _ = sorted.sample(at, &Sample { count: 1, time_ns, ..Sample::default() }).unwrap();
            }
        }
        sorted.finish(&tables).unwrap();
        let times: Vec<_> = sorted.into_inner().seen.iter().filter_map(|seen| seen.0).collect();
        assert_eq!(times, [5, 0, 25, 10]);
    }

    #[test]
    fn each_source_is_sorted_by_itself() {
        let (mut tables, segment) = (Tables::default(), Segment::default());
        let name = tables.intern_string(b"tick").unwrap();
        let shape =
            tables.intern_shape(&Shape { name, fields: Vec::new(), annotations: Vec::new() }).unwrap();
        let mut sorted = SortByTime::new(Seen::default());
        for (source, times) in [("a", [5, 4]), ("b", [2, 1])] {
            sorted.source(source).unwrap();
            for time_ns in times.map(Some) {
                let at = Context { tables: &tables, segment: &segment };
                let _ = sorted.event(at, &Event { shape, type_id: None, time_ns, values: &[] }).unwrap();
            }
        }
        sorted.finish(&tables).unwrap();
        let seen: Vec<_> =
            sorted.into_inner().0.into_iter().map(|(time, text)| (time.unwrap_or(0), text)).collect();
        let tick = |time| (time, "[]".to_owned());
        assert_eq!(seen, [(0, "a".to_owned()), tick(4), tick(5), (0, "b".to_owned()), tick(1), tick(2)]);
    }
}
