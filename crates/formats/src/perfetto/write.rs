//! A timeline as packets.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use hashbrown::HashMap;

use super::layout::{PACKET, clock, detail, event, interned, packet, sequence_flags, track};
use crate::documents::protobuf::{Message, put_bytes};
use crate::timeline::{Arrow, Canvas, Detail, Mark, TimelineTrack, TrackKind};

/// The bytes of packets that are compressed together.
const BUFFER_BYTES: usize = 64 << 10;

/// The sequence of all packets; its number may be any but 0.
const SEQUENCE_ID: u64 = 1;

#[derive(Debug)]
pub struct Packets<W> {
    output: W,
    buffer: Vec<u8>,
    event_names: InternedNames,
    detail_names: InternedNames,
    /// The definitions for the next packet.
    defined: Message,
    packet: Message,
    body: Message,
    entry: Message,
    has_begun: bool,
}

/// Names that are written once and then referred to.
#[derive(Debug, Default)]
struct InternedNames(HashMap<Box<str>, u64>);

impl InternedNames {
    /// The number of a name, and whether it is new.
    fn intern(&mut self, name: &str) -> (u64, bool) {
        if let Some(&iid) = self.0.get(name) {
            return (iid, false);
        }
        let iid = self.0.len() as u64 + 1;
        self.0.insert(name.into(), iid);
        (iid, true)
    }
}

impl<W: Write> Packets<W> {
    /// The number of the name of an event (`interned::EVENT_NAMES`) or of a detail.
    fn name(&mut self, kind: u32, name: &str) -> u64 {
        let names =
            if kind == interned::EVENT_NAMES { &mut self.event_names } else { &mut self.detail_names };
        let (iid, is_new) = names.intern(name);
        if is_new {
            let entry = self.entry.clear().number(interned::IID, iid).bytes(interned::NAME, name.as_bytes());
            self.defined.bytes(kind, entry.as_bytes());
        }
        iid
    }

    /// Writes `self.body` as a packet's `field`.
    fn packet(&mut self, time_ns: Option<u64>, field: u32) -> io::Result<()> {
        let mut flags = sequence_flags::NEEDS_STATE;
        if !std::mem::replace(&mut self.has_begun, true) {
            flags |= sequence_flags::STATE_CLEARED;
        }
        let packet = self.packet.clear();
        if let Some(time_ns) = time_ns {
            packet.explicit(packet::TIMESTAMP, time_ns);
        }
        packet.number(packet::SEQUENCE_ID, SEQUENCE_ID).number(packet::SEQUENCE_FLAGS, flags);
        if !self.defined.as_bytes().is_empty() {
            packet.bytes(packet::INTERNED_DATA, self.defined.as_bytes());
            self.defined.clear();
        }
        packet.bytes(field, self.body.as_bytes());
        put_bytes(&mut self.buffer, PACKET, packet.as_bytes());
        if self.buffer.len() >= BUFFER_BYTES { self.spill() } else { Ok(()) }
    }

    /// Writes the buffered packets as one compressed packet.
    fn spill(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.buffer)?;
        let compressed = encoder.finish()?;
        let packet = self.packet.clear().bytes(packet::COMPRESSED_PACKETS, &compressed);
        self.buffer.clear();
        put_bytes(&mut self.buffer, PACKET, packet.as_bytes());
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn marked(&mut self, on: &TimelineTrack, kind: u64, mark: &Mark<'_>) -> io::Result<()> {
        let name = self.name(interned::EVENT_NAMES, mark.name);
        let names: Vec<_> =
            mark.details.iter().map(|(name, _)| self.name(interned::DETAIL_NAMES, name)).collect();
        let body = self.body.clear();
        body.number(event::TYPE, kind).number(event::TRACK_UUID, on.id).number(event::NAME_IID, name);
        match mark.arrow {
            Some(Arrow::From(arrow)) => _ = body.fixed64(event::FLOW_IDS, arrow),
            Some(Arrow::To(arrow)) => _ = body.fixed64(event::TERMINATING_FLOW_IDS, arrow),
            None => {}
        }
        for (iid, (_, value)) in names.into_iter().zip(&mark.details) {
            let entry = self.entry.clear().number(detail::NAME_IID, iid);
            match value {
                Detail::Bool(truth) => entry.explicit(detail::BOOL, u64::from(*truth)),
                Detail::Unsigned(number) => entry.explicit(detail::UNSIGNED, *number),
                Detail::Signed(number) => entry.explicit(detail::SIGNED, number.cast_unsigned()),
                Detail::Float(number) => entry.double(detail::DOUBLE, *number),
                Detail::Text(text) => entry.bytes(detail::TEXT, text.as_bytes()),
            };
            body.bytes(event::DETAIL, entry.as_bytes());
        }
        self.packet(Some(mark.time_ns), packet::TRACK_EVENT)
    }
}

