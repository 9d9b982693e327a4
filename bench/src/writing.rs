//! Claims on writing, in this process.

use std::io::{self, Write};
use std::rc::Rc;

use anyhow::Result;
use borehole_formats::rbt::{FrameDef, Header, SampleDef, StackId, Writer};

use super::inputs::Traces;
use super::measure::rate;
use super::traces::{Order, Stack, Trace};
use super::{Claim, ClaimUnit, Goal};

const COMPACT: Header = Header { has_timestamps: false, period_us: 10_000 };
const TIMED: Header = Header { has_timestamps: true, period_us: 10_000 };

/// How many samples a claim writes.
const SAMPLES: u32 = 10_000_000;

/// How deep the stacks are whose frames are borrowed.
const DEPTH: usize = 40;

pub(crate) fn claims(traces: &Traces) -> Result<Vec<Claim>> {
    let trace = Rc::new(Trace::read(&traces.million)?);
    Ok(vec![
        interned("compact samples of defined stacks, written", &trace, COMPACT),
        interned("timestamped samples of defined stacks, written", &trace, TIMED),
        borrowed(&trace),
    ])
}

/// Samples whose stacks the writer has defined before.
fn interned(name: &str, trace: &Rc<Trace>, header: Header) -> Claim {
    let trace = Rc::clone(trace);
    let ours = rate(f64::from(SAMPLES), move || {
        let mut writer = Writer::new(io::sink(), header)?;
        let stacks = trace.define(&mut writer)?;
        write_restless(&mut writer, &stacks, SAMPLES.into())?;
        Ok(writer.finish().map(drop)?)
    });
    Claim::new(name.to_owned(), ClaimUnit::PerSecond, Goal::Value(50e6), ours)
}

/// Samples given by their frames, whose strings the writer has to compare or look up.
fn borrowed(trace: &Trace) -> Claim {
    let trace = trace.of_depth(DEPTH);
    let name = format!("samples of {DEPTH} borrowed frames each, written");
    let ours = rate(trace.samples.len() as f64, move || {
        let mut writer = Writer::new(io::sink(), COMPACT)?;
        let stacks: Vec<Vec<FrameDef<'_>>> = trace.stacks.iter().map(Stack::frames).collect();
        for &stack in &trace.samples {
            writer.write_trace(&stacks[stack])?;
        }
        Ok(writer.finish().map(drop)?)
    });
    Claim::new(name, ClaimUnit::PerSecond, Goal::Value(2e6), ours)
}

/// A trace of `count` samples of the stacks of `source`, no two neighbours equal.
pub(crate) fn restless(source: &Trace, count: u64, output: &mut impl Write) -> Result<()> {
    let mut writer = Writer::new(output, COMPACT)?;
    let stacks = source.define(&mut writer)?;
    write_restless(&mut writer, &stacks, count)?;
    Ok(writer.finish().map(drop)?)
}

/// A trace of `count` samples of 100 stacks, 3 deep.
pub(crate) fn shallow(count: u64, output: &mut impl Write) -> Result<()> {
    let names: Vec<String> = (0..100).map(|number| format!("App\\Job{number}::run")).collect();
    let mut writer = Writer::new(output, COMPACT)?;
    let mut stacks = Vec::new();
    for name in &names {
        let frames = [name, "App\\Worker::loop", "<main>"];
        stacks.push(writer.define_trace(&frames.map(|name| FrameDef::php(name, "/app/worker.php", 7)))?);
    }
    write_restless(&mut writer, &stacks, count)?;
    Ok(writer.finish().map(drop)?)
}

fn write_restless<W: Write>(writer: &mut Writer<W>, stacks: &[StackId], count: u64) -> Result<()> {
    for (stack, _) in Order::restless(stacks).zip(0..count) {
        writer.write_sample(&SampleDef { delta_us: Some(9_990), ..SampleDef::of(stack) })?;
    }
    Ok(())
}
