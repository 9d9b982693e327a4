//! The head of a file: its events, where its records are, and the descriptions behind them.

use std::ops::Range;

use hashbrown::HashMap;

use super::NAME;
use super::fields::{FieldReader, NumberOrder};
use super::layout::{
    FILE_HEADER_BYTES, HARDWARE_EVENTS, IDS_SECTION_BYTES, LEAST_ATTRIBUTE_BYTES, SAMPLE_ID_ALL,
    SOFTWARE_EVENTS, STREAM_DATA_START, STREAM_HEADER_BYTES, event, feature, record, sample,
};
use super::read::{PerfRecord, records};
use crate::documents::whole::cut_off;
use crate::{Error, ErrorKind, Position};

/// The head of a file.
#[derive(Debug)]
pub(super) struct PerfHead {
    pub(super) order: NumberOrder,
    /// The records.
    pub(super) data: Range<usize>,
    pub(super) events: Vec<PerfEvent>,
    by_id: HashMap<u64, usize>,
    /// Descriptions of the machine and the recording, as keys and values.
    pub(super) descriptions: Vec<(&'static str, Vec<u8>)>,
    /// The reason why the file is not whole.
    pub(super) is_cut: Option<&'static str>,
    /// The table of build IDs, which are records.
    pub(super) build_ids: Option<Range<usize>>,
}

/// An event that was recorded.
#[derive(Clone, Debug, Default)]
pub(super) struct PerfEvent {
    pub(super) name: Vec<u8>,
    kind: u32,
    config: u64,
    /// The period of samples that do not say it.
    pub(super) period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    /// Whether records that are no samples have times and ids, too.
    pub(super) has_sample_ids: bool,
}

impl PerfEvent {
    /// Reads the known part of an attribute.
    fn read(fields: &mut FieldReader<'_>) -> Result<Self, borehole_wire::Error> {
        let kind = fields.u32()?;
        let _size = fields.u32()?;
        let (config, period) = (fields.u64()?, fields.u64()?);
        let (sample_type, read_format) = (fields.u64()?, fields.u64()?);
        let has_sample_ids = fields.flags()? >> SAMPLE_ID_ALL & 1 == 1;
        let mut event =
            Self { name: Vec::new(), kind, config, period, sample_type, read_format, has_sample_ids };
        event.name = event.default_name();
        Ok(event)
    }

    /// The name of an event that the file does not name.
    fn default_name(&self) -> Vec<u8> {
        let names = match self.kind {
            event::HARDWARE => &HARDWARE_EVENTS[..],
            event::SOFTWARE => &SOFTWARE_EVENTS,
            event::TRACEPOINT => return format!("tracepoint {}", self.config).into_bytes(),
            _ => &[],
        };
        let known = usize::try_from(self.config).ok().and_then(|config| names.get(config));
        known
            .map_or_else(|| format!("event {}/{:#x}", self.kind, self.config), |&name| name.to_owned())
            .into()
    }

    /// Whether the event never has samples.
    pub(super) const fn is_dummy(&self) -> bool {
        self.kind == event::SOFTWARE && self.config == event::DUMMY
    }

    /// Whether its periods are nanoseconds.
    pub(super) const fn is_clock(&self) -> bool {
        self.kind == event::SOFTWARE && self.config < event::CLOCKS
    }
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

impl Section {
    const fn end(self) -> u64 {
        self.offset.saturating_add(self.size)
    }

    fn read(fields: &mut FieldReader<'_>) -> Result<Self, borehole_wire::Error> {
        Ok(Self { offset: fields.u64()?, size: fields.u64()? })
    }
}

pub(super) fn fault(error: borehole_wire::Error) -> Error {
    cut_off(NAME, error)
}

impl PerfHead {
    /// Reads the head of `file`.
    ///
    /// # Errors
    /// If it is damaged, or of another kind.
    pub(super) fn of(file: &[u8]) -> Result<Self, Error> {
        let order = match file.get(..8) {
            Some(b"PERFILE2") => NumberOrder::Little,
            Some(b"2ELIFREP") => NumberOrder::Big,
            _ => {
                let message = "expected the signature `PERFILE2`";
                return Err(Error::malformed(NAME, Position::Byte(0), message));
            }
        };
        let mut fields = FieldReader::from(file, 8, order);
        match fields.u64().map_err(fault)? {
            STREAM_HEADER_BYTES => Self::of_stream(file, order),
            FILE_HEADER_BYTES => Self::of_file(file, fields),
            other => {
                let message = format!("unsupported header: expected 104 or 16 bytes, found {other}");
                Err(Error::new(ErrorKind::Unsupported, NAME, Position::Byte(8), message))
            }
        }
    }

