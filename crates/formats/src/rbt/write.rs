//! Writes segments.
//!
//! For equal samples, the bytes are those of reli's writer: definitions on first use, ids from 0 in that order, runs
//! coded as reli codes them. Where reli's writer has a bug, this one is right: it writes a pending run before a sample
//! with a process, so that samples keep their order.
//!
//! Source: reli 0.12, `BinaryTraceWriter`; every writer-made file of the corpus comes out byte for byte.

use std::io::{self, Write};

use borehole_wire::{put_varint, put_varint_signed, varint_len, write_out};

use super::frame_def::FrameDef;
use super::ids::{FrameId, FrameNumber, SegmentId, StackId, StackNumber};
use super::intern::{AnnotationList, WrittenFrames, WrittenStrings};
use super::last_trace::LastTrace;
use super::layout::{EventType, FRAME_HAS_OPCODE, FRAME_NATIVE, Header};
use super::trie::{StackPath, WrittenStacks};

/// Writes segments of samples.
///
/// Nothing reaches the output until a buffer is full, [`Writer::flush`] or [`Writer::finish`]. If the output fails, the
/// rejected record is not taken; callers that continue lose nothing else, and no byte is written twice.
///
/// A writer that is dropped writes what it holds, without an end of the segment: its file looks like that of a writer that was
/// interrupted, with all its samples. Errors are then lost; [`Writer::finish`] returns them.
pub struct Writer<W: Write> {
    /// `None` while it is being written, so that a panic there ends the writing, and after the end.
    output: Option<W>,
    buffer: Vec<u8>,
    header: Header,
    segment: SegmentId,
    strings: WrittenStrings,
    frames: WrittenFrames,
    stacks: WrittenStacks,
    last_trace: LastTrace,
    /// The frames of a stack that no earlier stack has had in this place.
    new_frames: Vec<FrameNumber>,
    run: Option<PendingRun>,
    run_annotations: AnnotationList,
    annotation_ids: Vec<u32>,
    samples: u64,
    checkpoint_interval: Option<u64>,
    since_checkpoint: u64,
    payload: Vec<u8>,
}

/// A sample to be written.
#[derive(Clone, Copy, Debug)]
pub struct SampleDef<'a> {
    /// The stack.
    pub stack: StackId,
    /// The number of equal samples.
    pub count: u64,
    /// Microseconds from the previous sample to the first of these, which were all taken at once. `None` is written as 0.
    /// Only written in segments with timestamps.
    pub delta_us: Option<i64>,
    /// The process, if the sample has to name it.
    pub pid: Option<i64>,
    /// Keys and values. `None` and empty write the same bytes, but do not share a run.
    pub annotations: Option<&'a [(&'a [u8], &'a [u8])]>,
}

