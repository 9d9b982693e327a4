//! Output files that appear complete or not at all.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use borehole_wire::envelope::GzipWriter;
use tempfile::TempPath;

use crate::Error;
use crate::unfinished::UnfinishedEntry;

/// The compression of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Gzip at the default level.
    Gzip,
}

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
/// assert!(error.is_some_and(|error| error.to_string().ends_with("file exists; use --force to replace it")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Output {
    name: String,
    stream: OutputStream,
    /// Temporary files to remove when the output is complete or dropped.
    leftovers: Vec<(TempPath, Option<UnfinishedEntry>)>,
}

enum OutputStream {
    Plain(OutputPlace),
    Gzip(Box<GzipWriter<OutputPlace>>),
}

enum OutputPlace {
    File {
        file: BufWriter<File>,
        unfinished: TempPath,
        path: PathBuf,
        existing: Existing,
        /// Kept until the temporary file is gone.
        entry: Option<UnfinishedEntry>,
    },
    Direct(Box<dyn Write>),
}

/// The treatment of a file that already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The users who may read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    /// Those that the process's umask allows.
    Others,
    Owner,
}

impl Readers {
    fn restrict(self, options: &mut OpenOptions) {
        #[cfg(unix)]
        if self == Self::Owner {
            std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = (self, options);
    }
}

const BUFFER_BYTES: usize = 64 << 10;

/// The maximum number of links to follow, which is that of the kernel, so that circular links end.
const MAX_LINKS: usize = 40;

impl Output {
    /// Creates an output at `path`.
    ///
    /// # Errors
    /// If the file exists and should be kept, or nothing can be created beside it.
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
        match OutputPlace::create(path, existing, readers) {
            Ok(place) => Ok(Self::over(name, place, compression)),
            Err(source) => Err(Error::Write { name, source }),
        }
    }

    /// Checks whether an output could be created at `path`, as far as possible without creating it. For callers with
    /// long work to do first.
    ///
    /// # Errors
    /// If the file exists and should be kept, or is a directory.
    pub fn check(path: impl AsRef<Path>, existing: Existing) -> Result<(), Error> {
        let path = path.as_ref();
        let checked = DestinationKind::at(path, existing).map(drop);
        checked.map_err(|source| Error::Write { name: path.display().to_string(), source })
    }

    /// Creates an output to any writer, such as standard output.
    pub fn direct(name: impl Into<String>, writer: impl Write + 'static, compression: Compression) -> Self {
        Self::over(name.into(), OutputPlace::Direct(Box::new(writer)), compression)
    }

    fn over(name: String, place: OutputPlace, compression: Compression) -> Self {
        let stream = match compression {
            Compression::None => OutputStream::Plain(place),
            Compression::Gzip => OutputStream::Gzip(Box::new(GzipWriter::new(place))),
        };
        Self { name, stream, leftovers: Vec::new() }
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
        match self.place()? {
            OutputPlace::File { unfinished, .. } => Some(unfinished),
            OutputPlace::Direct(_) => None,
        }
    }

    /// The file that the output becomes, with links resolved; `None` if the destination is written directly.
    #[must_use]
    pub fn destination(&self) -> Option<&Path> {
        match self.place()? {
            OutputPlace::File { path, .. } => Some(path),
            OutputPlace::Direct(_) => None,
        }
    }

    /// Whether a file that is to be kept has appeared at the destination since the output was created.
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_taken(&self) -> bool {
        match self.place() {
            Some(OutputPlace::File { path, existing, .. }) => *existing == Existing::Keep && path.exists(),
            Some(OutputPlace::Direct(_)) | None => false,
        }
    }

    /// The error that there is a file to be kept.
    #[cfg(feature = "sqlite")]
    pub(crate) fn taken(&self) -> Error {
        Error::Write { name: self.name.clone(), source: exists() }
    }

    fn place(&self) -> Option<&OutputPlace> {
        match &self.stream {
            OutputStream::Plain(place) => Some(place),
            OutputStream::Gzip(member) => member.stream(),
        }
    }

    /// Creates a file with the output's name and `suffix`; `None` if the destination is written directly. It is removed
    /// when the output is complete or dropped, and remains if the program is killed before.
    #[cfg(feature = "tachyon")]
    pub(crate) fn create_beside(&mut self, suffix: &str) -> Result<Option<File>, Error> {
        let Some(OutputPlace::File { path, existing, .. }) = self.place() else { return Ok(None) };
        let mut beside = path.clone().into_os_string();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        let created = leftover(path, &beside, *existing);
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
        let place = match stream {
            OutputStream::Plain(place) => Ok(place),
            OutputStream::Gzip(mut member) => member.complete(),
        };
        place.and_then(OutputPlace::complete).map_err(|source| Error::Write { name, source })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            OutputStream::Plain(place) => place.write(bytes),
            OutputStream::Gzip(member) => member.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.stream {
            OutputStream::Plain(place) => place.flush(),
            OutputStream::Gzip(member) => member.flush(),
        }
    }
}

/// The kind of file at the destination of an output.
enum DestinationKind {
    /// A device or named pipe, which is written directly.
    Device,
    /// Nothing, or a file that may be replaced.
    FileOrNothing,
}

impl DestinationKind {
    fn at(path: &Path, existing: Existing) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a directory"))
            }
            Ok(found) if !found.is_file() => Ok(Self::Device),
            Ok(_) if existing == Existing::Keep => Err(exists()),
            _ => Ok(Self::FileOrNothing),
        }
    }
}

