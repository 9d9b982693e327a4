//! Periods that a segment has no room for: those that are no time, and those of profiles that state their times themselves.

use borehole_model::{Mode, ValueType};

/// The metadata that says one, `524288 space/bytes`.
pub(crate) const KEY: &str = "period";

/// What the metadata say.
pub(crate) fn said(period: i64, period_type: &ValueType) -> String {
    format!("{period} {period_type}")
}

/// The period that metadata state, if that is what they are about.
pub(crate) fn read(text: &str) -> Option<(i64, ValueType)> {
    let (period, period_type) = text.split_once(' ')?;
    let (kind, unit) = period_type.split_once('/')?;
    Some((period.parse().ok()?, ValueType::new(kind, unit)))
}

/// What the period of samples of `mode` with these values is taken for, where no metadata say it: where nothing else is known, the
/// first time among the values.
pub(crate) fn implied(mode: Mode, values: &[ValueType]) -> ValueType {
    let nanoseconds = values.iter().find(|own| own.nanoseconds_per_unit() == Some(1));
    let own = nanoseconds.filter(|_| mode == Mode::default());
    own.cloned().unwrap_or_else(|| ValueType::time(mode))
}
