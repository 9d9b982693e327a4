//! Spans, from their first entry to their last exit.
//!
//! Ids are reused: a close separates two spans. The moments of an id are unordered, because batches are, so spans are put
//! together at the end.

use hashbrown::HashMap;

use super::each::EndedSpan;
use super::field_texts::{FieldTexts, NO_FIELDS};
use super::histogram::Durations;
use super::names::{NameTable, at};
use super::view::SpanRow;

/// The minimum number of spans of a name that shows what is usual.
const USUAL: usize = 10;
/// The multiple of the median above which a span is an outlier.
const OUTLYING: u64 = 10;

/// The maximum number of moments of spans, of 16 bytes each; spans with further ones are not followed.
const MOST_MOMENTS: usize = 1 << 24;
/// The maximum number of spans that are single events, of 24 bytes each.
const MOST_WHOLE: usize = 1 << 24;
/// The maximum number of distinct pairs of a name and fields; further spans of a name have no fields.
const MOST_LABELS: usize = 1 << 16;

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
    /// The row of the span's label, and in the upper bits the step.
    label_and_step: u32,
}

/// The number of bits of a label in a [`SpanMoment`].
const LABEL_BITS: u32 = 30;

/// The name and the fields of a span, as rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct SpanLabel {
    name: u32,
    fields: u32,
}

/// A span, up to the latest moment processed.
#[derive(Clone, Copy, Debug, Default)]
struct OpenSpan {
    /// The row of its id.
    id: u32,
    label: u32,
    name: u32,
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
    /// Whether the origin of its latest span is known: no close followed its first entry yet.
    is_open: bool,
    last_enter_ns: u64,
}

/// Where a span comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpanOrigin {
    /// The number of the span that it was created in.
    pub(super) parent: Option<u64>,
    /// The task that entered it first.
    pub(super) task: Option<u64>,
}

/// Labels, each stored once.
#[derive(Clone, Debug, Default)]
struct LabelTable {
    rows: HashMap<SpanLabel, u32>,
    labels: Vec<SpanLabel>,
    /// The label found last.
    recent: u32,
}

/// Memory: 16 bytes an entry, exit or close, 40 an id, 48 a span with a parent or a task, 24 a span that is a single event.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanRecords {
    names: NameTable,
    /// The text fields of spans.
    pub(super) texts: FieldTexts,
    labels: LabelTable,
    ids: HashMap<u64, KnownSpan>,
    moments: Vec<SpanMoment>,
    /// The origins of spans, by the row of their id and the time of an entry.
    origins: Vec<(u32, u64, SpanOrigin)>,
    /// Spans that are single events, by label.
    whole: Vec<Vec<Done>>,
    whole_count: usize,
    /// The number of events of spans that are not followed.
    unfollowed: u64,
    /// The key of the field by whose values spans of a name are told apart.
    pub(super) group: Option<String>,
}

impl SpanRecords {
    /// Records an entry; `fields` is a set of [`SpanRecords::texts`].
    pub(super) fn enter(&mut self, id: u64, name: &str, fields: u32, time_ns: u64, origin: SpanOrigin) {
        let label = self.label(name, fields);
        if let Some(known) = self.step(id, label, time_ns, SpanStep::Enter) {
            known.last_enter_ns = time_ns;
            let is_new = !std::mem::replace(&mut known.is_open, true);
            let row = known.row;
            if is_new && origin != SpanOrigin::default() {
                self.origins.push((row, time_ns, origin));
            }
        }
    }

    /// Records an exit. Returns the last known entry of the span.
    pub(super) fn exit(&mut self, id: u64, name: &str, time_ns: u64) -> u64 {
        let label = self.label(name, NO_FIELDS);
        self.step(id, label, time_ns, SpanStep::Exit).map_or(u64::MAX, |known| known.last_enter_ns)
    }

    /// Records a close, after which the id may belong to another span.
    pub(super) fn close(&mut self, id: u64, time_ns: u64) {
        if let Some(known) = self.step(id, 0, time_ns, SpanStep::Close) {
            known.is_open = false;
        }
    }

