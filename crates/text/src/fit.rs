//! Text fitted to a width in columns of a terminal.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The mark of a cut.
const ELLIPSIS: char = '…';

/// The end of a text that stays when it is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptEnd {
    /// The head.
    Left,
    /// The tail.
    Right,
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
pub fn crop(text: &str, columns: usize, anchor: KeptEnd) -> String {
    if columns == 0 || width(text) <= columns {
        return text.to_owned();
    }
    let room = columns - 1;
    match anchor {
        KeptEnd::Left => {
            let mut kept: String = fitting(text.chars(), room).collect();
            kept.push(ELLIPSIS);
            kept
        }
        KeptEnd::Right => {
            let kept = fitting(text.chars().rev(), room).map(char::len_utf8).sum::<usize>();
            format!("{ELLIPSIS}{}", &text[text.len() - kept..])
        }
    }
}

/// Cuts `text` to `columns` in its middle, with an ellipsis there. 0 columns do not cut.
#[must_use]
pub fn crop_middle(text: &str, columns: usize) -> String {
    if columns == 0 || width(text) <= columns {
        return text.to_owned();
    }
    let (head, tail) = ((columns - 1).div_ceil(2), (columns - 1) / 2);
    let head = crop(text, head + 1, KeptEnd::Left);
    let tail = crop(text, tail + 1, KeptEnd::Right);
    head + tail.trim_start_matches(ELLIPSIS)
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
    fn a_crop_keeps_the_requested_end() {
        assert_eq!(crop("abcdefghij", 5, KeptEnd::Left), "abcd…");
        assert_eq!(crop("abcdefghij", 6, KeptEnd::Right), "…fghij");
        for (columns, kept) in [(0, "abcdef"), (1, "…"), (6, "abcdef"), (7, "abcdef")] {
            assert_eq!(crop("abcdef", columns, KeptEnd::Left), kept);
            assert_eq!(crop("abcdef", columns, KeptEnd::Right), kept);
        }
    }

    #[test]
    fn a_crop_in_the_middle_keeps_both_ends() {
        assert_eq!(crop_middle("abcdefghij", 5), "ab…ij");
        assert_eq!(crop_middle("abcdefghij", 6), "abc…ij");
        for (columns, kept) in [(0, "abcdef"), (1, "…"), (2, "a…"), (6, "abcdef")] {
            assert_eq!(crop_middle("abcdef", columns), kept);
        }
        assert_eq!(crop_middle("日本語です", 6), "日…す");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(width("日本語 é"), 8);
        assert_eq!(crop("日本語です", 6, KeptEnd::Left), "日本…");
        assert_eq!(crop("日本語です", 6, KeptEnd::Right), "…です");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(pad("long", 2), "long");
    }
}
