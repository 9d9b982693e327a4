//! `borehole heap explore`: a heap in the terminal.

use std::path::PathBuf;

use anyhow::Context as _;
use borehole::heap::NodeId;
use borehole::heap::retention::Follow;
use borehole::heap::views::Heap;
use borehole_tui::{HeapApp, HeapSettings};
use clap::Args;

use super::file::HeapInputArgs;
use super::password;
use crate::exit::Exit;
use crate::explore::host::ExplorerHost;
use crate::explore::terminal::{Mouse, Terminal};
use crate::explore::{colours, keymap, need_terminal};
use crate::interrupt;
use crate::progress::turning;
use crate::values::{address, node};

/// `borehole heap explore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeapExploreArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    /// Start at this node, such as #17
    #[arg(long, value_name = "NODE", value_parser = node)]
    pub(crate) node: Option<NodeId>,

    /// Start at the node at this address, such as 0x7f0000c01000
    #[arg(long, value_name = "ADDRESS", conflicts_with = "node", value_parser = address)]
    pub(crate) address: Option<u64>,

    /// Keymap: a JSON object of actions with lists of byte sequences; other actions keep their keys
    #[arg(long, value_name = "FILE")]
    pub(crate) keymap: Option<String>,

    /// Leave the mouse to the terminal, for selecting text
    #[arg(long)]
    pub(crate) no_mouse: bool,

    /// Treat weak references as if they kept their targets alive
    #[arg(long)]
    pub(crate) weak: bool,

    /// Do not follow the engine's internal references, such as from a call to its function
    #[arg(long)]
    pub(crate) no_structural: bool,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

impl HeapExploreArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        need_terminal("borehole heap ask")?;
        interrupt::heed();
        let keymap = keymap(self.keymap.as_deref())?;
        let file = password::open(&self.input, self.memory.waits)?;
        let opened = self.memory.graph_with_warning(&file)?;
        let follow = Follow { weak: self.weak, structural: !self.no_structural };
        let heap = Heap::new(&*opened.graph, follow);
        let settings = HeapSettings { title: title(file.name()), keymap, colours: colours() };
        let turning = turning("computing retained sizes");
        let mut app = HeapApp::new(heap, settings);
        drop(turning);
        self.begin(&mut app);
        let mut terminal =
            Terminal::enter(Mouse::unless(self.no_mouse)).context("cannot use the terminal")?;
        let mut has_changed = true;
        while !app.is_done() && !interrupt::requested() {
            terminal.draw(&mut app, has_changed)?;
            let inputs = if app.is_working() { terminal.look()? } else { terminal.wait()? };
            for input in &inputs {
                app.handle(input, &mut ExplorerHost::new(&mut terminal));
            }
            has_changed = !inputs.is_empty() || app.is_working();
            app.work();
        }
        drop(terminal);
        Ok(Exit::after(&opened.recovery))
    }

    /// Goes to the node that the user named.
    fn begin(&self, app: &mut HeapApp<'_>) {
        if let Some(node) = self.node {
            app.go_to_node(node);
        }
        if let Some(address) = self.address {
            app.go_to_address(address);
        }
    }
}

/// The title of a heap: the name of its file without folders, which would fill a small screen, or a whole address.
pub(super) fn title(name: &str) -> String {
    if name.contains("://") { name.to_owned() } else { name.rsplit('/').next().unwrap_or(name).to_owned() }
}
