//! `borehole heap analyze` and `borehole heap export`: heaps in files.

use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use borehole::heap::{AnalyzeOptions, HeapFile, MemoryLimitError, OpenOptions, Opened};
use clap::Args;

use super::live::{accounted, only};
use super::output::GraphOutput;
use crate::exit::Exit;
use crate::messages::say;
use crate::record::PhpArgs;

/// How memory in a file is analysed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Analyse what is left of a damaged file
    #[arg(long)]
    pub(crate) lenient: bool,

    /// The run, of a database; otherwise the last
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id: Option<i64>,

    /// The thread whose heap it is to be, where each has one
    #[arg(long, value_name = "TID")]
    pub(crate) thread: Option<i32>,

    /// Of a core file: the folder that was the root of the process
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) failure: FailureArgs,

    /// Replace the contents of strings by their lengths and a hash; names and literals of programs stay
    #[arg(long)]
    pub(crate) redact: bool,

    #[command(flatten)]
    pub(crate) php: PhpArgs,
}

/// The error with which a program ended, as `error_get_last()` says it: its calls are then those of that moment.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FailureArgs {
    /// With a heap that a shutdown function looks at: the file that the memory limit's error names
    #[arg(long = "memory-limit-error-file", value_name = "FILE", requires = "line")]
    pub(crate) file: Option<String>,

    /// The line that the error names
    #[arg(long = "memory-limit-error-line", value_name = "LINE", requires = "file")]
    pub(crate) line: Option<u32>,

    /// The longest chain of calls that is taken for one
    #[arg(long = "memory-limit-error-max-depth", value_name = "FRAMES", default_value_t = 512)]
    pub(crate) max_depth: usize,
}

impl FailureArgs {
    pub(crate) fn error(&self) -> Option<MemoryLimitError> {
        let (file, line) = (self.file.clone()?.into_bytes(), self.line?);
        Some(MemoryLimitError { file, line, max_depth: self.max_depth })
    }
}

impl Memory {
    /// Opens a file, and says what was found in it.
    pub(crate) fn graph<'f>(&self, file: &'f HeapFile) -> anyhow::Result<Opened<'f>> {
        let php = self.php.options(None, None);
        let error = self.failure.error();
        let failure = error.as_ref().map(MemoryLimitError::failure);
        let redact = self.redact;
        let mut analyze =
            AnalyzeOptions { thread: self.thread, failure, redact, ..AnalyzeOptions::default() };
        analyze.attach.release = php.release;
        analyze.attach.is_php = php.is_php.as_deref().map(|is_php| is_php as _);
        let options =
            OpenOptions { lenient: self.lenient, run: self.run_id, analyze, root: self.root.as_deref() };
        let opened = file.graph(&options)?;
        for warning in &opened.recovery.warnings {
            say(&format!("warning: {}: {} (at byte {:#x})", file.name(), warning.message, warning.offset));
        }
        if let Some(analysis) = &opened.analysis {
            say(&format!("{}: {}: {}", file.name(), analysis.identity, accounted(analysis)));
            if let Some(choice) = only(&analysis.threads).filter(|_| self.thread.is_none()) {
                say(&format!("note: {}: {choice}", file.name()));
            }
        }
        Ok(opened)
    }
}

/// How a command ends that opened this.
fn exit(opened: &Opened<'_>) -> Exit {
    if opened.recovery.is_whole() { Exit::Done } else { Exit::Damaged }
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
    pub(crate) memory: Memory,
}

impl AnalyzeArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let file = HeapFile::open(&self.input)?;
        ensure!(
            file.is_memory(),
            "{}: expected a dump or a core file, found {}; borehole heap export writes it in another format",
            file.name(),
            file.format().name()
        );
        export(&file, &self.output, &self.memory)
    }
}

/// `borehole heap export`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExportArgs {
    /// A graph, or a dump or core file to be analysed
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: GraphOutput,

    #[command(flatten)]
    pub(crate) memory: Memory,
}

impl ExportArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        export(&HeapFile::open(&self.input)?, &self.output, &self.memory)
    }
}

fn export(file: &HeapFile, output: &GraphOutput, memory: &Memory) -> anyhow::Result<Exit> {
    let format = output.checked_format()?;
    let opened = memory.graph(file)?;
    if opened.graph.counts().nodes == 0 {
        return Err(anyhow!("{}: the graph has no nodes", file.name()));
    }
    output.write(&*opened.graph, format)?;
    Ok(exit(&opened))
}
