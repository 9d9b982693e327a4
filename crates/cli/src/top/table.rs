//! The table of `borehole top`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use borehole::capture::{Progress, Statistics};
use borehole_analysis::Pattern;
use serde_json::json;

use super::board::Board;
use super::keys::Key;
use super::sort_of;
use crate::cell::{Anchor, crop, printable};

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// By samples in which the function was executing.
    #[default]
    Own,
    /// By samples in which it was on the stack.
    Total,
    /// By samples a second in which it was on the stack, of late.
    Rate,
    /// By name.
    Name,
}

/// A row.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    own: u64,
    total: u64,
    per_second: f64,
}

/// What is shown: the counts at one moment, and how the user wants to see them.
#[derive(Default)]
pub(super) struct View {
    sort: Sort,
    filter: String,
    is_typing: bool,
    is_paused: bool,
    samples: u64,
    begun: Option<Instant>,
    /// Since then, when the counts were taken.
    elapsed: Duration,
    rows: Vec<Row>,
    /// Samples a second by process.
    processes: Vec<(i64, f64)>,
    last: Option<Last>,
}

/// The counts of the time before.
struct Last {
    taken: Instant,
    totals: Vec<u64>,
    processes: BTreeMap<i64, u64>,
}

/// Rows of a printed table.
const PRINTED_ROWS: usize = 20;

/// How many processes are listed.
const LISTED_PROCESSES: usize = 8;

impl View {
    /// Nothing yet: rates are of the time from here on.
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

    /// Does what a key asks for.
    pub(super) fn press(&mut self, key: Key) {
        match (self.is_typing, key) {
            (true, Key::Enter) => self.is_typing = false,
            (true, Key::Back) => drop(self.filter.pop()),
            (_, Key::Escape) => {
                self.filter.clear();
                self.is_typing = false;
            }
            (true, Key::Char(letter)) => self.filter.push(letter),
            (false, Key::Char('p' | ' ')) => self.is_paused = !self.is_paused,
            (false, Key::Char('/')) => {
                self.filter.clear();
                self.is_typing = true;
            }
            (false, Key::Char(letter)) => self.sort = sort_of(letter).unwrap_or(self.sort),
            (false, Key::Enter | Key::Back) => {}
        }
    }

