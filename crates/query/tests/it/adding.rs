//! Adding inputs.

use borehole::heap::{HeapFile, OpenOptions, info};
use borehole::model::Recovery;
use borehole_query::{InputDetails, Lake};
use borehole_testkit::{Scratch, corpus, read_corpus};

use crate::world::{HOUR_US, NOON_US, add, add_folded, files_of, lake, number, read, rows, source};

#[test]
fn a_file_that_is_added_twice_counts_once() {
    let (scratch, lake) = lake();
    let bytes = read_corpus("rbt/daemon_worker.rbt");
    add(&lake, source("one", "web", &bytes), &bytes).unwrap();
    let files = files_of(scratch.folder(), "samples");
    let error = add(&lake, source("the same by another name", "api", &bytes), &bytes).unwrap_err();
    assert!(error.is_already_added(), "{error}");
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 30);
    assert_eq!(number(&lake, "SELECT count(*) FROM sources"), 1);
    let again = Lake::open(scratch.path("lake").to_str().unwrap()).unwrap();
    assert!(again.holds(&borehole_query::sha256(&mut &*bytes).unwrap()).unwrap());
    assert_eq!(again.info().unwrap().sources, 1);
    assert_eq!(files_of(scratch.folder(), "samples"), files, "the second attempt left files");
}

#[test]
fn the_same_stack_from_two_services_is_one_row() {
    let (_scratch, lake) = lake();
    assert_eq!(add_folded(&lake, "web", "main;query 3\nmain;render 4\n").stacks, 2);
    assert_eq!(add_folded(&lake, "api", "main;query 5\nmain;parse 6\n").stacks, 2);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 3);
    let query = "SELECT sum(value) FROM profiles WHERE leaf(stack) = 'query'";
    assert_eq!(number(&lake, query), 8);
}

#[test]
fn losses_of_damaged_files_can_be_queried() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus("rbt/bitflip_middle.rbt");
    add(&lake, source("bitflip_middle.rbt", "web", &bytes), &bytes).unwrap();
    let found = rows(&lake, "SELECT name, samples, lost_bytes, warnings FROM sources WHERE lost_bytes > 0");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0][..3], ["bitflip_middle.rbt", "18", "9"]);
    assert!(found[0][3].starts_with("at byte 0x12a: invalid FRAME_DEF: undefined string"), "{}", found[0][3]);
}

#[test]
fn an_abandoned_input_leaves_nothing() {
    let (scratch, lake) = lake();
    let bytes = read_corpus("rbt/daemon_worker.rbt");
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("given up", "web", &bytes));
    read("given up", bytes, tables, &mut addition);
    addition.abandon();
    for table in ["samples", "stacks", "sources"] {
        assert!(files_of(scratch.folder(), table).is_empty(), "{table}");
    }
    assert_eq!(number(&lake, "SELECT count(*) FROM samples"), 0);
}

#[test]
fn an_uncommitted_input_leaves_nothing() {
    let (scratch, lake) = lake();
    let name = "trc/in/real_057_blocked.bin.gz";
    let bytes = read_corpus(name);
    // Files are finished in any order, so the blocked one is rarely the last.
    let blocked = scratch.write("lake/sources", b"no folder");
    for _ in 0..8 {
        let mut adding = lake.adding();
        let (tables, mut addition) = adding.input(source(name, "demo", &bytes));
        let recovery = read(name, bytes.clone(), tables, &mut addition);
        assert!(addition.commit(tables, &recovery).is_err());
        for table in ["samples", "polls", "spans", "events", "stacks"] {
            assert!(files_of(scratch.folder(), table).is_empty(), "{table}");
        }
    }
    std::fs::remove_file(blocked).unwrap();
    add(&lake, source(name, "demo", &bytes), &bytes).unwrap();
    assert!(number(&lake, "SELECT count(*) FROM polls") > 0);
}

#[test]
fn services_may_have_any_name() {
    let (scratch, lake) = lake();
    let long = "計".repeat(90);
    let names = ["../x", "a=b", "über/日", "", ".", "it's", &long];
    for name in names {
        add_folded(&lake, name, "main 1\n");
    }
    let found = rows(&lake, "SELECT service, sum(value) FROM samples GROUP BY service ORDER BY service");
    let mut expected = names.map(|name| vec![name.to_owned(), "1".to_owned()]);
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(crate::world::files_of(scratch.folder(), "samples").len(), names.len());
}

#[test]
fn a_lake_path_may_contain_parent_folders() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.path("folder")).unwrap();
    let lake = Lake::open_or_create(scratch.path("folder/../lake").to_str().unwrap()).unwrap();
    add_folded(&lake, "web", "main 3\n");
    let lake = Lake::open(scratch.path("lake").to_str().unwrap()).unwrap();
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 3);
}

#[test]
fn times_come_from_the_input_or_the_user() {
    let (_scratch, lake) = lake();
    let text = b"main 1\n";
    let dated = InputDetails {
        modified_unix_ns: Some(NOON_US * 1000),
        began_unix_ns: None,
        ..source("file", "file", b"1")
    };
    assert!(add(&lake, dated, text).unwrap().is_dated_by_file);
    let given =
        InputDetails { began_unix_ns: Some((NOON_US + HOUR_US) * 1000), ..source("given", "given", b"2") };
    assert!(!add(&lake, given, text).unwrap().is_dated_by_file);
    let found = rows(&lake, "SELECT service, time FROM samples ORDER BY service");
    assert_eq!(found[0], ["file", "2026-11-01T12:00:00Z"]);
    assert_eq!(found[1], ["given", "2026-11-01T13:00:00Z"]);
    let clocks = rows(&lake, "SELECT clock FROM sources ORDER BY service");
    assert_eq!(clocks, [["file"], ["given"]]);
}

#[test]
fn samples_of_the_future_are_counted() {
    let (_scratch, lake) = lake();
    let far = InputDetails { began_unix_ns: Some(i64::MAX), ..source("far", "web", b"far") };
    assert_eq!(add(&lake, far, b"main 7\n").unwrap().future, 7);
    assert_eq!(number(&lake, "SELECT future FROM sources"), 7);
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples WHERE time > now()"), 7);
}

#[test]
fn a_heap_has_a_row_per_class() {
    let (_scratch, lake) = lake();
    let heap = HeapFile::open(&corpus("php/heap/8.2.36.rdump")).unwrap();
    let opened = heap.graph(&OpenOptions { lenient: true, ..OpenOptions::default() }).unwrap();
    let info = info(&&*opened.graph);
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("heap", "web", b"heap"));
    addition.take_heap(&info).unwrap();
    addition.commit(tables, &Recovery::default()).unwrap();
    let classes =
        info.everything.classes.iter().map(|class| i64::try_from(class.memory_usage).unwrap()).sum::<i64>();
    assert!(classes > 0);
    assert_eq!(number(&lake, "SELECT sum(bytes) FROM heaps WHERE kind = 'class'"), classes);
    assert!(number(&lake, "SELECT count(*) FROM heaps WHERE kind = 'summary'") > 0);
}

#[test]
fn a_missing_lake_is_an_error() {
    let scratch = Scratch::new();
    let path = scratch.path("nowhere");
    let error = Lake::open(path.to_str().unwrap()).unwrap_err();
    assert!(error.is_missing(), "{error}");
    assert!(error.hint().unwrap().starts_with("run borehole lake add "), "{:?}", error.hint());
    assert!(!crate::world::exists(&path), "opening must not create the lake");
}
