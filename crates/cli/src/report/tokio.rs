//! The report on a Tokio program, as text.

use borehole_analysis::tokio::{
    EventRow, LimitedRows, PollCoverage, PollSampleView, Spread, TextValueRow, TokioView,
};
use borehole_text::{duration, grouped, percent, percent_of, printable};

use super::layout::ReportSection;
use super::render::SectionDrawing;

/// How many functions of a stack are printed.
const FUNCTIONS: usize = 4;

/// Placeholder for an absent value.
const NOTHING: &str = "-";

impl SectionDrawing<'_> {
    /// The lines of a section about Tokio programs; none for other sections. Inputs that are kept apart follow each other, with
    /// their names in the titles.
    pub(super) fn tokio(&self, views: &[TokioView], section: ReportSection) -> Vec<String> {
        let mut lines = Vec::new();
        for view in views {
            let mut block = self.tokio_program(view, section);
            if let (Some(source), Some(first)) = (&view.source, block.first_mut()) {
                let title = format!("# {}: {}", printable(source.as_bytes()), first.trim_start_matches("# "));
                *first = self.cut(&title);
            }
            if !lines.is_empty() && !block.is_empty() {
                lines.push(String::new());
            }
            lines.append(&mut block);
        }
        lines
    }

    fn tokio_program(&self, view: &TokioView, section: ReportSection) -> Vec<String> {
        match section {
            ReportSection::Flags => match self.flag() {
                Some(number) => self.one_flag(view, number),
                None => self.flags(view),
            },
            ReportSection::Workers => self.workers(view),
            ReportSection::Polls => self.polls(view),
            ReportSection::Tasks => self.tasks(view),
            ReportSection::Delays => self.delays(view),
            ReportSection::Cpu => self.poll_samples(view, &view.cpu, "CPU samples", "CPU"),
            ReportSection::Blocking => self.poll_samples(view, &view.blocking, "blocking calls", "off-CPU"),
            ReportSection::Queue => self.queue(view),
            ReportSection::Spans => self.spans(view),
            ReportSection::Allocations => self.allocations(view),
            ReportSection::Events => self.events(view),
            _ => Vec::new(),
        }
    }

    fn workers(&self, view: &TokioView) -> Vec<String> {
        let span_ns = view.end_ns - view.start_ns;
        let rows = view.workers.iter().map(|row| {
            [
                row.worker.to_string(),
                part(row.busy_ns, span_ns),
                part(row.active_ns, span_ns),
                part(row.parked_ns, span_ns),
                row.cpu_ns.map_or_else(|| NOTHING.to_owned(), |cpu_ns| part(cpu_ns, row.active_ns)),
                grouped(row.polls),
                grouped(row.parks),
                duration(row.longest_poll_ns),
                row.longest_wait_ns.map_or_else(|| NOTHING.to_owned(), duration),
                row.longest_queue.to_string(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            return Vec::new();
        }
        let distinct = rows.len();
        let headers = [
            "worker",
            "busy",
            "active",
            "parked",
            "cpu/active",
            "polls",
            "parks",
            "longest poll",
            "cpu wait",
            "queue",
        ];
        let seen = match view.poll_coverage {
            PollCoverage::Spawned => {
                "workers (busy with tasks spawned through the recorder; others are not seen)"
            }
            _ => "workers",
        };
        self.table(seen, headers, rows, distinct)
    }

    fn polls(&self, view: &TokioView) -> Vec<String> {
        let polls = &view.polls;
        if polls.durations.count == 0 {
            return Vec::new();
        }
        let unended = match polls.unended {
            0 => String::new(),
            unended => format!(", {} unended", grouped(unended)),
        };
        let rows = polls.places.rows.iter().map(|row| spread(&row.durations, &row.spawned_at)).collect();
        let title = format!(
            "polls by the place where the task was spawned ({}{unended})",
            grouped(polls.durations.count)
        );
        let mut lines = self.table(&title, SPREAD, rows, polls.places.distinct);
        let rows = polls.longest.rows.iter().map(|poll| {
            let at = offset(view, Some(poll.start_ns));
            let (worker, task) = (poll.worker.to_string(), poll.task.to_string());
            let on = if poll.is_open { "+" } else { "" };
            [duration(poll.duration_ns) + on, at, worker, task, printable(poll.spawned_at.as_bytes())]
        });
        lines.push(String::new());
        let headers = ["duration", "at", "worker", "task", "spawned at"];
        lines.extend(self.table("longest polls", headers, rows.collect(), polls.longest.distinct));
        lines
    }

    fn tasks(&self, view: &TokioView) -> Vec<String> {
        let tasks = &view.tasks;
        if tasks.spawned + tasks.older + tasks.blocking == 0 && tasks.counted.is_none() {
            return Vec::new();
        }
        let title = format!(
            "tasks: {} spawned, {} ended, {} alive at the end",
            grouped(tasks.spawned),
            grouped(tasks.ended),
            grouped(tasks.alive)
        );
        let rows = tasks
            .places
            .rows
            .iter()
            .map(|row| [grouped(row.alive), grouped(row.spawned), printable(row.spawned_at.as_bytes())]);
        let rows: Vec<_> = rows.collect();
        let mut lines = match rows.is_empty() {
            true => vec![self.cut(&format!("# {title}"))],
            false => self.table(&title, ["alive", "spawned", "spawned at"], rows, tasks.places.distinct),
        };
        let (older, alive) = (grouped(tasks.older), grouped(tasks.older_alive));
        lines.push(self.cut(&format!("  {older} older than the trace, {alive} of them alive at the end")));
        lines.push(self.cut(&format!("  {} ended on the blocking pool", grouped(tasks.blocking))));
        if tasks.lifetimes.count > 0 {
            lines.push(self.cut(&format!("  lifetimes: {}", inline(&tasks.lifetimes))));
        }
        if let Some(counts) = tasks.counted {
            let line = format!(
                "  alive: {} at first, {} at last, peak {} at {}",
                counts.first,
                counts.last,
                counts.peak,
                offset(view, Some(counts.peak_ns))
            );
            lines.push(self.cut(&line));
        }
        lines
    }

    fn delays(&self, view: &TokioView) -> Vec<String> {
        let delays = &view.delays;
        let wakes = view.wakes;
        if delays.durations.count == 0 && wakes.count == 0 {
            return Vec::new();
        }
        let how = if delays.is_measured { "measured by the runtime" } else { "from wake to poll" };
        let title = format!("scheduling delays ({how})");
        let rows = delays.worst.rows.iter().map(|delay| {
            let worker = delay.worker.map_or_else(|| NOTHING.to_owned(), |worker| worker.to_string());
            let at = offset(view, Some(delay.poll_ns.saturating_sub(delay.delay_ns)));
            let place = printable(delay.spawned_at.as_bytes());
            [duration(delay.delay_ns), at, worker, delay.task.to_string(), place]
        });
        let rows: Vec<_> = rows.collect();
        let headers = ["delay", "at", "worker", "task", "spawned at"];
        let mut lines = self.table(&title, headers, rows, delays.worst.distinct);
        let all = inline(&delays.durations);
        lines.push(self.cut(&format!("  {all}; {} over 5 ms", grouped(delays.high))));
        let rows: Vec<_> =
            delays.places.rows.iter().map(|row| spread(&row.durations, &row.spawned_at)).collect();
        if !rows.is_empty() {
            lines.push(String::new());
            lines.extend(self.table("delays by place", SPREAD, rows, delays.places.distinct));
        }
        let line = format!(
            "  wakes: {}; {} from outside any task, {} of a task by itself, {} from threads that are not workers",
            grouped(wakes.count),
            grouped(wakes.from_outside),
            grouped(wakes.by_itself),
            grouped(wakes.off_worker)
        );
        lines.push(self.cut(&line));
        lines
    }

    /// The samples of one kind, with the name of the table and that of the kind.
    fn poll_samples(
        &self,
        view: &TokioView,
        samples: &PollSampleView,
        name: &str,
        kind: &str,
    ) -> Vec<String> {
        if samples.samples == 0 {
            return Vec::new();
        }
        let (inside, all) = (grouped(samples.in_polls), grouped(samples.samples));
        let title = format!("{name}: {inside} of {all} {kind} samples were taken during polls");
        let rows = samples.stacks.rows.iter().map(|row| {
            [grouped(row.count), offset(view, Some(row.first_ns)), functions(&row.leaf, &row.callers)]
        });
        let headers = ["samples", "first at", "functions, leaf first"];
        let mut lines = self.table(&title, headers, rows.collect(), samples.stacks.distinct);
        for row in &samples.places.rows {
            let place = printable(row.spawned_at.as_bytes());
            lines.push(self.cut(&format!("  {} in tasks spawned at {place}", grouped(row.count))));
        }
        lines
    }

    fn queue(&self, view: &TokioView) -> Vec<String> {
        let Some(queue) = view.queue else { return Vec::new() };
        let line = format!(
            "  mean {:.2}, peak {} at {}, over 100 in {} of {} samples",
            queue.mean,
            grouped(queue.max),
            offset(view, Some(queue.max_ns)),
            grouped(queue.high),
            grouped(queue.samples)
        );
        vec![self.cut("# global queue"), self.cut(&line)]
    }

    fn spans(&self, view: &TokioView) -> Vec<String> {
        let LimitedRows { rows, distinct } = &view.spans;
        if rows.is_empty() {
            return Vec::new();
        }
        let rows = rows.iter().map(|row| {
            let [count, total, p50, p90, p99, max, name] = spread(&row.durations, &row.full_name());
            [count, total, duration(row.busy_ns), p50, p90, p99, max, name]
        });
        let headers = ["count", "total", "entered", "p50", "p90", "p99", "max", "span"];
        let title = format!("spans ({})", grouped(view.span_count));
        self.table(&title, headers, rows.collect(), *distinct)
    }

    fn allocations(&self, view: &TokioView) -> Vec<String> {
        let Some(memory) = &view.allocations else { return Vec::new() };
        let dropped = match memory.dropped {
            0 => String::new(),
            dropped => format!(", {} events dropped", grouped(dropped)),
        };
        let title = format!(
            "outstanding allocations: {} of {} sampled, {} bytes, an estimated {:.0} bytes in all{dropped}",
            grouped(memory.outstanding),
            grouped(memory.allocations),
            grouped(memory.outstanding_bytes),
            memory.estimated_outstanding_bytes
        );
        let rows = memory.sites.rows.iter().map(|row| {
            let at = offset(view, Some(row.first_ns));
            [grouped(row.bytes), grouped(row.count), at, functions("", &row.callers)]
        });
        let headers = ["bytes", "count", "first at", "functions, leaf first"];
        self.table(&title, headers, rows.collect(), memory.sites.distinct)
    }

    fn events(&self, view: &TokioView) -> Vec<String> {
        let LimitedRows { rows, distinct } = &view.other_events;
        if rows.is_empty() {
            return Vec::new();
        }
        let names = rows
            .iter()
            .map(|row| [grouped(row.count), rate(row.per_second), printable(row.full_name().as_bytes())]);
        let mut lines = self.table("other events", ["count", "per s", "event"], names.collect(), *distinct);
        let fields = rows.iter().flat_map(|row| row.fields.iter().map(|field| (row.full_name(), field)));
        let fields: Vec<_> = fields
            .map(|(event, field)| {
                let unit = field.unit.as_deref().map(|unit| format!(" [{unit}]")).unwrap_or_default();
                let name = format!("{event}.{}{unit}", field.name);
                let numbers = [field.min, field.mean, field.p50, field.p90, field.p99, field.max].map(number);
                let [min, mean, p50, p90, p99, max] = numbers;
                let count = grouped(field.count);
                let name = printable(name.as_bytes());
                [count, min, mean, p50, p90, p99, max, rate(field.per_second), name]
            })
            .collect();
        if !fields.is_empty() {
            let distinct = fields.len();
            let headers = ["count", "min", "mean", "p50", "p90", "p99", "max", "per s", "field"];
            lines.push(String::new());
            lines.extend(self.table("fields of these events", headers, fields, distinct));
        }
        let texts: Vec<_> = rows.iter().flat_map(texts).collect();
        if !texts.is_empty() {
            let distinct = texts.len();
            lines.push(String::new());
            lines.extend(self.table(
                "texts of these events",
                ["count", "share", "value", "text"],
                texts,
                distinct,
            ));
        }
        lines
    }
}

/// The most frequent values of the texts of events.
fn texts(row: &EventRow) -> impl Iterator<Item = [String; 4]> {
    row.texts.iter().flat_map(|text| {
        let name = printable(format!("{}.{}", row.full_name(), text.name).as_bytes());
        text.values.iter().map(move |TextValueRow { value, count }| {
            [grouped(*count), part(*count, text.count), printable(value.as_bytes()), name.clone()]
        })
    })
}

/// The columns of a distribution, the last one naming what it describes.
const SPREAD: [&str; 7] = ["count", "total", "p50", "p90", "p99", "max", "spawned at"];

fn spread(spread: &Spread, name: &str) -> [String; 7] {
    let times = [spread.sum_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.max_ns].map(duration);
    let [sum, p50, p90, p99, max] = times;
    [grouped(spread.count), sum, p50, p90, p99, max, printable(name.as_bytes())]
}

fn inline(spread: &Spread) -> String {
    let times = [spread.mean_ns, spread.p50_ns, spread.p90_ns, spread.p99_ns, spread.max_ns].map(duration);
    let [mean, p50, p90, p99, max] = times;
    format!("{} counted, mean {mean}, p50 {p50}, p90 {p90}, p99 {p99}, max {max}", grouped(spread.count))
}

fn functions(leaf: &str, callers: &[String]) -> String {
    let is_first = callers.first().is_some_and(|caller| caller == leaf);
    let leaf = Some(leaf).filter(|leaf| !leaf.is_empty() && !is_first);
    let names = leaf.into_iter().chain(callers.iter().map(String::as_str)).take(FUNCTIONS);
    printable(names.collect::<Vec<_>>().join(" < ").as_bytes())
}

/// A moment as time since the start of the trace.
// A double has enough digits for microseconds.
#[expect(clippy::cast_precision_loss)]
pub(super) fn offset(view: &TokioView, time_ns: Option<u64>) -> String {
    time_ns.map_or_else(
        || NOTHING.to_owned(),
        |time_ns| {
            let (sign, distance_ns) = match time_ns.checked_sub(view.start_ns) {
                Some(after_ns) => ("+", after_ns),
                None => ("-", view.start_ns - time_ns),
            };
            format!("{sign}{:.6} s", distance_ns as f64 / 1e9)
        },
    )
}

fn part(some: u64, all: u64) -> String {
    if all == 0 { NOTHING.to_owned() } else { percent(percent_of(some, all)) }
}

fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| NOTHING.to_owned(), |rate| format!("{rate:.1}"))
}

/// A number without meaningless decimals.
fn number(value: f64) -> String {
    let digits = if value.fract() == 0.0 || value.abs() >= 1e6 { 0 } else { 2 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_times_since_the_start() {
        let view = TokioView { start_ns: 2_000_000_000, ..TokioView::default() };
        assert_eq!(offset(&view, Some(2_500_000_000)), "+0.500000 s");
        assert_eq!(offset(&view, Some(1_999_000_000)), "-0.001000 s");
        assert_eq!(offset(&view, None), "-");
    }

    #[test]
    fn a_stack_is_named_from_its_leaf_and_cut() {
        let callers = ["b", "c", "d", "e"].map(str::to_owned);
        assert_eq!(functions("a", &callers), "a < b < c < d");
        assert_eq!(functions("b", &callers), "b < c < d < e");
        assert_eq!(functions("", &callers), "b < c < d < e");
    }
}
