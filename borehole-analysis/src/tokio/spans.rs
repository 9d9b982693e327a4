//! Spans: from their first entering to their last leaving.

use hashbrown::HashMap;

use super::each::EndedSpan;
use super::histogram::Durations;
use super::names::{Names, at};
use super::view::SpanRow;

/// As many spans of a name, at least, say what is usual.
const USUAL: usize = 10;
/// So many times the median is an outlier.
const OUTLYING: u64 = 10;

#[derive(Clone, Copy, Debug)]
struct Span {
    name: u32,
    first_enter_ns: u64,
    last_enter_ns: u64,
    last_exit_ns: u64,
    /// Enterings less leavings: their order in the file is not that of time.
    balance: i32,
}

/// Memory: 40 bytes a span of its own events, 16 bytes one that is a single event.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    names: Names,
    spans: HashMap<u64, Span>,
    /// Duration and start, by name.
    done: Vec<Vec<(u64, u64)>>,
}

impl Spans {
    pub(super) fn enter(&mut self, id: u64, name: &str, time_ns: u64) {
        let span = self.span(id, name);
        span.first_enter_ns = span.first_enter_ns.min(time_ns);
        span.last_enter_ns = time_ns;
        span.balance = span.balance.saturating_add(1);
    }

    /// Answers when the span was entered last, as far as the events so far tell.
    pub(super) fn exit(&mut self, id: u64, name: &str, time_ns: u64) -> u64 {
        let span = self.span(id, name);
        span.last_exit_ns = span.last_exit_ns.max(time_ns);
        span.balance = span.balance.saturating_sub(1);
        span.last_enter_ns
    }

    pub(super) fn whole(&mut self, name: &str, start_ns: u64, duration_ns: u64) {
        let name = self.names.row(name);
        at(&mut self.done, name).push((duration_ns, start_ns));
    }

    fn span(&mut self, id: u64, name: &str) -> &mut Span {
        let Self { names, spans, .. } = self;
        spans.entry(id).or_insert_with(|| Span {
            name: names.row(name),
            first_enter_ns: u64::MAX,
            last_enter_ns: 0,
            last_exit_ns: 0,
            balance: 0,
        })
    }

    /// Gives out all that ended.
    pub(super) fn each(&self, mut take: impl FnMut(EndedSpan<'_>)) {
        for span in self.spans.values() {
            if let Some(duration_ns) = span.last_exit_ns.checked_sub(span.first_enter_ns) {
                take(EndedSpan {
                    name: self.names.text(span.name),
                    start_ns: span.first_enter_ns,
                    duration_ns,
                });
            }
        }
        for (name, done) in (0..).zip(&self.done) {
            let name = self.names.text(name);
            done.iter().for_each(|&(duration_ns, start_ns)| take(EndedSpan { name, start_ns, duration_ns }));
        }
    }

    /// The names and their spans, the one that took longest in sum first.
    pub(super) fn into_rows(mut self) -> Vec<SpanRow> {
        let mut unmatched: Vec<u64> = Vec::new();
        for (_, span) in self.spans.drain() {
            if span.balance > 0 {
                *at(&mut unmatched, span.name) += 1;
            }
            if let Some(duration_ns) = span.last_exit_ns.checked_sub(span.first_enter_ns) {
                at(&mut self.done, span.name).push((duration_ns, span.first_enter_ns));
            }
        }
        let rows = self.done.len().max(unmatched.len());
        self.done.resize_with(rows, Vec::new);
        unmatched.resize(rows, 0);
        let rows = (0..).zip(self.done.iter_mut().zip(unmatched));
        let rows = rows.map(|(name, (done, unmatched))| row(self.names.text(name), done, unmatched));
        let mut rows: Vec<_> = rows.filter(|row| row.durations.count + row.unmatched > 0).collect();
        rows.sort_by(|one, other| {
            let key = |row: &SpanRow| (row.durations.sum_ns, row.unmatched);
            key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name))
        });
        rows
    }
}

fn row(name: &str, done: &mut [(u64, u64)], unmatched: u64) -> SpanRow {
    let mut durations = Durations::default();
    done.iter().for_each(|&(duration_ns, _)| durations.add(duration_ns));
    let longest = done.iter().max().copied().unwrap_or_default();
    let outliers = if done.len() < USUAL {
        0
    } else {
        let (_, &mut (median_ns, _), _) = done.select_nth_unstable(done.len() / 2);
        let limit_ns = median_ns.saturating_mul(OUTLYING);
        done.iter().filter(|&&(duration_ns, _)| duration_ns > limit_ns).count() as u64
    };
    let longest_start_ns = longest.1;
    SpanRow { name: name.to_owned(), durations: (&durations).into(), outliers, longest_start_ns, unmatched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_from_its_first_entering_to_its_last_leaving() {
        let mut spans = Spans::default();
        spans.enter(1, "request", 200);
        assert_eq!(spans.exit(1, "request", 250), 200);
        // Of another batch: earlier, though it comes later.
        spans.enter(1, "request", 100);
        spans.exit(1, "request", 150);
        spans.enter(2, "request", 300);
        let rows = spans.into_rows();
        assert_eq!((rows[0].durations.count, rows[0].durations.max_ns), (1, 150));
        assert_eq!((rows[0].unmatched, rows[0].longest_start_ns), (1, 100));
    }

    #[test]
    fn ten_spans_say_what_is_usual_and_ten_times_that_is_not() {
        let outliers = |usual: u64, longest: u64| {
            let mut spans = Spans::default();
            (0..usual).for_each(|start_ns| spans.whole("query", start_ns, 100));
            spans.whole("query", 500, longest);
            spans.into_rows()[0].outliers
        };
        assert_eq!([outliers(9, 1001), outliers(9, 1000), outliers(8, 5000)], [1, 0, 0]);
    }
}
