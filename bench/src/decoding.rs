//! Claims on decoding, in this process.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Result;
use borehole_formats::rbt::{Reader, Record};

use super::inputs::{Traces, name};
use super::measure::rate;
use super::{Claim, ClaimUnit, Goal, Side};

pub(crate) fn claims(traces: &Traces) -> Result<Vec<Claim>> {
    let samples = |path: &Path, goal| decoded(path, ClaimUnit::PerSecond, goal);
    Ok(vec![
        varints(1),
        varints(3),
        samples(&traces.million, 100e6)?,
        samples(&traces.hundred_million, 100e6)?,
        samples(&traces.restless, 100e6)?,
        samples(&traces.timed, 50e6)?,
        decoded(&traces.timed, ClaimUnit::BytesPerSecond, 400e6)?,
    ])
}

/// The numbers that all decoding is made of: a million, the small ones counted and the longer ones weighed.
fn varints(width: usize) -> Claim {
    let bytes = [vec![0x80; width - 1], vec![0x01]].concat().repeat(1_000_000);
    let (unit, items, goal) = match width {
        1 => (ClaimUnit::PerSecond, 1e6, 100e6),
        _ => (ClaimUnit::BytesPerSecond, 1e6 * width as f64, 200e6),
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
    let name = format!("varints of {width} B each, decoded");
    Claim::new(name, unit, Goal::Value(goal), ours)
}

/// Every sample of the trace at `path`, pulled out of the open file.
fn decoded(path: &Path, unit: ClaimUnit, goal: f64) -> Result<Claim> {
    let items = match unit {
        ClaimUnit::BytesPerSecond => fs::metadata(path)?.len() as f64,
        _ => samples(path)? as f64,
    };
    let what = if unit == ClaimUnit::BytesPerSecond { "bytes" } else { "samples" };
    let name = format!("{}, {what} decoded", name(path));
    Ok(Claim::new(name, unit, Goal::Value(goal), decoding(path, items)))
}

fn decoding(path: &Path, items: f64) -> Side {
    let path = path.to_owned();
    rate(items, move || samples(&path).map(drop))
}

/// How many samples there are, each looked at.
fn samples(path: &Path) -> Result<u64> {
    let mut reader = Reader::new(File::open(path)?);
    let mut count = 0_u64;
    while let Some(record) = reader.next_record()? {
        if let Record::Sample(sample) = record {
            std::hint::black_box((sample.stack, sample.accumulated_us));
            count += sample.count;
        }
    }
    Ok(count)
}
