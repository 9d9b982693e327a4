//! A scrollable list.

use crate::input::Button;

/// The number of rows per notch of the wheel.
pub(crate) const LINES_OF_WHEEL: usize = 3;

/// The cursor of a list, and the first visible row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) cursor: usize,
    top: usize,
    /// The number of rows shown last.
    page: usize,
}

/// A movement of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
}

impl List {
    /// Moves the cursor in a list of `len` rows.
    pub(crate) fn go(&mut self, step: Step, len: usize) {
        let page = self.page.max(2) - 1;
        let target = match step {
            Step::Up => self.cursor.saturating_sub(1),
            Step::Down => self.cursor.saturating_add(1),
            Step::PageUp => self.cursor.saturating_sub(page),
            Step::PageDown => self.cursor.saturating_add(page),
            Step::Home => 0,
            Step::End => len,
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
    pub(crate) fn scroll(&mut self, step: Step) {
        self.go(step, usize::MAX);
        self.top = self.cursor;
    }

    /// Scrolls a text with the mouse.
    pub(crate) fn turn(&mut self, button: Button) {
        for _ in 0..LINES_OF_WHEEL {
            match button {
                Button::WheelUp => self.scroll(Step::Up),
                Button::WheelDown => self.scroll(Step::Down),
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
        let mut list = List::default();
        assert_eq!(list.window(100, 10), 0..10);
        for (step, cursor, window) in [
            (Step::Up, 0, 0..10),
            (Step::Down, 1, 0..10),
            (Step::PageDown, 10, 1..11),
            (Step::End, 99, 90..100),
            (Step::PageUp, 90, 90..100),
            (Step::Up, 89, 89..99),
            (Step::Home, 0, 0..10),
        ] {
            list.go(step, 100);
            assert_eq!((list.cursor, list.window(100, 10)), (cursor, window), "{step:?}");
        }
        assert_eq!((list.at_line(3, 100), list.at_line(10, 100), list.at_line(3, 2)), (Some(3), None, None));
    }

    #[test]
    fn every_step_moves_a_text_until_its_end() {
        let mut text = List::default();
        assert_eq!(text.page(30, 10), 0..10);
        for (step, window) in [
            (Step::Down, 1..11),
            (Step::Up, 0..10),
            (Step::PageDown, 9..19),
            (Step::End, 20..30),
            (Step::Down, 20..30),
            (Step::Up, 19..29),
            (Step::Home, 0..10),
        ] {
            text.scroll(step);
            assert_eq!(text.page(30, 10), window, "{step:?}");
        }
        text.turn(Button::WheelDown);
        assert_eq!(text.page(30, 10), 3..13);
        text.scroll(Step::Down);
        assert_eq!((text.page(3, 10), text.page(0, 0)), (0..3, 0..0));
    }

    #[test]
    fn short_lists_and_small_screens_do_no_harm() {
        let mut list = List { cursor: 50, ..List::default() };
        assert_eq!(list.window(0, 10), 0..0);
        assert_eq!(list.window(3, 0), 0..0);
        list.go(Step::End, 0);
        assert_eq!(list.cursor, 0);
        list.go(Step::PageDown, 3);
        assert_eq!((list.cursor, list.window(3, 2)), (1, 0..2));
    }
}
