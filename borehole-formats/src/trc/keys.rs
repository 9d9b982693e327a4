//! What events and metadata are called.

/// How often the CPU is sampled, in Hertz. Source: dial9 0.5.7.
pub(super) const FREQUENCY_HZ: &[u8] = b"cpu.profile.frequency_hz";

/// The sampling period in nanoseconds: ours, for periods that are no whole number of Hertz.
pub(super) const PERIOD_NS: &[u8] = b"sampling.period_ns";

/// The process that the samples are of: ours.
pub(super) const PROCESS: &[u8] = b"process.id";

/// The event that begins an input of a trace that was merged of several: ours.
pub(super) const INPUT: &str = "borehole:input";

/// The field of it that tells what the input was called, and the label of its samples.
pub(super) const INPUT_NAME: &str = "input";

/// The event that tells what was odd or lost in the input that the trace was made of: ours.
pub(super) const WARNING: &str = "borehole:warning";

/// The field of it that says so.
pub(super) const WARNING_MESSAGE: &str = "message";
