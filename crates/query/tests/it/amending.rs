//! Removal, relabelling and retention of parts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use borehole_query::{AmendMode, Amended, InputDetails, Lake, Relabeling, Retention, RowChoice};
use borehole_testkit::{Scratch, read_corpus};

use crate::world::{HOUR_US, NOON_US, add, add_folded, files_of, folded, lake, number, rows, source};

const FOLDED: &str = "SELECT stack_id, sum(value) FROM samples GROUP BY stack_id";

/// Adds folded stacks of a service, with a label, that begin so many hours after noon.
fn add_labelled(lake: &Lake, name: &str, service: &str, version: &str, hours: i64, text: &str) {
    let details = InputDetails {
        labels: vec![("version".to_owned(), version.to_owned())],
        began_unix_ns: Some((NOON_US + hours * HOUR_US) * 1000),
        ..source(name, service, name.as_bytes())
    };
    add(lake, details, text.as_bytes()).unwrap();
}

fn of_source(name: &str) -> RowChoice {
    RowChoice { sources: vec![name.to_owned()], ..RowChoice::default() }
}

fn removed(lake: &Lake, choice: &RowChoice) -> Amended {
    lake.remove(choice, AmendMode::Change).unwrap()
}

#[test]
fn a_removed_input_is_gone_and_may_be_added_again() {
    let (_scratch, lake) = lake();
    add_labelled(&lake, "one", "web", "1", 0, "main;own 1\nmain;both 2\n");
    add_labelled(&lake, "two", "web", "1", 0, "main;both 4\n");
    // The rows of both are in the same files.
    lake.compact().unwrap();
    let described = lake.remove(&of_source("one"), AmendMode::Describe).unwrap();
    assert_eq!((described.sources, described.rows["samples"], described.rows["sources"]), (1, 2, 1));
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 7, "nothing has changed");
    let done = removed(&lake, &of_source("one"));
    assert_eq!((done.rows, done.sources, done.stacks), (described.rows, 1, 1));
    assert_eq!(folded(&lake, FOLDED), ["main;both 4"]);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 1);
    assert_eq!(rows(&lake, "SELECT name FROM sources"), [["two"]]);
    assert_eq!(lake.info().unwrap().sources, 1);
    add_labelled(&lake, "one", "web", "1", 0, "main;own 1\nmain;both 2\n");
    assert_eq!(folded(&lake, FOLDED), ["main;both 6", "main;own 1"]);
    let checked = lake.check().unwrap();
    assert_eq!((checked.findings.len(), checked.strays), (0, 0));
    let error = lake.remove(&of_source("three"), AmendMode::Change).unwrap_err();
    assert!(error.is_missing(), "{error}");
    assert!(lake.remove(&RowChoice::default(), AmendMode::Change).is_err(), "everything, by mistake");
}

#[test]
fn rows_are_removed_by_service_time_and_label() {
    let (_scratch, lake) = lake();
    for (name, service, version, hours) in
        [("a", "web", "1", 0), ("b", "web", "2", 0), ("c", "web", "1", 5), ("d", "api", "1", 0)]
    {
        add_labelled(&lake, name, service, version, hours, &format!("main;{name} 1\n"));
    }
    lake.compact().unwrap();
    let choice = RowChoice {
        service: Some("web".to_owned()),
        labels: vec![("service.version".to_owned(), "1".to_owned())],
        until_us: Some(NOON_US + HOUR_US),
        ..RowChoice::default()
    };
    let done = removed(&lake, &choice);
    assert_eq!((done.rows["samples"], done.sources, done.stacks), (1, 1, 1));
    assert_eq!(folded(&lake, FOLDED), ["main;b 1", "main;c 1", "main;d 1"]);
    assert_eq!(removed(&lake, &choice), Amended::default());
}

#[test]
fn an_input_with_rows_left_stays_known() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus("rbt/multi_segment.rbt");
    add(&lake, source("worker", "web", &bytes), &bytes).unwrap();
    let all = number(&lake, "SELECT sum(value) FROM samples");
    let last = number(&lake, "SELECT CAST(max(time) AS BIGINT) FROM samples");
    let done = removed(&lake, &RowChoice { since_us: Some(last), ..RowChoice::default() });
    assert_eq!((done.sources, done.rows.contains_key("sources")), (0, false));
    let left = number(&lake, "SELECT sum(value) FROM samples");
    assert!(left > 0 && left < all, "{left} of {all}");
    assert!(add(&lake, source("worker", "web", &bytes), &bytes).unwrap_err().is_already_added());
}

