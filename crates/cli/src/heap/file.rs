//! `borehole heap analyze` and `borehole heap export`: heaps in files.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use borehole::heap::{HeapFile, OpenOptions, Opened, contradiction};
use borehole_text::printable;
use clap::Args;

use super::analysis::{PhpHeapArgs, WalkArgs};
use super::output::GraphOutput;
use super::password::{self, WaitArgs};
use crate::exit::Exit;
use crate::messages;

/// Options for reading the heap in a file.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HeapInputArgs {
    /// Analyse what is left of a damaged dump or core file
    #[arg(long)]
    pub(crate) lenient: bool,

    /// The run of a database [default: the last]
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<i64>,

    /// The root folder of the process of a core file
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) walk: WalkArgs,

    #[command(flatten)]
    pub(crate) php: PhpHeapArgs,

    #[command(flatten)]
    pub(crate) waits: WaitArgs,
}

impl HeapInputArgs {
    /// Reads the graph of a file, and prints what there is to say about it.
    pub(crate) fn graph<'f>(&self, file: &'f HeapFile) -> anyhow::Result<Opened<'f>> {
        if let Some(option) = self.of_memory().filter(|_| !file.is_memory()) {
            bail!(
                "{}: unsupported {option}: expected a dump or a core file, found {}, which is already analysed",
                file.name(),
                file.format().name()
            );
        }
        if let Some(run) = self.run_id.filter(|_| !file.is_database()) {
            bail!(
                "{}: unsupported --run-id {run}: expected a database, found {}",
                file.name(),
                file.format().name()
            );
        }
        let (php, error) = (self.php.options(), self.php.failure.error());
        let options = OpenOptions {
            lenient: self.lenient,
            run: self.run_id,
            analyze: self.walk.options(&php, error.as_ref()),
            root: self.root.as_deref(),
        };
        let opened = file.graph(&options)?;
        messages::warnings(file.name(), &opened.recovery);
        if let Some(analysis) = &opened.analysis {
            self.walk.tell(file.name(), analysis);
        }
        Ok(opened)
    }

    /// Like [`HeapInputArgs::graph`], for an answer that has no place of its own for a warning about sizes.
    pub(crate) fn graph_with_warning<'f>(&self, file: &'f HeapFile) -> anyhow::Result<Opened<'f>> {
        let opened = self.graph(file)?;
        if let Some(contradiction) = contradiction(&&*opened.graph) {
            let text = printable(contradiction.as_bytes());
            messages::say(&format!("warning: {}: {text}; its sizes cannot be trusted", file.name()));
        }
        Ok(opened)
    }

    /// The first given option about the analysis of memory. On a graph it would do nothing, and a user who wants a redacted file
    /// would not notice.
    fn of_memory(&self) -> Option<&'static str> {
        let Self { lenient, run_id: _, root, walk, php, waits: _ } = self;
        let walked = walk.given().or_else(|| php.given()).or_else(|| root.as_ref().map(|_| "--root"));
        walked.or_else(|| lenient.then_some("--lenient"))
    }
}

/// `borehole heap analyze`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AnalyzeArgs {
    /// A dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: GraphOutput,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

impl AnalyzeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let file = password::open(&self.input, self.memory.waits)?;
        ensure!(
            file.is_memory(),
            "{}: expected a dump or a core file, found {}; borehole heap export converts it",
            file.name(),
            file.format().name()
        );
        export(&file, &self.output, &self.memory)
    }
}

/// `borehole heap export`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: GraphOutput,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

impl ExportArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        export(&password::open(&self.input, self.memory.waits)?, &self.output, &self.memory)
    }
}

fn export(file: &HeapFile, output: &GraphOutput, memory: &HeapInputArgs) -> anyhow::Result<Exit> {
    let target = output.checked_target(memory.waits)?;
    let opened = memory.graph(file)?;
    output.write(&*opened.graph, &target)?;
    Ok(Exit::after(&opened.recovery))
}
