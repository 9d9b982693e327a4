//! Heaps of PHP in every mode of its engine: what is in them does not depend on how the engine keeps and runs code.

use std::path::Path;

use borehole_testkit::engine_modes::{CODE_MODES, EngineMode, OTHER_MODES};
use borehole_testkit::{Scratch, corpus};
use serde_json::{Value, json};

use crate::heap_holders::ask;
use crate::leaks::{Waiting, report};
use crate::program::{run, text};

/// The facts of `modes/depot.php` about the engine, by the name of the mode: they show that PHP runs in this mode.
fn engine(mode: &EngineMode) -> Value {
    let keeps_files = mode.name.starts_with("file cache");
    let is_running = match mode.name {
        "interpreted" | "Xdebug, off" | "Xdebug, develop" | "Xdebug, debug" | "no allocator" => false,
        name => !name.starts_with("file cache only"),
    };
    let xdebug = match mode.name {
        "Xdebug, off" => Some(""),
        "Xdebug, develop" => Some("develop"),
        "Xdebug, debug" => Some("debug"),
        "Xdebug, opcache" => Some("debug,develop"),
        _ => None,
    };
    json!({
        "opcache": is_running,
        "cached": is_running && !["opcache that caches nothing", "opcache, full"].contains(&mode.name),
        "jit": mode.name.ends_with("JIT"),
        "files": keeps_files,
        "preloaded": mode.name == "preloading",
        "xdebug": xdebug,
        "allocator": mode.has_allocator,
    })
}

/// Runs `check` on the heap of a program in every mode, with the facts that the program printed and the mode.
fn in_every_mode(program: &str, check: impl Fn(&EngineMode, &Value, &Path)) {
    let scratch = Scratch::new();
    let captured = Scratch::new();
    for mode in CODE_MODES.iter().chain(&OTHER_MODES) {
        let Some(php) = mode.command(&scratch) else { return };
        let waiting = Waiting::start_in(php, &corpus(&format!("php/modes/{program}.php")));
        check(mode, &waiting.facts, &waiting.capture(&captured));
    }
}

fn info(heap: &Path) -> Value {
    serde_json::from_slice(&run(&["heap", "info", "--json", text(heap)]).done()).unwrap()
}

fn number(info: &Value, key: &str) -> Option<u64> {
    info["summary"][key].as_str().map(|number| number.parse().unwrap())
}

/// Checks that sizes add up, as far as PHP has an account of them. Returns the memory that no size may exceed.
fn check_account(mode: &EngineMode, facts: &Value, info: &Value) -> u64 {
    let name = mode.name;
    assert_eq!(info["contradiction"], Value::Null, "{name}");
    let accounting = &info["summary"]["heap_memory_accounting"];
    if !mode.has_allocator {
        assert_eq!(accounting, "none: PHP does not use its own allocator", "{name}");
        assert_eq!(number(info, "memory_get_usage"), None, "{name}");
        return number(info, "rss").unwrap();
    }
    assert_eq!(accounting, "exact", "{name}");
    assert_eq!(info["summary"]["heap_memory_analyzed_percentage"], "100", "{name}");
    let used = number(info, "memory_get_usage").unwrap();
    assert_eq!(number(info, "zend_mm_heap_usage"), Some(used), "{name}");
    // It asked while it held the text with the answers.
    let difference = facts["usage"].as_u64().unwrap() - used;
    assert!(difference < 8192, "{name}: {difference}");
    let real = facts["real"].as_u64().unwrap();
    assert_eq!(number(info, "memory_get_real_usage"), Some(real), "{name}");
    real
}

fn check_classes(mode: &EngineMode, facts: &Value, info: &Value) {
    let classes = info["classes"].as_array().unwrap().iter();
    let counts: serde_json::Map<String, Value> =
        classes.map(|class| (class["name"].as_str().unwrap().to_owned(), class["count"].clone())).collect();
    assert_eq!(Value::Object(counts), facts["objects"], "{}", mode.name);
}

