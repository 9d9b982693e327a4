//! `borehole convert`.

use borehole::formats::{flamegraph, phpspy, pstats, rbt, speedscope, tachyon, trc};
use borehole::{
    Compression, Format, ProfileSink, Recovery, Redact, RedactKey, SampleKind, SortByTime, Target,
};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::filter::{FilterArgs, StackShapeArgs, ValueArgs};
use crate::inputs::Inputs;
use crate::interrupt;
use crate::messages;
use crate::outputs::{self, OutputArgs};
use crate::values::RowLimit;

/// The arguments of `borehole convert`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) inputs: Inputs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) details: FormatOptions,

    // For formats that hold one number per stack.
    #[command(flatten)]
    pub(crate) value: ValueArgs,

    /// Sort samples and events by time, across threads and inputs (with --label-inputs, per input); uses temporary files
    /// if they do not fit into memory
    #[arg(long)]
    pub(crate) sort_by_time: bool,

    /// Replace names of functions, files, labels and threads, equal names by equal ones; drop metadata (docs/share.md)
    #[arg(long, alias = "scrub")]
    pub(crate) redact: bool,

    /// A secret that determines the new names, to get the same names in several outputs [default: random]
    #[arg(long, alias = "scrub-key", value_name = "TEXT", requires = "redact")]
    pub(crate) redact_key: Option<String>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    #[command(flatten)]
    pub(crate) shape: StackShapeArgs,
}

/// Options that apply to one output format only.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FormatOptions {
    /// rbt, tachyon: sampling period in microseconds of inputs without one [default: 10000, 1000]
    #[arg(long, value_name = "US")]
    pub(crate) sampling_period: Option<u32>,

    /// rbt: whether samples have timestamps [default: as in the input]
    #[arg(long, alias = "rbt-timestamps", value_name = "MODE", value_enum)]
    pub(crate) timestamps: Option<TimestampMode>,

    /// trc: oldest release whose readers must understand the output [default: newest]
    #[arg(long, value_name = "RELEASE", value_enum)]
    pub(crate) trc_readers: Option<TrcReaders>,

    /// speedscope: treatment of names that are not UTF-8
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) utf8_errors: Option<Utf8ErrorMode>,

    /// speedscope: one profile of all processes and threads, without times
    #[arg(long)]
    pub(crate) combine: bool,

    /// phpspy: write opcodes
    #[arg(long)]
    pub(crate) with_opcode: bool,

    /// tachyon: compression of samples [default: as in the input, else zstd]
    #[arg(long, value_name = "METHOD", value_parser = tachyon_compression())]
    pub(crate) tachyon_compression: Option<Compression>,

    /// tachyon: byte order of numbers [default: little]
    #[arg(long, value_name = "ORDER", value_enum)]
    pub(crate) tachyon_byte_order: Option<TachyonByteOrder>,

    /// tachyon: layout of the header; previews of Python 3.15 read only the old one [default: new]
    #[arg(long, value_name = "LAYOUT", value_enum)]
    pub(crate) tachyon_header: Option<TachyonHeader>,

    /// pstats-text: sort key [default: nsamples]
    #[arg(long, value_name = "KEY", value_enum)]
    pub(crate) sort: Option<PstatsSort>,

    /// pstats-text: number of lines; 0 for all [default: 15]
    #[arg(long, value_name = "COUNT")]
    pub(crate) limit: Option<RowLimit>,

    /// pstats-text: omit the summary
    #[arg(long)]
    pub(crate) no_summary: bool,

    /// flamegraph: title
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
}

/// Whether samples of an rbt file have timestamps.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TimestampMode {
    /// No timestamps: the smallest files
    None,
    /// Microseconds since the previous sample
    Delta,
}

/// Parses the compression of samples in a tachyon file.
fn tachyon_compression() -> impl TypedValueParser<Value = Compression> {
    let possible =
        [(Compression::None, "No compression"), (Compression::Zstd, "Zstandard, as Python writes it")];
    let possible = possible.map(|(compression, help)| PossibleValue::new(compression.name()).help(help));
    PossibleValuesParser::new(possible).try_map(|name| name.parse::<Compression>())
}

/// The byte order of a tachyon file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TachyonByteOrder {
    /// The order of x86 and ARM
    Little,
    /// The order of s390x and PowerPC
    Big,
}

