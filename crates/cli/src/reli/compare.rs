//! Reli's command line for comparing heaps.
//!
//! Source: reli 0.12, its command `inspector:memory:compare`.

use std::path::PathBuf;

use clap::Args;

use super::report::{PrettyArgs, ReportFormat};
use crate::exit::Exit;
use crate::heap::{CompareArgs, HeapInputArgs, TextOutput};
use crate::values::{MemoryLimit, RowLimit, percent};

/// `inspector:memory:compare`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MemoryCompareArgs {
    /// A graph or a database
    #[arg(value_name = "BASE")]
    base: PathBuf,

    /// The heap to compare with [default: another run of the same database]
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,

    /// The run of the base, in a database
    #[arg(long, value_name = "RUN")]
    run_id_baseline: Option<i64>,

    /// The run of the target, in a database
    #[arg(long, value_name = "RUN")]
    run_id_target: Option<i64>,

    /// Text or JSON
    #[arg(short = 'f', long, value_enum, default_value_t = ReportFormat::Report)]
    output_format: ReportFormat,

    /// The file to write instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,

    #[command(flatten)]
    pretty: PrettyArgs,

    /// Hide changes of less than this percentage
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value_t = 0.0)]
    threshold: f64,

    /// Rows of each table; 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = RowLimit::new(20))]
    diff_limit: RowLimit,

    // Accepted, but without effect: the analysis does not depend on them.
    #[arg(long, hide = true, num_args = 0..=1)]
    diff_nodes: Option<String>,
    #[arg(long, hide = true)]
    full_analysis: bool,
    #[arg(long, hide = true)]
    no_full_analysis: bool,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
    #[arg(long, hide = true)]
    ffi_csr: bool,
    #[arg(long, hide = true)]
    no_ffi_csr: bool,
}

pub(super) fn compare(args: &MemoryCompareArgs) -> anyhow::Result<Exit> {
    let inputs = std::iter::once(&args.base).chain(&args.target).cloned().collect();
    let native = CompareArgs {
        inputs,
        run_id_baseline: args.run_id_baseline,
        run_id_target: args.run_id_target,
        threshold: args.threshold,
        limit: args.diff_limit,
        limit_option: "--diff-limit",
        fail_over: None,
        json: args.output_format == ReportFormat::ReportJson,
        pretty: args.pretty.is_on(true),
        output: TextOutput { output: args.output.clone(), force: true },
        memory: HeapInputArgs::default(),
    };
    native.run()
}
