//! Time and memory grow with the size of the input, in each dimension, whatever reads, shows or writes it.
//!
//! The generator passes profiles that are large in one dimension ([`shapes`]) to every view and exporter, reads back each
//! file that was written, and reads files that no exporter writes ([`files`]). Each is done at sizes n, 2n and 4n, and what is
//! counted (allocations, bytes allocated, the most bytes held, bytes written) may grow by no more than [`STEP`] a step.
//!
//! Loops that allocate nothing show in CPU time only. `BOREHOLE_GROWTH=20000 cargo test -p borehole-formats --test it growth -- --nocapture`
//! prints what takes more than a moment at that size and twice that, with the ratio; nothing is asserted of times.

mod files;
mod shapes;

use std::io::{self, BufReader, Cursor, Read, Write};

use borehole_analysis::tokio::TokioSink;
use borehole_analysis::{Calls, PageLimits, ProfileBuilder, ProfilePage, Query, ReportSink, SampleSelection};
use borehole_formats::registry::{Destination, Document, Import, MakeSpool, Spool};
use borehole_formats::{Format, ReadError, ReadOptions, WriteOptions};
use borehole_model::{Count, ProfileSink, Tables};
use borehole_testkit::allocations::{Allocations, allocations};

use self::shapes::{Feed, MakeProfile, SHAPES};

/// The smallest size.
const SIZE: usize = 500;

/// The largest growth of a count when the size doubles.
const STEP: f64 = 2.2;

/// Growth below these numbers is not judged: of allocations, and of bytes.
const FEW: [u64; 4] = [1_000, 256 << 10, 128 << 10, 16 << 10];

/// The counted cost of a run.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Allocations, bytes allocated, the most bytes held, bytes written.
    counts: [u64; 4],
    cpu_ns: u64,
}

/// The names of the counts.
const COUNTS: [&str; 4] = ["allocations", "bytes allocated", "bytes held", "bytes written"];

/// Runs `code`, which returns how many bytes it wrote.
fn cost(code: impl FnOnce() -> usize) -> Cost {
    let before = cpu_ns();
    let (written, Allocations { count, bytes, peak_bytes }) = allocations(code);
    Cost { counts: [count, bytes, peak_bytes, written as u64], cpu_ns: cpu_ns() - before }
}

/// The CPU time of this thread so far.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The size that the environment asks CPU times for.
fn asked_size() -> Option<usize> {
    std::env::var("BOREHOLE_GROWTH").ok().map(|size| size.parse().expect("BOREHOLE_GROWTH is a number"))
}

/// Judges the cost of `run` at three sizes; adds what grows too fast to `faults`. With a size asked for, prints the CPU time.
#[expect(clippy::print_stdout, reason = "a measurement that is asked for")]
fn judge(name: &str, run: impl Fn(usize) -> Cost, faults: &mut Vec<String>) {
    if let Some(size) = asked_size() {
        let [one, two] = [size, 2 * size].map(&run);
        let ms = |cost: Cost| cost.cpu_ns / 1_000_000;
        if ms(two) > 100 {
            let ratio = two.cpu_ns as f64 / one.cpu_ns.max(1) as f64;
            let mark = if ratio > 2.9 { "  <<<" } else { "" };
            println!("{:>7} ms {:>7} ms {ratio:.1}{mark} {name} {:?}", ms(one), ms(two), two.counts);
        }
        return;
    }
    let costs = [SIZE, 2 * SIZE, 4 * SIZE].map(|size| run(size).counts);
    for (index, what) in COUNTS.iter().enumerate() {
        let [one, two, four] = costs.map(|counts| counts[index]);
        let grows = |one: u64, two: u64| two > one + FEW[index] && two as f64 > STEP * one as f64;
        // A table that doubles may do so in one of the two steps only.
        if grows(two, four) && four as f64 > STEP * STEP * one as f64 {
            faults.push(format!("{name}: {what} {one}, {two}, {four}"));
        }
    }
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} grow too fast:\n{}", faults.len(), faults.join("\n"));
}

fn spool() -> io::Result<Box<dyn Spool>> {
    Ok(Box::new(Cursor::new(Vec::new())))
}

/// Exports a profile; returns whether the format takes it.
fn export(format: Format, make: MakeProfile, size: usize, output: &mut (dyn Write + Send)) -> bool {
    let exporting = format.exporter().expect("the format is written");
    let mut options = WriteOptions::default();
    options.period_us = Some(10_000);
    let destination = Destination { output: Box::new(output), spool: spool as MakeSpool };
    let mut exporter = (exporting.start)(destination, &options);
    let mut tables = Tables::default();
    let made = make(size, &mut Feed::new(&mut tables, &mut exporter));
    made.and_then(|()| exporter.finish(&tables)).is_ok()
}

/// The file of a profile; empty if the format is not written, or does not take the profile.
fn file(format: Format, make: MakeProfile, size: usize) -> Vec<u8> {
    let mut written = Vec::new();
    let is_taken = format.exporter().is_some() && export(format, make, size, &mut written);
    if is_taken { written } else { Vec::new() }
}

/// Counts the bytes that are written.
#[derive(Default)]
struct Written(usize);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Imports a file of `format` leniently, which may fail, and finishes the sink.
fn import(format: Format, bytes: &[u8], tables: &mut Tables, sink: &mut dyn ProfileSink) {
    let options = ReadOptions::lenient();
    let mut input = bytes;
    let outcome = match format.importer().expect("the format is read") {
        Import::Plain(import) => {
            let input: &mut dyn Read = &mut input;
            import(&mut BufReader::new(input), &options, tables, sink).map(drop)
        }
        Import::Accompanied { import, .. } => {
            let input: &mut dyn Read = &mut input;
            import(&mut BufReader::new(input), None, &options, tables, sink).map(drop)
        }
        Import::Enveloped(import) => import(&mut input, &options, spool, tables, sink).map(drop),
        Import::Document { import, .. } => {
            let document = Document { bytes, sibling: None, on_passed: None };
            import(document, &options, tables, sink).map(drop)
        }
    };
    if let Err(ReadError::Sink(error)) = outcome {
        panic!("{error}");
    }
    sink.finish(tables).unwrap();
}

