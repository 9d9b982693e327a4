//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `pyinstrument`.
pub(crate) const FACTS: Facts = Facts {
    name: "pyinstrument",
    aliases: &[],
    extensions: &["pyisession"],
    description: "session of Python's pyinstrument (-r session)",
    page: "formats/pyinstrument.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_session),
};

/// Detects an object with the facts that stand before the samples.
fn is_session(prefix: &[u8]) -> bool {
    let members: [&[u8]; 3] = [b"\"start_time\"", b"\"start_call_stack\"", b"\"sample_count\""];
    trim_start(prefix).starts_with(b"{") && members.iter().all(|member| contains(prefix, member))
}
