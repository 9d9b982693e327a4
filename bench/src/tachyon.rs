//! Claims on `tachyon`: reading, converting and writing, beside Python's own profiler where it is set up.

use borehole_formats::Compression;
use std::fs;
use std::io::{self, Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use borehole_formats::tachyon::{FrameSlot, PythonFrame, Reader, Writer, WriterOptions};
use xtask::command;

use super::measure::{Work, elapsed_rate, rate, rate_on};
use super::python::PythonPeer;
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// A profile of a million samples, of stacks thirty deep on average.
#[derive(Clone, Copy)]
struct TachyonInput {
    /// Its contents, as the claim names them.
    what: &'static str,
    file: &'static str,
    /// How many samples a second are to be decoded.
    goal: f64,
}

const PROFILES: [TachyonInput; 2] = [
    TachyonInput { what: "100k stacks", file: "big1M_100k", goal: 10e6 },
    TachyonInput { what: "2k stacks in runs", file: "big1M_2k_rle", goal: 60e6 },
];

const SAMPLES: f64 = 1e6;

/// An output that we write, how `replay` is told to write it, and how many times as fast ours is to be.
const OUTPUTS: [(&str, &str, f64); 4] = [
    ("collapsed", "--collapsed", 40.0),
    ("pstats", "--pstats", 60.0),
    ("gecko", "--gecko", 60.0),
    ("tachyon-jsonl", "--jsonl", 60.0),
];

/// How much less memory a conversion is to take.
const LESS_MEMORY: f64 = 4.0;

/// How many times as fast writing is to be.
const FASTER_WRITING: f64 = 20.0;

/// How many samples are written.
const WRITTEN: usize = 200_000;

/// The longest that opening a file is to take.
const OPEN_SECONDS: f64 = 0.005;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let plain: Vec<PathBuf> = PROFILES.iter().map(|profile| plain(bench, *profile)).collect::<Result<_>>()?;
    let mut claims = Vec::new();
    for (profile, path) in PROFILES.into_iter().zip(&plain) {
        claims.extend([decoded(profile, path), opened(profile, path)]);
    }
    let python = PythonPeer::find(bench, "tachyon")?;
    for (profile, path) in PROFILES.into_iter().zip(&plain) {
        for output in OUTPUTS {
            claims.extend(converted(bench, python.as_ref(), profile, path, output)?);
        }
    }
    for (compression, clock) in [
        (Compression::None, CountedTime::Cpu),
        (Compression::Zstd, CountedTime::Cpu),
        (Compression::Zstd, CountedTime::Wall),
    ] {
        claims.push(written(python.as_ref(), &plain[0], compression, clock)?);
    }
    claims.push(merged(bench));
    Ok(claims)
}

/// The profile without compression.
fn plain(bench: &Bench, profile: TachyonInput) -> Result<PathBuf> {
    let source = bench.corpus(&format!("tachyon/synthetic/{}_zstd.bin", profile.file));
    bench.input(&format!("{}_none.bin", profile.file), |output| {
        let mut convert = Command::new(&bench.borehole);
        convert.args(["convert", "--to", "tachyon", "--tachyon-compression", "none"]).arg(&source);
        let converted = convert.output()?;
        ensure!(converted.status.success(), "{}", String::from_utf8_lossy(&converted.stderr));
        Ok(output.write_all(&converted.stdout)?)
    })
}

/// Every sample with its stack, out of memory.
fn decoded(profile: TachyonInput, path: &Path) -> Claim {
    let name = format!("tachyon, 1M samples of {}: decoded, stacks rebuilt", profile.what);
    let ours = rate_on(path, SAMPLES, decode);
    let reference = rate_on(path, SAMPLES, |bytes| {
        plain_loop(bytes);
        Ok(())
    });
    let claim = Claim::new(name, ClaimUnit::PerSecond, Goal::Value(profile.goal), ours);
    claim.against("a plain loop over the bytes".to_owned(), reference)
}

fn decode(bytes: &[u8]) -> Result<()> {
    let mut reader = Reader::new(bytes)?;
    while let Some(sample) = reader.next_sample()? {
        std::hint::black_box((sample.time_us, sample.status, sample.kept, sample.frames_root_first));
    }
    Ok(())
}

/// The least that any reader does: each byte looked at, each varint put together.
fn plain_loop(bytes: &[u8]) {
    let (mut sum, mut value) = (0_u64, 0_u64);
    for &byte in bytes {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            sum = sum.wrapping_add(std::mem::take(&mut value));
        }
    }
    std::hint::black_box(sum);
}

fn opened(profile: TachyonInput, path: &Path) -> Claim {
    const TIMES: u32 = 20;
    let mut per_second = rate_on(path, TIMES.into(), |bytes| {
        (0..TIMES).try_for_each(|_| {
            std::hint::black_box(Reader::new(bytes)?);
            Ok(())
        })
    });
    let name = format!("tachyon, 1M samples of {}: opened", profile.what);
    Claim::new(name, ClaimUnit::Seconds, Goal::Value(OPEN_SECONDS), Box::new(move || Ok(1.0 / per_second()?)))
}

