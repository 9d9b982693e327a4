//! The thing that a finding is about, by names that stay when the code above them gets a line more.

use super::finding::{Fact, FindingKind, HeapFinding};
use super::survey::HeapSurvey;

/// The facts that name what a finding is about, the most specific first.
const NAMES: [&str; 5] = ["property", "classes_per_cycle", "classes", "type", "class_name"];

/// The kinds of which a heap has at most one finding, whatever its place.
const SINGLE: [FindingKind; 4] = [
    FindingKind::GarbageCycles,
    FindingKind::DuplicateStrings,
    FindingKind::DuplicateArrays,
    FindingKind::OverallocatedArrays,
];

/// The kinds about a value: its class is not enough.
const OF_VALUES: [FindingKind; 2] = [FindingKind::ChokePoint, FindingKind::SharedSingleton];

pub(super) fn of(survey: &HeapSurvey<'_>, finding: &HeapFinding) -> String {
    if SINGLE.contains(&finding.kind) {
        return String::new();
    }
    let named = names(finding).filter(|_| !OF_VALUES.contains(&finding.kind));
    let place = || finding.place.as_ref().map(|place| survey.name_path(place.node));
    without_lines(&named.or_else(place).unwrap_or_default())
}

fn names(finding: &HeapFinding) -> Option<String> {
    let fact = |wanted: &str| finding.facts.iter().find(|(name, _)| *name == wanted).map(|(_, fact)| fact);
    let text = |fact: &Fact| match fact {
        Fact::Text(text) => Some(text.clone()),
        Fact::List(list) => Some(list.join(" ")),
        _ => None,
    };
    let name = NAMES.iter().find_map(|name| text(fact(name)?))?;
    let function = fact("function").and_then(text);
    Some(function.map_or_else(|| name.clone(), |function| format!("{name} {function}")))
}

/// A text without the lines in names of closures and anonymous classes: `{closure}(/a.php:12-14)`, `{closure:f():12}`.
fn without_lines(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(':') {
        let after = &rest[start + 1..];
        let end = after.find(|character: char| !character.is_ascii_digit() && character != '-');
        let is_line = end.is_some_and(|end| end > 0 && after[end..].starts_with([')', '}']));
        plain += &rest[..start];
        if !is_line {
            plain.push(':');
        }
        rest = if is_line { &after[end.unwrap_or_default()..] } else { after };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_part_of_names() {
        let texts = [
            ("Office\\Report {closure}(/app/a.php:12-14)", "Office\\Report {closure}(/app/a.php)"),
            ("{closure:Office\\f():3}::$x[]", "{closure:Office\\f()}::$x[]"),
            ("Base@anonymous(/app/a.php:7)->all", "Base@anonymous(/app/a.php)->all"),
            ("A::$b:12", "A::$b:12"),
            ("", ""),
        ];
        for (text, expected) in texts {
            assert_eq!(without_lines(text), expected);
        }
    }
}
