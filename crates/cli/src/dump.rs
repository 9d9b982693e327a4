//! `borehole dump`.

use std::io::BufWriter;
use std::path::PathBuf;

use borehole::formats::jsonl;
use borehole::model::Tables;
use borehole::{Error, Format, Input, ProfileSink, Recovery, Target, dump_records, finish_before};
use clap::Args;

use crate::exit::Exit;
use crate::inputs::ReadArgs;
use crate::interrupt::{self, Interruptible};
use crate::messages;
use crate::outputs::{self, OutputArgs};

/// The arguments of `borehole dump`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DumpArgs {
    /// The file to print; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) reading: ReadArgs,

    /// Repeat the frames in each sample, instead of defining each stack once
    #[arg(long, conflicts_with = "raw")]
    pub(crate) flat: bool,

    /// Print every record as stored, with its offset (rbt, trc)
    #[arg(long)]
    pub(crate) raw: bool,

    /// The file to write; `-`, or none, is standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &DumpArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let input = args.reading.open(&args.input)?;
    let name = input.name().to_owned();
    let mut target = Target::new(Format::Jsonl);
    target.options.set(jsonl::ExportOptions { flat: args.flat });
    let to = OutputArgs { output: args.output.clone(), force: args.force, ..OutputArgs::default() };
    let mut output = to.create(&target)?;
    let recovery = if args.raw {
        dump_records(input, BufWriter::with_capacity(64 << 10, &mut output))
    } else {
        let mut exporter = target.exporter(&mut output)?;
        stream(input, &mut Interruptible(&mut *exporter))
    };
    let recovery = recovery.map_err(|error| error.with_output(output.name()));
    let is_stream = output.destination().is_none();
    let recovery = outputs::complete_after(output, is_stream, recovery)?;
    messages::warnings(&name, &recovery);
    Ok(Exit::after(&recovery))
}

/// Reads `input` into a sink whose output is read while it is written. On an error of the input, the sink is finished with
/// everything read before.
fn stream(input: Input, sink: &mut dyn ProfileSink) -> Result<Recovery, Error> {
    let mut tables = Tables::default();
    let read = input.read_into(&mut tables, sink);
    let recovery = read.inspect_err(|error| finish_before(error, &tables, sink))?;
    sink.finish(&tables).map_err(|source| Error::Write { name: String::new(), source })?;
    Ok(recovery)
}
