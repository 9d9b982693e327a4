//! The claims: what is measured, and on what.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::traces::Trace;
use super::{
    Bench, Claim, allocations, capture, conversion, damage, databases, decoding, events, explore, heap,
    heap_walk, lake, lanes, share, starting, tachyon, text, writing,
};

/// The traces that claims are made about.
pub(crate) struct Traces {
    /// A million samples of stacks 40 deep, runs of equal ones written as repeats.
    pub(crate) million: PathBuf,
    /// The same with a timestamp each.
    pub(crate) timed: PathBuf,
    /// The first, a hundred times over.
    pub(crate) hundred_million: PathBuf,
    /// A hundred million samples of the same stacks in one segment, no two neighbours equal.
    pub(crate) restless: PathBuf,
    /// A million and a hundred million samples of stacks 3 deep, for the format that writes out every frame.
    pub(crate) shallow: [PathBuf; 2],
}

impl Traces {
    fn new(bench: &Bench) -> Result<Self> {
        let million = bench.corpus("rbt/samples_1m.rbt");
        Ok(Self {
            timed: bench.corpus("rbt/samples_1m_ts.rbt"),
            hundred_million: bench.repeated(&million, 100)?,
            restless: bench.input("restless-100m.rbt", |output| {
                writing::restless(&Trace::read(&million)?, 100_000_000, output)
            })?,
            shallow: [shallow(bench, 1)?, shallow(bench, 100)?],
            million,
        })
    }
}

fn shallow(bench: &Bench, millions: u64) -> Result<PathBuf> {
    let name = format!("shallow-{millions}m.rbt");
    bench.input(&name, |output| writing::shallow(millions * 1_000_000, output))
}

/// Every claim, in the order of the table.
pub(crate) fn all(bench: &Bench) -> Result<Vec<Claim>> {
    let traces = Traces::new(bench)?;
    let mut claims = decoding::claims(&traces)?;
    claims.extend(writing::claims(&traces)?);
    claims.extend(conversion::claims(bench, &traces));
    claims.extend(text::claims(bench)?);
    claims.extend(events::claims(bench)?);
    claims.extend(damage::claims(bench)?);
    claims.extend(tachyon::claims(bench)?);
    claims.extend(lanes::claims(bench)?);
    claims.extend(capture::claims(bench)?);
    claims.extend(heap::claims(bench)?);
    claims.extend(heap_walk::claims(bench)?);
    claims.extend(databases::claims(bench)?);
    claims.extend(explore::claims(&traces)?);
    claims.extend(share::claims(bench)?);
    claims.extend(allocations::claims(bench)?);
    claims.extend(lake::claims(bench)?);
    claims.push(starting::claim(bench));
    Ok(claims)
}

/// A file as the table calls it.
pub(crate) fn name(input: &Path) -> String {
    input.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
