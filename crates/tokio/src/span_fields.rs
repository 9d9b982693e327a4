//! The fields of a span, kept as text from its creation until it is closed.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};

/// The values of a span's fields, by the index of the field.
#[derive(Debug, Default)]
pub(crate) struct SpanFields {
    /// The texts of all values, one after the other. A value that is recorded again leaves its former text behind.
    text: String,
    /// The place of each value in `text`: its start and its end; nothing for a field without a value.
    first: [Option<(u32, u32)>; INLINE],
    more: Vec<Option<(u32, u32)>>,
}

/// Most spans have at most so many fields. Their places need no memory of their own.
const INLINE: usize = 6;

/// The memory that is taken for the texts of a span at first.
const USUAL_BYTES: usize = 48;

/// The longest text of all values of a span. What is beyond is cut off, so that a span that records forever stays small.
const MOST_BYTES: usize = 16 << 10;

impl SpanFields {
    /// The value of a field.
    pub(crate) fn value(&self, index: usize) -> Option<&str> {
        let place = match index.checked_sub(INLINE) {
            None => self.first[index],
            Some(index) => self.more.get(index).copied().flatten(),
        };
        place.and_then(|(start, end)| self.text.get(start as usize..end as usize))
    }

    fn set(&mut self, field: &Field, write: impl FnOnce(&mut LimitedText<'_>) -> fmt::Result) {
        if self.text.is_empty() {
            self.text.reserve(USUAL_BYTES);
        }
        let start = self.text.len();
        // Writing to such text cannot fail, but a `Debug` of the program's own may: what it wrote counts.
        let _ = write(&mut LimitedText(&mut self.text));
        let place = u32::try_from(start).ok().zip(u32::try_from(self.text.len()).ok());
        match field.index().checked_sub(INLINE) {
            None => self.first[field.index()] = place,
            Some(index) => {
                if self.more.len() <= index {
                    self.more.resize(index + 1, None);
                }
                self.more[index] = place;
            }
        }
    }
}

/// The longest beginning of a text of at most `most` bytes.
fn prefix(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Text that stops to grow.
struct LimitedText<'a>(&'a mut String);

impl fmt::Write for LimitedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MOST_BYTES.saturating_sub(self.0.len());
        self.0.push_str(prefix(text, room));
        Ok(())
    }
}

impl Visit for SpanFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, |text| write!(text, "{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, |text| text.write_str(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, |text| write!(text, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, |text| write!(text, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, |text| text.write_str(if value { "true" } else { "false" }));
    }
}
