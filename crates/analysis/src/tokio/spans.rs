//! Spans, from their first entry to their last exit.
//!
//! Ids are reused: a close separates two spans. The moments of an id are unordered, because batches are, so spans are put
//! together at the end.

use hashbrown::HashMap;

use super::each::EndedSpan;
use super::histogram::Durations;
use super::names::{NameTable, at};
use super::view::SpanRow;

/// The minimum number of spans of a name that shows what is usual.
const USUAL: usize = 10;
/// The multiple of the median above which a span is an outlier.
const OUTLYING: u64 = 10;

/// The step of a span that an event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SpanStep {
    Enter,
    Exit,
    Close,
}

#[derive(Clone, Copy, Debug)]
struct SpanMoment {
    time_ns: u64,
    /// The row of the span's id.
    id: u32,
    /// A row of the names, which are few.
    name: u16,
    step: SpanStep,
}

/// A span, up to the latest moment processed.
#[derive(Clone, Copy, Debug, Default)]
struct OpenSpan {
    name: u16,
    first_enter_ns: Option<u64>,
    last_exit_ns: Option<u64>,
    /// The time since which it is entered, once or more.
    since_ns: u64,
    busy_ns: u64,
    /// Entries less exits.
    depth: u32,
}

/// A span that was exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Done {
    duration_ns: u64,
    start_ns: u64,
    busy_ns: u64,
}

/// An id, and the last known entry of its latest span.
#[derive(Clone, Copy, Debug)]
struct KnownSpan {
    row: u32,
    last_enter_ns: u64,
}

/// Memory: 16 bytes an entry, exit or close, 40 an id, 24 bytes a span that is a single event.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanRecords {
    names: NameTable,
    ids: HashMap<u64, KnownSpan>,
    moments: Vec<SpanMoment>,
    /// Spans that are single events, by name.
    whole: Vec<Vec<Done>>,
}

impl SpanRecords {
    pub(super) fn enter(&mut self, id: u64, name: &str, time_ns: u64) {
        self.step(id, Some(name), time_ns, SpanStep::Enter).last_enter_ns = time_ns;
    }

    /// Records an exit. Returns the last known entry of the span.
    pub(super) fn exit(&mut self, id: u64, name: &str, time_ns: u64) -> u64 {
        self.step(id, Some(name), time_ns, SpanStep::Exit).last_enter_ns
    }

    /// Records a close, after which the id may belong to another span.
    pub(super) fn close(&mut self, id: u64, time_ns: u64) {
        self.step(id, None, time_ns, SpanStep::Close);
    }

    pub(super) fn whole(&mut self, name: &str, start_ns: u64, duration_ns: u64) {
        let name = self.names.row(name);
        at(&mut self.whole, name).push(Done { duration_ns, start_ns, busy_ns: duration_ns });
    }

    fn step(&mut self, id: u64, name: Option<&str>, time_ns: u64, step: SpanStep) -> &mut KnownSpan {
        let name = name.map_or(0, |name| u16::try_from(self.names.row(name)).unwrap_or(u16::MAX));
        let row = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let known = self.ids.entry(id).or_insert(KnownSpan { row, last_enter_ns: 0 });
        self.moments.push(SpanMoment { time_ns, id: known.row, name, step });
        known
    }

    /// Passes each span to `take`, those of one id in order of time.
    fn walk(&self, mut take: impl FnMut(&OpenSpan)) {
        let mut moments = self.moments.clone();
        // A span is closed after it was exited. Other moments of one time are in the order of their thread.
        moments.sort_by_key(|moment| (moment.id, moment.time_ns, moment.step == SpanStep::Close));
        for moments in moments.chunk_by(|one, other| one.id == other.id) {
            let mut open: Option<OpenSpan> = None;
            for moment in moments {
                if open.is_some_and(|span| moment.begins_another(&span)) {
                    open.take().iter().for_each(&mut take);
                }
                if moment.step != SpanStep::Close {
                    let new = OpenSpan { name: moment.name, ..OpenSpan::default() };
                    open.get_or_insert(new).step(moment);
                }
            }
            open.iter().for_each(&mut take);
        }
    }

    /// Passes on all spans that ended.
    pub(super) fn each(&self, mut take: impl FnMut(EndedSpan<'_>)) {
        self.walk(|span| {
            if let Some(Done { duration_ns, start_ns, .. }) = span.done() {
                take(EndedSpan { name: self.names.text(span.name.into()), start_ns, duration_ns });
            }
        });
        for (name, done) in (0..).zip(&self.whole) {
            let name = self.names.text(name);
            done.iter().for_each(|&Done { duration_ns, start_ns, .. }| {
                take(EndedSpan { name, start_ns, duration_ns });
            });
        }
    }

    /// The names and their spans, the name with the longest total first.
    pub(super) fn into_rows(mut self) -> Vec<SpanRow> {
        let mut unmatched: Vec<u64> = Vec::new();
        let mut done = std::mem::take(&mut self.whole);
        self.walk(|span| {
            if span.depth > 0 {
                *at(&mut unmatched, span.name.into()) += 1;
            }
            if let Some(ended) = span.done() {
                at(&mut done, span.name.into()).push(ended);
            }
        });
        let rows = done.len().max(unmatched.len());
        done.resize_with(rows, Vec::new);
        unmatched.resize(rows, 0);
        let rows = (0..).zip(done.iter_mut().zip(unmatched));
        let rows = rows.map(|(name, (done, unmatched))| row(self.names.text(name), done, unmatched));
        let mut rows: Vec<_> = rows.filter(|row| row.durations.count + row.unmatched > 0).collect();
        rows.sort_by(|one, other| {
            let key = |row: &SpanRow| (row.durations.sum_ns, row.unmatched);
            key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name))
        });
        rows
    }
}

