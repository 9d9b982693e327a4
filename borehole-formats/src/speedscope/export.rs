//! The model into a document.

use std::io::{self, Read, Seek, Write};
use std::num::NonZeroU32;
use std::ops::ControlFlow;

use borehole_model::{
    Context, ProfileSink, Sample, Segment, StackId, StringId, Tables, Thread, ThreadNames, ValueType,
};
use hashbrown::HashMap;

use super::layout::{SCHEMA, Unit, Weights};
use super::names::Names;
use super::shown::ShownStacks;
use super::track::Entry;
use super::track::{Key, Taken, Track};
use super::utf8::Utf8Errors;
use crate::chains::{Pull, Spool};
use crate::json_stream::JsonStream;
use crate::{Export, Losses};

/// Writes a speedscope document: a profile for each process and thread.
///
/// What a sample weighs: the time until the next one, if samples have times; or else the last of its values;
/// or else its count times the period; or else its count. Neighbours with equal stacks become one entry.
///
/// Entries wait in a temporary file that `make_spool` supplies, so memory grows with the distinct stacks and
/// not with the samples. Nothing is written before `finish`.
///
/// # Examples
///
/// ```
/// use borehole_formats::speedscope::{Exporter, Utf8Errors};
/// use borehole_model::{Context, ProfileSink as _, Sample, Segment, Tables};
///
/// let (tables, segment) = (Tables::default(), Segment::default());
/// let mut file = Vec::new();
/// let mut exporter =
///     Exporter::new(&mut file, Utf8Errors::Ignore, || Ok(std::io::Cursor::new(Vec::new())));
/// let at = Context { tables: &tables, segment: &segment };
/// exporter.segment(at)?;
/// let _ = exporter.sample(at, &Sample { count: 3, ..Sample::default() })?;
/// exporter.finish(&tables)?;
/// assert!(String::from_utf8(file).unwrap().contains("\"weights\":[3]"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Exporter<W, S, F> {
    output: JsonStream<W>,
    utf8_errors: Utf8Errors,
    spool: Spool<S, F>,
    tracks: Vec<Track>,
    track_index: HashMap<Key, usize>,
    current: usize,
    value: Option<Value>,
    value_types: Vec<ValueType>,
    /// The stacks that samples have, of those shown alike the first; by stack, its place there plus one; and
    /// the same by the number of what is shown.
    stacks: Vec<StackId>,
    places: Vec<u32>,
    shown: ShownStacks,
    shown_places: HashMap<NonZeroU32, u32>,
    thread_names: ThreadNames,
    lost: Lost,
    losses: Losses,
}

/// The value that weighs the samples of the current segment.
#[derive(Clone, Copy, Debug)]
struct Value {
    column: usize,
    /// Its type, in `value_types`.
    kind: usize,
    unit: Unit,
}

/// What samples had that could not be kept.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    labels: u64,
    statuses: u64,
    interpreters: u64,
    values: u64,
    metadata: u64,
}

