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

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of `words` pass.
    fn passing<'w>(words: &[&'w str], test: impl Fn(&[u8]) -> bool) -> Vec<&'w str> {
        words.iter().copied().filter(|word| test(word.as_bytes())).collect()
    }

    #[test]
    fn numbers_are_digits_with_a_fraction_at_most() {
        let words = ["1", "12.5", "1.", ".5", "1a2", "a", "-1", ""];
        assert_eq!(passing(&words, is_number), ["1", "12.5"]);
    }

    #[test]
    fn line_numbers_follow_a_colon_and_are_no_time_of_day() {
        let words = [
            "f:3",
            "f:-1",
            "f:--1",
            ":3",
            "f:3:ZEND_CALL",
            "f",
            "f:",
            "f:x",
            "12:30",
            "12:30:59",
            "1a:30",
            "f:1:2",
        ];
        let lines = ["f:3", "f:-1", ":3", "f:3:ZEND_CALL", "1a:30", "f:1:2"];
        assert_eq!(passing(&words, ends_in_line_number), lines);
    }

    #[test]
    fn stacks_have_joined_frames_or_a_place() {
        let texts = [
            "a;b",
            "a; b",
            ";b",
            "a;",
            "a;b ",
            "; a;b",
            "f /a.php:3",
            "f <internal>:-1",
            "f [x]:0",
            "f a.php:3",
            "/a.php:3",
        ];
        assert_eq!(
            passing(&texts, is_stack),
            ["a;b", "a;b ", "; a;b", "f /a.php:3", "f <internal>:-1", "f [x]:0"]
        );
    }

    #[test]
    fn frames_have_a_depth_or_a_place() {
        let is_frame = |line: &[u8]| is_frame(line, split_last_word(line).1);
        let lines = [
            "0 f a.php:3",
            " 12 f a.php:3",
            "x f a.php:3",
            "0x f a.php:3",
            "0 f /a.php",
            "0 /a.php",
            "0 f a.php",
            "f /a.php:3",
            "f /a.php",
        ];
        assert_eq!(passing(&lines, is_frame), ["0 f a.php:3", " 12 f a.php:3", "0 f /a.php", "f /a.php:3"]);
    }

    #[test]
    fn lines_are_counted_by_what_they_could_be() {
        let kinds = |text: &str| {
            let LineKinds { said, frames, counted, stacks } = LineKinds::of(text.as_bytes());
            [said, frames, counted, stacks]
        };
        assert_eq!(kinds(""), [0; 4]);
        assert_eq!(kinds("# a;b 3\n\n \n"), [0; 4]);
        assert_eq!(kinds("word"), [1, 0, 0, 0]);
        assert_eq!(kinds("3"), [1, 0, 0, 0], "no stack before the number");
        assert_eq!(kinds("words 3\r\na;b 4\n 5"), [3, 0, 3, 2], "the empty stack is a space");
        assert_eq!(kinds("  5"), [1, 0, 1, 0]);
        assert_eq!(kinds("0 f /a.php:3\na;b 4\nwords"), [3, 1, 1, 1]);
    }

    #[test]
    fn a_bounded_number_of_lines_is_looked_at() {
        for count in [MAX_LINES - 1, MAX_LINES, MAX_LINES + 1, 3 * MAX_LINES] {
            let text = "# not one of them\n\na;b 1\n".repeat(count);
            assert_eq!(LineKinds::of(text.as_bytes()).stacks, count.min(MAX_LINES));
        }
    }
}
