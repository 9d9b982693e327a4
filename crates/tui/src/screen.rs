//! The terminal that an explorer is drawn on.

use std::io::{self, Write};

use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Switches to the alternate screen, hides the cursor and turns on mouse reports.
pub const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?1000h\x1b[?1006h";

/// Restores the terminal, whatever had been begun.
pub const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b[0m\x1b[?25h\x1b[?1049l";

/// Makes the terminal hold back output until [`END_UPDATE`]. Terminals without support show each part as it comes.
///
/// Source: the specification of synchronized output, mode 2026 of `DECSET`.
pub const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";

/// Makes the terminal show all output since [`BEGIN_UPDATE`] at once.
pub const END_UPDATE: &[u8] = b"\x1b[?2026l";

/// The cells of a terminal to draw into.
pub struct ScreenCells<'b>(pub(crate) &'b mut Buffer);

/// Something that is drawn on a terminal.
pub trait Explorer {
    /// Draws everything into the cells.
    fn draw(&mut self, cells: ScreenCells<'_>);

    /// The lines of the screen as text, without colours: for tests, and for people without a terminal.
    #[must_use]
    fn as_text(&mut self, columns: u16, lines: u16) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
        self.draw(ScreenCells(&mut buffer));
        (0..lines).map(|line| text_of(&buffer, line)).collect()
    }
}

fn text_of(buffer: &Buffer, line: u16) -> String {
    let mut text = String::new();
    let mut column = 0;
    while column < buffer.area.width {
        let symbol = buffer[(column, line)].symbol();
        text.push_str(symbol);
        // The cell behind a wide character is blank and not shown.
        column += u16::try_from(borehole_text::width(symbol).max(1)).unwrap_or(1);
    }
    text.trim_end().to_owned()
}

/// The contents of a terminal, kept so that only changes are sent.
pub struct TerminalScreen<W: Write> {
    backend: CrosstermBackend<W>,
    shown: Buffer,
}

impl<W: Write> TerminalScreen<W> {
    /// Creates a screen for a terminal with unknown contents.
    pub fn new(output: W) -> Self {
        Self { backend: CrosstermBackend::new(output), shown: Buffer::empty(Rect::ZERO) }
    }

    /// Makes the next drawing redraw everything, because the terminal no longer shows what was drawn.
    pub fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
    }

    /// Draws the explorer on a terminal of that many columns and lines, which shows everything at once. Sends nothing if nothing
    /// has changed.
    ///
    /// # Errors
    /// If the terminal cannot be written to.
    pub fn draw(&mut self, explorer: &mut impl Explorer, (columns, lines): (u16, u16)) -> io::Result<()> {
        let area = Rect::new(0, 0, columns, lines);
        let mut next = Buffer::empty(area);
        explorer.draw(ScreenCells(&mut next));
        if next == self.shown {
            return Ok(());
        }
        self.backend.write_all(BEGIN_UPDATE)?;
        if self.shown.area != area {
            self.backend.clear()?;
            self.shown = Buffer::empty(area);
        }
        self.backend.draw(self.shown.diff(&next).into_iter())?;
        self.shown = next;
        self.backend.write_all(END_UPDATE)?;
        ratatui::backend::Backend::flush(&mut self.backend)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    struct Word(&'static str);

    impl Explorer for Word {
        fn draw(&mut self, cells: ScreenCells<'_>) {
            cells.0.set_string(0, 0, self.0, Style::new());
        }
    }

    /// The output for words drawn one after the other.
    fn sent(words: &[&'static str]) -> Vec<u8> {
        let mut sent = Vec::new();
        let mut screen = TerminalScreen::new(&mut sent);
        for word in words {
            screen.draw(&mut Word(word), (10, 2)).unwrap();
        }
        drop(screen);
        sent
    }

    #[test]
    fn each_picture_is_one_update_and_one_that_has_not_changed_is_none() {
        let updates = |sent: &[u8]| sent.windows(BEGIN_UPDATE.len()).filter(|at| *at == BEGIN_UPDATE).count();
        let first = sent(&["one"]);
        assert!(first.starts_with(BEGIN_UPDATE) && first.ends_with(END_UPDATE), "{first:?}");
        assert_eq!(updates(&first), 1);
        assert_eq!(sent(&["one", "one"]), first);
        let changed = sent(&["one", "one", "two"]);
        assert!(changed.starts_with(&first) && changed.ends_with(END_UPDATE), "{changed:?}");
        assert_eq!(updates(&changed), 2);
    }
}
