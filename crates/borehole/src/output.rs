//! Output files that appear complete or not at all.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use borehole_wire::Compression;
use borehole_wire::envelope::{CompressedWriter, WRITTEN};
#[cfg(feature = "tachyon")]
use tempfile::TempPath;

use crate::Error;
use crate::destination::{Destination, DestinationKind, exists, stranger};
#[cfg(feature = "tachyon")]
use crate::error::Taken;
use crate::unfinished::{self, Readers, UnfinishedPath};

/// An output that is written beside its destination and moved there when it is complete.
///
/// Devices and named pipes are written directly. Dropping an incomplete output leaves nothing behind.
///
/// # Examples
///
/// ```
/// use std::io::Write as _;
/// use borehole::{Compression, Existing, Output};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.folded");
/// let mut output = Output::create(&path, Existing::Keep, Compression::None)?;
/// output.write_all(b"main 3\n")?;
/// assert!(!path.exists());
/// output.complete()?;
/// assert_eq!(std::fs::read(&path)?, b"main 3\n");
///
/// let error = Output::create(&path, Existing::Keep, Compression::None).err();
/// assert!(error.is_some_and(|error| error.to_string().ends_with("a.folded: file exists")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Output {
    name: String,
    stream: CompressedWriter<OutputPlace>,
    /// Temporary files to remove when the output is complete or dropped.
    leftovers: Vec<UnfinishedPath>,
}

enum OutputPlace {
    File(Box<BesideFile>),
    Direct(Box<dyn Write + Send>),
}

/// The treatment of a file that already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Existing {
    /// Keep it, and refuse the output.
    #[default]
    Keep,
    /// Replace it when the output is complete.
    Replace,
}

