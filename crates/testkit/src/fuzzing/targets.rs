//! The targets: one a reader.

use std::io::{self, BufReader, Read as _};
use std::ops::ControlFlow;

use borehole_formats::detect::{DETECT_BYTES, detect};
use borehole_formats::rbt::{self, Reader, Record};
use borehole_formats::registry::{Document, Import, ImportAccompanied, ImportDocument, ImportPlain};
use borehole_formats::{Format, Limits, ReadError, ReadOptions, tachyon, trc};
use borehole_model::{Context, Count, ProfileSink, Recovery, Sample, Tables};
use borehole_wire::envelope::Envelope;
use borehole_wire::{Cursor, put_varint};

use super::{Target, heap, php, system};

/// The targets that are no format's importer, or look at more of a format than its importer does.
const OWN: &[Target] = &[
    Target { name: "wire", run: Run::Bytes(wire), corpus: &[("rbt/sweeps", ".rbt")] },
    Target { name: "gzip", run: Run::Bytes(gzip), corpus: &[] },
    Target { name: "detect", run: Run::Bytes(detects), corpus: &[("rbt/text", ".txt")] },
    Target { name: "rbt_strict", run: Run::Bytes(rbt_strict), corpus: &[("rbt/sweeps", ".rbt")] },
    Target { name: "rbt_lenient", run: Run::Bytes(rbt_lenient), corpus: &[("rbt/sweeps", ".rbt")] },
    Target {
        name: "tachyon",
        run: Run::Bytes(tachyon),
        corpus: &[("tachyon/corrupt", ".bin"), ("tachyon/bigendian", ".bin")],
    },
    Target { name: "trc", run: Run::Bytes(trc), corpus: &[] },
    Target { name: "rmem", run: Run::Bytes(heap::rmem), corpus: &[] },
    Target { name: "heap_json", run: Run::Bytes(heap::json), corpus: &[] },
    Target { name: "rdump", run: Run::Bytes(heap::rdump), corpus: &[("php/heap", ".rdump")] },
    Target { name: "php_stack", run: Run::Bytes(php::stack), corpus: &[] },
    Target { name: "elf", run: Run::Bytes(system::elf), corpus: &[] },
    Target { name: "symbols", run: Run::Bytes(system::symbols), corpus: &[] },
    Target { name: "address_names", run: Run::Bytes(system::address_names), corpus: &[] },
    Target { name: "core", run: Run::Bytes(system::core), corpus: &[] },
    Target { name: "maps", run: Run::Bytes(system::maps), corpus: &[] },
    Target { name: "sqlite", run: Run::Bytes(system::sqlite), corpus: &[] },
];

/// All targets: those above, and the importer of each other format that takes plain bytes.
#[must_use]
pub fn targets() -> Vec<Target> {
    let importer = |&format: &Format| {
        let run = match format.importer()? {
            Import::Plain(import) => Run::Import(import),
            Import::Accompanied { import, .. } => Run::Accompanied(import),
            Import::Document { import, .. } => Run::Document(import),
            Import::Enveloped(_) => return None,
        };
        let is_own = OWN.iter().any(|target| target.name == format.name());
        (!is_own).then_some(Target { name: format.name(), run, corpus: &[] })
    };
    OWN.iter().copied().chain(Format::ALL.iter().filter_map(importer)).collect()
}

/// How a target reads the bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    Bytes(fn(&[u8])),
    Import(ImportPlain),
    Accompanied(ImportAccompanied),
    Document(ImportDocument),
}

impl Run {
    pub(super) fn on(self, bytes: &[u8]) {
        match self {
            Self::Bytes(run) => run(bytes),
            Self::Import(run) => import(bytes, |plain, options, tables, sink| {
                let input: &mut dyn io::Read = &mut { plain };
                run(&mut BufReader::new(input), options, tables, sink)
            }),
            Self::Accompanied(run) => import(bytes, |plain, options, tables, sink| {
                let input: &mut dyn io::Read = &mut { plain };
                run(&mut BufReader::new(input), None, options, tables, sink)
            }),
            Self::Document(run) => import(bytes, |plain, options, tables, sink| {
                run(Document { bytes: plain, sibling: None, on_passed: None }, options, tables, sink)
            }),
        }
    }
}

