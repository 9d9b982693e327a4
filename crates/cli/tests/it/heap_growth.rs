//! A PHP program that grows: what holds its memory, and what changed.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStderr, Stdio};

use borehole_testkit::{Scratch, corpus, peers};
use serde_json::Value;

use crate::program::run;

/// A program that grows on request and ends with the test.
pub(crate) struct Growing {
    child: Child,
    said: Lines<BufReader<ChildStderr>>,
}

impl Growing {
    /// `None` if PHP is skipped.
    pub(crate) fn start() -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        command.args(["-d", "opcache.enable_cli=0"]).arg(corpus("php/mem/grow.php"));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut growing = Self { child, said };
        growing.wait();
        Some(growing)
    }

    fn wait(&mut self) {
        let is_ready = |line: &str| line.starts_with("READY ");
        self.said.find(|line| line.as_deref().is_ok_and(is_ready)).unwrap().unwrap();
    }

    pub(crate) fn grow(&mut self, by: u32) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{by}").unwrap();
        self.wait();
    }

    pub(crate) fn capture(&self, output: &str) {
        run(&["heap", "capture", "-p", &self.child.id().to_string(), "-o", output]).done();
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&run(arguments).done()).unwrap()
}

#[test]
fn the_cache_that_grows_is_named_first() {
    let Some(mut growing) = Growing::start() else { return };
    let scratch = Scratch::new();
    let paths: Vec<String> =
        ["1.rmem", "2.sqlite3", "3.json"].map(|name| scratch.path(name).to_str().unwrap().to_owned()).into();
    let [first, second, third] = [&*paths[0], &*paths[1], &*paths[2]];
    growing.capture(first);
    growing.grow(500);
    growing.capture(second);
    growing.grow(2000);
    growing.capture(third);
    // Heaps in any mix of formats.
    let found = json(&["heap", "compare", "--json", first, second, third]);
    assert_eq!(found["same_process"], true);
    let held = &found["holder_deltas"]["changed"][0];
    assert_eq!(held["path"], "Leak\\Cache::$items");
    assert_eq!(held["counts"], serde_json::json!([1000, 1500, 3500]));
    assert_eq!(held["steady"], true);
    assert_eq!(held["static"], true);
    let finding = &found["findings_diff"]["new"][0];
    assert_eq!(
        (&finding["kind"], &finding["path"]),
        (&"static_growth".into(), &"Leak\\Cache::$items".into())
    );
    let class = &found["class_deltas"]["changed"][0];
    assert_eq!(
        (&class["name"], &class["counts"]),
        (&"Leak\\Cart".into(), &serde_json::json!([1000, 1500, 3500]))
    );
    let text = String::from_utf8(run(&["heap", "compare", first, third]).done()).unwrap();
    assert!(text.contains("Leak\\Cache::$items ") && text.contains("(1,000 -> 3,500 elements)"), "{text}");
    let said = run(&["heap", "compare", first, third, "--fail-over", "10%"]);
    assert_eq!(said.code, 1);
    run(&["heap", "compare", first, third, "--fail-over", "1G"]).done();
    run(&["heap", "compare", first, first, "--fail-over", "0"]).done();
    for odd in ["much", "10%%", "64MBB"] {
        let refused = run(&["heap", "compare", first, third, "--fail-over", odd]).failed();
        let expected = format!("expected a size such as 64M or a percentage such as 10%, found {odd}");
        assert!(refused.contains(&expected), "{refused}");
    }
    // Reli's command line for this comparison.
    let output = scratch.path("reli.json");
    let output = output.to_str().unwrap();
    run(&["inspector:memory:compare", first, third, "-f", "report-json", "-o", output]).done();
    let written: Value = serde_json::from_slice(&std::fs::read(output).unwrap()).unwrap();
    assert_eq!(written["target"]["node_count"], found["target"]["node_count"]);
}

#[test]
fn a_heap_shows_what_holds_memory() {
    let Some(growing) = Growing::start() else { return };
    let scratch = Scratch::new();
    let path = scratch.path("grow.rmem");
    let heap = path.to_str().unwrap();
    growing.capture(heap);
    let ask = |question: &[&str]| json(&[&["heap", "ask", heap, "--json"], question].concat());
    let classes = ask(&["top-classes"]);
    let cart = &classes["rows"][0];
    assert_eq!((&cart["class"], &cart["objects"]), (&"Leak\\Cart".into(), &1000.into()));
    // 40 bytes and two properties make 72; the allocator's next size is 80.
    assert_eq!(cart["shallow_bytes"], 1000 * 80);
    let found = ask(&["find", "--class", "leak\\cart", "--limit", "3"]);
    assert_eq!((found["shown"].clone(), found["of"].clone()), (3.into(), 1000.into()));
    let node = &*format!("#{}", found["rows"][2]["node_id"]);
    assert_eq!(found["rows"][2]["path"], "Leak\\Cache::$items[2]");
    let way = ask(&["path-to-root", node]);
    assert_eq!(way["rows"][0]["link"], "class_table");
    let referrers = ask(&["referrers", node]);
    assert!(referrers["rows"].as_array().unwrap().iter().any(|row| row["path"] == "Leak\\Cache::$items[2]"));
    let retained = ask(&["retained", node]);
    // The object, its two strings, and its array with a table of eight slots.
    assert_eq!(retained["rows"][0]["retained_bytes"], retained["rows"][1]["retained_bytes"]);
    let bytes = retained["rows"][0]["retained_bytes"].as_u64().unwrap();
    assert!((300..700).contains(&bytes), "{bytes}");
    let dominators = ask(&["dominators", node, "--limit", "0"]);
    let above: Vec<&str> =
        dominators["rows"].as_array().unwrap().iter().filter_map(|row| row["path"].as_str()).collect();
    assert!(above.contains(&"Leak\\Cache::$items"), "{above:?}");
    let refused = run(&["heap", "ask", heap, "retains", "#1", "--json"]).failed();
    let questions = "top-classes, top-retained, roots, node, path-to-root, referrers, references, retained, dominators, cycles, find";
    assert_eq!(refused, format!("error: unknown question: expected one of {questions}, found retains\n"));
    let refused = run(&["heap", "ask", heap, "node", "#99999999"]).failed();
    assert!(refused.contains("unknown node: expected below #"), "{refused}");
}
