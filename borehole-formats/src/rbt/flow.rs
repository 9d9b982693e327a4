//! The fast way through the bulk of a file.
//!
//! A sample is complete when what follows can neither annotate nor repeat it. In general that is known only
//! when the next record has been read; but mostly the next sample already stands in the window. Then the
//! sample is given out at once, and nothing has to be remembered of it. The decoders are the same.

use std::io::Read;

use borehole_wire::Cursor;

use super::definitions::Definitions;
use super::event::{RawEvent, SampleFields};
use super::layout::EventType;
use super::read::{Core, PlainSample, Reader};
use crate::ReadOptions;

impl<R: Read> Reader<R> {
    /// Takes the sample at the front of the window, if it is plain, complete, and all of it is there.
    #[inline]
    pub(super) fn complete_sample(&mut self) -> Option<Core> {
        let mut ahead = self.ahead();
        let sample = ahead.plain_sample()?;
        let more = ahead.repeats()?;
        if !ahead.is_superseded() {
            return None;
        }
        let left = ahead.bytes.rest().len();
        self.events.pass_to(left);
        Some(self.give_out(sample, more))
    }

    /// Whether what follows the record taken last can neither annotate nor repeat the pending sample.
    pub(super) fn is_superseded(&mut self) -> bool {
        self.events.leave();
        self.events.is_flowing() && self.ahead().is_superseded()
    }

    #[inline]
    fn ahead(&self) -> Ahead<'_> {
        Ahead {
            bytes: self.events.ahead(),
            has_timestamps: self.segment.header.has_timestamps,
            definitions: &self.definitions,
            options: &self.options,
        }
    }
}

/// The bytes at hand, and what it takes to read them.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    bytes: Cursor<'a>,
    has_timestamps: bool,
    definitions: &'a Definitions,
    options: &'a ReadOptions,
}

impl Ahead<'_> {
    /// Takes a sample, if nothing about it needs care.
    #[inline(always)]
    fn plain_sample(&mut self) -> Option<PlainSample> {
        let raw = RawEvent::read(&mut self.bytes, self.options.limits.payload_bytes).ok()?;
        let SampleFields { stack, pid, delta_us } = SampleFields::of(&raw, self.has_timestamps)?;
        let stack = self.definitions.sampled(stack)?;
        Some(PlainSample { stack, pid, delta_us, offset: raw.offset })
    }

    /// Takes what repeats the sample before it, and says how often.
    #[inline]
    fn repeats(&mut self) -> Option<u64> {
        if self.bytes.peek() != Some(EventType::RepeatSample as u8) {
            return Some(0);
        }
        let raw = RawEvent::read(&mut self.bytes, 0).ok()?;
        Some(u64::try_from(raw.value).unwrap_or(0))
    }

    /// Whether the next sample begins here. If its event may turn out to be damaged, all of it has to be good.
    #[inline]
    fn is_superseded(self) -> bool {
        self.bytes.peek().is_some_and(EventType::is_sample)
            && (!self.options.is_lenient() || self.is_plain())
    }

    #[inline(never)]
    fn is_plain(mut self) -> bool {
        self.plain_sample().is_some()
    }
}