#[test]
fn relabelled_rows_are_found_under_their_new_names_only() {
    let (scratch, lake) = lake();
    add_labelled(&lake, "one", "unnamed", "1", 0, "main;one 1\n");
    add_labelled(&lake, "two", "unnamed", "1", 0, "main;two 2\n");
    lake.compact().unwrap();
    let relabeling =
        Relabeling::default().set("service", "shop").set("version", "2").set("host", "h").set("env", "it's");
    let done = lake.relabel(&of_source("one"), &relabeling, AmendMode::Change).unwrap();
    assert_eq!((done.rows["samples"], done.rows["sources"]), (1, 1));
    let of =
        |condition: &str| folded(&lake, &format!("SELECT stack_id, value FROM samples WHERE {condition}"));
    let holds = || {
        assert_eq!(of("service = 'shop'"), ["main;one 1"]);
        assert_eq!(of("service = 'unnamed'"), ["main;two 2"]);
        assert_eq!(of("label(labels, 'version') = '2'"), ["main;one 1"]);
        assert_eq!(of("label(labels, 'version') = '1'"), ["main;two 2"]);
        assert_eq!(of("host = 'h' AND label(labels, 'env') = 'it''s'"), ["main;one 1"]);
    };
    holds();
    let sources = "SELECT name, service, host, label(labels, 'version') FROM sources ORDER BY name";
    assert_eq!(rows(&lake, sources), [["one", "shop", "h", "2"], ["two", "unnamed", "", "1"]]);
    let folder = scratch.path("lake").join("samples/service=shop");
    assert!(folder.is_dir(), "{:?}", files_of(scratch.folder(), "samples"));
    lake.compact().unwrap();
    holds();
    lake.relabel(&of_source("one"), &Relabeling::default().unset("env"), AmendMode::Change).unwrap();
    assert_eq!(of("label(labels, 'env') IS NULL"), ["main;one 1", "main;two 2"]);
    assert!(lake.check().unwrap().findings.is_empty());
}

#[test]
fn removals_among_additions_and_compactions_take_only_their_rows() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    Lake::open_or_create(&name).unwrap();
    const INPUTS: i64 = 20;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let lake = Lake::open(&name).unwrap();
            for input in 0..INPUTS {
                let service = if input % 2 == 0 { "web" } else { "mistake" };
                add_folded(&lake, service, &format!("main;f{input} 1\n"));
            }
        });
        scope.spawn(|| {
            let lake = Lake::open(&name).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                lake.compact().unwrap();
            }
        });
        let lake = Lake::open(&name).unwrap();
        let mistakes = RowChoice { service: Some("mistake".to_owned()), ..RowChoice::default() };
        while !writer.is_finished() {
            removed(&lake, &mistakes);
        }
        removed(&lake, &mistakes);
        is_over.store(true, Ordering::SeqCst);
    });
    let lake = Lake::open(&name).unwrap();
    let sums = rows(&lake, "SELECT service, sum(value) FROM samples JOIN stacks USING (stack_id) GROUP BY 1");
    assert_eq!(sums, [["web".to_owned(), (INPUTS / 2).to_string()]]);
    assert_eq!(number(&lake, "SELECT count(*) FROM sources"), INPUTS / 2);
    assert!(lake.check().unwrap().findings.is_empty());
}

fn now_us() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_micros()).unwrap()
}

#[test]
fn services_tables_and_kinds_are_retained_for_different_times() {
    let (_scratch, lake) = lake();
    let began_unix_ns = Some((now_us() - 10 * 24 * HOUR_US) * 1000);
    for service in ["web", "api"] {
        let bytes = read_corpus("pprof/go-heap-in-use.pb.gz");
        let name = format!("{service} heap");
        let details = InputDetails { began_unix_ns, ..source(&name, service, name.as_bytes()) };
        add(&lake, details, &bytes).unwrap();
        let details = InputDetails { began_unix_ns, ..source(service, service, service.as_bytes()) };
        add(&lake, details, b"main 1\n").unwrap();
    }
    lake.compact().unwrap();
    let count = |sql: &str| number(&lake, &format!("SELECT count(*) FROM {sql}"));
    let kinds = count("(SELECT DISTINCT kind FROM measures)");
    assert!(kinds > 1);
    // The file of the corpus says when it was made.
    let by_kind = Retention {
        kind: Some("alloc_space".to_owned()),
        service: Some("web".to_owned()),
        ..Retention::days(0)
    };
    assert!(lake.retain(&by_kind).unwrap().rows["measures"] > 0);
    assert_eq!(count("measures WHERE kind = 'alloc_space' AND service = 'web'"), 0);
    assert!(count("measures WHERE kind = 'alloc_space' AND service = 'api'") > 0);
    assert_eq!(count("(SELECT DISTINCT kind FROM measures)"), kinds);
    let by_table = Retention { table: Some("samples".to_owned()), ..Retention::days(5) };
    assert_eq!(lake.retain(&by_table).unwrap().rows["samples"], 2);
    assert_eq!((count("sources"), count("samples")), (4, 0));
    let by_service = Retention { service: Some("web".to_owned()), ..Retention::days(0) };
    assert_eq!(lake.retain(&by_service).unwrap().sources, 2);
    assert_eq!((count("sources"), count("measures WHERE service = 'web'")), (2, 0));
    assert!(count("measures WHERE service = 'api'") > 0);
    assert!(lake.retain(&Retention { table: Some("none".to_owned()), ..Retention::days(5) }).is_err());
}

#[test]
fn rows_dated_ahead_are_removed_by_the_time_of_their_addition() {
    let (_scratch, lake) = lake();
    let ahead = Some((now_us() + 1000 * 24 * HOUR_US) * 1000);
    let details = InputDetails { began_unix_ns: ahead, ..source("ahead", "web", b"ahead") };
    assert_eq!(add(&lake, details, b"main 3\n").unwrap().future, 3);
    add_folded(&lake, "web", "main 4\n");
    assert_eq!(lake.retain(&Retention::days(1)).unwrap().rows["samples"], 1, "only the row of the past");
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 3);
    assert_eq!(lake.retain(&Retention::days(0)).unwrap().rows["samples"], 1);
    assert_eq!(lake.info().unwrap().sources, 0);
}
