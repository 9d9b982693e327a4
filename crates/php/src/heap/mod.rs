//! The heap of a PHP process: its blocks, and what holds them.
//!
//! * [`allocator`] finds the allocator's heap, and its fields by the values that they must have.
//! * [`blocks`] lists all blocks in use, and checks the list against the allocator's sums.
//! * [`walk`] visits everything that the roots lead to, and writes the graph.
//! * [`accounting`] keeps the account of what a walk reached.
//! * [`garbage`] distinguishes garbage from values that something unknown holds; [`guess`] guesses the contents of unknown
//!   blocks.
//! * [`object_size`] knows where objects end.
//! * [`analyze`] does all of it in one call.
//!
//! [`view`] is the memory of a dump, with its writable parts outside of the heap.

pub(crate) mod accounting;
pub(crate) mod allocator;
mod analyze;
pub(crate) mod blocks;
mod collected;
pub(crate) mod garbage;
pub(crate) mod guess;
pub(crate) mod layout;
mod live;
pub(crate) mod object_size;
#[cfg(test)]
mod tests;
pub(crate) mod view;
pub(crate) mod walk;

pub use analyze::{Analysis, AnalyzeOptions, analyze};
