//! `borehole heap report`: findings about a heap.

mod tables;
pub(super) mod text;

use std::path::PathBuf;

use borehole::heap::Graph;
use borehole::heap::findings::{HeapReport, report};
use borehole::heap::retention::Follow;
use borehole::heap::views::Heap;
use clap::Args;

use super::file::HeapInputArgs;
use super::output::{TextOutput, document};
use super::password;
use crate::cell::terminal_width;
use crate::exit::Exit;
use crate::values::RowLimit;

/// `borehole heap report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeapReportArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

/// The output and the form of a report.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportOutput {
    #[command(flatten)]
    pub(crate) place: TextOutput,

    /// Print JSON: reli's `meta` and `findings`, and the tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Indent JSON
    #[arg(long, requires = "json")]
    pub(crate) pretty: bool,

    /// Rows of each table; 0 for all that were kept
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = ReportOutput::LIMIT)]
    pub(crate) limit: RowLimit,

    // The options that the text names.
    #[arg(skip)]
    pub(crate) options: ReportOptions,
}

/// The options of a command that show what a report as text leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportOptions {
    /// The option for the number of rows; `None` if there is none.
    pub(crate) limit: Option<&'static str>,
    /// The option for JSON.
    pub(crate) json: &'static str,
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self { limit: Some("--limit"), json: "--json" }
    }
}

impl HeapReportArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        self.output.place.check_ending(self.output.json)?;
        self.output.place.check()?;
        let file = password::open(&self.input, self.memory.waits)?;
        let opened = self.memory.graph(&file)?;
        self.output.write(&*opened.graph, file.name())?;
        Ok(Exit::after(&opened.recovery))
    }
}

impl ReportOutput {
    /// Rows of each table.
    pub(crate) const LIMIT: RowLimit = RowLimit::new(10);

    /// Writes the report on `graph`, which is called `name`.
    pub(crate) fn write(&self, graph: &dyn Graph, name: &str) -> anyhow::Result<()> {
        let report = report(&Heap::new(graph, Follow::default()));
        let columns = if self.place.path().is_some() { COLUMNS } else { terminal_width() };
        self.place.write(&self.rendered(&report, name, columns)?)
    }

    fn rendered(&self, report: &HeapReport, name: &str, columns: usize) -> anyhow::Result<String> {
        if self.json {
            return document(report, self.pretty);
        }
        Ok(text::text(report, name, columns.max(NARROWEST), self))
    }
}

/// The columns of a report in a file.
const COLUMNS: usize = 80;
/// The fewest columns that tables fit in.
const NARROWEST: usize = 60;
