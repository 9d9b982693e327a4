//! `--fail-over`: the function, or the figure of a trace, that grew too much.

use borehole_analysis::diff::{DiffView, ValueChange};
use borehole_analysis::tokio::{Quantile, TokioChange, TokioMeasure};
use borehole_text::{duration, printable};

use super::args::parse_part;
use super::text::{frame_text, percent};

/// A limit that something crossed.
#[derive(Clone, Debug)]
pub(crate) struct CrossedLimit {
    pub(crate) what: String,
    /// Its growth as a part of what `allowed` is a part of; infinite from nothing.
    pub(crate) growth: f64,
    pub(crate) allowed: f64,
    pub(crate) message: String,
}

/// A limit to growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FailOver {
    /// Of a function, as a part of the whole.
    Function(f64),
    /// Of a figure of traces, as a part of its value before.
    Figure(Quantile, TokioMeasure, f64),
}

impl FailOver {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some((figure, part)) = text.split_once('=') else { return parse_part(text).map(Self::Function) };
        let unknown = || {
            format!("unknown figure: expected p50, p99 or max, then -poll, -delay or -span, found {figure}")
        };
        let (quantile, measure) = figure.split_once('-').ok_or_else(unknown)?;
        let quantile =
            Quantile::ALL.iter().copied().find(|known| known.name() == quantile).ok_or_else(unknown)?;
        let measure =
            TokioMeasure::ALL.iter().copied().find(|known| known.name() == measure).ok_or_else(unknown)?;
        Ok(Self::Figure(quantile, measure, parse_part(part)?))
    }
}

/// A message about the figure of a trace that grew most, if it grew beyond noise by more than allowed. Figures of polls and
/// delays are those of all of them; each span counts by itself. The largest value has no noise to judge.
pub(crate) fn crossed_figure(
    changes: &[TokioChange],
    (quantile, measure, most): (Quantile, TokioMeasure, f64),
) -> Option<CrossedLimit> {
    let asked = changes.iter().filter(|row| row.measure == measure);
    let asked = asked.filter(|row| row.name.is_none() || measure == TokioMeasure::Span);
    let grown = asked
        .map(|row| (row, row.of(quantile)))
        .filter(|(_, change)| change.growth() > most && (change.is_significant || quantile == Quantile::Max));
    let (row, change) = grown.max_by(|(_, one), (_, other)| one.growth().total_cmp(&other.growth()))?;
    let name = row.name.as_deref().map(|name| format!(" of {}", printable(name.as_bytes())));
    let what = format!("{}-{}{}", quantile.name(), measure.name(), name.unwrap_or_default());
    let message = format!(
        "failed: {what} grew by {}, from {} to {}; --fail-over allows {}",
        percent(change.growth()),
        duration(change.before_ns),
        duration(change.after_ns),
        percent(most)
    );
    Some(CrossedLimit { what, growth: change.growth(), allowed: most, message })
}

/// A message about what grew most, if it grew beyond noise by more than `most` of the whole before, which is `called` so.
pub(crate) fn crossed(view: &DiffView, most: f64, called: &str) -> Option<CrossedLimit> {
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
    let message = format!("failed: {name} grew {grown}; --fail-over allows {}", percent(most));
    Some(CrossedLimit { what: name, growth: part, allowed: most, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_of_a_function_or_of_a_figure() {
        assert_eq!(FailOver::parse("5%"), Ok(FailOver::Function(0.05)));
        assert_eq!(
            FailOver::parse("p99-poll=20%"),
            Ok(FailOver::Figure(Quantile::P99, TokioMeasure::Poll, 0.2))
        );
        assert!(FailOver::parse("p98-poll=20%").unwrap_err().contains("p98-poll"));
    }
}
