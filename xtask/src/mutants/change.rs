//! A change to a source, and how a source holds many of them, each behind a switch.

use std::ops::Range;

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Arithmetic,
    Arm,
    Comparison,
    Condition,
    Flag,
    Function,
    Integer,
    Logic,
    Method,
    Negation,
    Statement,
    Text,
}

impl Kind {
    /// The name of changes of this kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Arithmetic => "arithmetic",
            Kind::Arm => "match arms",
            Kind::Comparison => "comparisons",
            Kind::Condition => "conditions",
            Kind::Flag => "flags",
            Kind::Function => "whole functions",
            Kind::Integer => "integers",
            Kind::Logic => "logic",
            Kind::Method => "methods",
            Kind::Negation => "negations",
            Kind::Statement => "statements",
            Kind::Text => "texts",
        }
    }
}

/// The place in [`Change::before`] where the question for the switch goes.
pub(super) const SWITCH: &str = "\0";

/// A change to a source.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) kind: Kind,
    /// The function that it is in, with its type.
    pub(super) function: String,
    /// The 1-based line where it begins.
    pub(super) line: usize,
    /// Words for people: the code that changes, and into what.
    pub(super) about: String,
    /// The bytes of the source that stay, between `before` and `after`. Ranges nest or are disjoint.
    pub(super) range: Range<usize>,
    /// Goes before the range, with [`SWITCH`] in it.
    pub(super) before: String,
    /// Goes behind the range.
    pub(super) after: &'static str,
}

/// Where a change is in a source that holds it.
#[derive(Debug)]
pub(super) struct Placed {
    /// The number of its switch.
    pub(super) number: usize,
    /// All of it.
    pub(super) whole: Range<usize>,
    /// The bytes that it added before its range.
    pub(super) added: Range<usize>,
}

/// `text` with all of `changes`, each with the number of its switch, and where they are.
pub(super) fn switched(text: &str, changes: &[(usize, &Change)]) -> (String, Vec<Placed>) {
    let mut order: Vec<&(usize, &Change)> = changes.iter().collect();
    // Insertions stand before what begins at their place, and longer ranges around shorter ones.
    order.sort_by_key(|(number, change)| {
        let Range { start, end } = change.range;
        (start, start != end, usize::MAX - end, *number)
    });
    let mut writer = Writer { text, out: String::new(), copied: 0, open: Vec::new(), placed: Vec::new() };
    for (number, change) in order {
        writer.close(change.range.start);
        writer.copy(change.range.start);
        writer.open(*number, change);
    }
    writer.close(text.len());
    writer.copy(text.len());
    (writer.out, writer.placed)
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    /// So many bytes of the text are in the output.
    copied: usize,
    /// Ends of the ranges that have begun, with what comes there and the index in `placed`.
    open: Vec<(usize, &'static str, usize)>,
    placed: Vec<Placed>,
}

impl Writer<'_> {
    fn copy(&mut self, until: usize) {
        self.out.push_str(&self.text[self.copied..until]);
        self.copied = until;
    }

    /// Ends the ranges that end at `until` or before.
    fn close(&mut self, until: usize) {
        while let Some(&(end, after, index)) = self.open.last()
            && end <= until
        {
            self.open.pop();
            self.copy(end);
            self.out.push_str(after);
            self.placed[index].whole.end = self.out.len();
        }
    }

    fn open(&mut self, number: usize, change: &Change) {
        let start = self.out.len();
        self.out.push_str(&change.before.replace(SWITCH, &format!("crate::__switches::on({number})")));
        let added = start..self.out.len();
        self.open.push((change.range.end, change.after, self.placed.len()));
        self.placed.push(Placed { number, whole: added.clone(), added });
    }
}

/// The switches of `placed` that an error of the compiler at `place` is about: the change that it is in, or else the innermost
/// around it, or else all that it touches.
pub(super) fn blamed(placed: &[Placed], place: &Range<usize>) -> Vec<usize> {
    let holds = |range: &Range<usize>| range.start <= place.start && place.end <= range.end;
    let in_added =
        placed.iter().filter(|change| holds(&change.added)).min_by_key(|change| change.added.len());
    let around =
        || placed.iter().filter(|change| holds(&change.whole)).min_by_key(|change| change.whole.len());
    if let Some(change) = in_added.or_else(around) {
        return vec![change.number];
    }
    let touches = |change: &&Placed| change.whole.start < place.end && place.start < change.whole.end;
    placed.iter().filter(touches).map(|change| change.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(range: Range<usize>, before: &str, after: &'static str) -> Change {
        let (function, about) = (String::new(), String::new());
        Change { kind: Kind::Flag, function, line: 1, about, range, before: before.to_owned(), after }
    }

    #[test]
    fn changes_nest_and_are_found_again() {
        let text = "f{a+b;c;}";
        let changes = [
            change(2..2, "\0;", ""),
            change(2..6, "D\0{", "}"),
            change(2..5, "(\0 a-b:", ")"),
            change(2..5, "(\0 a*b:", ")"),
            change(6..8, "D\0{", "}"),
        ];
        let numbered: Vec<(usize, &Change)> = changes.iter().enumerate().collect();
        let (out, placed) = switched(text, &numbered);
        let short = out.replace("crate::__switches::on", "");
        assert_eq!(short, "f{(0);D(1){((2) a-b:((3) a*b:a+b));}D(4){c;}}");
        for Placed { number, whole, added } in &placed {
            assert!(out[added.clone()].contains(&format!("on({number})")));
            assert!(out[whole.clone()].ends_with(changes[*number].after));
        }
        let at = |words: &str| out.find(words).map(|start| start..start + words.len()).unwrap();
        assert_eq!(blamed(&placed, &at("a*b")), [3]);
        assert_eq!(blamed(&placed, &at("c;")), [4]);
        assert_eq!(blamed(&placed, &(0..out.len())), [0, 1, 2, 3, 4]);
        assert_eq!(blamed(&placed, &at("f{")), [0; 0]);
    }
}
