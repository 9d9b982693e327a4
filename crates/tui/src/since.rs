//! The change of each function since the base, for the colours of the flame graph.

use std::collections::HashMap;

use borehole_analysis::diff::DiffView;

/// The change of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shift {
    /// The change from -1, which is gone, to 1, which is new.
    pub(crate) part: f64,
    /// Whether the change is more than noise.
    pub(crate) is_marked: bool,
}

/// The totals of functions before and after.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    functions: HashMap<Vec<u8>, ([f64; 2], bool)>,
}

impl Since {
    /// Merges functions of one name, whatever their files.
    pub(crate) fn new(diff: &DiffView) -> Self {
        let mut functions = HashMap::<Vec<u8>, ([f64; 2], bool)>::new();
        for row in &diff.functions {
            let ([before, after], is_marked) = functions.entry(row.frame.function.clone()).or_default();
            *before += row.total_change.before.value;
            *after += row.total_change.after.value;
            *is_marked |= row.total_change.is_marked;
        }
        Self { functions }
    }

    /// The change of a function; none if neither side has it.
    pub(crate) fn of(&self, function: &[u8]) -> Shift {
        let &([before, after], is_marked) = self.functions.get(function).unwrap_or(&([0.0; 2], false));
        let most = before.max(after);
        Shift { part: if most > 0.0 { (after - before) / most } else { 0.0 }, is_marked }
    }
}

impl Shift {
    /// The sign before a changed function's name, for those who cannot rely on colour.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self { is_marked: false, .. } => "",
            Self { part, .. } if part > 0.0 => "+",
            Self { .. } => "-",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use borehole_analysis::diff::{Amount, DiffFrame, DiffRow, ValueChange};

    use super::*;

    #[test]
    fn functions_of_one_name_are_added_up_and_unknown_ones_have_not_changed() {
        let row = |file: &str, before: f64, after: f64| {
            let amount = |value| Amount { samples: 1, value };
            let change = ValueChange {
                before: amount(before),
                after: amount(after),
                is_marked: true,
                ..ValueChange::default()
            };
            let (function, file) = (b"f".to_vec(), Some(file.as_bytes().to_vec()));
            DiffRow {
                frame: Arc::new(DiffFrame { function, file, line: None }),
                self_change: change,
                total_change: change,
            }
        };
        let functions = vec![row("a", 0.25, 0.5), row("b", 0.25, 0.5)];
        let since = Since::new(&DiffView { functions, ..DiffView::default() });
        let found = since.of(b"f");
        assert_eq!((found, found.sign()), (Shift { part: 0.5, is_marked: true }, "+"));
        assert_eq!(since.of(b"g").sign(), "");
    }
}
