//! The fast path through the bulk of a file.
//!
//! A sample is complete when the next record can neither annotate nor repeat it. In general that is known only after
//! reading the next record, but usually the next sample is already in the window. Then the sample is returned at once,
//! without saving any state. The decoders are the same.

use std::io::Read;

use borehole_wire::Cursor;

use super::annotations::{self, Annotations};
use super::definitions::Definitions;
use super::event::{Event, RawEvent, SampleFields};
use super::layout::EventType;
use super::read::{Core, PlainSample, Reader, Sample};

impl<R: Read> Reader<R> {
    /// The next sample, if it and the record after it are available.
    #[inline]
    pub(super) fn sample_at_sight(&mut self) -> Option<Sample<'_>> {
        let core = if self.in_flow { self.complete_sample()? } else { return None };
        Some(self.sample(core))
    }

    /// Takes the sample at the start of the window, if it is plain, complete and entirely available.
    #[inline]
    pub(super) fn complete_sample(&mut self) -> Option<Core> {
        let mut ahead = self.ahead();
        let sample = ahead.plain_sample()?;
        if ahead.is_at_annotation() {
            let left = ahead.bytes.rest().len();
            return self.complete_annotated(sample, left);
        }
        let more = ahead.repeats()?;
        let left = ahead.left_at_sample()?;
        if self.options.is_lenient() && !self.is_plain_at(left) {
            return None;
        }
        self.events.pass_to(left);
        Some(self.give_out(sample, more, false))
    }

    /// Like [`complete_sample`](Self::complete_sample), for `sample`, whose annotation begins `left` bytes before the
    /// end of the window.
    fn complete_annotated(&mut self, sample: PlainSample, left: usize) -> Option<Core> {
        let mut annotations = std::mem::take(&mut self.pending_annotations);
        let more = self.ahead_from(left).and_then(|mut ahead| {
            ahead.annotation(&mut annotations)?;
            Some((ahead.repeats()?, ahead.left_at_sample()?))
        });
        self.pending_annotations = annotations;
        let (more, left) = more?;
        if self.options.is_lenient() && !(self.is_plain_at(left) && self.is_one_piece(left)) {
            return None;
        }
        self.events.pass_to(left);
        Some(self.give_out(sample, more, true))
    }

    /// Whether the record after the last one can neither annotate nor repeat the pending sample.
    pub(super) fn is_superseded(&mut self) -> bool {
        self.events.leave();
        let ahead = self.ahead();
        self.events.is_flowing()
            && ahead.is_at_sample()
            && (!self.options.is_lenient() || self.is_plain_at(ahead.bytes.rest().len()))
    }

    /// Whether a sample begins `left` bytes before the end of the window, and not a damaged event of another type.
    #[inline(never)]
    fn is_plain_at(&self, left: usize) -> bool {
        self.ahead_from(left).is_some_and(|mut ahead| ahead.plain_sample().is_some())
    }

    /// Whether no segment begins before the last `left` bytes of the window.
    fn is_one_piece(&self, left: usize) -> bool {
        self.segments_before(self.passed_at(left)).next().is_none()
    }

    /// The number of bytes of the window before its last `left` ones.
    #[inline]
    fn passed_at(&self, left: usize) -> usize {
        self.events.ahead().rest().len() - left
    }

    /// The bytes ahead, from `left` bytes before the end of the window on.
    #[inline]
    fn ahead_from(&self, left: usize) -> Option<Ahead<'_>> {
        let mut ahead = self.ahead();
        ahead.bytes.bytes(self.passed_at(left)).ok()?;
        Some(ahead)
    }

    #[inline]
    fn ahead(&self) -> Ahead<'_> {
        Ahead {
            bytes: self.events.ahead(),
            has_timestamps: self.segment.header.has_timestamps,
            definitions: &self.definitions,
            max_payload: self.options.limits.payload_bytes,
        }
    }
}

/// The available bytes, with the state needed to read them.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    bytes: Cursor<'a>,
    has_timestamps: bool,
    definitions: &'a Definitions,
    max_payload: usize,
}

