//! `borehole lake query`, and the questions with names.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::bail;
use borehole::Error;
use borehole_query::{Addend, Answer, Choice, Lake, Session};
use clap::Args;

use super::open;
use super::times::{instant, stretch, us};
use crate::exit::Exit;
use crate::filter::pattern;
use crate::interrupt;
use crate::messages::{losses, out, say};
use crate::outputs::{OutputArgs, stdout_error};
use crate::table::{aligned, cell, csv_line, differ};
use crate::values::{RowLimit, duration, pair};

/// Rows beyond so many are not laid out as one table.
const TABLE_ROWS: usize = 10_000;

/// So many services are named to who asks for one that is not there.
const SERVICES: usize = 10;

/// How an answer is given.
#[derive(Args, Clone, Debug, Default)]
struct AnswerArgs {
    /// Print an object of JSON a row
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values
    #[arg(long)]
    csv: bool,

    /// Let a cluster work it out: the address of its scheduler. All of it must see the lake under this name
    #[cfg(feature = "lake-cluster")]
    #[arg(long, value_name = "df://HOST:PORT")]
    cluster: Option<String>,
}

/// Which samples.
#[derive(Args, Clone, Debug, Default)]
struct ChoiceArgs {
    /// Those of a service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Those of a machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Those with a label; several must all be there
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,

    /// Those of stacks in which the name of some function matches the regular expression
    #[arg(long, value_name = "PATTERN")]
    focus: Option<String>,

    /// The value type to add up, such as cpu or alloc_space/bytes; `samples` counts samples [default: that of the earliest
    /// profile]
    #[arg(long, value_name = "NAME")]
    value: Option<String>,
}

/// From when to when.
#[derive(Args, Clone, Debug, Default)]
struct TimeArgs {
    /// From here on: a time such as 2026-11-22T10:30Z, or so long ago, such as 7d
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<i64>,

    /// Before here
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<i64>,
}

/// `borehole lake query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct QueryArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// One statement that only reads
    #[arg(value_name = "SQL", required_unless_present = "schema")]
    sql: Option<String>,

    /// Print the tables, views and functions that there are
    #[arg(long)]
    schema: bool,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// `borehole lake top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TopArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    time: TimeArgs,

    /// How many functions; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// `borehole lake diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// The stretch of time to compare with, FROM..TO, such as 2d..1d
    #[arg(long, value_name = "STRETCH", value_parser = stretch)]
    before: (Option<i64>, Option<i64>),

    /// The stretch of time that is compared, such as 1d..
    #[arg(long, value_name = "STRETCH", value_parser = stretch)]
    after: (Option<i64>, Option<i64>),

    #[command(flatten)]
    choice: ChoiceArgs,

    /// How many functions; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// `borehole lake trend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrendArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// The function, by its whole name
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// A row for each so much time, such as 15m, 1h or 1d
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    step: Duration,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    answer: AnswerArgs,
}

impl ChoiceArgs {
    /// What is chosen of a stretch of time.
    ///
    /// # Errors
    /// When the pattern is none: whoever works out the answer may meet no stack to try it on.
    fn in_time(&self, since_us: Option<i64>, until_us: Option<i64>) -> anyhow::Result<Choice> {
        let Self { service, host, label, focus, .. } = self.clone();
        let focus = pattern("--focus", focus.as_deref())?.map(|pattern| pattern.as_str().to_owned());
        let addend = Addend::default();
        Ok(Choice { service, host, since_us, until_us, labels: label, focus, addend })
    }

    /// Finds out what is to be added up of all `choices`, and says so where that is no number of samples or not all there is.
    fn find_addend<const N: usize>(
        &self,
        session: &Session<'_>,
        choices: [Choice; N],
    ) -> anyhow::Result<[Choice; N]> {
        let all: Vec<_> = choices.iter().collect();
        let addend = session.addend(&all, self.value.as_deref())?;
        if let Some(text) = note_of(&addend) {
            say(&text);
        }
        Ok(choices.map(|choice| Choice { addend: addend.clone(), ..choice }))
    }

