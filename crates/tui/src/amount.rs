//! Formatted amounts.

pub(crate) use borehole_analysis::amount::{bytes, grouped, with_unit};
use borehole_model::{Mode, ValueType};

/// The name of what is counted: `samples`, `CPU time`, `alloc_space`.
pub(crate) fn name(value_type: &ValueType) -> &str {
    if value_type.nanoseconds_per_unit().is_none() {
        return &value_type.kind;
    }
    match Mode::named(&value_type.kind) {
        Some(Mode::Wall) => "time",
        Some(Mode::Cpu) => "CPU time",
        Some(Mode::Gil) => "time with the GIL",
        Some(Mode::Exception) => "time with an exception",
        _ => &value_type.kind,
    }
}

/// The share of a whole in percent, 0 to 100.
// A percentage does not need the digits that a double lacks.
#[expect(clippy::cast_precision_loss)]
pub(crate) fn percent(value: impl Into<i128>, whole: impl Into<i128>) -> f64 {
    value.into() as f64 * 100.0 / whole.into().unsigned_abs().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_weighed_has_a_name() {
        let named = |kind, unit| name(&ValueType::new(kind, unit)).to_owned();
        let names =
            [named("samples", "count"), named("wall", "ns"), named("cpu", "ns"), named("cpu", "count")];
        assert_eq!(names, ["samples", "time", "CPU time", "cpu"]);
    }

    #[test]
    fn shares_of_sums_below_zero_have_the_sign_of_the_part() {
        assert!((percent(-1, -2) + 50.0).abs() < 0.001 && percent(1, 0) > 0.0);
        assert!((percent(1, 3) - 33.333).abs() < 0.001);
    }
}