impl SampleDef<'_> {
    /// One sample of `stack` without further data.
    #[must_use]
    pub const fn of(stack: StackId) -> Self {
        Self { stack, count: 1, delta_us: None, pid: None, annotations: None }
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// The number of equal samples that are written one by one in a segment with timestamps. The rest of a longer run is a repeat:
/// a run of 2⁴⁰ samples must not take terabytes.
const MAX_SINGLE: u64 = 1 << 16;

impl<W: Write> Writer<W> {
    /// Begins a segment on `output`.
    ///
    /// # Errors
    /// None so far: nothing is written yet.
    pub fn new(output: W, header: Header) -> io::Result<Self> {
        let mut writer = Self {
            output: Some(output),
            buffer: Vec::with_capacity(BUFFER_BYTES + 4096),
            header,
            segment: SegmentId::next(),
            strings: WrittenStrings::default(),
            frames: WrittenFrames::default(),
            stacks: WrittenStacks::default(),
            last_trace: LastTrace::default(),
            new_frames: Vec::new(),
            run: None,
            run_annotations: AnnotationList::default(),
            annotation_ids: Vec::new(),
            samples: 0,
            checkpoint_interval: None,
            since_checkpoint: 0,
            payload: Vec::new(),
        };
        writer.buffer.extend_from_slice(&header.encode());
        Ok(writer)
    }

    /// Writes a checkpoint after every `interval` samples, as a live capture does every
    /// [`CHECKPOINT_INTERVAL`](super::layout::CHECKPOINT_INTERVAL). By default there is one at the end of each segment.
    #[must_use]
    pub const fn checkpoint_every(mut self, interval: u64) -> Self {
        self.checkpoint_interval = Some(interval);
        self
    }

    /// The id of a frame in this segment, defined on first use.
    ///
    /// # Errors
    /// If the output cannot be written, or the segment has 2³² frames.
    pub fn define_frame(&mut self, frame: &FrameDef<'_>) -> io::Result<FrameId> {
        Ok(self.segment.frame(self.frame_number(frame)?))
    }

    fn frame_number(&mut self, frame: &FrameDef<'_>) -> io::Result<FrameNumber> {
        let hash = self.frames.hash(frame);
        if let Some(number) = self.frames.find(hash, frame) {
            return Ok(number);
        }
        self.make_room()?;
        let ids = self.define_strings(frame)?;
        let number = self.frames.insert(hash, frame)?;
        self.put_frame_def(number, frame, ids);
        Ok(number)
    }

    /// The id of a stack in this segment, defined on first use. An empty stack is a stack.
    ///
    /// # Errors
    /// If the output cannot be written, another segment defines one of the frames, or this one has 2³² stacks.
    pub fn define_stack(&mut self, frames_leaf_first: &[FrameId]) -> io::Result<StackId> {
        let mut path = WrittenStacks::ROOT;
        for &frame in frames_leaf_first.iter().rev() {
            path = self.stacks.extend(path, self.segment.number_of_frame(frame)?)?;
        }
        self.define_path(path, frames_leaf_first.len())
    }

    /// Writes one sample of a stack given by its frames, without a timestamp.
    ///
    /// # Errors
    /// Those of [`Writer::define_frame`] and [`Writer::write_sample`].
    pub fn write_trace(&mut self, frames_leaf_first: &[FrameDef<'_>]) -> io::Result<()> {
        let stack = self.define_trace(frames_leaf_first)?;
        self.write_sample(&SampleDef::of(stack))
    }

    /// The id of the stack of these frames, all defined on first use.
    ///
    /// # Errors
    /// Those of [`Writer::define_frame`].
    pub fn define_trace(&mut self, frames_leaf_first: &[FrameDef<'_>]) -> io::Result<StackId> {
        let (mut known, mut path) = self.last_trace.keep_shared(frames_leaf_first);
        let depth = frames_leaf_first.len();
        while known < depth
            && let frame = &frames_leaf_first[depth - known - 1]
            && let Some(callee) = self.known_callee(path, frame)
        {
            (known, path) = (known + 1, callee);
            self.last_trace.push(frame, path);
        }
        if known < depth {
            path = self.extend_path(path, &frames_leaf_first[..depth - known])?;
        }
        self.define_path(path, depth)
    }

    /// Extends `path` by frames that are all new there.
    #[cold]
    fn extend_path(
        &mut self,
        mut path: StackPath,
        frames_leaf_first: &[FrameDef<'_>],
    ) -> io::Result<StackPath> {
        // Frames are defined from the leaf, like in reli, and the path is built from the root.
        let mut numbers = std::mem::take(&mut self.new_frames);
        numbers.clear();
        for frame in frames_leaf_first {
            numbers.push(self.frame_number(frame)?);
        }
        for (frame, number) in frames_leaf_first.iter().zip(&numbers).rev() {
            path = self.stacks.extend(path, *number)?;
            self.last_trace.push(frame, path);
        }
        self.new_frames = numbers;
        Ok(path)
    }

    #[inline]
    fn known_callee(&mut self, caller: StackPath, frame: &FrameDef<'_>) -> Option<StackPath> {
        match self.stacks.likely(caller) {
            Some((path, likely)) if self.frames.is(likely, frame) => Some(path),
            Some(_) => self.unlikely_callee(caller, frame),
            None => None,
        }
    }

    #[cold]
    fn unlikely_callee(&mut self, caller: StackPath, frame: &FrameDef<'_>) -> Option<StackPath> {
        let frame = self.frames.find(self.frames.hash(frame), frame)?;
        self.stacks.find(caller, frame)
    }

    #[inline]
    fn define_path(&mut self, path: StackPath, depth: usize) -> io::Result<StackId> {
        match self.stacks.defined(path) {
            Some(number) => Ok(self.segment.stack(number)),
            None => self.define_new_path(path, depth),
        }
    }

    #[cold]
    fn define_new_path(&mut self, path: StackPath, depth: usize) -> io::Result<StackId> {
        self.make_room()?;
        let number = self.stacks.define(path)?;
        self.payload.clear();
        put_varint(&mut self.payload, u64::from(number.0));
        put_varint(&mut self.payload, depth as u64);
        for frame in self.stacks.frames_leaf_first(path) {
            put_varint(&mut self.payload, u64::from(frame.0));
        }
        self.put_event(EventType::StackDef);
        Ok(self.segment.stack(number))
    }

    /// Writes a sample, or a run of equal ones. In a segment without timestamps adjacent equal samples become one run.
    ///
    /// # Errors
    /// If the output cannot be written, or another segment defines the stack.
    #[inline]
    pub fn write_sample(&mut self, sample: &SampleDef<'_>) -> io::Result<()> {
        if sample.count == 0 {
            return Ok(());
        }
        if let Some(run) = &mut self.run
            && run.stack == sample.stack
            && sample.pid.is_none()
            && self.run_annotations.equal(sample.annotations)
        {
            run.count = run.count.saturating_add(sample.count);
        } else {
            self.begin_run(sample)?;
        }
        self.samples = self.samples.saturating_add(sample.count);
        self.since_checkpoint = self.since_checkpoint.saturating_add(sample.count);
        match self.checkpoint_interval {
            Some(interval) if self.since_checkpoint >= interval => self.put_checkpoint(),
            _ => Ok(()),
        }
    }

    /// Writes a fact about the segment.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write_metadata(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.make_room()?;
        self.end_run()?;
        self.payload.clear();
        for part in [key, value] {
            put_varint(&mut self.payload, part.len() as u64);
            self.payload.extend_from_slice(part);
        }
        self.put_event(EventType::Metadata);
        Ok(())
    }

    /// Writes the counts of frames, stacks and samples so far, for verification.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn write_checkpoint(&mut self) -> io::Result<()> {
        self.make_room()?;
        self.put_checkpoint()
    }

    fn put_checkpoint(&mut self) -> io::Result<()> {
        self.end_run()?;
        self.since_checkpoint = 0;
        self.payload.clear();
        put_varint(&mut self.payload, self.frames.len() as u64);
        put_varint(&mut self.payload, self.stacks.len() as u64);
        put_varint(&mut self.payload, self.samples);
        self.put_event(EventType::Checkpoint);
        Ok(())
    }

    /// Ends the segment and begins another on the same output, with its own definitions.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn start_segment(&mut self, header: Header) -> io::Result<()> {
        self.make_room()?;
        self.end_segment()?;
        self.forget();
        self.header = header;
        self.buffer.extend_from_slice(&header.encode());
        Ok(())
    }

    /// Ends the segment and returns the output, flushed.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_segment()?;
        self.flush()?;
        self.output.take().ok_or_else(no_output)
    }

    /// Writes all buffered bytes, including the pending run: the output can then be read.
    ///
    /// # Errors
    /// If the output cannot be written. The rest waits for the next flush.
    pub fn flush(&mut self) -> io::Result<()> {
        self.end_run()?;
        self.with_output(|output, buffer| {
            write_out(output, buffer)?;
            output.flush()
        })
    }

    fn with_output(&mut self, write: impl FnOnce(&mut W, &mut Vec<u8>) -> io::Result<()>) -> io::Result<()> {
        let mut output = self.output.take().ok_or_else(no_output)?;
        let written = write(&mut output, &mut self.buffer);
        self.output = Some(output);
        written
    }

    fn end_segment(&mut self) -> io::Result<()> {
        self.put_checkpoint()?;
        self.payload.clear();
        self.put_event(EventType::SegmentEnd);
        Ok(())
    }

    fn forget(&mut self) {
        self.segment = SegmentId::next();
        self.strings = WrittenStrings::default();
        self.frames = WrittenFrames::default();
        self.stacks = WrittenStacks::default();
        self.last_trace.clear();
        self.samples = 0;
        self.since_checkpoint = 0;
    }

    #[inline]
    fn begin_run(&mut self, sample: &SampleDef<'_>) -> io::Result<()> {
        self.make_room()?;
        // Samples with timestamps form no runs, so none is pending.
        if self.header.has_timestamps {
            return if self.put_small(sample) { Ok(()) } else { self.put_alone(sample) };
        }
        self.end_run()?;
        if sample.pid.is_some() {
            return self.put_alone(sample);
        }
        let number = self.segment.number_of_stack(sample.stack)?;
        self.run = Some(PendingRun { stack: sample.stack, number, count: sample.count });
        self.run_annotations.set(sample.annotations);
        Ok(())
    }

    /// Writes a sample outside of a run.
    fn put_alone(&mut self, sample: &SampleDef<'_>) -> io::Result<()> {
        let number = self.segment.number_of_stack(sample.stack)?;
        let timed = self.header.has_timestamps;
        let singles = if timed { sample.count.min(MAX_SINGLE) } else { 1 };
        self.run_annotations.set(sample.annotations);
        for single in 0..singles {
            let delta_us = if single == 0 { sample.delta_us.unwrap_or(0) } else { 0 };
            self.put_single(number, sample.pid, timed.then_some(delta_us));
            self.put_annotations()?;
        }
        self.put_repeats(sample.count - singles);
        Ok(())
    }

    fn put_single(&mut self, stack: StackNumber, pid: Option<i64>, delta_us: Option<i64>) {
        let stack = u64::from(stack.0);
        let signed_len = |number: Option<i64>| number.map_or(0, |number| varint_len(number.cast_unsigned()));
        let length = varint_len(stack) + signed_len(pid) + signed_len(delta_us);
        let event_type = if pid.is_some() { EventType::PidSample } else { EventType::Sample };
        self.put_number(event_type, length as u64);
        put_varint(&mut self.buffer, stack);
        for number in [pid, delta_us].into_iter().flatten() {
            put_varint_signed(&mut self.buffer, number);
        }
    }

    /// Writes a sample with only a small stack and a small delta, as nearly all are; returns whether it did. It takes
    /// at most 8 bytes, which are assembled in a register. The stack of another segment is not small.
    #[inline]
    fn put_small(&mut self, sample: &SampleDef<'_>) -> bool {
        let SampleDef { stack, count: 1, delta_us: Some(delta_us), pid: None, annotations: None } = *sample
        else {
            return false;
        };
        let (stack, delta_us) = (self.segment.strip_stack(stack), delta_us.cast_unsigned());
        if stack >= SMALL || delta_us >= SMALL {
            return false;
        }
        let (stack_len, delta_len) = (varint_len(stack), varint_len(delta_us));
        let length = stack_len + delta_len;
        let event = EventType::Sample as u64
            | (length as u64) << 8
            | small_varint(stack) << 16
            | small_varint(delta_us) << (16 + 8 * stack_len);
        let end = self.buffer.len() + 2 + length;
        self.buffer.extend_from_slice(&event.to_le_bytes());
        self.buffer.truncate(end);
        true
    }

    /// Writes the pending run, as reli does: one sample, two samples, or a sample and a repeat.
    #[inline]
    fn end_run(&mut self) -> io::Result<()> {
        let Some(PendingRun { number, count, .. }) = self.run.take() else { return Ok(()) };
        let samples = if count == 2 { 2 } else { 1 };
        for _ in 0..samples {
            self.put_number(EventType::CompactSample, u64::from(number.0));
            self.put_annotations()?;
        }
        self.put_repeats(count - samples);
        Ok(())
    }

    /// Writes repeats of the last sample. Readers take the number as signed, so more than fit are written as several,
    /// which readers add up.
    #[inline]
    fn put_repeats(&mut self, mut repeats: u64) {
        while repeats > 0 {
            let some = repeats.min(i64::MAX.cast_unsigned());
            self.put_number(EventType::RepeatSample, some);
            repeats -= some;
        }
    }

    /// Writes the annotations of the run. Their strings are defined here, after the sample, as in reli.
    fn put_annotations(&mut self) -> io::Result<()> {
        if self.run_annotations.is_empty() {
            return Ok(());
        }
        let list = std::mem::take(&mut self.run_annotations);
        let mut ids = std::mem::take(&mut self.annotation_ids);
        ids.clear();
        for string in list.strings() {
            ids.push(self.define_string(string)?);
        }
        self.payload.clear();
        put_varint(&mut self.payload, ids.len() as u64 / 2);
        for id in &ids {
            put_varint(&mut self.payload, u64::from(*id));
        }
        self.put_event(EventType::SampleAnnotation);
        self.annotation_ids = ids;
        self.run_annotations = list;
        Ok(())
    }

    /// The id of a string, defined on first use.
    fn define_string(&mut self, string: &[u8]) -> io::Result<u32> {
        let (id, new) = self.strings.intern(string)?;
        if new {
            let length = varint_len(u64::from(id)) + string.len();
            self.buffer.push(EventType::StringDef as u8);
            put_varint(&mut self.buffer, length as u64);
            put_varint(&mut self.buffer, u64::from(id));
            self.buffer.extend_from_slice(string);
        }
        Ok(id)
    }

    /// The ids of the strings of `frame`; `None` for absent ones.
    fn define_strings(&mut self, frame: &FrameDef<'_>) -> io::Result<[Option<u32>; 5]> {
        let mut ids = [None; 5];
        for (id, string) in ids.iter_mut().zip(frame.defined_strings()) {
            *id = Some(self.define_string(string)?);
        }
        Ok(ids)
    }

    fn put_frame_def(&mut self, number: FrameNumber, frame: &FrameDef<'_>, strings: [Option<u32>; 5]) {
        let [strings @ .., opcode] = strings;
        let (line, native) = frame.number();
        let flags = u64::from(native) * FRAME_NATIVE + u64::from(opcode.is_some()) * FRAME_HAS_OPCODE;
        self.payload.clear();
        put_varint(&mut self.payload, u64::from(number.0));
        put_varint(&mut self.payload, flags);
        for string in strings.into_iter().flatten() {
            put_varint(&mut self.payload, u64::from(string));
        }
        put_varint_signed(&mut self.payload, line);
        if let Some(opcode) = opcode {
            put_varint(&mut self.payload, u64::from(opcode));
        }
        self.put_event(EventType::FrameDef);
    }

    /// Writes the current payload as an event.
    fn put_event(&mut self, event_type: EventType) {
        self.buffer.push(event_type as u8);
        put_varint(&mut self.buffer, self.payload.len() as u64);
        self.buffer.extend_from_slice(&self.payload);
    }

    /// Writes the type of an event and the number after it: the whole event for two of the types, otherwise the length
    /// of the payload.
    #[inline]
    fn put_number(&mut self, event_type: EventType, number: u64) {
        // Far shorter than the output of `put_small`: one store of 8 bytes was measured to be slower here.
        self.buffer.push(event_type as u8);
        put_varint(&mut self.buffer, number);
    }

    /// Writes a full buffer to the output. This comes before anything is added: records that cannot be written are then
    /// not taken, and the buffer does not grow while the output fails.
    #[inline]
    fn make_room(&mut self) -> io::Result<()> {
        if self.buffer.len() >= BUFFER_BYTES {
            self.with_output(|output, buffer| write_out(output, buffer))
        } else {
            Ok(())
        }
    }
}

