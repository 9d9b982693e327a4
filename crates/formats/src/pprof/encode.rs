//! Writes the parts of a document beside its definitions: types, samples with labels, facts.

use std::io::{self, Write};

use borehole_model::{Label, LabelValue, Status, Tables, ThreadNames, ValueType};

use super::layout::{key, label, profile, sample};
use super::rows::StackRows;
use super::symbols::DocumentSymbols;
use super::write::{FieldStream, Message};
use crate::documents::samples::SampleScope;
use crate::symbols::layout::value_type;

/// A value type, as string indexes.
type TypeNumbers = (u64, u64);

/// All parts except definitions and samples, with numbered strings. A number of 0 is unknown.
#[derive(Debug)]
pub(super) struct ProfileHeader {
    pub(super) types: Vec<TypeNumbers>,
    pub(super) time_ns: i64,
    pub(super) duration_ns: i64,
    /// `None` if no period is known.
    pub(super) period: Option<(i64, TypeNumbers)>,
    pub(super) default_type: u64,
    pub(super) doc_url: u64,
    pub(super) comments: Vec<u64>,
}

impl ProfileHeader {
    pub(super) fn write_types<W: Write>(&self, output: &mut FieldStream<W>) -> io::Result<()> {
        self.types.iter().try_for_each(|&row| output.message(profile::SAMPLE_TYPE, &type_message(row)))
    }

    pub(super) fn write_facts<W: Write>(&self, output: &mut FieldStream<W>) -> io::Result<()> {
        output.number(profile::TIME_NANOS, self.time_ns.cast_unsigned())?;
        output.number(profile::DURATION_NANOS, self.duration_ns.cast_unsigned())?;
        if let Some((period, period_type)) = self.period {
            output.message(profile::PERIOD_TYPE, &type_message(period_type))?;
            output.number(profile::PERIOD, period.cast_unsigned())?;
        }
        self.comments.iter().try_for_each(|&index| output.number(profile::COMMENT, index))?;
        output.number(profile::DEFAULT_SAMPLE_TYPE, self.default_type)?;
        output.number(profile::DOC_URL, self.doc_url)
    }
}

/// Numbers the names of a value type.
pub(super) fn number_type(symbols: &mut DocumentSymbols<'_>, value_type: &ValueType) -> TypeNumbers {
    (symbols.text(&value_type.kind), symbols.text(&value_type.unit))
}

fn type_message((kind, unit): TypeNumbers) -> Message {
    let mut message = Message::default();
    message.number(value_type::TYPE, kind).number(value_type::UNIT, unit);
    message
}

/// Encodes the properties of samples beside their stack as labels, by scope.
pub(super) fn scope_labels(
    symbols: &mut DocumentSymbols<'_>,
    scopes: &[SampleScope],
    thread_names: &ThreadNames,
) -> Vec<Message> {
    let labels_of = |scope: &SampleScope| {
        let mut labels = ScopeLabels { symbols: &mut *symbols, encoded: Message::default() };
        labels.add_scope(scope, thread_names);
        labels.encoded
    };
    scopes.iter().map(labels_of).collect()
}

struct ScopeLabels<'s, 't> {
    symbols: &'s mut DocumentSymbols<'t>,
    encoded: Message,
}

impl ScopeLabels<'_, '_> {
    fn add_scope(&mut self, scope: &SampleScope, thread_names: &ThreadNames) {
        let numbers = [
            (key::PROCESS, scope.process),
            (key::THREAD, scope.thread.map(u64::cast_signed)),
            (key::INTERPRETER, scope.interpreter.map(u64::cast_signed)),
        ];
        for (key, value) in numbers {
            if let Some(value) = value {
                let key = self.symbols.text(key);
                self.add_number(key, value, 0);
            }
        }
        if let Some(&name) = scope.thread().and_then(|thread| thread_names.of(thread)) {
            let (key, name) = (self.symbols.text(key::THREAD_NAME), self.symbols.string(name));
            self.add_text(key, name);
        }
        if let Some(status) = scope.status {
            self.add_status(status);
        }
        let tables = self.symbols.tables();
        for label in scope.labels.map_or(&[] as &[Label], |labels| tables.labels(labels)) {
            let key = self.symbols.string(label.key);
            match label.value {
                LabelValue::Text(text) => {
                    let text = self.symbols.string(text);
                    self.add_text(key, text);
                }
                LabelValue::Number { value, unit } => {
                    let unit = unit.map_or(0, |unit| self.symbols.string(unit));
                    self.add_number(key, value, unit);
                }
            }
        }
    }

