//! The table of functions that `replay` prints, and the summary below it.
//!
//! Source: CPython 3.15.2, `PstatsCollector.print_stats`; `tachyon/corpus/expected/*.pstats.txt`.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::io::{self, Write};

use borehole_text::printable;
use hashbrown::HashMap;

use super::stats::Stats;

/// The sort key of the table, the largest first. Self samples were executing the line; total samples had it on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Self samples.
    #[default]
    SelfSamples,
    /// Self time.
    SelfTime,
    /// Total time.
    TotalTime,
    /// The share of self samples.
    SelfShare,
    /// The share of total samples.
    TotalShare,
    /// Total samples.
    TotalSamples,
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
struct TableLine<'a> {
    file: &'a str,
    line: Option<i64>,
    name: &'a str,
    self_samples: u64,
    total_samples: u64,
    self_s: f64,
    total_s: f64,
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
    let samples = lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.self_samples));
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
fn lines(stats: &Stats) -> Vec<TableLine<'_>> {
    let mut lines: Vec<TableLine<'_>> = Vec::new();
    let mut index = HashMap::new();
    for (function, sum, time) in stats.rows() {
        let file = stats.name(function.file);
        let file = file.rsplit('/').next().unwrap_or(file);
        let line = TableLine {
            file,
            line: Some(function.line),
            name: stats.name(function.name),
            self_samples: sum.self_samples,
            total_samples: sum.total_samples,
            self_s: time.self_s,
            total_s: time.total_s,
        };
        let at = *index.entry((file, function.line, line.name)).or_insert(lines.len());
        match lines.get_mut(at) {
            Some(known) => known.add(&line),
            None => lines.push(line),
        }
    }
    lines
}

