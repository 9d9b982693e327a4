//! Lakes with tables of earlier versions.

use std::fs;
use std::path::Path;

use borehole_query::{Error, InputDetails, Lake};
use borehole_testkit::{Scratch, corpus, read_corpus};

use crate::world::{NOON_US, add, files_of, folded, rows, source};

/// A copy of a lake of version 3, and its path.
fn earlier() -> (Scratch, String) {
    let scratch = Scratch::new();
    copy(&corpus("lake/version-3"), &scratch.path("lake"));
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    (scratch, name)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() { copy(&from, &to) } else { fs::copy(from, to).map(drop).unwrap() }
    }
}

/// Questions to which both lakes have the same answers. The names of their Parquet files differ.
const QUESTIONS: [&str; 6] = [
    "SELECT service, host, process, value, period_ns, mode, labels FROM samples ORDER BY time, labels['query'], value",
    "SELECT stack_id, stack, frames FROM stacks ORDER BY stack_id",
    "SELECT kind, unit, sum(value) FROM measures GROUP BY kind, unit ORDER BY kind",
    "SELECT place, duration_ns, labels FROM polls ORDER BY time, task",
    "SELECT name, field, sum(value) FROM events GROUP BY name, field ORDER BY name, field",
    "SELECT source, service, samples, labels FROM sources ORDER BY source",
];

/// A lake that this build makes of the files of the earlier one.
fn current() -> (Scratch, Lake) {
    let (scratch, lake) = crate::world::lake();
    let version = vec![("version".to_owned(), "1.4".to_owned())];
    for (file, service, host, labels) in [
        ("rbt/annotations.rbt", "web", Some("h1".to_owned()), version),
        ("trc/in/real_032_cpu.bin.gz", "api", None, Vec::new()),
    ] {
        let bytes = read_corpus(file);
        let mut contents = Vec::new();
        std::io::Read::read_to_end(&mut borehole::decompressed(&*bytes), &mut contents).unwrap();
        let details = InputDetails { labels, host, ..source(file, service, &contents) };
        add(&lake, details, &bytes).unwrap();
    }
    (scratch, lake)
}

fn refused(opened: Result<Lake, Error>, name: &str) {
    let error = opened.unwrap_err();
    assert!(error.is_damaged() && error.to_string().ends_with("tables of an earlier version"), "{error}");
    let hint = error.hint().unwrap();
    assert!(hint.contains(&format!("borehole lake upgrade {name}")), "{hint}");
}

#[test]
fn an_earlier_lake_is_refused_until_it_is_upgraded() {
    let (scratch, name) = earlier();
    refused(Lake::open(&name), &name);
    refused(Lake::open_or_create(&name), &name);
    assert!(Lake::check_place(&name).is_err());
    let upgraded = Lake::upgrade(&name).unwrap();
    assert_eq!(upgraded.files, 9);
    assert_eq!(Lake::upgrade(&name).unwrap().files, 0);
    let (lake, (_other, expected)) = (Lake::open(&name).unwrap(), current());
    for question in QUESTIONS {
        assert_eq!(rows(&lake, question), rows(&expected, question), "{question}");
    }
    let sums = "SELECT stack_id, sum(value) FROM samples GROUP BY 1";
    assert_eq!(folded(&lake, sums), folded(&expected, sums));
    assert_eq!(lake.check().unwrap().findings, []);
    assert_eq!(files_of(scratch.folder(), "samples").len(), 4, "readers of the old files may still run");
    // Inputs are still known, and new ones find a place.
    let bytes = read_corpus("rbt/annotations.rbt");
    let again = InputDetails { began_unix_ns: Some(NOON_US * 1000), ..source("again", "web", &bytes) };
    assert!(add(&lake, again, &bytes).unwrap_err().is_already_added());
    lake.compact().unwrap();
    for question in QUESTIONS {
        assert_eq!(rows(&lake, question), rows(&expected, question), "{question}, compacted");
    }
}
