//! `borehole lake query`, `top` and `trend`.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::bail;
use borehole::{Error, Format};
use borehole_query::{
    Addend, ChosenFacts, Lake, LakeAnswer, LakeSession, SampleChoice, SampleKey, SampleSelector,
};
use clap::Args;

use super::open;
use super::times::{instant, us};
use crate::exit::Exit;
use crate::filter::{other_value_types, pattern};
use crate::interrupt;
use crate::messages::{losses, out, say};
use crate::outputs::OutputArgs;
use crate::stdout::{data, put, stdout_error};
use crate::table::{aligned, cell, csv_line, differ};
use crate::values::{RowLimit, duration, pair};

/// The most rows that are printed as one table.
const TABLE_ROWS: usize = 10_000;

/// How many services the note on an unknown service names.
const SERVICES: usize = 10;

/// The form of an answer, and where it is computed.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct AnswerArgs {
    /// Print one JSON object per row
    #[arg(long, conflicts_with = "csv")]
    pub(super) json: bool,

    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,

    /// Run the query on the cluster with this scheduler; all its machines must reach the lake under this name
    #[cfg(feature = "lake-cluster")]
    #[arg(long, value_name = "df://HOST:PORT")]
    cluster: Option<String>,
}

/// The options that choose samples.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ChoiceArgs {
    /// Use only samples of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Use only samples of this machine
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Use only samples with this label; if repeated, with all of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    label: Vec<(String, String)>,

    /// Use only samples with a function on the stack whose name matches this regular expression
    #[arg(long, value_name = "PATTERN")]
    pub(super) focus: Option<String>,

    /// The value type to add up, such as cpu or alloc_space/bytes; `samples` counts samples [default: that of the earliest
    /// profile]
    #[arg(long, value_name = "NAME")]
    value: Option<String>,
}

/// The options that choose times.
#[derive(Args, Clone, Debug, Default)]
struct TimeArgs {
    /// Use only samples from this time on, such as 2026-11-22T10:30Z, or an age such as 7d
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<i64>,

    /// Use only samples before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<i64>,
}

/// `borehole lake query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeQueryArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// An SQL statement, which can only read
    #[arg(value_name = "SQL", required_unless_present = "schema")]
    sql: Option<String>,

    /// Print the available tables, views and functions
    #[arg(long)]
    schema: bool,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// `borehole lake top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeTopArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    time: TimeArgs,

    /// Show the sums by this instead of functions: service, host, process, thread, thread_name, source or a label such as
    /// version; may be repeated. In profiles it is a label of the samples
    #[arg(long, value_name = "KEY")]
    by: Vec<String>,

    /// In profiles, add up all samples of a stack, without their times, threads and labels
    #[arg(long, conflicts_with = "by")]
    sums: bool,

    /// Rows to show; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    #[command(flatten)]
    answer: AnswerArgs,

    #[command(flatten)]
    output: OutputArgs,
}

/// `borehole lake trend`.
#[derive(Args, Clone, Debug)]
pub(crate) struct TrendArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// The full name of the function
    #[arg(value_name = "FUNCTION")]
    function: String,

    /// The time that a row covers, such as 15m, 1h or 1d
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    step: Duration,

    /// Show a row for each value of this, as in `borehole lake top`; may be repeated
    #[arg(long, value_name = "KEY")]
    by: Vec<String>,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    time: TimeArgs,

    #[command(flatten)]
    answer: AnswerArgs,
}

impl ChoiceArgs {
    /// The choice within a time range.
    ///
    /// # Errors
    /// When the pattern is invalid. The query itself would not notice if it met no stack.
    pub(super) fn in_time(
        &self,
        since_us: Option<i64>,
        until_us: Option<i64>,
    ) -> anyhow::Result<SampleChoice> {
        let Self { service, host, label, focus, .. } = self.clone();
        let selector = |(key, value): (String, String)| SampleSelector::equal(SampleKey::label(&key), value);
        let selectors = label.into_iter().map(selector).collect();
        let focus = pattern("--focus", focus.as_deref())?.map(|pattern| pattern.as_str().to_owned());
        let addend = Addend::default();
        Ok(SampleChoice { service, host, since_us, until_us, selectors, focus, addend })
    }

    /// Determines what to add up for all `choices`, and prints a note if it is not samples or if there are other value types.
    pub(super) fn find_addend<const N: usize>(
        &self,
        session: &LakeSession<'_>,
        choices: [SampleChoice; N],
    ) -> anyhow::Result<[SampleChoice; N]> {
        let all: Vec<_> = choices.iter().collect();
        let addend = session.addend(&all, self.value.as_deref())?;
        if let Some(text) = note_of(&addend) {
            say(&text);
        }
        Ok(choices.map(|choice| SampleChoice { addend: addend.clone(), ..choice }))
    }

