//! `borehole completions` and `borehole man`.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use borehole::{Compression, Existing, Output};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::Exit;
use crate::inputs::is_stdin;
use crate::outputs::{complete, stdout_error};

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

/// The script for a program.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    io::stdout().write_all(&script).map_err(stdout_error)?;
    Ok(Exit::Done)
}

/// The pages of a program.
pub(crate) fn man(args: &ManArgs, program: Command) -> anyhow::Result<Exit> {
    let name = program.get_name().to_owned();
    // Man pages hold what only the long help shows, and do not speak of a page for `help`.
    let mut command = program.disable_help_subcommand(true);
    command.build();
    let command = with_long_help(command);
    let Some(folder) = args.output.as_ref().filter(|folder| !is_stdin(folder)) else {
        io::stdout().write_all(page(command)?.as_bytes()).map_err(stdout_error)?;
        return Ok(Exit::Done);
    };
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (name, command) in named(&name, &command) {
        let path = folder.join(format!("{name}.1"));
        complete(Output::create(&path, Existing::Replace, Compression::None)?, &page(command)?)?;
    }
    Ok(Exit::Done)
}

/// A command and those below it that have help of their own, with the names of their pages: `help` has none, and that of `lake` is
/// another program's.
fn named(name: &str, command: &Command) -> Vec<(String, Command)> {
    let below = command.get_subcommands().filter(|command| !command.is_disable_help_flag_set());
    let below = below.flat_map(|command| named(&format!("{name}-{}", command.get_name()), command));
    std::iter::once((name.to_owned(), command.clone())).chain(below).collect()
}

/// The help of options that are left out of `-h` is their long help, so that the pages have it.
fn with_long_help(command: Command) -> Command {
    let options = command.mut_args(|option| match option.get_help().cloned() {
        Some(help) if option.is_hide_short_help_set() && option.get_long_help().is_none() => {
            option.long_help(help)
        }
        _ => option,
    });
    options.mut_subcommands(with_long_help)
}

/// What stands after the options is examples for a command, and more to know for all of them.
fn page(command: Command) -> io::Result<String> {
    let heading = if command.has_subcommands() { ".SH NOTES" } else { ".SH EXAMPLES" };
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA", heading).replace("\nExamples:\n", "\n"))
}
