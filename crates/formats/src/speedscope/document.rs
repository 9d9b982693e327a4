//! Writes the document: lanes as profiles, with shared frames.

use std::io::{self, Write};

use borehole_model::{LaneId, Mode, StackId, StringId, Tables, ThreadNames, ValueType};

use super::layout::{SCHEMA, Unit, WeightMeaning};
use super::names::{FrameList, Utf8Errors};
use super::track::{ProfileTrack, TrackKey, unzigzag};
use crate::Losses;
use crate::documents::chains::{Pull, SampleSpool};
use crate::documents::json_stream::JsonStream;

/// A document that is being written.
pub(super) struct SpeedscopeWriter<'a, W> {
    pub(super) output: &'a mut JsonStream<W>,
    pub(super) spool: &'a mut SampleSpool,
    pub(super) tables: &'a Tables,
    pub(super) utf8_errors: Utf8Errors,
    pub(super) value_types: &'a [ValueType],
    pub(super) stacks: &'a [StackId],
    pub(super) thread_names: &'a ThreadNames,
    pub(super) names: FrameList<'a>,
}

impl<W: Write> SpeedscopeWriter<'_, W> {
    /// Writes the document; returns the losses of its names.
    pub(super) fn write(&mut self, tracks: &[ProfileTrack]) -> io::Result<Losses> {
        let losses = self.put_head(tracks)?;
        for (index, track) in tracks.iter().enumerate() {
            self.output.raw(if index == 0 { "\n" } else { ",\n" });
            self.put_profile(track)?;
        }
        if tracks.is_empty() {
            // The viewer needs a profile even if there are no samples.
            self.output.raw("{\"type\":\"sampled\",\"name\":\"no samples\",\"unit\":\"none\",");
            self.output.raw("\"startValue\":0,\"endValue\":0,\"samples\":[],\"weights\":[]}");
        }
        self.output.raw("]}\n");
        Ok(losses)
    }

    fn put_head(&mut self, tracks: &[ProfileTrack]) -> io::Result<Losses> {
        // The profile with the most samples is shown first; the earliest of several.
        let heaviest = tracks.iter().enumerate().rev().max_by_key(|(_, track)| track.samples);
        let output = &mut *self.output;
        output.raw("{\"$schema\":").string(SCHEMA);
        output.raw(",\n\"exporter\":").string(concat!("borehole ", env!("CARGO_PKG_VERSION")));
        output.raw(",\n\"activeProfileIndex\":").number(heaviest.map_or(0, |(index, _)| index as u64));
        output.raw(",\n\"shared\":{\"frames\":");
        let losses = self.names.write(output, self.utf8_errors)?;
        output.raw("},\n\"profiles\":[");
        Ok(losses)
    }

    fn put_profile(&mut self, track: &ProfileTrack) -> io::Result<()> {
        let name = self.name(track)?;
        let axis = Axis::of(track);
        let type_name = if track.origin.is_evented { "evented" } else { "sampled" };
        let output = &mut *self.output;
        output.raw("{\"type\":").string(type_name).raw(",\"name\":").string(&name);
        output.raw(",\"unit\":").string(axis.unit.name()).raw(",\"startValue\":");
        self.put_stated(track.origin.start, axis, track.start_ns.into());
        self.output.raw(",\"endValue\":");
        let end = i128::from(track.start_ns).saturating_add_unsigned(track.total);
        self.put_stated(track.origin.end, axis, end);
        self.put_own_facts(track)?;
        if track.origin.is_evented {
            return self.put_events(track, axis);
        }
        self.put_samples(track)?;
        self.output.raw(",\n\"weights\":[");
        self.output
            .entries(self.spool, &track.chain, |output, [.., weight]| axis.put(output, weight.into()))?;
        self.output.raw("]}");
        Ok(())
    }

    /// Writes a number that the source states, or else `own`.
    fn put_stated(&mut self, stated: Option<StringId>, axis: Axis, own: i128) {
        match stated.and_then(|text| std::str::from_utf8(self.tables.string(text)).ok()) {
            Some(text) => {
                self.output.raw(text);
            }
            None => axis.put(self.output, own),
        }
    }

    /// The name in the source, or else the process, thread and interpreter with the weighed value.
    fn name(&self, track: &ProfileTrack) -> io::Result<String> {
        if let Some(name) = track.origin.name {
            return Ok(self.utf8_errors.text(self.tables.string(name))?.into_owned());
        }
        let TrackKey { lane, weights, value, .. } = track.key;
        let mut parts = Vec::new();
        parts.extend(lane.process.map(|process| format!("process {}", LaneId::of_process(process))));
        let known = self.thread_name(track)?;
        match lane.thread.map(LaneId::of) {
            Some(LaneId::Profile(_)) if known.is_some() => {}
            thread => parts.extend(thread.map(|thread| format!("thread {thread}"))),
        }
        parts.extend(known);
        // As in Python's own documents, the first interpreter is not named.
        let interpreter = lane.interpreter.filter(|&interpreter| interpreter != 0);
        parts.extend(interpreter.map(|interpreter| format!("interpreter {interpreter}")));
        if parts.is_empty() {
            parts.push("all samples".to_owned());
        }
        let value_type = value.and_then(|value| self.value_types.get(value));
        if let (WeightMeaning::Values, Some(value_type)) = (weights, value_type) {
            parts.push(value_type.kind.clone());
        }
        Ok(parts.join(", "))
    }

    fn thread_name(&self, track: &ProfileTrack) -> io::Result<Option<String>> {
        let name = track.key.lane.thread().and_then(|thread| self.thread_names.of(thread));
        name.map(|&name| Ok(self.utf8_errors.text(self.tables.string(name))?.into_owned())).transpose()
    }

    /// Writes the member `borehole`, from which the importer restores the data that the format cannot hold. An
    /// unchanged profile of another program has none.
    fn put_own_facts(&mut self, track: &ProfileTrack) -> io::Result<()> {
        let value_type = self.value_type(track);
        if is_as_it_was(track, value_type.as_ref()) {
            return Ok(());
        }
        let thread_name = self.thread_name(track)?;
        let TrackKey { lane, weights, mode, is_timed, .. } = track.key;
        let output = &mut *self.output;
        output.raw(",\n\"borehole\":{\"weights\":").string(weights.name());
        for (key, value) in [
            (",\"process\":", lane.process.map(i128::from)),
            (",\"thread\":", lane.thread.map(i128::from)),
            (",\"interpreter\":", lane.interpreter.map(i128::from)),
            (",\"period_ns\":", track.period_ns.map(i128::from)),
            (",\"start_unix_ns\":", track.origin.start_unix_ns.map(i128::from)),
        ] {
            if let Some(value) = value {
                output.raw(key).signed(value);
            }
        }
        if let Some(name) = thread_name {
            output.raw(",\"thread_name\":").string(&name);
        }
        if mode != Mode::Wall {
            output.raw(",\"mode\":").string(mode.name());
        }
        if let Some(ValueType { kind, unit }) = value_type {
            output.raw(",\"value_type\":[").string(&kind).raw(",").string(&unit);
            output.raw(if track.origin.is_uncounted {
                "],\"uncounted\":true"
            } else {
                "],\"uncounted\":false"
            });
        }
        for (member, is_so) in [
            (",\"timed\":true", is_timed && !track.is_timeline()),
            (",\"named\":true", track.origin.name.is_some()),
        ] {
            output.raw(if is_so { member } else { "" });
        }
        self.put_own_columns(track)
    }

    /// The value type of a track's weights, if they are values. Samples of several periods have their times as values.
    fn value_type(&self, track: &ProfileTrack) -> Option<ValueType> {
        let TrackKey { weights, value, mode, .. } = track.key;
        let is_time = matches!(weights, WeightMeaning::Durations | WeightMeaning::Periods);
        let is_mixed = is_time && value.is_none() && track.period_ns.is_none();
        let value_type = value.and_then(|value| self.value_types.get(value)).cloned();
        value_type.or_else(|| is_mixed.then(|| ValueType::time(mode)))
    }

    /// Writes the counts and times of the entries, unless they follow from the weights, and closes the member.
    fn put_own_columns(&mut self, track: &ProfileTrack) -> io::Result<()> {
        if !track.counts_follow {
            self.output.raw(",\n\"counts\":[");
            self.output.entries(self.spool, &track.chain, |output, [_, count, _]| {
                output.number(count);
            })?;
            self.output.raw("]");
        }
        if track.has_late() {
            self.output.raw(",\n\"late\":[");
            self.put_late(track)?;
            self.output.raw("]");
        }
        self.output.raw("}");
        Ok(())
    }

    fn put_late(&mut self, track: &ProfileTrack) -> io::Result<()> {
        let (mut pull, mut separator) = (Pull::of(&track.late), "");
        while let Some([in_time, late, _]) = self.spool.pull(&mut pull)? {
            for _ in 0..in_time {
                self.output.raw(std::mem::replace(&mut separator, ",")).raw("0").spill()?;
            }
            let output = self.output.raw(std::mem::replace(&mut separator, ","));
            output.signed(unzigzag(late).into()).spill()?;
        }
        Ok(())
    }

    fn put_samples(&mut self, track: &ProfileTrack) -> io::Result<()> {
        let Self { output, spool, names, stacks, .. } = self;
        let mut frames = Vec::new();
        output.raw(",\n\"samples\":[").entries(spool, &track.chain, |output, [stack, ..]| {
            names.frames_root_first(stack_of(stack, stacks), &mut frames);
            let mut separator = "[";
            for &frame in &frames {
                output.raw(std::mem::replace(&mut separator, ",")).number(frame);
            }
            output.raw(if frames.is_empty() { "[]" } else { "]" });
        })?;
        output.raw("]");
        Ok(())
    }

    /// Writes entries as events: frames that the next stack shares stay open.
    fn put_events(&mut self, track: &ProfileTrack, axis: Axis) -> io::Result<()> {
        self.output.raw(",\n\"events\":[");
        let (mut open, mut next, mut separator) = (Vec::new(), Vec::new(), "");
        let mut at = i128::from(track.start_ns);
        let mut pull = Pull::of(&track.chain);
        let mut is_end = false;
        while !is_end {
            next.clear();
            let entry = self.spool.pull(&mut pull)?;
            is_end = entry.is_none();
            if let Some([stack, ..]) = entry {
                self.names.frames_root_first(stack_of(stack, self.stacks), &mut next);
            }
            let alike = open.iter().zip(&next).take_while(|(open, next)| open == next).count();
            let closed = open.iter().skip(alike).rev().map(|&frame| ("C", frame));
            for (kind, frame) in closed.chain(next.iter().skip(alike).map(|&frame| ("O", frame))) {
                let output = self.output.raw(std::mem::replace(&mut separator, ","));
                output.raw("{\"type\":\"").raw(kind).raw("\",\"frame\":").number(frame).raw(",\"at\":");
                axis.put(output, at);
                output.raw("}").spill()?;
            }
            std::mem::swap(&mut open, &mut next);
            at += entry.map_or(0, |[.., weight]| i128::from(weight));
        }
        self.output.raw("]}");
        Ok(())
    }
}