impl OutputPlace {
    fn create(path: &Path, existing: Existing, readers: Readers) -> io::Result<Self> {
        match DestinationKind::at(path, existing)? {
            DestinationKind::Device => Ok(Self::Direct(Box::new(File::options().write(true).open(path)?))),
            DestinationKind::FileOrNothing => Self::beside(path, existing, readers),
        }
    }

    /// Creates a temporary file in the directory of `path`, with the permissions of the file that it replaces, or those
    /// of an ordinary or private new file.
    fn beside(path: &Path, existing: Existing, readers: Readers) -> io::Result<Self> {
        // Links are kept; their target is written.
        let (path, strangers) = linked(path);
        let folder = folder_of(&path);
        let (options, permissions) = new_file(&path, readers);
        let mut entry = None;
        let created = tempfile::Builder::new().prefix(".borehole-").make_in(folder, |beside| {
            // Copied before the file is there.
            let path = beside.to_owned();
            let file = options.open(beside)?;
            entry = UnfinishedEntry::new(path);
            Ok(file)
        })?;
        // Separate the two: combined, their errors name the temporary file and lack the error number.
        let (file, unfinished) = created.into_parts();
        strangers.refuse(&file)?;
        permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Self::File { file, unfinished, path, existing, entry })
    }

    fn complete(self) -> io::Result<()> {
        match self {
            Self::Direct(mut writer) => writer.flush(),
            Self::File { file, unfinished, path, existing, entry: _entry } => {
                file.into_inner().map_err(io::IntoInnerError::into_error)?;
                let persisted = match existing {
                    Existing::Replace => unfinished.persist(path),
                    Existing::Keep => unfinished.persist_noclobber(path),
                };
                persisted.map_err(|failure| match failure.error.kind() {
                    io::ErrorKind::AlreadyExists => exists(),
                    _ => failure.error,
                })
            }
        }
    }
}

/// The path that `path` links to, whether it exists or not, and the strangers whose links led there.
fn linked(path: &Path) -> (PathBuf, Strangers) {
    let (mut path, mut strangers) = (path.to_owned(), Strangers::default());
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else { break };
        strangers.note(&path);
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    (path, strangers)
}

/// Users whose links were followed in directories that everyone can write to, such as `/tmp`.
///
/// Source: Linux, `Documentation/admin-guide/sysctl/fs.rst`, `protected_symlinks`: in such directories, only links of one's own
/// and of the directory's owner are followed. The kernel enforces that when a path is opened, but here links are read and their
/// targets replaced.
#[derive(Default)]
struct Strangers {
    users: Vec<u32>,
}

#[cfg(unix)]
impl Strangers {
    /// The mode of a directory in which everyone may create files, but remove only their own.
    const ANYBODYS: u32 = 0o1002;

    fn note(&mut self, link: &Path) {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(laid) = fs::symlink_metadata(link) else { return };
        let Ok(folder) = fs::metadata(folder_of(link)) else { return };
        if folder.mode() & Self::ANYBODYS == Self::ANYBODYS && folder.uid() != laid.uid() {
            self.users.push(laid.uid());
        }
    }

    /// Fails if one of the users is not the owner of the file `own`.
    fn refuse(&self, own: &File) -> io::Result<()> {
        let own = std::os::unix::fs::MetadataExt::uid(&own.metadata()?);
        match self.users.iter().find(|&&user| user != own) {
            Some(user) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "expected your own file or link, found a link of user {user} in a directory that everyone can write to"
                ),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(not(unix))]
impl Strangers {
    fn note(&mut self, _link: &Path) {}

    fn refuse(&self, _own: &File) -> io::Result<()> {
        Ok(())
    }
}

/// The directory of `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The options for creating a file that will become `path`, and the permissions to set afterwards: those of the file that
/// it replaces. Until then only the owner has access, because whoever opens the file earlier could read what is written
/// later.
fn new_file(path: &Path, readers: Readers) -> (OpenOptions, Option<Permissions>) {
    let replaced = fs::metadata(path).ok().filter(|_| readers == Readers::Others);
    let readers = if replaced.is_some() { Readers::Owner } else { readers };
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    readers.restrict(&mut options);
    (options, replaced.map(|replaced| replaced.permissions()))
}

/// Creates a file `beside` the output at `path`, with the permissions that the output will have. An existing file is never
/// written to, because it may be a link by someone who guessed the name.
#[cfg(feature = "tachyon")]
fn leftover(
    path: &Path,
    beside: &Path,
    existing: Existing,
) -> io::Result<(File, (TempPath, Option<UnfinishedEntry>))> {
    if existing == Existing::Replace {
        fs::remove_file(beside).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    let (options, permissions) = new_file(path, Readers::Others);
    let known = beside.to_owned();
    let file = options.open(beside).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::new(
            error.kind(),
            "file exists, because a program is writing it or was killed; recover it with borehole recover, or use \
             --force to replace it",
        ),
        _ => error,
    })?;
    let entry = UnfinishedEntry::new(known);
    let leftover = TempPath::try_from_path(beside)?;
    permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))?;
    Ok((file, (leftover, entry)))
}

fn exists() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "file exists; use --force to replace it")
}

impl Write for OutputPlace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { file, .. } => file.write(bytes),
            Self::Direct(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.flush(),
            Self::Direct(writer) => writer.flush(),
        }
    }
}
