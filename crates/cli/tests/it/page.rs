//! HTML pages, as a browser shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use borehole_testkit::{Scratch, corpus};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program::run;

/// The page that the command with `arguments` writes.
fn page(folder: &Scratch, arguments: &[&str]) -> PathBuf {
    let path = folder.path("page.html");
    let output = path.display().to_string();
    run(&[arguments, &["-o", &output]].concat()).done();
    path
}

fn threads() -> String {
    corpus("tachyon/corpus/05_threads20_none.bin").display().to_string()
}

fn app() -> String {
    corpus("tachyon/corpus/26_realapp_zstd.bin").display().to_string()
}

/// A JavaScript expression for the box of a function.
fn box_of(name: &str) -> String {
    format!("[...document.querySelectorAll('.box')].find(box => box.textContent === {})", json!(name))
}

const ROWS: &str =
    "[...document.querySelectorAll('#top-rows tr')].map(row => [...row.cells].map(cell => cell.textContent))";

/// A function, identified by name and file, with its self and total samples.
type Function = (String, String, u64, u64);

/// The functions of a profile, counted sample by sample, without frames of Python's own profiler.
fn counted(path: &str) -> Vec<Function> {
    let lines = run(&["dump", "--flat", path]).done();
    let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let mut sums: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for line in lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()) {
        let Some(frames) = line["frames"].as_array() else { continue };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let functions = frames.iter().map(|frame| (text(&frame["function"]), text(&frame["file"])));
        let functions: Vec<_> =
            functions.filter(|(_, file)| !file.ends_with("_sync_coordinator.py")).collect();
        let count = line["count"].as_u64().unwrap_or(1);
        for function in functions.iter().collect::<BTreeSet<_>>() {
            sums.entry(function.clone()).or_default().1 += count;
        }
        if let Some(leaf) = functions.first() {
            sums.entry(leaf.clone()).or_default().0 += count;
        }
    }
    sums.into_iter().map(|((name, file), (own, total))| (name, file, own, total)).collect()
}

#[test]
fn a_page_shows_the_sums_of_its_samples() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &app()])) else { return };
    let rows = browser.ask("borehole.table.rows.map(row => [borehole.model.fnName(row[0]), borehole.model.fnFile(row[0]), row[1], row[2]])");
    let mut shown: Vec<Function> = serde_json::from_value(rows).unwrap();
    shown.sort();
    assert_eq!(shown, counted(&app()));
    // The screen shows the counted samples.
    let first = browser.ask(ROWS)[0].clone();
    assert_eq!(first, json!(["1,242", "20.5%", "1,245", "20.6%", "parse /usr/lib/python3.15/ast.py"]));
    let root = browser.ask("document.querySelector('.box').getAttribute('aria-label')");
    assert_eq!(root, "_run_module_as_main in <frozen runpy>: 6,053 samples, 100.0%; self 0");
    // The flame graph holds every sample in both directions.
    for mode in ["calls", "inverted"] {
        browser.ask(&format!("borehole.setMode('{mode}')"));
        assert_eq!(browser.ask("borehole.flame.root.first"), 6053);
    }
}

#[test]
fn clicks_zoom_keys_walk_and_search_finds() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &app()])) else { return };
    browser.click(&box_of("parse"));
    assert_eq!(
        browser.ask(&format!(
            "Math.round({}.offsetWidth / document.querySelector('#boxes').clientWidth * 100)",
            box_of("parse")
        )),
        100
    );
    assert!(browser.text("#status").starts_with("parse in "), "{}", browser.text("#status"));
    browser.click("document.querySelector('#zoom-out')");
    assert!(
        browser
            .ask(&format!(
                "{}.offsetWidth / document.querySelector('#boxes').clientWidth < 0.3",
                box_of("parse")
            ))
            .as_bool()
            .unwrap()
    );

    browser.ask("document.querySelector('#flame').focus()");
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"] {
        browser.key(key);
    }
    assert!(browser.text("#status").starts_with("parse in "), "{}", browser.text("#status"));
    browser.key("Enter");
    assert_eq!(browser.ask("borehole.model.fnName(borehole.flame.zoomed.fn)"), "parse");
    browser.key("Escape");
    browser.key("Escape");

    browser.ask("document.activeElement.blur()");
    browser.key("/");
    for key in ["p", "a", "r", "s", "e"] {
        browser.key(key);
    }
    assert!(browser.ask("document.querySelectorAll('.box.hit').length").as_u64().unwrap() > 0);
    let names = browser.ask(ROWS);
    let found = |row: &Value| row[4].as_str().unwrap().to_lowercase().contains("parse");
    assert!(names.as_array().unwrap().iter().all(found), "{names}");
    assert_eq!(names[0][4], "parse /usr/lib/python3.15/ast.py");
    assert!(browser.text("#matches").ends_with("% matched"));

    browser
        .ask("document.querySelector('#search').value = ''; borehole.flame.query = ''; borehole.refresh()");
    browser.click("document.querySelector('#top-rows button')");
    assert_eq!(
        browser.ask("[borehole.flame.mode, borehole.model.fnName(borehole.flame.focus), borehole.flame.root.below.get(borehole.flame.focus).first]"),
        json!(["sandwich", "parse", 1245])
    );
    // Callers are above, the function itself is below them.
    assert!(
        browser.ask("borehole.flame.callers.below.get(borehole.flame.focus).below.size").as_u64().unwrap()
            > 0
    );
}

