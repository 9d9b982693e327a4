//! The thread that writes recorded events into files.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use crate::archive::Archive;
use crate::buffer::{FlushedBuffer, ThreadBuffer};
use crate::losses::UnwrittenLosses;
use crate::options::Builder;
use crate::recording::Recording;
use crate::segment::SegmentFile;

/// The result of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of the program's events in files.
    pub events: u64,
    /// The number of the program's events that were lost. The files state where they are missing.
    pub lost_events: u64,
    /// The number of files begun.
    pub segments: u64,
}

/// Collects, writes and rotates.
pub(crate) struct Collector {
    recording: Arc<Recording>,
    options: Builder,
    archive: Archive,
    /// `None` if no new file could be created.
    segment: Option<SegmentFile>,
    next_number: u64,
    /// Swapped with the memory of the buffers.
    bytes: Vec<u8>,
    buffers: Vec<Arc<ThreadBuffer>>,
    losses: UnwrittenLosses,
    summary: Summary,
    error: Option<io::Error>,
}

impl Collector {
    pub(crate) fn new(recording: Arc<Recording>, options: Builder) -> io::Result<Self> {
        let started = SystemTime::now();
        let (segment, number) = SegmentFile::create(&options, 0)?;
        Ok(Self {
            archive: Archive::start(&options, started)?,
            recording,
            options,
            segment: Some(segment),
            next_number: number + 1,
            bytes: Vec::new(),
            buffers: Vec::new(),
            losses: UnwrittenLosses::default(),
            summary: Summary { segments: 1, ..Summary::default() },
            error: None,
        })
    }

    /// Runs until it is asked to stop. Returns the summary, or the first error.
    pub(crate) fn run(mut self) -> io::Result<Summary> {
        loop {
            let order = self.recording.wait(self.options.flush_every);
            self.rotate();
            let is_complete = self.collect(order.stop);
            if order.stop {
                self.complete();
                self.archive.finish();
                self.recording.done(order, is_complete);
                return self.error.map_or(Ok(self.summary), Err);
            }
            self.recording.done(order, is_complete);
        }
    }

    /// Takes the events from all buffers, for the last time if `is_last`. Returns whether all recorded events are in the file.
    fn collect(&mut self, is_last: bool) -> bool {
        let mut is_complete = true;
        let mut buffers = std::mem::take(&mut self.buffers);
        self.recording.buffers(&mut buffers, is_last);
        for buffer in buffers.drain(..) {
            if is_last {
                buffer.close();
            }
            is_complete &= self.collect_from(&buffer);
        }
        self.buffers = buffers;
        let lost_events = self.recording.take_lost();
        self.note_loss(None, lost_events);
        self.write_losses();
        is_complete && lost_events == 0
    }

    fn collect_from(&mut self, buffer: &ThreadBuffer) -> bool {
        let mut bytes = std::mem::take(&mut self.bytes);
        let FlushedBuffer { events, mut lost_events } = buffer.take(&mut bytes);
        let is_written = self.append(&bytes);
        if is_written {
            self.summary.events += events;
        } else {
            lost_events += events;
        }
        self.bytes = bytes;
        self.note_loss(buffer.thread_name.as_deref(), lost_events);
        lost_events == 0
    }

    fn note_loss(&mut self, thread_name: Option<&str>, lost_events: u64) {
        self.summary.lost_events += lost_events;
        self.losses.note(thread_name, lost_events);
    }

    /// Writes the noted losses; if that fails too, they stay noted.
    fn write_losses(&mut self) {
        if self.append(&self.losses.batch()) {
            self.losses.clear();
        }
    }

    /// Appends complete batches to the file. Returns whether they are in it.
    fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let Some(segment) = &mut self.segment else { return false };
        let written = segment.append(bytes);
        let is_written = written.is_ok();
        self.remember(written);
        is_written
    }

    /// Begins a new file if it is time or there is none.
    fn rotate(&mut self) {
        let Builder { segment_bytes, rotate_every, .. } = self.options;
        if self.segment.as_ref().is_some_and(|segment| !segment.is_full(segment_bytes, rotate_every)) {
            return;
        }
        self.complete();
        match SegmentFile::create(&self.options, self.next_number) {
            Ok((segment, number)) => {
                self.segment = Some(segment);
                self.next_number = number + 1;
                self.summary.segments += 1;
            }
            Err(error) => self.remember(Err(error)),
        }
    }

    fn complete(&mut self) {
        if let Some(mut segment) = self.segment.take() {
            let ended = segment.end(&self.options.metadata);
            self.remember(ended);
            // Do this even if the end could not be written: on a full disk, the archive frees space.
            let sealed = segment.seal();
            self.remember(sealed.map(|path| self.archive.add(path)));
        }
    }

    /// Keeps the first error.
    fn remember(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }
}
