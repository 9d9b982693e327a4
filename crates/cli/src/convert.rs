//! `borehole convert`.

use borehole::{
    Format, ProfileSink, Recovery, SampleKind, Scrub, ScrubKey, SortByTime, Target, phpspy, pstats, rbt,
    speedscope, tachyon, trc,
};
use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::filter::{FilterArgs, StackShapeArgs, ValueArgs};
use crate::inputs::Inputs;
use crate::interrupt;
use crate::messages;
use crate::outputs::{self, OutputArgs};
use crate::values::RowLimit;

/// What to convert into what.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) details: Details,

    // For formats that hold one number a stack.
    #[command(flatten)]
    pub(crate) value: ValueArgs,

    /// Put samples and events in the order of time, those of all threads together; those of all inputs together, or of each with --label-inputs. What does not
    /// fit into memory waits in temporary files
    #[arg(long)]
    pub(crate) sort_by_time: bool,

    /// Give functions, files, labels and threads other names, equal ones the same; leave out events and metadata. See docs/share.md
    #[arg(long)]
    pub(crate) scrub: bool,

    /// A secret from which the new names are made, so that several outputs have the same ones [default: a random one]
    #[arg(long, value_name = "TEXT", requires = "scrub")]
    pub(crate) scrub_key: Option<String>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    #[command(flatten)]
    pub(crate) shape: StackShapeArgs,
}

/// What concerns one target format only.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Details {
    /// rbt, tachyon: the sampling period in microseconds of inputs that do not know theirs [default: 10000, 1000]
    #[arg(long, value_name = "US")]
    pub(crate) sampling_period: Option<u32>,

    /// rbt: whether samples carry timestamps [default: as the input]
    #[arg(long, alias = "rbt-timestamps", value_name = "MODE", value_enum)]
    pub(crate) timestamps: Option<Timestamps>,

    /// trc: write what readers of that release and later ones understand [default: newest]
    #[arg(long, value_name = "RELEASE", value_enum)]
    pub(crate) trc_readers: Option<TrcReaders>,

    /// speedscope: what to do with bytes of names that are not UTF-8
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) utf8_errors: Option<Utf8Errors>,

    /// phpspy: write opcodes
    #[arg(long)]
    pub(crate) with_opcode: bool,

    /// tachyon: how samples are compressed [default: as the input, or zstd]
    #[arg(long, value_name = "METHOD", value_enum)]
    pub(crate) tachyon_compression: Option<TachyonCompression>,

    /// tachyon: the order of the bytes of numbers [default: little]
    #[arg(long, value_name = "ORDER", value_enum)]
    pub(crate) tachyon_byte_order: Option<TachyonByteOrder>,

    /// tachyon: the layout of the header; the previews of Python 3.15 read the old one only [default: new]
    #[arg(long, value_name = "LAYOUT", value_enum)]
    pub(crate) tachyon_header: Option<TachyonHeader>,

    /// pstats-text: by what lines are sorted [default: nsamples]
    #[arg(long, value_name = "KEY", value_enum)]
    pub(crate) sort: Option<PstatsSort>,

    /// pstats-text: how many lines to print; 0 for all [default: 15]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<RowLimit>,

    /// pstats-text: leave the summary out
    #[arg(long)]
    pub(crate) no_summary: bool,

    /// flamegraph: the title
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// Whether samples of an rbt file carry timestamps.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Timestamps {
    /// Never: the smallest files
    None,
    /// The microseconds since the previous sample
    Delta,
}

/// How the samples of a tachyon file are compressed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TachyonCompression {
    /// Not at all
    None,
    /// Zstandard, as Python does
    Zstd,
}

/// The byte order of a tachyon file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TachyonByteOrder {
    /// As x86 and ARM write them
    Little,
    /// As s390x and PowerPC write them
    Big,
}

/// The layout of the header of a tachyon file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TachyonHeader {
    /// Of Python 3.15
    New,
    /// Of the previews of Python 3.15
    Old,
}

/// By what the statistics of functions are sorted. The names are those of Python.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PstatsSort {
    /// Samples that were executing the line
    Nsamples,
    /// Their time
    Tottime,
    /// The time of samples that had the line on the stack
    Cumtime,
    /// The share of samples that were executing the line
    SamplePct,
    /// The share of samples that had the line on the stack
    CumulPct,
    /// Samples that had the line on the stack
    NsamplesCumul,
    /// File, line and function
    Name,
}

/// Which readers have to understand a trc file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TrcReaders {
    /// Those of dial9 0.4 and later
    Newest,
    /// Those of 0.3.2 too: stacks in each event, no annotations, no lists and maps of any values
    #[value(name = "0.3.2")]
    V032,
}

/// What to do with bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Utf8Errors {
    /// Leave them out
    Ignore,
    /// Put U+FFFD in their place
    Substitute,
    /// Stop with an error
    Fail,
}