    fn new(order: NumberOrder, data: Range<usize>) -> Self {
        let (events, descriptions) = (Vec::new(), Vec::new());
        Self { order, data, events, by_id: HashMap::new(), descriptions, is_cut: None, build_ids: None }
    }

    /// Of a file with sections.
    fn of_file(file: &[u8], mut fields: FieldReader<'_>) -> Result<Self, Error> {
        let order = fields.order();
        let attribute_bytes = fields.u64().map_err(fault)?;
        let attributes = Section::read(&mut fields).map_err(fault)?;
        let data = Section::read(&mut fields).map_err(fault)?;
        let _event_types = Section::read(&mut fields).map_err(fault)?;
        let features = fields.u64().map_err(fault)?;
        let at = |offset: u64| usize::try_from(offset).map_or(file.len(), |offset| offset.min(file.len()));
        // `perf record` writes the size of the data when it ends.
        let end = if data.size == 0 { file.len() } else { at(data.end()) };
        let mut head = Self::new(order, at(data.offset)..end);
        head.attributes(file, attributes, attribute_bytes)?;
        if data.size == 0 {
            head.is_cut = Some("the recording was not finished");
        } else if data.end() > file.len() as u64 {
            head.is_cut = Some("truncated");
        } else if head.features(file, data.end(), features).is_err() {
            head.is_cut = Some("truncated: descriptions are missing");
        }
        Ok(head)
    }

    fn attributes(&mut self, file: &[u8], section: Section, bytes_each: u64) -> Result<(), Error> {
        let least = LEAST_ATTRIBUTE_BYTES as u64 + IDS_SECTION_BYTES;
        if bytes_each < least {
            let message = format!("expected attributes of at least {least} bytes, found {bytes_each}");
            return Err(Error::malformed(NAME, Position::Byte(16), message));
        }
        let mut rest = FieldReader::from(file, section.offset, self.order);
        for _ in 0..section.size / bytes_each {
            let offset = file.len() - rest.rest().len();
            let bytes = rest.bytes(bytes_each).map_err(fault)?;
            let (own, ids) = bytes.split_at(bytes.len() - 16);
            let event = PerfEvent::read(&mut FieldReader::new(own, offset, self.order)).map_err(fault)?;
            let mut ids = FieldReader::new(ids, offset + own.len(), self.order);
            let ids = Section::read(&mut ids).map_err(fault)?;
            let mut list = FieldReader::from(file, ids.offset, self.order);
            let list = list.numbers(ids.size / 8).map_err(fault)?;
            self.add(event, list.iter());
        }
        Ok(())
    }

    fn add(&mut self, event: PerfEvent, ids: impl Iterator<Item = u64>) {
        let index = self.events.len();
        self.by_id.extend(ids.map(|id| (id, index)));
        self.events.push(event);
    }

    /// Reads the descriptions, whose places are behind the data in the order of their bits.
    fn features(&mut self, file: &[u8], offset: u64, bits: u64) -> Result<(), borehole_wire::Error> {
        let mut places = FieldReader::from(file, offset, self.order);
        for bit in (0..u64::BITS).filter(|bit| bits >> bit & 1 == 1) {
            let place = Section::read(&mut places)?;
            let rest = FieldReader::from(file, place.offset, self.order);
            let bytes = { rest }.bytes(place.size)?;
            if bit == feature::BUILD_IDS {
                let start = file.len() - rest.rest().len();
                self.build_ids = Some(start..start + bytes.len());
            }
            self.feature(bit, FieldReader::new(bytes, 0, self.order))?;
        }
        Ok(())
    }

    fn feature(&mut self, bit: u32, mut fields: FieldReader<'_>) -> Result<(), borehole_wire::Error> {
        let key = match bit {
            feature::EVENTS => return self.names(fields),
            feature::COMMAND_LINE => {
                let mut words = Vec::new();
                for _ in 0..fields.u32()? {
                    words.push(fields.long_text()?);
                }
                self.descriptions.push(("command line", words.join(&b' ')));
                return Ok(());
            }
            feature::HOST_NAME => "host",
            feature::OS_RELEASE => "kernel",
            feature::VERSION => "perf",
            feature::ARCHITECTURE => "architecture",
            feature::CPU => "cpu",
            _ => return Ok(()),
        };
        self.descriptions.push((key, fields.long_text()?.to_vec()));
        Ok(())
    }

