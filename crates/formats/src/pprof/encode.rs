//! Writes the parts of a document beside its definitions: types, samples with labels, facts.

use std::io::{self, Write};

use borehole_model::{Label, LabelValue, Status, ThreadNames, ValueType};

use super::layout::{key, label, profile, sample, value_type};
use super::rows::{Rows, Scope};
use super::symbols::Symbols;
use super::write::{Message, Output};

/// Numbers about the profile as a whole; 0 if unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    pub(super) period: i64,
}

/// All parts except definitions and samples.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) types: Vec<ValueType>,
    /// `None` if no period is known.
    pub(super) period_type: Option<ValueType>,
    pub(super) default_type: Option<String>,
    pub(super) doc_url: Option<String>,
    pub(super) comments: Vec<String>,
    pub(super) facts: Facts,
}

/// The parts of [`Said`], with numbered strings.
#[derive(Debug)]
pub(super) struct Header {
    types: Vec<(i64, i64)>,
    period_type: Option<(i64, i64)>,
    default_type: i64,
    doc_url: i64,
    comments: Vec<i64>,
    facts: Facts,
}

impl Header {
    pub(super) fn new(symbols: &mut Symbols<'_>, said: &Said) -> Self {
        let mut number = |row: &ValueType| (symbols.text(&row.kind), symbols.text(&row.unit));
        Self {
            types: said.types.iter().map(&mut number).collect(),
            period_type: said.period_type.as_ref().map(&mut number),
            default_type: said.default_type.as_ref().map_or(0, |name| symbols.text(name)),
            doc_url: said.doc_url.as_ref().map_or(0, |url| symbols.text(url)),
            comments: said.comments.iter().map(|comment| symbols.text(comment)).collect(),
            facts: said.facts,
        }
    }

    pub(super) fn write_types<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        self.types.iter().try_for_each(|&row| output.message(profile::SAMPLE_TYPE, &type_message(row)))
    }

    pub(super) fn write_facts<W: Write>(&self, output: &mut Output<W>) -> io::Result<()> {
        let facts = &self.facts;
        output.signed(profile::TIME_NANOS, facts.time_ns)?;
        output.signed(profile::DURATION_NANOS, facts.duration_ns)?;
        if let Some(period_type) = self.period_type {
            output.message(profile::PERIOD_TYPE, &type_message(period_type))?;
            output.signed(profile::PERIOD, facts.period)?;
        }
        self.comments.iter().try_for_each(|&index| output.signed(profile::COMMENT, index))?;
        output.signed(profile::DEFAULT_SAMPLE_TYPE, self.default_type)?;
        output.signed(profile::DOC_URL, self.doc_url)
    }
}

fn type_message((kind, unit): (i64, i64)) -> Message {
    let mut message = Message::default();
    message.signed(value_type::TYPE, kind).signed(value_type::UNIT, unit);
    message
}

/// Writes a sample's properties beside its stack as labels.
#[derive(Debug)]
pub(super) struct ScopeLabels<'n> {
    process: i64,
    thread: i64,
    thread_name: i64,
    interpreter: i64,
    status: i64,
    flags: Vec<i64>,
    thread_names: &'n ThreadNames,
}

impl<'n> ScopeLabels<'n> {
    /// Numbers the keys that `scopes` need.
    pub(super) fn new(symbols: &mut Symbols<'_>, scopes: &[Scope], thread_names: &'n ThreadNames) -> Self {
        let mut number = |name: &str, needs: &dyn Fn(&Scope) -> bool| {
            if scopes.iter().any(needs) { symbols.text(name) } else { 0 }
        };
        let is_named = |scope: &Scope| scope.thread().and_then(|thread| thread_names.of(thread)).is_some();
        let has_flag =
            |scope: &Scope, bit: usize| scope.status.is_some_and(|status| status.0 >> bit & 1 == 1);
        Self {
            process: number(key::PROCESS, &|scope| scope.process.is_some()),
            thread: number(key::THREAD, &|scope| scope.thread.is_some()),
            thread_name: number(key::THREAD_NAME, &is_named),
            interpreter: number(key::INTERPRETER, &|scope| scope.interpreter.is_some()),
            status: number(key::STATUS, &|scope| scope.status.is_some()),
            flags: (0..)
                .zip(Status::NAMES)
                .map(|(bit, flag)| number(flag, &|scope| has_flag(scope, bit)))
                .collect(),
            thread_names,
        }
    }

    /// Numbers the strings of a scope.
    pub(super) fn number(&self, scope: &Scope, symbols: &mut Symbols<'_>) {
        self.each(scope, symbols, &mut |_| {});
    }

    /// Calls `take` with the message of each label.
    fn each(&self, scope: &Scope, symbols: &mut Symbols<'_>, take: &mut dyn FnMut(&Message)) {
        let mut message = Message::default();
        let numbers = [
            (self.process, scope.process),
            (self.thread, scope.thread.map(u64::cast_signed)),
            (self.interpreter, scope.interpreter.map(u64::cast_signed)),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                take(number_label(&mut message, key, value, 0));
            }
        }
        if let Some(&name) = scope.thread().and_then(|thread| self.thread_names.of(thread)) {
            take(text_label(&mut message, self.thread_name, symbols.string(name)));
        }
        if let Some(status) = scope.status {
            self.each_flag(status, &mut message, take);
        }
        let tables = symbols.tables();
        for label in scope.labels.map_or(&[] as &[Label], |labels| tables.labels(labels)) {
            let key = symbols.string(label.key);
            take(match label.value {
                LabelValue::Text(text) => text_label(&mut message, key, symbols.string(text)),
                LabelValue::Number { value, unit } => {
                    let unit = unit.map_or(0, |unit| symbols.string(unit));
                    number_label(&mut message, key, value, unit)
                }
            });
        }
    }

    /// One label per flag, so that a viewer can filter samples by flags; an empty text for no flags at all.
    fn each_flag(&self, status: Status, message: &mut Message, take: &mut dyn FnMut(&Message)) {
        let mut any = false;
        for (bit, &flag) in self.flags.iter().enumerate() {
            if status.0 >> bit & 1 == 1 {
                any = true;
                take(text_label(message, self.status, flag));
            }
        }
        if !any {
            take(text_label(message, self.status, 0));
        }
    }
}

/// A text label. An empty text is written too, to distinguish it from the number 0.
fn text_label(message: &mut Message, key: i64, text: i64) -> &Message {
    message.clear().signed(label::KEY, key).explicit(label::STR, text.cast_unsigned())
}

fn number_label(message: &mut Message, key: i64, value: i64, unit: i64) -> &Message {
    message.clear().signed(label::KEY, key).explicit(label::NUM, value.cast_unsigned());
    message.signed(label::NUM_UNIT, unit)
}

/// Writes the samples, one per row.
pub(super) fn write_samples<W: Write>(
    output: &mut Output<W>,
    rows: &Rows,
    symbols: &mut Symbols<'_>,
    labels: &ScopeLabels<'_>,
) -> io::Result<()> {
    let mut message = Message::default();
    for (row, values) in rows.iter() {
        message.clear();
        if row.stack.is_some() {
            message.packed_signed(sample::LOCATION_ID, symbols.locations(row.stack));
        }
        message.packed_signed(sample::VALUE, values.iter().copied());
        let scope = &rows.scopes()[row.scope];
        labels.each(scope, symbols, &mut |label| {
            message.bytes(sample::LABEL, label.as_bytes());
        });
        output.message(profile::SAMPLE, &message)?;
    }
    Ok(())
}