impl<W, S, F> Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    /// An exporter to `output`. `make_spool` makes an empty temporary file; it is called once at most, and not
    /// for profiles of a few thousand entries.
    pub fn new(output: W, utf8_errors: Utf8Errors, make_spool: F) -> Self {
        Self {
            output: JsonStream::new(output),
            utf8_errors,
            spool: Spool::new(make_spool),
            tracks: Vec::new(),
            track_index: HashMap::new(),
            current: 0,
            value: None,
            value_types: Vec::new(),
            stacks: Vec::new(),
            places: Vec::new(),
            shown: ShownStacks::default(),
            shown_places: HashMap::new(),
            thread_names: ThreadNames::default(),
            lost: Lost::default(),
            losses: Losses::default(),
        }
    }

    /// Picks the value that weighs the samples: the last, which other viewers show first, too.
    fn pick_value(&mut self, segment: &Segment) {
        self.value = segment.value_types.last().map(|value_type| {
            let known = self.value_types.iter().position(|known| known == value_type);
            let kind = known.unwrap_or_else(|| {
                self.value_types.push(value_type.clone());
                self.value_types.len() - 1
            });
            Value { column: segment.value_types.len() - 1, kind, unit: Unit::named(&value_type.unit) }
        });
    }

    #[inline]
    fn weigh(&mut self, at: Context<'_>, sample: &Sample<'_>) -> (Key, Unit, Taken) {
        let period_ns = at.segment.period_ns.filter(|&period| period > 0);
        let (weights, unit, weight, value) = match (sample.time_ns, self.value, period_ns) {
            (Some(_), _, _) => (Weights::Times, Unit::Nanoseconds, 0, 0),
            (None, Some(value), _) => {
                let weight = sample.values.get(value.column).copied().unwrap_or(0);
                // The viewer refuses negative weights.
                (Weights::Values, value.unit, u64::try_from(weight).unwrap_or(0), value.kind)
            }
            (None, None, Some(period)) => {
                (Weights::Periods, Unit::Nanoseconds, sample.count.saturating_mul(period), 0)
            }
            (None, None, None) => (Weights::Counts, Unit::None, sample.count, 0),
        };
        let key = Key { process: at.process(sample), thread: sample.thread, weights, value };
        let stack = self.place(sample.stack, at.tables);
        let time_ns = sample.time_ns.unwrap_or(0);
        (key, unit, Taken { stack: stack.into(), count: sample.count, weight, time_ns, period_ns })
    }

    /// The track of `key`, made if it is new.
    #[inline]
    fn track(&mut self, key: Key, unit: Unit, first: &Taken, segment: &Segment) -> usize {
        if self.tracks.get(self.current).is_some_and(|track| track.key == key) {
            return self.current;
        }
        let Self { tracks, track_index, .. } = self;
        self.current = *track_index.entry(key).or_insert_with(|| {
            tracks.push(Track::new(key, unit, first, segment.start_unix_ns));
            tracks.len() - 1
        });
        self.current
    }

    /// The place of a stack among those that samples have, plus one; 0 for the empty stack.
    #[inline]
    fn place(&mut self, stack: Option<StackId>, tables: &Tables) -> u32 {
        let Some(stack) = stack else { return 0 };
        match self.places.get(stack.index()) {
            Some(&place) if place != 0 => place,
            _ => self.new_place(stack, tables),
        }
    }

    #[cold]
    fn new_place(&mut self, stack: StackId, tables: &Tables) -> u32 {
        if self.places.len() <= stack.index() {
            self.places.resize(stack.index() + 1, 0);
        }
        let Self { stacks, shown_places, shown, .. } = self;
        let place = *shown_places.entry(shown.number(stack, tables)).or_insert_with(|| {
            stacks.push(stack);
            u32::try_from(stacks.len()).expect("there are as many stacks as ids at most")
        });
        self.places[stack.index()] = place;
        place
    }

    #[cold]
    fn note_losses(&mut self, segment: &Segment, sample: &Sample<'_>) {
        let kept = match sample.time_ns {
            Some(_) => is_wall(segment),
            None => sample.values.len() <= 1 && sample.values.iter().all(|&value| value >= 0),
        };
        let Lost { labels, statuses, interpreters, values, .. } = &mut self.lost;
        for (sum, is_lost) in [
            (labels, sample.labels.is_some()),
            (statuses, sample.status.is_some()),
            (interpreters, sample.interpreter.is_some()),
            (values, !kept && !sample.values.is_empty()),
        ] {
            *sum = sum.saturating_add(if is_lost { sample.count } else { 0 });
        }
    }

    fn close_tracks(&mut self) -> io::Result<()> {
        self.tracks.iter_mut().try_for_each(|track| track.close(&mut self.spool))
    }

    fn write_head(&mut self, names: &mut Names<'_>) -> io::Result<Losses> {
        // The profile with most samples is shown first; the earliest of several.
        let heaviest = self.tracks.iter().enumerate().rev().max_by_key(|(_, track)| track.samples);
        let output = &mut self.output;
        output.raw("{\"$schema\":").string(SCHEMA);
        output.raw(",\n\"exporter\":").string(concat!("borehole ", env!("CARGO_PKG_VERSION")));
        output.raw(",\n\"activeProfileIndex\":").number(heaviest.map_or(0, |(index, _)| index as u64));
        output.raw(",\n\"shared\":{\"frames\":");
        let losses = names.write(output, self.utf8_errors)?;
        output.raw("},\n\"profiles\":[");
        Ok(losses)
    }

    fn write_profiles(&mut self, tables: &Tables, names: &Names<'_>) -> io::Result<()> {
        let tracks = std::mem::take(&mut self.tracks);
        for (index, track) in tracks.iter().enumerate() {
            let name = self.track_name(track, tables)?;
            let output = &mut self.output;
            output.raw(if index == 0 { "\n" } else { ",\n" });
            put_facts(output, track, &name);
            put_own_facts(output, track, self.value_types.get(track.key.value));
            put_counts(output, &mut self.spool, track)?;
            put_samples(output, &mut self.spool, track, &self.stacks, names)?;
            output.raw(",\n\"weights\":[");
            put_column(output, &mut self.spool, track, |entry| entry.weight)?;
            output.raw("]}");
        }
        if tracks.is_empty() {
            // The viewer wants a profile, though there is nothing in it.
            self.output.raw("{\"type\":\"sampled\",\"name\":\"no samples\",\"unit\":\"none\",");
            self.output.raw("\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}");
        }
        self.output.raw("]}\n");
        Ok(())
    }

    /// Which process and thread, and what is weighed.
    fn track_name(&self, track: &Track, tables: &Tables) -> io::Result<String> {
        let Key { process, thread, weights, value } = track.key;
        let mut parts = Vec::new();
        parts.extend(process.map(|process| format!("process {process}")));
        parts.extend(thread.map(|thread| format!("thread {thread}")));
        let thread = thread.map(|number| Thread { process, number });
        if let Some(&name) = thread.and_then(|thread| self.thread_names.of(thread)) {
            parts.push(self.utf8_errors.text(tables.string(name))?.into_owned());
        }
        if parts.is_empty() {
            parts.push("all samples".to_owned());
        }
        if weights == Weights::Values {
            parts.push(self.value_types[value].kind.clone());
        }
        Ok(parts.join(", "))
    }

    fn sum_losses(&mut self, of_names: &Losses) {
        let Lost { labels, statuses, interpreters, values, metadata } = self.lost;
        self.losses.add("annotations", labels);
        self.losses.add("thread states", statuses);
        self.losses.add("interpreter ids", interpreters);
        self.losses.add("measured values", values);
        self.losses.add("metadata entries", metadata);
        of_names.iter().for_each(|(what, count)| self.losses.add(what, count));
        let disordered = self.tracks.iter().map(|track| track.disordered).sum();
        self.losses.add("times of samples that are older than the one before", disordered);
        self.losses.add("exact times of samples", self.tracks.iter().map(|track| track.moved).sum());
    }
}

