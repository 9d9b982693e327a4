//! The outputs that samples are written to while they are taken.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use borehole_formats::rbt::layout::CHECKPOINT_INTERVAL;
use borehole_formats::rbt::{self, Timestamps, segment_output};
use borehole_formats::{CompressedWriter, Compression};
use borehole_model::{Context, ProfileSink, Sample, StringId, Tables};

/// A sink that can be flushed.
pub trait LiveSink: ProfileSink {
    /// Writes everything to a place that survives this program, as far as the format can. Called at least once a second.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether a segment may have other tables than the segment before.
    fn takes_new_tables(&self) -> bool {
        false
    }
}

/// The options of a live `rbt` file.
#[derive(Clone, Copy, Debug)]
pub struct RbtOptions {
    /// Whether samples store the time since the previous sample.
    pub timestamps: bool,
    /// The compression of each segment: none or gzip.
    pub compression: Compression,
    /// The number of samples from one checkpoint to the next.
    pub checkpoint_interval: u64,
}

impl Default for RbtOptions {
    fn default() -> Self {
        Self { timestamps: true, compression: Compression::None, checkpoint_interval: CHECKPOINT_INTERVAL }
    }
}

/// The streams of the segments of an `rbt` output. A function from the number of a segment to its stream is one.
pub trait SegmentStreams: Send {
    /// Opens the stream for the segment of this number. Returning the previous stream continues it.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&mut self, segment: u64) -> io::Result<SharedStream>;

    /// Called when the segment opened last is whole in its stream.
    ///
    /// # Errors
    /// If the segment cannot be brought to its place.
    fn complete(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<Open: FnMut(u64) -> io::Result<SharedStream> + Send> SegmentStreams for Open {
    fn open(&mut self, segment: u64) -> io::Result<SharedStream> {
        self(segment)
    }
}

/// A live `rbt` file, or several: flushed data can be read even if this program is killed.
pub struct RbtOutput {
    options: RbtOptions,
    streams: Box<dyn SegmentStreams>,
    /// The exporter of the current segment.
    exporter: Option<rbt::Exporter<CompressedWriter<SharedStream>>>,
    /// The number of segments begun.
    segments: u64,
    /// The time of the last sample of the completed segments, from which the next sample counts.
    last_time_us: Option<i64>,
}

impl RbtOutput {
    /// Creates an output, which opens nothing before the first segment.
    #[must_use]
    pub fn new(options: RbtOptions, streams: Box<dyn SegmentStreams>) -> Self {
        Self { options, streams, exporter: None, segments: 0, last_time_us: None }
    }

    /// Creates an output with a single stream for all segments.
    #[must_use]
    pub fn single(options: RbtOptions, stream: impl Write + Send + 'static) -> Self {
        let stream = SharedStream::new(stream);
        Self::new(options, Box::new(move |_: u64| Ok(stream.clone())))
    }

    /// The number of the segment begun last, even if its stream could not be opened: the stream that an
    /// error is about. 0 before the first segment.
    #[must_use]
    pub const fn segment_number(&self) -> u64 {
        self.segments.saturating_sub(1)
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(exporter) = self.exporter.take() else { return Ok(()) };
        self.last_time_us = exporter.last_time_us();
        if let Some(segment) = exporter.into_output()? {
            segment.complete()?;
        }
        self.streams.complete()
    }

    fn exporter(&mut self) -> io::Result<&mut rbt::Exporter<CompressedWriter<SharedStream>>> {
        self.exporter.as_mut().ok_or_else(|| io::Error::other("expected a segment before its samples"))
    }
}

impl ProfileSink for RbtOutput {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.exporter()?.sample(at, sample)
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.complete()?;
        let number = self.segments;
        self.segments += 1;
        let stream = self.streams.open(number)?;
        let RbtOptions { timestamps, checkpoint_interval, .. } = self.options;
        let options = rbt::ExportOptions {
            timestamps: if timestamps { Timestamps::Always } else { Timestamps::Never },
            // A session without a period samples as fast as it can; the format states this as 0.
            period_us: Some(0),
            checkpoint_interval: Some(checkpoint_interval),
        };
        let output = segment_output(stream, self.options.compression)?;
        let exporter = rbt::Exporter::new(output, options).continuing(self.last_time_us);
        self.exporter.insert(exporter).segment(at)
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.exporter()?.metadata(at, key, value)
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.complete()
    }
}

impl LiveSink for RbtOutput {
    fn flush(&mut self) -> io::Result<()> {
        self.exporter.as_mut().map_or(Ok(()), rbt::Exporter::flush)
    }

    /// Each segment defines everything that it uses.
    fn takes_new_tables(&self) -> bool {
        true
    }
}

/// A stream for one or several segments, written in sequence.
#[derive(Clone)]
pub struct SharedStream(Arc<Mutex<dyn Write + Send>>);

impl SharedStream {
    /// Creates a stream that writes to `stream`.
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }
}

impl From<File> for SharedStream {
    fn from(file: File) -> Self {
        Self::new(file)
    }
}

impl Write for SharedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}
