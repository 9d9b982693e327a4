//! Temporary files for data that cannot be written or read in the order in which it arrives.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::{env, fmt};

use borehole_formats::registry::Spool;
use borehole_text::cause;
use tempfile::SpooledTempFile;

/// How much of a spool stays in memory before it moves to a temporary file.
const IN_MEMORY_BYTES: usize = 256 << 10;

/// A temporary file whose errors name its directory, which is usually on another disk than the file that is read or written.
#[derive(Debug)]
pub(crate) struct TempSpool(SpooledTempFile);

/// Creates an empty spool.
pub(crate) fn spool() -> TempSpool {
    TempSpool(tempfile::spooled_tempfile(IN_MEMORY_BYTES))
}

#[cfg(feature = "heap")]
impl TempSpool {
    /// The content as a file, at its beginning.
    pub(crate) fn into_file(self) -> io::Result<std::fs::File> {
        let mut file = self.0.into_file().map_err(in_its_folder)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Creates an empty spool for an importer or exporter.
#[allow(clippy::unnecessary_wraps, reason = "other makers of spools fail")]
pub(crate) fn boxed_spool() -> io::Result<Box<dyn Spool>> {
    Ok(Box::new(spool()))
}

impl Read for TempSpool {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes).map_err(in_its_folder)
    }
}

impl Write for TempSpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(in_its_folder)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(in_its_folder)
    }
}

impl Seek for TempSpool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to).map_err(in_its_folder)
    }
}

/// Creates an empty file without a name.
#[cfg(feature = "archives")]
pub(crate) fn temporary_file() -> io::Result<std::fs::File> {
    tempfile::tempfile().map_err(in_its_folder)
}

#[cold]
pub(crate) fn in_its_folder(error: io::Error) -> io::Error {
    match error.kind() {
        // Callers retry interrupted calls, so nobody sees this error.
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, TempFileError(error)),
    }
}

/// An error of a temporary file.
#[derive(Debug)]
struct TempFileError(io::Error);

impl fmt::Display for TempFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = env::temp_dir();
        write!(
            f,
            "temporary file in {}: {}; set TMPDIR to use another directory",
            folder.display(),
            cause(&self.0)
        )
    }
}

impl std::error::Error for TempFileError {}
