//! Sums of frames as lines of JSON, as `python -m profiling.sampling replay --jsonl` writes them: names and frames in chunks,
//! and how often each frame was executing and on the stack.
//!
//! This is not the lossless `jsonl` of `borehole dump`: it has neither stacks nor times.

mod export;
mod import;
mod read;

pub use export::Exporter;
pub use import::import;

/// The short name of the format.
pub const NAME: &str = "tachyon-jsonl";
