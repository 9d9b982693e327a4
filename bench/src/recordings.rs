//! Claims on recordings of other programs, each beside the program that most people read it with.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use xtask::peers;

use super::measure::Work;
use super::python::PythonPeer;
use super::{Bench, Claim, ClaimUnit, Goal, lanes};

/// How many bytes there are, roughly.
const RECORDED_BYTES: usize = 30_000_000;

/// The bytes per second that readers of binary formats reach.
const BINARY_BYTES: f64 = 200e6;

/// The bytes per second that readers of text and JSON reach.
const TEXT_BYTES: f64 = 100e6;

/// The bytes before the first event of a stream of `perf record`.
const PERF_HEAD_BYTES: usize = 16;

/// A program that reads recordings.
#[derive(Clone, Copy)]
enum RecordingReader {
    None,
    /// speedscope's importer under node.
    Speedscope,
    /// Python's `pstats`.
    Pstats,
    /// A program on the path or among the peers, and its arguments before the file.
    Program(&'static str, &'static [&'static str]),
}

/// A format, and how it is measured.
struct Recorded {
    format: &'static str,
    goal: f64,
    reader: RecordingReader,
}

const fn text(format: &'static str, reader: RecordingReader) -> Recorded {
    Recorded { format, goal: TEXT_BYTES, reader }
}

const fn binary(format: &'static str, reader: RecordingReader) -> Recorded {
    Recorded { format, goal: BINARY_BYTES, reader }
}

const RAW: RecordingReader = RecordingReader::Program("pprof", &["-raw"]);

/// The formats of which a script prints recordings of a made-up program.
const WRITTEN: &[Recorded] = &[
    text("perf-script", RecordingReader::Speedscope),
    text("chrome-trace", RecordingReader::Speedscope),
    text("cpuprofile", RecordingReader::Speedscope),
    text("heapprofile", RecordingReader::Speedscope),
    binary("pstats", RecordingReader::Pstats),
    text("callgrind", RecordingReader::Program("callgrind_annotate", &[])),
    text("austin", RecordingReader::None),
    binary("mojo", RecordingReader::None),
    text("gecko", RecordingReader::Speedscope),
    binary("gperftools", RAW),
    text("pprof-text", RAW),
    text("pyinstrument", RecordingReader::None),
    text("scalene", RecordingReader::None),
    text("stackprof", RecordingReader::Speedscope),
    text("rbspy", RecordingReader::None),
    text("dhat", RecordingReader::None),
    text("xdebug-trace", RecordingReader::None),
];

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let jfr =
        bench.input("recordings-30mb.jfr", |output| repeated(&bench.corpus("jfr/work.jfr"), 0, output))?;
    let print = RecordingReader::Program("jfr", &["print", "--events", "jdk.ExecutionSample"]);
    claims.push(claim(bench, None, &jfr, &binary("jfr", print))?);
    let perf = bench.input("recordings-30mb.perf.data", |output| {
        repeated(&bench.corpus("perf/stream.data"), PERF_HEAD_BYTES, output)
    })?;
    let script = RecordingReader::Program("perf", &["script", "-i"]);
    claims.push(claim(bench, None, &perf, &binary("perf-data", script))?);
    let Some(python) = PythonPeer::find(bench, "recordings")? else { return Ok(claims) };
    let write = python.script("recordings_write.py", include_str!("recordings_write.py"))?;
    for recorded in WRITTEN {
        let words = [write.clone(), recorded.format.to_owned(), RECORDED_BYTES.to_string()];
        let name = format!("written-30mb.{}", recorded.format);
        let file = bench.input(&name, |output| lanes::print(&python, &words, output))?;
        claims.push(claim(bench, Some(&python), &file, recorded)?);
    }
    Ok(claims)
}

fn claim(bench: &Bench, python: Option<&PythonPeer>, file: &Path, recorded: &Recorded) -> Result<Claim> {
    let Recorded { format, goal, reader } = *recorded;
    let bytes = file.metadata()?.len() as f64;
    // Austin's text is folded stacks.
    let from = if format == "austin" { "folded" } else { format };
    let ours = Work::new(&bench.borehole, ["convert", "-", "--from", from, "--to", "folded"]);
    let ours = ours.reading(file).bytes_per_second(bytes);
    let name = format!("{:.0} MB of {format} to folded, by CPU time", bytes / 1e6);
    let Some((reference, theirs)) = reference(python, file, reader)? else {
        return Ok(Claim::new(name, ClaimUnit::BytesPerSecond, Goal::Value(goal), ours));
    };
    let claim = Claim::new(name, ClaimUnit::BytesPerSecond, Goal::Both { value: goal, ratio: 1.0 }, ours);
    Ok(claim.against(reference, theirs.bytes_per_second(bytes)))
}

/// The name and the work of another program that reads a file; `None` if there is none.
fn reference(
    python: Option<&PythonPeer>,
    file: &Path,
    reader: RecordingReader,
) -> Result<Option<(String, Work)>> {
    let named = |command: &[String], name: String, arguments: &[&str]| {
        let (program, before) = command.split_first()?;
        let words = before.iter().map(OsString::from).chain(arguments.iter().map(OsString::from));
        Some((name, Work::new(Path::new(program), words.chain([file.into()]))))
    };
    Ok(match reader {
        RecordingReader::None => None,
        RecordingReader::Speedscope => peers::ready("speedscope")?.and_then(|ready| {
            named(&ready.command, format!("speedscope {} under node", ready.version), &["import"])
        }),
        RecordingReader::Pstats => python.map(|python| pstats(python, file)).transpose()?,
        RecordingReader::Program(program, arguments) => match peers::ready(program)? {
            Some(ready) => named(&ready.command, format!("{program} {}", ready.version), arguments),
            None if is_found(program) => named(&[program.to_owned()], program.to_owned(), arguments),
            None => None,
        },
    })
}

fn pstats(python: &PythonPeer, file: &Path) -> Result<(String, Work)> {
    let lent = python.lend(file)?;
    let program = "import pstats, sys; pstats.Stats(sys.argv[1]).print_stats(1)".to_owned();
    Ok((format!("pstats of {}", python.name()), python.work(&["-c".to_owned(), program, lent])))
}

/// A file whose bytes from `body` on come again and again.
fn repeated(file: &Path, body: usize, output: &mut impl Write) -> Result<()> {
    let bytes = std::fs::read(file)?;
    output.write_all(&bytes[..body])?;
    let mut written = body;
    while written < RECORDED_BYTES {
        output.write_all(&bytes[body..])?;
        written += bytes.len() - body;
    }
    Ok(())
}

/// Whether a program is on the path and runs.
fn is_found(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|answered| answered.status.success())
}
