//! Reli's command lines for exploring heaps.
//!
//! Source: reli 0.12, its commands `rmem:explore`, `rmem:viz`, `rmem:serve`, `rmem:mcp` and `rmem:query`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::bail;
use borehole::heap::NodeId;
use clap::Args;

use crate::exit::Exit;
use crate::external::{self, SERVE};
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

/// `rmem:serve`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RmemServeArgs {
    /// A graph
    #[arg(value_name = "FILE")]
    input: PathBuf,

    // Accepted only to say what to do instead: reli's socket speaks a protocol of its own.
    #[arg(long, hide = true)]
    socket: Option<PathBuf>,
    // Accepted, but without effect: the server runs until it is ended.
    #[arg(long, hide = true)]
    timeout: Option<u64>,
}

pub(super) fn serve(args: &RmemServeArgs) -> anyhow::Result<Exit> {
    no_socket(args.socket.as_ref())?;
    external::run(&SERVE, &["serve".into(), args.input.clone().into()])
}

/// `rmem:mcp`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RmemMcpArgs {
    /// A graph
    #[arg(long = "rmem", value_name = "FILE", required_unless_present = "socket")]
    input: Option<PathBuf>,

    #[arg(long, hide = true)]
    socket: Option<PathBuf>,
    // Accepted, but without effect: there is no explorer to move, and no page to mark nodes in.
    #[arg(long, hide = true)]
    control: bool,
    #[arg(long, hide = true)]
    bridge: Option<String>,
}

pub(super) fn mcp(args: &RmemMcpArgs) -> anyhow::Result<Exit> {
    no_socket(args.socket.as_ref())?;
    let input = args.input.iter().map(OsString::from);
    let words: Vec<OsString> = ["mcp", "--reli-tools"].map(OsString::from).into_iter().chain(input).collect();
    external::run(&SERVE, &words)
}

/// `rmem:query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RmemQueryArgs {
    /// A graph
    #[arg(value_name = "FILE", required_unless_present = "server")]
    input: Option<PathBuf>,

    /// Show this node, and what keeps it alive
    #[arg(long, value_name = "NODE", value_parser = node, required_unless_present_any = ["address", "server"])]
    node: Option<NodeId>,

    /// Show the node at this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "node", value_parser = address)]
    address: Option<u64>,

    // Accepted, but without effect: what the node holds is shown in any case.
    #[arg(long, hide = true)]
    children: bool,
    // Accepted only to say what to do instead.
    #[arg(long, hide = true)]
    server: Option<PathBuf>,
}

pub(super) fn query(args: &RmemQueryArgs) -> anyhow::Result<Exit> {
    no_socket(args.server.as_ref())?;
    let word = match (args.node, args.address) {
        (Some(node), _) => format!("node={}", node.0),
        (None, Some(address)) => format!("address={address}"),
        (None, None) => bail!("missing --node or --address"),
    };
    let input = args.input.iter().map(OsString::from);
    let words = ["query".into()].into_iter().chain(input).chain(["heap_ask".into(), word.into()]);
    external::run(&SERVE, &words.collect::<Vec<_>>())
}

/// Refuses a socket of reli's server.
fn no_socket(socket: Option<&PathBuf>) -> anyhow::Result<()> {
    match socket {
        Some(socket) => bail!(
            "{}: unsupported: borehole serve answers over HTTP, not on a socket of its own; name the file instead",
            socket.display()
        ),
        None => Ok(()),
    }
}
