//! Questions about lakes, which the program `borehole-lake` answers.
//!
//! The engine for them is far larger than the server, and asks for a newer Rust. So it stays in a program of its own, which is
//! started for each question, and ended if nobody waits for the answer any more.

mod selections;

use std::path::PathBuf;
use std::process::Stdio;

use borehole_text::{document, grouped};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::limits::{AnswerLimits, LakeLimits};
use crate::questions::{ViewCell, ViewTable, only, shown_name};
use crate::refusal::{Refusal, RefusalKind};

pub(crate) use selections::LakeSelection;

/// The lakes of a server, and the program that answers questions about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeOptions {
    /// Folders or addresses.
    pub lakes: Vec<String>,
    /// The program `borehole-lake`.
    pub program: PathBuf,
}

/// Everything that can be said in a question about a lake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LakeAsk {
    /// The lake; may be left out if there is only one
    pub(crate) lake: Option<String>,
    /// An SQL statement that reads, such as SELECT service, sum(value) FROM samples GROUP BY 1
    pub(crate) sql: Option<String>,
    /// Only samples of this service
    pub(crate) service: Option<String>,
    /// Only samples of this host
    pub(crate) host: Option<String>,
    /// Only samples with all of these labels, each as KEY=VALUE
    pub(crate) label: Vec<String>,
    /// Only samples with a function that matches this regular expression
    pub(crate) focus: Option<String>,
    /// The value type to add up
    pub(crate) value: Option<String>,
    /// Only samples from this time on, such as 2026-11-22T10:30Z, or an age such as 7d
    pub(crate) since: Option<String>,
    /// Only samples before this time
    pub(crate) until: Option<String>,
    /// Sums by these instead of functions: service, host, process, thread, source or a label
    pub(crate) by: Vec<String>,
    /// The selection before, such as 2d..1d or version=1
    pub(crate) before: Vec<String>,
    /// The selection after
    pub(crate) after: Vec<String>,
    /// The full name of a function
    pub(crate) function: Option<String>,
    /// The time that a row covers, such as 1h or 1d
    pub(crate) step: Option<String>,
    /// The number of rows
    pub(crate) limit: Option<usize>,
}

impl LakeAsk {
    /// The options that choose samples.
    fn choice(&self) -> Vec<String> {
        let one = [
            ("--service", &self.service),
            ("--host", &self.host),
            ("--focus", &self.focus),
            ("--value", &self.value),
            ("--since", &self.since),
            ("--until", &self.until),
        ];
        let one = one.into_iter().flat_map(|(option, value)| options(option, value));
        one.chain(options("--label", &self.label)).collect()
    }
}

/// An option for each value.
fn options<'v>(
    option: &'v str,
    values: impl IntoIterator<Item = &'v String>,
) -> impl Iterator<Item = String> {
    values.into_iter().map(move |value| format!("{option}={value}"))
}

/// Checks that a command line can hold the arguments.
fn sayable(arguments: Vec<String>) -> Result<Vec<String>, Refusal> {
    match arguments.iter().any(|argument| argument.contains('\0')) {
        true => Err(Refusal::invalid("the character NUL is in no text of a lake")),
        false => Ok(arguments),
    }
}

/// A question about a lake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LakeView {
    Query,
    Top,
    Trend,
    Diff,
}

impl LakeView {
    /// The words that choose samples.
    pub(crate) const CHOICE: [&str; 5] = ["service", "host", "label", "focus", "value"];

    /// All questions.
    pub(crate) const ALL: [Self; 4] = [Self::Query, Self::Top, Self::Trend, Self::Diff];