impl TableLine<'_> {
    fn add(&mut self, other: &Self) {
        self.self_samples = self.self_samples.saturating_add(other.self_samples);
        self.total_samples = self.total_samples.saturating_add(other.total_samples);
        self.self_s += other.self_s;
        self.total_s += other.total_s;
    }

    /// Formats `file:line(name)`; without a line `file:(name)`. What terminals do not display is escaped.
    fn place(&self) -> String {
        let line = self.line.map_or_else(String::new, |line| line.to_string());
        let [file, name] = [self.file, self.name].map(|text| printable(text.as_bytes()));
        format!("{file}:{line}({name})")
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
fn sort(lines: &mut [TableLine<'_>], by: Sort) {
    let descending = |left: f64, right: f64| right.total_cmp(&left);
    match by {
        Sort::Name => lines.sort_by_cached_key(TableLine::key),
        Sort::SelfSamples | Sort::SelfShare => lines.sort_by_key(|line| std::cmp::Reverse(line.self_samples)),
        Sort::TotalSamples | Sort::TotalShare => {
            lines.sort_by_key(|line| std::cmp::Reverse(line.total_samples));
        }
        Sort::SelfTime => lines.sort_by(|a, b| descending(a.self_s, b.self_s)),
        Sort::TotalTime => lines.sort_by(|a, b| descending(a.total_s, b.total_s)),
    }
}

fn table(lines: &[TableLine<'_>], samples: u64, text: &mut String) {
    let longest = |time: fn(&TableLine<'_>) -> f64| lines.iter().map(time).fold(0.0, f64::max);
    let (self_unit, self_scale) = unit(longest(|line| line.self_s));
    let (total_unit, total_scale) = unit(longest(|line| line.total_s));
    let tottime = format!("tottime ({self_unit})");
    let cumtime = format!("cumtime ({total_unit})");
    text.push_str("Profile Stats:\n");
    put(text, format_args!("{:>15}  {:>8}  {tottime:>12}", "nsamples", "sample%"));
    put(text, format_args!("  {:>8}  {cumtime:>12}  filename:lineno(function)\n", "cumul%"));
    for line in lines {
        let counts = format!("{}/{}", line.self_samples, line.total_samples);
        let shares = [line.self_samples, line.total_samples].map(|count| percent(count, samples));
        let times = [line.self_s * self_scale, line.total_s * total_scale];
        put(text, format_args!("{counts:>15}  {:8.1}  {:12.3}  ", shares[0], times[0]));
        put(text, format_args!("{:8.1}  {:12.3}  ", shares[1], times[1]));
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
fn summary(lines: &[TableLine<'_>], samples: u64, text: &mut String) {
    let functions = functions(lines);
    text.push_str("\nSummary of Interesting Functions:\n");
    let title = "Functions with Highest Direct/Cumulative Ratio (Hot Spots)";
    let ratio = |line: &TableLine<'_>| quotient(line.self_samples, line.total_samples);
    top(&functions, title, ratio, text, |line| {
        let share = percent(line.self_samples, samples);
        let place = line.place();
        let ratio = ratio(line);
        (line.self_samples > 0 && line.total_samples > 0)
            .then(|| format!("{ratio:.3} direct/cumulative ratio, {share:.1}% direct samples: {place}"))
    });
    let title = "Functions with Highest Call Frequency (Indirect Calls)";
    let indirect = |line: &TableLine<'_>| line.total_samples as f64 - line.self_samples as f64;
    top(&functions, title, indirect, text, |line| {
        let share = percent(line.total_samples, samples);
        let calls = line.total_samples.checked_sub(line.self_samples).filter(|&calls| calls > 0)?;
        Some(format!("{calls} indirect calls, {share:.1}% total stack presence: {}", line.place()))
    });
    let title = "Functions with Highest Call Magnification (Cumulative/Direct)";
    let magnification = |line: &TableLine<'_>| quotient(line.total_samples, line.self_samples);
    top(&functions, title, magnification, text, |line| {
        let calls = line
            .total_samples
            .checked_sub(line.self_samples)
            .filter(|&calls| calls > 0 && line.self_samples > 0)?;
        let (times, self_samples, place) = (magnification(line), line.self_samples, line.place());
        Some(format!(
            "{times:.1}x call magnification, {calls} indirect calls from {self_samples} direct: {place}"
        ))
    });
}

fn quotient(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// Adds lines up by file and function.
fn functions<'a>(lines: &[TableLine<'a>]) -> Vec<TableLine<'a>> {
    let mut functions: Vec<TableLine<'a>> = Vec::new();
    let mut index = HashMap::new();
    for line in lines {
        let at = *index.entry((line.file, line.name)).or_insert(functions.len());
        match functions.get_mut(at) {
            Some(known) => known.add(line),
            None => functions.push(TableLine { line: None, ..*line }),
        }
    }
    functions
}

/// Writes the three functions with the most of something; those with nothing to report get no line.
fn top(
    functions: &[TableLine<'_>],
    title: &str,
    key: impl Fn(&TableLine<'_>) -> f64,
    text: &mut String,
    describe: impl Fn(&TableLine<'_>) -> Option<String>,
) {
    const SHOWN: usize = 3;
    let mut sorted: Vec<_> = functions.iter().collect();
    sorted.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal));
    put(text, format_args!("\n{title}:\n"));
    for line in sorted.into_iter().take(SHOWN).filter_map(describe) {
        put(text, format_args!("  {line}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of `repr` of Python 3.11.
    #[test]
    fn texts_are_quoted_as_python_quotes_them() {
        for (text, quoted_text) in [
            ("plain", "'plain'"),
            ("a'b", "\"a'b\""),
            ("a\"b", "'a\"b'"),
            ("a'b\"c", "'a\\'b\"c'"),
            ("a\\b", "'a\\\\b'"),
            ("a\nb", "'a\\nb'"),
            ("a\rb", "'a\\rb'"),
            ("a\tb", "'a\\tb'"),
            ("a\0b", "'a\\x00b'"),
            ("a\x1fb", "'a\\x1fb'"),
            ("a\x7fb", "'a\\x7fb'"),
            ("a\u{9f}b", "'a\\x9fb'"),
            ("é", "'é'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(text), quoted_text);
        }
    }

    #[test]
    fn times_have_the_unit_in_which_the_longest_is_at_least_one() {
        for (longest_s, name) in
            [(0.0, "μs"), (0.000_999, "μs"), (0.001, "ms"), (0.999, "ms"), (1.0, "s"), (3600.0, "s")]
        {
            let (unit_name, per_second) = unit(longest_s);
            assert_eq!(unit_name, name, "{longest_s}");
            assert!(longest_s * per_second < 1000.0 || name == "s");
        }
        assert_eq!((percent(0, 0), percent(1, 0), percent(1, 4)), (0.0, 0.0, 25.0));
    }
}