    /// Ends a query that found `count` rows. If there are none, prints a note, which says so if the service is unknown.
    pub(super) fn found(&self, lake: &Lake, count: u64) -> anyhow::Result<Exit> {
        if count == 0 {
            let there = lake.info()?.services;
            let unknown = self.service.as_ref().filter(|name| !there.is_empty() && !there.contains(name));
            let named = there.iter().take(SERVICES).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if there.len() > SERVICES { "; borehole lake info lists all" } else { "" };
            say(&unknown.map_or_else(
                || "note: no samples match".to_owned(),
                |name| format!("note: unknown service {name}; the lake has {named}{more}"),
            ));
        }
        Ok(Exit::Done)
    }
}

/// A note that names the value type, unless it is samples, and the other value types; `None` if there is nothing to name.
fn note_of(addend: &Addend) -> Option<String> {
    let value_type = addend.value_type();
    let shown = (!value_type.is_samples()).then(|| format!("values are {value_type}"));
    let all: Vec<_> = [shown, other_value_types(addend.others())].into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("note: {}", all.join("; ")))
}

pub(crate) fn query(args: &LakeQueryArgs) -> anyhow::Result<Exit> {
    if args.schema {
        out(borehole_query::page().trim_end())?;
        return Ok(Exit::Done);
    }
    let (lake, sql) = (open(&args.lake)?, args.sql.as_deref().unwrap_or_default());
    match is_profile(&args.output) {
        true => profile(&lake, &args.answer, &args.output, |session, _| {
            Ok(ProfileQuestion::Rows(session.ask(sql)?, Addend::default()))
        })?,
        false => print(&args.answer.session(&lake)?, sql, &args.answer, RowLimit::default())?,
    };
    Ok(Exit::Done)
}

pub(crate) fn top(args: &LakeTopArgs) -> anyhow::Result<Exit> {
    let choice = args.choice.in_time(args.time.since, args.time.until)?;
    let keys = keys(&args.by);
    let lake = open(&args.lake)?;
    let found = match is_profile(&args.output) {
        true => profile(&lake, &args.answer, &args.output, |session, format| {
            let [choice] = args.choice.find_addend(session, [choice])?;
            Ok(match facts_in(format).filter(|_| keys.is_empty() && !args.sums) {
                Some(facts) => ProfileQuestion::Chosen(choice, facts),
                None => ProfileQuestion::Rows(session.ask(&choice.stacks_by(&keys))?, choice.addend),
            })
        })?,
        false => {
            let session = args.answer.session(&lake)?;
            let [choice] = args.choice.find_addend(&session, [choice])?;
            let sql = match &keys[..] {
                [] => borehole_query::top(&choice, with_next(args.limit)),
                keys => borehole_query::groups(&choice, keys, with_next(args.limit)),
            };
            print(&session, &sql, &args.answer, args.limit)?
        }
    };
    args.choice.found(&lake, found)
}

pub(crate) fn trend(args: &TrendArgs) -> anyhow::Result<Exit> {
    let choice = args.choice.in_time(args.time.since, args.time.until)?;
    // Lakes count time in microseconds.
    let step_us = us(args.step).max(1);
    let lake = open(&args.lake)?;
    let session = args.answer.session(&lake)?;
    let [choice] = args.choice.find_addend(&session, [choice])?;
    let sql = borehole_query::trend(&args.function, step_us, &choice, &keys(&args.by));
    let found = print(&session, &sql, &args.answer, RowLimit::default())?;
    if found > 0 && !is_known(&session, &args.function)? {
        let function = cell(&args.function);
        say(&format!("note: unknown function {function}; borehole lake top lists function names"));
    }
    args.choice.found(&lake, found)
}

fn keys(names: &[String]) -> Vec<SampleKey> {
    names.iter().map(|name| SampleKey::new(name)).collect()
}

/// Whether any stack of the lake has the function, which a row of zeros does not tell.
fn is_known(session: &LakeSession<'_>, function: &str) -> anyhow::Result<bool> {
    let mut answer = session.ask(&borehole_query::stack_with(function))?;
    Ok(answer.next_rows()?.is_some_and(|rows| !rows.is_empty()))
}

/// One more than the limit: the extra row tells that there are more.
fn with_next(limit: RowLimit) -> Option<usize> {
    limit.as_option().map(|count| count.saturating_add(1))
}

impl AnswerArgs {
    /// A session on the lake, on this machine or on a cluster.
    pub(super) fn session<'l>(&self, lake: &'l Lake) -> anyhow::Result<LakeSession<'l>> {
        #[cfg(feature = "lake-cluster")]
        if let Some(address) = &self.cluster {
            return Ok(lake.session_on(address)?);
        }
        Ok(lake.session()?)
    }
}

/// Whether the answer is to be a profile: `--to` names a format, or there is an output file.
fn is_profile(output: &OutputArgs) -> bool {
    output.to.is_some() || is_file(output)
}

fn is_file(output: &OutputArgs) -> bool {
    output.path().is_some()
}

