//! Continuous profiling: a new segment at regular intervals, on one stream or on a new one each time.

use std::io::{self, Write};

use borehole_wire::Compression;
use borehole_wire::envelope::CompressedWriter;

use super::frame_def::FrameDef;
use super::layout::{CHECKPOINT_INTERVAL, Header};
use super::segment_output::segment_output;
use super::write::{SampleDef, Writer};

/// Writes samples with timestamps, and begins a new segment when one has lasted long enough.
///
/// Every segment can be decoded alone. A new segment defines stacks on first use, so its definitions are bounded by its
/// own samples; reli repeats every stack seen since the start, which grows without bound.
///
/// Streams stay the caller's: the writer takes one, writes, flushes, and returns it, through
/// [`SegmentedWriter::finish`] or the function passed to [`SegmentedWriter::rotating`].
///
/// # Examples
///
/// One file per segment:
///
/// ```
/// use borehole_formats::Compression;
/// use borehole_formats::rbt::{FrameDef, SegmentedWriter};
///
/// let mut files: Vec<Vec<u8>> = Vec::new();
/// let open = |_index| Ok(Vec::new());
/// let close = |file| Ok(files.push(file));
/// let mut writer = SegmentedWriter::rotating(open, close, 10_000, 1_000_000, Compression::None)?;
/// for time_us in [0, 400_000, 1_100_000] {
///     writer.write_trace(&[FrameDef::php("main", "/app/index.php", 1)], time_us)?;
/// }
/// writer.finish()?;
/// assert_eq!(files.len(), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SegmentedWriter<'a, W: Write> {
    target: SegmentTarget<'a, W>,
    writer: Option<Writer<CompressedWriter<W>>>,
    header: Header,
    segment_us: u64,
    compression: Compression,
    index: u64,
    segment_start_us: u64,
    last_us: Option<u64>,
}

type Open<'a, W> = Box<dyn FnMut(u64) -> io::Result<W> + Send + 'a>;
type Close<'a, W> = Box<dyn FnMut(W) -> io::Result<()> + Send + 'a>;

enum SegmentTarget<'a, W> {
    /// One stream, stored here between segments.
    Single(Option<W>),
    Rotating {
        open: Open<'a, W>,
        close: Close<'a, W>,
    },
}

impl<'a, W: Write> SegmentedWriter<'a, W> {
    /// Writes all segments to `output`, one after the other.
    ///
    /// # Errors
    /// If the output cannot be written, or the compression is neither none nor gzip.
    pub fn single(output: W, period_us: u32, segment_us: u64, compression: Compression) -> io::Result<Self> {
        Self::new(SegmentTarget::Single(Some(output)), period_us, segment_us, compression)
    }

    /// Writes each segment to its own stream: `open` creates it for the segment's number from 0, and `close` receives
    /// it when the segment is complete.
    ///
    /// # Errors
    /// If a stream cannot be opened or written, or the compression is neither none nor gzip.
    pub fn rotating(
        open: impl FnMut(u64) -> io::Result<W> + Send + 'a,
        close: impl FnMut(W) -> io::Result<()> + Send + 'a,
        period_us: u32,
        segment_us: u64,
        compression: Compression,
    ) -> io::Result<Self> {
        let target = SegmentTarget::Rotating { open: Box::new(open), close: Box::new(close) };
        Self::new(target, period_us, segment_us, compression)
    }

    fn new(
        target: SegmentTarget<'a, W>,
        period_us: u32,
        segment_us: u64,
        compression: Compression,
    ) -> io::Result<Self> {
        let mut writer = Self {
            target,
            writer: None,
            header: Header { has_timestamps: true, period_us },
            segment_us,
            compression,
            index: 0,
            segment_start_us: 0,
            last_us: None,
        };
        writer.begin()?;
        Ok(writer)
    }

    /// Writes a sample taken at `time_us`, on any clock that runs forward.
    ///
    /// # Errors
    /// If a stream cannot be opened, written or closed.
    pub fn write_trace(&mut self, frames_leaf_first: &[FrameDef<'_>], time_us: u64) -> io::Result<()> {
        let delta_us = self.advance(time_us)?;
        let writer = self.writer()?;
        let stack = writer.define_trace(frames_leaf_first)?;
        writer.write_sample(&SampleDef { delta_us: Some(delta_us), ..SampleDef::of(stack) })?;
        self.last_us = Some(time_us);
        Ok(())
    }

    /// Like [`SegmentedWriter::write_trace`], with process and annotations.
    ///
    /// # Errors
    /// Those of [`SegmentedWriter::write_trace`].
    pub fn write_annotated(
        &mut self,
        frames_leaf_first: &[FrameDef<'_>],
        time_us: u64,
        pid: Option<i64>,
        annotations: &[(&[u8], &[u8])],
    ) -> io::Result<()> {
        let delta_us = Some(self.advance(time_us)?);
        let writer = self.writer()?;
        let stack = writer.define_trace(frames_leaf_first)?;
        writer.write_sample(&SampleDef { stack, count: 1, delta_us, pid, annotations: Some(annotations) })?;
        self.last_us = Some(time_us);
        Ok(())
    }

    /// Ends the last segment. Returns the stream if there is only one.
    ///
    /// # Errors
    /// If a stream cannot be written or closed, or the last segment has failed before: its stream is incomplete and
    /// cannot be returned.
    pub fn finish(mut self) -> io::Result<Option<W>> {
        self.writer()?;
        self.complete()?;
        Ok(match self.target {
            SegmentTarget::Single(output) => output,
            SegmentTarget::Rotating { .. } => None,
        })
    }

    /// Rotates if it is time, and returns the microseconds since the previous sample: 0 for the first, and when the
    /// clock steps back. The difference continues over the boundary of segments. The sample counts as previous once it
    /// is written: the time of a rejected sample is not in the file.
    fn advance(&mut self, time_us: u64) -> io::Result<i64> {
        let last_us = self.last_us.unwrap_or_else(|| {
            self.segment_start_us = time_us;
            time_us
        });
        if time_us.saturating_sub(self.segment_start_us) >= self.segment_us {
            self.complete()?;
            self.index += 1;
            self.begin()?;
            self.segment_start_us = time_us;
        }
        Ok(i64::try_from(time_us.saturating_sub(last_us)).unwrap_or(i64::MAX))
    }

    fn writer(&mut self) -> io::Result<&mut Writer<CompressedWriter<W>>> {
        self.writer.as_mut().ok_or_else(|| io::Error::other("no open segment: the last one failed"))
    }

    fn begin(&mut self) -> io::Result<()> {
        let output = match &mut self.target {
            SegmentTarget::Single(output) => {
                output.take().ok_or_else(|| io::Error::other("no output: the last segment failed"))?
            }
            SegmentTarget::Rotating { open, .. } => open(self.index)?,
        };
        let output = segment_output(output, self.compression)?;
        let writer = Writer::new(output, self.header)?;
        self.writer = Some(writer.checkpoint_every(CHECKPOINT_INTERVAL));
        Ok(())
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let output = writer.finish()?.complete()?;
        match &mut self.target {
            SegmentTarget::Single(place) => {
                *place = Some(output);
                Ok(())
            }
            SegmentTarget::Rotating { close, .. } => close(output),
        }
    }
}
