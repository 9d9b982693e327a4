//! The options of `borehole report`, spelled as reli's `rbt:analyze` spells them.

use anyhow::bail;
use borehole_analysis::{By, Opcodes, Paths, Query};
use borehole_model::{Sampled, Weigher};
use clap::{Args, Command, Id, ValueEnum};

use super::layout::{Layout, Section};
use super::render::{Crop, Rendering};
use crate::cell::Anchor;
use crate::filter::{ShapeArgs, ValueArgs, pattern};
use crate::values::RowLimit;

/// How many rows the tables of callers and callees have when `--top=0` hides the others.
///
/// Source: reli 0.12, `rbt:analyze`.
const DEFAULT_ROWS: usize = 20;

/// The value type of counts of samples.
const COUNTS: &str = "samples";

/// What the tables of a report hold, and how. What has no tables refuses these options.
#[derive(Args, Clone, Debug)]
pub(crate) struct TableArgs {
    /// Print the stacks of the last N samples (1 if no N is given), oldest first
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    pub(crate) last: Option<u64>,

    /// Print at most N frames of each of the last stacks, from the leaf; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) last_depth: usize,

    /// Show who calls the frames that match
    #[arg(long, value_name = "PATTERN")]
    pub(crate) callers: Option<String>,

    /// Show what the frames that match call
    #[arg(long, value_name = "PATTERN")]
    pub(crate) callees: Option<String>,

    /// Count the instructions of a line apart
    #[arg(long)]
    pub(crate) with_opcode: bool,

    /// Print whole paths, or file names only; frames are told apart by the whole path either way
    #[arg(long, value_name = "MODE", value_enum, default_value_t = PathMode::Full)]
    pub(crate) path: PathMode,

    /// Cut lines at N columns, or at the width of the terminal (COLUMNS, or 80, where there is none);
    /// 0 does not cut [default: auto on a terminal, which is left to break what would say nothing, 0 elsewhere]
    #[arg(long, value_name = "N|auto", value_parser = parse_crop)]
    pub(crate) crop: Option<Crop>,

    /// Which end of a frame stays when it is cut
    #[arg(long, value_name = "END", value_enum, default_value_t = Anchor::Left)]
    pub(crate) crop_anchor: Anchor,

    /// What to print, from by, self, total, states (of threads of Python), callers, callees, tail, and of Tokio programs flags, workers, polls,
    /// tasks, delays, blocking, queue, spans, allocations, events (tokio for all of these): `,` puts below, `+` beside
    #[arg(long, value_name = "SPEC", value_parser = Layout::parse, default_value = Layout::DEFAULT)]
    pub(crate) sections: Layout,

    /// Break samples down by pid, thread, interpreter, file, class, or the values of a label or else of metadata of that key
    /// (`label:pid` for a label of one of these names)
    #[arg(long, value_name = "LABEL|pid|thread|interpreter|file|class", value_parser = parse_by)]
    pub(crate) by: Option<By>,
}

impl TableArgs {
    /// What is printed where: what `--by` asks for is first unless the layout has a place for it.
    pub(super) fn layout(&self) -> Layout {
        let layout = self.sections.clone();
        if self.by.is_some() { layout.with(Section::By) } else { layout }
    }

    /// What each option is called, for what cannot be asked for together with any: that conflict says which one was given, as
    /// one with all of the group would not.
    pub(crate) fn ids() -> Vec<Id> {
        let command = Self::augment_args(Command::new("tables"));
        command.get_arguments().map(|argument| argument.get_id().clone()).collect()
    }
}

/// What to report, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Rows of each table; 0 leaves out the self and total tables
    #[arg(long, value_name = "COUNT", default_value_t = DEFAULT_ROWS)]
    pub(crate) top: usize,

    /// Rows of each table; 0 for all
    #[arg(long, value_name = "COUNT", conflicts_with = "top")]
    pub(crate) limit: Option<RowLimit>,

    /// All rows of each table
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

    /// Whose output to print
    #[arg(skip)]
    pub(crate) dialect: Dialect,
}

/// Whose output to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Our own: lists that are cut say so.
    #[default]
    Native,
    /// That of `rbt:analyze`, and nothing beside.
    Reli,
}

/// How much of a path is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PathMode {
    /// All of it
    Full,
    /// The file name
    Short,
}

impl ReportArgs {
    /// The same report; on a terminal, lines that it would break are cut unless the user says otherwise.
    /// Reli leaves them whole.
    pub(crate) fn fitting(mut self, is_terminal: bool) -> Self {
        if is_terminal && self.dialect == Dialect::Native {
            self.tables.crop = self.tables.crop.or(Some(Crop::Auto));
        }
        self
    }

    /// Fails if all sections that were asked for are answers to options that were not given: then nothing would be printed.
    fn check_sections(&self) -> anyhow::Result<()> {
        if self.json || self.dialect == Dialect::Reli {
            return Ok(());
        }
        let mut missing = None;
        for section in self.tables.layout().sections() {
            let (is_given, option) = match section {
                Section::By => (self.tables.by.is_some(), "--by"),
                Section::Callers => (self.tables.callers.is_some(), "--callers"),
                Section::Callees => (self.tables.callees.is_some(), "--callees"),
                Section::Tail => (self.tables.last.is_some(), "--last"),
                _ => return Ok(()),
            };
            if is_given {
                return Ok(());
            }
            missing.get_or_insert(option);
        }
        let missing = missing.unwrap_or("section");
        bail!("missing {missing}: expected what the section of --sections answers, found nothing to print")
    }

    /// What is asked of the profile.
    pub(crate) fn query(&self) -> anyhow::Result<Query> {
        self.check_sections()?;
        Ok(Query {
            opcodes: if self.tables.with_opcode { Opcodes::Apart } else { Opcodes::Together },
            callers: pattern("--callers", self.tables.callers.as_deref())?,
            callees: pattern("--callees", self.tables.callees.as_deref())?,
            last: self.tables.last.map_or(0, |last| last.max(1)),
            last_depth: Some(self.tables.last_depth).filter(|&depth| depth > 0),
            by: self.tables.by.clone(),
            limit: self.rows(),
            ..self.shape.query()?
        })
    }

    /// What samples are weighed by. Reli counts them.
    pub(crate) fn weigher(&self) -> Weigher {
        match self.dialect {
            Dialect::Native => self.value.weigher(Sampled::Count),
            Dialect::Reli => Weigher::new(Some(COUNTS), Sampled::Count),
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

    /// How the view is drawn on a terminal of `columns`.
    pub(crate) fn rendering(&self, columns: usize) -> Rendering<'_> {
        Rendering {
            args: self,
            columns,
            paths: match self.tables.path {
                PathMode::Full => Paths::Full,
                PathMode::Short => Paths::Short,
            },
        }
    }
}

fn parse_crop(text: &str) -> Result<Crop, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(Crop::Auto);
    }
    let columns =
        text.parse().map_err(|_| format!("expected a number of columns or auto, found '{text}'"))?;
    Ok(Crop::Columns(columns))
}

// The signature that clap asks of a parser.
#[expect(clippy::unnecessary_wraps)]
fn parse_by(text: &str) -> Result<By, String> {
    Ok(match text {
        "pid" | "process" => By::Process,
        "interpreter" => By::Interpreter,
        "thread" => By::Thread,
        "file" => By::File,
        "class" => By::Class,
        label => By::Label(label.strip_prefix("label:").unwrap_or(label).as_bytes().to_vec()),
    })
}
