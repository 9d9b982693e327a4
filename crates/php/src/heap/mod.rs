//! The heap of a PHP process: its blocks, and what holds them.
//!
//! * [`allocator`] finds the allocator's heap, and its fields by the values that they must have.
//! * [`blocks`] lists all blocks in use, and checks the list against the allocator's sums.
//! * [`accounting`] keeps the account of what a walk reached.
//! * [`analyze`] does all of it in one call.
//! * [`garbage`] distinguishes garbage from values that something unknown holds; [`guess`] guesses the contents of unknown
//!   blocks.

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