#[test]
fn a_time_selection_applies_to_all_views() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &threads()])) else { return };
    let all = browser.ask("borehole.all").as_u64().unwrap();
    assert_eq!(all, 17_138);
    browser.drag("document.querySelector('#timeline')", 0.6, 0.8);
    let some = browser.ask("borehole.all").as_u64().unwrap();
    assert!(some > 0 && some < all / 2, "{some} of {all}");
    let expected = browser.ask(
        "(({ cells, chosen }) => cells.values.filter((_, i) => cells.slice[i] >= chosen.range[0] && cells.slice[i] <= chosen.range[1]).reduce((a, b) => a + b))(borehole.model)",
    );
    assert_eq!(expected, some);
    assert_eq!(browser.ask("borehole.flame.root.first"), some);
    let marks = browser
        .ask("[...document.querySelectorAll('.range')].map(mark => !mark.hidden && mark.offsetWidth > 3)");
    assert_eq!(marks, json!([true, true]));
    assert!(browser.text("#range").contains(" to "));
    browser.click("document.querySelector('#all-time')");
    assert_eq!(browser.ask("borehole.all"), all);

    browser.drag("document.querySelector('#heat')", 0.5, 0.74);
    let of_second = browser.ask("borehole.all").as_u64().unwrap();
    assert!(of_second > 0 && of_second < all, "{of_second}");
    browser.ask("document.querySelector('#heat').focus()");
    browser.key("Escape");
    assert_eq!(browser.ask("borehole.model.chosen.range"), Value::Null);

    // A thread is selected too.
    browser.ask("(select => { select.value = '0'; select.dispatchEvent(new Event('change')) })(document.querySelector('#dimensions select'))");
    let of_thread = browser.ask("borehole.all").as_u64().unwrap();
    let threads: Value =
        serde_json::from_slice(&run(&["report", "--json", "--by", "thread", &threads()]).done()).unwrap();
    assert_eq!(threads["by"]["rows"][0]["count"], of_thread);
}

#[test]
fn a_diff_is_red_and_blue_and_has_the_numbers_of_the_text() {
    let folder = Scratch::new();
    let [before, after] = ["before", "after"].map(|name| folder.path(&format!("{name}.folded")));
    fs::write(&before, "main;slow 500\nmain;fast 500\nmain;gone 1000\n").unwrap();
    fs::write(&after, "main;slow 2500\nmain;fast 500\nmain;new 1000\n").unwrap();
    let [before, after] = [before, after].map(|path| path.display().to_string());
    let html = page(&folder, &["diff", &before, &after]);
    let Some(mut browser) = Browser::open(&html) else { return };
    let json: Value = serde_json::from_slice(&run(&["diff", "--json", &before, &after]).done()).unwrap();
    let slow =
        json["functions"]["rows"].as_array().unwrap().iter().find(|row| row["function"] == "slow").unwrap();
    assert_eq!(
        (&slow["self"]["before"]["value"], &slow["self"]["after"]["value"]),
        (&json!(0.25), &json!(0.625))
    );
    assert_eq!(slow["self"]["significant"], true);
    let rows = browser.ask(ROWS);
    let shown = rows.as_array().unwrap().iter().find(|row| row[6] == "slow").unwrap();
    assert_eq!(*shown, json!(["25.00%", "62.50%", "+37.50% *", "25.00%", "62.50%", "+37.50% *", "slow"]));
    let tint = |browser: &mut Browser, name: &str| {
        browser.ask(&format!(
            "(style => [style.getPropertyValue('--tint'), style.getPropertyValue('--part')])({}.style)",
            box_of(name)
        ))
    };
    assert_eq!(tint(&mut browser, "slow"), json!(["var(--more)", "86%"]));
    assert_eq!(tint(&mut browser, "gone"), json!(["var(--less)", "100%"]));
    assert_eq!(tint(&mut browser, "main")[1], "0%");
    browser.ask("borehole.setMode('inverted')");
    assert_eq!(browser.ask("Math.round(borehole.flame.root.first * 1000)"), 1000);
}

