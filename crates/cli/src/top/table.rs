//! The table of `borehole top`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use borehole::capture::{SampleStatistics, SessionProgress};
use borehole_analysis::Pattern;
use borehole_text::{KeptEnd, TextColumn, TextTable, crop, grouped, percent, percent_of, printable};
use serde_json::json;

use super::board::Board;
use super::keys::PressedKey;
use super::sort_of;
use crate::cell::sized;

/// The sort order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TopOrder {
    /// By self samples.
    #[default]
    SelfSamples,
    /// By total samples.
    Total,
    /// By recent total samples per second.
    Rate,
    /// By name.
    Name,
}

/// A row of the table: a function.
#[derive(Clone, Debug)]
struct LiveRow {
    name: String,
    self_samples: u64,
    total: u64,
    per_second: f64,
}

/// The counts at one moment, and the user's choices of how to show them.
#[derive(Default)]
pub(super) struct View {
    sort: TopOrder,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    samples: u64,
    begun: Option<Instant>,
    /// From `begun` to the latest counts.
    elapsed: Duration,
    rows: Vec<LiveRow>,
    /// Samples per second by process.
    processes: Vec<(i64, f64)>,
    last: Option<Last>,
}

/// The previous counts.
struct Last {
    taken: Instant,
    totals: Vec<u64>,
    processes: BTreeMap<i64, u64>,
}

/// The number of rows of a printed table.
const PRINTED_ROWS: usize = 20;

/// How many processes are listed.
const LISTED_PROCESSES: usize = 8;

