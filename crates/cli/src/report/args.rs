//! The options of `borehole report`, spelled as in reli's `rbt:analyze`.

use anyhow::bail;
use borehole_analysis::{By, OpcodeRows, PathStyle, Query};
use borehole_model::{Sampled, Weigher};
use borehole_text::KeptEnd;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command, Id, ValueEnum};

use super::layout::{ReportLayout, ReportSection};
use super::render::{Crop, Rendering};
use crate::filter::{ShapeArgs, ValueArgs, pattern};
use crate::values::RowLimit;

/// Rows of the tables of callers and callees if `--top=0` hides the others.
///
/// Source: reli 0.12, `rbt:analyze`.
const DEFAULT_ROWS: usize = 20;

/// The value type that counts samples.
const COUNTS: &str = "samples";

/// The options of a report's tables. Output without tables refuses them.
#[derive(Args, Clone, Debug)]
pub(crate) struct TableArgs {
    /// Print the stacks of the last N samples (default 1), oldest first
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub(crate) last: Option<u64>,

    /// Print at most N frames of each stack of --last, from the leaf; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) last_depth: usize,

    /// Show the callers of matching frames
    #[arg(long, value_name = "PATTERN")]
    pub(crate) callers: Option<String>,

    /// Show the callees of matching frames
    #[arg(long, value_name = "PATTERN")]
    pub(crate) callees: Option<String>,

    /// Count each opcode of a line separately
    #[arg(long)]
    pub(crate) with_opcode: bool,

    /// Print full paths or file names only; frames are distinguished by full paths either way
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PathMode::Full)]
    pub(crate) path: PathMode,

    /// Cut lines at N columns; auto fits the terminal (or COLUMNS, or 80), 0 never cuts
    /// [default: auto on a terminal, except where a column would become unreadable; otherwise names of more than 256]
    #[arg(long, value_name = "N|auto", value_parser = parse_crop)]
    pub(crate) crop: Option<Crop>,

    /// The end of a frame that is kept when it is cut
    #[arg(long, value_name = "END", value_parser = kept_end(), default_value = "left")]
    pub(crate) crop_anchor: KeptEnd,

    /// Sections to print: by, self, total, states (of Python's threads), callers, callees, tail; for Tokio programs flags,
    /// workers, polls, tasks, delays, cpu, blocking, queue, spans, allocations, events (tokio stands for all of these).
    /// `,` puts sections below each other, `+` side by side
    #[arg(long, value_name = "SPEC", value_parser = ReportLayout::parse, default_value = ReportLayout::DEFAULT)]
    pub(crate) sections: ReportLayout,

    /// Print all about the red flag of a Tokio program with this number, and what to do
    #[arg(long, value_name = "N")]
    pub(crate) flag: Option<usize>,

    /// Break samples down by pid, thread, interpreter, file, class, or the values of a label, or else of the metadata with
    /// that key; spans by the values of a field (`label:pid` for a label with one of these names)
    #[arg(long, value_name = "LABEL|pid|thread|interpreter|file|class")]
    pub(crate) by: Option<By>,
}

impl TableArgs {
    /// The layout; the section of `--by` comes first unless it has a place there.
    pub(super) fn layout(&self) -> ReportLayout {
        if self.flag.is_some() {
            return ReportLayout::one(ReportSection::Flags);
        }
        let layout = self.sections.clone();
        if self.by.is_some() { layout.with(ReportSection::By) } else { layout }
    }

    /// The id of each option, for options that conflict with all of them: unlike a conflict with the group, clap's message then
    /// names the option that was given.
    pub(crate) fn ids() -> Vec<Id> {
        let command = Self::augment_args(Command::new("tables"));
        command.get_arguments().map(|argument| argument.get_id().clone()).collect()
    }
}

/// The options of `borehole report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Rows of each table; 0 hides the self and total tables
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_ROWS)]
    pub(crate) top: usize,

    /// Rows of each table; 0 for all
    #[arg(long, value_name = "COUNT", conflicts_with = "top")]
    pub(crate) limit: Option<RowLimit>,

    /// Print all rows of each table
    #[arg(long, conflicts_with_all = ["top", "limit"])]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) tables: TableArgs,

    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    /// The program whose output is reproduced
    #[arg(skip)]
    pub(crate) dialect: ReportDialect,
}

