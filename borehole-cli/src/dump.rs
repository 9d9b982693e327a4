//! `borehole dump`.

use std::io::BufWriter;
use std::path::PathBuf;

use borehole::{Format, Target, dump_records, import_all};
use clap::Args;

use crate::exit::Exit;
use crate::inputs::Reading;
use crate::interrupt::{self, Interruptible};
use crate::messages;
use crate::outputs::OutputArgs;

/// What to print.
#[derive(Args, Clone, Debug)]
pub(crate) struct DumpArgs {
    /// The file to print; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// Put the frames into each sample, instead of each stack once before its first use
    #[arg(long, conflicts_with = "raw")]
    pub(crate) flat: bool,

    /// Print every record of the file with its offset, as it is stored (rbt, trc)
    #[arg(long)]
    pub(crate) raw: bool,

    /// The file to write; `-`, or none, is standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<String>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

pub(crate) fn run(args: &DumpArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let input = args.reading.open(&args.input)?;
    let name = input.name().to_owned();
    let mut target = Target::new(Format::Jsonl);
    target.flat = args.flat;
    let to = OutputArgs { output: args.output.clone(), force: args.force, ..OutputArgs::default() };
    let mut output = to.create(&target)?;
    let recovery = if args.raw {
        dump_records(input, BufWriter::with_capacity(64 << 10, &mut output))
    } else {
        let mut exporter = target.exporter(&mut output)?;
        import_all([input], &mut Interruptible(&mut *exporter))
    };
    let recovery = recovery.map_err(|error| error.with_output(output.name()))?;
    output.complete()?;
    messages::warnings(&name, &recovery);
    Ok(Exit::after(&recovery))
}
