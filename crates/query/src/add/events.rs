//! Rows of trace events: ended polls and spans, and numeric samples.

use borehole_analysis::tokio::{EndedPoll, TokioSink};
use borehole_model::text::escape;
use borehole_model::{Annotation, Context, Event, ProfileSink as _, Tables, Value};

use super::labels::Set;
use super::rows::Cell;
use super::words::{NO_WORD, Word, Words};
use super::{Addition, word};
use crate::Error;
use crate::tables::Table;

/// The numeric fields of events, by event shape.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    shapes: Vec<Option<Shape>>,
}

/// The name of an event and its fields, each a name and a unit.
#[derive(Clone, Debug)]
struct Shape {
    name: Word,
    /// Whether the event describes the recording program. Source: dial9 0.3.2 and 0.5.7.
    is_metadata: bool,
    fields: Vec<(Word, Word)>,
}

impl Numbers {
    fn shape(&mut self, event: &Event<'_>, tables: &Tables, words: &mut Words) -> &Shape {
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
            let is_metadata = tables.string(shape.name) == b"SegmentMetadataEvent";
            Shape { name: words.word(&escape(tables.string(shape.name))), is_metadata, fields }
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
            Cell::Word(self.here.service),
            Cell::Time(time_us),
            word(self.here.host),
            Cell::int(at.segment.process),
            Cell::Unsigned(poll.worker),
            Cell::Unsigned(poll.task),
            Cell::Word(place),
            Cell::Unsigned(poll.duration_ns),
        ];
        self.row(Table::Polls, time_us, &Set::NONE, &cells)
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
            let Some(value) = number(value) else { continue };
            let cells = [
                Cell::Word(self.here.service),
                Cell::Time(time_us),
                word(self.here.host),
                Cell::int(at.segment.process),
                Cell::Word(shape.name),
                Cell::Word(name),
                Cell::Float(value),
                word(unit),
            ];
            self.row(Table::Events, time_us, &Set::NONE, &cells)?;
        }
        Ok(())
    }

    /// Adds the spans, which are known once all events have been read.
    pub(super) fn take_tokio(&mut self) -> Result<(), Error> {
        let Some(tokio) = self.tokio.take() else { return Ok(()) };
        let mut spans = Vec::new();
        tokio.each_span(|span| spans.push((self.words.word(span.name), span.start_ns, span.duration_ns)));
        for (name, start_ns, duration_ns) in spans {
            let time_us = self.seen(self.here.origin_ns + i128::from(start_ns), 1);
            let cells = [
                Cell::Word(self.here.service),
                Cell::Time(time_us),
                word(self.here.host),
                Cell::Absent,
                Cell::Word(name),
                Cell::Unsigned(duration_ns),
            ];
            self.row(Table::Spans, time_us, &Set::NONE, &cells)?;
        }
        Ok(())
    }
}
