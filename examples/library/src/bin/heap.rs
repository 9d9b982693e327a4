//! Problems of a PHP heap, and how it differs from another, as data.

#![forbid(unsafe_code)]

use std::{env, path::Path};

use borehole::heap::{
    Error, HeapFile, OpenOptions, compare::compare, findings::report, retention::Follow, views::Heap,
};

fn main() -> Result<(), Error> {
    let [before, after] = ["8.2.36", "8.1.2"].map(|php| format!("../../corpus/php/heap/{php}.rdump"));
    let (before, after) = (env::args().nth(1).unwrap_or(before), env::args().nth(2).unwrap_or(after));
    let files = [HeapFile::open(Path::new(&before))?, HeapFile::open(Path::new(&after))?];
    let [before, after] =
        [files[0].graph(&OpenOptions::default())?, files[1].graph(&OpenOptions::default())?];
    for finding in report(&Heap::new(&*after.graph, Follow::default())).findings {
        println!(
            "{:?} {:?} {} bytes: {}",
            finding.severity, finding.kind, finding.impact_bytes, finding.summary
        );
    }
    for class in compare(&[&*before.graph, &*after.graph], Follow::default()).classes.iter().take(5) {
        println!("{} {:?} bytes", String::from_utf8_lossy(&class.name), class.bytes);
    }
    Ok(())
}
