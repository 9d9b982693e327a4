//! Which format samples are to become, and how.

use std::io::Write;

use borehole_formats::Export;
use borehole_formats::detect::Format;

use crate::Error;

/// An output format with its options. What does not concern the format is ignored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// The format.
    pub format: Format,
    /// Whether the whole output is gzip-compressed. `pprof` files always are.
    pub compression: Compression,
    /// The sampling period in microseconds of inputs that do not know theirs (`rbt`).
    pub period_us: Option<u32>,
    /// Whether samples carry timestamps (`rbt`).
    #[cfg(feature = "rbt")]
    pub timestamps: borehole_formats::rbt::Timestamps,
    /// Whether opcodes are written (`phpspy`).
    #[cfg(feature = "phpspy")]
    pub opcodes: borehole_formats::phpspy::Opcodes,
    /// What to do with names that are not UTF-8 (`speedscope`).
    #[cfg(feature = "speedscope")]
    pub utf8_errors: borehole_formats::speedscope::Utf8Errors,
    /// How the file is laid out (`tachyon`).
    #[cfg(feature = "tachyon")]
    pub tachyon: borehole_formats::tachyon::ExportOptions,
    /// The title (`flamegraph`).
    pub title: Option<String>,
    /// Whether each sample carries its frames (`jsonl`).
    pub flat: bool,
}

/// Whether an output is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// It is not.
    #[default]
    None,
    /// Gzip, at the default level.
    Gzip,
}

impl Target {
    /// `format` with default options.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            compression: Compression::None,
            period_us: None,
            #[cfg(feature = "rbt")]
            timestamps: Default::default(),
            #[cfg(feature = "phpspy")]
            opcodes: Default::default(),
            #[cfg(feature = "speedscope")]
            utf8_errors: Default::default(),
            #[cfg(feature = "tachyon")]
            tachyon: Default::default(),
            title: None,
            flat: false,
        }
    }

    /// A sink that writes the format to `output`. Nothing is complete before its `finish`.
    ///
    /// # Errors
    /// When the format cannot be written, or not by this build.
    pub fn exporter<'w>(&self, output: impl Write + 'w) -> Result<Box<dyn Export + 'w>, Error> {
        Ok(match self.format {
            #[cfg(feature = "rbt")]
            Format::Rbt => {
                let options = borehole_formats::rbt::ExportOptions {
                    timestamps: self.timestamps,
                    period_us: self.period_us,
                };
                Box::new(borehole_formats::rbt::Exporter::new(output, options))
            }
            #[cfg(feature = "tachyon")]
            Format::Tachyon => {
                let options = borehole_formats::tachyon::ExportOptions {
                    period_us: self.tachyon.period_us.or(self.period_us),
                    ..self.tachyon
                };
                let spool = || Ok(tempfile::spooled_tempfile(SPOOL_BYTES));
                Box::new(borehole_formats::tachyon::Exporter::new(output, options, spool))
            }
            #[cfg(feature = "phpspy")]
            Format::Phpspy => {
                let options = borehole_formats::phpspy::Options { opcodes: self.opcodes };
                Box::new(borehole_formats::phpspy::Exporter::new(output, options))
            }
            #[cfg(feature = "folded")]
            Format::Folded => Box::new(borehole_formats::folded::Exporter::new(
                output,
                borehole_formats::folded::Options::default(),
            )),
            #[cfg(feature = "collapsed")]
            Format::Collapsed => Box::new(borehole_formats::collapsed::Exporter::new(output)),
            #[cfg(feature = "pprof")]
            Format::Pprof => Box::new(borehole_formats::pprof::Exporter::new(
                output,
                borehole_formats::pprof::Compression::Gzip,
            )),
            #[cfg(feature = "speedscope")]
            Format::Speedscope => {
                let spool = || Ok(tempfile::spooled_tempfile(SPOOL_BYTES));
                Box::new(borehole_formats::speedscope::Exporter::new(output, self.utf8_errors, spool))
            }
            #[cfg(feature = "callgrind")]
            Format::Callgrind => Box::new(borehole_formats::callgrind::Exporter::new(output)),
            #[cfg(feature = "jsonl")]
            Format::Jsonl => {
                let options = borehole_formats::jsonl::ExportOptions { flat: self.flat };
                Box::new(borehole_formats::jsonl::Exporter::new(output, options))
            }
            #[cfg(feature = "flamegraph")]
            Format::FlameGraph => {
                let mut options = borehole_formats::flamegraph::Options::default();
                options.title = self.title.clone().unwrap_or(options.title);
                Box::new(borehole_formats::flamegraph::Exporter::new(output, options))
            }
            format => return Err(Error::NotWritable { format }),
        })
    }
}

/// How much of a spool stays in memory before it goes to a temporary file.
#[cfg(any(feature = "speedscope", feature = "tachyon"))]
const SPOOL_BYTES: usize = 1 << 20;
