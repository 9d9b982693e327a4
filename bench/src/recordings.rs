//! Claims on recordings of other programs, in their own binary formats.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::measure::Work;
use super::{Bench, Claim, ClaimUnit, Goal};

/// How many bytes there are, roughly.
const RECORDED_BYTES: usize = 50_000_000;

/// The bytes per second that readers of binary formats reach.
const GOAL_BYTES: f64 = 200e6;

/// The bytes before the first event: the magic and the version.
const MOJO_HEAD_BYTES: usize = 4;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let jfr =
        bench.input("recordings-50mb.jfr", |output| repeated(&bench.corpus("jfr/work.jfr"), 0, output))?;
    let mojo = bench.input("samples-50mb.mojo", |output| {
        repeated(&bench.corpus("austin/wall.mojo"), MOJO_HEAD_BYTES, output)
    })?;
    let mut claims = vec![claim(bench, &mojo, "mojo", Goal::Value(GOAL_BYTES))?];
    let jfr_tool = found("jfr");
    let goal = match &jfr_tool {
        Some(_) => Goal::Both { value: GOAL_BYTES, ratio: 1.0 },
        None => Goal::Value(GOAL_BYTES),
    };
    let read = claim(bench, &jfr, "jfr", goal)?;
    claims.push(match jfr_tool {
        Some(tool) => {
            let bytes = jfr.metadata()?.len() as f64;
            let print = ["print", "--events", "jdk.ExecutionSample"].map(OsStr::new);
            let print = Work::new(&tool, print.into_iter().chain([jfr.as_os_str()]));
            let name = "jfr print of the JDK, of one kind of event".to_owned();
            read.against(name, print.bytes_per_second(bytes))
        }
        None => read,
    });
    Ok(claims)
}

fn claim(bench: &Bench, file: &Path, format: &str, goal: Goal) -> Result<Claim> {
    let bytes = file.metadata()?.len() as f64;
    let ours = Work::new(&bench.borehole, ["convert", "-", "--from", format, "--to", "folded"]);
    let name = format!("{:.0} MB of {format} to folded, by CPU time", bytes / 1e6);
    Ok(Claim::new(name, ClaimUnit::BytesPerSecond, goal, ours.reading(file).bytes_per_second(bytes)))
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

/// A program that is on the path and runs.
fn found(program: &str) -> Option<PathBuf> {
    let answered = Command::new(program).arg("--version").output().ok()?;
    answered.status.success().then(|| PathBuf::from(program))
}
