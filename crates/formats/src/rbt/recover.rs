//! Continues reading after damage, and reports what was lost.
//!
//! Damage is handled in this order:
//!
//! 1. A length that disagrees with the fields of its event is corrected if plausible bytes follow the end of the fields.
//! 2. An event with a bad payload that plausible bytes follow is skipped alone.
//! 3. Otherwise the search continues byte by byte after the failed event's first byte, for a flawless header or a
//!    plausible chain of events of the same segment.
//!
//! A segment that lost its header is read if it is the first, or begins with its first string. Its first sample shows
//! whether its samples have timestamps.
//!
//! Samples that refer to a lost definition keep their weight and time: a stand-in named `<lost …>` replaces the missing
//! part.

use std::io::Read;

use borehole_wire::Effort;

use super::assembler::{Assembler, Completed, EventFault};
use super::events::StreamPlace;
use super::flow::RecordStream;
use super::layout::{EventType, HEADER_BYTES, NAME};
use super::plausibility::SearchPurpose;
use super::search::SegmentSearch;
use crate::{Error, Position, Recovery, Warning};

/// Decides where reading continues after damage, and accounts for the loss.
#[derive(Default)]
pub(super) struct Recoverer {
    region: Option<DamagedRegion>,
    lost_time: LostTime,
}

/// The part of a file between one damage and the next.
struct DamagedRegion {
    /// The index of the damage's warning.
    warning_index: usize,
    samples_before: u64,
}

/// Lost time of lost samples: times are differences between samples, so later ones are early, until a segment states its wall
/// clock.
#[derive(Default)]
struct LostTime {
    /// The offset of the first loss.
    offset: Option<u64>,
    /// The number of samples with timestamps read before the loss that still makes times early.
    timed_before: Option<u64>,
    /// The number of samples with early times before the last wall clock.
    early: u64,
}

impl Recoverer {
    /// Assembles the last event taken, repairing it if possible.
    pub(super) fn event(&mut self, stream: &mut RecordStream<impl Read>) -> Result<Option<Completed>, Error> {
        let mut search = SegmentSearch::new(stream);
        if let Some(error) = search.cut_by_segment()? {
            return Err(error);
        }
        if search.length_is_suspect()?
            && !self.correct_length(stream)?
            && let Some(raw) = stream.events.last_event().filter(|raw| raw.event_type().is_none())
        {
            let name = EventType::name_of(raw.type_byte);
            let message = format!("unexpected {name}: no plausible event follows it");
            return Err(Error::malformed(NAME, Position::Byte(raw.offset), message));
        }
        let mut corrected = false;
        loop {
            let Some(raw) = stream.events.last_event() else { return Ok(None) };
            let (fault, error) = match stream.assembler.event(&raw) {
                Ok(completed) => {
                    if std::mem::take(&mut stream.assembler.has_new_clock) {
                        self.regain_time(&stream.assembler);
                    }
                    return Ok(completed);
                }
                Err(fault) => (fault, fault.at(&raw)),
            };
            let helped = match fault {
                EventFault::Undefined(undefined) => {
                    stream.assembler.stand_in(undefined, stream.events.offset())
                }
                // If a length and a payload disagree, the length is right if plausible bytes follow it.
                EventFault::Payload(_) if !corrected => {
                    let end = stream.events.taken;
                    !SegmentSearch::new(stream).is_plausible(end, SearchPurpose::Continue)?
                        && self.correct_length(stream)?
                }
                _ => false,
            };
            corrected = true;
            if !helped {
                return Err(error);
            }
        }
    }

    /// Finds the position to continue at after `error`. The failed record is at the start of the window.
    pub(super) fn continue_after(
        &mut self,
        error: &Error,
        stream: &mut RecordStream<impl Read>,
    ) -> Result<Option<Completed>, Error> {
        self.keep_warnings(stream);
        let lost_header = self.skip_damage(error, stream)?;
        let is_first =
            stream.events.place == StreamPlace::InSegment && stream.assembler.recovery.segments == 0;
        if !lost_header && !is_first {
            return Ok(None);
        }
        stream.events.header.has_timestamps = SegmentSearch::new(stream).first_sample_is_timed()?;
        let completed = stream.assembler.header(stream.events.header, stream.events.offset());
        stream.assembler.lose();
        completed
    }

    /// After the end of the data: whether it was only the end of a damaged member, with more to read after it.
    pub(super) fn continue_after_end(&mut self, stream: &mut RecordStream<impl Read>) -> Result<bool, Error> {
        self.keep_warnings(stream);
        if !stream.events.options.is_lenient() {
            return Ok(false);
        }
        let offset = stream.events.offset();
        let Some(passed) = stream.events.window.past_damage() else { return Ok(false) };
        let passed = passed.map_err(|error| Error::io(NAME, Position::Byte(offset), error))?;
        let method = stream.events.window.envelope().method();
        let message = format!("compressed bytes passed over after a damaged {method}");
        self.damage(&mut stream.assembler, Warning::new(message).at(offset).losing(passed));
        self.lose_time(&stream.assembler, offset);
        stream.events.resume(StreamPlace::Start);
        Ok(!stream.events.ensure(1)?.is_empty())
    }

    /// Keeps the warnings of the events. Those of lenient reading are all of damage.
    pub(super) fn keep_warnings(&mut self, stream: &mut RecordStream<impl Read>) {
        for warning in stream.events.take_warnings() {
            if stream.events.options.is_lenient() {
                self.damage(&mut stream.assembler, warning);
            } else {
                stream.assembler.recovery.warn(warning);
            }
        }
    }

