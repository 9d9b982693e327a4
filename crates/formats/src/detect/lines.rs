//! Lines of text by what they could be: frames of phpspy, or folded stacks.

use super::prefix::{MAX_LINES, contains, lines};

/// The numbers of lines by what they could be.
#[derive(Default)]
pub(crate) struct LineKinds {
    /// Lines that are neither blank nor comments.
    pub(crate) said: usize,
    /// Frames of phpspy.
    pub(crate) frames: usize,
    /// Lines that end in a number.
    pub(crate) counted: usize,
    /// Those of them that are certainly folded stacks.
    pub(crate) stacks: usize,
}

impl LineKinds {
    pub(crate) fn of(prefix: &[u8]) -> Self {
        let mut found = Self::default();
        let said = lines(prefix).map(<[u8]>::trim_ascii_end);
        for line in said.filter(|line| !line.is_empty() && !line.starts_with(b"#")).take(MAX_LINES) {
            found.add(line);
        }
        found
    }

    fn add(&mut self, line: &[u8]) {
        self.said += 1;
        let (rest, last) = split_last_word(line);
        if !rest.is_empty() && is_number(last) {
            self.counted += 1;
            // The empty stack is a space.
            self.stacks += usize::from(rest == b" " || is_stack(rest));
        } else if !rest.is_empty() && is_frame(line, last) {
            self.frames += 1;
        }
    }
}

/// Whether the text before a count is a stack and not a sentence: frames with semicolons but no white space between them, or
/// a frame with its location.
fn is_stack(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let is_joined = memchr::memchr_iter(b';', text)
        .any(|at| at > 0 && text.get(at + 1).is_some_and(|next| !next.is_ascii_whitespace()));
    is_joined || ends_in_place(text)
}

/// Whether a line with `last` as its last word may be a phpspy frame: it has a depth and a line number, or a name and an absolute
/// path, or a location that is certainly one of a file.
fn is_frame(line: &[u8], last: &[u8]) -> bool {
    let has_path = || contains(split_first_word(line), b" /");
    (starts_with_depth(line) && (ends_in_line_number(last) || has_path())) || ends_in_place(line)
}

/// Whether a text ends like frames with an absolute path or without a file: `f /a.php:3`, `strlen <internal>:-1`.
fn ends_in_place(text: &[u8]) -> bool {
    let (rest, last) = split_last_word(text);
    !rest.is_empty() && ends_in_line_number(last) && matches!(last[0], b'/' | b'<' | b'[')
}

/// The text after the first word, which may be a number.
fn split_first_word(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    line[end..].trim_ascii_start()
}

/// Whether the first word is a number, as in a frame's line.
fn starts_with_depth(line: &[u8]) -> bool {
    let word = line.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// Splits a line at its last white space, which stays with the first part: an empty stack consists only of it.
fn split_last_word(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    line.split_at(start)
}

/// Whether a word is digits, optionally with a fraction, which some writers of folded stacks use.
fn is_number(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_digit)
        && word.last().is_some_and(u8::is_ascii_digit)
        && word.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether a word ends in a colon and a number, optionally followed by an opcode, and is not a time of day.
fn ends_in_line_number(word: &[u8]) -> bool {
    let word = match memchr::memmem::rfind(word, b":ZEND_") {
        Some(at) => &word[..at],
        None => word,
    };
    let Some(colon) = memchr::memrchr(b':', word) else { return false };
    let (file, number) = (&word[..colon], &word[colon + 1..]);
    let is_time = !file.is_empty() && file.iter().all(|byte| byte.is_ascii_digit() || *byte == b':');
    !is_time && is_number(number.strip_prefix(b"-").unwrap_or(number))
}