impl<W: Write> Canvas for Packets<W> {
    type Output = W;

    fn new(output: W) -> Self {
        Self {
            output,
            buffer: Vec::new(),
            event_names: InternedNames::default(),
            detail_names: InternedNames::default(),
            defined: Message::default(),
            packet: Message::default(),
            body: Message::default(),
            entry: Message::default(),
            has_begun: false,
        }
    }

    fn track(&mut self, track: &TimelineTrack) -> io::Result<()> {
        let body = self.body.clear().number(track::UUID, track.id);
        let entry = self.entry.clear();
        let known = |number: i64| {
            i32::try_from(number)
                .ok()
                .filter(|&number| number > 0)
                .map(|number| u64::from(number.unsigned_abs()))
        };
        let pid = track.pid.and_then(known);
        let tid = match track.kind {
            TrackKind::Thread(tid) => i64::try_from(tid).ok().and_then(known),
            _ => None,
        };
        match (track.kind, pid, tid) {
            (TrackKind::Process, Some(pid), _) => {
                entry.number(track::PROCESS_PID, pid).bytes(track::PROCESS_NAME, track.name.as_bytes());
                body.bytes(track::PROCESS, entry.as_bytes());
            }
            (TrackKind::Thread(_), Some(pid), Some(tid)) => {
                entry.number(track::THREAD_PID, pid).number(track::THREAD_TID, tid);
                entry.bytes(track::THREAD_NAME, track.name.as_bytes());
                body.bytes(track::THREAD, entry.as_bytes());
            }
            _ => {
                body.number(track::PARENT_UUID, track.parent.unwrap_or_default());
                body.bytes(track::NAME, track.name.as_bytes());
            }
        }
        if track.kind == TrackKind::Counter {
            self.body.bytes(track::COUNTER, &[]);
        }
        self.packet(None, packet::TRACK_DESCRIPTOR)
    }

    fn begin(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        self.marked(track, event::BEGIN, mark)
    }

    fn end(&mut self, track: &TimelineTrack, time_ns: u64) -> io::Result<()> {
        self.body.clear().number(event::TYPE, event::END).number(event::TRACK_UUID, track.id);
        self.packet(Some(time_ns), packet::TRACK_EVENT)
    }

    fn instant(&mut self, track: &TimelineTrack, mark: &Mark<'_>) -> io::Result<()> {
        self.marked(track, event::INSTANT, mark)
    }

    fn counter(&mut self, track: &TimelineTrack, time_ns: u64, value: f64) -> io::Result<()> {
        let body = self.body.clear().number(event::TYPE, event::COUNTER).number(event::TRACK_UUID, track.id);
        body.double(event::DOUBLE_COUNTER_VALUE, value);
        self.packet(Some(time_ns), packet::TRACK_EVENT)
    }

    fn wall_clock(&mut self, time_ns: u64, unix_ns: u64) -> io::Result<()> {
        let body = self.body.clear();
        for (id, time_ns) in [(clock::BOOTTIME, time_ns), (clock::REALTIME, unix_ns)] {
            let entry = self.entry.clear().number(clock::ID, id).explicit(clock::TIMESTAMP, time_ns);
            body.bytes(clock::CLOCKS, entry.as_bytes());
        }
        self.packet(Some(time_ns), packet::CLOCK_SNAPSHOT)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.spill()?;
        self.output.flush()
    }
}