impl<W, S, F> ProfileSink for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    #[inline]
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if sample.labels.is_some()
            || sample.status.is_some()
            || sample.interpreter.is_some()
            || !sample.values.is_empty()
        {
            self.note_losses(at.segment, sample);
        }
        let (key, unit, taken) = self.weigh(at, sample);
        let track = self.track(key, unit, &taken, at.segment);
        self.tracks[track].take(&taken, &mut self.spool)?;
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        if at.segment.index == 0 {
            // Another input has another clock.
            self.close_tracks()?;
        }
        self.pick_value(at.segment);
        self.lost.metadata += at.segment.metadata.len() as u64;
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.lost.metadata += 1;
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.close_tracks()?;
        let mut names = Names::of_stacks(tables, &self.stacks);
        let of_names = self.write_head(&mut names)?;
        self.sum_losses(&of_names);
        self.write_profiles(tables, &names)?;
        self.output.finish()
    }
}

impl<W, S, F> Export for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    fn losses(&self) -> Losses {
        self.losses.clone()
    }
}

/// Whether the last value of a segment's samples is the time they lasted, which the time axis shows.
fn is_wall(segment: &Segment) -> bool {
    segment
        .value_types
        .iter()
        .all(|value_type| value_type.kind == "wall" && Unit::named(&value_type.unit).nanoseconds().is_some())
}

