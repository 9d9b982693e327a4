//! Rows of trace events: ended polls and spans, and numeric samples.

use borehole_analysis::tokio::{EndedPoll, TokioSink};
use borehole_model::{Annotation, Context, Event, ProfileSink as _, Tables, Value, dial9};
use borehole_text::lossless::escape;
use hashbrown::HashMap;

use super::Addition;
use super::labels::Set;
use super::rows::RowCell;
use super::words::{ColumnWords, NO_WORD, Word};
use crate::Error;
use crate::tables::LakeTable;

/// The numeric fields of events, by event shape.
#[derive(Debug, Default)]
pub(super) struct EventNumbers {
    shapes: Vec<Option<EventFields>>,
}

/// The name of an event and its fields, each a name and a unit.
#[derive(Clone, Debug)]
struct EventFields {
    name: Word,
    /// Whether the event describes the recording program. Source: dial9 0.3.2 and 0.5.7.
    is_metadata: bool,
    fields: Vec<(Word, Word)>,
}

impl EventNumbers {
    fn shape(&mut self, event: &Event<'_>, tables: &Tables, words: &mut ColumnWords) -> &EventFields {
        let row = event.shape.index();
        if self.shapes.len() <= row {
            self.shapes.resize(row + 1, None);
        }
        self.shapes[row].get_or_insert_with(|| {
            let shape = tables.shape(event.shape);
            let fields = (0..).zip(&shape.fields).map(|(place, field)| {
                let is_unit = |annotation: &&Annotation| {
                    annotation.field == place && tables.string(annotation.key) == b"unit"
                };
                let unit = shape.annotations.iter().find(is_unit);
                let unit = unit.map_or(NO_WORD, |unit| words.word(&escape(tables.string(unit.value))));
                (words.word(&escape(tables.string(field.name))), unit)
            });
            let fields = fields.collect();
            let is_metadata = tables.string(shape.name) == dial9::event::METADATA.as_bytes();
            EventFields { name: words.word(&escape(tables.string(shape.name))), is_metadata, fields }
        })
    }
}

/// Converts a number of any type.
#[expect(
    clippy::cast_precision_loss,
    reason = "what is added up and averaged is a floating-point number in the end"
)]
fn number(value: &Value<'_>) -> Option<f64> {
    match *value {
        Value::Unsigned(number) => Some(number as f64),
        Value::Signed(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        Value::Bool(is) => Some(f64::from(u8::from(is))),
        _ => None,
    }
}

/// The maximum length of a text field in bytes; the rest is cut off.
const LONGEST_TEXT: usize = 4096;

/// A text cut to its maximum length.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

impl Addition<'_> {
    pub(super) fn take_event(&mut self, at: Context<'_>, event: &Event<'_>) -> Result<(), Error> {
        self.forget_origin();
        let mut tokio = self.tokio.take().unwrap_or_else(|| Box::new(TokioSink::new(None)));
        let taken = tokio.event(at, event);
        // No segment announces events, so none says when they began.
        self.date(tokio.unix_offset_ns());
        let result = match tokio.ended_poll() {
            Some(poll) => {
                let place = self.words.word(tokio.spawned_at(poll.place));
                self.take_poll(at, poll, place)
            }
            None if tokio.is_measurement(event.shape) => self.take_numbers(at, event),
            None => {
                self.take_metadata(at, event);
                Ok(())
            }
        };
        self.tokio = Some(tokio);
        // This sink never stops early.
        let _ = taken.map_err(|error| Error::storage(&"events", &error))?;
        result
    }

    fn take_poll(&mut self, at: Context<'_>, poll: EndedPoll, place: Word) -> Result<(), Error> {
        let time_us = self.seen(self.here.origin_ns + i128::from(poll.start_ns), 1);
        let cells = [
            RowCell::int(at.segment.process),
            RowCell::Unsigned(poll.worker),
            RowCell::Unsigned(poll.task),
            RowCell::Word(place),
            RowCell::Unsigned(poll.duration_ns),
        ];
        self.row(LakeTable::Polls, time_us, &cells)
    }

    /// Takes the service and the host from an event that describes its program.
    fn take_metadata(&mut self, at: Context<'_>, event: &Event<'_>) {
        if !self.numbers.shape(event, at.tables, &mut self.words).is_metadata {
            return;
        }
        for value in event.values {
            let Value::Map(entries) = value else { continue };
            for (key, value) in entries {
                if let (Value::Text(key), Value::Text(value)) = (key, value) {
                    self.name_origin(key, value.as_bytes());
                }
            }
        }
    }

    fn take_numbers(&mut self, at: Context<'_>, event: &Event<'_>) -> Result<(), Error> {
        let time_us = self.seen(self.here.origin_ns + i128::from(event.time_ns.unwrap_or(0)), 1);
        let shape = self.numbers.shape(event, at.tables, &mut self.words).clone();
        for ((name, unit), value) in shape.fields.into_iter().zip(event.values) {
            let (value, text) = match (number(value), value) {
                (Some(number), _) => (RowCell::Float(number), RowCell::Absent),
                (None, Value::Text(text)) => (RowCell::Absent, RowCell::Word(self.words.word(cut(text)))),
                _ => continue,
            };
            let cells = [
                RowCell::int(at.segment.process),
                RowCell::Word(shape.name),
                RowCell::Word(name),
                value,
                RowCell::word(unit),
                text,
            ];
            self.row(LakeTable::Events, time_us, &cells)?;
        }
        Ok(())
    }

    /// Adds the spans, which are known once all events have been read.
    pub(super) fn take_tokio(&mut self) -> Result<(), Error> {
        let Some(tokio) = self.tokio.take() else { return Ok(()) };
        self.settle_origin();
        let mut sets: HashMap<u32, (Word, Set)> = HashMap::new();
        let mut spans = Vec::new();
        tokio.each_span(|span| {
            sets.entry(span.label()).or_insert_with(|| {
                let set = self.labels.of_texts(tokio.span_fields(span.label()), &mut self.words);
                (self.words.word(span.name), set)
            });
            spans.push((span.label(), [span.id, span.parent, span.task], span.start_ns, span.duration_ns));
        });
        for (label, numbers, start_ns, duration_ns) in spans {
            let time_us = self.seen(self.here.origin_ns + i128::from(start_ns), 1);
            let (name, set) = &sets[&label];
            let duration = RowCell::Unsigned(duration_ns);
            let [id, parent, task] = numbers.map(RowCell::unsigned);
            let cells = [RowCell::Absent, RowCell::Word(*name), duration, id, parent, task];
            self.labelled_row(LakeTable::Spans, time_us, set, &cells)?;
        }
        Ok(())
    }
}