impl Details {
    fn apply(&self, target: &mut Target) {
        target.period_us = self.sampling_period;
        target.title.clone_from(&self.title);

        target.timestamps = match self.timestamps {
            None => rbt::Timestamps::AsSource,
            Some(Timestamps::None) => rbt::Timestamps::Never,
            Some(Timestamps::Delta) => rbt::Timestamps::Always,
        };
        target.trc_dialect = match self.trc_readers {
            None | Some(TrcReaders::Newest) => trc::Dialect::Newest,
            Some(TrcReaders::V032) => trc::Dialect::V032,
        };
        target.utf8_errors = match self.utf8_errors {
            None | Some(Utf8Errors::Ignore) => speedscope::Utf8Errors::Ignore,
            Some(Utf8Errors::Substitute) => speedscope::Utf8Errors::Substitute,
            Some(Utf8Errors::Fail) => speedscope::Utf8Errors::Fail,
        };
        target.tachyon = self.tachyon();
        target.pstats = self.pstats();
        target.opcodes = if self.with_opcode { phpspy::Opcodes::Write } else { phpspy::Opcodes::Omit };
    }
}

impl Details {
    fn pstats(&self) -> pstats::TextOptions {
        let otherwise = pstats::TextOptions::default();
        pstats::TextOptions {
            sort: self.sort.map_or(otherwise.sort, |key| match key {
                PstatsSort::Nsamples => pstats::Sort::Direct,
                PstatsSort::Tottime => pstats::Sort::DirectTime,
                PstatsSort::Cumtime => pstats::Sort::CumulativeTime,
                PstatsSort::SamplePct => pstats::Sort::DirectShare,
                PstatsSort::CumulPct => pstats::Sort::CumulativeShare,
                PstatsSort::NsamplesCumul => pstats::Sort::Cumulative,
                PstatsSort::Name => pstats::Sort::Name,
            }),
            limit: self.limit.map_or(otherwise.limit, RowLimit::as_option),
            summary: !self.no_summary,
        }
    }

    fn tachyon(&self) -> tachyon::ExportOptions {
        tachyon::ExportOptions {
            compression: self.tachyon_compression.map(|method| match method {
                TachyonCompression::None => tachyon::Compression::None,
                TachyonCompression::Zstd => tachyon::Compression::Zstd,
            }),
            byte_order: match self.tachyon_byte_order {
                None | Some(TachyonByteOrder::Little) => tachyon::ByteOrder::Little,
                Some(TachyonByteOrder::Big) => tachyon::ByteOrder::Big,
            },
            layout: match self.tachyon_header {
                None | Some(TachyonHeader::New) => tachyon::HeaderLayout::New,
                Some(TachyonHeader::Old) => tachyon::HeaderLayout::Old,
            },
            period_us: None,
        }
    }
}

pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let mut target = args.output.target_for(&args.inputs)?;
    args.details.apply(&mut target);
    target.value.clone_from(&args.value.value);
    let mut output = args.output.create(&target)?;
    let output_name = output.name().to_owned();
    let is_stream = output.destination().is_none() && target.is_stream();
    let mut exporter = target.exporter_to_file(&mut output)?;
    let mut inputs = args.inputs.clone();
    if matches!(target.format, Format::Perfetto | Format::ChromeTrace) {
        // A timeline has a place for each kind.
        inputs.reading.kind.get_or_insert(SampleKind::All);
    }
    let read = if args.scrub {
        let key = args.scrub_key.as_ref().map(|text| ScrubKey::of_text(text.as_bytes()));
        let mut scrub = Scrub::new(&mut *exporter, key.unwrap_or_else(ScrubKey::random));
        read(args, &inputs, &mut scrub, &output_name, is_stream)
    } else {
        read(args, &inputs, &mut *exporter, &output_name, is_stream)
    };
    let losses = exporter.losses();
    drop(exporter);
    let recovery = outputs::complete_after(output, is_stream, read)?;
    messages::losses(&losses, target.format.name());
    messages::interrupted(recovery.samples);
    Ok(Exit::after(&recovery))
}

/// Reads what is chosen of the inputs, in the order that is asked for.
fn read(
    args: &ConvertArgs,
    inputs: &Inputs,
    sink: &mut dyn ProfileSink,
    output: &str,
    is_stream: bool,
) -> anyhow::Result<Recovery> {
    let read_into = if is_stream { Inputs::read_into_stream } else { Inputs::read_into };
    args.shape.reading(sink, |shaped| {
        if args.sort_by_time {
            let mut sorted = SortByTime::new(shaped).with_samples();
            return read_into(inputs, &args.filter, &mut sorted, output);
        }
        read_into(inputs, &args.filter, shaped, output)
    })
}
