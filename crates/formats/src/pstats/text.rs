//! The table of functions that `replay` prints, and the summary below it.
//!
//! Source: CPython 3.15.2, `PstatsCollector.print_stats`; `tachyon/corpus/expected/*.pstats.txt`.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::io::{self, Write};

use hashbrown::HashMap;

use super::stats::Stats;

/// The sort key of the table, the largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Self samples: those that were executing the line.
    #[default]
    Direct,
    /// Self time.
    DirectTime,
    /// Total time: that of samples with the line on the stack.
    CumulativeTime,
    /// The share of self samples.
    DirectShare,
    /// The share of samples with the line on the stack.
    CumulativeShare,
    /// Total samples: those with the line on the stack.
    Cumulative,
    /// The name, in ascending order.
    Name,
}

/// The options of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The sort key.
    pub sort: Sort,
    /// The maximum number of lines; `None` for all.
    pub limit: Option<usize>,
    /// Whether a summary follows.
    pub summary: bool,
}

impl Default for TextOptions {
    /// The defaults of `replay`.
    fn default() -> Self {
        Self { sort: Sort::default(), limit: Some(15), summary: true }
    }
}

/// A line of the table: a function of a file, whatever the file's folder.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: &'a str,
    line: Option<i64>,
    name: &'a str,
    direct: u64,
    cumulative: u64,
    direct_s: f64,
    cumulative_s: f64,
}

const LEGEND: &str = "
Legend:
  nsamples: Direct/Cumulative samples (direct executing / on call stack)
  sample%: Percentage of total samples this function was directly executing
  tottime: Estimated total time spent directly in this function
  cumul%: Percentage of total samples when this function was on the call stack
  cumtime: Estimated cumulative time (including time in called functions)
  filename:lineno(function): Function location and name
";

/// Writes the table, and optionally the summary.
pub(super) fn write(
    stats: &Stats,
    options: &TextOptions,
    is_cpu: bool,
    output: &mut impl Write,
) -> io::Result<()> {
    let mut lines = lines(stats);
    if lines.is_empty() {
        output.write_all(b"No samples were collected.\n")?;
        let idle: &[u8] = b"This can happen in CPU mode when all threads are idle.\n";
        return output.write_all(if is_cpu { idle } else { b"" });
    }
    let samples = lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.direct));
    sort(&mut lines, options.sort);
    lines.truncate(options.limit.unwrap_or(usize::MAX));
    let mut text = String::new();
    table(&lines, samples, &mut text);
    text.push_str(LEGEND);
    if options.summary && !lines.is_empty() {
        summary(&lines, samples, &mut text);
    }
    output.write_all(text.as_bytes())
}

/// All rows without the folders of their files; rows that become equal are added up.
fn lines(stats: &Stats) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut index = HashMap::new();
    for (function, sum, time) in stats.rows() {
        let file = stats.name(function.file);
        let file = file.rsplit('/').next().unwrap_or(file);
        let line = Line {
            file,
            line: Some(function.line),
            name: stats.name(function.name),
            direct: sum.direct,
            cumulative: sum.cumulative,
            direct_s: time.direct_s,
            cumulative_s: time.cumulative_s,
        };
        let at = *index.entry((file, function.line, line.name)).or_insert(lines.len());
        match lines.get_mut(at) {
            Some(known) => known.add(&line),
            None => lines.push(line),
        }
    }
    lines
}

impl Line<'_> {
    fn add(&mut self, other: &Self) {
        self.direct = self.direct.saturating_add(other.direct);
        self.cumulative = self.cumulative.saturating_add(other.cumulative);
        self.direct_s += other.direct_s;
        self.cumulative_s += other.cumulative_s;
    }

    /// Formats `file:line(name)`; without a line `file:(name)`.
    fn place(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| line.to_string());
        format!("{}:{line}({})", self.file, self.name)
    }

    /// The key by which CPython sorts names: the text of a tuple.
    fn key(&self) -> String {
        let line = self.line.unwrap_or_default();
        format!("({}, {line}, {})", quoted(self.file), quoted(self.name))
    }
}

/// Formats text like Python's `repr`, without checking which characters of other scripts are printable.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if letter == quote => out.extend(['\\', quote]),
            _ if letter.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(letter));
            }
            _ => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// Sorts lines; equal ones stay in order of first appearance.
