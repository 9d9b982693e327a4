//! Saves the intact parts of a damaged profile, and lists what was lost.

#![forbid(unsafe_code)]

use std::{env, fs::File};

use borehole::{Input, InputOptions, ReadOptions, Source, Target, convert};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = env::args().nth(1).unwrap_or("../../corpus/rbt/bitflip_middle.rbt".into());
    let options = InputOptions { read: ReadOptions::lenient(), ..InputOptions::default() };
    let input = Input::open(Source::path(trace)?, &options)?;
    let target = Target::new(input.format());
    let recovery = convert([input], &target, File::create("recovered.rbt")?)?.recovery;
    for warning in &recovery.warnings {
        println!("{:?} at {:?}: {}", warning.kind, warning.offset, warning.message);
    }
    println!("{} samples, {} bytes lost", recovery.samples, recovery.lost_bytes);
    Ok(())
}
