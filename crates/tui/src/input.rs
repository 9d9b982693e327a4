//! Terminal input, split into keys and mouse events.

/// An input of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key, as the bytes that the terminal sends for it.
    Key(Vec<u8>),
    /// A button of the mouse, or its wheel.
    Mouse {
        /// The button.
        button: Button,
        /// The column of the cell, from 0 at the left.
        column: u16,
        /// The row of the cell, from 0 at the top.
        row: u16,
    },
}

/// An action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Button {
    /// The left button was pressed.
    Press,
    /// The wheel was turned away from the user.
    WheelUp,
    /// The wheel was turned towards the user.
    WheelDown,
}

/// Splits bytes into inputs. An incomplete sequence is kept until its end comes, or until [`InputDecoder::settle`] says that none
/// will.
#[derive(Clone, Debug, Default)]
pub struct InputDecoder {
    pending: Vec<u8>,
}

/// The length from which a sequence is invalid.
const LONGEST: usize = 64;

const ESCAPE: u8 = 0x1b;

impl InputDecoder {
    /// Decodes newly received bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        let mut inputs = Vec::new();
        for &byte in bytes {
            self.pending.push(byte);
            if is_complete(&self.pending) {
                inputs.extend(input(std::mem::take(&mut self.pending)));
            }
        }
        inputs
    }

    /// Ends a wait for more bytes: a lone escape is the escape key.
    pub fn settle(&mut self) -> Option<TerminalInput> {
        let bytes = std::mem::take(&mut self.pending);
        if bytes.is_empty() { None } else { Some(TerminalInput::Key(bytes)) }
    }

    /// Whether a sequence has begun.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }
}

fn is_complete(bytes: &[u8]) -> bool {
    match bytes {
        _ if bytes.len() >= LONGEST => true,
        [ESCAPE] | [ESCAPE, b'['] | [ESCAPE, b'O'] | [ESCAPE, b'[', b'['] => false,
        [ESCAPE, b'[', .., last] => (0x40..=0x7e).contains(last),
        [first, rest @ ..] => rest.len() >= following(*first),
        [] => false,
    }
}

/// The number of bytes of a character after its first.
const fn following(first: u8) -> usize {
    match first {
        0xc0..=0xdf => 1,
        0xe0..=0xef => 2,
        0xf0..=0xf7 => 3,
        ESCAPE => 1,
        _ => 0,
    }
}

/// The input of a complete sequence; `None` for mouse events that are not used.
fn input(bytes: Vec<u8>) -> Option<TerminalInput> {
    let Some(report) = bytes.strip_prefix(b"\x1b[<") else { return Some(TerminalInput::Key(bytes)) };
    let (last, numbers) = report.split_last()?;
    let mut numbers = std::str::from_utf8(numbers).ok()?.split(';').map(str::parse::<u16>);
    let mut number = || numbers.next()?.ok();
    let (code, column, row) = (number()?, number()?, number()?);
    let button = match (code, last) {
        (0, b'M') => Button::Press,
        (64, b'M') => Button::WheelUp,
        (65, b'M') => Button::WheelDown,
        _ => return None,
    };
    // Terminals count from 1.
    Some(TerminalInput::Mouse { button, column: column.saturating_sub(1), row: row.saturating_sub(1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Vec<u8>> {
        let inputs = InputDecoder::default().push(bytes).into_iter();
        let key = |input| match input {
            TerminalInput::Key(bytes) => bytes,
            TerminalInput::Mouse { .. } => panic!("no mouse"),
        };
        inputs.map(key).collect()
    }

    #[test]
    fn bytes_are_cut_into_keys() {
        assert_eq!(keys(b"q\x1b[A\x1b[5~\x1bOP\x03"), [&b"q"[..], b"\x1b[A", b"\x1b[5~", b"\x1bOP", b"\x03"]);
        assert_eq!(keys("é日".as_bytes()), ["é".as_bytes(), "日".as_bytes()]);
        assert_eq!(keys(b"\x1bx\x1b[1;5C"), [&b"\x1bx"[..], b"\x1b[1;5C"]);
        assert_eq!(keys(&[ESCAPE; 3]), [[ESCAPE; 2]]);
    }

    #[test]
    fn a_lone_escape_is_a_key_once_nothing_follows() {
        let mut decoder = InputDecoder::default();
        assert_eq!(decoder.push(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.settle(), Some(TerminalInput::Key(b"\x1b".to_vec())));
        assert_eq!(decoder.settle(), None);
        assert_eq!(decoder.push(b"\x1b["), []);
        assert_eq!(decoder.push(b"B"), [TerminalInput::Key(b"\x1b[B".to_vec())]);
    }

    #[test]
    fn mice_press_and_turn_their_wheel() {
        let mut decoder = InputDecoder::default();
        let found = decoder.push(b"\x1b[<0;10;5M\x1b[<0;10;5m\x1b[<65;1;1M\x1b[<35;3;3M\x1b[<0;1M");
        let at = |button, column, row| TerminalInput::Mouse { button, column, row };
        assert_eq!(found, [at(Button::Press, 9, 4), at(Button::WheelDown, 0, 0)]);
    }

    #[test]
    fn nonsense_ends() {
        let found = InputDecoder::default().push(&[[ESCAPE, b'['].as_slice(), &[b'1'; 200]].concat());
        assert!(found.len() > 100, "{}", found.len());
    }
}