/// The stack of an entry.
fn stack_of(stack: u64, stacks: &[StackId]) -> Option<StackId> {
    let place = usize::try_from(stack).ok()?.checked_sub(1)?;
    Some(stacks[place])
}

/// Whether a profile of another program states everything known about it in that program's own way.
fn is_as_it_was(track: &ProfileTrack, value_type: Option<&ValueType>) -> bool {
    let ProfileTrack { key, origin, .. } = track;
    let says_value = match (key.weights, value_type) {
        (WeightMeaning::Values, Some(value_type)) => {
            value_type.kind == "weight" && value_type.unit == origin.unit.name()
        }
        (WeightMeaning::Durations, Some(value_type)) => *value_type == ValueType::time(Mode::Wall),
        (WeightMeaning::Durations | WeightMeaning::Counts, None) => true,
        _ => false,
    };
    origin.name.is_some() && says_value && track.counts_follow && !track.has_late()
}

/// The unit of weights, with the number of the track's weights per unit.
#[derive(Clone, Copy, Debug)]
struct Axis {
    unit: Unit,
    factor: u32,
}

impl Axis {
    fn of(track: &ProfileTrack) -> Self {
        let unit = match track.key.weights {
            WeightMeaning::Counts => Unit::None,
            WeightMeaning::Periods => Unit::Nanoseconds,
            WeightMeaning::Values => track.origin.unit,
            WeightMeaning::Times | WeightMeaning::Durations => match track.origin.unit {
                Unit::None | Unit::Bytes => Unit::Nanoseconds,
                unit => unit,
            },
        };
        let factor = unit.nanoseconds().filter(|_| track.is_timeline()).unwrap_or(1);
        Self { unit, factor }
    }

    /// Writes a number, with as many decimals as needed.
    fn put<W: Write>(self, output: &mut JsonStream<W>, number: i128) {
        let factor = i128::from(self.factor);
        if let (1, Ok(number)) = (factor, u64::try_from(number)) {
            output.number(number);
            return;
        }
        output.raw(if number < 0 { "-" } else { "" });
        let (whole, mut rest) =
            (number.unsigned_abs() / factor.unsigned_abs(), (number % factor).unsigned_abs());
        output.signed(whole.cast_signed());
        output.raw(if rest == 0 { "" } else { "." });
        let mut place = factor.unsigned_abs();
        while rest > 0 {
            place /= 10;
            output.number(u64::try_from(rest / place).unwrap_or(0));
            rest %= place;
        }
    }
}
