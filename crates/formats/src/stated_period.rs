//! Periods that do not fit into a segment: those that are not times, and those of profiles that state their own times.

use borehole_model::{Mode, ValueType};

/// The metadata key of such a period: `524288 space/bytes`.
pub(crate) const KEY: &str = "period";

/// The metadata text of a period.
pub(crate) fn said(period: i64, period_type: &ValueType) -> String {
    format!("{period} {period_type}")
}

/// Parses the metadata text of a period; `None` for other texts.
pub(crate) fn read(text: &str) -> Option<(i64, ValueType)> {
    let (period, period_type) = text.split_once(' ')?;
    let (kind, unit) = period_type.split_once('/')?;
    Some((period.parse().ok()?, ValueType::new(kind, unit)))
}

/// The assumed value type of the period of samples of `mode` with these values, if no metadata state one: if nothing
/// else is known, the first time among the values.
pub(crate) fn implied(mode: Mode, values: &[ValueType]) -> ValueType {
    let nanoseconds = values.iter().find(|own| own.nanoseconds_per_unit() == Some(1));
    let own = nanoseconds.filter(|_| mode == Mode::default());
    own.cloned().unwrap_or_else(|| ValueType::time(mode))
}