/// Reads the bytes as one varint after the other: what fits 64 bits comes back shorter or as it was.
fn wire(bytes: &[u8]) {
    let mut cursor = Cursor::new(bytes, 0);
    while !cursor.is_empty() {
        let mut wrapping = cursor;
        let before = cursor.offset();
        match cursor.varint() {
            Ok(value) => {
                assert_eq!(wrapping.varint_wrapping(), Ok(value));
                let mut written = Vec::new();
                put_varint(&mut written, value);
                let read = cursor.offset() - before;
                assert!(
                    written.len() as u64 <= read,
                    "{value} takes {} bytes, read from {read}",
                    written.len()
                );
                assert_eq!(Cursor::new(&written, 0).varint(), Ok(value));
            }
            Err(error) => {
                assert!(error.offset() >= before && error.offset() <= bytes.len() as u64);
                return;
            }
        }
    }
}

/// Reads the bytes as a `tachyon` file, strictly and past damage: a file that is read without an error is
/// read to the same samples past damage, and nothing but a limit ends the latter.
fn tachyon(bytes: &[u8]) {
    let read = |options: ReadOptions| {
        let mut count = Count::default();
        let outcome = tachyon::import(bytes, &options, &mut Tables::default(), &mut count);
        (outcome.map(|recovery| recovery.samples), count.samples)
    };
    let strict = read(ReadOptions::default());
    let (lenient, saved) = read(ReadOptions::lenient());
    let lenient = lenient.expect("damage is read over");
    assert_eq!(lenient, saved);
    if let (Ok(samples), delivered) = strict {
        assert_eq!(samples, delivered);
        assert!(samples <= lenient, "{samples} strictly, {lenient} past damage");
    }
    // The same bytes as the blocks of a journal of theirs.
    let (head, blocks) = bytes.split_at(bytes.len().min(tachyon::layout::HEADER_BYTES));
    let journal = [&tachyon::JOURNAL_MAGIC, head, blocks].concat();
    let (options, mut count) = (ReadOptions::lenient(), Count::default());
    let document = tachyon::Document { bytes, sibling: Some(&journal), on_passed: None };
    let outcome = tachyon::import_document(document, &options, &mut Tables::default(), &mut count);
    if let Ok(recovery) = outcome {
        assert_eq!(recovery.samples, count.samples);
    }
}

/// Reads the bytes as a `trc` stream, strictly and past damage: what is counted is what comes out, and what
/// the lenient reading finds can be written and read again.
fn trc(bytes: &[u8]) {
    let visit = |options: ReadOptions| {
        let mut reader = trc::Reader::with_options(bytes, options);
        let mut events = 0_u64;
        let outcome = reader.for_each_event(|event| {
            events += 1;
            event.fields().for_each(|field| {
                let _ = std::hint::black_box(field);
            });
        });
        assert_eq!(reader.recovery().events, events);
        outcome.is_ok()
    };
    visit(ReadOptions::default());
    assert!(visit(ReadOptions::lenient()), "damage is read over");
    let (events, written) = rewritten(bytes);
    trc::Reader::new(written.as_slice()).for_each_event(|_| {}).expect("what was written is whole");
    // Warnings are written as events, and are warnings again when they are read.
    assert_eq!(rewritten(&written).0, events);
}

/// How many events were read past damage, and what they are written as.
fn rewritten(bytes: &[u8]) -> (u64, Vec<u8>) {
    let (mut output, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = trc::Exporter::new(&mut output, trc::ExportOptions::default());
    let (options, spool) = (ReadOptions::lenient(), io::Cursor::new(Vec::new()));
    let recovery = trc::import(bytes, &options, spool, &mut tables, &mut exporter);
    let recovery = recovery.expect("what was read can be written");
    exporter.finish(&tables).expect("memory takes it");
    drop(exporter);
    (recovery.events, output)
}

/// The most bytes that are decompressed from one input.
const LARGEST: u64 = 8 << 20;

/// Reads members and plain bytes, past all damage, to the end.
fn gzip(bytes: &[u8]) {
    let mut envelope = Envelope::new(bytes);
    // Each piece of damage costs at least a byte.
    for _ in 0..=bytes.len() {
        match io::copy(&mut (&mut envelope).take(LARGEST), &mut io::sink()) {
            Ok(_) => return,
            Err(_) => {
                let passed = envelope.skip_damage(b"RELI").expect("a slice can be read");
                assert!(passed <= bytes.len() as u64);
            }
        }
    }
    panic!("reading goes round in circles");
}

/// Tells the format, of the whole and of every beginning that is a power of two long.
fn detects(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(DETECT_BYTES)];
    let beginnings = (0..16).map(|bits| &bytes[..bytes.len().min(1 << bits)]);
    for beginning in beginnings.chain([bytes]) {
        let format = detect(beginning);
        assert!(format.is_none_or(|format| !format.name().is_empty()));
    }
}

