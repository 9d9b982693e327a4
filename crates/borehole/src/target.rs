//! The output format and its options.

#[cfg(feature = "tachyon")]
use std::fs::File;
use std::io::Write;

use borehole_formats::Export;
#[cfg(feature = "callgrind")]
use borehole_formats::callgrind;
#[cfg(feature = "chrome-trace")]
use borehole_formats::chrome_trace;
#[cfg(feature = "collapsed")]
use borehole_formats::collapsed;
use borehole_formats::detect::Format;
#[cfg(feature = "flamegraph")]
use borehole_formats::flamegraph;
#[cfg(feature = "folded")]
use borehole_formats::folded;
#[cfg(feature = "gecko")]
use borehole_formats::gecko;
#[cfg(feature = "jsonl")]
use borehole_formats::jsonl;
#[cfg(feature = "otlp")]
use borehole_formats::otlp;
#[cfg(feature = "perfetto")]
use borehole_formats::perfetto;
#[cfg(feature = "phpspy")]
use borehole_formats::phpspy;
#[cfg(feature = "pprof")]
use borehole_formats::pprof;
#[cfg(feature = "pstats")]
use borehole_formats::pstats;
#[cfg(feature = "rbt")]
use borehole_formats::rbt;
#[cfg(feature = "speedscope")]
use borehole_formats::speedscope;
#[cfg(feature = "tachyon")]
use borehole_formats::tachyon;
#[cfg(feature = "tachyon-jsonl")]
use borehole_formats::tachyon_jsonl;
#[cfg(feature = "trc")]
use borehole_formats::trc;

use crate::eventless::Eventless;
use crate::sorted::SortByTime;
#[cfg(any(feature = "speedscope", feature = "gecko", feature = "otlp", feature = "tachyon"))]
use crate::spool::spool;
use crate::{Error, Output};

/// The suffix of the file that holds the samples of an incomplete output.
#[cfg(feature = "tachyon")]
const SPOOL_SUFFIX: &str = ".part";

/// The suffix of the file that holds its names.
#[cfg(feature = "tachyon")]
const JOURNAL_SUFFIX: &str = ".part.tables";

/// An output format with its options. Options of other formats are ignored.
///
/// Compression of the whole output is an option of [`Output`]; `pprof` files are always compressed.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "folded", feature = "flamegraph"))] {
/// use borehole::{Format, Input, InputOptions, Source, Target, convert};
///
/// let folded = Source::reader("stacks", &b"main;query 3\n"[..]);
/// let input = Input::open(folded, &InputOptions::default())?;
/// let mut target = Target::new(Format::FlameGraph);
/// target.title = Some("Checkout, 12:00".to_owned());
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
    /// The sampling period in microseconds for inputs without one (`rbt`).
    pub period_us: Option<u32>,
    /// Whether samples carry timestamps (`rbt`).
    #[cfg(feature = "rbt")]
    pub timestamps: rbt::Timestamps,
    /// The readers that must understand the output (`trc`).
    #[cfg(feature = "trc")]
    pub trc_dialect: trc::Dialect,
    /// Whether opcodes are written (`phpspy`).
    #[cfg(feature = "phpspy")]
    pub opcodes: phpspy::Opcodes,
    /// The treatment of names that are not UTF-8 (`speedscope`).
    #[cfg(feature = "speedscope")]
    pub utf8_errors: speedscope::Utf8Errors,
    /// The layout of the file (`tachyon`).
    #[cfg(feature = "tachyon")]
    pub tachyon: tachyon::ExportOptions,
    /// The content and order of the text (`pstats-text`).
    #[cfg(feature = "pstats")]
    pub pstats: pstats::TextOptions,
    /// The title (`flamegraph`).
    pub title: Option<String>,
    /// Whether each sample carries its frames (`jsonl`).
    pub flat: bool,
    /// The value type of single-value formats, by its kind, or kind and unit; `None`: the default of the first profile.
    pub value: Option<String>,
}

/// The compression of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Gzip at the default level.
    Gzip,
}

impl Target {
    /// Whether the output can be read while it is written, sample by sample, so that everything before an error in an input
    /// is useful.
    #[must_use]
    pub const fn is_stream(&self) -> bool {
        matches!(self.format, Format::Jsonl | Format::Rbt | Format::Trc | Format::Phpspy | Format::Folded)
    }

