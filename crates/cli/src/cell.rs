//! Text of profiles in a terminal: escaped, and cut to its width.

use std::io::{self, IsTerminal};

/// The width without a terminal or `COLUMNS`.
///
/// Source: Symfony Console, which reli asks for the width.
const DEFAULT_COLUMNS: usize = 80;

/// Whether `stream` is a terminal that supports more than plain text.
pub(crate) fn is_drawn_over(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// The width for lines: `COLUMNS`, the width of the terminal on standard output, or 80.
pub(crate) fn terminal_width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let seen = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(seen).filter(|&columns| columns > 0).unwrap_or(DEFAULT_COLUMNS)
}