    /// One label per flag, so that a viewer can filter samples by flags; an empty text for no flags at all.
    fn add_status(&mut self, status: Status) {
        let key = self.symbols.text(key::STATUS);
        for flag in status.names() {
            let flag = self.symbols.text(flag);
            self.add_text(key, flag);
        }
        if status.names().next().is_none() {
            self.add_text(key, 0);
        }
    }

    /// Adds a text, even an empty one, to distinguish it from the number 0.
    fn add_text(&mut self, key: u64, text: u64) {
        let mut message = Message::default();
        message.number(label::KEY, key).explicit(label::STR, text);
        self.encoded.bytes(sample::LABEL, message.as_bytes());
    }

    fn add_number(&mut self, key: u64, value: i64, unit: u64) {
        let mut message = Message::default();
        message.number(label::KEY, key).explicit(label::NUM, value.cast_unsigned());
        message.number(label::NUM_UNIT, unit);
        self.encoded.bytes(sample::LABEL, message.as_bytes());
    }
}

/// The most frames of all samples together, of which deep stacks keep only the innermost: `go tool pprof` takes 16 bytes for each,
/// a gigabyte.
const MOST_FRAMES: usize = 64 << 20;

/// The least depth at which stacks are cut.
const LEAST_DEPTH: usize = 1_000;

/// The number of frames that stacks keep, and the number of rows with a deeper stack.
pub(super) fn depth_limit(rows: &StackRows, tables: &Tables) -> (usize, u64) {
    let stacks = || rows.iter().filter_map(|(row, _)| row.stack);
    let depths = || stacks().map(|stack| tables.depth(stack) as usize);
    let frames = |limit: usize| depths().fold(0, |sum: usize, depth| sum.saturating_add(depth.min(limit)));
    if frames(usize::MAX) <= MOST_FRAMES {
        return (usize::MAX, 0);
    }
    let mut limit = depths().max().unwrap_or(0);
    while limit > LEAST_DEPTH && frames(limit) > MOST_FRAMES {
        limit = (limit / 2).max(LEAST_DEPTH);
    }
    (limit, depths().filter(|&depth| depth > limit).count() as u64)
}

/// Writes the samples, one per row, with the labels of their scope and at most `depth` frames of their stack.
pub(super) fn write_samples<W: Write>(
    output: &mut FieldStream<W>,
    rows: &StackRows,
    symbols: &DocumentSymbols<'_>,
    labels: &[Message],
    depth: usize,
) -> io::Result<()> {
    let mut message = Message::default();
    for (row, values) in rows.iter() {
        message.clear();
        if row.stack.is_some() {
            message.packed(sample::LOCATION_ID, symbols.locations(row.stack).take(depth));
        }
        message.packed(sample::VALUE, values.iter().map(|value| value.cast_unsigned()));
        message.fields(labels[row.scope].as_bytes());
        output.message(profile::SAMPLE, &message)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use borehole_model::Frame;

    use super::*;

    /// The limit for a stack of each of these depths, `scopes` times each.
    fn limit(depths: &[usize], scopes: i64) -> (usize, u64) {
        let mut tables = Tables::default();
        let name = tables.intern_string(b"f").unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        let mut rows = StackRows::default();
        for &depth in depths {
            let mut stack = None;
            for _ in 0..depth {
                stack = Some(tables.intern_stack(stack, frame).unwrap());
            }
            for process in 0..scopes {
                rows.row(stack, SampleScope { process: Some(process), ..SampleScope::default() }).unwrap();
            }
        }
        depth_limit(&rows, &tables)
    }

    #[test]
    fn only_deep_stacks_are_cut_and_only_if_there_are_too_many_frames() {
        assert_eq!(limit(&[200_000, 3], 300), (usize::MAX, 0));
        assert_eq!(limit(&[200_000, 3], 400), (100_000, 400));
        assert_eq!(limit(&[20_000, 900], 70_000), (1_000, 70_000));
    }
}