impl Existing {
    /// [`Existing::Replace`] if replacement is asked for, else [`Existing::Keep`].
    #[must_use]
    pub const fn replacing(is_asked: bool) -> Self {
        if is_asked { Self::Replace } else { Self::Keep }
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// An unfinished file beside its destination.
struct BesideFile {
    file: BufWriter<File>,
    unfinished: UnfinishedPath,
    path: PathBuf,
    existing: Existing,
    readers: Readers,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Output {
    /// Creates an output at `path`.
    ///
    /// # Errors
    /// If the file exists and should be kept, nothing can be created beside it, or this build cannot write the compression.
    pub fn create(
        path: impl AsRef<Path>,
        existing: Existing,
        compression: Compression,
    ) -> Result<Self, Error> {
        Self::create_for(path.as_ref(), existing, compression, Readers::Others)
    }

    /// Creates an output at `path` that only its owner may read and write, because the memory of a process contains
    /// secrets.
    ///
    /// # Errors
    /// If the file exists and should be kept, or nothing can be created beside it.
    pub fn create_private(path: impl AsRef<Path>, existing: Existing) -> Result<Self, Error> {
        Self::create_for(path.as_ref(), existing, Compression::None, Readers::Owner)
    }

    fn create_for(
        path: &Path,
        existing: Existing,
        compression: Compression,
        readers: Readers,
    ) -> Result<Self, Error> {
        let name = path.display().to_string();
        // Nothing is created for a compression that is refused.
        let place = compression.among(WRITTEN).and_then(|_| OutputPlace::create(path, existing, readers));
        Self::over(name, place, compression)
    }

    /// Checks whether an output could be created at `path`, as far as possible without creating it. For callers with
    /// long work to do first.
    ///
    /// # Errors
    /// If the file exists and should be kept, or is a directory; or if the path leads over links that are circular, or that
    /// others have put into a shared directory.
    pub fn check(path: impl AsRef<Path>, existing: Existing) -> Result<(), Error> {
        let path = path.as_ref();
        let checked = Destination::at(path, existing).map(drop);
        checked.map_err(|source| Error::Write { name: path.display().to_string(), source })
    }

    /// Creates an output to any writer, such as standard output.
    ///
    /// # Errors
    /// If this build cannot write the compression.
    pub fn direct(
        name: impl Into<String>,
        writer: impl Write + Send + 'static,
        compression: Compression,
    ) -> Result<Self, Error> {
        Self::over(name.into(), Ok(OutputPlace::Direct(Box::new(writer))), compression)
    }

    fn over(name: String, place: io::Result<OutputPlace>, compression: Compression) -> Result<Self, Error> {
        match place.and_then(|place| CompressedWriter::new(place, compression)) {
            Ok(stream) => Ok(Self { name, stream, leftovers: Vec::new() }),
            Err(source) => Err(Error::Write { name, source }),
        }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The temporary file that is being written beside the destination; `None` if the destination is written directly.
    ///
    /// Dropping the output removes it. A program that ends without dropping the output must remove it.
    #[must_use]
    pub fn unfinished(&self) -> Option<&Path> {
        match self.stream.stream()? {
            OutputPlace::File(beside) => Some(&beside.unfinished),
            OutputPlace::Direct(_) => None,
        }
    }

    /// The file that the output becomes, with links resolved; `None` if the destination is written directly.
    #[must_use]
    pub fn destination(&self) -> Option<&Path> {
        match self.stream.stream()? {
            OutputPlace::File(beside) => Some(&beside.path),
            OutputPlace::Direct(_) => None,
        }
    }

    /// Whether a file that is to be kept has appeared at the destination since the output was created.
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_taken(&self) -> bool {
        match self.stream.stream() {
            Some(OutputPlace::File(beside)) => beside.existing == Existing::Keep && beside.path.exists(),
            Some(OutputPlace::Direct(_)) | None => false,
        }
    }

    /// The error that there is a file to be kept.
    #[cfg(feature = "sqlite")]
    pub(crate) fn taken(&self) -> Error {
        Error::Write { name: self.name.clone(), source: exists() }
    }

    /// Creates a file with the output's name and `suffix`; `None` if the destination is written directly. It is removed
    /// when the output is complete or dropped, and remains if the program is killed before.
    #[cfg(feature = "tachyon")]
    pub(crate) fn create_beside(&mut self, suffix: &str) -> Result<Option<File>, Error> {
        let Some(OutputPlace::File(of)) = self.stream.stream() else { return Ok(None) };
        let mut beside = of.path.clone().into_os_string();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        let created = leftover(&of.path, &beside, of.existing);
        let (file, leftover) =
            created.map_err(|source| Error::Write { name: beside.display().to_string(), source })?;
        self.leftovers.push(leftover);
        Ok(Some(file))
    }

    /// Completes the output and moves the file to its destination.
    ///
    /// # Errors
    /// If the rest cannot be written, or the file cannot be moved.
    pub fn complete(self) -> Result<(), Error> {
        let Self { name, stream, leftovers: _leftovers } = self;
        stream.complete().and_then(OutputPlace::complete).map_err(|source| Error::Write { name, source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl OutputPlace {
    fn create(path: &Path, existing: Existing, readers: Readers) -> io::Result<Self> {
        let Destination { kind, path } = Destination::at(path, existing)?;
        match kind {
            DestinationKind::Device => Ok(Self::Direct(Box::new(File::options().write(true).open(path)?))),
            DestinationKind::FileOrNothing => {
                let (file, unfinished) = unfinished::create(&path, readers_of(&path, readers))?;
                let file = BufWriter::with_capacity(BUFFER_BYTES, file);
                Ok(Self::File(Box::new(BesideFile { file, unfinished, path, existing, readers })))
            }
        }
    }

    fn complete(self) -> io::Result<()> {
        match self {
            Self::Direct(mut writer) => writer.flush(),
            Self::File(beside) => beside.complete(),
        }
    }
}

impl BesideFile {
    fn complete(self) -> io::Result<()> {
        let Self { file, unfinished, path, existing, readers } = self;
        // Open, and so locked, until the file has its final name.
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if readers == Readers::Others {
            keep_attributes(&file, &path)?;
        }
        rename(unfinished, &path, existing)
    }
}

/// Gives an unfinished file its final name.
fn rename(unfinished: UnfinishedPath, path: &Path, existing: Existing) -> io::Result<()> {
    let persisted = match existing {
        Existing::Replace => unfinished.persist(path),
        Existing::Keep => unfinished.persist_noclobber(path),
    };
    persisted.map_err(|failure| match failure.error.kind() {
        io::ErrorKind::AlreadyExists => exists(),
        _ => failure.error,
    })
}

/// The users who may read the file that will become `path` while it is written: only the owner if it replaces a file, because
/// whoever opens it before it has the mode of that file could read what is written later.
fn readers_of(path: &Path, readers: Readers) -> Readers {
    if path.exists() { Readers::Owner } else { readers }
}

/// Gives `file` the owner, group and mode of the file at `path`, if there is one. What cannot be kept gives nobody more access. A
/// file that someone else has put into a shared directory is not heeded.
fn keep_attributes(file: &File, path: &Path) -> io::Result<()> {
    let Some(replaced) = file_at(path) else { return Ok(()) };
    if stranger(path, &replaced)?.is_some() {
        return Ok(());
    }
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
        let (user, group, mode) = (replaced.uid(), replaced.gid(), replaced.mode() & 0o777);
        let has_group =
            fchown(file, Some(user), Some(group)).or_else(|_| fchown(file, None, Some(group))).is_ok();
        // Another group has no more access than everyone.
        let mode = if has_group { mode } else { mode & (0o707 | (mode & 0o7) << 3) };
        fs::Permissions::from_mode(mode)
    };
    #[cfg(not(unix))]
    let permissions = replaced.permissions();
    file.set_permissions(permissions)
}

/// The metadata of the file at `path`; `None` if there is nothing, or something else, such as a link.
fn file_at(path: &Path) -> Option<fs::Metadata> {
    fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)
}

/// Opens a file that is written in place, so that others can read what is there at any time. It is locked until it is closed. An
/// existing file that is replaced is not written to, but replaced by the new one at once, with the same owner and mode. Devices
/// and named pipes are written directly.
///
/// # Examples
///
/// ```
/// use std::io::Write as _;
/// use borehole::{Existing, create_live};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.rbt");
/// create_live(&path, Existing::Keep)?.write_all(b"first")?;
/// assert!(create_live(&path, Existing::Keep).is_err());
/// create_live(&path, Existing::Replace)?.write_all(b"second")?;
/// assert_eq!(std::fs::read(&path)?, b"second");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of [`Output::create`], or if another program writes the file.
pub fn create_live(path: impl AsRef<Path>, existing: Existing) -> io::Result<File> {
    let Destination { kind, path } = Destination::at(path.as_ref(), existing)?;
    if kind == DestinationKind::Device {
        return File::options().write(true).open(path);
    }
    live(&path, existing, Readers::Others)
}

/// Creates a live file at a path without links.
fn live(path: &Path, existing: Existing, readers: Readers) -> io::Result<File> {
    if existing == Existing::Keep {
        let file = readers.options().open(path)?;
        return unlocked(file);
    }
    // Held until the file is replaced.
    let replaced = file_at(path).and_then(|_| File::open(path).ok()).map(unlocked).transpose()?;
    let (file, unfinished) = unfinished::create(path, readers_of(path, readers))?;
    if readers == Readers::Others {
        keep_attributes(&file, path)?;
    }
    rename(unfinished, path, existing)?;
    drop(replaced);
    Ok(file)
}

/// Opens a file to append to, or creates it. It is locked until it is closed. Devices and named pipes are written directly.
///
/// # Examples
///
/// ```
/// use std::io::Write as _;
/// use borehole::append_live;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.rbt");
/// let mut first = append_live(&path)?;
/// first.write_all(b"first")?;
/// assert!(append_live(&path).is_err(), "it is being written");
/// drop(first);
/// append_live(&path)?.write_all(b", second")?;
/// assert_eq!(std::fs::read(&path)?, b"first, second");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of [`open_live`], except that the file may be missing.
pub fn append_live(path: impl AsRef<Path>) -> io::Result<File> {
    loop {
        let opened = open_live(path.as_ref());
        if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            match create_live(path.as_ref(), Existing::Keep) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => return created,
            }
        }
        return opened;
    }
}

/// Opens an existing file to read it and to append to it. It is locked until it is closed. Devices and named pipes are written
/// directly.
///
/// # Examples
///
/// ```
/// use std::io::{Read as _, Write as _};
/// use borehole::open_live;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.rbt");
/// assert!(open_live(&path).is_err(), "nothing is created");
/// std::fs::write(&path, "whole, cut")?;
///
/// let (mut file, mut text) = (open_live(&path)?, String::new());
/// file.read_to_string(&mut text)?;
/// file.set_len(text.find(", cut").unwrap_or_default() as u64)?;
/// file.write_all(b", more")?;
/// assert_eq!(std::fs::read(&path)?, b"whole, more");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Those of [`Output::create`]; if there is no file, another program writes it, or someone else has put it into a shared
/// directory.
pub fn open_live(path: impl AsRef<Path>) -> io::Result<File> {
    let Destination { kind, path } = Destination::at(path.as_ref(), Existing::Replace)?;
    if kind == DestinationKind::Device {
        return File::options().write(true).open(&path);
    }
    let file = unlocked(File::options().read(true).append(true).open(&path)?)?;
    // The path may lead elsewhere since it was looked at.
    if unfinished::is_at(&file, &path) && stranger(&path, &file.metadata()?)?.is_none() {
        return Ok(file);
    }
    let message =
        "expected your own file, found that of another user in a directory that everyone can write to";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Locks a file that no other program may be writing.
fn unlocked(file: File) -> io::Result<File> {
    if unfinished::lock(&file)? {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "file is being written by another process"))
}

/// Creates a file `beside` the output at `path`. It has the mode of a new file, or is private until the end if the output replaces
/// a file.
#[cfg(feature = "tachyon")]
fn leftover(path: &Path, beside: &Path, existing: Existing) -> io::Result<(File, UnfinishedPath)> {
    let file =
        live(beside, existing, readers_of(path, Readers::Others)).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Taken { is_unfinished: true }.into(),
            _ => error,
        })?;
    Ok((file, UnfinishedPath::of(TempPath::try_from_path(beside)?)))
}

impl Write for OutputPlace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(beside) => beside.file.write(bytes),
            Self::Direct(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(beside) => beside.file.flush(),
            Self::Direct(writer) => writer.flush(),
        }
    }
}
