//! Reli's command lines for exploring heaps.
//!
//! Source: reli 0.12, its commands `rmem:explore` and `rmem:viz`.

use std::path::PathBuf;

use borehole::heap::NodeId;
use clap::Args;

use crate::exit::Exit;
use crate::heap::{HeapExploreArgs, HeapInputArgs, TextOutput, VizArgs};
use crate::values::{MemoryLimit, address, node};

/// `rmem:explore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RmemExploreArgs {
    /// A graph
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// Start at this node
    #[arg(long, value_name = "NODE", value_parser = node)]
    node: Option<NodeId>,

    /// Start at the node at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "node", value_parser = address)]
    address: Option<u64>,

    // Accepted, but without effect: memory depends on the heap alone, and no sources are shown.
    #[arg(long, hide = true, allow_hyphen_values = true)]
    memory_limit: Option<MemoryLimit>,
    #[arg(long, hide = true)]
    path_map: Vec<String>,
}

pub(super) fn explore(args: &RmemExploreArgs) -> anyhow::Result<Exit> {
    let native = HeapExploreArgs {
        input: args.input.clone(),
        node: args.node,
        address: args.address,
        keymap: None,
        no_mouse: false,
        weak: false,
        no_structural: false,
        memory: HeapInputArgs::default(),
    };
    native.run()
}

/// `rmem:viz`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RmemVizArgs {
    /// A graph
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// The page to write instead of standard output
    #[arg(short, long)]
    output: Option<PathBuf>,

    // Accepted, but without effect: small values are left out of a page, whatever their number.
    #[arg(short, long, hide = true)]
    top: Option<u64>,
    #[arg(short, long, hide = true)]
    depth: Option<u64>,
    #[arg(long, hide = true)]
    all_edges: bool,
    #[arg(long, hide = true)]
    max_nodes: Option<u64>,
    #[arg(long, hide = true)]
    max_children: Option<u64>,
}

/// Replaces an existing file, as reli does.
pub(super) fn viz(args: &RmemVizArgs) -> anyhow::Result<Exit> {
    let native = VizArgs {
        input: args.input.clone(),
        output: TextOutput { output: args.output.clone(), force: true },
        title: None,
        memory: HeapInputArgs::default(),
    };
    native.run()
}
