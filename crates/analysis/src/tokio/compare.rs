//! Two traces compared: polls, delays, queues and spans before and after.
//!
//! A percentile of a trace is an estimate. The values at the ranks around it bound it: ranks are off by three times the
//! standard deviation of a binomial count, which neighbouring polls that are alike still stay within. A percentile changed if
//! the bounds of both sides lie apart. A maximum has no such bounds, and is never marked.

use borehole_text::named;
use serde::Serialize;

use super::activity::PlaceRow;
use super::view::{LimitedRows, Spread, TokioView};

/// The things that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokioMeasure {
    /// Durations of polls.
    Poll,
    /// Delays of tasks from wake to poll: their time in a queue.
    Delay,
    /// Durations of spans.
    Span,
}

impl TokioMeasure {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Poll, Self::Delay, Self::Span];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Delay => "delay",
            Self::Span => "span",
        }
    }
}

named!(TokioMeasure, "measure");

/// A figure of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Quantile {
    /// The median.
    P50,
    /// The 99th percentile.
    P99,
    /// The largest value.
    Max,
}

impl Quantile {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::P50, Self::P99, Self::Max];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Max => "max",
        }
    }

    const fn of(self, spread: &Spread) -> u64 {
        match self {
            Self::P50 => spread.p50_ns,
            Self::P99 => spread.p99_ns,
            Self::Max => spread.max_ns,
        }
    }

    /// The values that bound it.
    const fn bounds(self, spread: &Spread) -> Option<(u64, u64)> {
        match self {
            Self::P50 => Some(spread.bounds.p50_ns),
            Self::P99 => Some(spread.bounds.p99_ns),
            Self::Max => None,
        }
    }
}

named!(Quantile, "quantile");

/// A figure on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct QuantileChange {
    /// The figure.
    pub quantile: Quantile,
    /// Its value before.
    pub before_ns: u64,
    /// Its value after.
    pub after_ns: u64,
    /// Whether the change is beyond noise.
    #[serde(rename = "significant")]
    pub is_significant: bool,
}

impl QuantileChange {
    /// The growth as a part of the value before; infinite from nothing.
    // A share does not need the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    #[must_use]
    pub fn growth(&self) -> f64 {
        match (self.before_ns, self.after_ns) {
            (0, 0) => 0.0,
            (0, _) => f64::INFINITY,
            (before_ns, after_ns) => (after_ns as f64 - before_ns as f64) / before_ns as f64,
        }
    }
}

/// A distribution on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TokioChange {
    /// The measure.
    pub measure: TokioMeasure,
    /// The place of the polls or delays, or the name of the spans; `None` for all polls or delays.
    pub name: Option<String>,
    /// The numbers of values before and after.
    pub counts: (u64, u64),
    /// The figures.
    pub changes: [QuantileChange; 3],
}

impl TokioChange {
    fn new(measure: TokioMeasure, name: Option<&str>, (before, after): (Spread, Spread)) -> Self {
        let changes = [Quantile::P50, Quantile::P99, Quantile::Max].map(|quantile| QuantileChange {
            quantile,
            before_ns: quantile.of(&before),
            after_ns: quantile.of(&after),
            is_significant: is_apart(quantile.bounds(&before), quantile.bounds(&after)),
        });
        Self { measure, name: name.map(str::to_owned), counts: (before.count, after.count), changes }
    }

    /// The change of a figure.
    #[must_use]
    pub fn of(&self, quantile: Quantile) -> &QuantileChange {
        let [p50, p99, max] = &self.changes;
        match quantile {
            Quantile::P50 => p50,
            Quantile::P99 => p99,
            Quantile::Max => max,
        }
    }

    fn total_growth(&self) -> u64 {
        self.of(Quantile::P99).after_ns.abs_diff(self.of(Quantile::P99).before_ns)
    }
}

