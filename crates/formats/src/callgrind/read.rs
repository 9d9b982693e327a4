//! The lines of a file.
//!
//! Source: Valgrind 3.19, manual, "Callgrind Format Specification", and the behaviour of its `callgrind_annotate`.

use super::write::UNKNOWN;

/// The most numbers before the costs of a line: instruction, basic block and line.
const MOST_POSITIONS: usize = 3;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileLine<'a> {
    /// Blank, a comment, or a line that says nothing about costs.
    Nothing,
    /// `KEY: VALUE`.
    Header(&'a [u8], &'a [u8]),
    /// `KEY=VALUE`.
    Name(NameKey, &'a [u8]),
    /// `calls=COUNT …`; the next line has the cost of the calls.
    Calls(u64),
    /// Positions and costs.
    Costs(&'a [u8]),
}

/// The thing that a name is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKey {
    Object,
    File,
    /// The file of code that the compiler put into the function.
    InlinedFile,
    Function,
    CalledObject,
    CalledFile,
    CalledFunction,
}

/// Parses a line; `None` if it is invalid.
pub(super) fn line(text: &[u8]) -> Option<FileLine<'_>> {
    let text = text.trim_ascii_end();
    match text.first() {
        None | Some(b'#') => return Some(FileLine::Nothing),
        Some(b'0'..=b'9' | b'+' | b'-' | b'*') => return Some(FileLine::Costs(text)),
        Some(_) => {}
    }
    let at = text.iter().position(|byte| matches!(byte, b':' | b'='))?;
    let (key, value) = (&text[..at], &text[at + 1..]);
    if text[at] == b':' {
        return Some(FileLine::Header(key, value.trim_ascii()));
    }
    let of = match key {
        b"ob" => NameKey::Object,
        b"fl" => NameKey::File,
        b"fi" | b"fe" => NameKey::InlinedFile,
        b"fn" => NameKey::Function,
        b"cob" => NameKey::CalledObject,
        b"cfi" | b"cfl" => NameKey::CalledFile,
        b"cfn" => NameKey::CalledFunction,
        b"calls" => return number(value.split(u8::is_ascii_whitespace).next()?).map(FileLine::Calls),
        // Jumps cost nothing. Their names may be told by number later, which only costs names.
        b"jump" | b"jcnd" | b"jfi" | b"jfn" => return Some(FileLine::Nothing),
        _ => return None,
    };
    Some(FileLine::Name(of, value))
}

/// A name, its number if it has one, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedName<'a> {
    pub(super) number: Option<u64>,
    /// `None`: the one that had this number before.
    pub(super) text: Option<&'a [u8]>,
}

impl<'a> NumberedName<'a> {
    /// Parses `(NUMBER) NAME`, of which either may be missing.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let numbered = || {
            let rest = text.strip_prefix(b"(")?;
            let close = memchr::memchr(b')', rest)?;
            Some((number(&rest[..close])?, rest[close + 1..].trim_ascii_start()))
        };
        match numbered() {
            Some((number, b"")) => Self { number: Some(number), text: None },
            Some((number, name)) => Self { number: Some(number), text: Some(name) },
            None => Self { number: None, text: Some(text) },
        }
    }
}

/// Whether a name is known.
pub(super) fn is_known(name: &[u8]) -> bool {
    !name.is_empty() && name != UNKNOWN
}

/// The positions of the last line, from which those of the next one may count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positions {
    count: usize,
    has_line: bool,
    latest: [u64; MOST_POSITIONS],
}

impl Default for Positions {
    fn default() -> Self {
        Self { count: 1, has_line: true, latest: [0; MOST_POSITIONS] }
    }
}

impl Positions {
    /// Those of a header `positions: …`.
    pub(super) fn of(names: &[u8]) -> Self {
        let names = || names.split(u8::is_ascii_whitespace).filter(|name| !name.is_empty());
        let has_line = names().any(|name| name == b"line");
        Self { count: names().count().clamp(1, MOST_POSITIONS), has_line, ..Self::default() }
    }

