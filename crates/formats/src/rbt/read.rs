//! Segments, metadata and samples, pulled in order.
//!
//! [`EventReader`] decodes events out of bytes, [`Assembler`] makes records of them, and after damage [`Recoverer`] finds
//! the position to continue at, and reports the loss. [`RecordStream`] completes most samples where they are.

use std::io::Read;

use super::assembler::{Assembler, Completed, Record, StoredSample};
use super::events::{EventReader, NextRecord};
use super::flow::RecordStream;
use super::recover::Recoverer;
use crate::{Error, ReadOptions, Recovery};

/// Reads segments, metadata and samples.
///
/// It accepts everything that reli's strict reader accepts, sample for sample. In addition, a cut-off end loses no
/// complete record: it is the end of the data, with a warning in [`Reader::recovery`].
///
/// Memory is bounded by one event and by the definitions of one segment. Nothing is allocated per sample.
pub struct Reader<R> {
    stream: RecordStream<R>,
    recoverer: Recoverer,
    /// Whether the next sample follows directly: no record is pending or waiting.
    in_flow: bool,
}

impl<R: Read> Reader<R> {
    /// Reads `input` strictly: raw, compressed, or segments of all kinds one after the other.
    pub fn new(input: R) -> Self {
        Self::with_options(input, ReadOptions::default())
    }

    /// Reads `input` with `options`.
    pub fn with_options(input: R, options: ReadOptions) -> Self {
        let events = EventReader::new(input, options);
        let assembler = Assembler::new(options.limits);
        let stream = RecordStream { events, assembler };
        Self { stream, recoverer: Recoverer::default(), in_flow: false }
    }

    /// The next record; `None` at the end, and after an error.
    ///
    /// # Errors
    /// If the input cannot be read or contradicts the format. All samples before that position have been returned. With
    /// lenient options only the former is an error.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        if self.in_flow
            && let Some(sample) = self.stream.complete_sample()
        {
            return Ok(Some(Record::Sample(self.stream.assembler.sample(sample))));
        }
        self.any_record()
    }

    /// The next sample, if it and the record after it are available.
    ///
    /// Samples returned here stay in registers. As [`Record`]s, each would be written and read again at once, and waiting
    /// for that takes the processor longer than decoding.
    #[inline]
    pub(super) fn ready_sample(&mut self) -> Option<StoredSample<'_>> {
        let sample = if self.in_flow { self.stream.complete_sample()? } else { return None };
        Some(self.stream.assembler.sample(sample))
    }

    /// The next record by the general path.
    pub(super) fn any_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.in_flow = false;
        let completed = self.complete_any()?;
        self.in_flow = self.stream.assembler.is_idle() && self.stream.events.is_flowing();
        if self.in_flow {
            self.stream.events.leave();
        }
        Ok(completed.map(|completed| self.stream.assembler.record(&completed)))
    }

    /// The numbers of records read so far, and the warnings.
    pub const fn recovery(&self) -> &Recovery {
        &self.stream.assembler.recovery
    }

    /// The numbers of records read, and the warnings.
    pub fn into_recovery(self) -> Recovery {
        let RecordStream { events, assembler } = self.stream;
        let mut recovery = self.recoverer.finish(assembler);
        events.padding().into_iter().for_each(|note| recovery.note(note));
        recovery
    }

    #[cfg(test)]
    pub(super) const fn effort(&self) -> &borehole_wire::Effort {
        &self.stream.events.effort
    }

    fn complete_any(&mut self) -> Result<Option<Completed>, Error> {
        if let Some(completed) = self.stream.assembler.next_waiting()? {
            return Ok(Some(completed));
        }
        loop {
            if self.stream.assembler.has_pending() && self.stream.is_superseded() {
                return Ok(self.stream.assembler.end());
            }
            let RecordStream { events, assembler } = &mut self.stream;
            let completed = match events.advance() {
                Ok(Some(NextRecord::Event(_))) => self.event(),
                Ok(Some(NextRecord::Header(header))) => assembler.header(header, events.offset()),
                Ok(None) if self.recoverer.continue_after_end(&mut self.stream)? => Ok(None),
                Ok(None) => return Ok(self.stream.assembler.end()),
                Err(error) => Err(error),
            };
            match completed.or_else(|error| self.failed(error)) {
                Ok(None) => {}
                completed => return completed,
            }
        }
    }

    /// Assembles the last event taken.
    fn event(&mut self) -> Result<Option<Completed>, Error> {
        let RecordStream { events, assembler } = &mut self.stream;
        if events.options.is_lenient() {
            return self.recoverer.event(&mut self.stream);
        }
        let Some(raw) = events.last_event() else { return Ok(None) };
        assembler.event(&raw).map_err(|fault| fault.at(&raw))
    }

    /// Ends the reading with `error`, or, when lenient, finds the position to continue at.
    #[cold]
    fn failed(&mut self, error: Error) -> Result<Option<Completed>, Error> {
        if self.stream.events.options.is_lenient() && !error.is_io() && !error.is_memory() {
            return self.recoverer.continue_after(&error, &mut self.stream);
        }
        self.recoverer.keep_warnings(&mut self.stream);
        self.stream.events.stop();
        self.stream.assembler.fail(error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::{FrameDef, Header, SampleDef, Writer};
    use super::*;

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
        let (mut lines, mut ready) = (Vec::new(), 0);
        loop {
            let was_in_flow = reader.in_flow;
            match reader.next_record() {
                Ok(Some(Record::Sample(sample))) => {
                    let frames: Vec<_> = sample.definitions.frames_leaf_first(sample.stack).collect();
                    let times = (sample.count, sample.delta_us, sample.accumulated_us);
                    let facts = (sample.pid, sample.annotations, sample.offset);
                    lines.push(format!("{:?} {frames:?} {times:?} {facts:?}", sample.stack));
                    ready += usize::from(was_in_flow && reader.in_flow);
                }
                Ok(Some(record)) => lines.push(format!("{record:?}")),
                Ok(None) => break,
                Err(error) => lines.push(error.to_string()),
            }
        }
        lines.push(format!("{:?}", reader.into_recovery()));
        (lines, ready)
    }

    /// Compares the fast path with reading byte by byte. Returns the number of samples that took the fast path
    /// additionally.
    fn compare(bytes: &[u8], name: &str) -> usize {
        let mut ready = 0;
        for options in [ReadOptions::default(), ReadOptions::lenient()] {
            let whole = read(Reader::with_options(bytes, options));
            let trickled = read(Reader::with_options(Trickle(bytes), options));
            assert_eq!(whole.0, trickled.0, "{name} {options:?}");
            ready += whole.1 - trickled.1;
        }
        ready
    }

    #[test]
    fn ready_samples_equal_those_of_the_general_path() {
        let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt"));
        let files = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path());
        // Traces of a million samples show nothing new, byte by byte and in two modes.
        let is_wanted = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "rbt")
                && path.metadata().unwrap().len() < 500_000
        };
        let mut ready = 0;
        for path in files.filter(is_wanted) {
            ready += compare(&std::fs::read(&path).unwrap(), &path.display().to_string());
        }
        assert!(ready > 10_000, "{ready}");
    }

    #[test]
    fn annotated_samples_are_ready() {
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
            let (_, ready) = read(Reader::with_options(bytes.as_slice(), options));
            assert!(ready > 990, "{ready} of 1000 {options:?}");
        }
    }

    #[test]
    fn damage_is_handled_the_same_on_both_paths() {
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