impl View {
    /// Creates an empty view, which measures rates from now on.
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        let last = Last { taken: now, totals: Vec::new(), processes: BTreeMap::new() };
        Self { begun: Some(now), last: Some(last), ..Self::default() }
    }

    pub(super) fn is_typing(&self) -> bool {
        self.is_typing
    }

    pub(super) fn has_any(&self) -> bool {
        !self.rows.is_empty()
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: PressedKey) {
        match (self.is_typing, key) {
            (true, PressedKey::Enter) => self.is_typing = false,
            (true, PressedKey::Back) => drop(self.filter.pop()),
            (_, PressedKey::Escape) => {
                self.filter.clear();
                self.is_typing = false;
            }
            (true, PressedKey::Char(letter)) => self.filter.push(letter),
            (false, PressedKey::Char('p' | ' ')) => self.is_paused = !self.is_paused,
            (false, PressedKey::Char('/')) => {
                self.filter.clear();
                self.is_typing = true;
            }
            (false, PressedKey::Char(letter)) => self.sort = sort_of(letter).unwrap_or(self.sort),
            (false, PressedKey::Enter | PressedKey::Back) => {}
        }
    }

    /// Takes new counts.
    pub(super) fn take(&mut self, board: &Board) {
        let now = Instant::now();
        let last = self.last.take();
        let seconds = last.as_ref().map_or(0.0, |last| now.duration_since(last.taken).as_secs_f64());
        let rate = |count: u64, before: u64| {
            #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
            let grown = count.saturating_sub(before) as f64;
            if seconds > 0.0 { grown / seconds } else { 0.0 }
        };
        let before = |row: usize| last.as_ref().and_then(|last| last.totals.get(row)).copied().unwrap_or(0);
        let functions = board.functions.iter().enumerate().filter(|(_, function)| function.total > 0);
        self.rows = functions
            .map(|(row, function)| LiveRow {
                name: function.name.clone(),
                self_samples: function.self_samples,
                total: function.total,
                per_second: rate(function.total, before(row)),
            })
            .collect();
        let before =
            |process: &i64| last.as_ref().and_then(|last| last.processes.get(process)).copied().unwrap_or(0);
        let counts = board.processes.iter();
        self.processes = counts.map(|(&process, &count)| (process, rate(count, before(&process)))).collect();
        self.samples = board.samples;
        self.elapsed = self.begun.map_or(Duration::ZERO, |begun| now.duration_since(begun));
        let totals = board.functions.iter().map(|function| function.total).collect();
        self.last = Some(Last { taken: now, totals, processes: board.processes.clone() });
    }

    /// The rows to show, in order. An invalid filter shows all rows.
    fn sorted(&self) -> Vec<&LiveRow> {
        let pattern = Pattern::new(&self.filter).ok();
        let is_shown =
            |row: &&LiveRow| pattern.as_ref().is_none_or(|pattern| pattern.is_match(row.name.as_bytes()));
        let mut rows: Vec<&LiveRow> = self.rows.iter().filter(is_shown).collect();
        rows.sort_by(|a, b| {
            let by = match self.sort {
                TopOrder::SelfSamples => b.self_samples.cmp(&a.self_samples).then(b.total.cmp(&a.total)),
                TopOrder::Total => b.total.cmp(&a.total),
                TopOrder::Rate => b.per_second.total_cmp(&a.per_second),
                TopOrder::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// The table in at most `lines` and `columns`; 0 columns means no limit.
    pub(super) fn as_text(&self, progress: &SessionProgress, lines: usize, columns: usize) -> String {
        let mut text = self.head(progress);
        if columns > 0 {
            text += &self.keys();
        }
        let room = lines.saturating_sub(text.lines().count() + 1).min(if columns == 0 {
            PRINTED_ROWS
        } else {
            usize::MAX
        });
        let numbers = [("self%", 6), ("self", 8), ("total%", 6), ("total", 8), ("per second", 10)];
        let numbers = numbers.map(|(title, columns)| TextColumn::number(title).at_least(columns));
        let name = TextColumn::name("function").flexible(KeptEnd::Left);
        let mut table = sized(TextTable::new(numbers.into_iter().chain([name])).fit(columns, 1));
        let rows = self.sorted();
        for row in rows.iter().take(room) {
            let [self_share, total_share] =
                [row.self_samples, row.total].map(|samples| percent(percent_of(samples, self.samples)));
            let (self_samples, total) = (grouped(row.self_samples), grouped(row.total));
            let per_second = format!("{:.1}", row.per_second);
            let name = printable(row.name.as_bytes());
            table.row([self_share, self_samples, total_share, total, per_second, name]);
        }
        text += &table.to_string();
        if columns == 0 && rows.len() > room {
            text += &format!("  ({room} of {} shown)\n", grouped(rows.len() as u64));
        }
        text.lines().map(|line| crop(line, columns, KeptEnd::Left) + "\n").collect()
    }

    /// The counts of `progress` with the sample count of the rows, because `progress` may be half a second older.
    fn counts(&self, progress: &SessionProgress) -> SampleStatistics {
        let known = progress.statistics;
        let asked = known.asked.saturating_sub(known.taken).saturating_add(self.samples);
        let elapsed_ns = u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX);
        SampleStatistics { asked, taken: self.samples, elapsed_ns, ..known }
    }

    fn head(&self, progress: &SessionProgress) -> String {
        let statistics = self.counts(progress);
        let mut text = format!(
            "{} samples, {:.1}/s, {} idle, {} missed, {} torn, {} failed",
            self.samples,
            statistics.taken_per_second(),
            statistics.idle,
            statistics.missed,
            statistics.torn,
            statistics.failed
        );
        text += if self.is_paused { ", paused\n" } else { "\n" };
        let processes = self.processes_of(progress).map(|(process, rate)| format!("{process}: {rate:.0}/s"));
        let mut processes: Vec<String> = processes.collect();
        let more = processes.len().saturating_sub(LISTED_PROCESSES);
        processes.truncate(LISTED_PROCESSES);
        let more = if more > 0 { format!(", {more} more") } else { String::new() };
        text += &format!("processes {}{more}\n", processes.join(", "));
        text
    }

    /// The processes sampled now or recently, with their samples per second. Older ones of a pool are left out.
    fn processes_of(&self, progress: &SessionProgress) -> impl Iterator<Item = (i64, f64)> {
        let is_sampled =
            |process: i64| progress.processes.iter().any(|&sampled| i64::from(sampled) == process);
        self.processes.iter().copied().filter(move |&(process, rate)| rate > 0.0 || is_sampled(process))
    }

    /// The line about keys, or the filter.
    fn keys(&self) -> String {
        if !self.is_typing && self.filter.is_empty() {
            return "keys: s self, t total, r rate, n name, / filter, p pause, q quit\n".to_owned();
        }
        let cursor = if self.is_typing { "_" } else { "" };
        let error = Pattern::new(&self.filter).err().map(|error| format!(": {error}")).unwrap_or_default();
        format!("filter /{}{cursor}{error}\n", self.filter)
    }

    pub(super) fn as_json(&self, progress: &SessionProgress) -> String {
        let rows: Vec<_> = self.sorted().into_iter().map(|row| {
            json!({ "function": row.name, "self": row.self_samples, "total": row.total, "per_second": row.per_second })
        }).collect();
        let processes: Vec<_> = self
            .processes_of(progress)
            .map(|(process, rate)| json!({ "pid": process, "per_second": rate }))
            .collect();
        let counts: BTreeMap<_, _> = self.counts(progress).facts().into_iter().collect();
        let line = json!({
            "schema_version": 1,
            "samples": self.samples,
            "counts": counts,
            "processes": processes,
            "functions": rows,
        });
        format!("{line}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::board::FunctionCounts;
    use super::*;
    use borehole_text::width;

    fn view(name: &str) -> View {
        let row = LiveRow { name: name.to_owned(), self_samples: 1, total: 1, per_second: 1.0 };
        View { samples: 1, rows: vec![row], ..View::default() }
    }

    #[test]
    fn wide_names_do_not_overflow_the_screen() {
        let view = view(&"計測".repeat(40));
        let shown = view.as_text(&SessionProgress::default(), 10, 79);
        assert!(shown.lines().all(|line| width(line) <= 79), "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.ends_with('…') && width(last) >= 78, "{last}");
        assert!(view.as_text(&SessionProgress::default(), 10, 0).contains(&"計測".repeat(40)));
    }

    #[test]
    fn counts_and_rates_are_those_of_the_rows_from_the_first_table_on() {
        let mut view = View::begin();
        std::thread::sleep(Duration::from_millis(20));
        let function = FunctionCounts {
            name: "usleep".to_owned(),
            self_samples: 85,
            total: 92,
            ..FunctionCounts::default()
        };
        let processes = BTreeMap::from([(7, 92)]);
        view.take(&Board { samples: 92, functions: vec![function], processes });
        let older = SampleStatistics { asked: 51, taken: 47, idle: 4, ..SampleStatistics::default() };
        let progress = SessionProgress { statistics: older, processes: vec![7] };
        let line: serde_json::Value = serde_json::from_str(&view.as_json(&progress)).unwrap();
        assert_eq!((&line["counts"]["samples.taken"], &line["samples"]), (&json!(92), &json!(92)));
        assert_eq!(line["counts"]["samples.asked"], 96);
        assert_eq!(line["schema_version"], 1);
        for row in [&line["functions"][0], &line["processes"][0]] {
            assert!(row["per_second"].as_f64().unwrap() > 0.0, "{line}");
        }
        assert!(!view.as_text(&progress, 10, 0).contains("92 samples, 0.0/s"));
    }

    #[test]
    fn processes_that_have_ended_are_listed_no_longer() {
        let mut view = View::begin();
        let mut board = Board { processes: BTreeMap::from([(7, 92), (8, 90)]), ..Board::default() };
        let progress = SessionProgress { processes: vec![9], ..SessionProgress::default() };
        let shown = |view: &View| {
            let line: serde_json::Value = serde_json::from_str(&view.as_json(&progress)).unwrap();
            let processes = line["processes"].as_array().unwrap().iter();
            let processes: Vec<_> = processes.map(|process| process["pid"].as_i64().unwrap()).collect();
            (processes, view.as_text(&progress, 10, 0).lines().nth(1).unwrap().matches("/s").count())
        };
        view.take(&board);
        assert_eq!(shown(&view), (vec![7, 8], 2));
        std::thread::sleep(Duration::from_millis(5));
        // One has ended, one goes on, and one has nothing to do.
        board.processes.extend([(8, 91), (9, 0)]);
        view.take(&board);
        assert_eq!(shown(&view), (vec![8, 9], 2));
    }

    #[test]
    fn keys_are_named_where_they_work_and_a_filter_that_is_no_pattern_is_said() {
        let mut view = view("usleep");
        let shown = |view: &View| view.as_text(&SessionProgress::default(), 10, 79);
        assert!(shown(&view).contains("keys: s self"));
        assert!(!view.as_text(&SessionProgress::default(), 10, 0).contains("keys:"));
        "/é(".chars().for_each(|letter| view.press(PressedKey::Char(letter)));
        assert!(shown(&view).contains("filter /é(_: ") && shown(&view).contains("usleep"));
        view.press(PressedKey::Back);
        assert!(shown(&view).contains("filter /é_\n") && !shown(&view).contains("usleep"));
        view.press(PressedKey::Escape);
        assert!(shown(&view).contains("keys: s self") && shown(&view).contains("usleep"));
    }

    #[test]
    fn names_are_nothing_that_a_terminal_obeys() {
        let shown = view("class@anonymous\0/\x1b[2J.php").as_text(&SessionProgress::default(), 10, 0);
        assert!(shown.ends_with("class@anonymous\\x00/\\x1b[2J.php\n"), "{shown}");
    }
}
