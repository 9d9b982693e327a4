//! A sampler of a program's own: what a worker does, a hundred times a second, as a pprof profile.

#![forbid(unsafe_code)]

use std::time::Duration;
use std::{error::Error, fs::File};

use borehole::{Format, Profile, model::Sample};

fn main() -> Result<(), Box<dyn Error>> {
    let mut profile = Profile::every(Duration::from_millis(10));
    let main = profile.frame_at("main", "src/main.rs", 3)?;
    let tasks = [profile.frame("parse")?, profile.frame("query")?];
    for tick in 0..100_usize {
        let stack = profile.stack(&[main, tasks[tick % 3 / 2]])?;
        let time_ns = Some(tick as i64 * 10_000_000);
        profile.add(&Sample { time_ns, thread: Some(1), ..Sample::of(stack) });
    }
    profile.write(Format::Pprof, File::create("sampler.pb.gz")?)?;
    Ok(())
}
