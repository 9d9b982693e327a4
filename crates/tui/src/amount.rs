//! Formatted amounts.

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
}
