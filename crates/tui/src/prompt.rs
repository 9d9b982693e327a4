//! A line of text that the user types.

use borehole_text::{KeptEnd, crop, printable, width};

/// The text typed so far, and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt<K> {
    pub(crate) kind: K,
    pub(crate) text: String,
}

/// The columns between the name and the text, and of the cursor.
const BESIDE: usize = 3;

/// The effect of a key on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It edits the line.
    More,
    /// It submits the line.
    Whole,
    /// It discards the line.
    Nothing,
}

impl<K> Prompt<K> {
    /// The filter after a key: the text, or nothing if the line was discarded.
    pub(crate) fn filter(&self, typed: Typed) -> String {
        if typed == Typed::Nothing { String::new() } else { self.text.clone() }
    }

    /// Handles a key.
    pub(crate) fn take(&mut self, key: &[u8]) -> Typed {
        match key {
            b"\r" | b"\n" => return Typed::Whole,
            b"\x1b" | b"\x03" => return Typed::Nothing,
            b"\x7f" | b"\x08" => {
                self.text.pop();
            }
            b"\x15" => self.text.clear(),
            // Arrows and other keys without a character: the bytes after the escape are not text.
            [0x1b, ..] => {}
            _ => {
                let typed = std::str::from_utf8(key).unwrap_or_default();
                self.text.extend(typed.chars().filter(|character| !character.is_control()));
            }
        }
        Typed::More
    }

    /// The line on the screen. It shows the end of a long text, for which the name is cut to no less than half of the line.
    pub(crate) fn line(&self, name: &str, columns: usize) -> String {
        let typed = printable(self.text.as_bytes());
        let left = columns.saturating_sub(width(&typed) + BESIDE).max(columns / 2);
        let name = crop(name, left.max(1), KeptEnd::Left);
        let room = columns.saturating_sub(width(&name) + BESIDE);
        format!("{name}: {}█", crop(&typed, room.max(1), KeptEnd::Right))
    }
}
