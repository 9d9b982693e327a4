//! A scrollable list.

use crate::input::Button;

/// The number of rows per notch of the wheel.
pub(crate) const LINES_OF_WHEEL: usize = 3;

/// The cursor of a list, and the first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScrollList {
    pub(crate) cursor: usize,
    top: usize,
    /// The number of rows shown last.
    page: usize,
}

/// A movement of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CursorStep {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl ScrollList {
    /// Moves the cursor in a list of `len` rows.
    pub(crate) fn go(&mut self, step: CursorStep, len: usize) {
        let page = self.page.max(2) - 1;
        let target = match step {
            CursorStep::Up => self.cursor.saturating_sub(1),
            CursorStep::Down => self.cursor.saturating_add(1),
            CursorStep::PageUp => self.cursor.saturating_sub(page),
            CursorStep::PageDown => self.cursor.saturating_add(page),
            CursorStep::Home => 0,
            CursorStep::End => len,
        };
        self.cursor = target.min(len.saturating_sub(1));
    }

    /// The rows to show on `page` lines: the cursor is among them, and lines stay empty only if there are too few rows.
    pub(crate) fn window(&mut self, len: usize, page: usize) -> std::ops::Range<usize> {
        self.page = page;
        self.cursor = self.cursor.min(len.saturating_sub(1));
        let last_top = len.saturating_sub(page);
        let lowest = (self.cursor + 1).saturating_sub(page.max(1));
        self.top = self.top.clamp(lowest, self.cursor).min(last_top);
        self.top..len.min(self.top + page)
    }

    /// The rows to show on `page` lines of a text without a cursor.
    pub(crate) fn page(&mut self, len: usize, page: usize) -> std::ops::Range<usize> {
        let window = self.window(len, page);
        self.cursor = window.start;
        window
    }

    /// Scrolls a text, as far as there is something below it.
    pub(crate) fn scroll(&mut self, step: CursorStep) {
        self.go(step, usize::MAX);
        self.top = self.cursor;
    }

    /// Scrolls a text with the mouse.
    pub(crate) fn turn(&mut self, button: Button) {
        for _ in 0..LINES_OF_WHEEL {
            match button {
                Button::WheelUp => self.scroll(CursorStep::Up),
                Button::WheelDown => self.scroll(CursorStep::Down),
                Button::Press => {}
            }
        }
    }

    /// The row on a line of the screen, if there is one.
    pub(crate) fn at_line(&self, line: usize, len: usize) -> Option<usize> {
        Some(self.top + line).filter(|&row| row < len && line < self.page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stays_on_the_page_and_in_the_list() {
        let mut list = ScrollList::default();
        assert_eq!(list.window(100, 10), 0..10);
        for (step, cursor, window) in [
            (CursorStep::Up, 0, 0..10),
            (CursorStep::Down, 1, 0..10),
            (CursorStep::PageDown, 10, 1..11),
            (CursorStep::End, 99, 90..100),
            (CursorStep::PageUp, 90, 90..100),
            (CursorStep::Up, 89, 89..99),
            (CursorStep::Home, 0, 0..10),
        ] {
            list.go(step, 100);
            assert_eq!((list.cursor, list.window(100, 10)), (cursor, window), "{step:?}");
        }
        assert_eq!((list.at_line(3, 100), list.at_line(10, 100), list.at_line(3, 2)), (Some(3), None, None));
    }

    #[test]
    fn every_step_moves_a_text_until_its_end() {
        let mut text = ScrollList::default();
        assert_eq!(text.page(30, 10), 0..10);
        for (step, window) in [
            (CursorStep::Down, 1..11),
            (CursorStep::Up, 0..10),
            (CursorStep::PageDown, 9..19),
            (CursorStep::End, 20..30),
            (CursorStep::Down, 20..30),
            (CursorStep::Up, 19..29),
            (CursorStep::Home, 0..10),
        ] {
            text.scroll(step);
            assert_eq!(text.page(30, 10), window, "{step:?}");
        }
        text.turn(Button::WheelDown);
        assert_eq!(text.page(30, 10), 3..13);
        text.scroll(CursorStep::Down);
        assert_eq!((text.page(3, 10), text.page(0, 0)), (0..3, 0..0));
    }

    #[test]
    fn short_lists_and_small_screens_do_no_harm() {
        let mut list = ScrollList { cursor: 50, ..ScrollList::default() };
        assert_eq!(list.window(0, 10), 0..0);
        assert_eq!(list.window(3, 0), 0..0);
        list.go(CursorStep::End, 0);
        assert_eq!(list.cursor, 0);
        list.go(CursorStep::PageDown, 3);
        assert_eq!((list.cursor, list.window(3, 2)), (1, 0..2));
    }
}
