//! Heaps in the terminal and in the browser.

use std::fs;
use std::path::Path;

use borehole_testkit::{Scratch, assert_golden, project_file};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::explore::Terminal;
use crate::leaks::{Waiting, example};
use crate::program::{corpus, run, text};

fn dump() -> String {
    corpus("php/heap/8.4.24.rdump")
}

#[test]
fn screens_are_as_they_were_at_several_sizes() {
    let views = [
        ("classes", "c", "classes ·"),
        ("objects", "\r", "objects of"),
        ("node", "\r", "referred to by"),
        ("way", "p", "path from the root"),
        ("held", ">", "retained by"),
        ("roots", "t", "roots ·"),
        ("found", "FFacts\\Other\r", " matches for Facts"),
    ];
    for size in [(80, 24), (120, 40)] {
        let mut terminal = Terminal::start(&["heap", "explore", &dump()], size, &[("NO_COLOR", "1")]);
        terminal.shows("classes ·");
        for (name, keys, title) in views {
            terminal.press(keys);
            terminal.shows(title);
            // A search continues while the explorer waits for keys.
            let shown = settled(&terminal);
            let lines: Vec<_> = shown.lines().map(str::trim_end).collect();
            let golden = format!("crates/cli/tests/golden/heap-{name}-{}x{}.txt", size.0, size.1);
            assert_golden(project_file(&golden), (lines.join("\n") + "\n").as_bytes());
        }
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
}

/// The screen after a search has ended.
fn settled(terminal: &Terminal) -> String {
    crate::program::wait_for(|| Some(terminal.shown()).filter(|shown| !shown.contains("% searched")))
}

#[test]
fn a_leak_is_walked_to_the_property_that_holds_it() {
    let scratch = Scratch::new();
    let Some(waiting) = Waiting::start("php", &example("static_cache")) else { return };
    let heap = waiting.capture(&scratch);
    let mut terminal = Terminal::start(&["heap", "explore", text(&heap)], (100, 30), &[]);
    let shown = terminal.shows("classes ·");
    let first = shown.lines().find(|line| line.contains("Shop\\Price")).unwrap();
    assert!(first.contains("40,000  Shop\\Price"), "{first}");
    terminal.press("\r");
    terminal.shows("objects of Shop\\Price · 40,000");
    terminal.press("\r");
    let shown = terminal.shows("referred to by");
    assert!(shown.contains("Shop\\PriceCache::$prices["), "{shown}");
    terminal.press("h\r");
    let shown = terminal.shows("refers to · 40,00");
    assert!(shown.contains("array(40,000)"), "{shown}");
    terminal.press("uuu");
    terminal.shows("classes ·");
    terminal.press("Fprice of product 39999\r");
    terminal.shows("1 match for price of product 39999");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    // With reli's command name, starting at a node.
    let mut terminal =
        Terminal::start(&["rmem:explore", text(&heap), "--node", "0", "--memory-limit=2G"], (80, 24), &[]);
    terminal.shows(" #0");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_missing_terminal_or_heap_is_reported() {
    let message = run(&["heap", "explore", &dump()]).failed();
    assert!(
        message.contains("missing terminal: expected one on standard output; use borehole heap ask"),
        "{message}"
    );
    let mut terminal = Terminal::start(&["heap", "explore", &corpus("rbt/native.rbt")], (80, 24), &[]);
    assert_eq!(terminal.ended(), 2);
    let mut terminal = Terminal::start(&["heap", "explore", &dump(), "--node", "x"], (80, 24), &[]);
    terminal.shows("expected a node such as #17, found x");
    assert_eq!(terminal.ended(), 2);
}

/// The page of a heap.
fn page(folder: &Scratch, heap: &str) -> std::path::PathBuf {
    let path = folder.path("heap.html");
    run(&["heap", "viz", heap, "-o", text(&path)]).done();
    path
}

fn classes(heap: &str) -> Vec<Value> {
    let json = run(&["heap", "ask", heap, "top-classes", "--json", "--limit", "0"]).done();
    let answer: Value = serde_json::from_slice(&json).unwrap();
    answer["rows"].as_array().unwrap().clone()
}

#[test]
fn a_page_shows_what_holds_memory() {
    let folder = Scratch::new();
    let heap = dump();
    let path = page(&folder, &heap);
    let html = fs::read_to_string(&path).unwrap();
    let known = classes(&heap);
    let name = known[0]["class"].as_str().unwrap();
    // For readers without scripts, the table is in the page.
    assert!(
        html.contains(&format!("<td>{}</td></tr>", name.replace('&', "&amp;").replace('<', "&lt;"))),
        "{name}"
    );
    let Some(mut browser) = Browser::open(&path) else { return };
    let rows = browser
        .ask("borehole.table.rows.map(row => [borehole.model.fnName(row[0]), row[1], row[2], row[3]])");
    for (row, class) in rows.as_array().unwrap().iter().zip(&known) {
        assert_eq!(
            *row,
            json!([class["class"], class["retained_bytes"], class["shallow_bytes"], class["objects"]])
        );
    }
    assert_eq!(rows.as_array().unwrap().len(), known.len());
    // The blocks below each block are no larger than it, and add up to the whole.
    assert_eq!(browser.ask("borehole.flame.tree.first[0] === borehole.model.data.all"), json!(true));
    let boxes = browser.ask("borehole.flame.boxes().length").as_u64().unwrap();
    assert!(boxes > 5, "{boxes}");
    browser.ask("document.querySelector('#flame').focus()");
    browser.key("ArrowDown");
    browser.key("Enter");
    assert_eq!(browser.ask("borehole.flame.zoomed > 0"), json!(true));
    browser.key("Escape");
    browser.click(&format!(
        "[...document.querySelectorAll('#top-rows button')].find(row => row.textContent === {})",
        json!(name)
    ));
    assert_eq!(browser.ask("borehole.flame.mode"), json!("sandwich"));
    assert!(browser.text("#status").contains("holders above, contents below"));
    browser.click("document.querySelector('#theme')");
    assert_eq!(browser.ask("document.documentElement.dataset.theme"), json!("dark"));
}

#[test]
fn empty_pages_and_hostile_names_are_harmless() {
    let folder = Scratch::new();
    let names = ["</script><script>window.stolen=1</script>", "<img src=x onerror=window.stolen=1>"];
    for (name, nodes) in names.iter().zip([0, 1]) {
        let heap = folder.path("heap.json");
        fs::write(&heap, reli_json(name, nodes)).unwrap();
        let path = folder.path(&format!("{nodes}.html"));
        run(&["heap", "viz", text(&heap), "-o", text(&path), "--title", name]).done();
        let Some(mut browser) = Browser::open(&path) else { return };
        assert_eq!(
            browser.ask("[window.stolen === undefined, document.querySelector('h1').textContent]"),
            json!([true, name])
        );
        assert_eq!(browser.ask("document.querySelectorAll('img').length"), json!(0));
    }
}

/// A small document of reli's with this many objects of a class. The first number of a node is its id.
fn reli_json(class: &str, objects: usize) -> String {
    let object = format!(
        r##","0":{{"#node_id":1,"#type":"ObjectContext","#locations":[{{"address":4096,"size":40,"refcount":1,"type_info":8,"class_name":{}}}]}}"##,
        json!(class)
    );
    let object = if objects > 0 { &*object } else { "" };
    format!(
        r##"{{"summary":[{{"zend_mm_heap_total":2097152}}],"location_types_summary":{{}},"class_objects_summary":{{}},"context":{{"call_frames":{{"#node_id":0,"#type":"CallFramesContext"{object}}}}}}}"##
    )
}

#[test]
fn a_page_is_not_replaced_and_needs_an_html_name() {
    let folder = Scratch::new();
    let path = page(&folder, &dump());
    assert!(
        run(&["heap", "viz", &dump(), "-o", text(&path)])
            .failed()
            .contains("file exists; use --force to replace it")
    );
    run(&["heap", "viz", &dump(), "-o", text(&path), "--force"]).done();
    let message = run(&["heap", "viz", &dump(), "-o", text(&folder.path("x.png"))]).failed();
    assert!(message.contains("expected a name that ends in .html"), "{message}");
    let printed = run(&["rmem:viz", &dump(), "--top", "500", "--depth=1"]).done();
    assert!(printed.starts_with(b"<!doctype html>"));
    assert!(Path::new(&path).metadata().unwrap().len() < 3_000_000);
}
