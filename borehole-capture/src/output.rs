//! Where samples go while they are taken.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use borehole_formats::envelope::GzipWriter;
use borehole_formats::rbt::layout::CHECKPOINT_INTERVAL;
use borehole_formats::rbt::{self, Compression, Timestamps};
use borehole_model::{Context, ProfileSink, Sample, StringId, Tables};

/// A sink that can be made to write out what it has.
pub trait Output: ProfileSink {
    /// Brings everything to where it survives this program, as far as the format can. Called at least once a second.
    ///
    /// # Errors
    /// When it cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether a segment may come with other tables than the one before.
    fn forgets(&self) -> bool {
        false
    }
}

/// How samples become a live `rbt` file.
#[derive(Clone, Copy, Debug)]
pub struct RbtOptions {
    /// Whether samples carry the time since the previous one.
    pub timestamps: bool,
    /// Whether each segment is a gzip member.
    pub compression: Compression,
    /// After how many samples a checkpoint is written.
    pub checkpoint_interval: u64,
}

impl Default for RbtOptions {
    fn default() -> Self {
        Self { timestamps: false, compression: Compression::None, checkpoint_interval: CHECKPOINT_INTERVAL }
    }
}

/// Opens the stream for the segment of this number. Answering the one before continues it.
pub type OpenStream = Box<dyn FnMut(u64) -> io::Result<Stream> + Send>;

/// A live `rbt` file, or several: what was flushed can be read even if this program is killed.
pub struct RbtOutput {
    options: RbtOptions,
    open: OpenStream,
    segment: Option<Segment>,
    segments: u64,
}

/// The segment that is being written.
struct Segment {
    exporter: rbt::Exporter<Member>,
    member: Member,
}

impl RbtOutput {
    /// Nothing is opened before the first segment.
    #[must_use]
    pub fn new(options: RbtOptions, open: OpenStream) -> Self {
        Self { options, open, segment: None, segments: 0 }
    }

    /// A single stream for all segments.
    #[must_use]
    pub fn single(options: RbtOptions, stream: impl Write + Send + 'static) -> Self {
        let stream = Stream::new(stream);
        Self::new(options, Box::new(move |_| Ok(stream.clone())))
    }

    fn complete(&mut self, tables: &Tables) -> io::Result<()> {
        let Some(Segment { mut exporter, member }) = self.segment.take() else { return Ok(()) };
        exporter.finish(tables)?;
        member.complete()
    }

    fn exporter(&mut self) -> io::Result<&mut rbt::Exporter<Member>> {
        let segment = self.segment.as_mut();
        let segment = segment.ok_or_else(|| io::Error::other("expected a segment before its samples"))?;
        Ok(&mut segment.exporter)
    }
}

impl ProfileSink for RbtOutput {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.exporter()?.sample(at, sample)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.complete(at.tables)?;
        let stream = (self.open)(self.segments)?;
        self.segments += 1;
        let member = match self.options.compression {
            Compression::None => Member::Plain(stream),
            Compression::Gzip => Member::Gzip(Arc::new(Mutex::new(GzipWriter::new(stream)))),
        };
        let timestamps = if self.options.timestamps { Timestamps::Always } else { Timestamps::Never };
        let checkpoint_interval = Some(self.options.checkpoint_interval);
        let options = rbt::ExportOptions { timestamps, checkpoint_interval, ..rbt::ExportOptions::default() };
        let exporter = rbt::Exporter::new(member.clone(), options);
        self.segment.insert(Segment { exporter, member }).exporter.segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.exporter()?.metadata(at, key, value)
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        self.complete(tables)
    }
}

impl Output for RbtOutput {
    fn flush(&mut self) -> io::Result<()> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.exporter.flush())
    }

    /// Each segment defines what it uses.
    fn forgets(&self) -> bool {
        true
    }
}

/// What several segments are written to, one after the other.
#[derive(Clone)]
pub struct Stream(Arc<Mutex<dyn Write + Send>>);

impl Stream {
    /// Writes to `stream`.
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

impl From<File> for Stream {
    fn from(file: File) -> Self {
        Self::new(file)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// The stream of one segment, shared by who writes it and who completes it.
#[derive(Clone)]
enum Member {
    Plain(Stream),
    Gzip(Arc<Mutex<GzipWriter<Stream>>>),
}

impl Member {
    fn complete(self) -> io::Result<()> {
        match self {
            Self::Plain(mut stream) => stream.flush(),
            Self::Gzip(member) => {
                let mut stream = member.lock().unwrap_or_else(PoisonError::into_inner).complete()?;
                stream.flush()
            }
        }
    }
}

impl Write for Member {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Gzip(member) => member.lock().unwrap_or_else(PoisonError::into_inner).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Gzip(member) => member.lock().unwrap_or_else(PoisonError::into_inner).flush(),
        }
    }
}
