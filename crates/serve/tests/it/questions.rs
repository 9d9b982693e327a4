//! Views as tables, and the description of the API.

use borehole_testkit::{Scratch, corpus};
use serde_json::{Value, json};

use crate::client::Served;

/// A program whose culprit is one function, called in two ways.
const SLOW: &str =
    "main;fast 10\nmain;handle;slow_query 700\nmain;job;slow_query 200\nmain;handle;render 90\n";

fn served(name: &str, folded: &str) -> (Scratch, Served, String) {
    let scratch = Scratch::new();
    let served = Served::paths([scratch.write(name, folded.as_bytes())]);
    let id = served.id(name);
    (scratch, served, id)
}

fn column(table: &Value, name: &str) -> Vec<Value> {
    let place = table["columns"].as_array().unwrap().iter().position(|column| column == name).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[place].clone()).collect()
}

#[test]
fn the_culprit_is_first_and_the_answer_says_what_it_covers() {
    let (_scratch, served, id) = served("slow.folded", SLOW);
    let top = served.json(&format!("/api/v1/inputs/{id}/top?limit=1"));
    assert_eq!(
        (column(&top, "function"), column(&top, "self")),
        (vec![json!("slow_query")], vec![json!(900)])
    );
    assert_eq!((&top["total"], &top["all_rows"]), (&json!(1000), &json!(6)));
    assert_eq!(top["coverage"], "Shown 90.0%, the rest in 5 functions.");
    let handle = column(&top, "id")[0].as_str().unwrap().to_owned();
    let callers = served.json(&format!("/api/v1/inputs/{id}/callers?function={handle}"));
    assert_eq!(column(&callers, "function")[..2], [json!("slow_query"), json!("  handle")]);
    assert_eq!(column(&callers, "total")[..2], [json!(900), json!(700)]);
    let callees = served.json(&format!("/api/v1/inputs/{id}/callees?function=handle"));
    assert_eq!(column(&callees, "function"), [json!("handle"), json!("  slow_query"), json!("  render")]);
    let paths = served.json(&format!("/api/v1/inputs/{id}/paths?limit=1"));
    assert_eq!(column(&paths, "path"), [json!("main → handle → slow_query")]);
    let focused = served.json(&format!("/api/v1/inputs/{id}/top?match=handle"));
    assert_eq!(focused["total"], 790);
}

#[test]
fn findings_say_what_is_missing_and_who_never_left_the_cpu() {
    let served = Served::paths(
        ["rbt/bitflip_middle.rbt", "rbt/daemon_worker.rbt", "tachyon/corpus/36_mode_all_exceptions.bin"]
            .map(corpus),
    );
    let of = |name: &str| served.json(&format!("/api/v1/inputs/{name}/findings"));
    let lost = column(&of("bitflip_middle.rbt"), "finding");
    assert!(
        lost.contains(&json!("9 bytes of the input could not be read; their contents are missing")),
        "{lost:?}"
    );
    assert_eq!(column(&of("daemon_worker.rbt"), "kind"), Vec::<Value>::new());
    let busy = of("36_mode_all_exceptions.bin");
    let of_thread = json!("thread 6844 was on a CPU in every sample of it");
    assert!(column(&busy, "finding").contains(&of_thread), "{busy}");
}

#[test]
fn the_calls_below_a_path_are_a_page_of_their_own() {
    let (_scratch, served, id) = served("slow.folded", SLOW);
    let page = |under: &str| served.json(&format!("/api/v1/inputs/{id}/page?{under}"));
    let below = page("under=main&under=handle");
    assert_eq!((&below["all"], &below["distinct"]), (&json!(790), &json!(4)));
    assert!(below["title"].as_str().unwrap().ends_with(": below main → handle"), "{}", below["title"]);
    assert_eq!(page("under=job")["all"], 0);
    assert_eq!(page("")["all"], 1000);
}

#[test]
fn wrong_questions_say_what_is_right() {
    let (_scratch, served, id) = served("slow.folded", SLOW);
    for (path, status, named) in [
        ("nothing", 404, "overview, findings"),
        ("top?limit=many", 400, "whole number"),
        ("callers", 400, "top lists functions"),
        ("callers?function=nowhere", 404, "no function nowhere"),
        ("timeline", 404, "no timestamps"),
        ("heap_findings", 400, "this view is of heaps"),
        ("source", 400, "missing file"),
        ("top?focus=(", 400, "("),
    ] {
        let reply = served.get(&format!("/api/v1/inputs/{id}/{path}"));
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert!(reply.text().contains(named), "{path}: {}", reply.text());
    }
}

#[test]
fn tables_count_as_the_page_does() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let id = served.id("daemon_worker.rbt");
    let page = served.json(&format!("/api/v1/inputs/{id}/page"));
    let top = served.json(&format!("/api/v1/inputs/{id}/top?limit=10000"));
    let own = |rows: Vec<i64>| {
        let mut rows: Vec<_> = rows.into_iter().filter(|&own| own > 0).collect();
        rows.sort_unstable();
        rows
    };
    let of_page = page["top"].as_array().unwrap().iter().map(|row| row[1].as_i64().unwrap()).collect();
    let of_table = column(&top, "self").iter().map(|own| own.as_i64().unwrap()).collect();
    assert_eq!(own(of_page), own(of_table));
    assert_eq!(top["total"], page["all"]);
}

