//! The options of `borehole diff`.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use borehole::{Compression, Existing, Output};
use borehole_analysis::Query;
use borehole_analysis::diff::{DiffQuery, DiffView, Identity, Per};
use clap::{Args, ValueEnum};

use crate::filter::{FilterArgs, StackShapeArgs, ValueArgs, pattern};
use crate::inputs::{Inputs, Reading, refuse_stdin_twice};
use crate::values::{RowLimit, percent};
use crate::{outputs, page};

/// How many rows each table has.
const DEFAULT_ROWS: RowLimit = RowLimit::new(20);

/// What to compare, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// The two profiles, of any formats
    #[arg(value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with_all = ["baseline", "candidate"])]
    pub(crate) paths: Vec<PathBuf>,

    /// The profiles of what came first; several are one side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "candidate")]
    pub(crate) baseline: Vec<PathBuf>,

    /// The profiles of what came then
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "baseline")]
    pub(crate) candidate: Vec<PathBuf>,

    /// What samples are divided by: samples (shares of all), time (from the first sample to the last), input (runs of the
    /// same work), or a label, whose distinct values are counted, such as requests (`label:time` for a label of one of
    /// these names)
    #[arg(long, value_name = "samples|time|input|LABEL", value_parser = parse_per, default_value = "samples")]
    pub(crate) per: Per,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    /// What makes two functions the same [default: file where both sides know files, else function]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) key: Option<Key>,

    /// Exit with 1 if a function, or all in focus, grew by more than this part of the whole, or of all in focus, beyond
    /// noise
    #[arg(long, value_name = "PERCENT", value_parser = parse_part)]
    pub(crate) fail_over: Option<f64>,

    /// How sure a marked difference is, in per cent
    #[arg(long, value_name = "PERCENT", value_parser = parse_confidence, default_value = "95")]
    pub(crate) confidence: f64,

    /// Rows of each table; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = DEFAULT_ROWS)]
    pub(crate) limit: RowLimit,

    /// Draw it too: a flame graph (.svg), or a page with everything to look into (.html)
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<String>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: Reading,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    // `--focus` is read by the comparison itself: what it leaves out still counts in what samples are divided by.
    #[command(flatten)]
    pub(crate) stacks: StackShapeArgs,
}

/// What makes two functions the same.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Key {
    /// Its name
    Function,
    /// Its name and file
    File,
    /// Its name, file and line
    Line,
}

/// A file that shows a comparison.
pub(crate) struct Picture<'a> {
    path: &'a str,
    /// A page, not a flame graph.
    is_page: bool,
    existing: Existing,
}

impl Picture<'_> {
    pub(crate) fn write(&self, view: &DiffView, sides: &[Inputs; 2]) -> anyhow::Result<()> {
        let picture = if self.is_page {
            let [before, after] = [&sides[0], &sides[1]].map(page::name_of);
            borehole_web::diff_html(view, &before, &after)
        } else {
            borehole_web::diff_svg(view)
        };
        outputs::complete(Output::create(self.path, self.existing, Compression::None)?, &picture)
    }
}

impl DiffArgs {
    /// What came before, and what came then.
    pub(crate) fn sides(&self) -> anyhow::Result<[Inputs; 2]> {
        let side = |paths: &[PathBuf]| Inputs {
            paths: paths.to_vec(),
            reading: self.reading.clone(),
            label_inputs: false,
        };
        let paths = [&self.paths, &self.baseline, &self.candidate].into_iter().flatten();
        refuse_stdin_twice(paths.map(PathBuf::as_path))?;
        match (&self.paths[..], &self.baseline[..], &self.candidate[..]) {
            ([before, after], [], []) => Ok([before, after].map(|path| side(std::slice::from_ref(path)))),
            ([], before @ [_, ..], after @ [_, ..]) => Ok([side(before), side(after)]),
            _ => bail!(
                "missing inputs: expected BEFORE AFTER, or --baseline FILE... --candidate FILE..., found neither"
            ),
        }
    }

    pub(crate) fn query(&self, sides: &[Inputs; 2]) -> anyhow::Result<DiffQuery> {
        Ok(DiffQuery {
            per: self.per.clone(),
            value: self.value.value.clone(),
            identity: match self.key {
                None => Identity::Known,
                Some(Key::Function) => Identity::Function,
                Some(Key::File) => Identity::File,
                Some(Key::Line) => Identity::Line,
            },
            focus: pattern("--focus", self.stacks.focus.as_deref())?,
            confidence: self.confidence,
            inputs: [sides[0].paths.len(), sides[1].paths.len()],
            paths: self.limit.as_option(),
            ..DiffQuery::default()
        })
    }

    /// What is made of stacks before they are compared, if anything is. What is in focus is the comparison's to choose.
    pub(crate) fn shape(&self) -> anyhow::Result<Option<Query>> {
        let shape = StackShapeArgs { focus: None, ..self.stacks.clone() };
        shape.is_asked().then(|| shape.query()).transpose()
    }

    /// The picture that is asked for; looked at before the sides are read, so that nothing is waited for in vain.
    ///
    /// # Errors
    /// When there is none of that name, or it cannot be written there.
    pub(crate) fn picture(&self) -> anyhow::Result<Option<Picture<'_>>> {
        let Some(path) = &self.output else { return Ok(None) };
        let name = path.to_ascii_lowercase();
        let is_page = name.ends_with(".html");
        ensure!(
            is_page || name.ends_with(".svg"),
            "unsupported output: expected a name that ends in .svg or .html, found {path}"
        );
        let existing = Existing::replacing(self.force);
        Output::check(path, existing)?;
        Ok(Some(Picture { path, is_page, existing }))
    }
}

// The signature that clap asks of a parser.
#[expect(clippy::unnecessary_wraps)]
fn parse_per(text: &str) -> Result<Per, String> {
    Ok(match text {
        "samples" => Per::Samples,
        "time" => Per::Time,
        "input" => Per::Input,
        label => Per::Label(label.strip_prefix("label:").unwrap_or(label).as_bytes().to_vec()),
    })
}

/// Per cent as a part of 1.
fn parse_part(text: &str) -> Result<f64, String> {
    percent(text).map(|percent| percent / 100.0)
}

fn parse_confidence(text: &str) -> Result<f64, String> {
    let confidence = parse_part(text)?;
    let is_one = (0.5..1.0).contains(&confidence);
    is_one
        .then_some(confidence)
        .ok_or_else(|| format!("expected per cent from 50 to below 100, found {text}"))
}
