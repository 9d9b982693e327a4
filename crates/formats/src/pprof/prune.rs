//! Drops frames as a document asks: those of functions that match `drop_frames`, with all their callees, unless they
//! match `keep_frames` too.
//!
//! Source: google/pprof, `profile/prune.go`, `RemoveUninteresting` and `Prune`.

use borehole_model::Warning;
use hashbrown::HashMap;
use regex::bytes::Regex;

use super::read::PprofDocument;
use crate::symbols::read::SourceLine;
use crate::symbols::resolve::SymbolDocument as _;

/// The functions to drop.
#[derive(Debug, Default)]
pub(super) struct Pruning {
    drop: Option<Regex>,
    keep: Option<Regex>,
    /// By function: whether it is dropped.
    known: HashMap<u64, bool>,
}

/// The part of a location that is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Nothing,
    /// All of it, with the locations called from there.
    Whole,
    /// This number of its innermost lines, with the locations called from there.
    Lines(usize),
}

impl Cut {
    /// The number of the location's lines that are dropped in every stack.
    pub(super) const fn lines(self) -> usize {
        match self {
            Self::Nothing | Self::Whole => 0,
            Self::Lines(lines) => lines,
        }
    }

    /// The number of locations dropped from a stack, which is leaf first. The location at the root always stays, so
    /// that the stack never becomes empty.
    pub(super) fn dropped(stack: impl DoubleEndedIterator<Item = Self> + ExactSizeIterator) -> usize {
        let from_root = stack.enumerate().rev();
        let mut inner = from_root.skip_while(|(_, cut)| *cut != Self::Nothing);
        match inner.find(|(_, cut)| *cut != Self::Nothing) {
            Some((place, Self::Whole)) => place + 1,
            Some((place, _)) => place,
            None => 0,
        }
    }
}

impl Pruning {
    /// The pruning of a document, and a warning about its patterns.
    pub(super) fn of(document: &PprofDocument) -> (Self, Option<Warning>) {
        let pattern = |index: u64| match document.string(index, 0) {
            Ok([]) => Ok(None),
            Ok(text) => compile(text).map(Some),
            Err(error) => Err(error.message().to_owned()),
        };
        let patterns = pattern(document.drop_frames)
            .and_then(|drop| Ok((drop, pattern(document.keep_frames)?)))
            .map(|(drop, keep)| Self { drop, keep, ..Self::default() });
        match patterns {
            Ok(pruning) => (pruning, None),
            Err(message) => {
                let message = format!("drop_frames and keep_frames ignored: {message}");
                (Self::default(), Some(Warning::new(message)))
            }
        }
    }

    /// The part dropped of a location with these lines, innermost first.
    pub(super) fn cut(&mut self, document: &PprofDocument, lines: &[SourceLine]) -> Cut {
        if self.drop.is_none() {
            return Cut::Nothing;
        }
        match lines.iter().rposition(|line| self.drops(document, line.function)) {
            None => Cut::Nothing,
            Some(place) if place + 1 == lines.len() => Cut::Whole,
            Some(place) => Cut::Lines(place + 1),
        }
    }

    fn drops(&mut self, document: &PprofDocument, id: u64) -> bool {
        let Self { drop, keep, known } = self;
        *known.entry(id).or_insert_with(|| {
            let name = document.function(id, 0).and_then(|function| document.string(function.name, 0));
            let name = simple(name.unwrap_or_default());
            let matches = |pattern: &Option<Regex>| pattern.as_ref().is_some_and(|row| row.is_match(name));
            !name.is_empty() && matches(drop) && !matches(keep)
        })
    }
}

/// Compiles a pattern that has to match the whole name.
fn compile(text: &[u8]) -> Result<Regex, String> {
    let text = String::from_utf8_lossy(text);
    let invalid = |error: regex::Error| match error {
        regex::Error::CompiledTooBig(limit) => format!("pattern too large: expected at most {limit} bytes"),
        _ => format!("expected a regular expression, found {text:?}"),
    };
    Regex::new(&format!("^(?:{text})$")).map_err(invalid)
}

/// A name without the leading dot of PowerPC's ABI and without its arguments.
fn simple(name: &[u8]) -> &[u8] {
    const RESERVED: [&[u8]; 2] = [b"(anonymous namespace)", b"operator()"];
    let name = name.strip_prefix(b".").unwrap_or(name);
    let mut from = 0;
    while let Some(bracket) = memchr::memchr(b'(', &name[from..]).map(|at| from + at) {
        let end = RESERVED.into_iter().find_map(|word| {
            let start = bracket.checked_sub(memchr::memchr(b'(', word)?)?;
            (start >= from && name[start..].starts_with(word)).then_some(start + word.len())
        });
        match end {
            Some(end) => from = end,
            None => return &name[..bracket],
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_without_arguments() {
        for (name, expected) in [
            ("f", "f"),
            (".f", "f"),
            ("f(int)", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("A::operator()(int)", "A::operator()"),
            ("(", ""),
            ("operator", "operator"),
        ] {
            assert_eq!(simple(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn frames_at_the_root_are_not_dropped() {
        use Cut::{Lines, Nothing, Whole};
        for (leaf_first, dropped) in [
            (&[][..], 0),
            (&[Whole, Nothing], 1),
            (&[Nothing, Whole, Nothing], 2),
            (&[Whole, Nothing, Whole, Nothing], 3),
            (&[Nothing, Lines(1), Nothing], 1),
            (&[Nothing, Whole], 0),
            (&[Whole, Nothing, Whole], 1),
            (&[Whole, Whole], 0),
        ] {
            assert_eq!(Cut::dropped(leaf_first.iter().copied()), dropped, "{leaf_first:?}");
        }
    }
}
