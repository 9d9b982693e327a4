//! The claims.

use std::env;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use borehole_testkit::fuzzing::Random;

use super::measure::{Work, rate};
use super::references::INFERNO;
use super::{Bench, Claim, Goal, Reference, Unit};

/// The most that a streaming conversion may hold, however long its input.
const STREAMING_BYTES: f64 = 24e6;

/// The most CPU time for a million samples.
const MILLION_SECONDS: f64 = 0.060;

/// Every claim, in the order of the table.
pub(crate) fn all(bench: &Bench) -> Result<Vec<Claim>> {
    let million = bench.corpus("rbt/samples_1m.rbt");
    let timed = bench.corpus("rbt/samples_1m_ts.rbt");
    // The hundred million samples of which the claims on memory speak.
    let hundred_million = bench.repeated(&million, 100)?;
    let mut claims = vec![varints(1), varints(3), piped(bench, &million), folded_text(bench)?];
    for format in ["folded", "pprof"] {
        claims.push(cpu(bench, &million, format));
        claims.push(cpu(bench, &timed, format));
        claims.push(memory(bench, &million, format));
        claims.push(memory(bench, &hundred_million, format));
    }
    Ok(claims)
}

/// What all decoding is made of: a million numbers, the small ones counted and the longer ones weighed.
fn varints(width: usize) -> Claim {
    let bytes = [vec![0x80; width - 1], vec![0x01]].concat().repeat(1_000_000);
    let (unit, items, goal) = match width {
        1 => (Unit::PerSecond, 1e6, 100e6),
        _ => (Unit::BytesPerSecond, 1e6 * width as f64, 200e6),
    };
    let ours = rate(items, move || {
        let mut cursor = borehole_wire::Cursor::new(std::hint::black_box(&bytes), 0);
        let mut sum = 0_u64;
        while !cursor.is_empty() {
            sum = sum.wrapping_add(cursor.varint()?);
        }
        std::hint::black_box(sum);
        Ok(())
    });
    Claim {
        name: format!("varints of {width} B each, decoded"),
        unit,
        goal: Goal::Value(goal),
        ours,
        reference: None,
    }
}

/// A pipe is as good as a file.
fn piped(bench: &Bench, input: &Path) -> Claim {
    let work = Work::new(&bench.borehole, ["convert", "-", "--to", "folded"]).reading(input);
    Claim {
        name: "1M samples from a pipe to folded, CPU".to_owned(),
        unit: Unit::Seconds,
        goal: Goal::Value(MILLION_SECONDS),
        ours: work.cpu_seconds(),
        reference: None,
    }
}

/// Text is read no slower than by the program that everybody uses for it.
fn folded_text(bench: &Bench) -> Result<Claim> {
    let text = bench.input("random-20mb.folded", folded_lines)?;
    let ours = Work::new(&bench.borehole, ["convert", "-", "--from", "folded", "--to", "folded"]);
    let theirs = Work::new(&env::current_exe()?, ["reference", "flamegraph"]).reading(&text);
    Ok(Claim {
        name: "20 MB of folded text, read, CPU".to_owned(),
        unit: Unit::Seconds,
        goal: Goal::Ratio(1.0),
        ours: ours.reading(&text).cpu_seconds(),
        reference: Some(Reference { name: INFERNO.to_owned(), run: theirs.cpu_seconds() }),
    })
}

/// Stacks of 20 frames out of 500, which share their first half with few others.
fn folded_lines(output: &mut impl Write) -> Result<()> {
    let mut random = Random::new(1);
    for _ in 0..50_000 {
        for depth in 0..20 {
            let frame = random.below(if depth < 10 { 2 } else { 25 });
            write!(output, "App\\Package{depth}\\Class{frame};")?;
        }
        writeln!(output, "Leaf {}", 1 + random.below(9))?;
    }
    Ok(())
}

fn cpu(bench: &Bench, input: &Path, format: &str) -> Claim {
    Claim {
        name: format!("{} to {format}, CPU", name(input)),
        unit: Unit::Seconds,
        goal: Goal::Value(MILLION_SECONDS),
        ours: convert(bench, input, format).cpu_seconds(),
        reference: None,
    }
}

fn memory(bench: &Bench, input: &Path, format: &str) -> Claim {
    Claim {
        name: format!("{} to {format}, peak memory", name(input)),
        unit: Unit::Bytes,
        goal: Goal::Value(STREAMING_BYTES),
        ours: convert(bench, input, format).peak_bytes(),
        reference: None,
    }
}

fn convert(bench: &Bench, input: &Path, format: &str) -> Work {
    let output = bench.folder.join(format!("output.{format}"));
    let words = ["convert".as_ref(), input.as_os_str(), "--to".as_ref(), format.as_ref()];
    Work::new(
        &bench.borehole,
        words.into_iter().chain(["-o".as_ref(), output.as_os_str(), "--force".as_ref()]),
    )
}

/// A file as the table calls it.
fn name(input: &Path) -> String {
    input.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