fn put_facts<W: Write>(output: &mut JsonStream<W>, track: &Track, name: &str) {
    output.raw("{\"type\":\"sampled\",\"name\":").string(name);
    output.raw(",\"unit\":").string(track.unit.name());
    output.raw(",\"startValue\":").signed(track.start_ns.into());
    let end = i128::from(track.start_ns).saturating_add_unsigned(track.total);
    output.raw(",\"endValue\":").signed(end);
}

/// Opens the member `borehole`, which lets our importer restore what the format has no place for.
fn put_own_facts<W: Write>(output: &mut JsonStream<W>, track: &Track, value_type: Option<&ValueType>) {
    let Key { process, thread, weights, .. } = track.key;
    output.raw(",\n\"borehole\":{\"weights\":").string(weights.name());
    for (key, value) in [
        (",\"process\":", process.map(i128::from)),
        (",\"thread\":", thread.map(i128::from)),
        (",\"period_ns\":", track.period_ns.map(i128::from)),
        (",\"start_unix_ns\":", track.start_unix_ns.map(i128::from)),
    ] {
        if let Some(value) = value {
            output.raw(key).signed(value);
        }
    }
    if let Some(value_type) = value_type.filter(|_| weights == Weights::Values) {
        output.raw(",\"value_type\":[").string(&value_type.kind).raw(",");
        output.string(&value_type.unit).raw("]");
    }
}

/// Writes the counts of the entries, unless they follow from the weights, and closes the member.
fn put_counts<W, S, F>(output: &mut JsonStream<W>, spool: &mut Spool<S, F>, track: &Track) -> io::Result<()>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    if !track.counts_follow {
        output.raw(",\n\"counts\":[");
        put_column(output, spool, track, |entry| entry.count)?;
        output.raw("]");
    }
    output.raw("}");
    Ok(())
}

fn put_samples<W, S, F>(
    output: &mut JsonStream<W>,
    spool: &mut Spool<S, F>,
    track: &Track,
    stacks: &[StackId],
    names: &Names<'_>,
) -> io::Result<()>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    output.raw(",\n\"samples\":[");
    let (mut frames, mut separator) = (Vec::new(), "[");
    let mut pull = Pull::of(&track.chain);
    while let Some(entry) = spool.pull(&mut pull)?.map(Entry::from) {
        let place = usize::try_from(entry.stack).ok().and_then(|place| place.checked_sub(1));
        names.frames_root_first(place.map(|place| stacks[place]), &mut frames);
        output.raw(std::mem::replace(&mut separator, ",["));
        for (index, &frame) in frames.iter().enumerate() {
            if index > 0 {
                output.raw(",");
            }
            output.number(frame);
        }
        output.raw("]").spill()?;
    }
    output.raw("]");
    Ok(())
}

fn put_column<W, S, F>(
    output: &mut JsonStream<W>,
    spool: &mut Spool<S, F>,
    track: &Track,
    column: impl Fn(Entry) -> u64,
) -> io::Result<()>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    let mut separator = "";
    let mut pull = Pull::of(&track.chain);
    while let Some(entry) = spool.pull(&mut pull)? {
        output.raw(std::mem::replace(&mut separator, ",")).number(column(entry.into())).spill()?;
    }
    Ok(())
}
