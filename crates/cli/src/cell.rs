//! Text of profiles in a terminal: escaped, and cut to its width.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};

use borehole_text::{KeptEnd, TextTable, WIDEST_LAST, crop};
use clap::Args;

/// The option for the names in any command's answer.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct WidthArgs {
    /// Show names and values in full, however long [default: cells of tables are cut, at 256 columns at most]
    #[arg(long, global = true, hide_short_help = true)]
    wide: bool,
}

/// Whether nothing is cut.
static IS_WIDE: AtomicBool = AtomicBool::new(false);

impl WidthArgs {
    /// Holds from here on.
    pub(crate) fn apply(self) {
        IS_WIDE.store(self.wide, Ordering::Relaxed);
    }
}

/// Whether the user asked for names in full.
pub(crate) fn is_wide() -> bool {
    IS_WIDE.load(Ordering::Relaxed)
}

/// A table that is cut unless the user wants names in full.
pub(crate) fn sized(table: TextTable) -> TextTable {
    table.whole(is_wide())
}

/// A line with a name at its end, cut as the last cell of a table is.
pub(crate) fn sized_line(line: &str) -> String {
    if is_wide() { line.to_owned() } else { crop(line, WIDEST_LAST, KeptEnd::Left) }
}

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
