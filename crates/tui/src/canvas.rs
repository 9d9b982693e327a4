//! Text in cells, and areas of them.

use borehole_text::{KeptEnd, crop, printable, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::list::ScrollList;
use crate::theme::{Colours, TextRole};

/// The smallest usable screen, in columns and lines.
const LEAST: (u16, u16) = (20, 6);

/// The cells of a screen.
pub(crate) struct CellCanvas<'a> {
    buffer: &'a mut Buffer,
    pub(crate) colours: Colours,
}

impl<'a> CellCanvas<'a> {
    /// Creates a canvas on a whole screen. If that is too small, writes so and returns `None`.
    pub(crate) fn of_screen(buffer: &'a mut Buffer, colours: Colours) -> Option<Self> {
        let area = buffer.area;
        let mut canvas = Self { buffer, colours };
        if area.width < LEAST.0 || area.height < LEAST.1 {
            canvas.plain(area, "too small");
            return None;
        }
        Some(canvas)
    }

    /// Writes a text into a line of `area`, cut to fit, and styles the whole line.
    pub(crate) fn line(&mut self, area: Rect, line: u16, text: &str, style: Style) {
        if line < area.height {
            let row = Rect { y: area.y + line, height: 1, ..area };
            self.buffer.set_style(row, style);
            self.buffer.set_stringn(row.x, row.y, text, usize::from(row.width), style);
        }
    }

    /// Writes the visible rows of a list, each by its text and role. The row of the cursor stands out.
    pub(crate) fn rows(
        &mut self,
        area: Rect,
        (list, len): (&mut ScrollList, usize),
        has_cursor: bool,
        row: impl Fn(usize) -> (String, TextRole),
    ) {
        for (line, place) in (0..).zip(list.window(len, usize::from(area.height))) {
            let (text, role) = row(place);
            let role = if place == list.cursor { TextRole::of_cursor(has_cursor) } else { role };
            self.line(area, line, &text, self.colours.style(role));
        }
    }

    pub(crate) fn plain(&mut self, area: Rect, text: &str) {
        self.line(area, 0, text, Style::default());
    }

    /// Writes the first line of a screen: the name of the profile and facts about it. A long name makes room for the facts, and
    /// keeps its end.
    pub(crate) fn header(&mut self, area: Rect, name: &str, facts: &[String]) {
        let room = usize::from(area.width);
        let facts: String = facts.iter().map(|fact| format!(" · {fact}")).collect();
        let left = room.saturating_sub(1 + width(&facts)).max(room / 3);
        let text = format!(" {}{facts}", crop(&printable(name.as_bytes()), left, KeptEnd::Right));
        self.line(area, 0, &crop(&text, room, KeptEnd::Left), self.colours.style(TextRole::Bar));
    }

    /// Writes a title line.
    pub(crate) fn title(&mut self, area: Rect, text: &str, has_cursor: bool) {
        let role = if has_cursor { TextRole::Focus } else { TextRole::Dim };
        let mark = if has_cursor { "▸ " } else { "  " };
        let text = crop(&format!("{mark}{text}"), usize::from(area.width), KeptEnd::Left);
        self.line(area, 0, &text, self.colours.style(role));
    }

    /// Writes a text at a column of a line, cut at the edge of `area`.
    pub(crate) fn text(&mut self, area: Rect, (line, column): (u16, u16), text: &str, style: Style) {
        if line < area.height && column < area.width {
            let room = usize::from(area.width - column);
            self.buffer.set_stringn(area.x + column, area.y + line, text, room, style);
        }
    }

    /// Draws a box on a line, with its label cut to fit.
    pub(crate) fn label(
        &mut self,
        area: Rect,
        line: u16,
        (start, room): (usize, usize),
        (text, style): (&str, Style),
    ) {
        let Ok(start) = u16::try_from(start) else { return };
        let text = if room < 3 { String::new() } else { crop(text, room - 1, KeptEnd::Left) };
        // The edge separates neighbours where colours do not.
        let filled = format!("{}{text}", if room > 1 { "▏" } else { " " });
        let blank = room.saturating_sub(width(&filled));
        self.text(area, (line, start), &format!("{filled}{}", " ".repeat(blank)), style);
    }
}

/// The upper `height` lines of an area, or all, and the rest.
pub(crate) fn split_top(area: Rect, height: u16) -> [Rect; 2] {
    let height = height.min(area.height);
    let rest = Rect { y: area.y + height, height: area.height - height, ..area };
    [Rect { height, ..area }, rest]
}

/// All but the lower `height` lines of an area, and those.
pub(crate) fn split_bottom(area: Rect, height: u16) -> [Rect; 2] {
    let height = height.min(area.height);
    split_top(area, area.height - height)
}

/// The left `width` columns of an area, or all, and the rest.
pub(crate) fn split_left(area: Rect, width: u16) -> [Rect; 2] {
    let width = width.min(area.width);
    let rest = Rect { x: area.x + width, width: area.width - width, ..area };
    [Rect { width, ..area }, rest]
}
