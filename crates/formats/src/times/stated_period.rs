//! Periods as documents state them: of any value type, not only of time.

use borehole_model::{Mode, ValueType};

/// The metadata key of a period that does not fit into a segment, because it is not a time, or because the profile
/// states its own times: `524288 space/bytes`.
pub(crate) const KEY: &str = "period";

/// A period and its type; 0 and an empty type if the document states none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StatedPeriod {
    pub(crate) period: i64,
    pub(crate) period_type: ValueType,
}

impl StatedPeriod {
    /// The period of samples of `mode` with these values, unless metadata state another one. `period_ns` is a time of
    /// the mode, or, if nothing else is known, of the first time among the values.
    pub(crate) fn implied(period_ns: u64, mode: Mode, values: &[ValueType]) -> Self {
        let period = i64::try_from(period_ns).unwrap_or(i64::MAX);
        Self { period, period_type: implied_type(mode, values) }
    }

    /// Parses the metadata text of a period; `None` for other texts.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (period, period_type) = text.split_once(' ')?;
        let (kind, unit) = period_type.split_once('/')?;
        Some(Self { period: period.parse().ok()?, period_type: ValueType::new(kind, unit) })
    }

    /// The period in nanoseconds; `None` if it is not a time above 0.
    pub(crate) fn ns(&self) -> Option<u64> {
        let period = u64::try_from(self.period).ok().filter(|&period| period > 0)?;
        period.checked_mul(self.period_type.nanoseconds_per_unit()?)
    }

    /// The mode that the type of the period names; `None` if it is not a time.
    pub(crate) fn mode(&self) -> Option<Mode> {
        mode_of(&self.period_type)
    }

    /// The mode of the period, or else of the first time among the values.
    pub(crate) fn mode_with(&self, values: &[ValueType]) -> Mode {
        self.mode().or_else(|| values.iter().find_map(mode_of)).unwrap_or_default()
    }

    /// The metadata text, for a segment of `mode` with these values; `None` if the segment implies the period, which it
    /// `holds` if it is a time.
    pub(crate) fn metadata(&self, mode: Mode, values: &[ValueType], holds: bool) -> Option<String> {
        let is_implied = holds && self.ns().is_some() && self.period_type == implied_type(mode, values);
        let is_stated = *self != Self::default();
        (is_stated && !is_implied).then(|| format!("{} {}", self.period, self.period_type))
    }
}

fn implied_type(mode: Mode, values: &[ValueType]) -> ValueType {
    let nanoseconds = values.iter().find(|own| own.nanoseconds_per_unit() == Some(1));
    let own = nanoseconds.filter(|_| mode == Mode::default());
    own.cloned().unwrap_or_else(|| ValueType::time(mode))
}

fn mode_of(time: &ValueType) -> Option<Mode> {
    Mode::named(&time.kind).filter(|_| time.nanoseconds_per_unit().is_some())
}
