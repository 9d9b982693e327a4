//! Claims on looking at profiles: comparing, pages, and tables.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use borehole_formats::rbt::{FrameDef, Header, SampleDef, Writer};
use borehole_testkit::fuzzing::Random;
use borehole_testkit::peers::peer;

use super::measure::Work;
use super::{Bench, Claim, ClaimUnit, Goal};

const STACKS: u64 = 100_000;
const DEPTH: usize = 30;
const SAMPLES: u64 = 1_000_000;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let before = bench.input("wide-1m-before.rbt", |output| wide(1, output))?;
    let after = bench.input("wide-1m-after.rbt", |output| wide(2, output))?;
    let page = bench.folder.join("page.html");
    let on = "1 M samples of 100,000 stacks 30 deep";
    let diff = Work::new(&bench.borehole, ["diff".as_ref(), before.as_os_str(), after.as_os_str()]);
    let html = Work::new(&bench.borehole, ["report".as_ref(), before.as_os_str()]).saving(&page);
    let mut claims = vec![
        Claim::new(
            format!("diff of two profiles of {on}"),
            ClaimUnit::Seconds,
            Goal::Value(0.25),
            diff.cpu_seconds(),
        ),
        Claim::new(format!("page of {on}"), ClaimUnit::Seconds, Goal::Value(0.5), html.cpu_seconds()),
    ];
    claims.extend(top(bench, &before)?);
    Ok(claims)
}

/// The top table of the first half of the samples, against the program that everybody uses for it.
fn top(bench: &Bench, trace: &Path) -> Result<Vec<Claim>> {
    let Some(pprof) = peer("pprof") else { return Ok(Vec::new()) };
    let profile = bench.folder.join("wide-1m.pb.gz");
    if !profile.is_file() {
        Work::new(&bench.borehole, ["convert".as_ref(), trace.as_os_str()]).saving(&profile).run()?;
    }
    let size = fs::metadata(&profile)?.len();
    let command = pprof.command();
    let ours = || Work::new(&bench.borehole, ["report".as_ref(), "--no-line".as_ref(), profile.as_os_str()]);
    let theirs = || Work::new(Path::new(command.get_program()), ["-top".as_ref(), profile.as_os_str()]);
    let name = format!("top table of a pprof file of {:.1} MB", size as f64 / 1e6);
    let reference = format!("pprof -top of {}", pprof.version());
    Ok(vec![
        Claim::new(name.clone(), ClaimUnit::Seconds, Goal::Ratio(4.0), ours().cpu_seconds())
            .against(reference.clone(), theirs().cpu_seconds()),
        Claim::new(format!("{name}, memory"), ClaimUnit::Bytes, Goal::Ratio(4.0), ours().peak_bytes())
            .against(reference, theirs().peak_bytes()),
    ])
}

/// Stacks that share their beginnings, with times.
fn wide(seed: u64, output: &mut impl Write) -> Result<()> {
    let names: Vec<String> =
        (0..4000).map(|name| format!("App\\Package{}\\Class::method{name}", name % 50)).collect();
    let mut random = Random::new(seed);
    let header = Header { period_us: 1000, has_timestamps: true };
    let mut writer = Writer::new(Vec::new(), header)?;
    let mut stacks = Vec::new();
    for stack in 0..STACKS {
        // Digits of the number choose who calls whom: the nearer to the root, the fewer there are.
        let frames: Vec<FrameDef<'_>> = (0..DEPTH)
            .rev()
            .map(|depth| {
                let choice = stack >> (17 * (DEPTH - 1 - depth) / DEPTH);
                let name = usize::try_from((choice * 31 + depth as u64 * 131) % 4000).unwrap_or(0);
                FrameDef::php(&names[name], "/srv/app/src/Class.php", 42)
            })
            .collect();
        stacks.push(writer.define_trace(&frames)?);
    }
    for _ in 0..SAMPLES {
        let stack = stacks[random.below(stacks.len())];
        writer.write_sample(&SampleDef { delta_us: Some(1000), ..SampleDef::of(stack) })?;
    }
    output.write_all(&writer.finish()?)?;
    Ok(())
}