/// Reads strictly: whatever comes out is whole, and nothing comes behind an error.
fn rbt_strict(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(Some(record)) = reader.next_record() {
        look_at(&record);
    }
    assert!(matches!(reader.next_record(), Ok(None)), "reading goes on after its end");
}

/// Reads over damage: it never is an error, and what is counted is what comes out.
fn rbt_lenient(bytes: &[u8]) {
    let mut reader = Reader::with_options(bytes, ReadOptions::lenient());
    let mut samples = 0_u64;
    while let Some(record) = reader.next_record().expect("damage is read over") {
        samples = samples.saturating_add(look_at(&record));
    }
    let recovery = reader.into_recovery();
    assert_eq!(recovery.samples, samples);
    assert!(recovery.warnings.iter().all(|warning| warning.offset.is_some()));
}

/// Follows every reference of a record; answers how many samples it is.
fn look_at(record: &Record<'_>) -> u64 {
    let Record::Sample(sample) = record else { return 0 };
    let definitions = sample.definitions;
    let mut bytes = 0;
    let mut look = |string| bytes += definitions.string(string).len();
    for frame in definitions.frames_leaf_first(sample.stack) {
        match *definitions.frame(frame) {
            rbt::DefinedFrame::Native { symbol, module, .. } => {
                [symbol, module].into_iter().for_each(&mut look);
            }
            rbt::DefinedFrame::Php { namespace, class, method, file, opcode, .. } => {
                [namespace, class, method, file].into_iter().chain(opcode).for_each(&mut look);
            }
        }
    }
    for &(key, value) in sample.annotations.unwrap_or_default() {
        [key, value].into_iter().for_each(&mut look);
    }
    std::hint::black_box(bytes);
    assert!(sample.count > 0);
    sample.count
}

/// Imports strictly and over damage: what is counted is what comes out, and whole inputs read the same.
fn import(
    bytes: &[u8],
    import: impl Fn(&[u8], &ReadOptions, &mut Tables, &mut dyn ProfileSink) -> Result<Recovery, ReadError>,
) {
    let limits = Limits { memory_bytes: 16 << 20, ..Limits::default() };
    let mut plain = Vec::new();
    // A damaged member still yields how it begins.
    let _ = Envelope::new(bytes).take(LARGEST).read_to_end(&mut plain);
    let run = |options: ReadOptions| {
        let mut total = Total::default();
        let options = ReadOptions { limits, ..options };
        let recovery = import(&plain, &options, &mut Tables::default(), &mut total);
        match recovery {
            Ok(recovery) => {
                assert_eq!(recovery.samples, total.0);
                Some(total.0)
            }
            Err(ReadError::Input(_)) => None,
            Err(ReadError::Sink(error)) => panic!("the sink takes everything, and says {error}"),
        }
    };
    if let Some(strict) = run(ReadOptions::default()) {
        assert_eq!(run(ReadOptions::lenient()), Some(strict));
    } else {
        run(ReadOptions::lenient());
    }
}

/// Adds up samples, and follows their references.
#[derive(Default)]
struct Total(u64);

impl ProfileSink for Total {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        for frame in at.tables.frames_leaf_first(sample.stack) {
            let _ = at.tables.string(at.tables.frame(frame).function);
        }
        if let Some(labels) = sample.labels {
            let _ = at.tables.labels(labels);
        }
        self.0 = self.0.saturating_add(sample.count);
        Ok(ControlFlow::Continue(()))
    }
}
