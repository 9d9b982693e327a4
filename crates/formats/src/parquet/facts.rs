//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `parquet`.
pub(crate) const FACTS: Facts = Facts {
    name: "parquet",
    aliases: &[],
    extensions: &["parquet"],
    description: "samples and stacks as rows of a table, for DuckDB and other programs",
    page: "formats/parquet.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(|prefix| prefix.starts_with(b"PAR1")),
};