    /// Its name for assistants.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Top => "lake_top",
            Self::Trend => "lake_trend",
            Self::Diff => "lake_diff",
        }
    }

    /// The command of `borehole-lake`, and the name in addresses.
    pub(crate) const fn command(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Top => "top",
            Self::Trend => "trend",
            Self::Diff => "diff",
        }
    }

    /// A line on its content.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Query => {
                "Ask a lake of profiles in SQL; SELECT * FROM information_schema.columns lists tables and columns"
            }
            Self::Top => "List the functions of a lake that weigh most, by service, host, label and time",
            Self::Trend => "Show how much of a lake's samples a function had over time",
            Self::Diff => "Compare two selections of a lake: times, versions or hosts",
        }
    }

    /// The words that apply to it, after those without which there is no answer.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let (is_chosen, own): (_, &[&str]) = match self {
            Self::Query => (false, &[]),
            Self::Top => (true, &["since", "until", "by"]),
            Self::Trend => (true, &["since", "until", "by", "step"]),
            Self::Diff => (true, &[]),
        };
        let choice = if is_chosen { &Self::CHOICE[..] } else { &[] };
        [self.required(), &["lake", "limit"], own, choice].concat()
    }

    /// The words without which there is no answer.
    pub(crate) const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Query => &["sql"],
            Self::Top => &[],
            Self::Trend => &["function"],
            Self::Diff => &["before", "after"],
        }
    }

    /// The arguments after the name of the lake.
    fn arguments(self, ask: &LakeAsk) -> Result<Vec<String>, Refusal> {
        let mut arguments = Vec::new();
        if self != Self::Query {
            arguments.extend(ask.choice());
            arguments.extend(options("--by", &ask.by));
            arguments.extend(options("--before", &ask.before));
            arguments.extend(options("--after", &ask.after));
            arguments.extend(options("--step", &ask.step));
        }
        if matches!(self, Self::Top | Self::Diff) {
            // One more than is shown says whether there are more.
            let limit =
                ask.limit.unwrap_or(AnswerLimits::ROWS).saturating_add(usize::from(self == Self::Top));
            arguments.push(format!("--limit={limit}"));
        }
        arguments.push("--json".to_owned());
        let said = match self {
            Self::Query => Some(ask.sql.as_ref().ok_or_else(|| Refusal::invalid("missing sql"))?),
            Self::Trend => Some(ask.function.as_ref().ok_or_else(|| Refusal::invalid("missing function"))?),
            Self::Top | Self::Diff => None,
        };
        // After this, nothing is an option.
        arguments.push("--".to_owned());
        arguments.extend(said.cloned());
        Ok(arguments)
    }
}

/// The lakes, and those who wait for an answer.
pub(crate) struct Lakes {
    options: LakeOptions,
    turns: Semaphore,
}

impl Lakes {
    pub(crate) fn new(options: LakeOptions) -> Self {
        Self { options, turns: Semaphore::new(LakeLimits::AT_ONCE) }
    }

    /// The names of the lakes.
    pub(crate) fn names(&self) -> &[String] {
        &self.options.lakes
    }

    fn named(&self, name: Option<&str>) -> Result<&str, Refusal> {
        let lakes = &self.options.lakes;
        let list = || format!("the lakes are {}", lakes.join(", "));
        match (name, &lakes[..]) {
            (None, [only]) => Ok(only),
            (None, _) => Err(Refusal::invalid("missing lake").with_help(list())),
            (Some(name), _) => {
                let found = lakes.iter().find(|lake| *lake == name);
                found.map(String::as_str).ok_or_else(|| {
                    Refusal::missing(format!("no lake {}", document(name.as_bytes()))).with_help(list())
                })
            }
        }
    }

    /// The output of a command, once it is its turn.
    async fn said_by(&self, command: Command) -> Result<Vec<u8>, Refusal> {
        let turn = self.turns.acquire().await;
        let _turn = turn.map_err(|_| Refusal::new(RefusalKind::Internal, "the server is ending"))?;
        said_by(command).await
    }

    /// Answers a question.
    pub(crate) async fn answer(&self, view: LakeView, ask: &LakeAsk) -> Result<ViewTable, Refusal> {
        let lake = self.named(ask.lake.as_deref())?;
        let arguments = sayable(view.arguments(ask)?)?;
        let (options, said) = arguments.split_at(arguments.iter().position(|word| word == "--").unwrap_or(0));
        let mut command = Command::new(&self.options.program);
        command.arg(view.command()).args(options).arg("--").arg(lake).args(said.iter().skip(1));
        let text = String::from_utf8(self.said_by(command).await?)
            .map_err(|_| Refusal::new(RefusalKind::Internal, "the lake's answer is not UTF-8"))?;
        let mut table = match view {
            LakeView::Diff => changes(&text)?,
            _ => rows(&text, ask.limit.unwrap_or(AnswerLimits::ROWS))?,
        };
        if view == LakeView::Top && table.all_rows > table.rows.len() {
            table.coverage =
                format!("Shown the first {} rows; there are more.", grouped(table.rows.len() as u64));
        }
        table.title = format!("{}: {}", shown_name(lake), view.command());
        Ok(table)
    }
}

/// The standard output of a command that succeeds.
async fn said_by(mut command: Command) -> Result<Vec<u8>, Refusal> {
    let failed =
        |error: std::io::Error| Refusal::new(RefusalKind::Internal, format!("cannot ask the lake: {error}"));
    command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Refusal::new(RefusalKind::Internal, "cannot ask the lake"));
    };
    let (mut output, mut errors) =
        (output.take(LakeLimits::BYTES + 1), errors.take(LakeLimits::MESSAGE_BYTES));
    let (mut said, mut complaint) = (Vec::new(), Vec::new());
    let reading = async {
        let (read, heard) = tokio::join!(output.read_to_end(&mut said), errors.read_to_end(&mut complaint));
        read.and(heard)
    };
    let in_time = timeout(LakeLimits::TIME, reading).await.map_err(|_| {
        let limit = LakeLimits::TIME.as_secs();
        Refusal::new(RefusalKind::TooLarge, format!("the lake had no answer within {limit} s"))
            .with_help("ask for less time or fewer services, or use borehole lake")
    })?;
    in_time.map_err(failed)?;
    if said.len() as u64 > LakeLimits::BYTES {
        return Err(Refusal::new(RefusalKind::TooLarge, "too large an answer of the lake")
            .with_help("add LIMIT to the statement, or use borehole lake"));
    }
    let status = child.wait().await.map_err(failed)?;
    if !status.success() {
        let complaint = String::from_utf8_lossy(&complaint);
        let complaint = complaint.trim().trim_start_matches("error: ");
        return Err(Refusal::invalid(document(complaint.as_bytes())));
    }
    Ok(said)
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::new(RefusalKind::Internal, format!("cannot read the lake's answer: {error}"))
}