impl SpanMoment {
    /// Whether the moment begins another span. If a close is missing, a new name shows it.
    fn begins_another(&self, span: &OpenSpan) -> bool {
        let is_renamed = self.step == SpanStep::Enter && span.depth == 0 && self.name != span.name;
        self.step == SpanStep::Close || is_renamed
    }
}

impl OpenSpan {
    fn step(&mut self, moment: &SpanMoment) {
        let time_ns = moment.time_ns;
        if moment.step == SpanStep::Enter {
            self.first_enter_ns.get_or_insert(time_ns);
            if self.depth == 0 {
                self.since_ns = time_ns;
            }
            self.depth = self.depth.saturating_add(1);
        } else {
            self.last_exit_ns = Some(time_ns);
            if self.depth == 1 {
                self.busy_ns = self.busy_ns.saturating_add(time_ns - self.since_ns);
            }
            self.depth = self.depth.saturating_sub(1);
        }
    }

    /// The ended span; `None` if its beginning or its end is not in the trace.
    fn done(&self) -> Option<Done> {
        let start_ns = self.first_enter_ns?;
        let duration_ns = self.last_exit_ns?.checked_sub(start_ns)?;
        Some(Done { duration_ns, start_ns, busy_ns: self.busy_ns })
    }
}

fn row(name: &str, done: &mut [Done], unmatched: u64) -> SpanRow {
    let mut durations = Durations::default();
    done.iter().for_each(|done| durations.add(done.duration_ns));
    let busy_ns = done.iter().fold(0, |sum: u64, done| sum.saturating_add(done.busy_ns));
    let longest_start_ns = done.iter().max().map_or(0, |longest| longest.start_ns);
    let outliers = if done.len() < USUAL {
        0
    } else {
        let (_, median, _) = done.select_nth_unstable(done.len() / 2);
        let limit_ns = median.duration_ns.saturating_mul(OUTLYING);
        done.iter().filter(|done| done.duration_ns > limit_ns).count() as u64
    };
    let (name, durations) = (name.to_owned(), (&durations).into());
    SpanRow { name, durations, busy_ns, outliers, longest_start_ns, unmatched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_from_its_first_entering_to_its_last_leaving() {
        let mut spans = SpanRecords::default();
        spans.enter(1, "request", 200);
        assert_eq!(spans.exit(1, "request", 250), 200);
        // From another batch: earlier, although it comes later.
        spans.enter(1, "request", 100);
        spans.exit(1, "request", 150);
        spans.enter(2, "request", 300);
        let rows = spans.into_rows();
        assert_eq!((rows[0].durations.count, rows[0].durations.max_ns), (1, 150));
        assert_eq!((rows[0].unmatched, rows[0].longest_start_ns), (1, 100));
    }

    #[test]
    fn a_closing_ends_a_span_for_good_whatever_its_id_is_used_for_next() {
        let mut spans = SpanRecords::default();
        // The thread with the close hands over last.
        for start_ns in [100, 1000] {
            spans.enter(1, "request", start_ns);
            spans.exit(1, "request", start_ns + 10);
            spans.enter(1, "request", start_ns + 30);
            spans.exit(1, "request", start_ns + 50);
        }
        spans.enter(1, "query", 2000);
        spans.exit(1, "query", 2007);
        spans.close(1, 150);
        spans.close(1, 1060);
        let mut ended = Vec::new();
        spans.each(|span| ended.push((span.name.to_owned(), span.start_ns, span.duration_ns)));
        let expected = [("request", 100, 50), ("request", 1000, 50), ("query", 2000, 7)];
        assert_eq!(ended, expected.map(|(name, start_ns, took_ns)| (name.to_owned(), start_ns, took_ns)));
        let rows = spans.into_rows();
        assert_eq!((rows[0].durations.count, rows[0].durations.max_ns, rows[0].busy_ns), (2, 50, 60));
    }

    #[test]
    fn an_id_with_another_name_is_another_span_also_where_closings_are_missing() {
        let mut spans = SpanRecords::default();
        for (name, start_ns) in [("request", 100), ("query", 500)] {
            spans.enter(1, name, start_ns);
            spans.exit(1, name, start_ns + 10);
        }
        let rows = spans.into_rows();
        assert_eq!(rows.iter().map(|row| row.durations.max_ns).collect::<Vec<_>>(), [10, 10]);
    }

    #[test]
    fn ten_spans_say_what_is_usual_and_ten_times_that_is_not() {
        let outliers = |usual: u64, longest: u64| {
            let mut spans = SpanRecords::default();
            (0..usual).for_each(|start_ns| spans.whole("query", start_ns, 100));
            spans.whole("query", 500, longest);
            spans.into_rows()[0].outliers
        };
        assert_eq!([outliers(9, 1001), outliers(9, 1000), outliers(8, 5000)], [1, 0, 0]);
    }
}
