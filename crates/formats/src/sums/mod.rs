//! Sums of samples, for formats without an order in time.

pub(crate) mod calls;
pub(crate) mod losses;
pub(crate) mod rows;
pub(crate) mod stacks;
