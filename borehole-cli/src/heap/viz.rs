//! `borehole heap viz`: a heap as a page.

use std::path::PathBuf;

use anyhow::ensure;
use borehole::Existing;
use borehole::heap::retention::Follow;
use borehole::heap::views::{BlockLimits, Heap, HeapPage};
use clap::Args;

use super::file::Memory;
use super::{explore, output, password};
use crate::exit::Exit;

/// `borehole heap viz`.
#[derive(Args, Clone, Debug)]
pub(crate) struct VizArgs {
    /// What holds a heap
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    /// The page to write (.html) instead of standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// The title of the page [default: the name of the file]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,

    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) memory: Memory,
}

impl VizArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if let Some(path) = self.output.as_deref().filter(|path| *path != "-") {
            let is_html = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("html"));
            ensure!(
                is_html,
                "unsupported output: expected a name that ends in .html, found {}; borehole heap export writes other formats",
                path.display()
            );
            let is_taken = !self.force && path.exists();
            ensure!(!is_taken, "{}: file exists; --force replaces it", path.display());
        }
        let file = password::open(&self.input)?;
        let opened = self.memory.graph(&file)?;
        let page = HeapPage::new(&Heap::new(&*opened.graph, Follow::default()), BlockLimits::default());
        let title = self.title.clone().unwrap_or_else(|| explore::title(file.name()));
        let html = borehole_web::heap_html(&page, &title);
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        output::write_text(&html, self.output.as_deref(), existing)?;
        Ok(Exit::after(&opened.recovery))
    }
}