fn sort(lines: &mut [Line<'_>], by: Sort) {
    let descending = |left: f64, right: f64| right.total_cmp(&left);
    match by {
        Sort::Name => lines.sort_by_cached_key(Line::key),
        Sort::Direct | Sort::DirectShare => lines.sort_by_key(|line| std::cmp::Reverse(line.direct)),
        Sort::Cumulative | Sort::CumulativeShare => {
            lines.sort_by_key(|line| std::cmp::Reverse(line.cumulative));
        }
        Sort::DirectTime => lines.sort_by(|a, b| descending(a.direct_s, b.direct_s)),
        Sort::CumulativeTime => lines.sort_by(|a, b| descending(a.cumulative_s, b.cumulative_s)),
    }
}

fn table(lines: &[Line<'_>], samples: u64, text: &mut String) {
    let longest = |time: fn(&Line<'_>) -> f64| lines.iter().map(time).fold(0.0, f64::max);
    let (direct_unit, direct_scale) = unit(longest(|line| line.direct_s));
    let (cumulative_unit, cumulative_scale) = unit(longest(|line| line.cumulative_s));
    let tottime = format!("tottime ({direct_unit})");
    let cumtime = format!("cumtime ({cumulative_unit})");
    text.push_str("Profile Stats:\n");
    put(text, format_args!("{:>15}  {:>8}  {tottime:>12}", "nsamples", "sample%"));
    put(text, format_args!("  {:>8}  {cumtime:>12}  filename:lineno(function)\n", "cumul%"));
    for line in lines {
        let counts = format!("{}/{}", line.direct, line.cumulative);
        let (own, all) = (percent(line.direct, samples), percent(line.cumulative, samples));
        let (direct, cumulative) = (line.direct_s * direct_scale, line.cumulative_s * cumulative_scale);
        put(text, format_args!("{counts:>15}  {own:8.1}  {direct:12.3}  {all:8.1}  {cumulative:12.3}  "));
        put(text, format_args!("{}\n", line.place()));
    }
}

fn put(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a String takes every write");
}

/// The unit of a column by its largest time, and how many make a second.
fn unit(longest_s: f64) -> (&'static str, f64) {
    if longest_s >= 1.0 {
        ("s", 1.0)
    } else if longest_s >= 0.001 {
        ("ms", 1e3)
    } else {
        ("μs", 1e6)
    }
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 * 100.0 }
}

/// Writes the notable lines of the table, by function.
fn summary(lines: &[Line<'_>], samples: u64, text: &mut String) {
    let functions = functions(lines);
    text.push_str("\nSummary of Interesting Functions:\n");
    let title = "Functions with Highest Direct/Cumulative Ratio (Hot Spots)";
    let ratio = |line: &Line<'_>| quotient(line.direct, line.cumulative);
    top(&functions, title, ratio, text, |line| {
        let share = percent(line.direct, samples);
        let place = line.place();
        let ratio = ratio(line);
        (line.direct > 0 && line.cumulative > 0)
            .then(|| format!("{ratio:.3} direct/cumulative ratio, {share:.1}% direct samples: {place}"))
    });
    let title = "Functions with Highest Call Frequency (Indirect Calls)";
    let indirect = |line: &Line<'_>| line.cumulative as f64 - line.direct as f64;
    top(&functions, title, indirect, text, |line| {
        let share = percent(line.cumulative, samples);
        let calls = line.cumulative.checked_sub(line.direct).filter(|&calls| calls > 0)?;
        Some(format!("{calls} indirect calls, {share:.1}% total stack presence: {}", line.place()))
    });
    let title = "Functions with Highest Call Magnification (Cumulative/Direct)";
    let magnification = |line: &Line<'_>| quotient(line.cumulative, line.direct);
    top(&functions, title, magnification, text, |line| {
        let calls = line.cumulative.checked_sub(line.direct).filter(|&calls| calls > 0 && line.direct > 0)?;
        let (times, direct, place) = (magnification(line), line.direct, line.place());
        Some(format!("{times:.1}x call magnification, {calls} indirect calls from {direct} direct: {place}"))
    });
}

fn quotient(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// Adds lines up by file and function.
fn functions<'a>(lines: &[Line<'a>]) -> Vec<Line<'a>> {
    let mut functions: Vec<Line<'a>> = Vec::new();
    let mut index = HashMap::new();
    for line in lines {
        let at = *index.entry((line.file, line.name)).or_insert(functions.len());
        match functions.get_mut(at) {
            Some(known) => known.add(line),
            None => functions.push(Line { line: None, ..*line }),
        }
    }
    functions
}

/// Writes the three functions with the most of something; those with nothing to report get no line.
fn top(
    functions: &[Line<'_>],
    title: &str,
    key: impl Fn(&Line<'_>) -> f64,
    text: &mut String,
    describe: impl Fn(&Line<'_>) -> Option<String>,
) {
    const SHOWN: usize = 3;
    let mut sorted: Vec<_> = functions.iter().collect();
    sorted.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal));
    put(text, format_args!("\n{title}:\n"));
    for line in sorted.into_iter().take(SHOWN).filter_map(describe) {
        put(text, format_args!("  {line}\n"));
    }
}
