//! Callgrind profiles, for `callgrind_annotate` and KCachegrind. Written, not read.
//!
//! The format is made for programs that count calls; a sampling profiler does not. What is written:
//!
//! * The cost of a line is the samples (and, where the period is known, the time) in which it was the
//!   line of the leaf.
//! * The cost of a call is the samples in which the caller had called the callee from that line. Where a
//!   function is on a stack more than once, only its innermost place counts: so the calls out of a
//!   function and its own lines add up to the samples in which it was on the stack at all, and recursion
//!   counts once. A call of a function by itself is therefore never written.
//! * The format demands a number of calls. It is always 1, "at least one": the only number that is
//!   true. A 0 would be more modest, but `callgrind_annotate` takes the cost of such a call for the caller's
//!   own. A `desc` line says so in the file.
//!
//! Functions are told apart by name and file. Unknown lines are 0.

mod export;
mod write;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "callgrind";