    pub(super) fn whole(&mut self, name: &str, fields: u32, start_ns: u64, duration_ns: u64) {
        if self.whole_count == MOST_WHOLE {
            self.unfollowed += 1;
            return;
        }
        self.whole_count += 1;
        let label = self.label(name, fields);
        at(&mut self.whole, label).push(Done { duration_ns, start_ns, busy_ns: duration_ns });
    }

    fn label(&mut self, name: &str, fields: u32) -> u32 {
        let name = self.names.row(name);
        self.labels.row(SpanLabel { name, fields })
    }

    fn step(&mut self, id: u64, label: u32, time_ns: u64, step: SpanStep) -> Option<&mut KnownSpan> {
        if self.moments.len() == MOST_MOMENTS {
            self.unfollowed += 1;
            return None;
        }
        let row = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        let known = self.ids.entry(id).or_insert(KnownSpan { row, is_open: false, last_enter_ns: 0 });
        let label_and_step = label | (step as u32) << LABEL_BITS;
        self.moments.push(SpanMoment { time_ns, id: known.row, label_and_step });
        Some(known)
    }

    /// The number of events of spans that were followed, and of those that were not.
    pub(super) const fn followed(&self) -> (u64, u64) {
        ((self.moments.len() + self.whole_count) as u64, self.unfollowed)
    }

    /// The number of spans without their fields, because there were too many distinct ones.
    pub(super) const fn without_fields(&self) -> u64 {
        self.texts.left_out
    }

    /// Passes each span to `take`, those of one id in order of time.
    fn walk(&self, moments: &mut [SpanMoment], mut take: impl FnMut(&OpenSpan)) {
        // A span is closed after it was exited. Other moments of one time are in the order of their thread.
        moments.sort_by_key(|moment| (moment.id, moment.time_ns, moment.step() == SpanStep::Close));
        for moments in moments.chunk_by(|one, other| one.id == other.id) {
            let mut open: Option<OpenSpan> = None;
            for moment in moments {
                let name = self.labels.get(moment.label()).name;
                if open.is_some_and(|span| moment.begins_another(name, &span)) {
                    open.take().iter().for_each(&mut take);
                }
                if moment.step() != SpanStep::Close {
                    let new = OpenSpan { id: moment.id, label: moment.label(), name, ..OpenSpan::default() };
                    open.get_or_insert(new).step(moment);
                }
            }
            open.iter().for_each(&mut take);
        }
    }

