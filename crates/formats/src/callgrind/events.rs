//! The events of a file as value types.

use borehole_model::{Measure, Segment, ValueType};

use super::SAMPLES;

/// The events of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileEvents {
    columns: Vec<CostColumn>,
    /// Whether the number of calls was counted.
    has_calls: bool,
}

/// An event.
#[derive(Clone, Debug)]
struct CostColumn {
    value_type: ValueType,
    /// The units of the value type in one of the file.
    factor: i64,
    /// Whether it counts the samples of a profile.
    is_count: bool,
}

/// The headers of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileHead {
    /// The names of the events.
    pub(super) events: Vec<u8>,
    /// Names and descriptions of events.
    pub(super) described: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) creator: Vec<u8>,
    pub(super) command: Vec<u8>,
}

impl FileHead {
    /// Takes a header.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"events" => value.clone_into(&mut self.events),
            b"creator" => value.clone_into(&mut self.creator),
            b"cmd" => value.clone_into(&mut self.command),
            b"event" => {
                let mut parts = value.splitn(2, |&byte| byte == b':').map(<[u8]>::trim_ascii);
                let (name, description) =
                    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
                self.described.push((name.to_vec(), description.to_vec()));
            }
            _ => {}
        }
    }

    /// Whether we wrote the file.
    fn is_own(&self) -> bool {
        self.creator.starts_with(b"borehole ")
    }

    fn description(&self, name: &str) -> Option<&str> {
        let found = self.described.iter().find(|(known, _)| known == name.as_bytes())?;
        std::str::from_utf8(&found.1).ok()
    }

    /// The events.
    pub(super) fn events(&self) -> FileEvents {
        let names = String::from_utf8_lossy(&self.events);
        let columns = names.split_ascii_whitespace().map(|name| self.column(name)).collect();
        FileEvents { columns, has_calls: !self.is_own() }
    }

    fn column(&self, name: &str) -> CostColumn {
        let column = |kind: &str, unit: &str, factor| CostColumn {
            value_type: ValueType::new(kind, unit),
            factor,
            is_count: false,
        };
        if self.is_own() {
            let described = self.description(name).and_then(|text| text.rsplit_once(" in "));
            return match described {
                Some((kind, unit)) => column(kind.strip_suffix(" time").unwrap_or(kind), unit, 1),
                None => CostColumn { is_count: name == SAMPLES, ..column("samples", "count", 1) },
            };
        }
        match name.strip_suffix(')').and_then(|name| name.split_once("_(")) {
            Some((kind, "10ns")) => column(kind, "nanoseconds", 10),
            Some((kind, "ns")) => column(kind, "nanoseconds", 1),
            Some((kind, "us" | "µs")) => column(kind, "microseconds", 1),
            Some((kind, "ms")) => column(kind, "milliseconds", 1),
            Some((kind, unit)) => column(kind, unit, 1),
            None => column(name, "count", 1),
        }
    }
}

impl FileEvents {
    pub(super) const fn count(&self) -> usize {
        self.columns.len()
    }

    /// Whether its samples have values and no counts.
    pub(super) fn are_values(&self) -> bool {
        !self.columns.iter().any(|column| column.is_count)
    }

    /// The value types: each event, then each of them with what is called, then calls.
    pub(super) fn value_types(&self) -> Vec<ValueType> {
        let own =
            self.columns.iter().filter(|column| !column.is_count).map(|column| column.value_type.clone());
        let totals =
            self.columns.iter().map(|CostColumn { value_type: ValueType { kind, unit }, .. }| {
                ValueType::new(format!("{kind}_total"), unit.as_str())
            });
        let calls = self.has_calls.then(|| ValueType::new("calls", "count"));
        own.chain(totals).chain(calls).collect()
    }

    /// Describes samples of these events in a segment.
    pub(super) fn describe(&self, segment: &mut Segment) {
        segment.value_types = self.value_types();
        segment.is_uncounted = self.are_values();
        segment.default_measure = Some(if segment.is_uncounted { Measure::Value(0) } else { Measure::Count });
        if self.columns.is_empty() {
            segment.default_measure = None;
        }
    }

    /// The count of a line's own costs; 1 if there are values only. Puts the values.
    pub(super) fn own(&self, costs: &[i64], values: &mut Vec<i64>) -> u64 {
        values.clear();
        let mut count = u64::from(self.are_values());
        for (column, &cost) in self.columns.iter().zip(costs) {
            if column.is_count {
                count = u64::try_from(cost).unwrap_or(0);
            } else {
                values.push(cost.saturating_mul(column.factor));
            }
        }
        values.resize(values.len() + costs.len() + usize::from(self.has_calls), 0);
        count
    }

    /// The count of what calls cost, which are no samples; 1 if there are values only. Puts the values.
    pub(super) fn called(&self, costs: &[i64], calls: u64, values: &mut Vec<i64>) -> u64 {
        values.clear();
        let counts = self.columns.iter().filter(|column| column.is_count).count();
        values.resize(self.columns.len() - counts, 0);
        values
            .extend(self.columns.iter().zip(costs).map(|(column, &cost)| cost.saturating_mul(column.factor)));
        if self.has_calls {
            values.push(i64::try_from(calls).unwrap_or(i64::MAX));
        }
        u64::from(counts == 0)
    }
}
