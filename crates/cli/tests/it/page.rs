//! HTML pages, as a browser shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use borehole_testkit::{Scratch, corpus};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program::{run, wait_for};

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

/// A JavaScript expression for the box of a function: its name, its text and its place in the picture.
fn box_of(name: &str) -> String {
    format!("borehole.flame.boxes().find(box => box.name === {})", json!(name))
}

/// The share of the picture's width that a function's box has, in percent.
fn width_of(browser: &mut Browser, name: &str) -> u64 {
    let width = format!("Math.round({}.place[2] / {CANVAS}.clientWidth * 100)", box_of(name));
    browser.ask(&width).as_u64().unwrap()
}

/// Clicks a function's box.
fn click_box(browser: &mut Browser, name: &str) {
    let place = browser.ask(&format!(
        "(([x, y, width, height]) => [(x + width / 2) / {CANVAS}.clientWidth, (y + height / 2) / {CANVAS}.clientHeight])({}.place)",
        box_of(name)
    ));
    let [x, y] = [0, 1].map(|at| place[at].as_f64().unwrap());
    browser.click_at(CANVAS, x, y);
}

const CANVAS: &str = "document.querySelector('#boxes')";

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
    let root = browser.ask("borehole.flame.boxes()[0].text");
    assert_eq!(root, "_run_module_as_main in <frozen runpy>: 6,053 samples, 100.0%; self 0");
    // The flame graph holds every sample in both directions.
    for mode in ["calls", "inverted"] {
        browser.ask(&format!("borehole.setMode('{mode}')"));
        assert_eq!(browser.ask("borehole.flame.tree.first[0]"), 6053);
    }
}

#[test]
fn clicks_zoom_keys_walk_and_search_finds() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &app()])) else { return };
    assert!(width_of(&mut browser, "parse") < 30);
    click_box(&mut browser, "parse");
    assert_eq!(width_of(&mut browser, "parse"), 100);
    assert!(browser.text("#status").starts_with("parse in "), "{}", browser.text("#status"));
    browser.click("document.querySelector('#zoom-out')");
    assert!(width_of(&mut browser, "parse") < 30);

    browser.ask("document.querySelector('#flame').focus()");
    for key in ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"] {
        browser.key(key);
    }
    assert!(browser.text("#status").starts_with("parse in "), "{}", browser.text("#status"));
    // Screen readers are told of the call, of those beside it, and of its callers and callees.
    let told = browser.ask("document.getElementById(document.querySelector('#flame').getAttribute('aria-activedescendant'))?.textContent");
    assert_eq!(told, browser.text("#status"));
    assert!(browser.ask("document.querySelectorAll('#near [role=treeitem]').length").as_u64().unwrap() > 10);
    browser.key("Enter");
    assert_eq!(browser.ask("borehole.model.fnName(borehole.flame.tree.fn[borehole.flame.zoomed])"), "parse");
    browser.key("Escape");
    browser.key("Escape");

    browser.ask("document.activeElement.blur()");
    browser.key("/");
    for key in ["p", "a", "r", "s", "e"] {
        browser.key(key);
    }
    let names = browser.ask(ROWS);
    let found = |row: &Value| row[4].as_str().unwrap().to_lowercase().contains("parse");
    assert!(names.as_array().unwrap().iter().all(found), "{names}");
    assert_eq!(names[0][4], "parse /usr/lib/python3.15/ast.py");
    let matches = browser.text("#matches");
    assert!(matches.contains(" calls of ") && matches.ends_with("% matched"), "{matches}");
    browser.key("Enter");
    assert!(browser.text("#status").to_lowercase().contains("parse"), "{}", browser.text("#status"));

    browser
        .ask("document.querySelector('#search').value = ''; borehole.flame.query = ''; borehole.refresh()");
    browser.click("document.querySelector('#top-rows button')");
    assert_eq!(
        browser.ask("[borehole.flame.mode, borehole.model.fnName(borehole.flame.focus), borehole.flame.tree.first[borehole.flame.tree.find(0, borehole.flame.focus)]]"),
        json!(["sandwich", "parse", 1245])
    );
    // Callers are above, the function itself is below them.
    assert!(
        browser.ask("borehole.flame.boxes().filter(box => box.spot.part === 1).length").as_u64().unwrap() > 0
    );
    assert_eq!(browser.ask(&format!("{}.place[1] > 0", box_of("parse"))), true);
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
    assert_eq!(browser.ask("borehole.flame.tree.first[0]"), some);
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
fn a_page_has_the_order_of_time_if_times_are_known() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &threads()])) else { return };
    browser.key("t");
    let lanes = "document.querySelectorAll('#chart ~ div tr').length";
    wait_for(|| (browser.ask(lanes) == 21).then_some(()));
    browser.drag("document.querySelector('#chart-canvas')", 0.4, 0.6);
    let some = browser.ask("borehole.all").as_u64().unwrap();
    assert!(some > 0 && some < 17_138 / 2, "{some}");
    browser.key("?");
    assert!(browser.text("#help").contains("in the order of time"));
    let without = folder.path("one.folded");
    fs::write(&without, "main 1\n").unwrap();
    let mut browser =
        Browser::open(&page(&folder, &["report", "--force", without.to_str().unwrap()])).unwrap();
    browser.key("t");
    assert_eq!(browser.ask("document.querySelector('#chart-open')"), Value::Null);
}

