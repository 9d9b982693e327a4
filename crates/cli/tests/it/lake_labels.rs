//! Labels of any text on command lines, in answers, and in what the server says of a lake.

use std::fmt::Write as _;

use borehole_testkit::Scratch;
use borehole_testkit::hostile_labels::hostile_labels;
use borehole_text::lossless::escape;
use serde_json::{Value, json};

use crate::lake::lines;
use crate::program::{run, text};

/// A lake with a sample for each label, the first one once, the second twice, and so on.
fn lake(labels: &[(String, String)]) -> (Scratch, String) {
    let scratch = Scratch::new();
    let mut file = "{\"type\":\"file\",\"schema_version\":1}\n".to_owned();
    for (count, (key, value)) in (1..).zip(labels) {
        let frames = [json!({ "function": format!("f{count}") })];
        let sample = json!({ "type": "sample", "frames": frames, "count": count, "labels": [[key, value]] });
        writeln!(file, "{sample}").unwrap();
    }
    let samples: u64 = (1..).take(labels.len()).sum();
    let end = json!({ "type": "end", "samples": samples, "events": 0, "lost_bytes": 0, "warnings": [] });
    writeln!(file, "{end}").unwrap();
    let file = scratch.write("labels.jsonl", file.as_bytes());
    let lake = text(&scratch.path("lake")).to_owned();
    run(&["lake", "add", &lake, text(&file), "--service", "shop", "--at", "2026-11-01"]).done();
    (scratch, lake)
}

/// The labels as a lake has them: without the character NUL, which no command line can hold.
fn stored(labels: &[(String, String)]) -> Vec<(String, String)> {
    let stored = |text: &String| escape(text.as_bytes()).into_owned();
    labels.iter().map(|(key, value)| (stored(key), stored(value))).collect()
}

#[test]
fn hostile_labels_are_grouped_by_and_chosen_on_command_lines() {
    let labels = hostile_labels();
    let (_scratch, lake) = lake(&labels);
    for (count, (key, value)) in (1..).zip(&stored(&labels)) {
        let by = format!("label:{key}");
        let rows = lines(run(&["lake", "top", &lake, "--by", &by, "--limit", "0", "--json"]).done());
        let rows: Vec<Value> = rows.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
        let is_it = |row: &&Value| {
            row["value"] == count && row.as_object().unwrap().values().any(|cell| cell == value)
        };
        assert_eq!(rows.iter().filter(is_it).count(), 1, "{key:.40?}: {rows:.400?}");
        let chosen = format!("{key}={value}");
        let top = lines(run(&["lake", "top", &lake, "--label", &chosen, "--csv"]).done());
        assert_eq!(top.len(), 2, "{key:.40?}: {top:?}");
        assert!(top[1].starts_with(&format!("f{count},{count},")), "{key:.40?}: {top:?}");
    }
    // A table has a line for each row, whatever is in it.
    let table = run(&["lake", "top", &lake, "--by", "label:lines"]).done();
    assert_eq!(lines(table.clone()).len(), 3, "{}", String::from_utf8_lossy(&table));
}

#[test]
fn hostile_labels_are_set_and_removed_on_command_lines() {
    let labels = stored(&hostile_labels());
    let (_scratch, lake) = lake(&[("plain".to_owned(), "x".to_owned())]);
    let keys = |lake: &str| {
        let sql = "SELECT unnest(map_keys(labels)) AS key FROM samples";
        let rows = lines(run(&["lake", "query", lake, sql, "--json"]).done());
        let mut keys: Vec<String> = rows
            .iter()
            .map(|row| serde_json::from_str::<Value>(row).unwrap()["key"].as_str().unwrap().to_owned())
            .collect();
        keys.sort();
        keys
    };
    let of_labels = |option: &str, with_value: bool| {
        let word = |(key, value): &(String, String)| {
            if with_value { format!("{option}=label:{key}={value}") } else { format!("{option}=label:{key}") }
        };
        labels.iter().map(word).collect::<Vec<_>>()
    };
    let relabel = |words: Vec<String>| {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        run(&[&["lake", "relabel", &lake, "--service", "shop"], &words[..]].concat()).done();
    };
    relabel(of_labels("--set", true));
    let mut expected: Vec<_> =
        labels.iter().map(|(key, _)| key.clone()).chain(["plain".to_owned()]).collect();
    expected.sort();
    assert_eq!(keys(&lake), expected);
    relabel(of_labels("--unset", false));
    assert_eq!(keys(&lake), ["plain"]);
}

#[cfg(feature = "serve")]
#[test]
fn a_server_groups_and_chooses_by_hostile_labels() {
    /// The longest address that a server reads, about.
    const LONGEST: usize = 16 << 10;
    let labels = hostile_labels();
    let (_scratch, lake) = lake(&labels);
    let (_serving, address) = crate::serve::Serving::start(&[&lake]);
    let host = address.strip_prefix("http://").unwrap().trim_end_matches('/');
    let ask =
        |question: &str| crate::serve::send(host, "GET", &format!("/api/v1/lakes/top?limit=100&{question}"));
    for (count, (key, value)) in (1..).zip(&stored(&labels)).filter(|(_, (key, _))| key.len() < LONGEST) {
        let by = ask(&format!("by=label%3A{}", percent(key)));
        let rows = by["rows"].as_array().unwrap_or_else(|| panic!("{key:?}: {by}"));
        let row = rows.iter().find(|row| row.as_array().unwrap().contains(&json!(count)));
        let row = row.unwrap_or_else(|| panic!("{key:?}: {by:.400}")).as_array().unwrap();
        let is_plain = value.len() < 100 && !value.contains(char::is_control) && !value.contains('\u{202e}');
        assert!(!is_plain || row.contains(&json!(value)), "{key:?}: {row:?}");
        if value.len() < LONGEST {
            let chosen = ask(&format!("label={}", percent(&format!("{key}={value}"))));
            let rows = chosen["rows"].as_array().unwrap_or_else(|| panic!("{key:?}: {chosen}"));
            assert!(
                rows.len() == 1 && rows[0].as_array().unwrap().contains(&json!(format!("f{count}"))),
                "{chosen}"
            );
        }
    }
    let refused = ask("by=a%00b");
    assert!(refused.to_string().contains("NUL"), "{refused}");
}

/// A text in an address.
#[cfg(feature = "serve")]
fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut said, byte| {
        write!(said, "%{byte:02X}").unwrap();
        said
    })
}