#[test]
fn scripts_in_names_are_shown_and_not_run() {
    let folder = Scratch::new();
    let names = [
        "<img src=x onerror=window.pwned=1>",
        "</script><script>window.pwned=2</script>",
        "<!--<script>",
        "\"><svg onload=window.pwned=3>",
        "javascript:window.pwned=4",
        "x\u{202e}gnp.exe",
        "${window.pwned=5}",
        "__proto__",
        "constructor",
        "a\u{1b}[2Jb",
    ];
    let folded: String = names.iter().map(|name| format!("{name};leaf of {name} 10\n")).collect();
    let input = folder.path("hostile.folded");
    fs::write(&input, &folded).unwrap();
    let (input, other) = (input.display().to_string(), folder.path("other.folded"));
    fs::write(&other, "main 3\n").unwrap();
    let diff = ["diff", "--from", "folded", &input, &other.display().to_string()].map(str::to_owned);
    for arguments in [
        vec![
            "report".to_owned(),
            "--from".to_owned(),
            "folded".to_owned(),
            input.clone(),
            "--title".to_owned(),
            names[0].to_owned(),
        ],
        diff.to_vec(),
    ] {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let folder = Scratch::new();
        let Some(mut browser) = Browser::open(&page(&folder, &arguments)) else { return };
        browser.ask("for (const row of document.querySelectorAll('#top-rows button')) row.click(); borehole.setMode('inverted')");
        assert_eq!(
            browser.ask("[typeof window.pwned, document.scripts.length, document.images.length]"),
            json!(["undefined", 2, 0])
        );
        assert_eq!(browser.ask("performance.getEntriesByType('resource').length"), 0);
        let shown = browser
            .ask("[...document.querySelectorAll('#top-rows button')].map(button => button.textContent)");
        let shown: Vec<_> = shown.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        for name in [names[0], names[1], "x\\u{202e}gnp.exe", "__proto__", "constructor", "a\u{fffd}[2Jb"] {
            assert!(shown.contains(&name), "{name}: {shown:?}");
        }
        // Even a script of ours could not make markup of a name.
        let refused = "try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.pwned=9>') } catch (error) { error.name }";
        assert_eq!(browser.ask(refused), "TypeError");
    }
}

#[test]
fn pages_without_samples_or_times_say_so() {
    let folder = Scratch::new();
    let input = folder.path("one.folded");
    fs::write(&input, "main 1\n").unwrap();
    let html = fs::read_to_string(page(&folder, &["report", &input.display().to_string()])).unwrap();
    assert!(html.contains(
        "This profile has no timestamps, so there is no timeline or heat map. Record with --timestamps delta."
    ));
    assert!(html.contains("<td>main</td>"), "the table is readable without scripts");
    let empty = corpus("rbt/header_only.rbt").display().to_string();
    let other = Scratch::new();
    if let Some(mut browser) = Browser::open(&page(&other, &["report", &empty])) {
        assert_eq!(browser.text("#boxes"), "No samples match the selection.");
    }
}

#[test]
fn the_table_has_the_largest_totals() {
    let folder = Scratch::new();
    let input = folder.path("many.folded");
    let leaves: String = (0..1500).map(|leaf| format!("main;mid;leaf{leaf:04} {}\n", 2000 - leaf)).collect();
    fs::write(&input, leaves).unwrap();
    let html = page(&folder, &["report", &input.display().to_string()]);
    let note = "The table has 1,002 of 1,502 functions: the largest ones by each of its columns.";
    assert!(fs::read_to_string(&html).unwrap().contains(note));
    let Some(mut browser) = Browser::open(&html) else { return };
    browser.click("document.querySelector('th button[data-sort=\"2\"]')");
    let names = browser.ask(&format!("{ROWS}.slice(0, 3).map(row => row[4]).sort()"));
    assert_eq!(names, json!(["leaf0000", "main", "mid"]));
    browser.ask("borehole.flame.query = 'leaf1499'; borehole.drawTable()");
    assert_eq!(browser.text("#top-count"), "0 of 0 functions shown, of the 1,002 in the table");
}

#[test]
fn a_flame_graph_is_laid_out_once() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &app()])) else { return };
    // Reading a width forces the layout of all changes.
    let asked = browser.ask(
        "(() => { let asked = 0; const width = Object.getOwnPropertyDescriptor(Element.prototype, 'clientWidth').get; \
         Object.defineProperty(Element.prototype, 'clientWidth', { get() { asked += 1; return width.call(this); } }); \
         borehole.flame.draw(); return [asked, borehole.flame.boxes.length > 500] })()",
    );
    assert_eq!(asked, json!([1, true]));
}
