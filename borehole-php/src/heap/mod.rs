//! The heap of a PHP process: what the allocator gave out, and what holds it.
//!
//! * [`allocator`] finds the allocator's heap and tells where its fields are by what must stand in them.
//! * [`blocks`] lists every block that is in use, and proves the list by the allocator's own sums.
//! * [`accounting`] keeps the account of what a walk came to.
//! * [`analyze`] is all of it in one call.
//! * [`garbage`] tells what holds itself from what is held by something unknown, [`guess`] what an unknown block may be.

pub(crate) mod accounting;
pub(crate) mod allocator;
mod analyze;
pub(crate) mod blocks;
pub(crate) mod garbage;
pub(crate) mod guess;
pub(crate) mod internals;
pub(crate) mod layout;
mod live;
mod remainder;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

pub use analyze::{Analysis, AnalyzeOptions, analyze};
