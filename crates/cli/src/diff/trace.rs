//! Two traces of Tokio programs, compared: as text, and against limits.

use borehole_analysis::tokio::{QuantileChange, TokioChange};
use borehole_text::{KeptEnd, TextColumn, TextTable, duration, grouped, printable};

use super::text::percent;
use super::threshold::{self, CrossedLimit, FailOver};
use crate::cell::sized;

/// The fewest columns that a name is cut to.
const LEAST_COLUMNS: usize = 12;

/// The comparison as lines of text.
pub(super) fn lines(changes: &[TokioChange], shown: usize, columns: usize) -> Vec<String> {
    let heads = ["p50", "change ", "p99", "change ", "max", "change "].map(TextColumn::number);
    let names = [TextColumn::name(""), TextColumn::name("place or span").flexible(KeptEnd::Right)];
    let table = TextTable::new(heads.into_iter().chain(names));
    let mut table = sized(table.fit(columns, LEAST_COLUMNS));
    for row in changes.iter().take(shown) {
        let figures = row.changes.iter().flat_map(|change| [duration(change.after_ns), growth(change)]);
        let name = row.name.as_deref().map_or_else(|| "(all)".to_owned(), |name| printable(name.as_bytes()));
        table.row(figures.chain([row.measure.name().to_owned(), name]));
    }
    let marked = changes.iter().flat_map(|row| &row.changes).filter(|change| change.is_significant).count();
    let [shown, all, marked] =
        [shown.min(changes.len()), changes.len(), marked].map(|rows| grouped(rows as u64));
    let mut lines = vec!["# Tokio: figures after, and their change; * beyond noise".to_owned()];
    lines.extend(table.lines());
    lines.push(format!("  ({shown} of {all} rows shown, {marked} figures significant)"));
    lines
}

fn growth(change: &QuantileChange) -> String {
    let growth = change.growth();
    let text = if growth.is_finite() { percent(growth) } else { "new".to_owned() };
    let sign = if growth > 0.0 && growth.is_finite() { "+" } else { "" };
    format!("{sign}{text}{}", if change.is_significant { "*" } else { " " })
}

/// A message about the first limit that a figure crosses.
pub(super) fn crossed(changes: &[TokioChange], limits: &[FailOver]) -> Option<CrossedLimit> {
    limits.iter().find_map(|&limit| match limit {
        FailOver::Figure(quantile, measure, most) => {
            threshold::crossed_figure(changes, (quantile, measure, most))
        }
        FailOver::Function(_) => None,
    })
}