    /// The end of a question that so much was found for; where that is nothing, it is said, and why if the lake knows no such service.
    fn found(&self, lake: &Lake, count: u64) -> anyhow::Result<Exit> {
        if count == 0 {
            let there = lake.info()?.services;
            let unknown = self.service.as_ref().filter(|name| !there.is_empty() && !there.contains(name));
            let named = there.iter().take(SERVICES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if there.len() > SERVICES { "; borehole lake info names all" } else { "" };
            say(&unknown.map_or_else(
                || "note: no sample matches".to_owned(),
                |name| format!("note: no service is called {name}; there are {named}{more}"),
            ));
        }
        Ok(Exit::Done)
    }
}

/// A note that names the value type, unless it is samples, and the other value types; `None` if there is nothing to name.
fn note_of(addend: &Addend) -> Option<String> {
    let value_type = addend.value_type();
    let shown = (!value_type.is_samples()).then(|| format!("the numbers are {value_type}"));
    let others: Vec<_> = addend.others().iter().map(ToString::to_string).collect();
    let others = (!others.is_empty())
        .then(|| format!("other value types: {}; --value NAME shows them", others.join(", ")));
    let all: Vec<_> = [shown, others].into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("note: {}", all.join("; ")))
}

pub(crate) fn query(args: &QueryArgs) -> anyhow::Result<Exit> {
    if args.schema {
        out(borehole_query::page().trim_end())?;
        return Ok(Exit::Done);
    }
    let (lake, sql) = (open(&args.lake)?, args.sql.as_deref().unwrap_or_default());
    match is_profile(&args.output) {
        true => profile(&lake, &args.answer, &args.output, |_| Ok((sql.to_owned(), Addend::default())))?,
        false => print(&args.answer.session(&lake)?, sql, &args.answer, RowLimit::default())?,
    };
    Ok(Exit::Done)
}

pub(crate) fn top(args: &TopArgs) -> anyhow::Result<Exit> {
    let choice = args.choice.in_time(args.time.since, args.time.until)?;
    let lake = open(&args.lake)?;
    let found = match is_profile(&args.output) {
        true => profile(&lake, &args.answer, &args.output, |session| {
            let [choice] = args.choice.find_addend(session, [choice])?;
            Ok((choice.stacks(), choice.addend))
        })?,
        false => {
            let session = args.answer.session(&lake)?;
            let [choice] = args.choice.find_addend(&session, [choice])?;
            let sql = borehole_query::top(&choice, with_next(args.limit));
            print(&session, &sql, &args.answer, args.limit)?
        }
    };
    args.choice.found(&lake, found)
}

pub(crate) fn diff(args: &DiffArgs) -> anyhow::Result<Exit> {
    let choice = |(since, until)| args.choice.in_time(since, until);
    let (before, after) = (choice(args.before)?, choice(args.after)?);
    let lake = open(&args.lake)?;
    let session = args.answer.session(&lake)?;
    let [before, after] = args.choice.find_addend(&session, [before, after])?;
    let sql = borehole_query::diff(&before, &after, with_next(args.limit));
    args.choice.found(&lake, print(&session, &sql, &args.answer, args.limit)?)
}

pub(crate) fn trend(args: &TrendArgs) -> anyhow::Result<Exit> {
    let choice = args.choice.in_time(args.time.since, args.time.until)?;
    // The lake knows microseconds.
    let step_us = us(args.step).max(1);
    let lake = open(&args.lake)?;
    let session = args.answer.session(&lake)?;
    let [choice] = args.choice.find_addend(&session, [choice])?;
    let sql = borehole_query::trend(&args.function, step_us, &choice);
    let found = print(&session, &sql, &args.answer, RowLimit::default())?;
    if found > 0 && !is_known(&session, &args.function)? {
        let function = cell(&args.function);
        say(&format!(
            "note: no function is called {function}; borehole lake top says how functions are called"
        ));
    }
    args.choice.found(&lake, found)
}

/// Whether the lake has ever seen the function: a row of zeros does not say that.
fn is_known(session: &Session<'_>, function: &str) -> anyhow::Result<bool> {
    let mut answer = session.ask(&borehole_query::stack_with(function))?;
    Ok(answer.next_rows()?.is_some_and(|rows| !rows.is_empty()))
}

/// A row more than are shown, by which it is known that there are more.
fn with_next(limit: RowLimit) -> Option<usize> {
    limit.as_option().map(|count| count.saturating_add(1))
}

impl AnswerArgs {
    /// The lake, ready to be asked by this machine or by others.
    fn session<'l>(&self, lake: &'l Lake) -> anyhow::Result<Session<'l>> {
        #[cfg(feature = "lake-cluster")]
        if let Some(address) = &self.cluster {
            return Ok(lake.session_on(address)?);
        }
        Ok(lake.session()?)
    }
}

/// Whether a profile is asked for: by a format, or by the name of a file that tells one.
fn is_profile(output: &OutputArgs) -> bool {
    output.to.is_some() || is_file(output)
}

fn is_file(output: &OutputArgs) -> bool {
    output.output.as_deref().is_some_and(|path| path != "-")
}

