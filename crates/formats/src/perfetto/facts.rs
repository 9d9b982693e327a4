//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `perfetto`.
pub(crate) const FACTS: Facts = Facts {
    name: "perfetto",
    aliases: &["pftrace"],
    extensions: &["pftrace", "perfetto-trace"],
    description: "timeline of threads, workers and tasks for ui.perfetto.dev",
    page: "formats/perfetto.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Never,
};