    /// Takes the counts of now.
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
            .map(|(row, function)| Row {
                name: function.name.clone(),
                own: function.own,
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

    /// The rows that are to be shown, in their order: all, while the filter is no pattern.
    fn sorted(&self) -> Vec<&Row> {
        let pattern = Pattern::new(&self.filter).ok();
        let is_shown =
            |row: &&Row| pattern.as_ref().is_none_or(|pattern| pattern.is_match(row.name.as_bytes()));
        let mut rows: Vec<&Row> = self.rows.iter().filter(is_shown).collect();
        rows.sort_by(|a, b| {
            let by = match self.sort {
                Sort::Own => b.own.cmp(&a.own).then(b.total.cmp(&a.total)),
                Sort::Total => b.total.cmp(&a.total),
                Sort::Rate => b.per_second.total_cmp(&a.per_second),
                Sort::Name => std::cmp::Ordering::Equal,
            };
            by.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// The table in so many lines and columns; 0 columns are as many as it takes.
    pub(super) fn as_text(&self, progress: &Progress, lines: usize, columns: usize) -> String {
        let mut text = self.head(progress);
        if columns > 0 {
            text += &self.keys();
        }
        text += "  self%     self  total%    total  per second  function\n";
        let room = lines.saturating_sub(text.lines().count()).min(if columns == 0 {
            PRINTED_ROWS
        } else {
            usize::MAX
        });
        let rows = self.sorted();
        for row in rows.iter().take(room) {
            text += &format!(
                "{:6.1}% {:8} {:6.1}% {:8} {:11.1}  {}\n",
                percent(row.own, self.samples),
                row.own,
                percent(row.total, self.samples),
                row.total,
                row.per_second,
                printable(row.name.as_bytes())
            );
        }
        if columns == 0 && rows.len() > room {
            text += &format!("{room} of {} shown\n", rows.len());
        }
        text.lines().map(|line| crop(line, columns, Anchor::Left) + "\n").collect()
    }

    /// What became of the samples, with those that the rows are of: what `progress` knows may be half a second older.
    fn counts(&self, progress: &Progress) -> Statistics {
        let known = progress.statistics;
        let asked = known.asked.saturating_sub(known.taken).saturating_add(self.samples);
        let elapsed_ns = u64::try_from(self.elapsed.as_nanos()).unwrap_or(u64::MAX);
        Statistics { asked, taken: self.samples, elapsed_ns, ..known }
    }

    fn head(&self, progress: &Progress) -> String {
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

    /// The processes that are being sampled, and those that were of late, with their samples a second. A pool has had many more.
    fn processes_of(&self, progress: &Progress) -> impl Iterator<Item = (i64, f64)> {
        let is_sampled =
            |process: i64| progress.processes.iter().any(|&sampled| i64::from(sampled) == process);
        self.processes.iter().copied().filter(move |&(process, rate)| rate > 0.0 || is_sampled(process))
    }

    /// What is typed, or can be.
    fn keys(&self) -> String {
        if !self.is_typing && self.filter.is_empty() {
            return "keys: s self, t total, r rate, n name, / filter, p pause, q quit\n".to_owned();
        }
        let cursor = if self.is_typing { "_" } else { "" };
        let error = Pattern::new(&self.filter).err().map(|error| format!(": {error}")).unwrap_or_default();
        format!("filter /{}{cursor}{error}\n", self.filter)
    }

    pub(super) fn as_json(&self, progress: &Progress) -> String {
        let rows: Vec<_> = self.sorted().into_iter().map(|row| {
            json!({ "function": row.name, "self": row.own, "total": row.total, "per_second": row.per_second })
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

fn percent(count: u64, of: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a percentage for people to read")]
    let percent = count as f64 * 100.0 / of.max(1) as f64;
    percent
}

#[cfg(test)]
mod tests {
    use super::super::board::Function;
    use super::*;
    use crate::cell::width;

    fn view(name: &str) -> View {
        let row = Row { name: name.to_owned(), own: 1, total: 1, per_second: 1.0 };
        View { samples: 1, rows: vec![row], ..View::default() }
    }

    #[test]
    fn wide_names_do_not_overflow_the_screen() {
        let view = view(&"計測".repeat(40));
        let shown = view.as_text(&Progress::default(), 10, 79);
        assert!(shown.lines().all(|line| width(line) <= 79), "{shown}");
        let last = shown.lines().last().unwrap();
        assert!(last.ends_with('…') && width(last) >= 78, "{last}");
        assert!(view.as_text(&Progress::default(), 10, 0).contains(&"計測".repeat(40)));
    }

    #[test]
    fn counts_and_rates_are_those_of_the_rows_from_the_first_table_on() {
        let mut view = View::begin();
        std::thread::sleep(Duration::from_millis(20));
        let function = Function { name: "usleep".to_owned(), own: 85, total: 92, ..Function::default() };
        let processes = BTreeMap::from([(7, 92)]);
        view.take(&Board { samples: 92, functions: vec![function], processes });
        let older = Statistics { asked: 51, taken: 47, idle: 4, ..Statistics::default() };
        let progress = Progress { statistics: older, processes: vec![7] };
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
        let progress = Progress { processes: vec![9], ..Progress::default() };
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
        let shown = |view: &View| view.as_text(&Progress::default(), 10, 79);
        assert!(shown(&view).contains("keys: s self"));
        assert!(!view.as_text(&Progress::default(), 10, 0).contains("keys:"));
        "/é(".chars().for_each(|letter| view.press(Key::Char(letter)));
        assert!(shown(&view).contains("filter /é(_: ") && shown(&view).contains("usleep"));
        view.press(Key::Back);
        assert!(shown(&view).contains("filter /é_\n") && !shown(&view).contains("usleep"));
        view.press(Key::Escape);
        assert!(shown(&view).contains("keys: s self") && shown(&view).contains("usleep"));
    }

    #[test]
    fn names_are_nothing_that_a_terminal_obeys() {
        let shown = view("class@anonymous\0/\x1b[2J.php").as_text(&Progress::default(), 10, 0);
        assert!(shown.ends_with("class@anonymous\\x00/\\x1b[2J.php\n"), "{shown}");
    }
}
