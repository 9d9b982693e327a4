//! Where rows come from, as options: of rows to add, and of rows to change.

use clap::Args;

use crate::values::pair;

/// The options that say where rows come from.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct OriginArgs {
    /// Service of the rows [default when adding: `service` in the file, or `unnamed`]
    #[arg(long, value_name = "NAME")]
    pub(super) service: Option<String>,

    /// Machine of the rows [default when adding: `host` in the file]
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,

    /// Label of the rows, such as version=1.5 or environment=production; if repeated, they have all of them
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) label: Vec<(String, String)>,
}