#[test]
fn a_function_is_found_by_its_name_whatever_that_means_as_a_pattern() {
    let served = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    let id = served.id("daemon_worker.rbt");
    let name = "App%5CHttp%5CControllers%5CUserController%3A%3Aindex";
    let callers = served.json(&format!("/api/v1/inputs/{id}/callers?function={name}"));
    assert!(callers["title"].as_str().unwrap().contains(r"UserController::index"), "{callers}");
    assert!(callers["rows"].as_array().unwrap().len() > 1, "{callers}");
    // What is no name is a pattern.
    let found = served.json(&format!("/api/v1/inputs/{id}/callers?function=Controller%3A%3Ai.dex"));
    assert_eq!(found["rows"], callers["rows"]);
}

#[test]
fn a_regression_is_told_from_noise() {
    let scratch = Scratch::new();
    let before = scratch.write("before.folded", b"main;parse 500\nmain;send 500\n");
    let after = scratch.write("after.folded", b"main;parse 500\nmain;send 500\nmain;compress 800\n");
    let served = Served::paths([before, after]);
    let changes = served.json("/api/v1/changes?before=before.folded&after=after.folded");
    let first = &changes["rows"][0];
    assert_eq!(
        (&first[0], first.as_array().unwrap().last().unwrap()),
        (&json!("yes"), &json!("compress")),
        "{changes}"
    );
    assert_eq!(
        changes["notes"],
        json!(["1 function is new by more than noise; most: compress, with 44.4% in total"])
    );
}

#[test]
fn lines_show_the_text_only_of_files_that_may_be_read() {
    let scratch = Scratch::new();
    let folder = scratch.path("app");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("shop.php"), "<?php\nrun();\n").unwrap();
    let _ = scratch.write("secret.php", b"secret();\n");
    let profile = scratch.write("lines.rbt", &borehole_testkit::read_corpus("rbt/daemon_worker.rbt"));
    let mut options = borehole_serve::ServeOptions::new(vec![profile]);
    options.sources = vec![folder];
    let served = Served::with(options);
    let id = served.id("lines.rbt");
    let top = served.json(&format!("/api/v1/inputs/{id}/top"));
    assert!(top["rows"].as_array().unwrap().len() > 1);
    for file in ["..%2Fsecret.php", "%2Fetc%2Fpasswd", "secret.php"] {
        let reply = served.get(&format!("/api/v1/inputs/{id}/source?file={file}"));
        assert_eq!(reply.status, 404, "{file}: {}", reply.text());
        assert!(!reply.text().contains("secret();"), "{file}");
    }
}

#[test]
fn the_description_names_every_view_and_only_words_that_are_understood() {
    let (_scratch, served, id) = served("slow.folded", SLOW);
    let description = served.json("/api/v1/openapi.json");
    assert_eq!(description["openapi"], "3.1.0");
    let mut views = 0;
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().unwrap();
            for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
                let kind = &parameter["schema"]["type"];
                assert!(kind.is_string(), "{path}: {parameter}");
                assert!(parameter["description"].is_string(), "{path}: {parameter}");
                let value = if kind == "integer" { "1" } else { "self" };
                let name = parameter["name"].as_str().unwrap();
                let asked = path.replace("{id}", &id);
                let line = format!("{} {asked}?{name}={value}", method.to_uppercase());
                let reply = served.ask(&line, &[("Host", &served.host)]);
                assert!(!reply.text().contains("unknown field"), "{path}: {}", reply.text());
                assert_ne!(reply.status, 405, "{line}");
            }
        }
        views += usize::from(path.starts_with("/api/v1/inputs/{id}"));
    }
    assert_eq!(views, 17);
}

#[test]
fn a_flame_chart_has_the_calls_of_its_range_at_the_resolution_that_is_asked_for() {
    let served = Served::paths([corpus("tachyon/corpus/05_threads20_none.bin")]);
    let id = served.id("05_threads20_none.bin");
    let chart = |asked: &str| served.json(&format!("/api/v1/inputs/{id}/lanes?{asked}"));
    let boxes = |chart: &Value| {
        let lanes = chart["lanes"].as_array().unwrap().iter();
        lanes.map(|lane| lane["fn"].as_array().unwrap().len()).sum::<usize>()
    };
    let (coarse, fine) = (chart("columns=50"), chart("columns=2000"));
    assert_eq!(coarse["lanes"].as_array().unwrap().len(), 21);
    assert!(boxes(&coarse) * 2 < boxes(&fine), "{} {}", boxes(&coarse), boxes(&fine));
    // Calls are inside their callers, and all of them in the range.
    let (from, to) = (200_000_000_i64, 300_000_000_i64);
    let part = chart(&format!("columns=2000&from={from}&to={to}"));
    assert_eq!((&part["start_ns"], &part["end_ns"]), (&json!(from), &json!(to)));
    for lane in part["lanes"].as_array().unwrap() {
        let column = |key: &str| -> Vec<i64> { serde_json::from_value(lane[key].clone()).unwrap() };
        let (depths, starts, ends) = (column("depth"), column("start"), column("end"));
        for (call, &depth) in depths.iter().enumerate() {
            assert!(0 <= starts[call] && starts[call] < ends[call] && ends[call] <= to - from);
            let caller = (call + 1..depths.len()).find(|&other| depths[other] == depth - 1);
            let is_inside = |caller: usize| starts[caller] <= starts[call] && ends[call] <= ends[caller];
            assert_eq!(caller.map(is_inside), (depth > 0).then_some(true));
        }
    }
}
