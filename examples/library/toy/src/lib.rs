//! A format in a crate of its own: a stack a line, from the root to the leaf.

#![forbid(unsafe_code)]

use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;

use borehole::formats::registry::{Codec, Destination, Detect, EventSupport, Exporting, Import, PlainInput};
use borehole::formats::{Error as FormatError, Position, ReadError};
use borehole::model::{Context, Sample, Segment, Tables};
use borehole::{Export, Facts, Format, Losses, OwnFormat, ProfileSink, ReadOptions, Recovery, WriteOptions};

static TOY: OwnFormat = OwnFormat {
    facts: Facts::new("toy", "a stack a line", Detect::Content(|bytes| bytes.starts_with(b"toy 1\n"))),
    codec: Codec {
        import: Some(Import::Plain(read)),
        export: Some(Exporting { start, events: EventSupport::Lost }),
    },
};
/// The format, for programs that read and write it.
pub const FORMAT: Format = Format::Own(&TOY);

fn read(
    input: &mut PlainInput<'_>,
    _: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let (segment, mut recovery) = (Segment::default(), Recovery::default());
    sink.segment(Context { tables, segment: &segment })?;
    for line in input.lines().skip(1) {
        let line = line.map_err(|error| FormatError::io("toy", Position::Whole, error))?;
        let stack = tables.intern_functions_root_first(line.split(' '))?;
        recovery.samples += 1;
        let _ = sink.sample(Context { tables, segment: &segment }, &Sample::of(stack))?;
    }
    Ok(recovery)
}

fn start<'w>(mut to: Destination<'w>, _: &WriteOptions) -> Box<dyn Export + Send + 'w> {
    let begun = to.output.write_all(b"toy 1\n");
    Box::new(Writer(to.output, Some(begun)))
}

struct Writer<'w>(Box<dyn Write + Send + 'w>, Option<io::Result<()>>);

impl ProfileSink for Writer<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.1.take().transpose()?;
        let mut names: Vec<_> = at.functions_leaf_first(sample.stack).collect();
        names.reverse();
        writeln!(self.0, "{}", names.join(" ")).map(ControlFlow::Continue)
    }
}

impl Export for Writer<'_> {
    fn losses(&self) -> Losses {
        Losses::default()
    }
}
