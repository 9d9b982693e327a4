//! `borehole completions` and `borehole man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::Exit;

/// For which shell.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Where to put man pages.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder, instead of the main page to standard output
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "borehole", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}

pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = &args.output else {
        io::stdout().write_all(&page(command)?)?;
        return Ok(Exit::Done);
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let main = ("borehole".to_owned(), command.clone());
    let commands = command.get_subcommands().filter(|command| command.get_name() != "help");
    let pages = commands.map(|command| (format!("borehole-{}", command.get_name()), command.clone()));
    for (name, command) in std::iter::once(main).chain(pages) {
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
    }
    Ok(Exit::Done)
}

fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}
