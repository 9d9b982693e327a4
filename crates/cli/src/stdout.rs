//! Standard output: its name in messages, its errors, what may reach a terminal through it, and its use by commands that are
//! started.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Stdout, Write};
use std::process::Stdio;
use std::str;

use borehole::Error;
use borehole_text::printable_lines;

/// The name of standard output in messages.
pub(crate) const STDOUT: &str = "standard output";

/// The error of a failed write to standard output.
pub(crate) fn stdout_error(source: io::Error) -> Error {
    Error::Write { name: STDOUT.to_owned(), source }
}

/// Standard output for a command that is started: standard error if ours `is_data`, which the command must not mix with
/// its own output.
pub(crate) fn stdout_of_command(is_data: bool) -> Stdio {
    if is_data { io::stderr().into() } else { Stdio::inherit() }
}

/// Prints an answer. In one for people, whatever a terminal would obey is spelled out wherever it goes; JSON is [`data`].
pub(crate) fn put(text: &str, is_json: bool) -> Result<(), Error> {
    let text = if is_json { text.into() } else { Cow::Owned(printable_lines(text.as_bytes())) };
    let mut out = data();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_error)
}

/// Standard output for data that holds foreign text. Pipes and files get the bytes as they are; on a terminal, what it would
/// obey and what nobody would see is spelled out.
pub(crate) fn data() -> StdoutData {
    let out = io::stdout();
    if out.is_terminal() { StdoutData::Shown(ShownText::new(out)) } else { StdoutData::Bytes(out) }
}

/// Standard output; see [`data`].
pub(crate) enum StdoutData {
    Bytes(Stdout),
    Shown(ShownText<Stdout>),
}

impl Write for StdoutData {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Bytes(out) => out.write(bytes),
            Self::Shown(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Bytes(out) => out.flush(),
            Self::Shown(out) => out.flush(),
        }
    }
}

/// Escapes text on its way to a terminal.
pub(crate) struct ShownText<W: Write> {
    out: W,
    /// The beginning of a character or line break whose rest has not been written yet.
    begun: Vec<u8>,
}

impl<W: Write> ShownText<W> {
    const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    fn show(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.write_all(printable_lines(text).as_bytes())
    }
}

impl<W: Write> Write for ShownText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(bytes);
        self.begun = text.split_off(whole_characters(&text));
        self.show(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.show(&begun)?;
        self.out.flush()
    }
}

impl<W: Write> Drop for ShownText<W> {
    fn drop(&mut self) {
        let begun = std::mem::take(&mut self.begun);
        // A terminal that is gone has nobody who reads.
        let _ = self.show(&begun);
    }
}

/// The length of `text` without a character at its end that is not complete, or a carriage return that a line feed may follow.
fn whole_characters(text: &[u8]) -> usize {
    let last = text.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    match text {
        [.., b'\r'] => text.len() - 1,
        _ if is_begun => text.len() - last.len(),
        _ => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_the_same_however_the_bytes_are_cut() {
        let text = "a\x1b]52;c;eA==\x07\tb,\u{202e}c\r\nd\r\u{9b}é計\u{1f600}".as_bytes();
        let text = [text, b"\xff\xe8\xa8"].concat();
        let expected = "a\\x1b]52;c;eA==\\x07\tb,\\u{202e}c\r\nd\\x0d\\u{9b}é計\u{1f600}\\xff\\xe8\\xa8";
        for step in 1..text.len() {
            let mut shown = ShownText::new(Vec::new());
            text.chunks(step).for_each(|part| shown.write_all(part).unwrap());
            shown.flush().unwrap();
            assert_eq!(String::from_utf8(std::mem::take(&mut shown.out)).unwrap(), expected, "{step}");
        }
    }
}
