//! Heaps: their pages and their tables.

use borehole_testkit::corpus;
use serde_json::{Value, json};

use crate::client::Served;

const DUMP: &str = "8.1.2.rdump";

fn served() -> (Served, String) {
    let served = Served::paths([corpus(&format!("php/heap/{DUMP}"))]);
    let id = served.id(DUMP);
    (served, id)
}

/// The values of a column.
fn column(table: &Value, name: &str) -> Vec<Value> {
    let place = table["columns"].as_array().unwrap().iter().position(|column| column == name).unwrap();
    table["rows"].as_array().unwrap().iter().map(|row| row[place].clone()).collect()
}

#[test]
fn a_heap_has_a_page_classes_findings_and_nodes() {
    let (served, id) = served();
    let page = served.json(&format!("/api/v1/inputs/{id}/page"));
    assert_eq!(page["kind"], "heap");
    let classes = served.json(&format!("/api/v1/inputs/{id}/heap_classes?limit=1000"));
    assert_eq!(classes["unit"], "bytes");
    let retained: Vec<i64> =
        column(&classes, "retained bytes").iter().map(|cell| cell.as_i64().unwrap()).collect();
    assert!(retained.is_sorted_by(|one, next| one >= next) && retained[0] > 0, "{retained:?}");
    // The handle in a table is what the next question takes.
    let node = column(&classes, "largest")[0].as_str().unwrap().to_owned();
    let asked = served.json(&format!("/api/v1/inputs/{id}/heap_ask?node={node}"));
    let way = column(&asked, "relation").iter().filter(|relation| **relation == "way").count();
    assert!(way > 0 && column(&asked, "node").contains(&json!(node)), "{asked}");
    let class = column(&classes, "class")[0].as_str().unwrap().to_owned();
    let found = served.json(&format!("/api/v1/inputs/{id}/heap_ask?class={class}&limit=3"));
    assert_eq!(found["all_rows"], column(&classes, "objects")[0]);
    let findings = served.json(&format!("/api/v1/inputs/{id}/heap_findings"));
    assert!(!findings["rows"].as_array().unwrap().is_empty());
    for (view, status, named) in [
        ("top", 400, "heap_findings"),
        ("heap_ask?node=n999999999", 404, "no node"),
        ("heap_ask?node=x", 400, "node"),
    ] {
        let reply = served.get(&format!("/api/v1/inputs/{id}/{view}"));
        assert_eq!(reply.status, status, "{view}: {}", reply.text());
        assert!(reply.text().contains(named), "{view}: {}", reply.text());
    }
}

#[test]
fn what_is_known_soon_adds_up_and_counts_the_objects_of_each_class() {
    let (served, id) = served();
    let outline = served.json(&format!("/api/v1/inputs/{id}/outline"));
    assert_eq!((&outline["kind"], &outline["is_outline"]), (&json!("heap"), &json!(true)));
    let numbers = |key: &Value| -> Vec<i64> { serde_json::from_value(key.clone()).unwrap() };
    assert_eq!(numbers(&outline["self"]).iter().sum::<i64>(), outline["all"].as_i64().unwrap());
    // Classes are parts of the type of objects.
    let (above, names) = (numbers(&outline["calls"]["caller"]), outline["names"].as_array().unwrap());
    let objects = names.iter().position(|name| name == "ZendObject").unwrap();
    assert!(above.iter().all(|&above| above == -1 || above == i64::try_from(objects).unwrap()), "{above:?}");
    let classes = served.json(&format!("/api/v1/inputs/{id}/heap_classes?limit=1000"));
    let of_table: Vec<_> = column(&classes, "class").into_iter().zip(column(&classes, "objects")).collect();
    let of_outline = outline["top"].as_array().unwrap();
    let of_outline =
        of_outline.iter().map(|row| (&names[usize::try_from(row[0].as_u64().unwrap()).unwrap()], &row[3]));
    let found = of_outline.filter(|&(name, count)| of_table.contains(&(name.clone(), count.clone()))).count();
    assert_eq!(found, of_table.len(), "{outline} {of_table:?}");
    let profile = Served::paths([corpus("rbt/daemon_worker.rbt")]);
    assert_eq!(profile.get("/api/v1/inputs/daemon_worker.rbt/outline").status, 400);
}

#[test]
fn two_heaps_are_compared_and_what_grew_is_first() {
    let served =
        Served::paths(["8.1.2", "8.2.36"].map(|version| corpus(&format!("php/heap/{version}.rdump"))));
    let changes = served.json("/api/v1/changes?before=8.1.2.rdump&after=8.2.36.rdump&limit=1000");
    let of = |kind: &str| -> Vec<Vec<Value>> {
        let rows = changes["rows"].as_array().unwrap().iter().filter(|row| row[0] == kind);
        rows.map(|row| row.as_array().unwrap().clone()).collect()
    };
    let classes = of("class");
    assert!(!classes.is_empty(), "{changes}");
    let growth = |row: &Vec<Value>| row[1].as_i64().unwrap();
    assert!(classes.is_sorted_by(|one, next| growth(one).abs() >= growth(next).abs()));
    for row in &classes {
        assert_eq!(growth(row), row[3].as_i64().unwrap() - row[2].as_i64().unwrap());
    }
    assert!(changes["notes"].to_string().contains("different processes"), "{}", changes["notes"]);
    let both = served.get("/api/v1/diff?before=8.1.2.rdump&after=8.2.36.rdump");
    assert_eq!(both.status, 400, "{}", both.text());
    assert!(both.text().contains("/api/v1/changes"), "{}", both.text());
}

#[test]
fn a_heap_and_a_profile_are_not_compared() {
    let served = Served::paths([corpus("php/heap/8.1.2.rdump"), corpus("rbt/daemon_worker.rbt")]);
    let refused = served.get("/api/v1/changes?before=8.1.2.rdump&after=daemon_worker.rbt");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("found both"), "{}", refused.text());
}
