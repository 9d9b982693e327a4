//! The heap of a PHP process: what the allocator gave out, and what holds it.
//!
//! * [`allocator`] finds the allocator's heap and tells where its fields are by what must stand in them.
//! * [`blocks`] lists every block that is in use, and proves the list by the allocator's own sums.

pub(crate) mod allocator;
pub(crate) mod blocks;
pub(crate) mod internals;
pub(crate) mod layout;
#[cfg(test)]
mod live;
pub(crate) mod walk;