    /// Reads the names of the events.
    fn names(&mut self, mut fields: FieldReader<'_>) -> Result<(), borehole_wire::Error> {
        let (count, attribute_bytes) = (fields.u32()?, fields.u32()?);
        for index in 0..count as usize {
            fields.bytes(attribute_bytes.into())?;
            let ids = fields.u32()?;
            let name = fields.long_text()?;
            fields.numbers(ids.into())?;
            if let Some(event) = self.events.get_mut(index).filter(|_| !name.is_empty()) {
                event.name = name.to_vec();
            }
        }
        Ok(())
    }

    /// Of a stream, in which events and descriptions are records before all others.
    fn of_stream(file: &[u8], order: NumberOrder) -> Result<Self, Error> {
        let mut head = Self::new(order, STREAM_DATA_START..file.len());
        for found in records(file, head.data.clone(), order) {
            let Ok(found) = found else { break };
            match found.kind {
                record::SAMPLE => break,
                record::ATTRIBUTE => head.attribute(&found).map_err(fault)?,
                record::FEATURE => {
                    let mut fields = found.fields();
                    let bit = fields.u64().map_err(fault)?;
                    head.feature(u32::try_from(bit).unwrap_or(u32::MAX), fields).map_err(fault)?;
                }
                _ => {}
            }
        }
        Ok(head)
    }

    fn attribute(&mut self, found: &PerfRecord<'_>) -> Result<(), borehole_wire::Error> {
        let mut fields = found.fields();
        let event = PerfEvent::read(&mut fields)?;
        let mut ids = found.fields();
        let _kind = ids.u32()?;
        let size = ids.u32()?;
        let mut ids = found.fields();
        ids.bytes(size.into())?;
        let count = ids.rest().len() as u64 / 8;
        self.add(event, ids.numbers(count)?.iter());
        Ok(())
    }

    /// The event of a record's id.
    pub(super) fn by_id(&self, id: u64) -> Option<usize> {
        // The kernel has no id 0; `perf` takes it for the first event.
        if id == 0 { Some(0) } else { self.by_id.get(&id).copied() }
    }

    /// The event of a sample, by its id if there are several.
    pub(super) fn event_of(&self, found: &PerfRecord<'_>) -> Result<Option<usize>, borehole_wire::Error> {
        let Some(first) = self.events.first() else { return Ok(None) };
        if self.events.len() == 1 {
            return Ok(Some(0));
        }
        let mut fields = found.fields();
        if first.sample_type & sample::IDENTIFIER == 0 {
            if first.sample_type & sample::ID == 0 {
                return Ok(Some(0));
            }
            let before = sample::IP | sample::TID | sample::TIME | sample::ADDRESS;
            fields.bytes(8 * u64::from((first.sample_type & before).count_ones()))?;
        }
        Ok(self.by_id(fields.u64()?))
    }

    /// The time of a record; 0 if it has none.
    pub(super) fn time_of(&self, found: &PerfRecord<'_>) -> Result<u64, borehole_wire::Error> {
        if found.kind == record::SAMPLE {
            let Some(event) = self.event_of(found)?.and_then(|event| self.events.get(event)) else {
                return Ok(0);
            };
            if event.sample_type & sample::TIME == 0 {
                return Ok(0);
            }
            let before = sample::IDENTIFIER | sample::IP | sample::TID;
            let mut fields = found.fields();
            fields.bytes(8 * u64::from((event.sample_type & before).count_ones()))?;
            return fields.u64();
        }
        let Some(first) = self.events.first() else { return Ok(0) };
        if !first.has_sample_ids || first.sample_type & sample::TIME == 0 {
            return Ok(0);
        }
        let behind = sample::TIME | sample::ID | sample::STREAM_ID | sample::CPU | sample::IDENTIFIER;
        let bytes = 8 * (first.sample_type & behind).count_ones() as usize;
        let start = found.payload.len().saturating_sub(bytes);
        FieldReader::new(&found.payload[start..], found.offset + 8 + start, self.order).u64()
    }
}