/// The time and the memory of one conversion. Without Python there is nothing to compare them with.
fn converted(
    bench: &Bench,
    python: Option<&PythonPeer>,
    profile: TachyonInput,
    path: &Path,
    (to, option, faster): (&str, &str, f64),
) -> Result<Vec<Claim>> {
    let Some(python) = python else { return Ok(Vec::new()) };
    let input = python.lend(path)?;
    let options = ["-m", "profiling.sampling", "replay", option, "-o", &python.inside("output"), &input];
    let (their_cpu, their_peak) = python.work(&options).remembered();
    let output = bench.folder.join("output");
    let words = ["convert".as_ref(), path.as_os_str(), "--to".as_ref(), to.as_ref()];
    let ours = Work::new(&bench.borehole, words).saving(&output);
    let name = |what| format!("tachyon, 1M samples of {} to {to}, {what}", profile.what);
    let cpu = Claim::new(name("CPU"), ClaimUnit::Seconds, Goal::Ratio(faster), ours.clone().cpu_seconds());
    let peak = Claim::new(name("peak memory"), ClaimUnit::Bytes, Goal::Ratio(LESS_MEMORY), ours.peak_bytes());
    Ok(vec![cpu.against(python.name(), their_cpu), peak.against(python.name(), their_peak).once()])
}

/// A sample whose frames the writer knows.
struct Prepared {
    thread: u64,
    interpreter: u32,
    time_us: u64,
    status: u8,
    frames: Vec<u32>,
}

/// The time that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedTime {
    /// That of all threads.
    Cpu,
    /// Until it is done: compression is the work of a second thread.
    Wall,
}

/// Samples of frames that are defined, or objects that are made, before the time counts.
fn written(
    python: Option<&PythonPeer>,
    path: &Path,
    compression: Compression,
    clock: CountedTime,
) -> Result<Claim> {
    let word = if compression == Compression::Zstd { "Zstandard" } else { "plain" };
    let until = if clock == CountedTime::Wall { ", elapsed" } else { "" };
    let name = format!("tachyon, {}k samples of defined frames, written, {word}{until}", WRITTEN / 1000);
    let bytes = fs::read(path)?;
    let samples = Rc::new(prepared(&bytes)?);
    let write = move || write(&bytes, &samples, compression);
    let ours = match clock {
        CountedTime::Cpu => rate(WRITTEN as f64, write),
        CountedTime::Wall => elapsed_rate(WRITTEN as f64, write),
    };
    let Some(python) = python else {
        return Ok(Claim::new(name, ClaimUnit::PerSecond, Goal::Value(1.0), ours));
    };
    let input = python.lend(path)?;
    let script = python.script("write.py", include_str!("tachyon_write.py"))?;
    let number = u32::from(compression == Compression::Zstd).to_string();
    let seconds = if clock == CountedTime::Wall { "elapsed" } else { "cpu" }.to_owned();
    let output = python.inside("output");
    let words = [script, input, output, WRITTEN.to_string(), number, seconds];
    let mut write = python.command(&words);
    let reference: Side = Box::new(move || {
        let answer = command::output(&mut write)?;
        answer.trim().parse().with_context(|| format!("writing says {answer}"))
    });
    let claim = Claim::new(name, ClaimUnit::PerSecond, Goal::Ratio(FASTER_WRITING), ours);
    Ok(claim.against(python.name(), reference))
}

fn prepared(bytes: &[u8]) -> Result<Vec<Prepared>> {
    let mut reader = Reader::new(bytes)?;
    let mut samples = Vec::new();
    while samples.len() < WRITTEN
        && let Some(sample) = reader.next_sample()?
    {
        samples.push(Prepared {
            thread: sample.thread,
            interpreter: sample.interpreter,
            time_us: sample.time_us,
            status: sample.status,
            frames: sample.frames_root_first.iter().rev().copied().collect(),
        });
    }
    Ok(samples)
}

fn write(source: &[u8], samples: &[Prepared], compression: Compression) -> Result<()> {
    let reader = Reader::new(source)?;
    let tables = reader.tables();
    let options =
        WriterOptions { compression, start_us: reader.header().start_us, ..WriterOptions::default() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), options)?;
    let mut defined: Vec<FrameSlot> = Vec::new();
    for index in 0..u32::try_from(tables.frame_count())? {
        let frame = tables.frame(index).context("a frame within the table")?;
        let string = |index| tables.string(index).unwrap_or_default();
        let (file, function) = (string(frame.file), string(frame.function));
        let &borehole_formats::tachyon::FileFrame { line, end_line, column, end_column, opcode, .. } = frame;
        let def = PythonFrame { file, function, line, end_line, column, end_column, opcode };
        defined.push(writer.define_frame(&def)?);
    }
    let mut frames = Vec::new();
    for sample in samples {
        frames.clear();
        frames.extend(sample.frames.iter().map(|&frame| defined[frame as usize]));
        let thread = writer.thread(sample.thread, sample.interpreter)?;
        writer.write_sample(thread, sample.time_us, sample.status, &frames)?;
    }
    Ok(writer.finish(io::sink())?)
}

/// A thousand files take the memory of a hundred: what is distinct in them is the same. Ten are too few to fill the window
/// of Zstandard, whose memory is taken when it is first written to.
fn merged(bench: &Bench) -> Claim {
    let file = bench.corpus("tachyon/corpus/26_realapp_zstd.bin");
    let merge = |files: usize| {
        let words = ["convert".as_ref(), "--to".as_ref(), "tachyon".as_ref()];
        Work::new(&bench.borehole, words.into_iter().chain(std::iter::repeat_n(file.as_os_str(), files)))
    };
    let name = "tachyon, 1000 files merged into one, peak memory".to_owned();
    let claim = Claim::new(name, ClaimUnit::Bytes, Goal::Ratio(0.9), merge(1000).peak_bytes());
    claim.against("100 files".to_owned(), merge(100).peak_bytes()).once()
}
