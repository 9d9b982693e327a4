//! Sources of bytes: a path, standard input, or any reader.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use borehole_wire::envelope::Envelope;

use crate::Error;
use crate::destination::refuse_block_device;
use crate::error::STDIN;
use crate::mapped::Mappable;

/// A stream of bytes with a name for messages.
///
/// # Examples
///
/// ```
/// use borehole::Source;
///
/// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/native.rbt");
/// let file = Source::path(trace)?;
/// assert_eq!(file.size_bytes(), Some(246));
///
/// // Anything that can be read; here what a server might have been sent.
/// let body = Source::reader("upload 17", std::io::Cursor::new(b"main;query 3\n"));
/// assert_eq!((body.name(), body.size_bytes()), ("upload 17", None));
///
/// let error = Source::path("nowhere.rbt").err().map(|error| error.to_string());
/// assert_eq!(error.as_deref(), Some("nowhere.rbt: no such file or directory"));
/// # Ok::<(), borehole::Error>(())
/// ```
pub struct Source {
    name: String,
    size_bytes: Option<u64>,
    reader: Box<dyn Read + Send>,
    mappable: Option<Mappable>,
    path: Option<PathBuf>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, size_bytes, .. } = self;
        f.debug_struct("Source").field("name", name).field("size_bytes", size_bytes).finish_non_exhaustive()
    }
}

impl Source {
    /// Opens the file, named pipe or character device at `path`. A file that accompanies it, such as the symbols beside a profile of
    /// samply, is read with it.
    ///
    /// A `tachyon` file is mapped into memory. If someone truncates it while it is read, the kernel ends the program (SIGBUS).
    /// [`Source::reader`] maps nothing: with an open file, it reads one that others may truncate.
    ///
    /// # Errors
    /// If it cannot be opened, or is a directory or a block device.
    pub fn path(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let name = path.display().to_string();
        match open_input(path) {
            Ok(file) => Ok(Self { path: Some(path.to_owned()), ..Self::file(name, file)? }),
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// Takes an open file, from its current position. It may be mapped, as that of [`Source::path`].
    ///
    /// # Errors
    /// If it is a directory or a block device.
    pub fn file(name: impl Into<String>, file: File) -> Result<Self, Error> {
        let name = name.into();
        match size_bytes(&file) {
            Ok(size_bytes) => Ok(Self {
                name,
                size_bytes,
                mappable: size_bytes.and_then(|_| Mappable::here(&file)),
                reader: Box::new(file),
                path: None,
            }),
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// Standard input.
    #[must_use]
    pub fn stdin() -> Self {
        Self::reader(STDIN, io::stdin())
    }

    /// Takes any reader.
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Self { name: name.into(), size_bytes: None, reader: Box::new(reader), mappable: None, path: None }
    }

    /// A source of which the beginning was looked at, or that is a part of a file.
    #[cfg(feature = "archives")]
    pub(crate) fn resumed(
        name: String,
        size_bytes: Option<u64>,
        reader: Box<dyn Read + Send>,
        mappable: Option<Mappable>,
        path: Option<PathBuf>,
    ) -> Self {
        Self { name, size_bytes, reader, mappable, path }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes; `None` if it is unknown before reading.
    #[must_use]
    pub const fn size_bytes(&self) -> Option<u64> {
        self.size_bytes
    }

    /// Passes the bytes through `wrap`, for example to show progress.
    ///
    /// A `tachyon` file is mapped rather than read, so only its beginning passes through.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Read as _;
    /// use borehole::Source;
    ///
    /// let source = Source::reader("text", &b"main;query 3\nmain 1\n"[..]);
    /// let mut first_line = String::new();
    /// source.map(|bytes| Box::new(bytes.take(13))).into_reader().read_to_string(&mut first_line)?;
    /// assert_eq!(first_line, "main;query 3\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn map(self, wrap: impl FnOnce(Box<dyn Read + Send>) -> Box<dyn Read + Send>) -> Self {
        Self { reader: wrap(self.reader), ..self }
    }

    /// Does not map the file into memory, so that nobody can end the program by truncating it.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole::Source;
    ///
    /// let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/data/native.rbt");
    /// assert_eq!(Source::path(trace)?.unmapped("upload 17").name(), "upload 17");
    /// # Ok::<(), borehole::Error>(())
    /// ```
    #[must_use]
    pub fn unmapped(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), mappable: None, ..self }
    }

    /// The bytes.
    #[must_use]
    pub fn into_reader(self) -> Box<dyn Read + Send> {
        self.reader
    }

    pub(crate) fn into_parts(self) -> (String, Box<dyn Read + Send>) {
        (self.name, self.reader)
    }

    /// Takes the path that the source was opened with.
    pub(crate) fn take_path(&mut self) -> Option<PathBuf> {
        self.path.take()
    }

    /// Separates the file from the source, if it can be mapped.
    pub(crate) fn split_mappable(mut self) -> (Option<Mappable>, Self) {
        (self.mappable.take(), self)
    }
}

/// The contents of an input, decompressed if it consists of gzip or zstd members.
///
/// # Examples
///
/// ```
/// use std::io::Read as _;
///
/// let mut text = String::new();
/// borehole::decompressed(&b"main;query 3\n"[..]).read_to_string(&mut text)?;
/// assert_eq!(text, "main;query 3\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn decompressed(input: impl Read) -> impl Read {
    Envelope::new(input)
}

/// Opens a file to read it, as [`Source::path`] does.
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use borehole::open_input;
///
/// let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/native.rbt");
/// assert!(open_input(&trace)?.metadata()?.len() > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If it cannot be opened, or is a block device: that is not even opened, because some act when they are.
pub fn open_input(path: &Path) -> io::Result<File> {
    fs::metadata(path).and_then(|found| refuse_block_device(&found))?;
    File::open(path)
}

/// The size of the file; `None` if it is unknown before reading.
fn size_bytes(file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a directory"));
    }
    refuse_block_device(&metadata)?;
    Ok(metadata.is_file().then_some(metadata.len()))
}