    /// Passes on all spans that ended.
    pub(super) fn each(&self, mut take: impl FnMut(EndedSpan<'_>)) {
        let mut ids = vec![0; self.ids.len()];
        for (&id, known) in &self.ids {
            ids[known.row as usize] = id;
        }
        let mut origins = self.origins.clone();
        origins.sort_by_key(|&(row, time_ns, _)| (row, time_ns));
        // Ids are used again: the origin of a span is the last one of its id up to its end.
        let origin = |span: &OpenSpan, end_ns: u64| {
            let next = origins.partition_point(|&(row, time_ns, _)| (row, time_ns) <= (span.id, end_ns));
            let found = next.checked_sub(1).map(|place| origins[place]);
            found
                .filter(|&(row, ..)| row == span.id)
                .map_or_else(SpanOrigin::default, |(_, _, origin)| origin)
        };
        self.walk(&mut self.moments.clone(), |span| {
            if let Some(Done { duration_ns, start_ns, .. }) = span.done() {
                let SpanOrigin { parent, task } = origin(span, start_ns.saturating_add(duration_ns));
                take(EndedSpan {
                    name: self.names.text(span.name),
                    start_ns,
                    duration_ns,
                    id: ids.get(span.id as usize).copied(),
                    parent,
                    task,
                    label: span.label,
                });
            }
        });
        for (label, done) in (0..).zip(&self.whole) {
            let name = self.names.text(self.labels.get(label).name);
            done.iter().for_each(|&Done { duration_ns, start_ns, .. }| {
                take(EndedSpan { name, start_ns, duration_ns, id: None, parent: None, task: None, label });
            });
        }
    }

    /// The text fields of a label.
    pub(super) fn fields(&self, label: u32) -> impl Iterator<Item = (&str, &str)> {
        self.texts.fields(self.labels.get(label).fields)
    }

    /// The name and the fields of a label.
    pub(super) fn describe(&self, label: u32) -> (String, String) {
        let SpanLabel { name, fields } = self.labels.get(label);
        (self.names.text(name).to_owned(), self.texts.describe(fields))
    }

    /// For each label, the row of its name and group; and these.
    fn groups(&self) -> (Vec<u32>, Vec<(u32, Option<String>)>) {
        let (mut rows, mut groups) = (HashMap::new(), Vec::new());
        let of_labels = self.labels.labels.iter().map(|&SpanLabel { name, fields }| {
            let value =
                self.group.as_deref().and_then(|key| self.texts.value(fields, key)).map(str::to_owned);
            *rows.entry((name, value.clone())).or_insert_with(|| {
                groups.push((name, value));
                u32::try_from(groups.len() - 1).unwrap_or(0)
            })
        });
        (of_labels.collect(), groups)
    }

    /// The names and their spans, the name with the longest total first.
    pub(super) fn into_rows(mut self) -> Vec<SpanRow> {
        let (of_labels, groups) = self.groups();
        let mut unmatched: Vec<u64> = vec![0; groups.len()];
        let mut done: Vec<Vec<Done>> = vec![Vec::new(); groups.len()];
        for (label, spans) in std::mem::take(&mut self.whole).into_iter().enumerate() {
            if !spans.is_empty() {
                done[of_labels[label] as usize].extend(spans);
            }
        }
        let mut moments = std::mem::take(&mut self.moments);
        self.walk(&mut moments, |span| {
            let group = of_labels[span.label as usize] as usize;
            if span.depth > 0 {
                unmatched[group] += 1;
            }
            done[group].extend(span.done());
        });
        let rows = groups.into_iter().zip(done.iter_mut().zip(unmatched));
        let rows = rows.map(|((name, group), (done, unmatched))| SpanRow {
            group,
            ..row(self.names.text(name), done, unmatched)
        });
        let mut rows: Vec<_> = rows.filter(|row| row.durations.count + row.unmatched > 0).collect();
        rows.sort_by(|one, other| {
            let key = |row: &SpanRow| (row.durations.sum_ns, row.unmatched);
            key(other).cmp(&key(one)).then_with(|| (&one.name, &one.group).cmp(&(&other.name, &other.group)))
        });
        rows
    }
}

impl LabelTable {
    #[inline]
    fn row(&mut self, label: SpanLabel) -> u32 {
        if self.labels.get(self.recent as usize) != Some(&label) {
            self.recent = self.find(label);
        }
        self.recent
    }

    fn find(&mut self, label: SpanLabel) -> u32 {
        if let Some(&row) = self.rows.get(&label) {
            return row;
        }
        // Names are few, so that there is always room for one without fields.
        if self.labels.len() >= MOST_LABELS && label.fields != NO_FIELDS {
            return self.find(SpanLabel { fields: NO_FIELDS, ..label });
        }
        let row = u32::try_from(self.labels.len()).unwrap_or(0);
        self.labels.push(label);
        self.rows.insert(label, row);
        row
    }

    fn get(&self, row: u32) -> SpanLabel {
        self.labels.get(row as usize).copied().unwrap_or_default()
    }
}

impl SpanMoment {
    const fn label(&self) -> u32 {
        self.label_and_step & ((1 << LABEL_BITS) - 1)
    }

    const fn step(&self) -> SpanStep {
        match self.label_and_step >> LABEL_BITS {
            0 => SpanStep::Enter,
            1 => SpanStep::Exit,
            _ => SpanStep::Close,
        }
    }