/// A table of one JSON object per line.
fn rows(text: &str, limit: usize) -> Result<ViewTable, Refusal> {
    let mut table = ViewTable::default();
    for line in text.lines() {
        table.all_rows += 1;
        if table.rows.len() >= limit {
            continue;
        }
        let object: Map<String, Value> = serde_json::from_str(line).map_err(|error| unreadable(&error))?;
        // Absent values have no key, so that columns may appear later.
        for key in object.keys() {
            if !table.columns.contains(key) {
                table.columns.push(key.clone());
            }
        }
        let row = table.columns.iter().map(|column| object.get(column).map_or_else(|| "".into(), cell));
        table.rows.push(row.collect());
    }
    let width = table.columns.len();
    table.rows.iter_mut().for_each(|row| row.resize_with(width, || "".into()));
    table.coverage = format!("Shown {} of {} rows.", table.rows.len(), grouped(table.all_rows as u64));
    Ok(table)
}

fn cell(value: &Value) -> ViewCell {
    match value {
        Value::Null => "".into(),
        Value::String(text) => shown_name(text).into(),
        Value::Number(number) => number.as_i64().map_or_else(|| number.to_string().into(), ViewCell::from),
        other => shown_name(&other.to_string()).into(),
    }
}

/// The functions of a comparison, as `borehole diff --json` has them.
fn changes(text: &str) -> Result<ViewTable, Refusal> {
    let diff: Value = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    let found = diff["functions"]["rows"].as_array().cloned().unwrap_or_default();
    let columns = ["significant", "self before", "self after", "total before", "total after", "function"];
    let number = |value: &Value| ViewCell::from(value.to_string());
    let rows = found.iter().map(|row| {
        let is_marked = [&row["self"], &row["total"]].iter().any(|change| change["significant"] == true);
        vec![
            if is_marked { "yes" } else { "no" }.into(),
            number(&row["self"]["before"]["value"]),
            number(&row["self"]["after"]["value"]),
            number(&row["total"]["before"]["value"]),
            number(&row["total"]["after"]["value"]),
            shown_name(row["function"].as_str().unwrap_or_default()).into(),
        ]
    });
    let only_on = |presence: &str, side: &str| {
        let here = found.iter().filter(|row| row["on"] == presence && row["total"]["significant"] == true);
        let share = |row: &Value| row["total"][side]["value"].as_f64().unwrap_or_default();
        here.map(|row| (shown_name(row["function"].as_str().unwrap_or_default()), share(row)))
            .collect::<Vec<_>>()
    };
    let notes = [only("new", &only_on("appeared", "after")), only("gone", &only_on("vanished", "before"))];
    let all = diff["functions"]["distinct"].as_u64().unwrap_or(0);
    Ok(ViewTable {
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        all_rows: usize::try_from(all).unwrap_or(usize::MAX),
        coverage: format!("Shown {} of {} functions.", found.len(), grouped(all)),
        notes: notes.into_iter().flatten().collect(),
        ..ViewTable::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_columns_whichever_row_names_them() {
        let table = rows("{\"a\":1}\n{\"b\":\"x\\u001b\",\"a\":2.5}\n{\"a\":3}\n", 2).unwrap();
        assert_eq!(table.columns, ["a", "b"]);
        assert_eq!(table.rows[0], [ViewCell::Number(1), "".into()]);
        assert_eq!(table.rows[1][0], "2.5".into());
        assert_eq!((table.all_rows, &*table.coverage), (3, "Shown 2 of 3 rows."));
    }

    #[test]
    fn what_is_asked_is_never_an_option() {
        let ask = LakeAsk { sql: Some("--schema".to_owned()), ..LakeAsk::default() };
        assert_eq!(LakeView::Query.arguments(&ask).unwrap(), ["--json", "--", "--schema"]);
        let ask = LakeAsk { service: Some("--json".to_owned()), ..LakeAsk::default() };
        assert_eq!(LakeView::Top.arguments(&ask).unwrap()[0], "--service=--json");
        assert!(LakeView::Trend.arguments(&ask).is_err());
    }
}