/// The rows of an answer that are shown.
struct ShownRows<'s> {
    answer: LakeAnswer<'s>,
    /// How many more may be shown.
    room: usize,
    shown: usize,
    is_cut: bool,
}

impl<'s> ShownRows<'s> {
    /// The next rows to show, which `next` takes from the answer.
    fn next<T>(
        &mut self,
        next: impl FnOnce(&mut LakeAnswer<'s>) -> Result<Option<Vec<T>>, borehole_query::Error>,
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

/// Prints at most `limit` rows of an answer, and returns their number. Ctrl-C ends this as usual: nothing is left half done.
fn print(session: &LakeSession<'_>, sql: &str, args: &AnswerArgs, limit: RowLimit) -> anyhow::Result<u64> {
    let is_table = !args.json && !args.csv;
    let room = if is_table { limit.count().min(TABLE_ROWS) } else { limit.count() };
    let mut rows = ShownRows { answer: session.ask(sql)?, room, shown: 0, is_cut: false };
    match (args.json, args.csv) {
        (true, _) => json(&mut rows)?,
        (_, true) => csv(&mut rows)?,
        _ => table(&mut rows)?,
    }
    let shown = rows.shown;
    if rows.is_cut && shown == limit.count() {
        // The number of all rows is unknown.
        say(&format!("{shown} shown, and there are more; --limit 0 for all"));
    } else if rows.is_cut {
        say(&format!("note: the first {shown} rows are shown; --json and --csv print all"));
    }
    Ok(shown as u64)
}

/// A question whose answer is a profile.
enum ProfileQuestion<'s> {
    /// The rows of an answer, and what their numbers are sums of.
    Rows(LakeAnswer<'s>, Addend),
    Chosen(SampleChoice, ChosenFacts),
}

/// The facts about samples beside their stacks that profiles in a format hold; `None` if they add up stacks.
const fn facts_in(format: Format) -> Option<ChosenFacts> {
    match format {
        Format::Folded
        | Format::Collapsed
        | Format::FlameGraph
        | Format::Callgrind
        | Format::Phpspy
        | Format::Pstats
        | Format::PstatsText => None,
        Format::Pprof => Some(ChosenFacts::Labels),
        _ => Some(ChosenFacts::All),
    }
}

/// Writes the answer to a query as a profile, and returns the number of its stacks or rows.
fn profile(
    lake: &Lake,
    args: &AnswerArgs,
    output: &OutputArgs,
    question: impl for<'s> FnOnce(&'s LakeSession<'s>, Format) -> anyhow::Result<ProfileQuestion<'s>>,
) -> anyhow::Result<u64> {
    if args.json || args.csv {
        bail!("expected one of --json, --csv and a profile with --to or -o, found two");
    }
    if is_file(output) {
        // A running query cannot be asked to stop. The unfinished output is removed.
        interrupt::before_leaving(|| say("interrupted: nothing was written"));
        interrupt::heed_at_once();
    }
    let session = args.session(lake)?;
    let target = output.target(None)?;
    let asked = question(&session, target.format)?;
    let mut output = output.create(&target)?;
    let name = output.name().to_owned();
    let mut exporter = target.exporter_to_file(&mut output)?;
    let exported = match asked {
        ProfileQuestion::Rows(answer, addend) => session.export_sums(answer, &addend, &mut *exporter),
        ProfileQuestion::Chosen(choice, facts) => session.export_chosen(&choice, facts, &mut *exporter),
    };
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

fn table(rows: &mut ShownRows<'_>) -> anyhow::Result<()> {
    let columns: Vec<String> = rows.answer.columns().into_iter().map(str::to_owned).collect();
    let mut lines: Vec<Vec<String>> = Vec::new();
    while let Some(batch) = rows.next(LakeAnswer::next_rows)? {
        lines.extend(batch.iter().map(|row| row.iter().map(|value| cell(&value.to_text())).collect()));
    }
    put(&aligned(&columns, &lines), false)?;
    Ok(())
}

fn json(rows: &mut ShownRows<'_>) -> anyhow::Result<()> {
    differ(&rows.answer.columns())?;
    let mut out = io::BufWriter::new(data());
    while let Some(objects) = rows.next(LakeAnswer::next_objects)? {
        objects.iter().try_for_each(|object| writeln!(out, "{object}")).map_err(stdout_error)?;
    }
    out.flush().map_err(stdout_error)?;
    Ok(())
}

fn csv(rows: &mut ShownRows<'_>) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(data());
    write!(out, "{}", csv_line(rows.answer.columns())).map_err(stdout_error)?;
    while let Some(batch) = rows.next(LakeAnswer::next_rows)? {
        for row in batch {
            let line = csv_line(row.iter().map(borehole_query::LakeValue::to_text));
            write!(out, "{line}").map_err(stdout_error)?;
        }
    }
    out.flush().map_err(stdout_error)?;
    Ok(())
}
