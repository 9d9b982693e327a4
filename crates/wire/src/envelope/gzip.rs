//! Gzip output that is either complete or recognisably cut off.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The first bytes of a gzip member: its magic number and the only defined compression method.
///
/// Source: RFC 1952, section 2.3.1.
pub const MEMBER_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Writes a gzip member at the default level, without a time in its header: equal bytes give equal bytes.
///
/// The encoder beneath ends its member when it is dropped, so output that an error cut short would look complete.
/// Therefore the stream is taken from it first, and the member stays without its end.
///
/// # Examples
///
/// ```
/// use std::io::Write as _;
/// use borehole_wire::envelope::GzipWriter;
///
/// let mut whole = GzipWriter::new(Vec::new());
/// whole.write_all(b"a;b 1\n")?;
/// assert!(whole.complete()?.starts_with(&borehole_wire::envelope::MEMBER_MAGIC));
///
/// let mut cut = Vec::new();
/// drop(GzipWriter::new(&mut cut));
/// assert!(cut.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct GzipWriter<W: Write> {
    encoder: GzEncoder<Gate<W>>,
}

/// The stream; `None` after it was taken out, when writes are discarded.
#[derive(Debug)]
struct Gate<W>(Option<W>);

impl<W: Write> GzipWriter<W> {
    /// Creates a writer of one member to `stream`.
    pub fn new(stream: W) -> Self {
        Self { encoder: GzEncoder::new(Gate(Some(stream)), Compression::default()) }
    }

    /// The stream; `None` after the member is complete.
    pub fn stream(&self) -> Option<&W> {
        self.encoder.get_ref().0.as_ref()
    }

    /// Ends the member and returns the stream. Later writes are discarded.
    ///
    /// # Errors
    /// If the rest cannot be written, or the member is already complete.
    pub fn complete(&mut self) -> io::Result<W> {
        self.encoder.try_finish()?;
        let stream = self.encoder.get_mut().0.take();
        stream.ok_or_else(|| io::Error::other("gzip member is already complete"))
    }
}

impl<W: Write> Write for GzipWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

impl<W: Write> Drop for GzipWriter<W> {
    fn drop(&mut self) {
        self.encoder.get_mut().0 = None;
    }
}

impl<W: Write> Write for Gate<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(bytes.len()), |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}
