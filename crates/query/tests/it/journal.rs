//! Commits that are damaged, missing or of a later version.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use borehole_query::Lake;
use borehole_testkit::Scratch;

use crate::world::{add_folded, number};

fn lake_of_three_commits() -> (Scratch, String, PathBuf) {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    let lake = Lake::open_or_create(&name).unwrap();
    add_folded(&lake, "web", "main 1\n");
    add_folded(&lake, "web", "main 2\n");
    let commits = scratch.path("lake").join("_lake/commits");
    (scratch, name, commits)
}

fn commit(version: u64) -> String {
    format!("{version:020}.json")
}

#[test]
fn a_missing_commit_is_an_error() {
    let (_scratch, name, commits) = lake_of_three_commits();
    fs::remove_file(commits.join(commit(2))).unwrap();
    let error = Lake::open(&name).unwrap_err();
    assert!(error.is_damaged(), "{error}");
    assert!(
        error.to_string().contains("missing commit: expected _lake/commits/00000000000000000002.json"),
        "{error}"
    );
}

#[test]
fn a_truncated_commit_is_an_error() {
    let (_scratch, name, commits) = lake_of_three_commits();
    let path = commits.join(commit(3));
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let error = Lake::open(&name).unwrap_err().to_string();
    assert!(error.contains("_lake/commits/00000000000000000003.json: EOF while parsing"), "{error}");
}

#[test]
fn files_with_too_many_rows_are_refused() {
    let (_scratch, name, commits) = lake_of_three_commits();
    let path = commits.join(commit(3));
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("\"rows\":").unwrap();
    let after = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    fs::write(&path, format!("{before}\"rows\":{}{after}", u64::MAX)).unwrap();
    let error = Lake::open(&name).unwrap_err();
    assert!(error.is_damaged(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains(
            "00000000000000000003.json: file too large: expected at most 281474976710656 rows or bytes"
        ),
        "{text}"
    );
}

#[test]
fn a_lake_of_a_later_version_is_refused() {
    let (_scratch, name, commits) = lake_of_three_commits();
    let path = commits.join(commit(3));
    let text = fs::read_to_string(&path).unwrap().replace("\"schema\":4", "\"schema\":5");
    fs::write(&path, text).unwrap();
    let error = Lake::open(&name).unwrap_err();
    assert!(error.to_string().contains("unsupported lake version: expected at most 4, found 5"), "{error}");
    assert!(error.hint().unwrap().starts_with("a newer version of borehole"));
}

#[test]
fn many_commits_are_summed_up() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    let lake = Lake::open_or_create(&name).unwrap();
    for count in 1..=70 {
        add_folded(&lake, "web", &format!("main {count}\n"));
    }
    let sums = fs::read_dir(scratch.path("lake").join("_lake/states")).unwrap().count();
    assert_eq!(sums, 2);
    assert_eq!(number(&Lake::open(&name).unwrap(), "SELECT sum(value) FROM samples"), 70 * 71 / 2);
    // A state replaces the commits before it, which are deleted when the lake is compacted and no writer can have missed
    // them.
    let commits = scratch.path("lake").join("_lake/commits");
    lake.compact().unwrap();
    assert!(fs::read_dir(&commits).unwrap().count() > 70);
    let days_ago = SystemTime::now() - Duration::from_secs(3 * 86_400);
    for commit in fs::read_dir(&commits).unwrap() {
        let commit = fs::File::options().write(true).open(commit.unwrap().path()).unwrap();
        commit.set_modified(days_ago).unwrap();
    }
    lake.compact().unwrap();
    assert!(fs::read_dir(&commits).unwrap().count() > 70, "commits age only while others are written");
    add_folded(&lake, "web", "main 71\n");
    lake.compact().unwrap();
    let left = fs::read_dir(commits).unwrap().count();
    assert!(left < 15, "{left} commits are left");
    assert_eq!(number(&Lake::open(&name).unwrap(), "SELECT sum(value) FROM samples"), 71 * 72 / 2);
}

#[test]
fn a_commit_holds_even_if_its_state_cannot_be_written() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    let lake = Lake::open_or_create(&name).unwrap();
    fs::write(scratch.path("lake").join("_lake/states"), b"no folder").unwrap();
    for count in 1..=40 {
        add_folded(&lake, "web", &format!("main {count}\n"));
    }
    assert_eq!(number(&Lake::open(&name).unwrap(), "SELECT sum(value) FROM samples"), 40 * 41 / 2);
    assert!(lake.check().unwrap().findings.is_empty());
}
