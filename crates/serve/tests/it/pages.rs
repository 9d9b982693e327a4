//! The list of inputs, and their pages.

use std::fs;

use borehole_testkit::{Scratch, corpus, read_corpus};
use serde_json::Value;

use crate::client::Served;

/// Self and total of each function, from a page's data.
fn tops(page: &Value) -> Vec<(String, i64, i64)> {
    let rows = page["top"].as_array().unwrap().iter();
    let number = |value: &Value| value.as_i64().unwrap();
    let name =
        |row: &Value| page["names"][usize::try_from(number(&row[0])).unwrap()].as_str().unwrap().to_owned();
    rows.map(|row| (name(row), number(&row[1]), number(&row[2]))).collect()
}

#[test]
fn a_folder_is_listed_and_what_appears_in_it_too() {
    let scratch = Scratch::new();
    let _ = scratch.write("a.rbt", &read_corpus("rbt/daemon_worker.rbt"));
    let _ = scratch.write("notes.txt", b"no profile");
    let _ = scratch.write("<script>.rbt", &read_corpus("rbt/native.rbt"));
    let served = Served::paths([scratch.folder().to_owned()]);
    let inputs = served.json("/api/v1/inputs");
    let listed: Vec<_> = inputs["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|input| (input["name"].clone(), input["kind"].clone(), input["format"].clone()))
        .collect();
    let expected =
        [("<script>.rbt", "profile", "rbt"), ("a.rbt", "profile", "rbt"), ("notes.txt", "unreadable", "")];
    assert_eq!(listed, expected.map(|(name, kind, format)| (name.into(), kind.into(), format.into())));
    let id = served.id("a.rbt");
    assert!(!served.get("/").text().contains("<script>"));
    let _ = scratch.write("b.rbt", &read_corpus("rbt/native.rbt"));
    let appeared = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        served.get("/api/v1/inputs").text().contains("b.rbt")
    });
    assert!(appeared);
    assert_eq!(served.id("a.rbt"), id);
}

#[test]
fn a_page_counts_what_the_file_has_and_a_range_only_its_part() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let id = served.id("daemon_worker.rbt");
    let page = served.json(&format!("/api/v1/inputs/{id}/page"));
    assert_eq!((&page["kind"], page["all"].as_i64()), (&"report".into(), Some(30)));
    assert!(
        page["facts"].as_array().unwrap().contains(&serde_json::json!(["Samples", "30"])),
        "{}",
        page["facts"]
    );
    let own: i64 = tops(&page).iter().map(|(_, own, _)| own).sum();
    assert_eq!(own, 30);
    let refused = served.get(&format!("/api/v1/inputs/{id}/page?value=joules"));
    assert_eq!(refused.status, 400);
    assert!(
        refused.json()["error"]["message"].as_str().unwrap().contains("unknown value type"),
        "{}",
        refused.text()
    );
}

#[test]
fn what_the_client_has_is_not_sent_again() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let first = served.get("/api/v1/inputs");
    let tag = first.header("etag").unwrap();
    let again = served.ask("GET /api/v1/inputs", &[("Host", &served.host), ("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let other = served.ask("GET /api/v1/inputs", &[("Host", &served.host), ("If-None-Match", "\"0\"")]);
    assert_eq!((other.status, other.body), (200, first.body));
}

#[test]
fn a_bad_file_is_an_answer_and_the_next_question_has_one_too() {
    let scratch = Scratch::new();
    let _ = scratch.write("good.rbt", &read_corpus("rbt/daemon_worker.rbt"));
    let _ = scratch.write("bad.txt", b"\x00\x01\x02no profile");
    let _ = scratch.write("cut.rbt", &read_corpus("rbt/bitflip_middle.rbt"));
    let served = Served::paths([scratch.folder().to_owned()]);
    let bad = served.get(&format!("/api/v1/inputs/{}/page", served.id("bad.txt")));
    assert_eq!((bad.status, &bad.json()["error"]["kind"]), (422, &"unreadable".into()));
    let cut = served.json(&format!("/api/v1/inputs/{}/page", served.id("cut.rbt")));
    assert!(cut["notes"].to_string().contains("9 bytes of the input could not be read"), "{}", cut["notes"]);
    // A file that goes away while it is listed.
    let id = served.id("good.rbt");
    assert_eq!(served.json(&format!("/api/v1/inputs/{id}/page"))["all"], 30);
    fs::remove_file(scratch.path("good.rbt")).unwrap();
    let gone = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        served.get(&format!("/api/v1/inputs/{id}/page")).status == 404
    });
    assert!(gone);
}

#[test]
fn two_inputs_are_compared() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt"), corpus("rbt/native.rbt")]);
    let [before, after] = ["daemon_worker.rbt", "native.rbt"].map(|name| served.id(name));
    let diff = served.json(&format!("/api/v1/diff?before={before}&after={after}"));
    assert_eq!(diff["kind"], "diff");
    assert!(diff["about"].as_str().unwrap().ends_with("daemon_worker.rbt → native.rbt"), "{}", diff["about"]);
    let missing = served.get(&format!("/api/v1/diff?before={before}"));
    assert_eq!(missing.status, 400);
}

#[test]
fn a_range_of_time_shows_only_its_samples_in_pages_and_tables() {
    let served = Served::paths([corpus("tachyon/corpus/26_realapp_zstd.bin")]);
    let id = served.id("26_realapp_zstd.bin");
    let timeline = served.json(&format!("/api/v1/inputs/{id}/timeline?columns=4"));
    let number = |value: &Value| value.as_i64().unwrap();
    let rows: Vec<[i64; 3]> = timeline["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| [number(&row[0]), number(&row[1]), number(&row[2])])
        .collect();
    assert_eq!(rows.iter().map(|[_, _, weight]| weight).sum::<i64>(), 6053);
    let of_range = |view: &str, from: i64, to: i64| {
        served.json(&format!("/api/v1/inputs/{id}/{view}?from={from}&to={to}"))
    };
    for &[from, to, weight] in &rows {
        let page = of_range("page", from, to);
        assert_eq!(number(&page["all"]), weight, "{from} to {to}");
        assert_eq!(tops(&page).iter().map(|(_, own, _)| own).sum::<i64>(), weight);
        assert_eq!(number(&of_range("top", from, to)["total"]), weight);
    }
    let [first, .., last] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(number(&of_range("page", first[0], last[1])["all"]), 6053);
    let nothing = of_range("top", last[1] + 1, last[1] + 2);
    assert!(nothing["notes"].to_string().contains("no samples match"), "{nothing}");
}

#[test]
fn a_trace_is_shown_as_its_program_and_a_range_of_it_as_samples() {
    let served = Served::paths([corpus("trc/tokio/stuck_worker.bin")]);
    let id = served.id("stuck_worker.bin");
    let page = served.json(&format!("/api/v1/inputs/{id}/page"));
    assert_eq!(page["kind"], "tokio", "{}", page["kind"]);
    let flags = served.json(&format!("/api/v1/inputs/{id}/tokio_flags"));
    assert!(!flags["rows"].as_array().unwrap().is_empty(), "{flags}");
    let of_profile = served.get(&format!("/api/v1/inputs/{id}/heap_findings"));
    assert_eq!(of_profile.status, 400);
}
