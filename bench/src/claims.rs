//! The claims: what is measured, and on what.

use std::path::PathBuf;

use anyhow::Result;

use super::inputs::Traces;
use super::traces::Trace;
use super::{
    Bench, Claim, allocations, capture, conversion, damage, databases, decoding, events, explore, heap,
    heap_walk, lake, lanes, live_python, native, recordings, serving, share, starting, symbols, tachyon,
    text, writing,
};

fn traces(bench: &Bench) -> Result<Traces> {
    let million = bench.corpus("rbt/samples_1m.rbt");
    Ok(Traces {
        timed: bench.corpus("rbt/samples_1m_ts.rbt"),
        hundred_million: bench.repeated(&million, 100)?,
        restless: bench.input("restless-100m.rbt", |output| {
            writing::restless(&Trace::read(&million)?, 100_000_000, output)
        })?,
        shallow: [shallow(bench, 1)?, shallow(bench, 100)?],
        million,
    })
}

fn shallow(bench: &Bench, millions: u64) -> Result<PathBuf> {
    let name = format!("shallow-{millions}m.rbt");
    bench.input(&name, |output| writing::shallow(millions * 1_000_000, output))
}

/// Every claim, in the order of the table.
pub(crate) fn all(bench: &Bench) -> Result<Vec<Claim>> {
    let traces = traces(bench)?;
    let mut claims = decoding::claims(&traces)?;
    claims.extend(writing::claims(&traces)?);
    claims.extend(conversion::claims(bench, &traces));
    claims.extend(text::claims(bench)?);
    claims.extend(events::claims(bench)?);
    claims.extend(damage::claims(bench)?);
    claims.extend(tachyon::claims(bench)?);
    claims.extend(lanes::claims(bench)?);
    claims.extend(capture::claims(bench)?);
    claims.extend(live_python::claims(bench)?);
    claims.extend(native::claims(bench)?);
    claims.extend(heap::claims(bench)?);
    claims.extend(heap_walk::claims(bench)?);
    claims.extend(databases::claims(bench)?);
    claims.extend(explore::claims(&traces)?);
    claims.extend(share::claims(bench)?);
    claims.extend(serving::claims(bench, &traces.timed));
    claims.extend(serving::heap_claims(bench)?);
    claims.extend(allocations::claims(bench)?);
    claims.extend(lake::claims(bench)?);
    claims.extend(symbols::claims(bench)?);
    claims.extend(recordings::claims(bench)?);
    claims.push(starting::claim(bench));
    Ok(claims)
}