impl Ahead<'_> {
    /// Takes a sample, if it is simple.
    #[expect(clippy::inline_always, reason = "every sample of a file passes here, in registers if in line")]
    #[inline(always)]
    fn plain_sample(&mut self) -> Option<PlainSample> {
        let raw = RawEvent::read(&mut self.bytes, self.max_payload).ok()?;
        let SampleFields { stack, pid, delta_us } = SampleFields::of(&raw, self.has_timestamps)?;
        let stack = self.definitions.sampled(stack)?;
        Some(PlainSample { stack, pid, delta_us, offset: raw.offset })
    }

    /// Takes a simple annotation of the sample before it, and replaces `annotations`.
    #[inline]
    fn annotation(&mut self, annotations: &mut Annotations) -> Option<()> {
        let raw = RawEvent::read(&mut self.bytes, self.max_payload).ok()?;
        let mut payload = raw.payload;
        let event = Event::decode_payload(&raw, &mut payload, self.has_timestamps).ok()?;
        let Event::Annotation { pairs } = event else { return None };
        if !payload.is_empty() {
            return None;
        }
        annotations::replace(annotations, pairs, self.definitions).ok()
    }

    /// Takes a repeat of the sample before it; returns the number of repeats.
    #[inline]
    fn repeats(&mut self) -> Option<u64> {
        if self.bytes.peek() != Some(EventType::RepeatSample as u8) {
            return Some(0);
        }
        let raw = RawEvent::read(&mut self.bytes, 0).ok()?;
        Some(u64::try_from(raw.value).unwrap_or(0))
    }

    /// Whether the next sample begins here.
    #[inline]
    fn is_at_sample(&self) -> bool {
        self.bytes.peek().is_some_and(EventType::is_sample)
    }

    /// The number of bytes left, if the next sample begins here.
    #[inline]
    fn left_at_sample(&self) -> Option<usize> {
        self.is_at_sample().then(|| self.bytes.rest().len())
    }

    #[inline]
    fn is_at_annotation(&self) -> bool {
        self.bytes.peek() == Some(EventType::SampleAnnotation as u8)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{FrameDef, Header, Record, SampleDef, Writer};
    use super::*;
    use crate::ReadOptions;

    /// Returns one byte at a time, so that the window never holds anything ahead.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = out.len().min(1);
            self.0.read(&mut out[..count])
        }
    }

    /// All output of a reader, and the number of samples read by the fast path.
    fn read(mut reader: Reader<impl Read>) -> (Vec<String>, usize) {
        let (mut lines, mut at_sight) = (Vec::new(), 0);
        loop {
            let was_in_flow = reader.in_flow;
            match reader.next_record() {
                Ok(Some(Record::Sample(sample))) => {
                    let frames: Vec<_> = sample.definitions.frames_leaf_first(sample.stack).collect();
                    let times = (sample.count, sample.delta_us, sample.accumulated_us);
                    let facts = (sample.pid, sample.annotations, sample.offset);
                    lines.push(format!("{:?} {frames:?} {times:?} {facts:?}", sample.stack));
                    at_sight += usize::from(was_in_flow && reader.in_flow);
                }
                Ok(Some(record)) => lines.push(format!("{record:?}")),
                Ok(None) => break,
                Err(error) => lines.push(error.to_string()),
            }
        }
        lines.push(format!("{:?}", reader.into_recovery()));
        (lines, at_sight)
    }

    /// Compares the fast path with reading byte by byte. Returns the number of samples that took the fast path
    /// additionally.
    fn compare(bytes: &[u8], name: &str) -> usize {
        let mut at_sight = 0;
        for options in [ReadOptions::default(), ReadOptions::lenient()] {
            let whole = read(Reader::with_options(bytes, options));
            let trickled = read(Reader::with_options(Trickle(bytes), options));
            assert_eq!(whole.0, trickled.0, "{name} {options:?}");
            at_sight += whole.1 - trickled.1;
        }
        at_sight
    }

    #[test]
    fn samples_read_at_sight_are_those_of_the_general_way() {
        let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt"));
        let files = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path());
        // Traces of a million samples show nothing new, byte by byte and in two modes.
        let is_wanted = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "rbt")
                && path.metadata().unwrap().len() < 500_000
        };
        let mut at_sight = 0;
        for path in files.filter(is_wanted) {
            at_sight += compare(&std::fs::read(&path).unwrap(), &path.display().to_string());
        }
        assert!(at_sight > 10_000, "{at_sight}");
    }

    #[test]
    fn annotated_samples_are_read_at_sight() {
        let header = Header { has_timestamps: true, period_us: 10_000 };
        let mut writer = Writer::new(Vec::new(), header).unwrap();
        let stack = writer.define_trace(&[FrameDef::php("main", "/app/a.php", 1)]).unwrap();
        for number in 0..1000 {
            let uri: &[u8] = if number % 3 == 0 { b"/cart" } else { b"/" };
            let annotations: &[(&[u8], &[u8])] = &[(b"uri", uri)];
            let annotations = Some(annotations);
            let delta_us = Some(9_990 + number % 20);
            writer.write_sample(&SampleDef { annotations, delta_us, ..SampleDef::of(stack) }).unwrap();
        }
        let bytes = writer.finish().unwrap();
        compare(&bytes, "annotated");
        for options in [ReadOptions::default(), ReadOptions::lenient()] {
            let (_, at_sight) = read(Reader::with_options(bytes.as_slice(), options));
            assert!(at_sight > 990, "{at_sight} of 1000 {options:?}");
        }
    }

    #[test]
    fn damage_is_met_alike_at_sight_and_in_the_general_way() {
        let base =
            std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/sweeps/base.rbt")).unwrap();
        for at in 0..base.len() {
            // The types of a sample, of a repeat and of an annotation, and a continued varint.
            for byte in [0x03, 0x08, 0x09, 0x0b, 0x85] {
                let mut damaged = base.clone();
                damaged[at] = byte;
                compare(&damaged, &format!("byte {at} is {byte:#x}"));
            }
        }
    }
}
