//! `borehole heap viz`: a heap as a page.

use std::path::PathBuf;

use anyhow::ensure;
use borehole::heap::retention::Follow;
use borehole::heap::views::{BlockLimits, Heap, HeapPage};
use clap::Args;

use super::file::HeapInputArgs;
use super::output::TextOutput;
use super::{explore, password};
use crate::exit::Exit;

/// `borehole heap viz`.
#[derive(Args, Clone, Debug)]
pub(crate) struct VizArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: TextOutput,

    /// The title of the page [default: the name of the file]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    #[command(flatten)]
    pub(crate) memory: HeapInputArgs,
}

impl VizArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if let Some(path) = self.output.path() {
            let is_html = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
            ensure!(
                is_html,
                "unsupported output: expected a name that ends in .html, found {}; borehole heap export writes other formats",
                path.display()
            );
        }
        self.output.check()?;
        let file = password::open(&self.input, self.memory.waits)?;
        let opened = self.memory.graph_with_warning(&file)?;
        let page = HeapPage::new(&Heap::new(&*opened.graph, Follow::default()), BlockLimits::default());
        let title = self.title.clone().unwrap_or_else(|| explore::title(file.name()));
        self.output.write(&borehole_web::heap_html(&page, &title))?;
        Ok(Exit::after(&opened.recovery))
    }
}