/// A view, which takes a profile from a function.
type ShowView = fn(&mut dyn FnMut(&mut Tables, &mut dyn ProfileSink));

const VIEWS: &[(&str, ShowView)] = &[
    ("count", |read| read(&mut Tables::default(), &mut Count::default())),
    ("report", |read| {
        let mut sink = ReportSink::new(Query::default());
        read(&mut Tables::default(), &mut sink);
        std::hint::black_box(sink.into_view());
    }),
    ("tokio", |read| {
        let mut sink = TokioSink::new(None);
        read(&mut Tables::default(), &mut sink);
        std::hint::black_box(sink.into_views());
    }),
    ("page", |read| {
        let (mut tables, mut sink) = (Tables::default(), ProfileBuilder::default());
        read(&mut tables, &mut sink);
        let profile = sink.into_profile(tables);
        let selection = SampleSelection::default();
        let weight = profile.default_weight();
        let calls = Calls::new(&profile, &Query::default(), &selection, weight);
        std::hint::black_box((calls, ProfilePage::new(&profile, PageLimits::default()).unwrap()));
    }),
];

#[test]
fn views_grow_with_profiles() {
    let mut faults = Vec::new();
    for (shape, make) in SHAPES {
        for (view, show) in VIEWS {
            let run = |size| {
                cost(|| {
                    show(&mut |tables, sink| {
                        make(size, &mut Feed::new(tables, sink)).unwrap();
                        sink.finish(tables).unwrap();
                    });
                    0
                })
            };
            judge(&format!("{shape} in {view}"), run, &mut faults);
        }
    }
    assert_none(&faults);
}

#[test]
fn exporters_grow_with_profiles() {
    let mut faults = Vec::new();
    for (shape, make) in SHAPES {
        for &format in Format::ALL.iter().filter(|format| format.exporter().is_some()) {
            let run = |size| {
                cost(|| {
                    let mut written = Written::default();
                    export(format, *make, size, &mut written);
                    written.0
                })
            };
            judge(&format!("{shape} into {}", format.name()), run, &mut faults);
        }
    }
    assert_none(&faults);
}

#[test]
fn importers_grow_with_files() {
    let mut faults = Vec::new();
    for (shape, make) in SHAPES {
        for &format in Format::ALL.iter().filter(|format| format.importer().is_some()) {
            let run = |size| {
                let written = file(format, *make, size);
                cost(|| {
                    import(format, &written, &mut Tables::default(), &mut Count::default());
                    0
                })
            };
            judge(&format!("{shape} from {}", format.name()), run, &mut faults);
        }
    }
    assert_none(&faults);
}

#[test]
fn importers_grow_with_files_that_no_exporter_writes() {
    let mut faults = Vec::new();
    for (what, format, make) in files::FILES {
        let Some(format) = Format::from_name(format).filter(|format| format.importer().is_some()) else {
            continue;
        };
        for (view, show) in VIEWS {
            let run = |size| {
                let bytes = make(size);
                cost(|| {
                    show(&mut |tables, sink| import(format, &bytes, tables, sink));
                    0
                })
            };
            judge(&format!("{what} of {} in {view}", format.name()), run, &mut faults);
        }
    }
    assert_none(&faults);
}

#[test]
fn importers_grow_with_damage() {
    let mut faults = Vec::new();
    let (_, make) = SHAPES[2];
    for &format in Format::ALL.iter().filter(|format| format.importer().is_some()) {
        for every in [16, 64, 256] {
            let run = |size| {
                let mut written = file(format, make, size);
                written.iter_mut().skip(32).step_by(every).for_each(|byte| *byte ^= 0x55);
                cost(|| {
                    import(format, &written, &mut Tables::default(), &mut Count::default());
                    0
                })
            };
            judge(&format!("damage every {every} bytes of {}", format.name()), run, &mut faults);
        }
    }
    assert_none(&faults);
}

/// Damage behind the beginning of a file, repeated.
#[test]
fn searches_behind_damage_grow_with_files() {
    let mut faults = Vec::new();
    for (what, name, piece) in files::DAMAGE {
        let Some(format) = Format::from_name(name).filter(|format| format.importer().is_some()) else {
            continue;
        };
        let start = file(format, SHAPES[2].1, 20);
        let run = |size: usize| {
            let mut bytes = start[..start.len() / 2].to_vec();
            while bytes.len() < 64 * size {
                bytes.extend_from_slice(piece);
            }
            cost(|| {
                import(format, &bytes, &mut Tables::default(), &mut Count::default());
                bytes.len()
            })
        };
        judge(&format!("{what} in {name}"), run, &mut faults);
    }
    assert_none(&faults);
}

/// A growth that is to be found.
#[test]
fn quadratic_growth_is_found() {
    let mut faults = Vec::new();
    let run =
        |size: usize| cost(|| (0..size).map(|length| std::hint::black_box(vec![0_u8; length]).len()).sum());
    if asked_size().is_none() {
        judge("a sum of lengths", run, &mut faults);
        assert!(faults.iter().any(|fault| fault.contains("bytes allocated")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.contains("bytes written")), "{faults:?}");
    }
}
