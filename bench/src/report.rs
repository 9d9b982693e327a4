//! The table of outcomes, on the terminal and in `BENCHMARKS.md`.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use xtask::command;

use super::{ClaimUnit, Goal, Measured};

const BEGIN: &str = "<!-- measured: begin -->";
const END: &str = "<!-- measured: end -->";

/// The outcomes as a Markdown table, which also reads well as it is.
pub(crate) fn table(outcomes: &[Measured]) -> String {
    let head = ["claim", "ours", "reference", "ratio", "goal", ""].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(outcomes.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        let _ = writeln!(text, "|{}", cells.collect::<String>());
        if number == 0 {
            let rules = widths.map(|width| format!("{}|", "-".repeat(width + 2)));
            let _ = writeln!(text, "|{}", rules.concat());
        }
    }
    text
}

fn row(outcome: &Measured) -> [String; 6] {
    let reference = outcome.reference.as_ref();
    let reference = reference.map(|(name, value)| format!("{} ({name})", outcome.unit.show(*value)));
    let ratio = outcome.ratio().map(|ratio| format!("{ratio:.2}×"));
    let sign = if outcome.unit.is_less_better() { "≤" } else { "≥" };
    let goal = match outcome.goal {
        Goal::Value(value) => format!("{sign} {}", outcome.unit.show(value)),
        Goal::Ratio(ratio) => format!("≥ {ratio:.2}×"),
        Goal::Both { value, ratio } => format!("{sign} {}, ≥ {ratio:.2}×", outcome.unit.show(value)),
    };
    let verdict = if outcome.is_reached() { "reached" } else { "MISSED" };
    [
        outcome.name.clone(),
        outcome.unit.show(outcome.ours),
        reference.unwrap_or_else(|| "–".to_owned()),
        ratio.unwrap_or_else(|| "–".to_owned()),
        goal,
        verdict.to_owned(),
    ]
}

impl ClaimUnit {
    /// `value` with a fitting prefix.
    fn show(self, value: f64) -> String {
        let (steps, unit): (&[(f64, &str)], _) = match self {
            Self::Seconds => (&[(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")], "s"),
            Self::Bytes => (&[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")], "B"),
            Self::PerSecond => (&[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")], "/s"),
            Self::BytesPerSecond => (&[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")], "B/s"),
        };
        let fitting = steps.iter().find(|(step, _)| value >= *step).or_else(|| steps.last());
        let (step, prefix) = fitting.copied().unwrap_or((1.0, ""));
        let scaled = value / step;
        let digits = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
        format!("{scaled:.digits$} {prefix}{unit}")
    }
}

/// The table with the machine and the command that made it.
pub(crate) fn section(table: &str, rounds: u32) -> String {
    let toolchain = command::output(Command::new("rustc").arg("--version")).unwrap_or_default();
    format!(
        "Measured by `cargo xtask bench --rounds {rounds}` on {}, {}.\n\n{table}",
        machine(),
        toolchain.trim_end()
    )
}

/// The processor and how many of its cores there are.
fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}

/// Puts `section` between the marks of the document at `path`; makes the document if there is none.
///
/// # Errors
/// When the document has no marks, or cannot be written.
pub(crate) fn keep(path: &Path, section: &str) -> Result<()> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => format!("# Benchmarks\n\n{BEGIN}\n{END}\n"),
        text => text?,
    };
    let text = replaced(&text, section).with_context(|| format!("{} has no marks", path.display()))?;
    Ok(fs::write(path, text)?)
}

fn replaced(text: &str, section: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{section}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (unit, value, text) in [
            (ClaimUnit::Seconds, 0.0601, "60.1 ms"),
            (ClaimUnit::Seconds, 2.0, "2.00 s"),
            (ClaimUnit::Bytes, 24e6, "24.0 MB"),
            (ClaimUnit::PerSecond, 123_456_789.0, "123 M/s"),
            (ClaimUnit::BytesPerSecond, 400e6, "400 MB/s"),
            (ClaimUnit::Bytes, 0.0, "0.00 B"),
        ] {
            assert_eq!(unit.show(value), text);
        }
    }

    #[test]
    fn a_table_says_what_was_reached() {
        let reference = Some(("theirs 1".to_owned(), 0.5));
        let goal = Goal::Ratio(4.0);
        let first = Measured { name: "a".to_owned(), unit: ClaimUnit::Seconds, goal, ours: 0.1, reference };
        let goal = Goal::Value(24e6);
        let second =
            Measured { name: "b".to_owned(), unit: ClaimUnit::Bytes, goal, ours: 25e6, reference: None };
        let expected = "\
| claim | ours    | reference         | ratio | goal      |         |
|-------|---------|-------------------|-------|-----------|---------|
| a     | 100 ms  | 500 ms (theirs 1) | 5.00× | ≥ 4.00×   | reached |
| b     | 25.0 MB | –                 | –     | ≤ 24.0 MB | MISSED  |
";
        assert_eq!(table(&[first, second]), expected);
    }

    #[test]
    fn only_what_stands_between_the_marks_is_replaced() {
        let text = format!("# B\n\n{BEGIN}\nold\n{END}\n\nWhat limits it.\n");
        let wanted = format!("# B\n\n{BEGIN}\nnew\n{END}\n\nWhat limits it.\n");
        assert_eq!(replaced(&text, "new\n"), Some(wanted.clone()));
        assert_eq!(replaced(&wanted, "new\n"), Some(wanted));
        assert_eq!(replaced("# B\n", "new\n"), None);
    }
}