/// The rows of an answer that are shown.
struct Rows<'s> {
    answer: Answer<'s>,
    /// How many more.
    room: usize,
    shown: usize,
    is_cut: bool,
}

impl<'s> Rows<'s> {
    /// The next rows that `next` takes out of the answer.
    fn next<T>(
        &mut self,
        next: impl FnOnce(&mut Answer<'s>) -> Result<Option<Vec<T>>, borehole_query::Error>,
    ) -> anyhow::Result<Option<Vec<T>>> {
        if self.is_cut {
            return Ok(None);
        }
        let Some(mut rows) = next(&mut self.answer)? else { return Ok(None) };
        self.is_cut = rows.len() > self.room;
        rows.truncate(self.room);
        self.room -= rows.len();
        self.shown += rows.len();
        Ok(Some(rows))
    }
}

/// Prints at most `limit` rows of an answer, and answers how many they are. Nothing is left half done when the user ends that: Ctrl-C
/// does what it always does.
fn print(session: &Session<'_>, sql: &str, args: &AnswerArgs, limit: RowLimit) -> anyhow::Result<u64> {
    let is_table = !args.json && !args.csv;
    let room = if is_table { limit.count().min(TABLE_ROWS) } else { limit.count() };
    let mut rows = Rows { answer: session.ask(sql)?, room, shown: 0, is_cut: false };
    match (args.json, args.csv) {
        (true, _) => json(&mut rows)?,
        (_, true) => csv(&mut rows)?,
        _ => table(&mut rows)?,
    }
    let shown = rows.shown;
    if rows.is_cut && shown == limit.count() {
        // How many there are nobody has counted.
        say(&format!("{shown} shown, and there are more; --limit 0 for all"));
    } else if rows.is_cut {
        say(&format!("note: {shown} rows shown; --json and --csv give all"));
    }
    Ok(shown as u64)
}

/// Writes the answer to a question as a profile, and answers how many stacks it has. `question` gives SQL, and what its numbers are
/// sums of.
fn profile(
    lake: &Lake,
    args: &AnswerArgs,
    output: &OutputArgs,
    question: impl FnOnce(&Session<'_>) -> anyhow::Result<(String, Addend)>,
) -> anyhow::Result<u64> {
    if args.json || args.csv {
        bail!("expected one of --json, --csv and a profile with --to or -o, found two");
    }
    if is_file(output) {
        // What works out answers cannot be asked to stop. What was begun is taken away.
        interrupt::before_leaving(|| say("interrupted: nothing was written"));
        interrupt::heed_at_once();
    }
    let session = args.session(lake)?;
    let (sql, addend) = question(&session)?;
    let answer = session.ask(&sql)?;
    let target = output.target(None)?;
    let mut output = output.create(&target)?;
    let name = output.name().to_owned();
    let mut exporter = target.exporter_to_file(&mut output)?;
    let exported = session.export_sums(answer, &addend, &mut *exporter);
    let stacks = match exported.map_err(borehole_query::Error::into_sink_error) {
        Ok(stacks) => stacks,
        Err(Ok(source)) => return Err(Error::Write { name, source }.into()),
        Err(Err(error)) => return Err(error.into()),
    };
    let lost = exporter.losses();
    drop(exporter);
    output.complete()?;
    losses(&lost, target.format.name());
    Ok(stacks)
}

fn table(rows: &mut Rows<'_>) -> anyhow::Result<()> {
    let columns: Vec<String> = rows.answer.columns().into_iter().map(str::to_owned).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    while let Some(batch) = rows.next(Answer::next_rows)? {
        lines.extend(batch.iter().map(|row| row.iter().map(|value| cell(&value.to_text())).collect()));
    }
    io::stdout().write_all(aligned(&columns, &lines).as_bytes()).map_err(stdout_error)?;
    Ok(())
}

fn json(rows: &mut Rows<'_>) -> anyhow::Result<()> {
    differ(&rows.answer.columns())?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    while let Some(objects) = rows.next(Answer::next_objects)? {
        objects.iter().try_for_each(|object| writeln!(out, "{object}")).map_err(stdout_error)?;
    }
    out.flush().map_err(stdout_error)?;
    Ok(())
}

fn csv(rows: &mut Rows<'_>) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write!(out, "{}", csv_line(rows.answer.columns())).map_err(stdout_error)?;
    while let Some(batch) = rows.next(Answer::next_rows)? {
        for row in batch {
            let line = csv_line(row.iter().map(borehole_query::Value::to_text));
            write!(out, "{line}").map_err(stdout_error)?;
        }
    }
    out.flush().map_err(stdout_error)?;
    Ok(())
}
