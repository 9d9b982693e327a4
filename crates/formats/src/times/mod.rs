//! Periods and durations that documents state once.

pub(crate) mod one_period;
pub(crate) mod stated_duration;
pub(crate) mod stated_period;
