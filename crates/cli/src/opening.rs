//! Where inputs are, and how they are opened: files, standard input, and members of archives.

use std::fs::{self, File};
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use anyhow::bail;
use borehole::{Archive, ArchiveMember, Error, Input, Recovery, Source, Unpacked, open_input};

use crate::inputs::ReadArgs;
use crate::interrupt::InterruptibleRead;
use crate::{messages, progress};

/// An input that can be opened.
pub(crate) enum InputPlace {
    /// A file or a pipe that is not opened yet.
    Path(PathBuf),
    /// A profile in an archive.
    Member(ArchiveMember),
    /// A pipe whose beginning was looked at.
    Opened(Source),
}

impl InputPlace {
    /// Whether it is a file, or a part of one, which can be read a second time.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::Path(path) => is_file(path),
            Self::Member(_) => true,
            Self::Opened(_) => false,
        }
    }

    /// The bytes of a file once more; `None` if it cannot be read again.
    pub(crate) fn again(&self) -> Option<Source> {
        match self {
            Self::Path(path) if is_file(path) => Source::path(path).ok(),
            Self::Member(member) => Some(member.source()),
            _ => None,
        }
    }

    /// The bytes, with progress if it is shown.
    fn source(self) -> anyhow::Result<Source> {
        match self {
            Self::Path(path) => source(&path),
            Self::Member(member) => Ok(progress::shown(member.source())),
            Self::Opened(source) => Ok(source),
        }
    }
}

/// The inputs at a path, and what was odd about finding them.
pub(crate) struct FoundInputs {
    pub(crate) places: Vec<InputPlace>,
    /// The name and the notes of an archive.
    pub(crate) archive: Option<(String, Recovery)>,
}

impl FoundInputs {
    /// Prints the notes about an archive, and returns them.
    pub(crate) fn report(&self) -> Recovery {
        let Some((name, recovery)) = &self.archive else { return Recovery::default() };
        messages::warnings(name, recovery);
        recovery.clone()
    }
}

impl From<Archive> for FoundInputs {
    fn from(archive: Archive) -> Self {
        Self {
            places: archive.members().iter().cloned().map(InputPlace::Member).collect(),
            archive: Some((archive.name().to_owned(), archive.recovery().clone())),
        }
    }
}

impl ReadArgs {
    /// Opens a file to look at its beginning; `None` if it cannot be opened.
    pub(crate) fn peek(&self, place: &InputPlace) -> Option<Input> {
        Input::open(place.again()?, &self.options()).ok()
    }

    /// Whether a file is one or several inputs.
    pub(crate) fn accepts(&self, path: &Path) -> bool {
        match Source::path(path).and_then(|source| Input::open(source, &self.options())) {
            Ok(_) => true,
            Err(Error::Foreign { foreign, .. }) => foreign.is_archive,
            Err(_) => false,
        }
    }

    /// The inputs at `path`: one, or the profiles of an archive. `-` is standard input.
    pub(crate) fn find(&self, path: &Path) -> anyhow::Result<FoundInputs> {
        let place = if is_stdin(path) {
            InputPlace::Opened(source(path)?)
        } else {
            InputPlace::Path(path.to_owned())
        };
        // Named pipes are not opened twice.
        if matches!(&place, InputPlace::Path(path) if !is_file(path)) {
            return Ok(FoundInputs { places: vec![place], archive: None });
        }
        let source = match &place {
            InputPlace::Path(path) => Source::path(path)?,
            _ => place.source()?,
        };
        Ok(match Archive::unpack(source, &self.options())? {
            Unpacked::Archive(archive) => archive.into(),
            Unpacked::Source(source) if is_stdin(path) => {
                FoundInputs { places: vec![InputPlace::Opened(source)], archive: None }
            }
            Unpacked::Source(_) => {
                FoundInputs { places: vec![InputPlace::Path(path.to_owned())], archive: None }
            }
        })
    }

    /// Opens one input.
    pub(crate) fn open_at(&self, place: InputPlace) -> anyhow::Result<Input> {
        Ok(Input::open(place.source()?, &self.options())?)
    }

    /// Opens the only input at a path; `-` is standard input.
    pub(crate) fn open(&self, path: impl AsRef<Path>) -> anyhow::Result<Input> {
        let mut found = self.find(path.as_ref())?;
        found.report();
        match (found.places.pop(), found.places.len()) {
            (Some(place), 0) => self.open_at(place),
            (_, others) => bail!(
                "{}: expected one profile, found an archive with {} profiles",
                path.as_ref().display(),
                others + 1
            ),
        }
    }
}

/// The bytes at `path`. Reading a pipe ends when the user asks to stop.
fn source(path: &Path) -> anyhow::Result<Source> {
    if is_stdin(path) && io::stdin().is_terminal() {
        bail!("missing input: expected a path or data on standard input, found a terminal");
    }
    let (name, opened) = if is_stdin(path) {
        ("standard input".to_owned(), io::stdin().as_fd().try_clone_to_owned().map(File::from))
    } else {
        (path.display().to_string(), open_input(path))
    };
    let opened = opened.and_then(|file| Ok((file.try_clone()?, file)));
    let (pipe, file) = opened.map_err(|source| Error::Open { name: name.clone(), source })?;
    let source = Source::file(name, file)?;
    Ok(progress::shown(match source.size_bytes() {
        Some(_) => source,
        None => source.map(|reader| Box::new(InterruptibleRead { reader, pipe })),
    }))
}

/// Whether a path stands for standard input or output.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether an input is a file, which can be read a second time.
pub(crate) fn is_file(path: &Path) -> bool {
    !is_stdin(path) && fs::metadata(path).is_ok_and(|found| found.is_file())
}
