//! The thread that writes recorded events into files.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use crate::archive::Archive;
use crate::buffer::{FlushedBuffer, ThreadBuffer};
use crate::clock::now_ns;
use crate::events::DumpTriggeredEvent;
use crate::losses::UnwrittenLosses;
use crate::options::Builder;
use crate::recording::Recording;
use crate::ring::Ring;
use crate::segment::SegmentFile;
use crate::trc::Writer;
use crate::trc::dial9::metadata;

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
    /// The number of dumps that were asked for or triggered.
    pub dumps: u64,
    /// The number of triggers that came too soon after a dump to cause another one.
    pub skipped_dumps: u64,
}

/// Collects, writes and rotates.
pub(crate) struct Collector {
    recording: Arc<Recording>,
    options: Builder,
    archive: Archive,
    /// `None` if no new file could be created, or there is a ring.
    segment: Option<SegmentFile>,
    /// The newest events, if they are not written until something happens.
    ring: Option<Ring>,
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
        let (segment, ring, next_number) = match options.ring_bytes {
            None => {
                let (segment, number) = SegmentFile::create(&options, 0, &recording.metadata.entries())?;
                (Some(segment), None, number + 1)
            }
            Some(bytes) => {
                // What cannot work is said now, not when it is needed.
                fs::create_dir_all(&options.folder)?;
                (None, Some(Ring::new(bytes)), 0)
            }
        };
        Ok(Self {
            archive: Archive::start(&options, started)?,
            recording,
            options,
            summary: Summary { segments: u64::from(segment.is_some()), ..Summary::default() },
            segment,
            ring,
            next_number,
            bytes: Vec::new(),
            buffers: Vec::new(),
            losses: UnwrittenLosses::default(),
            error: None,
        })
    }

    /// Runs until it is asked to stop. Returns the summary, or the first error.
    pub(crate) fn run(mut self) -> io::Result<Summary> {
        loop {
            let order = self.recording.wait(self.options.flush_every);
            self.rotate();
            let mut is_complete = self.collect(order.stop);
            if let Some(reason) = &order.dump {
                is_complete &= self.dump(reason);
            }
            if order.stop {
                self.complete();
                self.summary.skipped_dumps = self.recording.debounce.skipped();
                self.archive.finish();
                self.recording.done(&order, is_complete);
                return self.error.map_or(Ok(self.summary), Err);
            }
            self.recording.done(&order, is_complete);
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
        let is_written = self.append(&bytes, events);
        if is_written {
            self.summary.events += if self.ring.is_none() { events } else { 0 };
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
        if self.append(&self.losses.batch(), 0) {
            self.losses.clear();
        }
    }

    /// Appends complete batches with this number of events to the file, or to the ring. Returns whether they are in it.
    fn append(&mut self, bytes: &[u8], events: u64) -> bool {
        if bytes.is_empty() {
            return true;
        }
        if let Some(ring) = &mut self.ring {
            ring.push(bytes, events);
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
        let is_full = |segment: &SegmentFile| segment.is_full(segment_bytes, rotate_every);
        if self.ring.is_some() || self.segment.as_ref().is_some_and(|segment| !is_full(segment)) {
            return self.update_metadata();
        }
        self.complete();
        self.segment = self.create();
    }

    /// Writes metadata that have changed into the file, because the process may not live to complete it.
    fn update_metadata(&mut self) {
        if let Some(segment) = &mut self.segment
            && let Some(metadata) = self.recording.metadata.take_changed()
        {
            let updated = segment.update(&metadata);
            self.remember(updated);
        }
    }

    /// Creates the next file; `None` if that fails.
    fn create(&mut self) -> Option<SegmentFile> {
        let metadata = self.recording.metadata.entries();
        match SegmentFile::create(&self.options, self.next_number, &metadata) {
            Ok((segment, number)) => {
                self.next_number = number + 1;
                self.summary.segments += 1;
                Some(segment)
            }
            Err(error) => {
                self.remember(Err(error));
                None
            }
        }
    }

    /// Writes the ring into a file of its own; without a ring, completes the file. Returns whether that could be written.
    fn dump(&mut self, reason: &str) -> bool {
        self.state_reason(reason);
        self.summary.dumps += 1;
        if let Some(ring) = &mut self.ring {
            let batches = ring.take();
            self.segment = self.create();
            let Some(segment) = &mut self.segment else { return false };
            let written: io::Result<()> = batches.iter().try_for_each(|batch| segment.append(&batch.bytes));
            let events = batches.iter().map(|batch| batch.events).sum::<u64>();
            let is_written = written.is_ok();
            self.remember(written);
            match is_written {
                true => self.summary.events += events,
                false => self.note_loss(None, events),
            }
        }
        let is_written = self.segment.is_some();
        self.complete_for(Some(reason));
        if self.ring.is_none() {
            self.segment = self.create();
        }
        is_written
    }

    fn state_reason(&mut self, reason: &str) {
        let skipped = self.recording.debounce.skipped();
        let mut writer = Writer::new(Vec::new());
        // Writing to a vector cannot fail, and the event fits.
        let _ = writer.write(&DumpTriggeredEvent { timestamp_ns: now_ns(), reason, skipped });
        self.append(&writer.finish().unwrap_or_default(), 0);
    }

    fn complete(&mut self) {
        self.complete_for(None);
    }

    fn complete_for(&mut self, reason: Option<&str>) {
        if let Some(mut segment) = self.segment.take() {
            let names = self.recording.symbols.batch(self.ring.is_none());
            let named = segment.append(&names);
            self.remember(named);
            let mut metadata = self.recording.metadata.entries();
            metadata.extend(reason.map(|reason| (metadata::DUMP_REASON.to_owned(), reason.to_owned())));
            let ended = segment.end(&metadata);
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
