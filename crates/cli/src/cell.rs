//! Text of a profile made fit for a terminal: nothing that it obeys, and no wider than it is.

use std::io::{self, IsTerminal};

pub(crate) use borehole_analysis::amount::bytes;
pub(crate) use borehole_tui::{pad, printable, width};
use clap::ValueEnum;

/// Columns where there is neither a terminal nor `COLUMNS`.
///
/// Source: Symfony Console, which reli asks for the width.
const DEFAULT_COLUMNS: usize = 80;

/// Which end of a text stays when it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Anchor {
    /// The head
    Left,
    /// The tail
    Right,
}

/// `text` cut to `columns`, with an ellipsis where it was cut. 0 columns do not cut.
pub(crate) fn crop(text: &str, columns: usize, anchor: Anchor) -> String {
    let anchor = match anchor {
        Anchor::Left => borehole_tui::Anchor::Left,
        Anchor::Right => borehole_tui::Anchor::Right,
    };
    borehole_tui::crop(text, columns, anchor)
}

/// Whether what is written to `stream` can be drawn over: it is a terminal that does more than print.
pub(crate) fn is_drawn_over(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

/// The columns that lines may take: what `COLUMNS` says, the terminal's on standard output, or 80.
pub(crate) fn terminal_width() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let seen = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    said.or_else(seen).filter(|&columns| columns > 0).unwrap_or(DEFAULT_COLUMNS)
}