/// The layout of the header of a tachyon file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TachyonHeader {
    /// The layout of Python 3.15
    New,
    /// The layout of previews of Python 3.15
    Old,
}

/// The sort keys of function statistics, with Python's names.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PstatsSort {
    /// Self samples of the line
    Nsamples,
    /// Self time of the line
    Tottime,
    /// Total time of the line
    Cumtime,
    /// Self share of samples
    SamplePct,
    /// Total share of samples
    CumulPct,
    /// Total samples of the line
    NsamplesCumul,
    /// File, line and function
    Name,
}

/// The readers that must understand a trc file.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TrcReaders {
    /// dial9 0.4 and later
    Newest,
    /// Also dial9 0.3.2: stacks in each event, no annotations, no lists and maps of mixed values
    #[value(name = "0.3.2")]
    V032,
}

/// The treatment of bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Utf8ErrorMode {
    /// Drop the bytes
    Ignore,
    /// Replace them with U+FFFD
    Substitute,
    /// Stop with an error
    Fail,
}

impl FormatOptions {
    fn apply(&self, target: &mut Target) {
        let options = &mut target.options;
        options.period_us = self.sampling_period;
        if let Some(title) = self.title.clone() {
            options.set(flamegraph::ExportOptions { title, ..Default::default() });
        }
        let timestamps = match self.timestamps {
            None => rbt::Timestamps::AsSource,
            Some(TimestampMode::None) => rbt::Timestamps::Never,
            Some(TimestampMode::Delta) => rbt::Timestamps::Always,
        };
        options.set(rbt::ExportOptions { timestamps, ..Default::default() });
        let dialect = match self.trc_readers {
            None | Some(TrcReaders::Newest) => trc::Dialect::Newest,
            Some(TrcReaders::V032) => trc::Dialect::V032,
        };
        options.set(trc::ExportOptions { dialect });
        let utf8_errors = match self.utf8_errors {
            None | Some(Utf8ErrorMode::Ignore) => speedscope::Utf8Errors::Ignore,
            Some(Utf8ErrorMode::Substitute) => speedscope::Utf8Errors::Substitute,
            Some(Utf8ErrorMode::Fail) => speedscope::Utf8Errors::Fail,
        };
        options.set(speedscope::ExportOptions { utf8_errors, value: None, is_combined: self.combine });
        options.set(self.tachyon());
        options.set(self.pstats());
        let opcodes = if self.with_opcode { phpspy::OpcodeOutput::Write } else { phpspy::OpcodeOutput::Omit };
        options.set(phpspy::ExportOptions { opcodes });
    }

    fn pstats(&self) -> pstats::TextOptions {
        let otherwise = pstats::TextOptions::default();
        pstats::TextOptions {
            sort: self.sort.map_or(otherwise.sort, |key| match key {
                PstatsSort::Nsamples => pstats::Sort::SelfSamples,
                PstatsSort::Tottime => pstats::Sort::SelfTime,
                PstatsSort::Cumtime => pstats::Sort::TotalTime,
                PstatsSort::SamplePct => pstats::Sort::SelfShare,
                PstatsSort::CumulPct => pstats::Sort::TotalShare,
                PstatsSort::NsamplesCumul => pstats::Sort::TotalSamples,
                PstatsSort::Name => pstats::Sort::Name,
            }),
            limit: self.limit.map_or(otherwise.limit, RowLimit::as_option),
            summary: !self.no_summary,
        }
    }

    fn tachyon(&self) -> tachyon::ExportOptions {
        tachyon::ExportOptions {
            compression: self.tachyon_compression,
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
    target.options.value.clone_from(&args.value.value);
    let mut output = args.output.create(&target)?;
    let output_name = output.name().to_owned();
    let is_stream = output.destination().is_none() && target.format.facts().is_stream;
    let mut exporter = target.exporter_to_file(&mut output)?;
    let mut inputs = args.inputs.clone();
    if matches!(target.format, Format::Perfetto | Format::ChromeTrace) {
        // A timeline can show every kind.
        inputs.reading.kind.get_or_insert(SampleKind::All);
    }
    let read = if args.redact {
        let key = args.redact_key.as_ref().map(|text| RedactKey::of_text(text.as_bytes()));
        let mut redacted = Redact::new(&mut *exporter, key.unwrap_or_else(RedactKey::random));
        read(args, &inputs, &mut redacted, &output_name, is_stream)
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

/// Reads the chosen samples and events of the inputs, sorted by time if asked for.
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
