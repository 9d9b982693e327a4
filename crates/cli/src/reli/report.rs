//! Reli's command line for reports on heaps.
//!
//! Source: reli 0.12, its command `inspector:memory:report`.

use std::path::PathBuf;

use borehole::heap::HeapFile;
use clap::{Args, ValueEnum};

use super::inspect::parse_switch;
use crate::exit::Exit;
use crate::heap::{HeapInputArgs, HeapReportArgs, ReportOptions, ReportOutput, TextOutput};
use crate::values::{MemoryLimit, size};

/// `inspector:memory:report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryReportArgs {
    /// A graph
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// report or report-json
    #[arg(short = 'f', long, value_enum, default_value = "report")]
    output_format: ReportFormat,

    /// The file to write instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,

    /// The run of a database
    #[arg(long, default_value_t = 1)]
    run_id: i64,

    #[command(flatten)]
    pretty: PrettyArgs,

    // Accepted, but without effect: everything is always analysed, and needs neither caches nor several processes.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    full_analysis: Option<Option<String>>,
    #[arg(long, hide = true)]
    no_full_analysis: bool,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    ffi_csr: Option<Option<String>>,
    #[arg(long, hide = true)]
    no_ffi_csr: bool,
    #[arg(long, hide = true)]
    link_cache: Option<String>,
    #[arg(long, hide = true)]
    substrate_bulk_fetch_chunk: Option<u64>,
    #[arg(long, hide = true)]
    report_workers: Option<u32>,
    #[arg(long, hide = true, value_parser = size)]
    mmap_size: Option<u64>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    prefetch: Option<Option<String>>,
    #[arg(long, hide = true)]
    no_prefetch: bool,
    #[arg(long, hide = true)]
    no_derived_cache: bool,
    #[arg(long, hide = true)]
    rebuild_derived_cache: bool,
}

/// Whether JSON is indented.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct PrettyArgs {
    /// Indent JSON
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "on", value_parser = parse_switch, overrides_with = "no_pretty_print")]
    pretty_print: Option<bool>,

    #[arg(long, hide = true)]
    no_pretty_print: bool,
}

impl PrettyArgs {
    pub(super) fn is_on(self, otherwise: bool) -> bool {
        self.pretty_print.unwrap_or(otherwise) && !self.no_pretty_print
    }
}

/// The formats that reli writes reports in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    Report,
    ReportJson,
}

/// The output of a report for our own command. Files are replaced, as in reli.
pub(super) fn output(output: Option<PathBuf>, format: ReportFormat, pretty: bool) -> ReportOutput {
    let json = format == ReportFormat::ReportJson;
    let place = TextOutput { output, force: true };
    let options = ReportOptions { limit: None, json: "-f report-json" };
    ReportOutput { place, json, pretty, limit: ReportOutput::LIMIT, options }
}

pub(super) fn report(args: &MemoryReportArgs) -> anyhow::Result<Exit> {
    let pretty = args.pretty.is_on(true);
    // Reli reads the first run of a database by default, and ignores the option for other files.
    let is_database = HeapFile::open(&args.input).is_ok_and(|file| file.is_database());
    HeapReportArgs {
        input: args.input.clone(),
        output: output(args.output.clone(), args.output_format, pretty),
        memory: HeapInputArgs { run_id: is_database.then_some(args.run_id), ..HeapInputArgs::default() },
    }
    .run()
}