impl<W: Write> Drop for Writer<W> {
    fn drop(&mut self) {
        // There is no one left to hear of an error.
        let _ = self.flush();
    }
}

#[cold]
fn no_output() -> io::Error {
    io::Error::other("the output has panicked")
}

#[derive(Clone, Copy, Debug)]
struct PendingRun {
    stack: StackId,
    number: StackNumber,
    count: u64,
}

/// Numbers below this take at most three bytes.
const SMALL: u64 = 1 << 21;

/// A number below [`SMALL`] as a varint, first byte lowest.
#[inline]
const fn small_varint(value: u64) -> u64 {
    let groups = (value & 0x7f) | ((value << 1) & 0x7f00) | ((value << 2) & 0x7f_0000);
    let more = ((value >= 1 << 7) as u64 * 0x80) | ((value >= 1 << 14) as u64 * 0x8000);
    groups | more
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that accepts nothing.
    struct Dead;

    impl Write for Dead {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn memory_does_not_grow_while_the_output_fails() {
        let header = Header { has_timestamps: true, period_us: 10_000 };
        let mut writer = Writer::new(Dead, header).unwrap().checkpoint_every(1000);
        let stack = writer.define_trace(&[FrameDef::php("f", "/a.php", 1)]).unwrap();
        let sample = SampleDef { delta_us: Some(1), ..SampleDef::of(stack) };
        let taken = (0..100_000).filter(|_| writer.write_sample(&sample).is_ok()).count();
        assert!(taken as u64 == writer.samples && taken < 20_000, "{taken}");
        for number in 0..1000 {
            assert!(writer.define_trace(&[FrameDef::php("f", "/a.php", number + 2)]).is_err());
            assert!(
                writer.write_metadata(b"key", b"value").is_err() && writer.start_segment(header).is_err()
            );
        }
        assert!(writer.buffer.len() < BUFFER_BYTES + 100, "{}", writer.buffer.len());
    }

    #[test]
    fn small_samples_are_written_as_large_ones_are() {
        let edges = [0, 1, 127, 128, 16_383, 16_384, SMALL - 1, SMALL];
        for (stack, delta_us) in edges.iter().flat_map(|&one| edges.map(|other| (one, other))) {
            let header = Header { has_timestamps: true, period_us: 10_000 };
            let mut writer = Writer::new(Vec::new(), header).unwrap();
            let stack = writer.segment.stack(StackNumber(stack.try_into().unwrap()));
            let sample = SampleDef { delta_us: Some(delta_us.cast_signed()), ..SampleDef::of(stack) };
            writer.write_sample(&sample).unwrap();
            let small = std::mem::take(&mut writer.buffer);
            // Empty annotations write nothing, and take the other path.
            writer.write_sample(&SampleDef { annotations: Some(&[]), ..sample }).unwrap();
            assert_eq!(small[16..], writer.buffer, "{sample:?}");
        }
    }
}
