//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `collapsed`.
pub(crate) const FACTS: Facts = Facts {
    name: "collapsed",
    aliases: &[],
    extensions: &["collapsed", "collapsed.txt"],
    description: "folded stacks as CPython's replay writes them: tid:N;file.py:function:line, and a count",
    page: "formats/tachyon.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: Some("folded"),
    detect: Detect::Never,
};
