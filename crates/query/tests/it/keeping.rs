//! Compaction, retention and checks.

use std::fs;
use std::time::{Duration, SystemTime};

use borehole_query::{AddedInput, Error, InputDetails, Lake, Retention};
use borehole_testkit::read_corpus;

use crate::world::{HOUR_US, NOON_US, add, add_folded, exists, files_of, folded, lake, number, source};

const FOLDED: &str = "SELECT stack_id, sum(value) FROM samples GROUP BY stack_id";

#[test]
fn compaction_merges_files_and_keeps_answers() {
    let (scratch, lake) = lake();
    let bytes = read_corpus("rbt/daemon_worker.rbt");
    add(&lake, source("worker", "web", &bytes), &bytes).unwrap();
    for count in 1..=20 {
        add_folded(&lake, "web", &format!("main;a{count} {count}\n"));
    }
    let before = folded(&lake, FOLDED);
    let done = lake.compact().unwrap();
    assert_eq!((done.files_before, done.overtaken), (3 * 21, 0));
    assert_eq!(done.files_after, 3, "samples, stacks and sources");
    assert_eq!(folded(&lake, FOLDED), before);
    assert_eq!(number(&lake, "SELECT count(*) FROM sources"), 21);
    assert!(lake.check().unwrap().findings.is_empty());
    // Readers may use the old files for an hour.
    assert_eq!(done.cleared.files, 0);
    assert_eq!(files_of(scratch.folder(), "samples").len(), 22);
    let again = lake.compact().unwrap();
    assert_eq!(again.files_before, 0, "compacted files stay unchanged");
}

#[test]
fn sessions_do_not_see_later_changes() {
    let (_scratch, lake) = lake();
    add_folded(&lake, "web", "main 1\n");
    add_folded(&lake, "web", "main 2\n");
    let session = lake.session().unwrap();
    add_folded(&lake, "web", "main 4\n");
    lake.compact().unwrap();
    let mut answer = session.ask("SELECT sum(value) FROM samples").unwrap();
    assert_eq!(answer.next_rows().unwrap().unwrap()[0][0].to_text(), "3");
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 7);
}

/// Adds folded stacks that were sampled this many days ago.
fn add_days_ago(lake: &Lake, days_ago: i64, text: &str) -> Result<AddedInput, Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let began_us = i64::try_from(now.as_micros()).unwrap() - days_ago * 24 * HOUR_US;
    let source =
        InputDetails { began_unix_ns: Some(began_us * 1000), ..source(text, "web", text.as_bytes()) };
    add(lake, source, text.as_bytes())
}

#[test]
fn old_rows_are_removed_after_compaction() {
    let (_scratch, lake) = lake();
    for (days_ago, text) in [(10, "main;a 1\n"), (10, "main;b 2\n"), (1, "main;c 4\n"), (1, "main;d 8\n")] {
        add_days_ago(&lake, days_ago, text).unwrap();
    }
    lake.compact().unwrap();
    lake.retain(&Retention::days(5)).unwrap();
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 12);
    assert_eq!(number(&lake, "SELECT count(*) FROM sources"), 2);
    assert_eq!(lake.info().unwrap().sources, 2);
    add_days_ago(&lake, 10, "main;a 1\n").unwrap();
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 13);
}

#[test]
fn old_inputs_are_removed_with_their_stacks_and_may_be_added_again() {
    let (_scratch, lake) = lake();
    let add_at = |days_ago: i64, text: &str| add_days_ago(&lake, days_ago, text);
    add_at(10, "main;old 1\nmain;both 1\n").unwrap();
    add_at(1, "main;new 1\nmain;both 1\n").unwrap();
    let done = lake.retain(&Retention::days(5)).unwrap();
    assert_eq!((done.files, done.rows.values().sum::<u64>(), done.stacks), (2, 3, 1));
    assert_eq!(folded(&lake, FOLDED), ["main;both 1", "main;new 1"]);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2);
    assert_eq!(lake.retain(&Retention::days(5)).unwrap().files, 0);
    add_at(10, "main;old 1\nmain;both 1\n").unwrap();
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 4);
    assert!(lake.check().unwrap().findings.is_empty());
}

#[test]
fn a_check_finds_every_damaged_file() {
    let (scratch, lake) = lake();
    for text in ["main;a 1\n", "main;b 2\n", "main;c 3\n", "main;d 4\n"] {
        add_folded(&lake, "web", text);
    }
    let files = files_of(scratch.folder(), "samples");
    let bytes = fs::read(&files[0]).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    fs::write(&files[0], &flipped).unwrap();
    fs::write(&files[1], &fs::read(&files[1]).unwrap()[..100]).unwrap();
    fs::remove_file(&files[2]).unwrap();
    fs::write(scratch.path("lake").join("samples/stray.parquet"), b"half an upload").unwrap();
    let checked = lake.check().unwrap();
    assert_eq!((checked.files, checked.strays, checked.findings.len()), (12, 1, 3));
    let message = |file: &std::path::Path| {
        let name = file.file_name().unwrap().to_str().unwrap();
        let finding = checked.findings.iter().find(|finding| finding.path.ends_with(name)).unwrap();
        finding.message.clone()
    };
    assert!(message(&files[0]).starts_with("invalid contents: expected SHA-256 "), "{}", message(&files[0]));
    assert!(message(&files[1]).starts_with("invalid size: expected "), "{}", message(&files[1]));
    assert_eq!(message(&files[2]), "missing file");
    let session = lake.session().unwrap();
    let answered = session.ask("SELECT sum(value) FROM samples").and_then(|mut answer| answer.next_rows());
    assert!(answered.is_err(), "a query that needs a missing file must fail: {answered:?}");
}

#[test]
fn files_of_writers_age_only_while_others_are_written() {
    let (scratch, lake) = lake();
    add_folded(&lake, "web", "main 1\n");
    let stray = scratch.path("lake").join("samples/stray.parquet");
    fs::write(&stray, b"being written").unwrap();
    // As after a clock went three days ahead.
    let days_ago = SystemTime::now() - Duration::from_secs(3 * 86_400);
    for file in ["samples", "stacks", "sources"].iter().flat_map(|table| files_of(scratch.folder(), table)) {
        fs::File::options().write(true).open(file).unwrap().set_modified(days_ago).unwrap();
    }
    let clear = || lake.retain(&Retention::days(100_000)).unwrap().cleared;
    assert_eq!((clear().files, exists(&stray)), (0, true));
    add_folded(&lake, "web", "main 2\n");
    assert_eq!((clear().files, exists(&stray)), (1, false));
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 3);
}

#[test]
fn inputs_are_split_by_day() {
    let (scratch, lake) = lake();
    for day in 0..40 {
        let began = (NOON_US + day * 24 * HOUR_US) * 1000;
        let source = InputDetails { began_unix_ns: Some(began), ..source("day", "web", &day.to_le_bytes()) };
        add(&lake, source, b"main 1\n").unwrap();
    }
    lake.compact().unwrap();
    assert_eq!(number(&lake, "SELECT count(DISTINCT date_trunc('day', time)) FROM samples"), 40);
    assert_eq!(files_of(scratch.folder(), "samples").len(), 40);
}
