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
use crate::outputs::complete;
use crate::stdout::stdout_error;

/// The arguments of `borehole completions`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

/// The arguments of `borehole man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// Folder for one page per command, instead of the main page on standard output
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the completion script of a program.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    io::stdout().write_all(&script).map_err(stdout_error)?;
    Ok(Exit::Done)
}

/// Writes the man pages of a program.
pub(crate) fn man(args: &ManArgs, program: Command) -> anyhow::Result<Exit> {
    let name = program.get_name().to_owned();
    // Man pages have the long help, but no page for `help`.
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

/// A command and its subcommands, with the names of their pages. `lake` is left out, because its page is another program's.
fn named(name: &str, command: &Command) -> Vec<(String, Command)> {
    let below = command.get_subcommands().filter(|command| !command.is_disable_help_flag_set());
    let below = below.flat_map(|command| named(&format!("{name}-{}", command.get_name()), command));
    std::iter::once((name.to_owned(), command.clone())).chain(below).collect()
}

/// Makes the help of options that `-h` hides their long help, which pages include.
fn with_long_help(command: Command) -> Command {
    let options = command.mut_args(|option| match option.get_help().cloned() {
        Some(help) if option.is_hide_short_help_set() && option.get_long_help().is_none() => {
            option.long_help(help)
        }
        _ => option,
    });
    options.mut_subcommands(with_long_help)
}

/// Renders a page. The text after the options is examples in pages of commands, and notes in others.
fn page(command: Command) -> io::Result<String> {
    let heading = if command.has_subcommands() { ".SH NOTES" } else { ".SH EXAMPLES" };
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).replace(".SH EXTRA", heading).replace("\nExamples:\n", "\n"))
}
