//! Claims on text formats: read no slower than by the programs that everybody uses for them.

use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use borehole_testkit::fuzzing::Random;

use super::measure::Work;
use super::references::{INFERNO, ReferenceProgram};
use super::traces::Trace;
use super::{Bench, Claim, ClaimUnit, Goal};

/// How much text there is, roughly.
const TEXT_BYTES: usize = 40_000_000;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let folded = bench.input("random-20mb.folded", folded_lines)?;
    let long = bench.input("random-132mb.folded", long_lines)?;
    let trace = bench.corpus("rbt/samples_1m.rbt");
    let phpspy = bench.input("stacks-40mb.phpspy", |output| phpspy_text(&Trace::read(&trace)?, output))?;
    let perf = bench.input("stacks-40mb.perf", |output| perf_text(&Trace::read(&trace)?, output))?;
    Ok(vec![
        claim(bench, [&folded, &folded], ["folded", "folded"], ReferenceProgram::CollapseRecursive)?,
        claim(bench, [&folded, &folded], ["folded", "flamegraph"], ReferenceProgram::Flamegraph)?,
        claim(bench, [&long, &long], ["folded", "flamegraph"], ReferenceProgram::Flamegraph)?,
        claim(bench, [&phpspy, &perf], ["phpspy", "folded"], ReferenceProgram::CollapsePerf)?,
    ])
}

/// The first text converted by the command, and the second by another program.
fn claim(bench: &Bench, texts: [&Path; 2], formats: [&str; 2], program: ReferenceProgram) -> Result<Claim> {
    let [from, to] = formats;
    let ours = Work::new(&bench.borehole, ["convert", "-", "--from", from, "--to", to]);
    let theirs = Work::new(&env::current_exe()?, ["reference", program.name()]);
    let [our_bytes, their_bytes] = [fs::metadata(texts[0])?.len(), fs::metadata(texts[1])?.len()];
    // Inferno draws for both: with a flame graph we read, sort and hand over, and it reads and draws.
    let how = if to == "flamegraph" { ", drawn by inferno on both sides" } else { "" };
    let name = format!("{:.0} MB of {from} to {to}{how}, by CPU time", our_bytes as f64 / 1e6);
    let ours = ours.reading(texts[0]).bytes_per_second(our_bytes as f64);
    let theirs = theirs.reading(texts[1]).bytes_per_second(their_bytes as f64);
    let claim = Claim::new(name, ClaimUnit::BytesPerSecond, Goal::Ratio(1.0), ours);
    Ok(claim.against(format!("{} of {INFERNO}", program.name()), theirs))
}

/// Stacks of 20 frames out of 500, which share their first half with few others.
fn folded_lines(output: &mut impl Write) -> Result<()> {
    let name = |depth, frame| format!("App\\Package{depth}\\Class{frame}");
    random_lines(1, 50_000, [20, 25], name, output)
}

/// Distinct stacks as programs of many packages have them: 32 frames with names of a hundred bytes, out of 16,000.
fn long_lines(output: &mut impl Write) -> Result<()> {
    let package = "Component\\".repeat(7);
    let name = |depth, frame| format!("App\\{package}Pack{depth:02}\\Class{frame:04}::method{frame:04}");
    random_lines(2, 40_000, [32, 1000], name, output)
}

/// Stacks of `depth` frames and a leaf: two choices for each of the first half, and `choices` for each of the rest.
fn random_lines(
    seed: u64,
    count: usize,
    [depth, choices]: [usize; 2],
    name: impl Fn(usize, usize) -> String,
    output: &mut impl Write,
) -> Result<()> {
    let mut random = Random::new(seed);
    for _ in 0..count {
        for at in 0..depth {
            let frame = random.below(if at < depth / 2 { 2 } else { choices });
            write!(output, "{};", name(at, frame))?;
        }
        writeln!(output, "Leaf {}", 1 + random.below(9))?;
    }
    Ok(())
}

/// The samples of `trace` as phpspy prints them.
fn phpspy_text(trace: &Trace, output: &mut impl Write) -> Result<()> {
    write_text(trace, output, "", |depth, (name, file, line)| format!("{depth} {name} {file}:{line}\n"))
}

/// The samples of the trace, as `perf script` prints native ones.
fn perf_text(trace: &Trace, output: &mut impl Write) -> Result<()> {
    let head = "php 4242 [000] 1000.000000:   10101010 cpu-clock: \n";
    write_text(trace, output, head, |depth, (name, file, _)| format!("\t{depth:12x} {name} ({file})\n"))
}

fn write_text(
    trace: &Trace,
    output: &mut impl Write,
    head: &str,
    line: impl Fn(usize, (String, String, i64)) -> String,
) -> Result<()> {
    let text = |places: &mut dyn Iterator<Item = (String, String, i64)>| -> String {
        let lines = places.enumerate().map(|(depth, place)| line(depth, place));
        head.to_owned() + &lines.collect::<String>() + "\n"
    };
    let stacks: Vec<String> = trace.stacks.iter().map(|stack| text(&mut stack.places())).collect();
    let mut written = 0;
    for &stack in trace.samples.iter().cycle() {
        if written >= TEXT_BYTES {
            break;
        }
        output.write_all(stacks[stack].as_bytes())?;
        written += stacks[stack].len();
    }
    Ok(())
}
