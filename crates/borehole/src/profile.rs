//! A profile in memory: made by a program, or read from a file of any format.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

use borehole_formats::Losses;
use borehole_model::{
    Context, Frame, FrameId, Label, LabelValue, LabelsId, ProfileSink, Recovery, Sample, Segment, StackId,
    StringId, TableFull, Tables, Thread,
};

use crate::stored::StoredSamples;
use crate::{Error, Input, Target};

/// A profile that owns its samples, for programs that make one or look at one more than once.
///
/// Frames are interned once, stacks are interned by their frames, and samples refer to stacks. Memory grows with the number
/// of samples: [`convert`](crate::convert) and [`Input::read_into`] stream instead. Events are not kept.
///
/// # Examples
///
/// A sampler of the program's own:
///
/// ```
/// # #[cfg(feature = "pprof")] {
/// use borehole::model::Sample;
/// use borehole::{Format, Profile};
///
/// let mut profile = Profile::every(std::time::Duration::from_millis(10));
/// let main = profile.frame("main")?;
/// let query = profile.frame_at("query", "src/db.rs", 12)?;
/// for stack in [&[main][..], &[main, query], &[main, query]] {
///     let stack = profile.stack(stack)?;
///     profile.add(&Sample { thread: Some(1), ..Sample::of(stack) });
/// }
/// let mut file = Vec::new();
/// profile.write(Format::Pprof, &mut file)?;
/// assert_eq!(&file[..2], [0x1f, 0x8b]);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Several value types, labels and times:
///
/// ```
/// # #[cfg(feature = "jsonl")] {
/// use borehole::model::{Sample, Thread, ValueType};
/// use borehole::{Format, Profile};
///
/// let mut profile = Profile::default();
/// profile.segment_mut().value_types = vec![ValueType::new("alloc_space", "bytes")];
/// let stack = [profile.frame("main")?, profile.frame("Vec::push")?];
/// let stack = profile.stack(&stack)?;
/// let labels = Some(profile.labels(&[("url", "/carts")])?);
/// profile.name_thread(Thread { process: Some(4711), number: 1 }, "worker")?;
/// let (process, thread) = (Some(4711), Some(1));
/// let sample = Sample { process, thread, labels, time_ns: Some(1_000_000), values: &[4096], ..Sample::of(stack) };
/// profile.add(&sample);
/// assert_eq!(profile.samples().map(|(_, sample)| sample.values[0]).sum::<i64>(), 4096);
/// let mut lines = Vec::new();
/// profile.write(Format::Jsonl, &mut lines)?;
/// assert!(String::from_utf8(lines)?.contains("worker"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Profile {
    tables: Tables,
    samples: StoredSamples,
    /// The names of threads, each with the index of its segment.
    threads: Vec<(usize, Thread, StringId)>,
    /// Metadata after the first sample of its segment.
    late_metadata: Vec<(usize, StringId, StringId)>,
}

impl Profile {
    /// Creates a profile whose samples are taken at regular times.
    #[must_use]
    pub fn every(period: Duration) -> Self {
        let mut profile = Self::default();
        profile.segment_mut().period_ns = u64::try_from(period.as_nanos()).ok();
        profile
    }

    /// Reads all samples of `input`.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "folded")] {
    /// use borehole::{Input, InputOptions, Profile, Source};
    ///
    /// let source = Source::reader("stacks", &b"main;query 3\nmain 1\n"[..]);
    /// let (profile, recovery) = Profile::read(Input::open(source, &InputOptions::default())?)?;
    /// assert_eq!((profile.samples().count(), recovery.samples), (2, 4));
    /// # }
    /// # Ok::<(), borehole::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Input::read_into`].
    pub fn read(input: Input) -> Result<(Self, Recovery), Error> {
        let (mut profile, mut tables) = (Self::default(), Tables::default());
        let recovery = input.read_into(&mut tables, &mut Reading(&mut profile))?;
        profile.tables = tables;
        Ok((profile, recovery))
    }

    /// The strings, frames, stacks and label sets that samples refer to.
    #[must_use]
    pub const fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The tables, to intern frames with more than a name, a file and a line.
    pub const fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// The segment of the samples that are added next: their period, value types, clock and process.
    pub fn segment_mut(&mut self) -> &mut Segment {
        self.samples.segment_mut()
    }

    /// Begins another segment: samples of different processes or with other value types are in segments of their own.
    pub fn begin_segment(&mut self, segment: Segment) {
        self.samples.begin(segment);
    }

    /// Adds metadata to the segment.
    ///
    /// # Errors
    /// If a table is full.
    pub fn add_metadata(&mut self, key: &str, value: &str) -> Result<(), TableFull> {
        let pair = (self.tables.intern_string(key.as_bytes())?, self.tables.intern_string(value.as_bytes())?);
        self.segment_mut().metadata.push(pair);
        Ok(())
    }

