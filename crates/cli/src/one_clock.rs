//! One clock for the events of several inputs.
//!
//! Traces of a program count time from when their machine was started; a recording from outside counts from its own beginning. Both
//! state the wall time, which puts them together.

use std::io;
use std::ops::ControlFlow;

use borehole::ProfileSink;
use borehole::model::dial9::{event, field};
use borehole::model::{Context, Event, Sample, ShapeId, Tables, Value};

/// The clock of the first input that states one, and the kinds of its events.
#[derive(Debug, Default)]
pub(crate) struct EventClocks {
    first: Option<StatedClock>,
    /// The inputs with samples, and without a clock.
    unknown: Vec<String>,
    /// Those beside which others have a clock.
    doubtful: Vec<String>,
    sorts: Vec<Option<ClockEvent>>,
}

/// A clock, as an event states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatedClock {
    /// The wall time of its origin.
    start_unix_ns: i128,
    /// Whether it begins with its recording.
    is_own: bool,
}

/// An event, by what it says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClockEvent {
    /// It states the wall time in this field.
    Stated(usize),
    Sample,
    Other,
}

/// Passes on the events of an input, on the clock of the first one.
pub(crate) struct OnFirstClock<'s> {
    sink: &'s mut dyn ProfileSink,
    clocks: &'s mut EventClocks,
    shift_ns: i64,
    is_stated: bool,
    has_samples: bool,
    has_others: bool,
    /// Whether events of another clock came before.
    is_behind: bool,
}

impl EventClocks {
    /// Puts the events of the next input in front of `sink`.
    pub(crate) fn in_front_of<'s>(&'s mut self, sink: &'s mut dyn ProfileSink) -> OnFirstClock<'s> {
        let (is_stated, has_samples, has_others, is_behind) = Default::default();
        OnFirstClock { sink, clocks: self, shift_ns: 0, is_stated, has_samples, has_others, is_behind }
    }

    /// Forgets the clocks: times of what follows are compared with those of no input before.
    fn part(&mut self) {
        let unknown = std::mem::take(&mut self.unknown);
        if self.first.take().is_some() {
            self.doubtful.extend(unknown);
        }
    }

    /// The warnings about inputs whose clock is not known, after the last input.
    pub(crate) fn warnings(mut self) -> impl Iterator<Item = String> {
        self.part();
        let said = "its clock is unknown, so its samples may seem to be in other polls than they were";
        self.doubtful.into_iter().map(move |name| format!("{name}: {said}"))
    }

    fn sort(&mut self, shape: ShapeId, tables: &Tables) -> ClockEvent {
        if let Some(&Some(known)) = self.sorts.get(shape.index()) {
            return known;
        }
        let found = tables.shape(shape);
        let name = tables.string(found.name);
        let is_wall_time = |name| tables.string(name) == field::UNIX_TIME.as_bytes();
        let wall_time = found.fields.iter().position(|field| is_wall_time(field.name));
        let sort = match wall_time {
            Some(place) if name == event::CLOCK_SYNC.as_bytes() => ClockEvent::Stated(place),
            _ if name == event::CPU_SAMPLE.as_bytes() => ClockEvent::Sample,
            _ => ClockEvent::Other,
        };
        if self.sorts.len() <= shape.index() {
            self.sorts.resize(shape.index() + 1, None);
        }
        self.sorts[shape.index()] = Some(sort);
        sort
    }
}

impl StatedClock {
    fn of(event: &Event<'_>, place: usize) -> Option<Self> {
        let (time_ns, Value::Unsigned(unix_ns)) = (event.time_ns?, event.values.get(place)?) else {
            return None;
        };
        Some(Self { start_unix_ns: i128::from(*unix_ns) - i128::from(time_ns), is_own: time_ns == 0 })
    }
}

impl OnFirstClock<'_> {
    /// Ends the input called `name`, and returns the warning about its clock.
    pub(crate) fn end(self, name: &str) -> Option<String> {
        let is_unknown = self.has_samples && !self.has_others && !self.is_stated;
        if is_unknown {
            self.clocks.unknown.push(name.to_owned());
        }
        let behind = "its clock is not that of the samples before it; name the trace first";
        self.is_behind.then(|| format!("{name}: {behind}"))
    }

    fn state(&mut self, clock: StatedClock) {
        self.is_stated = true;
        let first = *self.clocks.first.get_or_insert(clock);
        if first == clock {
            self.shift_ns = 0;
        } else if clock.is_own {
            self.shift_ns = i64::try_from(clock.start_unix_ns - first.start_unix_ns).unwrap_or(0);
        } else {
            // Clocks that count from the start of the machine are one, though the wall clock may have been set meanwhile.
            self.shift_ns = 0;
            self.is_behind |= first.is_own;
        }
    }
}

