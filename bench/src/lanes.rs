//! Claims on speedscope documents of many threads, beside Python's own JSON.
//!
//! Both sides know the same samples by rule: each thread has one in each millisecond, of a stack that follows from its number
//! and the thread's. `speedscope_write.py` has the same rules.

use borehole_formats::Compression;
use std::io::{self, Cursor, Write};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use borehole_formats::tachyon::{FrameSlot, PythonFrame, Writer, WriterOptions};

use super::measure::Work;
use super::python::PythonPeer;
use super::{Bench, Claim, ClaimUnit, Goal};

/// The size of a document.
#[derive(Clone, Copy)]
struct LaneShape {
    threads: u64,
    /// Of each thread.
    samples: u64,
    frames: u64,
    stacks: u64,
    depth: u64,
}

const SHAPE: LaneShape = LaneShape { threads: 64, samples: 100_000, frames: 250, stacks: 2_000, depth: 10 };

/// The time between two samples of a thread.
const PERIOD_US: u64 = 1_000;

/// A conversion, and Python doing its work.
struct Conversion {
    name: &'static str,
    input: PathBuf,
    to: &'static str,
    /// The function of Python that does the work.
    reference: &'static str,
    theirs: Work,
    /// How many times as fast it is to be.
    faster: f64,
}

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let Some(python) = PythonPeer::find(bench, "speedscope")? else { return Ok(Vec::new()) };
    let read = python.script("speedscope_read.py", include_str!("speedscope_read.py"))?;
    let write = SHAPE.words(python.script("speedscope_write.py", include_str!("speedscope_write.py"))?);
    let document = bench.input("lanes-64x100k.speedscope.json", |output| print(&python, &write, output))?;
    let conversions = [
        Conversion {
            name: "speedscope to folded",
            theirs: python.work(&[read]).reading(&document),
            input: document,
            to: "folded",
            reference: "json.load",
            faster: 2.0,
        },
        Conversion {
            name: "tachyon to speedscope",
            theirs: python.work(&write),
            input: bench.input("lanes-64x100k.bin", |output| SHAPE.write(output))?,
            to: "speedscope",
            reference: "json.dump",
            faster: 3.0,
        },
    ];
    Ok(conversions.into_iter().flat_map(|conversion| sides(bench, &python, conversion)).collect())
}

/// The time and the memory of a conversion.
fn sides(bench: &Bench, python: &PythonPeer, conversion: Conversion) -> [Claim; 2] {
    let Conversion { name, input, to, reference, theirs, faster } = conversion;
    let words = ["convert".as_ref(), input.as_os_str(), "--to".as_ref(), to.as_ref()];
    let ours = Work::new(&bench.borehole, words);
    let (their_cpu, their_peak) = theirs.remembered();
    let name = |what| format!("64 threads of 100k samples each, {name}, {what}");
    let reference = format!("{reference} of {}", python.name());
    [
        Claim::new(name("CPU"), ClaimUnit::Seconds, Goal::Ratio(faster), ours.clone().cpu_seconds())
            .against(reference.clone(), their_cpu),
        Claim::new(name("peak memory"), ClaimUnit::Bytes, Goal::Ratio(1.0), ours.peak_bytes())
            .against(reference, their_peak)
            .once(),
    ]
}

/// Writes what a Python script prints to `output`.
pub(crate) fn print(python: &PythonPeer, words: &[String], output: &mut impl Write) -> Result<()> {
    let mut child = python.command(words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut printed = child.stdout.take().context("standard output is a pipe")?;
    let copied = io::copy(&mut printed, output);
    drop(printed);
    let status = child.wait()?;
    copied?;
    ensure!(status.success(), "{}: {status}", words.join(" "));
    Ok(())
}

impl LaneShape {
    /// The arguments of the script that prints the document.
    fn words(&self, script: String) -> Vec<String> {
        let Self { threads, samples, frames, stacks, depth } = *self;
        let numbers = [threads, samples, frames, stacks, depth, PERIOD_US * 1_000];
        std::iter::once(script).chain(numbers.map(|number| number.to_string())).collect()
    }

    /// The frames of a stack, the root first. Stacks share their beginnings.
    fn frames_root_first(&self, stack: u64) -> impl DoubleEndedIterator<Item = u64> {
        let Self { depth, frames, .. } = *self;
        (0..depth).map(move |at| ((stack >> (depth - 1 - at)) * 7 + at * 25) % frames)
    }

    /// The stack of a sample. No two neighbours are equal.
    const fn stack(&self, thread: u64, sample: u64) -> u64 {
        (thread * 31 + sample * 7 + sample / 8 * 3) % self.stacks
    }

    /// Writes the samples as Python's profiler does.
    fn write(&self, output: &mut impl Write) -> Result<()> {
        let options = WriterOptions {
            compression: Compression::None,
            start_us: PERIOD_US,
            interval_us: PERIOD_US,
            ..WriterOptions::default()
        };
        let mut writer = Writer::new(Cursor::new(Vec::new()), options)?;
        let mut stacks = Vec::new();
        for stack in 0..self.stacks {
            let frames = self.frames_root_first(stack).rev();
            let frames: io::Result<Vec<FrameSlot>> = frames.map(|frame| define(&mut writer, frame)).collect();
            stacks.push(frames?);
        }
        for sample in 0..self.samples {
            for thread in 0..self.threads {
                let slot = writer.thread(1 + thread, 0)?;
                let stack = usize::try_from(self.stack(thread, sample))?;
                writer.write_sample(slot, (1 + sample) * PERIOD_US, 0, &stacks[stack])?;
            }
        }
        Ok(writer.finish(output)?)
    }
}

fn define(writer: &mut Writer<Cursor<Vec<u8>>>, frame: u64) -> io::Result<FrameSlot> {
    let line = i32::try_from(1 + frame).unwrap_or(i32::MAX);
    writer.define_frame(&PythonFrame {
        file: b"/srv/app/work.py",
        function: format!("work{frame}").as_bytes(),
        line,
        end_line: -1,
        column: -1,
        end_column: -1,
        opcode: None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use borehole_formats::tachyon::Reader;

    use super::*;

    #[test]
    fn stacks_differ_from_each_other_and_from_those_of_their_neighbours() {
        let stacks: BTreeSet<Vec<u64>> =
            (0..SHAPE.stacks).map(|stack| SHAPE.frames_root_first(stack).collect()).collect();
        assert_eq!(stacks.len() as u64, SHAPE.stacks);
        assert!(stacks.iter().flatten().all(|&frame| frame < SHAPE.frames));
        for thread in [0, 1, SHAPE.threads - 1] {
            for sample in 1..SHAPE.samples {
                assert_ne!(SHAPE.stack(thread, sample), SHAPE.stack(thread, sample - 1));
            }
        }
    }

    #[test]
    fn every_thread_has_a_sample_in_each_millisecond() {
        let shape = LaneShape { threads: 3, samples: 50, ..SHAPE };
        let mut profile = Vec::new();
        shape.write(&mut profile).unwrap();
        let mut reader = Reader::new(&profile).unwrap();
        let mut times = vec![Vec::new(); 3];
        while let Some(sample) = reader.next_sample().unwrap() {
            assert_eq!(sample.frames_root_first.len() as u64, shape.depth);
            times[usize::try_from(sample.thread).unwrap() - 1].push(sample.time_us);
        }
        let expected: Vec<u64> = (1..=50).map(|sample| sample * PERIOD_US).collect();
        assert_eq!(times, vec![expected; 3]);
    }
}
