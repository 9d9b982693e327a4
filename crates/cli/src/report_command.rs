//! The command line of `borehole report`.

use clap::Args;

use crate::filter::SampleArgs;
use crate::inputs::Inputs;
use crate::page::PageArgs;
use crate::report::ReportArgs;

/// The arguments of `borehole report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportCommand {
    #[command(flatten)]
    pub(crate) inputs: Inputs,

    // Options without a heading come first, because clap puts all others under the last heading.
    #[command(flatten)]
    pub(crate) page: PageArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

    #[command(flatten)]
    pub(crate) samples: SampleArgs,
}
