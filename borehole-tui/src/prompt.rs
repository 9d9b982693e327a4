//! A line that the user types.

use crate::text::{Anchor, crop, printable, width};

/// What the user is typing, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt<K> {
    pub(crate) kind: K,
    pub(crate) text: String,
}

/// What a key does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It changes it.
    More,
    /// It ends it.
    Whole,
    /// It throws it away.
    Nothing,
}

impl<K> Prompt<K> {
    /// Takes a key.
    pub(crate) fn take(&mut self, key: &[u8]) -> Typed {
        match key {
            b"\r" | b"\n" => return Typed::Whole,
            b"\x1b" | b"\x03" => return Typed::Nothing,
            b"\x7f" | b"\x08" => {
                self.text.pop();
            }
            b"\x15" => self.text.clear(),
            _ => {
                let typed = std::str::from_utf8(key).unwrap_or_default();
                self.text.extend(typed.chars().filter(|character| !character.is_control()));
            }
        }
        Typed::More
    }

    /// The line as it is shown: its end, where it is long.
    pub(crate) fn line(&self, name: &str, columns: usize) -> String {
        let room = columns.saturating_sub(width(name) + 3);
        format!("{name}: {}█", crop(&printable(self.text.as_bytes()), room.max(1), Anchor::Right))
    }
}
