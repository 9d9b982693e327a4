//! Traces built byte by byte, without the writer.

use borehole_wire::put_varint_signed;

/// Numbers in the encoding of the format.
pub(super) fn numbers(numbers: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &number in numbers {
        put_varint_signed(&mut bytes, number);
    }
    bytes
}

/// The bytes of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(pub(super) Vec<u8>);

impl Trace {
    /// A segment without timestamps, with a period of 10 ms and no definitions.
    pub(super) fn bare() -> Self {
        Self::default().header(0, 10_000)
    }

    /// A segment without timestamps that has defined stack 0, `f /f.php:3`, and stack 1, `f /f.php:3;g /f.php:5`, in strings
    /// 0 to 3, of which string 0 is empty.
    /// /f.php:5`, in strings 0 to 3, of which string 0 is empty.
    pub(super) fn compact() -> Self {
        Self::bare().definitions()
    }

    /// Like [`Self::compact`], with timestamps.
    pub(super) fn timed() -> Self {
        Self::default().header(1, 10_000).definitions()
    }

    pub(super) fn header(mut self, flags: u8, period_us: u32) -> Self {
        self.0.extend_from_slice(b"RELI\x01");
        self.0.extend_from_slice(&[flags, 0, 0]);
        self.0.extend_from_slice(&period_us.to_le_bytes());
        self.raw(&[0; 4])
    }

    fn definitions(self) -> Self {
        self.string(0, b"")
            .string(1, b"f")
            .string(2, b"/f.php")
            .string(3, b"g")
            .frame(&[0, 0, 0, 0, 1, 2, 3])
            .frame(&[1, 0, 0, 0, 3, 2, 5])
            .stack(&[0, 1, 0])
            .stack(&[1, 2, 1, 0])
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn event(mut self, event_type: u8, payload: &[u8]) -> Self {
        self.0.push(event_type);
        put_varint_signed(&mut self.0, i64::try_from(payload.len()).unwrap());
        self.raw(payload)
    }

    pub(super) fn string(self, id: i64, text: &[u8]) -> Self {
        let payload = [&numbers(&[id])[..], text].concat();
        self.event(0x0a, &payload)
    }

    /// Id, flags, and the fields.
    pub(super) fn frame(self, fields: &[i64]) -> Self {
        self.event(0x01, &numbers(fields))
    }

    /// Id, depth, and the frames.
    pub(super) fn stack(self, fields: &[i64]) -> Self {
        self.event(0x02, &numbers(fields))
    }

    /// The stack, and optionally a time.
    pub(super) fn sample(self, fields: &[i64]) -> Self {
        self.event(0x03, &numbers(fields))
    }

    pub(super) fn checkpoint(self, frames: i64, stacks: i64, samples: i64) -> Self {
        self.event(0x04, &numbers(&[frames, stacks, samples]))
    }

    pub(super) fn end(self) -> Self {
        self.event(0x05, b"")
    }

    pub(super) fn metadata(self, key: &[u8], value: &[u8]) -> Self {
        let length = |text: &[u8]| numbers(&[i64::try_from(text.len()).unwrap()]);
        let payload = [&length(key)[..], key, &length(value), value].concat();
        self.event(0x06, &payload)
    }

    /// The stack, the process, and optionally a time.
    pub(super) fn pid_sample(self, fields: &[i64]) -> Self {
        self.event(0x07, &numbers(fields))
    }

    pub(super) fn compact_sample(self, stack: i64) -> Self {
        self.raw(&[0x08]).raw(&numbers(&[stack]))
    }

    pub(super) fn repeat(self, count: i64) -> Self {
        self.raw(&[0x09]).raw(&numbers(&[count]))
    }

    /// Count, and pairs of strings.
    pub(super) fn annotation(self, fields: &[i64]) -> Self {
        self.event(0x0b, &numbers(fields))
    }

    /// Appends another trace.
    pub(super) fn then(self, other: &Self) -> Self {
        self.raw(&other.0)
    }

    /// The position of the next byte.
    pub(super) fn here(&self) -> u64 {
        self.0.len() as u64
    }
}
