//! `--fail-over`: what grew too much.

use borehole_analysis::diff::{Change, DiffView};

use super::text::{frame_text, percent};

/// What grew, beyond noise, by more than `most` of what there was before, which is `called` so; the largest of it.
pub(crate) fn crossed(view: &DiffView, most: f64, called: &str) -> Option<String> {
    let whole = view.whole.before.value;
    let part = |change: &Change| {
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
        [(format!("{} (self)", name()), row.own), (format!("{} (total)", name()), row.total)]
    });
    let all = functions.chain([(called.to_owned(), view.whole)]);
    let grown = all.filter(|(_, change)| change.is_marked).map(|(name, change)| (name, part(&change)));
    let grown = grown.filter(|(_, part)| *part > most);
    // Of equal ones the first: a function itself before what calls it.
    let (name, part) = grown.reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    Some(format!("failed: {name} grew by {} of {called}, more than {}", percent(part), percent(most)))
}