    /// The numbers of all records read, and all warnings.
    pub(super) fn finish(mut self, mut assembler: Assembler) -> Recovery {
        let samples_read = assembler.recovery.samples;
        self.end_region(&mut assembler.recovery, samples_read);
        self.regain_time(&assembler);
        self.warn_of_lost_time(&mut assembler);
        assembler.recovery
    }

    /// Skips what `error` makes unreadable, or repairs it. Returns whether a segment without a header follows.
    fn skip_damage(&mut self, error: &Error, stream: &mut RecordStream<impl Read>) -> Result<bool, Error> {
        let from = stream.events.offset();
        let skip = std::mem::take(&mut stream.events.taken);
        stream.events.effort.work(Effort::PER_DAMAGE + skip as u64);
        let before = stream.events.place;
        let failed_type = stream.events.last_event().and_then(|raw| raw.event_type()).filter(|_| skip > 0);
        let is_whole = skip > 0 && !error.is_truncated();
        let (place, lost_header) = if is_whole
            && SegmentSearch::new(stream).is_plausible(skip, SearchPurpose::Resume)?
        {
            stream.events.window.consume(skip);
            (StreamPlace::InSegment, false)
        } else if self.repair_front(error, stream)? {
            return Ok(false);
        } else {
            let purpose = if error.is_truncated() { SearchPurpose::SearchCut } else { SearchPurpose::Search };
            SegmentSearch::new(stream).next_record(purpose)?
        };
        stream.assembler.lose();
        stream.events.resume(place);
        let lost_bytes = stream.events.offset() - from;
        // If a header was expected, no more than that may be lost, and a lost definition loses no time.
        let is_definition = failed_type.is_some_and(|failed| !EventType::is_sample(failed as u8));
        let is_alone = is_definition && lost_bytes == skip as u64;
        if (before == StreamPlace::InSegment && !is_alone) || lost_bytes > HEADER_BYTES as u64 {
            self.lose_time(&stream.assembler, from);
        }
        self.damage(&mut stream.assembler, Warning::of(error).at(from).losing(lost_bytes));
        Ok(lost_header)
    }

    /// Repairs the start of the window itself: a header that is almost right, or an event whose length exceeds the
    /// input or the limit.
    fn repair_front(&mut self, error: &Error, stream: &mut RecordStream<impl Read>) -> Result<bool, Error> {
        let is_header = SegmentSearch::new(stream).is_almost_a_header()?;
        if is_header && !error.is_truncated() {
            let message = "damaged segment header: read as if it were whole";
            self.damage(&mut stream.assembler, Warning::new(message).at(stream.events.offset()));
            stream.events.trust_header();
            return Ok(true);
        }
        let is_event = stream.events.place == StreamPlace::InSegment && stream.events.last_event().is_none();
        if is_event && self.correct_length(stream)? {
            stream.events.resume(StreamPlace::InSegment);
            stream.events.give_again();
            return Ok(true);
        }
        Ok(false)
    }

    /// Moves the end of the event at the start of the window to the end of its fields, if that is plausible.
    fn correct_length(&mut self, stream: &mut RecordStream<impl Read>) -> Result<bool, Error> {
        let Some(framed) = SegmentSearch::new(stream).corrected_event()? else { return Ok(false) };
        let name = EventType::name_of(framed.type_byte);
        let message = format!("invalid length of {name}: corrected from its fields");
        self.damage(&mut stream.assembler, Warning::new(message).at(stream.events.offset()));
        stream.assembler.lose();
        stream.events.retake(framed);
        Ok(true)
    }

    /// Adds `warning`, which begins a region and ends the one before.
    fn damage(&mut self, assembler: &mut Assembler, warning: Warning) {
        let samples_before = assembler.samples_read();
        let recovery = &mut assembler.recovery;
        self.end_region(recovery, samples_before);
        self.region = Some(DamagedRegion { warning_index: recovery.warnings.len(), samples_before });
        recovery.warn(warning);
    }

    /// Adds the number of samples read in the region to the warning that began it.
    fn end_region(&mut self, recovery: &mut Recovery, samples_read: u64) {
        let Some(DamagedRegion { warning_index, samples_before }) = self.region.take() else { return };
        // Only a limited number of warnings is kept.
        if let Some(warning) = recovery.warnings.get_mut(warning_index) {
            warning.saved_samples = Some(samples_read.saturating_sub(samples_before));
        }
    }

    /// Notes that samples were lost, and their time with them.
    fn lose_time(&mut self, assembler: &Assembler, offset: u64) {
        self.lost_time.offset.get_or_insert(offset);
        self.lost_time.timed_before.get_or_insert(assembler.timed_samples_read());
    }

    /// Notes that later times are not early any more.
    fn regain_time(&mut self, assembler: &Assembler) {
        let LostTime { offset, timed_before, early } = &mut self.lost_time;
        if let Some(timed_before) = timed_before.take() {
            *early += assembler.timed_samples_read().saturating_sub(timed_before);
        }
        // A loss that made no time early is not the one to name.
        *offset = offset.filter(|_| *early > 0);
    }

    /// Warns of the samples with unknown times.
    fn warn_of_lost_time(&self, assembler: &mut Assembler) {
        let LostTime { offset: Some(offset), early, .. } = self.lost_time else { return };
        let (times, of, are) = match early {
            1 => ("time", "1 sample".to_owned(), "is"),
            more => ("times", format!("{more} samples"), "are"),
        };
        assembler.warn(
            offset,
            format!("{times} of {of} after the damage at byte {offset:#x} {are} early by an unknown time"),
        );
    }
}
