//! The output format and its options.

use std::io::Write;

use borehole_formats::detect::Format;
use borehole_formats::registry::{Destination, EventSupport};
#[cfg(feature = "tachyon")]
use borehole_formats::tachyon;
use borehole_formats::{Export, WriteOptions};

use crate::eventless::Eventless;
use crate::sorted::SortByTime;
use crate::spool::boxed_spool;
use crate::{Error, Output};

/// The suffix of the file that holds the samples of an incomplete output.
#[cfg(feature = "tachyon")]
const SPOOL_SUFFIX: &str = ".part";

/// The suffix of the file that holds its names.
#[cfg(feature = "tachyon")]
const JOURNAL_SUFFIX: &str = ".part.tables";

/// An output format with its options.
///
/// Compression of the whole output is an option of [`Output`]; `pprof` files are always compressed.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "folded", feature = "flamegraph"))] {
/// use borehole::formats::flamegraph::ExportOptions;
/// use borehole::{Format, Input, InputOptions, Source, Target, convert};
///
/// let folded = Source::reader("stacks", &b"main;query 3\n"[..]);
/// let input = Input::open(folded, &InputOptions::default())?;
/// let mut target = Target::new(Format::FlameGraph);
/// target.options.set(ExportOptions { title: "Checkout, 12:00".to_owned(), ..ExportOptions::default() });
/// let mut svg = Vec::new();
/// convert([input], &target, &mut svg)?;
/// assert!(String::from_utf8_lossy(&svg).contains("Checkout, 12:00"));
/// # }
/// # Ok::<(), borehole::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// The format.
    pub format: Format,
    /// The options of the format. Those of other formats are ignored.
    pub options: WriteOptions,
}

impl From<Format> for Target {
    fn from(format: Format) -> Self {
        Self::new(format)
    }
}

impl Target {
    /// Creates a target with the default options of `format`.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self { format, options: WriteOptions::default() }
    }

    /// Creates a sink that writes the format to `output`. The output is incomplete until `finish`.
    ///
    /// # Examples
    ///
    /// Write samples that come from no input:
    ///
    /// ```
    /// # #[cfg(feature = "folded")] {
    /// use borehole::model::{Context, Frame, Sample, Segment, Tables};
    /// use borehole::{Format, ProfileSink as _, Target};
    ///
    /// let (mut tables, segment) = (Tables::default(), Segment::default());
    /// let function = tables.intern_string(b"main")?;
    /// let frame = tables.intern_frame(&Frame::named(function))?;
    /// let stack = tables.intern_stack(None, frame)?;
    ///
    /// let mut folded = Vec::new();
    /// let mut exporter = Target::new(Format::Folded).exporter(&mut folded)?;
    /// let at = Context { tables: &tables, segment: &segment };
    /// exporter.segment(at)?;
    /// let _ = exporter.sample(at, &Sample { stack: Some(stack), count: 3, ..Sample::default() })?;
    /// exporter.finish(&tables)?;
    /// drop(exporter);
    /// assert_eq!(folded, b"main 3\n");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the format cannot be written, or not by this build.
    pub fn exporter<'w>(&self, output: impl Write + Send + 'w) -> Result<Box<dyn Export + Send + 'w>, Error> {
        let exporting = self.format.exporter().ok_or(Error::NotWritable { format: self.format })?;
        let destination = Destination { output: Box::new(output), spool: boxed_spool };
        let exporter = (exporting.start)(destination, &self.options);
        Ok(match exporting.events {
            EventSupport::Kept => exporter,
            EventSupport::ByTime => Box::new(SortByTime::new(exporter)),
            EventSupport::Lost => Box::new(Eventless::new(exporter)),
        })
    }

    /// Like [`Target::exporter`], but for a file.
    ///
    /// Data that the format has to hold back until its end is stored beside the file, so that [`Input`](crate::Input)
    /// can recover it if the program is killed (`tachyon`: `NAME.part`, and names in `NAME.part.tables`).
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "tachyon")] {
    /// use borehole::model::Tables;
    /// use borehole::{Compression, Existing, Format, Output, ProfileSink as _, Target};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let mut output = Output::create(folder.path().join("a.bin"), Existing::Keep, Compression::None)?;
    /// let mut exporter = Target::new(Format::Tachyon).exporter_to_file(&mut output)?;
    /// assert!(folder.path().join("a.bin.part").exists());
    /// exporter.finish(&Tables::default())?;
    /// drop(exporter);
    /// output.complete()?;
    /// assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the format cannot be written, or nothing can be created beside the file.
    pub fn exporter_to_file<'w>(&self, output: &'w mut Output) -> Result<Box<dyn Export + Send + 'w>, Error> {
        #[cfg(feature = "tachyon")]
        if self.format == Format::Tachyon
            && let Some(spool) = output.create_beside(SPOOL_SUFFIX)?
            && let Some(journal) = output.create_beside(JOURNAL_SUFFIX)?
        {
            return Ok(Box::new(Eventless::new(self.journaled_exporter(output, spool, journal))));
        }
        self.exporter(output)
    }

    #[cfg(feature = "tachyon")]
    fn journaled_exporter<'w>(
        &self,
        output: impl Write + Send + 'w,
        spool: std::fs::File,
        journal: std::fs::File,
    ) -> Box<dyn Export + Send + 'w> {
        let mut spool = Some(spool);
        let make_spool =
            move || spool.take().ok_or_else(|| std::io::Error::other("expected one spool, found none"));
        Box::new(
            tachyon::Exporter::new(output, tachyon::ExportOptions::of(&self.options), make_spool)
                .with_journal(journal),
        )
    }
}