    /// Creates a target with the default options of `format`.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            period_us: None,
            #[cfg(feature = "rbt")]
            timestamps: Default::default(),
            #[cfg(feature = "trc")]
            trc_dialect: Default::default(),
            #[cfg(feature = "phpspy")]
            opcodes: Default::default(),
            #[cfg(feature = "speedscope")]
            utf8_errors: Default::default(),
            #[cfg(feature = "tachyon")]
            tachyon: Default::default(),
            #[cfg(feature = "pstats")]
            pstats: Default::default(),
            title: None,
            flat: false,
            value: None,
        }
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
    pub fn exporter<'w>(&self, output: impl Write + 'w) -> Result<Box<dyn Export + 'w>, Error> {
        let exporter = self.exporter_of_format(output)?;
        Ok(match self.format {
            Format::Trc | Format::Jsonl => exporter,
            // These formats identify related events by their order.
            Format::Perfetto | Format::ChromeTrace => Box::new(SortByTime::new(exporter)),
            _ => Box::new(Eventless::new(exporter)),
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
    pub fn exporter_to_file<'w>(&self, output: &'w mut Output) -> Result<Box<dyn Export + 'w>, Error> {
        #[cfg(feature = "tachyon")]
        if self.format == Format::Tachyon
            && let Some(spool) = output.create_beside(SPOOL_SUFFIX)?
            && let Some(journal) = output.create_beside(JOURNAL_SUFFIX)?
        {
            return Ok(Box::new(Eventless::new(self.journaled_exporter(output, spool, journal))));
        }
        self.exporter(output)
    }

    fn exporter_of_format<'w>(&self, output: impl Write + 'w) -> Result<Box<dyn Export + 'w>, Error> {
        match self.format {
            #[cfg(feature = "rbt")]
            Format::Rbt => Ok(Box::new(rbt::Exporter::new(output, self.rbt_options()))),
            #[cfg(feature = "tachyon")]
            Format::Tachyon => Ok(self.tachyon_exporter(output)),
            #[cfg(feature = "trc")]
            Format::Trc => {
                let options = trc::ExportOptions { dialect: self.trc_dialect };
                Ok(Box::new(trc::Exporter::new(output, options)))
            }
            #[cfg(feature = "phpspy")]
            Format::Phpspy => {
                let options = phpspy::ExportOptions { opcodes: self.opcodes };
                Ok(Box::new(phpspy::Exporter::new(output, options)))
            }
            #[cfg(feature = "folded")]
            Format::Folded => {
                Ok(self.weighed(folded::Exporter::new(output, folded::ExportOptions::default())))
            }
            #[cfg(feature = "collapsed")]
            Format::Collapsed => Ok(self.weighed(collapsed::Exporter::new(output))),
            #[cfg(feature = "pstats")]
            Format::Pstats => Ok(self.weighed(pstats::Exporter::new(output))),
            #[cfg(feature = "pstats")]
            Format::PstatsText => Ok(self.weighed(pstats::TextExporter::new(output, self.pstats))),
            #[cfg(feature = "tachyon-jsonl")]
            Format::TachyonJsonl => Ok(Box::new(tachyon_jsonl::Exporter::new(output))),
            #[cfg(feature = "gecko")]
            Format::Gecko => Ok(Box::new(gecko::Exporter::new(output, || Ok(spool())))),
            #[cfg(feature = "otlp")]
            Format::Otlp => Ok(Box::new(otlp::Exporter::new(output, || Ok(spool())))),
            #[cfg(feature = "pprof")]
            Format::Pprof => Ok(Box::new(pprof::Exporter::new(output, pprof::Compression::Gzip))),
            #[cfg(feature = "speedscope")]
            Format::Speedscope => {
                Ok(Box::new(speedscope::Exporter::new(output, self.speedscope_options(), || Ok(spool()))))
            }
            #[cfg(feature = "callgrind")]
            Format::Callgrind => Ok(self.weighed(callgrind::Exporter::new(output))),
            #[cfg(feature = "jsonl")]
            Format::Jsonl => {
                Ok(Box::new(jsonl::Exporter::new(output, jsonl::ExportOptions { flat: self.flat })))
            }
            #[cfg(feature = "flamegraph")]
            Format::FlameGraph => {
                let mut options = flamegraph::ExportOptions::default();
                options.title = self.title.clone().unwrap_or(options.title);
                Ok(self.weighed(flamegraph::Exporter::new(output, options)))
            }
            #[cfg(feature = "perfetto")]
            Format::Perfetto => Ok(Box::new(perfetto::Exporter::new(output))),
            #[cfg(feature = "chrome-trace")]
            Format::ChromeTrace => Ok(Box::new(chrome_trace::Exporter::new(output))),
            format => {
                drop(output);
                Err(Error::NotWritable { format })
            }
        }
    }

    /// Makes an exporter of a single-value format.
    #[cfg(any(
        feature = "folded",
        feature = "collapsed",
        feature = "pstats",
        feature = "callgrind",
        feature = "flamegraph"
    ))]
    fn weighed<'w>(&self, exporter: impl Export + 'w) -> Box<dyn Export + 'w> {
        Box::new(borehole_formats::Weighed::new(exporter, self.value.as_deref()))
    }

    #[cfg(feature = "rbt")]
    const fn rbt_options(&self) -> rbt::ExportOptions {
        let Self { timestamps, period_us, .. } = *self;
        rbt::ExportOptions { timestamps, period_us, checkpoint_interval: None }
    }

    #[cfg(feature = "speedscope")]
    fn speedscope_options(&self) -> speedscope::ExportOptions {
        speedscope::ExportOptions { utf8_errors: self.utf8_errors, value: self.value.clone() }
    }

    #[cfg(feature = "tachyon")]
    fn tachyon_exporter<'w>(&self, output: impl Write + 'w) -> Box<dyn Export + 'w> {
        Box::new(tachyon::Exporter::new(output, self.tachyon_options(), || Ok(spool())))
    }

    #[cfg(feature = "tachyon")]
    fn journaled_exporter<'w>(
        &self,
        output: impl Write + 'w,
        spool: File,
        journal: File,
    ) -> Box<dyn Export + 'w> {
        let mut spool = Some(spool);
        let make_spool =
            move || spool.take().ok_or_else(|| std::io::Error::other("expected one spool, found none"));
        Box::new(tachyon::Exporter::new(output, self.tachyon_options(), make_spool).with_journal(journal))
    }

    #[cfg(feature = "tachyon")]
    fn tachyon_options(&self) -> tachyon::ExportOptions {
        let period_us = self.tachyon.period_us.or(self.period_us);
        tachyon::ExportOptions { period_us, ..self.tachyon }
    }
}
