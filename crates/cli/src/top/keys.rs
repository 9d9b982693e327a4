//! Keys, one by one.

use std::io;
use std::time::Duration;

use borehole_tui::{Decoder, Input};

use crate::explore::terminal::{Given, Raw};

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Back,
    Escape,
}

/// The terminal while it gives keys at once and shows a screen of its own. Dropping it puts everything back.
pub(super) struct Keys {
    raw: Raw,
    decoder: Decoder,
}

/// A screen of its own, without a cursor.
const ENTER_SCREEN: &[u8] = b"\x1b[?1049h\x1b[?25l";

impl Keys {
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self { raw: Raw::enter(Given::ButSignals, &[ENTER_SCREEN])?, decoder: Decoder::default() })
    }

    /// The next keys, if some come in time; `None` at the end of the terminal.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<Vec<Key>>> {
        let Some(bytes) = self.raw.read(patience)? else {
            return Ok(Some(self.decoder.settle().iter().filter_map(key).collect()));
        };
        let keys = self.decoder.push(&bytes).iter().filter_map(key).collect();
        Ok((!bytes.is_empty()).then_some(keys))
    }

    /// Whether the screen shows something else than what was drawn.
    pub(super) const fn was_away(&mut self) -> bool {
        self.raw.was_away()
    }
}

/// The key; nothing for arrows and other keys without a meaning.
fn key(input: &Input) -> Option<Key> {
    let Input::Key(bytes) = input else { return None };
    match bytes[..] {
        [b'\r' | b'\n'] => Some(Key::Enter),
        [8 | 127] => Some(Key::Back),
        [0x1b] => Some(Key::Escape),
        _ => {
            let mut letters = str::from_utf8(bytes).ok()?.chars().filter(|letter| !letter.is_control());
            letters.next().filter(|_| letters.next().is_none()).map(Key::Char)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_no_letters() {
        let mut decoder = Decoder::default();
        let typed = decoder.push("/aé\x1b[D\x1b[A\x7f\r\x1b".as_bytes());
        let keys: Vec<_> = typed.iter().chain(&decoder.settle()).filter_map(key).collect();
        let expected = [Key::Char('/'), Key::Char('a'), Key::Char('é'), Key::Back, Key::Enter, Key::Escape];
        assert_eq!(keys, expected);
    }
}
