//! Output in any compression.

use std::io::{self, Write};

use super::gzip::GzipWriter;
#[cfg(feature = "zstd")]
use super::zstd::ZstdWriter;
use crate::Compression;

/// Writes plain bytes, a gzip member or a Zstandard frame. Dropped before it is complete, a member or frame stays without its end,
/// so that readers detect that it is cut off.
///
/// # Examples
///
/// ```
/// use std::io::Write as _;
/// use borehole_wire::Compression;
/// use borehole_wire::envelope::{CompressedWriter, MEMBER_MAGIC};
///
/// let mut writer = CompressedWriter::new(Vec::new(), Compression::Gzip)?;
/// writer.write_all(b"a;b 1\n")?;
/// assert!(writer.complete()?.starts_with(&MEMBER_MAGIC));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct CompressedWriter<W: Write>(Form<W>);

/// The compressions that this build can write.
pub const WRITTEN: &[Compression] =
    if cfg!(feature = "zstd") { Compression::ALL } else { &[Compression::None, Compression::Gzip] };

enum Form<W: Write> {
    Plain(W),
    Gzip(Box<GzipWriter<W>>),
    #[cfg(feature = "zstd")]
    Zstd(Box<ZstdWriter<W>>),
}

impl<W: Write> std::fmt::Debug for CompressedWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompressedWriter").finish_non_exhaustive()
    }
}

impl<W: Write> CompressedWriter<W> {
    /// Creates a writer to `stream`.
    ///
    /// # Errors
    /// If this build cannot write the compression, or there is no memory for the encoder.
    pub fn new(stream: W, compression: Compression) -> io::Result<Self> {
        Ok(Self(match compression.among(WRITTEN)? {
            Compression::Gzip => Form::Gzip(Box::new(GzipWriter::new(stream))),
            #[cfg(feature = "zstd")]
            Compression::Zstd => Form::Zstd(Box::new(ZstdWriter::new(stream)?)),
            _ => Form::Plain(stream),
        }))
    }

    /// The stream; `None` if a member ended with an error.
    pub fn stream(&self) -> Option<&W> {
        match &self.0 {
            Form::Plain(stream) => Some(stream),
            Form::Gzip(member) => member.stream(),
            #[cfg(feature = "zstd")]
            Form::Zstd(frame) => Some(frame.stream()),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            Form::Plain(stream) => stream,
            Form::Gzip(member) => member,
            #[cfg(feature = "zstd")]
            Form::Zstd(frame) => frame,
        }
    }

    /// Ends the member or frame, writes all buffered bytes and returns the stream.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(self) -> io::Result<W> {
        let mut stream = match self.0 {
            Form::Plain(stream) => stream,
            Form::Gzip(mut member) => member.complete()?,
            #[cfg(feature = "zstd")]
            Form::Zstd(frame) => frame.complete()?,
        };
        stream.flush()?;
        Ok(stream)
    }
}

impl<W: Write> Write for CompressedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use crate::envelope::Envelope;

    const TEXT: &[u8] = b"a;b 1\n";

    #[test]
    fn what_is_written_in_each_compression_is_read_back() {
        for &compression in WRITTEN {
            let mut writer = CompressedWriter::new(Vec::new(), compression).unwrap();
            writer.write_all(TEXT).unwrap();
            assert!(writer.stream().is_some());
            let (written, mut read) = (writer.complete().unwrap(), Vec::new());
            Envelope::new(&written[..]).read_to_end(&mut read).unwrap();
            assert_eq!((read.as_slice(), written == TEXT), (TEXT, compression == Compression::None));
        }
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn a_build_without_zstandard_refuses_it() {
        let error = CompressedWriter::new(Vec::new(), Compression::Zstd).unwrap_err();
        assert_eq!(error.to_string(), "unsupported compression: expected none or gzip, found zstd");
    }
}
