//! Counts the samples below a namespace by the function that ran.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::env;

use borehole::{Error, Input, InputOptions, Samples, Source};

fn main() -> Result<(), Error> {
    let trace = env::args().nth(1).unwrap_or("../../corpus/rbt/daemon_worker.rbt".into());
    let mut functions = BTreeMap::new();
    let mut samples = Samples::of(Input::open(Source::path(trace)?, &InputOptions::default())?)?;
    while let Some((at, sample)) = samples.next_sample()? {
        let names: Vec<_> = at.functions_leaf_first(sample.stack).collect();
        if names.iter().any(|name| name.starts_with("App\\")) {
            *functions.entry(names[0].to_string()).or_insert(0) += sample.count;
        }
    }
    println!("{functions:#?}");
    Ok(())
}
