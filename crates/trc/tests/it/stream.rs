//! Streams built byte by byte.

use borehole_trc::layout::{MAGIC, VERSION};
use borehole_trc::{Error, ErrorKind, ReadOptions, Recovery};
use borehole_trc::{Event, Reader};

/// A stream under construction, without checks.
pub(super) struct Stream(pub(super) Vec<u8>);

impl Stream {
    /// A header.
    pub(super) fn new() -> Self {
        Self(Vec::new()).header()
    }

    pub(super) fn header(self) -> Self {
        self.bytes(&MAGIC).bytes(&[VERSION])
    }

    pub(super) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u16(self, number: u16) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn name(self, name: &[u8]) -> Self {
        self.u16(u16::try_from(name.len()).unwrap()).bytes(name)
    }

    /// A schema frame.
    pub(super) fn schema(self, type_id: u16, name: &str, has_timestamp: u8, fields: &[(&str, u8)]) -> Self {
        let head = self.bytes(&[1]).u16(type_id).name(name.as_bytes()).bytes(&[has_timestamp]);
        let head = head.u16(u16::try_from(fields.len()).unwrap());
        fields.iter().fold(head, |stream, (name, byte)| stream.name(name.as_bytes()).bytes(&[*byte]))
    }

    /// An event with a time relative to the previous one.
    pub(super) fn event(self, type_id: u16, delta_ns: u32, values: &[u8]) -> Self {
        let [low, middle, high, _] = delta_ns.to_le_bytes();
        self.bytes(&[2]).u16(type_id).bytes(&[low, middle, high]).bytes(values)
    }

    /// An event without a time.
    pub(super) fn untimed(self, type_id: u16, values: &[u8]) -> Self {
        self.bytes(&[2]).u16(type_id).bytes(values)
    }

    pub(super) fn strings(self, entries: &[(u32, &str)]) -> Self {
        let head = self.bytes(&[3]).u32(u32::try_from(entries.len()).unwrap());
        entries.iter().fold(head, |stream, (id, text)| {
            stream.u32(*id).u32(u32::try_from(text.len()).unwrap()).bytes(text.as_bytes())
        })
    }

    pub(super) fn reset(self, timestamp_ns: u64) -> Self {
        self.bytes(&[5]).bytes(&timestamp_ns.to_le_bytes())
    }

    pub(super) const fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The events of a stream without warnings, as text.
    pub(super) fn events(&self) -> Vec<String> {
        let (events, error, recovery) = read(&self.0, ReadOptions::default());
        assert!(error.is_none() && recovery.is_clean(), "{error:?} {recovery:?}");
        events
    }

    /// The times of the events of a stream without warnings.
    pub(super) fn times(&self) -> Vec<Option<u64>> {
        let mut reader = Reader::new(self.0.as_slice());
        let mut times = Vec::new();
        reader.for_each_event(|event| times.push(event.timestamp_ns())).unwrap();
        assert!(reader.recovery().is_clean());
        times
    }

    /// The error of the stream: kind, offset and text. `before` events precede it.
    pub(super) fn refused(&self, before: usize) -> (ErrorKind, u64, String) {
        let (events, error, _) = read(&self.0, ReadOptions::default());
        assert_eq!(events.len(), before, "{error:?}");
        let error = error.expect("the stream is wrong");
        (error.kind(), error.offset().unwrap(), error.message().to_owned())
    }
}

/// Every event as a line.
pub(super) fn read(bytes: &[u8], options: ReadOptions) -> (Vec<String>, Option<Error>, Recovery) {
    let mut reader = Reader::with_options(bytes, options);
    let mut events = Vec::new();
    let error = loop {
        match reader.next_event() {
            Ok(Some(event)) => events.push(line(&event)),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(
        matches!(reader.next_event(), Ok(None)) && reader.has_ended(),
        "the reader continues after the end"
    );
    (events, error, reader.into_recovery())
}

/// `Poll @1000 worker=3 location="src/main.rs"`: an event in one line.
pub(super) fn line(event: &Event<'_>) -> String {
    let mut line = event.name().to_owned();
    if let Some(timestamp_ns) = event.timestamp_ns() {
        line += &format!(" @{timestamp_ns}");
    }
    for (name, value) in event.fields() {
        line += &format!(" {name}={}", super::value(value));
    }
    line
}
