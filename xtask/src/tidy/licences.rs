//! The licences of what is linked in.

use super::Violation;
use super::rules::{LICENCES, LICENSED_BY_FILE};
use super::tree::{Licensed, Tree};

/// Each dependency may be used under a licence that ours is compatible with.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let refused = tree.licensed.iter().filter_map(|package| {
        let Licensed { name, licence } = package;
        let message = match licence {
            None if LICENSED_BY_FILE.contains(&name.as_str()) => return None,
            None => "says no licence".to_owned(),
            Some(licence) if !allows(licence) => {
                format!("expected a licence of the list in the rules, found {licence}")
            }
            Some(_) => return None,
        };
        Some(Violation { rule: "licences", path: name.clone(), line: None, message })
    });
    refused.collect()
}

/// Whether an expression of SPDX, or an older one with `/` for `OR`, leaves a choice that is listed. An exception (`WITH`) only
/// allows more.
fn allows(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut tokens = spaced.split_whitespace().peekable();
    any(&mut tokens) && tokens.next().is_none()
}

type Tokens<'t> = std::iter::Peekable<std::str::SplitWhitespace<'t>>;

fn any(tokens: &mut Tokens<'_>) -> bool {
    let mut is_allowed = all(tokens);
    while tokens.next_if_eq(&"OR").is_some() {
        is_allowed |= all(tokens);
    }
    is_allowed
}

fn all(tokens: &mut Tokens<'_>) -> bool {
    let mut is_allowed = one(tokens);
    while tokens.next_if_eq(&"AND").is_some() {
        is_allowed &= one(tokens);
    }
    is_allowed
}

fn one(tokens: &mut Tokens<'_>) -> bool {
    match tokens.next() {
        Some("(") => any(tokens) && tokens.next() == Some(")"),
        Some(licence) => {
            if tokens.next_if_eq(&"WITH").is_some() {
                tokens.next();
            }
            LICENCES.contains(&licence)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_choice_is_enough_and_all_conditions_count() {
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR GPL-3.0) AND Unicode-3.0"] {
            assert!(allows(good), "{good}");
        }
        assert!(allows("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
        for bad in
            ["GPL-3.0", "MIT AND GPL-3.0", "", "(MIT", "MIT Apache-2.0", "(GPL-2.0 OR MPL-2.0) AND MIT"]
        {
            assert!(!allows(bad), "{bad}");
        }
    }
}