#[test]
fn a_link_restores_what_is_selected_and_back_undoes_a_step() {
    const SHOWN: &str = "[JSON.stringify(borehole.flame.boxes()), borehole.all, borehole.flame.mode, \
         document.querySelector('#range').textContent, document.querySelector('#dimensions select').value, \
         document.querySelector('#search').value, document.querySelector('#top-rows').textContent]";
    let folder = Scratch::new();
    let html = page(&folder, &["report", &threads()]);
    let Some(mut browser) = Browser::open(&html) else { return };
    let whole = browser.ask(SHOWN);
    browser.drag("document.querySelector('#timeline')", 0.2, 0.8);
    browser.ask("(select => { select.value = '0'; select.dispatchEvent(new Event('change')) })(document.querySelector('#dimensions select'))");
    browser.click("document.querySelector('th button[data-sort=\"2\"]')");
    browser.click("document.querySelector('#top-rows button')");
    browser.ask("(field => { field.value = 'e'; field.dispatchEvent(new Event('input')) })(document.querySelector('#search'))");
    let (shown, view) = (browser.ask(SHOWN), browser.ask("borehole.flame.mode"));
    assert_eq!(view, "sandwich");
    assert_ne!(shown, whole);
    wait_for(|| (browser.ask("location.hash.includes('search=e')") == true).then_some(()));
    let fragment = browser.ask("location.hash");
    let mut other = Browser::open_at(&html, fragment.as_str().unwrap()).unwrap();
    assert_eq!(other.ask(SHOWN), shown);

    browser.ask("history.back()");
    wait_for(|| (browser.ask("borehole.flame.mode") == "calls").then_some(()));
    assert_eq!(browser.ask("borehole.all"), shown[1], "the range and the thread stay");
    browser.ask("history.forward()");
    wait_for(|| (browser.ask("borehole.flame.mode") == "sandwich").then_some(()));

    let mut nonsense =
        Browser::open_at(&html, "#view=sandwich&function=none&zoom=7.7&t=9-1&by.x=y&sort=98").unwrap();
    assert_eq!(nonsense.ask(SHOWN), whole);
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
    // What is more is red, what is less is blue, and the rest is neither.
    let tint = |browser: &mut Browser, name: &str| {
        let [red, _, blue] = colour(browser, CANVAS, name);
        red - blue
    };
    assert!(tint(&mut browser, "slow") > 100 && tint(&mut browser, "gone") < -100);
    assert!(tint(&mut browser, "main").abs() < 10);

    // Side by side, each side has its own widths.
    browser.key("s");
    let width = |browser: &mut Browser, side: u64, name: &str| {
        browser.ask(&format!(
            "(pane => Math.round((pane.placeOf({}.spot)?.[2] ?? 0) / pane.width * 1000))(borehole.flame.panes[{side}])",
            box_of(name)
        ))
    };
    assert_eq!([0, 1].map(|side| width(&mut browser, side, "slow")), [json!(250), json!(625)]);
    assert_eq!([0, 1].map(|side| width(&mut browser, side, "fast")), [json!(250), json!(125)]);
    assert_eq!(width(&mut browser, 1, "gone"), 0);
    assert_eq!(browser.ask("document.querySelector('#boxes-after').hidden"), false);
    browser.key("s");
    browser.ask("borehole.setMode('inverted')");
    assert_eq!(browser.ask("Math.round(borehole.flame.tree.first[0] * 1000)"), 1000);
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
        assert_eq!(browser.ask("document.querySelector('#nothing').hidden"), false);
        assert_eq!(browser.text("#nothing"), "No samples match the selection.");
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
    browser.ask("borehole.flame.find('leaf1499'); borehole.drawTable()");
    assert_eq!(browser.text("#top-count"), "0 of 0 functions shown, of the 1,002 in the table");
}

#[test]
fn a_picture_has_the_pixels_of_the_screen_and_follows_the_theme_and_the_scroll() {
    let folder = Scratch::new();
    let Some(mut browser) = Browser::open(&page(&folder, &["report", &app()])) else { return };
    browser.resize(1000, 500);
    let fits = format!(
        "{CANVAS}.width === Math.round({CANVAS}.clientWidth * devicePixelRatio) && {CANVAS}.clientWidth < 1000 && {CANVAS}.clientHeight <= innerHeight"
    );
    wait_for(|| (browser.ask(&fits) == true).then_some(()));
    assert!(browser.ask("borehole.flame.boxes().length").as_u64().unwrap() > 300);
    let light = colour(&mut browser, CANVAS, "<module>");
    browser.click("document.querySelector('#theme')");
    let dark = colour(&mut browser, CANVAS, "<module>");
    assert!(light.iter().sum::<i64>() > dark.iter().sum::<i64>() + 100, "{light:?} {dark:?}");
    // The rows move, the picture stays: it is never larger than its frame.
    browser.ask("document.querySelector('#flame').scrollTop = 100; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_eq!(browser.ask("borehole.flame.boxes()[0].place[1]"), -100);
    let moved = colour(&mut browser, CANVAS, "parse");
    browser.ask("document.querySelector('#flame').scrollTop = 0; new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    assert_ne!(moved, colour(&mut browser, CANVAS, "parse"), "the row was out of view");
    // With the roots at the bottom, callees are above.
    browser.key("u");
    let below = "(([root, next]) => root.place[1] > next.place[1])(borehole.flame.boxes())";
    assert_eq!(browser.ask(below), true);
    assert_eq!(browser.ask("location.hash.includes('roots=below')"), true);
}

/// The colour at the right end of a function's box: red, green and blue.
fn colour(browser: &mut Browser, canvas: &str, name: &str) -> [i64; 3] {
    let pixel = browser.ask(&format!(
        "(([x, y, width]) => [...{canvas}.getContext('2d').getImageData((x + width - 4) * devicePixelRatio, (y + 4) * devicePixelRatio, 1, 1).data])({}.place)",
        box_of(name)
    ));
    [0, 1, 2].map(|part| pixel[part].as_i64().unwrap())
}
