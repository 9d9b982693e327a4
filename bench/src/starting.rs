//! The claim on what a command takes before it does anything.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, ensure};

use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// So many starts are one round: the machine does something else during most of them.
const STARTS: u32 = 50;

pub(crate) fn claim(bench: &Bench) -> Claim {
    let program = bench.borehole.clone();
    let started = move || -> Result<f64> {
        let begin = Instant::now();
        let status = Command::new(&program).arg("--version").stdout(Stdio::null()).status()?;
        ensure!(status.success(), "{} --version: {status}", program.display());
        Ok(begin.elapsed().as_secs_f64())
    };
    let side: Side = Box::new(move || {
        (0..STARTS).map(|_| started()).try_fold(f64::INFINITY, |best, next| Ok(best.min(next?)))
    });
    Claim::new(
        "borehole --version, from start to end".to_owned(),
        ClaimUnit::Seconds,
        Goal::Value(0.005),
        side,
    )
}
