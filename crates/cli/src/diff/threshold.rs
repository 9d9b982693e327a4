//! `--fail-over`: the function that grew too much.

use borehole_analysis::diff::{DiffView, ValueChange};

use super::text::{frame_text, percent};

/// A message about what grew most, if it grew beyond noise by more than `most` of the whole before, which is `called` so.
pub(crate) fn crossed(view: &DiffView, most: f64, called: &str) -> Option<String> {
    let whole = view.whole.before.value;
    let part = |change: &ValueChange| {
        let grown = change.difference();
        if whole > 0.0 {
            grown / whole
        } else if grown > 0.0 {
            f64::INFINITY
        } else {
            0.0
        }
    };
    let functions = view.functions.iter().flat_map(|row| {
        let name = || frame_text(&row.frame);
        [(format!("{} (self)", name()), row.self_change), (format!("{} (total)", name()), row.total_change)]
    });
    let all = functions.chain([(called.to_owned(), view.whole)]);
    let grown = all.filter(|(_, change)| change.is_marked).map(|(name, change)| (name, part(&change)));
    let grown = grown.filter(|(_, part)| *part > most);
    // Of equal ones the first: a function before its callers.
    let (name, part) = grown.reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    let grown = if part.is_finite() {
        format!("by {} of {called}", percent(part))
    } else {
        "from nothing".to_owned()
    };
    Some(format!("failed: {name} grew {grown}; --fail-over allows {}", percent(most)))
}