    /// The frame of a function.
    ///
    /// # Errors
    /// If a table is full.
    pub fn frame(&mut self, function: &str) -> Result<FrameId, TableFull> {
        let function = self.tables.intern_string(function.as_bytes())?;
        self.tables.intern_frame(&Frame::named(function))
    }

    /// The frame of a function at a line, 1-based, of a file.
    ///
    /// # Errors
    /// If a table is full.
    pub fn frame_at(&mut self, function: &str, file: &str, line: u32) -> Result<FrameId, TableFull> {
        let function = self.tables.intern_string(function.as_bytes())?;
        let file = Some(self.tables.intern_string(file.as_bytes())?);
        self.tables.intern_frame(&Frame { file, line: Some(line.into()), ..Frame::named(function) })
    }

    /// The stack of these frames, from the root to the leaf; `None` for none.
    ///
    /// # Errors
    /// If a table is full.
    pub fn stack(&mut self, frames_root_first: &[FrameId]) -> Result<Option<StackId>, TableFull> {
        frames_root_first
            .iter()
            .try_fold(None, |parent, &frame| self.tables.intern_stack(parent, frame).map(Some))
    }

    /// The set of these labels.
    ///
    /// # Errors
    /// If a table is full.
    pub fn labels(&mut self, labels: &[(&str, &str)]) -> Result<LabelsId, TableFull> {
        let mut set = Vec::new();
        for (key, value) in labels {
            let key = self.tables.intern_string(key.as_bytes())?;
            set.push(Label { key, value: LabelValue::Text(self.tables.intern_string(value.as_bytes())?) });
        }
        self.tables.intern_labels(&set)
    }

    /// Names a thread.
    ///
    /// # Errors
    /// If a table is full.
    pub fn name_thread(&mut self, thread: Thread, name: &str) -> Result<(), TableFull> {
        let name = self.tables.intern_string(name.as_bytes())?;
        let segment = self.last_segment();
        self.threads.push((segment, thread, name));
        Ok(())
    }

    /// Adds a sample to the segment.
    pub fn add(&mut self, sample: &Sample<'_>) {
        self.segment_mut().has_times |= sample.time_ns.is_some();
        self.samples.add(sample);
    }

    /// The samples, each with its segment, in the order in which they were added.
    pub fn samples(&self) -> impl Iterator<Item = (Context<'_>, Sample<'_>)> {
        let stored = (0..self.samples.len()).filter_map(|index| self.samples.get(index));
        stored.map(|(segment, sample)| (self.at(segment), sample))
    }

    /// Writes the profile. Returns what the format could not hold.
    ///
    /// # Errors
    /// If the format cannot be written, or the output fails.
    pub fn write(&self, target: impl Into<Target>, output: impl Write + Send) -> Result<Losses, Error> {
        let mut exporter = target.into().exporter(output)?;
        let written = self.stream_into(&mut *exporter).and_then(|_| exporter.finish(&self.tables));
        written.map_err(|error| Error::reading("", error.into()))?;
        Ok(exporter.losses())
    }

    /// Streams everything into `sink` without finishing it. Its ids are those of [`Profile::tables`].
    ///
    /// # Errors
    /// If the sink fails.
    pub fn stream_into(&self, sink: &mut dyn ProfileSink) -> io::Result<ControlFlow<()>> {
        let mut begun = 0;
        for (segment, sample) in (0..self.samples.len()).filter_map(|index| self.samples.get(index)) {
            self.begin_up_to(segment + 1, &mut begun, sink)?;
            if sink.sample(self.at(segment), &sample)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.begin_up_to(self.samples.segments().len(), &mut begun, sink)?;
        for &(segment, key, value) in &self.late_metadata {
            sink.metadata(self.at(segment), key, value)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins the segments before `end` that have not begun, with the names of their threads.
    fn begin_up_to(&self, end: usize, begun: &mut usize, sink: &mut dyn ProfileSink) -> io::Result<()> {
        for segment in *begun..end {
            sink.segment(self.at(segment))?;
            // They were named in the order of the segments.
            let first = self.threads.partition_point(|&(of, ..)| of < segment);
            for &(_, thread, name) in self.threads[first..].iter().take_while(|&&(of, ..)| of == segment) {
                sink.thread(self.at(segment), thread, name)?;
            }
        }
        *begun = end.max(*begun);
        Ok(())
    }

    fn at(&self, segment: usize) -> Context<'_> {
        Context { tables: &self.tables, segment: &self.samples.segments()[segment] }
    }

    fn last_segment(&mut self) -> usize {
        self.samples.segment_mut();
        self.samples.segments().len() - 1
    }
}

/// Takes what is read with the tables that the profile gets afterwards.
struct Reading<'p>(&'p mut Profile);

impl ProfileSink for Reading<'_> {
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.0.begin_segment(at.segment.clone());
        Ok(())
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.samples.add_of(at.segment, sample);
        Ok(ControlFlow::Continue(()))
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        let segment = self.0.last_segment();
        self.0.threads.push((segment, thread, name));
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        let segment = self.0.last_segment();
        self.0.late_metadata.push((segment, key, value));
        Ok(())
    }
}
