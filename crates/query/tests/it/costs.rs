//! Costs that do not grow: many inputs in a commit, and maintenance by commits themselves.

use borehole::model::Recovery;
use borehole_query::{Adding, CommittedInputs, Lake, Retention};
use borehole_testkit::Scratch;

use crate::world::{add_folded, files_of, folded, lake, number, read, rows, source};

const FOLDED: &str = "SELECT stack_id, sum(value) FROM samples GROUP BY stack_id";

/// Reads folded stacks for the next commit.
fn wait(adding: &mut Adding<'_>, name: &str, service: &str, text: &str) {
    let (tables, mut addition) = adding.input(source(name, service, name.as_bytes()));
    let recovery = read(name, text.as_bytes().to_vec(), tables, &mut addition);
    let input = addition.finish(&recovery).unwrap();
    adding.add(input).unwrap();
}

#[test]
fn inputs_of_a_commit_share_files() {
    let (scratch, lake) = lake();
    let mut adding = lake.adding();
    for input in 0..50 {
        wait(&mut adding, &format!("input {input}"), "web", &format!("main;both 1\nmain;own{input} 2\n"));
    }
    assert_eq!(number(&lake, "SELECT count(*) FROM samples"), 0, "inputs are invisible before the commit");
    let CommittedInputs { inputs, maintenance, .. } = adding.commit().unwrap();
    assert!(maintenance.is_none(), "{maintenance:?}");
    assert_eq!((inputs.len(), inputs[7].samples, inputs[7].stacks), (50, 3, 2));
    for table in ["samples", "stacks", "sources"] {
        assert_eq!(files_of(scratch.folder(), table).len(), 1, "{table}");
    }
    assert_eq!(lake.info().unwrap().version, 2);
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 150);
    assert_eq!(number(&lake, "SELECT count(*) FROM sources"), 50);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 51);
    assert!(lake.check().unwrap().findings.is_empty());
}

#[test]
fn inputs_of_a_commit_are_added_together_or_not_at_all() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    wait(&mut adding, "one", "web", "main 1\n");
    let (_, addition) = adding.input(source("again", "web", b"one"));
    let again = addition.finish(&Recovery::default()).unwrap();
    assert!(adding.add(again).unwrap_err().is_already_added());
    wait(&mut adding, "web: main 2\n", "web", "main 2\n");
    add_folded(&lake, "web", "main 2\n");
    assert!(adding.commit().unwrap_err().is_already_added());
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 2);
    assert!(lake.check().unwrap().strays == 0, "a refused commit must leave no files");
}

#[test]
fn files_stay_few_without_a_command() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    for input in 0..150 {
        let service = if input % 2 == 0 { "web" } else { "api" };
        wait(&mut adding, &format!("{input}"), service, &format!("main;both 1\nmain;f{} 1\n", input % 40));
        assert!(adding.commit().unwrap().maintenance.is_none());
    }
    let files = |lake: &Lake| lake.info().unwrap().tables.iter().map(|table| table.files).sum::<u64>();
    assert!(files(&lake) < 4 * 2 * 16, "{} files", files(&lake));
    let before = folded(&lake, FOLDED);
    assert_eq!(before.len(), 41);
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 300);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 41);
    let joined = "SELECT sum(value) FROM samples JOIN stacks USING (stack_id) WHERE leaf(stack) = 'both'";
    assert_eq!(number(&lake, joined), 150);
    lake.compact().unwrap();
    assert_eq!(folded(&lake, FOLDED), before);
    assert_eq!(number(&lake, joined), 150);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 41);
    assert!(lake.check().unwrap().findings.is_empty());
}

#[test]
fn stacks_that_retention_removed_are_written_again() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    wait(&mut adding, "old", "web", "main;a 1\n");
    adding.commit().unwrap();
    lake.retain(&Retention::days(1)).unwrap();
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 0);
    wait(&mut adding, "new", "web", "main;a 1\n");
    adding.commit().unwrap();
    assert_eq!(folded(&lake, FOLDED), ["main;a 1"]);
}

#[test]
fn questions_open_only_files_of_the_hosts_and_labels_asked_for() {
    let (_scratch, lake) = lake();
    for host in ["one", "two", "three"] {
        let mut adding = lake.adding();
        let details = borehole_query::InputDetails {
            host: Some(host.to_owned()),
            ..source(host, "web", host.as_bytes())
        };
        let (tables, mut addition) = adding.input(details);
        let recovery = read(host, b"main 1\n".to_vec(), tables, &mut addition);
        addition.commit(tables, &recovery).unwrap();
    }
    let opened = |condition: &str| {
        let plan = rows(&lake, &format!("EXPLAIN SELECT value FROM samples WHERE {condition}"));
        plan.iter().flatten().map(|text| text.matches(".parquet").count()).sum::<usize>()
    };
    assert_eq!(opened("host IS NOT NULL"), 3);
    assert_eq!(opened("host = 'two'"), 1);
    assert_eq!(opened("host IN ('two', 'three')"), 2);
    assert_eq!(opened("host = 'four'"), 0);
    assert_eq!(opened("label(labels, 'uri') IN ('/a', '/b')"), 0);
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples WHERE host IN ('two', 'four')"), 1);
}

#[test]
fn a_lake_is_found_by_a_second_handle() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    let [one, other] = [0, 1].map(|_| Lake::open_or_create(&name).unwrap());
    for count in 1..=40 {
        add_folded(if count % 2 == 0 { &one } else { &other }, "web", &format!("main {count}\n"));
    }
    for lake in [&one, &other] {
        assert_eq!(number(lake, "SELECT sum(value) FROM samples"), 40 * 41 / 2);
    }
}