/// The program whose output is reproduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReportDialect {
    /// Borehole: lists that are cut say so.
    #[default]
    Native,
    /// Reli's `rbt:analyze`, and nothing else.
    Reli,
}

/// How much of a path is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathMode {
    /// The full path
    Full,
    /// The file name
    Short,
}

impl ReportArgs {
    /// Cuts lines at the width of a terminal, unless the user says otherwise. Reli leaves them whole.
    pub(crate) fn fitting(mut self, is_terminal: bool) -> Self {
        if is_terminal && self.dialect == ReportDialect::Native {
            self.tables.crop = self.tables.crop.or(Some(Crop::Auto));
        }
        self
    }

    /// Fails if every section that was asked for needs an option that was not given, so nothing would be printed.
    fn check_sections(&self) -> anyhow::Result<()> {
        if self.json || self.dialect == ReportDialect::Reli {
            return Ok(());
        }
        let mut missing = None;
        for section in self.tables.layout().sections() {
            let (is_given, option) = match section {
                ReportSection::By => (self.tables.by.is_some(), "--by"),
                ReportSection::Callers => (self.tables.callers.is_some(), "--callers"),
                ReportSection::Callees => (self.tables.callees.is_some(), "--callees"),
                ReportSection::Tail => (self.tables.last.is_some(), "--last"),
                _ => return Ok(()),
            };
            if is_given {
                return Ok(());
            }
            missing.get_or_insert(option);
        }
        let missing = missing.unwrap_or("section");
        bail!("missing {missing}: without it, --sections has nothing to print")
    }

    /// The query that the options describe.
    pub(crate) fn query(&self) -> anyhow::Result<Query> {
        self.check_sections()?;
        Ok(Query {
            opcodes: if self.tables.with_opcode { OpcodeRows::Apart } else { OpcodeRows::Together },
            callers: pattern("--callers", self.tables.callers.as_deref())?,
            callees: pattern("--callees", self.tables.callees.as_deref())?,
            last: self.tables.last.map_or(0, |last| last.max(1)),
            last_depth: Some(self.tables.last_depth).filter(|&depth| depth > 0),
            by: self.tables.by.clone(),
            limit: self.rows(),
            ..self.shape.query()?
        })
    }

    /// The number that is added up for each sample. Reli counts samples.
    pub(crate) fn weigher(&self) -> Weigher {
        match self.dialect {
            ReportDialect::Native => self.value.weigher(Sampled::Count),
            ReportDialect::Reli => Weigher::new(Some(COUNTS), Sampled::Count),
        }
    }

    /// Rows of each table; `None` for all.
    pub(crate) fn rows(&self) -> Option<usize> {
        match (self.limit, self.top) {
            _ if self.all => None,
            (Some(limit), _) => limit.as_option(),
            (None, 0) => Some(DEFAULT_ROWS),
            (None, rows) => Some(rows),
        }
    }

    /// Whether the self and total tables are wanted.
    pub(crate) const fn wants_top(&self) -> bool {
        self.all || self.limit.is_some() || self.top > 0
    }

    /// How to draw the view on a terminal of so many columns.
    pub(crate) fn rendering(&self, columns: usize) -> Rendering<'_> {
        Rendering {
            args: self,
            columns,
            paths: match self.tables.path {
                PathMode::Full => PathStyle::Full,
                PathMode::Short => PathStyle::Short,
            },
        }
    }
}

/// Parses the end of a text that is kept.
fn kept_end() -> impl TypedValueParser<Value = KeptEnd> {
    let [left, right] = [("left", "Keep the beginning"), ("right", "Keep the end")]
        .map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new([left, right])
        .map(|end| if end == "right" { KeptEnd::Right } else { KeptEnd::Left })
}

fn parse_crop(text: &str) -> Result<Crop, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(Crop::Auto);
    }
    let columns =
        text.parse().map_err(|_| format!("expected a number of columns or auto, found '{text}'"))?;
    Ok(Crop::Columns(columns))
}
