//! The options of `borehole diff`.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use borehole::{Compression, Existing, Output};
use borehole_analysis::Query;
use borehole_analysis::diff::{DiffQuery, DiffView, Identity, Per};
use clap::{Args, ValueEnum};

use super::ShownDiff;
use super::threshold::FailOver;
use crate::filter::{FilterArgs, StackShapeArgs, ValueArgs, pattern};
use crate::inputs::{Inputs, ReadArgs, refuse_stdin_twice};
use crate::outputs;
use crate::values::{RowLimit, percent};

/// Rows of each table.
const DEFAULT_ROWS: RowLimit = RowLimit::new(20);

/// The options of `borehole diff`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DiffArgs {
    /// The two profiles, in any formats
    #[arg(value_names = ["BEFORE", "AFTER"], num_args = 2, conflicts_with_all = ["baseline", "candidate"])]
    pub(crate) paths: Vec<PathBuf>,

    /// The profiles before; several files are one side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "candidate")]
    pub(crate) baseline: Vec<PathBuf>,

    /// The profiles after; several files are one side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "baseline")]
    pub(crate) candidate: Vec<PathBuf>,

    /// Compare per samples (shares of all samples), time (from the first sample to the last), input (runs of the same work),
    /// or distinct value of a label, such as request (`label:time` for a label with one of these names)
    #[arg(long, value_name = "samples|time|input|LABEL", default_value = "samples")]
    pub(crate) per: Per,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    /// Identify functions by this [default: file if both sides know files, else function]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub(crate) key: Option<FunctionKey>,

    /// Exit with 1 if a function (or everything in focus) grew beyond noise by more than this share of the whole (or of
    /// everything in focus); for traces of Tokio programs, if a figure did: p50-, p99- or max- of poll, delay or span, as in
    /// p99-poll=20%
    #[arg(long, value_name = "[FIGURE=]PERCENT", value_parser = FailOver::parse, allow_hyphen_values = true)]
    pub(crate) fail_over: Vec<FailOver>,

    /// Confidence of marked differences, in percent
    #[arg(long, value_name = "PERCENT", value_parser = parse_confidence, default_value = "95")]
    pub(crate) confidence: f64,

    /// Rows of each table; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = DEFAULT_ROWS)]
    pub(crate) limit: RowLimit,

    /// Also draw the difference: a flame graph (.svg) or an interactive page (.html)
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: ReadArgs,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    // The comparison applies `--focus` itself: samples out of focus still count in the divisor.
    #[command(flatten)]
    pub(crate) stacks: StackShapeArgs,
}

/// The identity of a function.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FunctionKey {
    /// Its name
    Function,
    /// Its name and file
    File,
    /// Its name, file and line
    Line,
}

/// A file that shows a comparison.
pub(crate) struct Picture<'a> {
    path: &'a Path,
    /// A page; otherwise a flame graph.
    is_page: bool,
    existing: Existing,
}

impl<'a> Picture<'a> {
    /// The picture to write to `path`. It is checked before the sides are read, so that a wrong name fails at once.
    ///
    /// # Errors
    /// When the name has another extension, or the file cannot be written.
    pub(crate) fn of(path: &'a Path, is_forced: bool) -> anyhow::Result<Self> {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let is_page = name.ends_with(".html");
        ensure!(
            is_page || name.ends_with(".svg"),
            "unsupported output: expected a name that ends in .svg or .html, found {}",
            path.display()
        );
        let existing = Existing::replacing(is_forced);
        Output::check(path, existing)?;
        Ok(Self { path, is_page, existing })
    }

    pub(crate) fn write(&self, view: &DiffView, before: &str, after: &str) -> anyhow::Result<()> {
        let picture = if self.is_page {
            borehole_web::diff_html(view, before, after)
        } else {
            borehole_web::diff_svg(view)
        };
        outputs::complete(Output::create(self.path, self.existing, Compression::None)?, &picture)
    }
}

impl DiffArgs {
    /// The inputs before and after.
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
                Some(FunctionKey::Function) => Identity::Function,
                Some(FunctionKey::File) => Identity::File,
                Some(FunctionKey::Line) => Identity::Line,
            },
            focus: pattern("--focus", self.stacks.focus.as_deref())?,
            confidence: self.confidence,
            inputs: [sides[0].paths.len(), sides[1].paths.len()],
            paths: self.limit.as_option(),
            ..DiffQuery::default()
        })
    }

    /// How to shape stacks before they are compared; `None` to leave them as they are. The comparison applies the focus itself.
    pub(crate) fn shape(&self) -> anyhow::Result<Option<Query>> {
        let shape = StackShapeArgs { focus: None, ..self.stacks.clone() };
        shape.is_asked().then(|| shape.query()).transpose()
    }

    /// The picture to write, if one is asked for.
    ///
    /// # Errors
    /// As in [`Picture::of`].
    pub(crate) fn picture(&self) -> anyhow::Result<Option<Picture<'_>>> {
        self.output.as_deref().map(|path| Picture::of(path, self.force)).transpose()
    }

    pub(crate) fn shown(&self, sides: &[Inputs; 2]) -> ShownDiff<'_> {
        let names = |side: &Inputs| side.names().map(|name| name.as_os_str().to_owned()).collect();
        ShownDiff {
            per: &self.per,
            limit: self.limit,
            is_focused: self.stacks.focus.is_some(),
            names: [names(&sides[0]), names(&sides[1])],
            inputs: "inputs",
        }
    }
}

/// A percentage as a fraction of 1.
pub(crate) fn parse_part(text: &str) -> Result<f64, String> {
    percent(text).map(|percent| percent / 100.0)
}

/// A confidence, as a fraction of 1.
pub(crate) fn parse_confidence(text: &str) -> Result<f64, String> {
    let confidence = parse_part(text)?;
    let is_one = (0.5..1.0).contains(&confidence);
    is_one
        .then_some(confidence)
        .ok_or_else(|| format!("expected a percentage from 50 to below 100, found {text}"))
}
