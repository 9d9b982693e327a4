//! Keyboard input.

use std::io;
use std::time::Duration;

use borehole_tui::{InputDecoder, TerminalInput};

use crate::explore::terminal::{RawKeys, RawTerminal};

/// A pressed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PressedKey {
    Char(char),
    Enter,
    Back,
    Escape,
}

/// The terminal in raw mode on the alternate screen. Dropping it restores the terminal.
pub(super) struct Keys {
    raw: RawTerminal,
    decoder: InputDecoder,
}

/// Switches to the alternate screen and hides the cursor.
const ENTER_SCREEN: &[u8] = b"\x1b[?1049h\x1b[?25l";

impl Keys {
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self {
            raw: RawTerminal::enter(RawKeys::ButSignals, &[ENTER_SCREEN])?,
            decoder: InputDecoder::default(),
        })
    }

    /// The keys pressed within `patience`; `None` when the terminal is closed.
    pub(super) fn next(&mut self, patience: Duration) -> io::Result<Option<Vec<PressedKey>>> {
        let Some(bytes) = self.raw.read(patience)? else {
            return Ok(Some(self.decoder.settle().iter().filter_map(key).collect()));
        };
        let keys = self.decoder.push(&bytes).iter().filter_map(key).collect();
        Ok((!bytes.is_empty()).then_some(keys))
    }

    /// Whether the screen must be redrawn, because another program used the terminal.
    pub(super) const fn was_away(&mut self) -> bool {
        self.raw.was_away()
    }
}

/// The key; `None` for arrows and other keys without a meaning.
fn key(input: &TerminalInput) -> Option<PressedKey> {
    let TerminalInput::Key(bytes) = input else { return None };
    match bytes[..] {
        [b'\r' | b'\n'] => Some(PressedKey::Enter),
        [8 | 127] => Some(PressedKey::Back),
        [0x1b] => Some(PressedKey::Escape),
        _ => {
            let mut letters = str::from_utf8(bytes).ok()?.chars().filter(|letter| !letter.is_control());
            letters.next().filter(|_| letters.next().is_none()).map(PressedKey::Char)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_no_letters() {
        let mut decoder = InputDecoder::default();
        let typed = decoder.push("/aé\x1b[D\x1b[A\x7f\r\x1b".as_bytes());
        let keys: Vec<_> = typed.iter().chain(&decoder.settle()).filter_map(key).collect();
        let expected = [
            PressedKey::Char('/'),
            PressedKey::Char('a'),
            PressedKey::Char('é'),
            PressedKey::Back,
            PressedKey::Enter,
            PressedKey::Escape,
        ];
        assert_eq!(keys, expected);
    }
}