    /// Whether the moment begins another span. If a close is missing, a new name shows it.
    fn begins_another(&self, name: u32, span: &OpenSpan) -> bool {
        let is_renamed = self.step() == SpanStep::Enter && span.depth == 0 && name != span.name;
        self.step() == SpanStep::Close || is_renamed
    }
}

impl OpenSpan {
    fn step(&mut self, moment: &SpanMoment) {
        let time_ns = moment.time_ns;
        if moment.step() == SpanStep::Enter {
            if self.first_enter_ns.is_none() {
                self.label = moment.label();
                self.first_enter_ns = Some(time_ns);
            }
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
    SpanRow { name, group: None, durations, busy_ns, outliers, longest_start_ns, unmatched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_from_its_first_entering_to_its_last_leaving() {
        let mut spans = SpanRecords::default();
        spans.enter(1, "request", NO_FIELDS, 200, SpanOrigin::default());
        assert_eq!(spans.exit(1, "request", 250), 200);
        // From another batch: earlier, although it comes later.
        spans.enter(1, "request", NO_FIELDS, 100, SpanOrigin::default());
        spans.exit(1, "request", 150);
        spans.enter(2, "request", NO_FIELDS, 300, SpanOrigin::default());
        let rows = spans.into_rows();
        assert_eq!((rows[0].durations.count, rows[0].durations.max_ns), (1, 150));
        assert_eq!((rows[0].unmatched, rows[0].longest_start_ns), (1, 100));
    }

    #[test]
    fn a_closing_ends_a_span_for_good_whatever_its_id_is_used_for_next() {
        let mut spans = SpanRecords::default();
        // The thread with the close hands over last.
        for start_ns in [100, 1000] {
            spans.enter(1, "request", NO_FIELDS, start_ns, SpanOrigin::default());
            spans.exit(1, "request", start_ns + 10);
            spans.enter(1, "request", NO_FIELDS, start_ns + 30, SpanOrigin::default());
            spans.exit(1, "request", start_ns + 50);
        }
        spans.enter(1, "query", NO_FIELDS, 2000, SpanOrigin::default());
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
    fn spans_of_a_reused_id_have_their_own_origins() {
        let mut spans = SpanRecords::default();
        for (start_ns, parent) in [(100, 7), (1000, 8)] {
            let origin = SpanOrigin { parent: Some(parent), task: Some(parent + 1) };
            spans.enter(1, "query", NO_FIELDS, start_ns, origin);
            spans.exit(1, "query", start_ns + 10);
            // Another task goes on with it.
            spans.enter(1, "query", NO_FIELDS, start_ns + 20, SpanOrigin { task: Some(99), ..origin });
            spans.exit(1, "query", start_ns + 30);
            spans.close(1, start_ns + 40);
        }
        spans.enter(2, "root", NO_FIELDS, 2000, SpanOrigin::default());
        spans.exit(2, "root", 2010);
        let mut ended = Vec::new();
        spans.each(|span| ended.push((span.start_ns, span.parent, span.task)));
        assert_eq!(ended, [(100, Some(7), Some(8)), (1000, Some(8), Some(9)), (2000, None, None)]);
    }

    #[test]
    fn an_id_with_another_name_is_another_span_also_where_closings_are_missing() {
        let mut spans = SpanRecords::default();
        for (name, start_ns) in [("request", 100), ("query", 500)] {
            spans.enter(1, name, NO_FIELDS, start_ns, SpanOrigin::default());
            spans.exit(1, name, start_ns + 10);
        }
        let rows = spans.into_rows();
        assert_eq!(rows.iter().map(|row| row.durations.max_ns).collect::<Vec<_>>(), [10, 10]);
    }

    #[test]
    fn ten_spans_say_what_is_usual_and_ten_times_that_is_not() {
        let outliers = |usual: u64, longest: u64| {
            let mut spans = SpanRecords::default();
            (0..usual).for_each(|start_ns| spans.whole("query", NO_FIELDS, start_ns, 100));
            spans.whole("query", NO_FIELDS, 500, longest);
            spans.into_rows()[0].outliers
        };
        assert_eq!([outliers(9, 1001), outliers(9, 1000), outliers(8, 5000)], [1, 0, 0]);
    }
}
