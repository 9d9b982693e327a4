//! The names of Borehole's own events, and the keys of metadata.

use borehole_model::dial9::{label, metadata};

/// The frequency of CPU samples, in Hertz.
pub(super) const FREQUENCY_HZ: &[u8] = metadata::CPU_HZ.as_bytes();

/// The sampling period in nanoseconds: Borehole's own, for periods that are not a whole number of Hertz.
pub(super) const PERIOD_NS: &[u8] = b"sampling.period_ns";

/// The entry of a recording that says that its samples are of time off the CPU. Source: `borehole-capture`.
pub(super) const OFF_CPU_MODE: (&[u8], &[u8]) = (b"mode", b"off-cpu");

/// The process of the samples: Borehole's own.
pub(super) const PROCESS: &[u8] = b"process.id";

/// The event that begins an input of a trace merged from several: Borehole's own.
pub(super) const INPUT: &str = "borehole:input";

/// Its field with the name of the input.
pub(super) const INPUT_NAME: &str = label::INPUT;

/// The event that reports an oddity or loss in the input that the trace was made from: Borehole's own.
pub(super) const WARNING: &str = "borehole:warning";

/// Its field with the message.
pub(super) const WARNING_MESSAGE: &str = "message";