/// Checks that the leak is the only alarm, with its whole size where PHP says it.
fn check_findings(mode: &EngineMode, facts: &Value, report: &Value) {
    let name = mode.name;
    assert_eq!(report["contradiction"], Value::Null, "{name}");
    let findings = report["findings"].as_array().unwrap();
    let alarms: Vec<_> = findings.iter().filter(|finding| finding["severity"] == "high").collect();
    assert_eq!(alarms.len(), 1, "{name}: {alarms:#?}");
    let leak = alarms[0];
    assert_eq!(leak["kind"], "garbage_cycles", "{name}: {leak}");
    let back = leak["facts"]["back_reference"].as_str().unwrap();
    let ways = [r"Depot\Line::$order -> Depot\Order", r"Depot\Order::$lines[] -> Depot\Line"];
    assert!(ways.contains(&back), "{name}: {back}");
    let counted = (&leak["facts"]["cycles"], &leak["facts"]["objects"]);
    assert_eq!(counted, (&json!(300), &json!(600)), "{name}");
    if mode.has_allocator {
        assert_eq!(leak["impact_bytes"], facts["leaked"], "{name}");
    } else {
        // Without an allocator that rounds sizes up: the texts, and less than what the allocator of PHP takes.
        let texts: usize = (0..300).map(|order: usize| format!("order {order};").len() * 2000).sum();
        let range = texts as u64..6_208_640;
        assert!(range.contains(&leak["impact_bytes"].as_u64().unwrap()), "{name}: {leak}");
    }
}

/// Checks what variables, static variables and static properties hold.
fn check_contents(mode: &EngineMode, heap: &Path, most: u64) {
    let name = mode.name;
    let found = |variable: &str, path: &str| {
        let rows = ask(heap, &["find", "--name", variable]);
        let row = rows.iter().find(|row| row["path"].as_str().unwrap().ends_with(path));
        row.unwrap_or_else(|| panic!("{name}: {path} of {rows:#?}")).clone()
    };
    assert_eq!(found("labels", "::$labels")["count"], 300, "{name}");
    assert_eq!(found("streams", "::$streams")["count"], 8, "{name}");
    // The keys and values are not interned.
    let entries = found("entries", r"Depot\Register::$entries");
    assert!(entries["retained_bytes"].as_u64() > Some(1000 * (35 + 44)), "{name}: {entries}");
    // A reference, an array and its table.
    let calls = found("calls", r"Depot\Register::count()::$calls");
    assert!(calls["retained_bytes"].as_u64() > Some(32 + 56 + 16), "{name}: {calls}");
    for question in ["top-retained", "top-classes", "roots"] {
        for row in ask(heap, &[question]) {
            let retained = row["retained_bytes"].as_u64().unwrap();
            assert!(retained <= most, "{name}: {row}");
        }
    }
}

#[test]
fn a_heap_is_the_same_in_every_mode_of_the_engine() {
    in_every_mode("depot", |mode, facts, heap| {
        assert_eq!(facts["engine"], engine(mode), "{}", mode.name);
        let info = info(heap);
        let most = check_account(mode, facts, &info);
        check_classes(mode, facts, &info);
        check_findings(mode, facts, &report(heap));
        check_contents(mode, heap, most);
    });
}

#[test]
fn what_a_variable_retains_is_what_php_frees_with_it() {
    in_every_mode("freed", |mode, facts, heap| {
        if !mode.has_allocator {
            return;
        }
        let node = |rows: Vec<Value>| format!("#{}", rows[0]["node_id"]);
        let one = node(ask(heap, &["find", "--name", "the_packed_list"]));
        let table = node(ask(heap, &["referrers", &one]));
        let variables = ask(heap, &["references", &table]);
        let name = |row: &Value| row["link"].as_str().unwrap().strip_prefix("the_").map(str::to_owned);
        let retained: serde_json::Map<String, Value> =
            variables.iter().filter_map(|row| Some((name(row)?, row["retained_bytes"].clone()))).collect();
        assert_eq!(Value::Object(retained), facts["freed"], "{}", mode.name);
    });
}