impl ProfileSink for OnFirstClock<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.sink.sample(at, sample)
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        let is_timed = event.time_ns.is_some();
        match self.clocks.sort(event.shape, at.tables) {
            ClockEvent::Stated(place) => {
                if let Some(clock) = StatedClock::of(event, place) {
                    self.state(clock);
                }
            }
            ClockEvent::Sample => self.has_samples |= is_timed,
            ClockEvent::Other => self.has_others |= is_timed,
        }
        let time_ns = event.time_ns.map(|time_ns| time_ns.saturating_add_signed(self.shift_ns));
        self.sink.event(at, &Event { time_ns, ..*event })
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.clocks.part();
        self.shift_ns = 0;
        self.sink.source(name)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.sink)
    }

    fn settle(&mut self, tables: &Tables) -> io::Result<bool> {
        self.sink.settle(tables)
    }
}

#[cfg(test)]
mod tests {
    use borehole::model::{FieldKind, FieldShape, Segment, Shape};

    use super::*;

    /// The times of the events that arrive.
    #[derive(Default)]
    struct Times(Vec<Option<u64>>);

    impl ProfileSink for Times {
        fn sample(&mut self, _at: Context<'_>, _sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            Ok(ControlFlow::Continue(()))
        }

        fn event(&mut self, _at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
            self.0.push(event.time_ns);
            Ok(ControlFlow::Continue(()))
        }
    }

    /// The times of each input, which consists of clocks as a time and the wall time, and of samples as a time; and all warnings.
    fn read(inputs: &[&[(u64, Option<u64>)]]) -> (Vec<Vec<u64>>, Vec<String>) {
        let (mut tables, segment) = (Tables::default(), Segment::default());
        let mut shape = |name: &str| {
            let [name, field] =
                [name, field::UNIX_TIME].map(|text| tables.intern_string(text.as_bytes()).unwrap());
            let fields = vec![FieldShape { name: field, kind: FieldKind::Unsigned64, optional: false }];
            tables.intern_shape(&Shape { name, fields, annotations: Vec::new() }).unwrap()
        };
        let (clock, sample) = (shape(event::CLOCK_SYNC), shape(event::CPU_SAMPLE));
        let at = Context { tables: &tables, segment: &segment };
        let (mut clocks, mut warnings, mut all) = (EventClocks::default(), Vec::new(), Vec::new());
        for (number, input) in inputs.iter().enumerate() {
            let mut times = Times::default();
            let mut sink = clocks.in_front_of(&mut times);
            for &(time_ns, unix_ns) in *input {
                let values = [unix_ns.map_or(Value::Absent, Value::Unsigned)];
                let shape = if unix_ns.is_some() { clock } else { sample };
                let event = Event { shape, type_id: None, time_ns: Some(time_ns), values: &values };
                let _ = sink.event(at, &event).unwrap();
            }
            warnings.extend(sink.end(&number.to_string()));
            all.push(times.0.into_iter().flatten().collect());
        }
        warnings.extend(clocks.warnings());
        (all, warnings)
    }

    const TRACE: &[(u64, Option<u64>)] = &[(500, Some(10_500)), (600, None)];
    const OWN: &[(u64, Option<u64>)] = &[(0, Some(10_550)), (7, None)];
    const UNKNOWN: &[(u64, Option<u64>)] = &[(7, None)];

    #[test]
    fn a_recording_with_a_clock_of_its_own_is_put_on_that_of_the_trace() {
        let read = read(&[TRACE, OWN, TRACE]);
        assert_eq!(read, (vec![vec![500, 600], vec![550, 557], vec![500, 600]], Vec::new()));
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_nothing() {
        let read = read(&[TRACE, &[(700, Some(90_700)), (800, None)]]);
        assert_eq!(read, (vec![vec![500, 600], vec![700, 800]], Vec::new()));
    }

    #[test]
    fn clocks_that_do_not_fit_are_reported() {
        let behind = "1: its clock is not that of the samples before it; name the trace first";
        assert_eq!(read(&[OWN, TRACE]).1, [behind]);
        let unknown = "its clock is unknown, so its samples may seem to be in other polls than they were";
        assert_eq!(read(&[TRACE, UNKNOWN]).1, [format!("1: {unknown}")]);
        assert_eq!(read(&[UNKNOWN, TRACE, UNKNOWN]).1, [0, 2].map(|input| format!("{input}: {unknown}")));
        assert_eq!(read(&[UNKNOWN, UNKNOWN]).1, [""; 0]);
    }
}
