//! The memory that a conversion holds, beside the memory that its budget counts.

use std::fmt::Write as _;
use std::io;

use borehole::{Error, Format, Input, InputOptions, Source, Target, convert};
use borehole_testkit::allocations::allocations;

/// Stacks of 3,000 functions each, of which they share none.
fn deep() -> String {
    let mut text = String::new();
    for stack in 0..30 {
        let names: Vec<_> = (0..3_000).map(|level| format!("f{stack}_{level}")).collect();
        writeln!(text, "{} {}", names.join(";"), stack + 1).unwrap();
    }
    text
}

/// A stack of 1,500 functions, each of which also calls a function of its own: all stacks together are 500 times as long as the
/// tree that they make.
fn comb() -> String {
    let (mut text, mut callers) = (String::new(), String::new());
    for level in 0..1_500 {
        write!(callers, "f{level};").unwrap();
        writeln!(text, "{callers}leaf{level} 1").unwrap();
    }
    text
}

/// As many functions below one as there are in the others.
fn wide() -> String {
    (0..60_000).fold(String::new(), |mut text, leaf| {
        writeln!(text, "main;leaf{leaf} 1").unwrap();
        text
    })
}

/// The outcome of a conversion, and the most bytes that it held.
fn converted(text: &'static str, format: Format, memory_bytes: Option<usize>) -> (Result<(), Error>, usize) {
    let options = InputOptions { format: Some(Format::Folded), memory_bytes, ..InputOptions::default() };
    let source = Source::reader("stacks", text.as_bytes());
    let (outcome, held) = allocations(|| {
        let input = Input::open(source, &options)?;
        convert([input], &Target::new(format), io::sink()).map(drop)
    });
    (outcome, usize::try_from(held.peak_bytes).unwrap())
}

/// The most that a conversion may hold of `budget`: buffers double, and the outputs have buffers of their own.
const fn most(budget: usize) -> usize {
    budget / 4 * 5 + (1 << 20)
}

/// Whether an exporter holds dictionaries of a fixed size, whatever it writes, which only a budget of the program counts.
fn has_dictionaries(format: Format) -> bool {
    matches!(format, Format::Trc | Format::Parquet)
}

#[test]
fn a_conversion_that_succeeds_has_held_no_more_than_its_budget() {
    let texts = [deep(), comb(), wide()].map(|text| &*text.leak());
    for &format in Format::ALL.iter().filter(|&&format| format.writable() && !has_dictionaries(format)) {
        for text in texts {
            let (whole, peak) = converted(text, format, None);
            if whole.is_err() {
                // A timeline needs times, which the input lacks.
                continue;
            }
            for part in 1..6 {
                let budget = peak * part / 6;
                let (outcome, held) = converted(text, format, Some(budget));
                match outcome {
                    Ok(()) => assert!(held <= most(budget), "{format}: {held} of {budget} bytes"),
                    Err(error) => assert!(error.is_memory(), "{format}: {error}"),
                }
            }
            assert!(converted(text, format, Some(4 * peak + (1 << 20))).0.is_ok(), "{format}: {peak} bytes");
        }
    }
}

#[cfg(feature = "analysis")]
#[test]
fn a_report_that_succeeds_has_held_no_more_than_its_budget() {
    use borehole::analysis::{Query, ReportSink};
    use borehole::import_all;

    let reported = |text: &'static str, memory_bytes| {
        let options = InputOptions { format: Some(Format::Folded), memory_bytes, ..InputOptions::default() };
        let (outcome, held) = allocations(|| {
            let input = Input::open(Source::reader("stacks", text.as_bytes()), &options)?;
            import_all([input], &mut ReportSink::new(Query::default())).map(drop)
        });
        (outcome, usize::try_from(held.peak_bytes).unwrap())
    };
    for text in [deep(), comb(), wide()].map(|text| &*text.leak()) {
        let (whole, peak) = reported(text, None);
        whole.unwrap();
        for part in 1..6 {
            let budget = peak * part / 6;
            match reported(text, Some(budget)) {
                (Ok(()), held) => assert!(held <= most(budget), "{held} of {budget} bytes"),
                (Err(error), _) => assert!(error.is_memory(), "{error}"),
            }
        }
    }
}