fn is_apart(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> bool {
    before.zip(after).is_some_and(|(before, after)| before.1 < after.0 || after.1 < before.0)
}

/// Compares two traces: all polls and delays first, then the places and spans by how much their p99 changed. What one side has
/// no values of is left out.
#[must_use]
pub fn compared(before: &TokioView, after: &TokioView) -> Vec<TokioChange> {
    let all = [
        (TokioMeasure::Poll, before.polls.durations, after.polls.durations),
        (TokioMeasure::Delay, before.delays.durations, after.delays.durations),
    ];
    let all = all.into_iter().filter(|(_, before, after)| before.count > 0 && after.count > 0);
    let mut changes: Vec<_> =
        all.map(|(measure, before, after)| TokioChange::new(measure, None, (before, after))).collect();
    let of_places = |measure, places: &LimitedRows<PlaceRow>| -> Vec<_> {
        places.rows.iter().map(|row| (measure, row.spawned_at.clone(), row.durations)).collect()
    };
    let polls = |view: &TokioView| of_places(TokioMeasure::Poll, &view.polls.places);
    let delays = |view: &TokioView| of_places(TokioMeasure::Delay, &view.delays.places);
    let spans = |view: &TokioView| -> Vec<_> {
        let rows = view.spans.rows.iter();
        rows.map(|row| (TokioMeasure::Span, row.full_name(), row.durations)).collect()
    };
    let mut named = paired(&polls(before), &polls(after));
    named.extend(paired(&delays(before), &delays(after)));
    named.extend(paired(&spans(before), &spans(after)));
    named.sort_by_key(|change| u64::MAX - change.total_growth());
    changes.extend(named);
    changes
}

type NamedSpread = (TokioMeasure, String, Spread);

fn paired(before: &[NamedSpread], after: &[NamedSpread]) -> Vec<TokioChange> {
    let after: hashbrown::HashMap<&str, Spread> =
        after.iter().map(|(_, name, spread)| (&**name, *spread)).collect();
    let both = before.iter().filter_map(|(measure, name, spread)| {
        let later = *after.get(&**name)?;
        let is_there = spread.count > 0 && later.count > 0;
        is_there.then(|| TokioChange::new(*measure, Some(name), (*spread, later)))
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::super::histogram::Durations;
    use super::*;

    #[test]
    fn names_are_read_back() {
        for &measure in TokioMeasure::ALL {
            assert_eq!(measure.to_string().parse(), Ok(measure));
        }
        for &quantile in Quantile::ALL {
            assert_eq!(quantile.to_string().parse(), Ok(quantile));
        }
        for &severity in crate::tokio::Severity::ALL {
            assert_eq!(severity.to_string().parse(), Ok(severity));
        }
    }

    fn spread(count: u64, scale: u64) -> Spread {
        let mut durations = Durations::default();
        (0..count).for_each(|value| durations.add(1000 + (value * 7919 % count) * scale));
        (&durations).into()
    }

    fn change(before: Spread, after: Spread) -> TokioChange {
        TokioChange::new(TokioMeasure::Poll, None, (before, after))
    }

    #[test]
    fn a_change_beyond_noise_is_marked_and_one_within_is_not() {
        let small = change(spread(2000, 1000), spread(2000, 1010));
        assert!(small.changes.iter().all(|change| !change.is_significant), "{small:?}");
        let large = change(spread(2000, 1000), spread(2000, 1500));
        let marked = large.changes.map(|change| change.is_significant);
        assert_eq!(marked, [true, true, false], "{large:?}");
        let few = change(spread(5, 1000), spread(5, 1500));
        assert!(few.changes.iter().all(|change| !change.is_significant), "{few:?}");
        let grown = large.of(Quantile::P99).growth();
        assert!((0.45..0.55).contains(&grown), "{grown}");
    }

    #[test]
    fn delays_are_compared_by_place() {
        let view = |scale| {
            let row = |place: &str, scale| PlaceRow {
                spawned_at: place.to_owned(),
                durations: spread(2000, scale),
            };
            let rows = vec![row("quiet.rs:1:1", 1000), row("queued.rs:1:1", scale)];
            let mut view = TokioView::default();
            view.delays.durations = spread(2000, 1000);
            view.delays.places = LimitedRows { distinct: rows.len(), rows };
            view
        };
        let changes = compared(&view(1000), &view(4000));
        let found: Vec<_> = changes
            .iter()
            .map(|change| {
                (change.measure.name(), change.name.as_deref(), change.of(Quantile::P99).is_significant)
            })
            .collect();
        let expected = [
            ("delay", None, false),
            ("delay", Some("queued.rs:1:1"), true),
            ("delay", Some("quiet.rs:1:1"), false),
        ];
        assert_eq!(found, expected);
    }
}
