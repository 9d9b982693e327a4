//! The output options: destination, format and compression.

use std::env;
use std::fs::Permissions;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use borehole::{Compression, Error, Existing, Format, Output, Recovery, Target};
use clap::Args;
use tempfile::TempDir;

use crate::inputs::Inputs;
use crate::interrupt;
use crate::stdout::{STDOUT, data};

/// The options for an output.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct OutputArgs {
    /// File to write; `-`, or none, is standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// Format to write, instead of the one of the output's name (`borehole formats` lists them)
    #[arg(short = 'f', long, visible_alias = "format", value_name = "FORMAT")]
    pub(crate) to: Option<Format>,

    /// Compress the output with gzip; implied by a name that ends in .gz
    #[arg(long)]
    pub(crate) compress: bool,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

impl OutputArgs {
    /// The file; `None` for standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        file(self.output.as_deref())
    }

    /// The format that is asked for or named by the output's name; otherwise `otherwise`.
    pub(crate) fn target(&self, otherwise: Option<Format>) -> anyhow::Result<Target> {
        // Refuse unsupported compression before reading anything.
        is_gzip(self.path(), self.compress)?;
        let by_name = self.path().and_then(format_of_name).map(|(format, _)| format);
        // Formats may share an extension.
        let same =
            otherwise.filter(|format| self.path().is_some_and(|path| format.fits(&path.to_string_lossy())));
        let format = self.to.or(same).or(by_name).or(otherwise);
        Ok(Target::new(format.ok_or_else(|| self.unknown())?))
    }

    fn compression(&self, target: &Target) -> anyhow::Result<Compression> {
        Ok(compression(target.format, is_gzip(self.path(), self.compress)?))
    }

    /// The format for output made from `inputs`. If several formats share the output's extension, it stands for the format
    /// of the inputs, if that is one of them.
    pub(crate) fn target_for(&self, inputs: &Inputs) -> anyhow::Result<Target> {
        let name = self.path().filter(|_| self.to.is_none()).map(Path::to_string_lossy);
        let shared = name.map(|name| Format::sharing(&name)).unwrap_or_default();
        if shared.len() < 2 {
            return self.target(None);
        }
        let known = inputs.formats();
        let mut fitting = shared.iter().filter(|format| known.contains(format));
        match (fitting.next(), fitting.next()) {
            (Some(&only), None) => self.target(Some(only)),
            _ => {
                let names: Vec<_> = shared.iter().map(|format| format!("--to {}", format.name())).collect();
                let (names, path) = (names.join(" or "), self.path().unwrap_or(Path::new("")).display());
                bail!(
                    "ambiguous output format: expected {names}, found {path}, whose extension fits all of them"
                )
            }
        }
    }

    fn unknown(&self) -> anyhow::Error {
        let found = match self.path() {
            Some(path) => path.display().to_string(),
            None => STDOUT.to_owned(),
        };
        anyhow!("missing output format: expected --to FORMAT or a known file extension, found {found}")
    }

    /// Creates the output.
    pub(crate) fn create(&self, target: &Target) -> anyhow::Result<Output> {
        let compression = self.compression(target)?;
        match self.path() {
            Some(path) => {
                let existing = Existing::replacing(self.force);
                Ok(interrupt::begun(|| Output::create(path, existing, compression))?)
            }
            None => {
                refuse_terminal(target.format, compression == Compression::Gzip)?;
                Ok(Output::direct(STDOUT, data(), compression)?)
            }
        }
    }
}

/// Writes `text` as the whole content of `output`.
pub(crate) fn complete(mut output: Output, text: &str) -> anyhow::Result<()> {
    interrupt::unfinished(output.unfinished());
    let written = output.write_all(text.as_bytes());
    written.map_err(|source| Error::Write { name: output.name().to_owned(), source })?;
    Ok(output.complete()?)
}

/// Completes `output` if everything was `read`. A stream is completed after an error too, with everything before it.
pub(crate) fn complete_after<E: Into<anyhow::Error>>(
    output: Output,
    is_stream: bool,
    read: Result<Recovery, E>,
) -> anyhow::Result<Recovery> {
    let completed = if read.is_ok() || is_stream { output.complete() } else { Ok(()) };
    let recovery = read.map_err(Into::into)?;
    completed?;
    Ok(recovery)
}

/// Creates a temporary folder that only the user can access. Dropping the result removes it.
pub(crate) fn private_folder() -> anyhow::Result<TempDir> {
    let only_user = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().prefix("borehole-").permissions(only_user).tempdir();
    folder.with_context(|| env::temp_dir().display().to_string())
}

/// The compression of an output in `format`.
pub(crate) fn compression(format: Format, is_gzip: bool) -> Compression {
    // The pprof exporter compresses its output itself.
    if is_gzip && format != Format::Pprof { Compression::Gzip } else { Compression::None }
}

/// The file that `-o` names; `-` is standard output.
pub(crate) fn file(output: Option<&Path>) -> Option<&Path> {
    output.filter(|path| *path != Path::new("-"))
}

/// The format and compression that a file's name stands for.
pub(crate) fn format_of_name(path: &Path) -> Option<(Format, bool)> {
    Format::from_path(&path.to_string_lossy())
}

/// Whether an output is compressed with gzip, because that is `asked` for or because of its name.
pub(crate) fn is_gzip(path: Option<&Path>, asked: bool) -> anyhow::Result<bool> {
    let name = path.unwrap_or(Path::new("")).to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".zst") {
        bail!("unsupported compression: expected gzip (.gz) or none, found {name}");
    }
    Ok(asked || name.ends_with(".gz"))
}

/// Refuses to write binary output to a terminal.
pub(crate) fn refuse_terminal(format: Format, is_gzip: bool) -> anyhow::Result<()> {
    if (is_gzip || format.facts().is_binary) && io::stdout().is_terminal() {
        let gzip = if is_gzip { ", compressed" } else { "" };
        bail!(
            "unsupported output: expected a file or a pipe for {}{gzip}, found a terminal; name one with -o",
            format.name()
        );
    }
    Ok(())
}
