//! `borehole lake diff`: any two selections of samples, compared as `borehole diff` compares files.

use std::ffi::OsString;
use std::path::PathBuf;

use borehole::ProfileSink as _;
use borehole::model::Tables;
use borehole_analysis::diff::{DiffQuery, DiffRow, DiffSink, DiffView, Per};
use borehole_query::{ChosenSpan, LakeSession, SampleChoice, SampleSelector, format_time_us};
use clap::Args;

use super::ask::{AnswerArgs, ChoiceArgs};
use super::open;
use super::times::range;
use crate::cell;
use crate::diff::{self, Picture, ShownDiff, parse_confidence, parse_part};
use crate::exit::Exit;
use crate::filter::pattern;
use crate::messages::say;
use crate::stdout::put;
use crate::table::csv_line;
use crate::values::RowLimit;

/// `borehole lake diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeDiffArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// The samples to compare with: a time range such as 2d..1d, KEY=VALUE or KEY!=VALUE; if repeated, those that match all. A
    /// KEY is service, host, process, thread, thread_name, source or a label such as version
    #[arg(long, value_name = "SELECTION", required = true, value_parser = selection)]
    before: Vec<Selection>,

    /// The samples that are compared, chosen in the same way
    #[arg(long, value_name = "SELECTION", required = true, value_parser = selection)]
    after: Vec<Selection>,

    #[command(flatten)]
    choice: ChoiceArgs,

    /// Exit with 1 if a function (or everything in focus) grew beyond noise by more than this share of the whole
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    fail_over: Option<f64>,

    /// Confidence of marked differences, in percent
    #[arg(long, value_name = "PERCENT", value_parser = parse_confidence, default_value = "95")]
    confidence: f64,

    /// Rows of each table; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    /// Also draw the difference: a flame graph (.svg) or an interactive page (.html)
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    answer: AnswerArgs,
}

/// A condition on the samples of a side.
#[derive(Clone, Debug)]
enum Selection {
    Time(Option<i64>, Option<i64>),
    Key(SampleSelector),
}

fn selection(text: &str) -> Result<Selection, String> {
    if let Some(selector) = SampleSelector::parse(text) {
        return Ok(Selection::Key(selector));
    }
    match range(text) {
        Ok((from, to)) => Ok(Selection::Time(from, to)),
        Err(error) if text.contains("..") => Err(error),
        Err(_) => Err(format!("expected a time range such as 2d..1d, KEY=VALUE or KEY!=VALUE, found {text}")),
    }
}

/// A side of the comparison.
struct Side {
    choice: SampleChoice,
    name: String,
    span: Option<ChosenSpan>,
}

pub(crate) fn run(args: &LakeDiffArgs) -> anyhow::Result<Exit> {
    let sides = [&args.before, &args.after].map(|selections| chosen(&args.choice, selections));
    let [before, after] = sides;
    let (before, after) = (before?, after?);
    let picture = args.output.as_deref().map(|path| Picture::of(path, args.force)).transpose()?;
    let lake = open(&args.lake)?;
    let session = args.answer.session(&lake)?;
    let choices = args.choice.find_addend(&session, [before, after])?;
    let sides = [(&choices[0], &args.before), (&choices[1], &args.after)];
    let [before, after] = sides.map(|(choice, selections)| side(&session, choice, selections));
    let sides = [before?, after?];
    let by_host = noise_is_between_hosts(&sides);
    let view = compare(args, &session, &sides, by_host)?;
    if let Some(picture) = picture {
        picture.write(&view, &sides[0].name, &sides[1].name)?;
    }
    show(args, &view, &sides, by_host)?;
    let found = u64::from(sides.iter().any(|side| side.span.is_some()));
    let exit = args.choice.found(&lake, found)?;
    match crossed(args, &view) {
        Some(crossed) => {
            say(&crossed.message);
            Ok(Exit::Crossed)
        }
        None => Ok(exit),
    }
}

/// The samples that are chosen by all `selections`.
fn chosen(args: &ChoiceArgs, selections: &[Selection]) -> anyhow::Result<SampleChoice> {
    let mut choice = args.in_time(None, None)?;
    for selection in selections {
        match selection {
            Selection::Key(selector) => choice.selectors.push(selector.clone()),
            Selection::Time(from, to) => {
                choice.since_us = choice.since_us.max(*from);
                choice.until_us = [choice.until_us, *to].into_iter().flatten().min();
            }
        }
    }
    Ok(choice)
}

