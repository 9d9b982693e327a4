//! Profile text made safe for a terminal: without control sequences, and fitted to a width.

use borehole_model::shown::is_unseen;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The mark of a cut.
const ELLIPSIS: char = '…';

/// The end of a text that stays when it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The head.
    Left,
    /// The tail.
    Right,
}

/// Formats `bytes` as one line of text. Control characters, characters that change the order or the look of the text around
/// them, and invalid UTF-8 are escaped: `\x1b`, `\u{202e}`.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_tui::printable(b"a\x1b[2J\xff"), r"a\x1b[2J\xff");
/// assert_eq!(borehole_tui::printable("f\u{202e}php.g".as_bytes()), r"f\u{202e}php.g");
/// ```
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0'..' ' | '\x7f' => text.push_str(&format!("\\x{:02x}", u32::from(character))),
                character if is_unseen(character) => text.extend(character.escape_unicode()),
                _ => text.push(character),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The width of a text in columns.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Pads `text` with spaces to `columns`.
#[must_use]
pub fn pad(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(spaces))
}

/// Cuts `text` to `columns`, with an ellipsis at the cut. 0 columns do not cut.
#[must_use]
pub fn crop(text: &str, columns: usize, anchor: Anchor) -> String {
    if columns == 0 || width(text) <= columns {
        return text.to_owned();
    }
    let room = columns - 1;
    match anchor {
        Anchor::Left => {
            let mut kept: String = fitting(text.chars(), room).collect();
            kept.push(ELLIPSIS);
            kept
        }
        Anchor::Right => {
            let kept = fitting(text.chars().rev(), room).map(char::len_utf8).sum::<usize>();
            format!("{ELLIPSIS}{}", &text[text.len() - kept..])
        }
    }
}

/// The characters that fit into `room` columns.
fn fitting(characters: impl Iterator<Item = char>, mut room: usize) -> impl Iterator<Item = char> {
    characters.take_while(move |character| match room.checked_sub(character.width().unwrap_or(0)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        assert_eq!(printable(b"App\\Db::query"), "App\\Db::query");
        assert_eq!(printable(b"\x1b[2Jx\ny\t\0\x7f"), r"\x1b[2Jx\x0ay\x09\x00\x7f");
        assert_eq!(printable(b"caf\xe9 \xff"), r"caf\xe9 \xff");
        assert_eq!(printable("é 日本 \u{9b}2J".as_bytes()), r"é 日本 \u{9b}2J");
        assert_eq!(printable("\u{202e}gpj\u{2066}\u{200b}".as_bytes()), r"\u{202e}gpj\u{2066}\u{200b}");
    }

    #[test]
    fn a_crop_keeps_the_end_that_is_asked_for() {
        assert_eq!(crop("abcdefghij", 5, Anchor::Left), "abcd…");
        assert_eq!(crop("abcdefghij", 6, Anchor::Right), "…fghij");
        for (columns, kept) in [(0, "abcdef"), (1, "…"), (6, "abcdef"), (7, "abcdef")] {
            assert_eq!(crop("abcdef", columns, Anchor::Left), kept);
            assert_eq!(crop("abcdef", columns, Anchor::Right), kept);
        }
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("日本語 é"), 8);
        assert_eq!(crop("日本語です", 6, Anchor::Left), "日本…");
        assert_eq!(crop("日本語です", 6, Anchor::Right), "…です");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(pad("long", 2), "long");
    }
}
