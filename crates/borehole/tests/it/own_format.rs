//! A format of a program's own, which this crate reads and writes like one of its own.

use std::io::{self, BufRead as _, Write};
use std::ops::ControlFlow;

use borehole::formats::registry::{Codec, Destination, Detect, EventSupport, Exporting, Import, PlainInput};
use borehole::formats::{self, ReadError};
use borehole::model::{Context, Frame, Sample, Segment, Tables};
use borehole::{
    BorrowedInput, Export, Facts, Format, Input, InputOptions, Losses, OwnFormat, Position, ProfileSink,
    ReadOptions, Recovery, Source, Target, WriteOptions, convert, import_all,
};
use borehole_wire::envelope::GzipWriter;

/// A first line `toy 1`, then a stack per line, from the root to the leaf.
static TOY: OwnFormat = OwnFormat {
    facts: Facts::new("toy", "a stack a line", Detect::Content(|prefix| prefix.starts_with(b"toy 1\n")))
        .with_extensions(&["toy"]),
    codec: Codec {
        import: Some(Import::Plain(import)),
        export: Some(Exporting { start, events: EventSupport::Lost }),
    },
};

static FORMATS: [Format; 1] = [Format::Own(&TOY)];

fn options() -> InputOptions {
    InputOptions { own_formats: &FORMATS, ..InputOptions::default() }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzipWriter::new(Vec::new());
    member.write_all(bytes).unwrap();
    member.complete().unwrap()
}

fn import(
    input: &mut PlainInput<'_>,
    _: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let segment = Segment { format: "toy", ..Segment::default() };
    sink.segment(Context { tables, segment: &segment })?;
    let mut recovery = Recovery { segments: 1, ..Recovery::default() };
    for line in input.lines().skip(1) {
        let line = line.map_err(|error| formats::Error::io("toy", Position::Whole, error))?;
        let mut stack = None;
        for name in line.split(' ') {
            let function = tables.intern_string(name.as_bytes())?;
            let frame = tables.intern_frame(&Frame::named(function))?;
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        recovery.samples += 1;
        if sink.sample(Context { tables, segment: &segment }, &Sample::of(stack))?.is_break() {
            recovery.stopped = true;
            break;
        }
    }
    Ok(recovery)
}

fn start<'w>(to: Destination<'w>, _: &WriteOptions) -> Box<dyn Export + Send + 'w> {
    Box::new(Exporter { output: to.output, has_begun: false })
}

struct Exporter<'w> {
    output: Box<dyn Write + Send + 'w>,
    has_begun: bool,
}

impl ProfileSink for Exporter<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.output.write_all(b"toy 1\n")?;
        }
        let frames = at.tables.frames_leaf_first(sample.stack);
        let mut names: Vec<&[u8]> = frames.map(|frame| at.tables.string(at.tables.function(frame))).collect();
        names.reverse();
        for _ in 0..sample.count {
            self.output.write_all(&names.join(&b' '))?;
            self.output.write_all(b"\n")?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Export for Exporter<'_> {
    fn losses(&self) -> Losses {
        Losses::default()
    }
}

#[test]
fn a_format_of_the_program_s_own_is_detected_read_and_written_by_convert() {
    let toy = Format::Own(&TOY);
    let input = Input::open(Source::reader("upload", &b"toy 1\nmain query\nmain\n"[..]), &options()).unwrap();
    assert_eq!(input.format(), toy);
    let mut folded = Vec::new();
    let outcome = convert([input], &Target::new(Format::Folded), &mut folded).unwrap();
    assert_eq!(outcome.recovery.samples, 2);
    assert_eq!(folded, b"main;query 1\nmain 1\n");

    let input = Input::open(Source::reader("folded", io::Cursor::new(folded)), &options()).unwrap();
    assert_eq!(input.format(), Format::Folded);
    let mut written = Vec::new();
    convert([input], &Target::new(toy), &mut written).unwrap();
    assert_eq!(written, b"toy 1\nmain query\nmain\n");

    // Without the program's format, nobody knows such a file.
    assert!(BorrowedInput::open("a", &written, &InputOptions::default()).is_err());
}

#[test]
fn a_format_of_the_program_s_own_may_be_compressed_and_is_known_by_its_name() {
    let mut packed = gzip(b"toy 1\nmain\n");
    packed.extend(gzip(b"main query\n"));
    let input = BorrowedInput::open("a", &packed, &options()).unwrap();
    let mut count = borehole::model::Count::default();
    input.read_into(&mut Tables::default(), &mut count).unwrap();
    assert_eq!(count.samples, 2);

    // A first line that is damaged leaves the name.
    let input = Input::open(Source::reader("a.toy", &b"toy 2\nmain\n"[..]), &options()).unwrap();
    assert_eq!(import_all([input], &mut count).unwrap().samples, 1);
    assert_eq!(Format::Own(&TOY).to_string(), "toy");
}