fn side(session: &LakeSession<'_>, choice: &SampleChoice, selections: &[Selection]) -> anyhow::Result<Side> {
    let time = |time: Option<i64>| time.map_or_else(String::new, format_time_us);
    let names = selections.iter().map(|selection| match selection {
        Selection::Key(selector) => selector.to_string(),
        Selection::Time(from, to) => format!("{}..{}", time(*from), time(*to)),
    });
    let name = names.collect::<Vec<_>>().join(", ");
    Ok(Side { span: session.span(choice)?, choice: choice.clone(), name })
}

/// Whether noise is measured between hosts: both sides have enough of them, and are of the same time. Between different times,
/// a program also varies with its load, which hosts of one time do not show.
fn noise_is_between_hosts(sides: &[Side; 2]) -> bool {
    let has_hosts = |side: &Side| side.span.is_some_and(|span| span.hosts >= DiffQuery::RUNS as u64);
    let [before, after] =
        [&sides[0].choice, &sides[1].choice].map(|choice| (choice.since_us, choice.until_us));
    before == after && sides.iter().all(has_hosts)
}

fn compare(
    args: &LakeDiffArgs,
    session: &LakeSession<'_>,
    sides: &[Side; 2],
    by_host: bool,
) -> anyhow::Result<DiffView> {
    let hosts = |side: &Side| usize::try_from(side.span.map_or(0, |span| span.hosts)).unwrap_or(usize::MAX);
    let mut sink = DiffSink::new(DiffQuery {
        focus: pattern("--focus", args.choice.focus.as_deref())?,
        confidence: args.confidence,
        inputs: if by_host { [hosts(&sides[0]), hosts(&sides[1])] } else { [1, 1] },
        paths: args.limit.as_option(),
        ..DiffQuery::default()
    });
    let mut tables = Tables::default();
    for side in sides {
        session.replay(&side.choice, by_host, &mut tables, &mut sink)?;
        sink.begin_after();
    }
    sink.finish(&tables)?;
    Ok(sink.into_view())
}

fn crossed(args: &LakeDiffArgs, view: &DiffView) -> Option<diff::CrossedLimit> {
    let whole = if args.choice.focus.is_some() { "everything in focus" } else { "the whole" };
    args.fail_over.and_then(|most| diff::crossed(view, most, whole))
}

fn show(args: &LakeDiffArgs, view: &DiffView, sides: &[Side; 2], by_host: bool) -> anyhow::Result<()> {
    let shown = ShownDiff {
        per: &Per::Samples,
        limit: args.limit,
        is_focused: args.choice.focus.is_some(),
        names: [vec![OsString::from(&sides[0].name)], vec![OsString::from(&sides[1].name)]],
        inputs: if by_host { "hosts" } else { "inputs" },
    };
    if args.answer.csv {
        put(&csv(view, args.limit), true)?;
        if view.functions.len() > args.limit.count() {
            say(&format!("{} shown, and there are more; --limit 0 for all", args.limit));
        }
    } else if args.answer.json {
        let object = diff::object(view, &[], &shown, crossed(args, view).as_ref())?;
        put(&format!("{object}\n"), true)?;
    } else {
        put(&diff::text(view, &[], &shown, cell::terminal_width()), false)?;
    }
    Ok(())
}

const CSV_COLUMNS: [&str; 8] = [
    "function",
    "self_before",
    "self_after",
    "self_change",
    "total_before",
    "total_after",
    "total_change",
    "significant",
];

/// The functions as comma-separated values, in percent of each side.
fn csv(view: &DiffView, limit: RowLimit) -> String {
    let percent = |part: f64| format!("{}", (part * 1e4).round() / 1e2);
    let row = |row: &DiffRow| {
        let changes = [&row.self_change, &row.total_change];
        let numbers = changes
            .into_iter()
            .flat_map(|change| [change.before.value, change.after.value, change.difference()].map(percent));
        let name = String::from_utf8_lossy(&row.frame.function).into_owned();
        let is_marked = changes.iter().any(|change| change.is_marked).to_string();
        csv_line([name].into_iter().chain(numbers).chain([is_marked]))
    };
    let rows = view.functions.iter().take(limit.count()).map(row);
    csv_line(CSV_COLUMNS) + &rows.collect::<String>()
}