    /// Reads positions and costs; returns the line, 0 if it is unknown. Costs that are not written are 0.
    pub(super) fn costs(&mut self, text: &[u8], costs: &mut [i64]) -> Option<u64> {
        let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        for latest in &mut self.latest[..self.count] {
            *latest = position(words.next()?, *latest)?;
        }
        costs.fill(0);
        for cost in &mut *costs {
            match words.next() {
                Some(word) => *cost = cost_of(word)?,
                None => break,
            }
        }
        words.next().is_none().then_some(if self.has_line { self.latest[self.count - 1] } else { 0 })
    }
}

/// A position: a number, or its distance from the one before.
fn position(word: &[u8], latest: u64) -> Option<u64> {
    match word {
        b"*" => Some(latest),
        [b'+', rest @ ..] => Some(latest.wrapping_add(number(rest)?)),
        [b'-', rest @ ..] => Some(latest.wrapping_sub(number(rest)?)),
        _ => number(word),
    }
}

/// A cost, which may be negative.
fn cost_of(word: &[u8]) -> Option<i64> {
    match digits(word) {
        Some(cost) => i64::try_from(cost).ok(),
        None => std::str::from_utf8(word).ok()?.parse().ok(),
    }
}

/// A number of decimal digits alone that surely fits.
fn digits(word: &[u8]) -> Option<u64> {
    const MOST_DIGITS: usize = 18;
    if !(1..=MOST_DIGITS).contains(&word.len()) {
        return None;
    }
    let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    word.iter().try_fold(0, |number, &byte| Some(number * 10 + digit(byte)?))
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(word: &[u8]) -> Option<u64> {
    if let Some(number) = digits(word) {
        return Some(number);
    }
    let text = std::str::from_utf8(word).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_those_before() {
        let mut positions = Positions::of(b"instr line");
        let mut costs = [0; 2];
        assert_eq!(positions.costs(b"0x100 7 3 4", &mut costs), Some(7));
        assert_eq!(costs, [3, 4]);
        assert_eq!(positions.costs(b"+3 -2 5", &mut costs), Some(5));
        assert_eq!(costs, [5, 0]);
        assert_eq!(positions.costs(b"* * 1 2", &mut costs), Some(5));
        assert_eq!(positions.latest[..2], [0x103, 5]);
        for wrong in [&b"7"[..], b"1 2 3 4 5", b"x 1 2", b"1 2 x"] {
            assert_eq!(positions.costs(wrong, &mut costs), None, "{}", wrong.escape_ascii());
        }
        assert_eq!(Positions::of(b"instr").costs(b"0x100 3", &mut costs), Some(0));
    }

    #[test]
    fn costs_are_numbers_of_any_length_and_sign() {
        let mut costs = [0];
        for cost in [0, 7, -7, 999_999_999_999_999_999, 1_000_000_000_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(Positions::default().costs(format!("1 {cost}").as_bytes(), &mut costs), Some(1));
            assert_eq!(costs, [cost]);
        }
        let line = u64::MAX;
        assert_eq!(Positions::default().costs(format!("{line} 1").as_bytes(), &mut costs), Some(line));
        for wrong in ["1 9223372036854775808", "18446744073709551616 1", "1 1x", "1 --1"] {
            assert_eq!(Positions::default().costs(wrong.as_bytes(), &mut costs), None, "{wrong}");
        }
    }

    #[test]
    fn names_have_numbers_texts_or_both() {
        let name = |number, text| NumberedName { number, text };
        assert_eq!(NumberedName::of(b"(3) main"), name(Some(3), Some(&b"main"[..])));
        assert_eq!(NumberedName::of(b"(3)"), name(Some(3), None));
        assert_eq!(NumberedName::of(b"(below main)"), name(None, Some(&b"(below main)"[..])));
        assert_eq!(NumberedName::of(b"f(int)"), name(None, Some(&b"f(int)"[..])));
    }

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(line(b"fn=(1) f:g"), Some(FileLine::Name(NameKey::Function, b"(1) f:g")));
        assert_eq!(line(b"events: Ir Dr"), Some(FileLine::Header(b"events", b"Ir Dr")));
        assert_eq!(line(b"calls=12 +3"), Some(FileLine::Calls(12)));
        assert_eq!(line(b"jcnd=1/2 0x3 4"), Some(FileLine::Nothing));
        assert_eq!(line(b"+3 4\r"), Some(FileLine::Costs(b"+3 4")));
        assert_eq!(line(b"what is this"), None);
        assert_eq!(line(b"calls=x"), None);
    }
}
