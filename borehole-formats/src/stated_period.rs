//! Periods that a segment has no room for: those that are no time, and those of profiles that state their times themselves.

use borehole_model::ValueType;

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
