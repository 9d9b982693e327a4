//! The views of the explorer that are answers of the server: tables, comparisons of heaps, recordings, uploads, lakes.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program::{corpus, run, wait_for};
#[cfg(feature = "lake")]
use crate::serve::pictured;
use crate::serve::{Serving, until};

/// A server of these arguments, and its page in a browser. `None` if the browser is skipped.
fn explored(arguments: &[&str]) -> Option<(Serving, Browser)> {
    let (serving, address) = Serving::start(arguments);
    Some((serving, Browser::visit(&address)?))
}

/// The id of the input of a name.
fn id(browser: &mut Browser, name: &str) -> String {
    let found = browser.ask(&format!(
        "fetch('/api/v1/inputs').then(answer => answer.json()).then(({{ inputs }}) => inputs.find(input => input.name === {}).id)",
        json!(name)
    ));
    found.as_str().unwrap().to_owned()
}

/// The button of a view, by its name.
fn view(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('#views button')].find(button => button.textContent === {})",
        json!(name)
    )
}

/// Goes to a place, and waits until an expression holds there.
fn go(browser: &mut Browser, place: &str, shows: &str) {
    browser.ask(&format!("location.hash = {}", json!(place)));
    until(browser, &format!("!!({shows})"), &json!(true));
}

/// The rows of a table.
const ROWS: &str = "document.querySelectorAll('main tbody tr').length";

/// Nothing sticks out of the page, however narrow it is.
fn fits(browser: &mut Browser) {
    for width in [1280, 400] {
        browser.resize(width, 900);
        let wide = browser
            .ask("new Promise(done => setTimeout(() => done(document.documentElement.scrollWidth), 100))");
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
    }
    browser.resize(1280, 900);
}

#[test]
fn every_view_shows_each_native_format() {
    let folder = borehole_testkit::Scratch::new();
    let files = ["rbt/daemon_worker.rbt", "tachyon/corpus/26_realapp_zstd.bin", "trc/tokio/stuck_worker.bin"];
    for file in files {
        fs::copy(corpus(file), folder.path(&file.replace('/', "-"))).unwrap();
    }
    let dump = corpus("php/heap/8.1.2.rdump");
    for name in ["heap.rmem", "heap.db"] {
        run(&["heap", "analyze", &dump, "-o", folder.path(name).to_str().unwrap()]).done();
    }
    let Some((_serving, mut browser)) = explored(&[folder.folder().to_str().unwrap()]) else { return };
    browser.ask("globalThis.faults = []; for (const kind of ['error', 'unhandledrejection']) addEventListener(kind, event => faults.push(String(event.message ?? event.reason)))");
    let inputs = browser.ask("fetch('/api/v1/inputs').then(answer => answer.json()).then(({ inputs }) => inputs.map(input => input.id))");
    let is_shown =
        "!!document.querySelector('main') && !/Reading …/.test(document.querySelector('.view').textContent)";
    let mut shown = 0;
    for input in inputs.as_array().unwrap() {
        go(
            &mut browser,
            &format!("input={}", input.as_str().unwrap()),
            &format!("{is_shown} && document.querySelector('#views')"),
        );
        let views =
            browser.ask("[...document.querySelectorAll('#views button')].map(button => button.textContent)");
        for name in views.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
            browser.click(&view(name));
            until(
                &mut browser,
                &format!("{}?.ariaPressed === 'true' && {is_shown}", view(name)),
                &json!(true),
            );
            // What needs a word is asked about the first one that is offered.
            if browser.ask("!!document.querySelector('.words button')") == true {
                browser.click("document.querySelector('.words button')");
                until(
                    &mut browser,
                    &format!("!!document.querySelector('main :is(table, [role=alert])') && {is_shown}"),
                    &json!(true),
                );
            }
            let fault = browser.ask("document.querySelector('main [role=alert]')?.textContent");
            assert_eq!(fault, Value::Null, "{input} {name}");
            shown += 1;
        }
    }
    assert_eq!(browser.ask("faults"), json!([]));
    // Nine views of each profile, one more of a trace, six of each heap.
    assert_eq!(shown, 9 + 9 + 10 + 6 + 6);
}

#[test]
fn heaps_are_compared_in_a_table_that_leads_to_what_they_hold() {
    let heaps = ["8.1.2.rdump", "8.3.6.rdump"].map(|name| corpus(&format!("php/heap/{name}")));
    let Some((_serving, mut browser)) = explored(&[&heaps[0], &heaps[1]]) else { return };
    let [before, after] = ["8.1.2.rdump", "8.3.6.rdump"].map(|name| id(&mut browser, name));
    let place = format!("before={before}&after={after}");
    go(&mut browser, &place, "document.querySelector('#changes tbody tr')");
    let sides = ["before=8.1.2.rdump", "after=8.3.6.rdump", "limit=200", "--json"];
    let asked = [&["query", &*heaps[0], &*heaps[1], "changes"], &sides[..]].concat();
    let asked: Value = serde_json::from_slice(&run(&asked).done()).unwrap();
    assert_eq!(browser.ask(ROWS), asked["rows"].as_array().unwrap().len());
    fits(&mut browser);
    // A node is one of the heap after.
    let node = "document.querySelector('#changes .handle')";
    let handle = browser.ask(&format!("{node}.textContent"));
    browser.click(node);
    until(&mut browser, "document.querySelector('#panel-title')?.textContent", &json!("Node"));
    let address = browser.ask("location.hash");
    let number = handle.as_str().unwrap().trim_start_matches('n').to_owned();
    assert_eq!(address, format!("#input={after}&panel=heap_ask%3Anode%3A{number}"));
    browser.ask("history.back()");
    until(&mut browser, "!!document.querySelector('#changes tbody tr')", &json!(true));
}

#[test]
fn keys_reach_views_that_keep_what_is_selected() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python");
    let profile = root.join("before.bin");
    let arguments = [profile.to_str().unwrap(), "--source", root.to_str().unwrap()];
    let Some((_serving, mut browser)) = explored(&arguments) else { return };
    let input = id(&mut browser, "before.bin");
    go(&mut browser, &format!("input={input}"), "globalThis.borehole");
    let all = browser.ask("borehole.all").as_u64().unwrap();
    // Half of the time, selected in the picture.
    browser.drag("document.querySelector('#timeline')", 0.5, 0.999);
    // The address may not hold it yet, and it is kept all the same.
    let half = browser.ask("borehole.all").as_u64().unwrap();
    assert!(half < all, "{half} of {all}");
    for title in ["Findings", "Live top"] {
        browser.key("v");
        until(&mut browser, "document.querySelector('#panel-title')?.textContent", &json!(title));
    }
    until(&mut browser, "/Functions, of/.test(document.querySelector('#panel').textContent)", &json!(true));
    let said = browser.text("#panel");
    assert!(said.contains("Of the samples that are selected in the picture."), "{said}");
    browser.key("V");
    until(&mut browser, "document.querySelector('#panel-title')?.textContent", &json!("Findings"));
    browser.key("V");
    until(&mut browser, "!!document.querySelector('#timeline')", &json!(true));
    until(&mut browser, "borehole.all", &json!(half));

    // A file with its lines: those with samples, and those around them.
    browser.click(&view("Source"));
    let file =
        "[...document.querySelectorAll('.words button')].find(button => button.title.endsWith('basket.py'))";
    until(&mut browser, &format!("!!({file})"), &json!(true));
    browser.click(file);
    until(&mut browser, "!!document.querySelector('.source td.heated')", &json!(true));
    let lines = browser.ask("[...document.querySelectorAll('.source tr')].slice(1).map(row => [row.cells[0].textContent, row.cells[4].textContent])");
    let text = fs::read_to_string(root.join("basket.py")).unwrap();
    for line in lines.as_array().unwrap() {
        let number: usize = line[0].as_str().unwrap().parse().unwrap();
        assert_eq!(
            line[1].as_str().unwrap().trim_end(),
            text.lines().nth(number - 1).unwrap().trim_end(),
            "{number}"
        );
    }
    // The line that costs most is the strongest, and others have no colour.
    let heats = browser.ask("[...document.querySelectorAll('.source td.heated')].map(cell => cell.style.getPropertyValue('--part'))");
    let heats = heats.as_array().unwrap();
    assert!(heats.contains(&json!("70%")) && heats.contains(&json!("0%")), "{heats:?}");
    fits(&mut browser);
}

#[test]
fn groups_by_label_are_restored_by_their_link_and_lead_to_their_samples() {
    let threads = corpus("tachyon/corpus/05_threads20_none.bin");
    let Some((_serving, mut browser)) = explored(&[&threads]) else { return };
    let input = id(&mut browser, "05_threads20_none.bin");
    go(&mut browser, &format!("input={input}"), &view("By label"));
    browser.click(&view("By label"));
    until(&mut browser, "document.querySelectorAll('.words button').length", &json!(2));
    browser
        .click("[...document.querySelectorAll('.words button')].find(button => button.title === 'thread')");
    until(&mut browser, &format!("{ROWS} > 0"), &json!(true));
    let (link, rows) =
        (browser.ask("location.href"), browser.ask("document.querySelector('main tbody').textContent"));
    let mut other = Browser::visit(link.as_str().unwrap()).unwrap();
    until(&mut other, "document.querySelector('main tbody')?.textContent", &rows);
    // A value leads to the picture of its samples.
    browser.click("document.querySelector('main tbody .handle')");
    until(
        &mut browser,
        "/by\\.thread=/.test(location.hash) && !!document.querySelector('#timeline')",
        &json!(true),
    );
    browser.key("?");
    until(
        &mut browser,
        "document.querySelector('#help')?.textContent.includes('next and previous view')",
        &json!(true),
    );
}

#[test]
fn recordings_are_started_followed_and_stopped_on_the_page() {
    let Some(php) = borehole_testkit::peers::peer("php") else { return };
    let mut busy = php.command();
    busy.args(["-r", "function spin() { for ($i = 0; ; $i++) { md5((string) $i); } } spin();"]);
    let mut busy = busy.stdin(Stdio::null()).spawn().unwrap();
    let explored = explored(&["--allow-record", "-p", &busy.id().to_string()]);
    if let Some((_serving, mut browser)) = explored {
        until(&mut browser, "!!document.querySelector('#record')", &json!(true));
        browser.key("r");
        until(&mut browser, "!!document.querySelector('#start')", &json!(true));
        browser.ask("document.querySelector('#seconds').value = 600; document.querySelector('#seconds').dispatchEvent(new Event('input', { bubbles: true }))");
        browser.click("document.querySelector('#start')");
        // Its live table opens with the first samples, and grows.
        let total = "Number(/of ([\\d,]+) /.exec(document.querySelector('#panel')?.textContent ?? '')?.[1].replaceAll(',', '') ?? 0)";
        let first = wait_for(|| browser.ask(total).as_u64().filter(|&total| total > 0));
        wait_for(|| browser.ask(total).as_u64().filter(|&total| total > first));
        assert!(browser.text("#panel tbody").contains("spin"));
        // The last seconds alone are less than all of them.
        browser.click("[...document.querySelectorAll('#panel [role=group] button')].find(button => button.textContent === 'Last 5 s')");
        until(
            &mut browser,
            "document.querySelector('#panel [aria-pressed=true]')?.textContent",
            &json!("Last 5 s"),
        );
        browser.key("r");
        until(&mut browser, "!!document.querySelector('#recordings .stop')", &json!(true));
        fits(&mut browser);
        browser.click("document.querySelector('#recordings .stop')");
        until(
            &mut browser,
            "document.querySelector('#recordings tbody td:nth-child(3)')?.textContent",
            &json!("ended"),
        );
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn files_that_are_dropped_on_the_page_are_opened_or_refused_in_words() {
    let Some((_serving, mut browser)) = explored(&["--allow-upload"]) else { return };
    until(&mut browser, "!!document.querySelector('#upload')", &json!(true));
    let mut drop_file = |name: &str, bytes: &[u8]| {
        browser.ask(&format!(
            "(data => {{ data.items.add(new File([new Uint8Array({})], {})); \
             dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, cancelable: true }})) }})(new DataTransfer())",
            json!(bytes),
            json!(name)
        ));
    };
    drop_file("a.rbt", &fs::read(corpus("rbt/daemon_worker.rbt")).unwrap());
    drop_file("notes.txt", b"hello");
    until(&mut browser, "document.querySelector('.facts dd')?.textContent", &json!("30"));
    let fault = "document.querySelector('aside [role=alert]')?.textContent ?? ''";
    wait_for(|| browser.ask(fault).as_str().filter(|fault| fault.starts_with("notes.txt: ")).map(drop));
    let closed = explored(&[&corpus("rbt/daemon_worker.rbt")]);
    let (_closed, mut browser) = closed.unwrap();
    until(&mut browser, "document.querySelectorAll('#inputs .input').length", &json!(1));
    assert_eq!(browser.ask("document.querySelectorAll('#upload, #record').length"), 0);
}

#[cfg(feature = "lake")]
#[test]
fn a_lake_is_selected_from_drawn_followed_over_time_compared_and_asked() {
    let scratch = borehole_testkit::Scratch::new();
    let lake = scratch.path("lake").to_str().unwrap().to_owned();
    let files = ["rbt/daemon_worker.rbt", "rbt/native.rbt", "tachyon/corpus/26_realapp_zstd.bin"];
    for (day, file) in (1..).zip(files) {
        let words = [
            format!("--label=version=1.{day}"),
            format!("--host=web{day}"),
            format!("--at=2026-11-0{day}T12:00Z"),
        ];
        let [label, host, at] = &words;
        run(&["lake", "add", &lake, &corpus(file), "--service=shop", label, host, at]).done();
    }
    let Some((_serving, mut browser)) = explored(&[&lake]) else { return };
    until(&mut browser, "document.querySelectorAll('#inputs .lake').length", &json!(1));
    browser.key("l");
    until(&mut browser, "globalThis.borehole?.all", &json!(6087));
    let version = "document.querySelector('[data-word=label]')";
    until(&mut browser, &format!("{version}.options.length"), &json!(4));
    browser.ask(&format!(
        "{version}.value = 'version=1.3'; {version}.dispatchEvent(new Event('change', {{ bubbles: true }}))"
    ));
    until(&mut browser, "globalThis.borehole?.all", &json!(6053));
    fits(&mut browser);
    pictured(&mut browser, "lake", "h1");
    let link = browser.ask("location.href");
    let mut other = Browser::visit(link.as_str().unwrap()).unwrap();
    until(&mut other, "globalThis.borehole?.all", &json!(6053));

    // A function of the table has a trend.
    browser.key("v");
    let function =
        "[...document.querySelectorAll('#answer .handle')].find(cell => cell.textContent === 'parse')";
    until(&mut browser, &format!("!!({function})"), &json!(true));
    browser.click(function);
    until(&mut browser, "document.querySelector('.trend figcaption b')?.textContent", &json!("parse"));
    assert_eq!(browser.ask(ROWS), 1);

    // Two versions, drawn beside each other and judged.
    let place = |view: &str, words: &str| format!("lake={lake}&lake.view={view}&{words}");
    go(
        &mut browser,
        &place("diff", "lake.before=version%3D1.1&lake.after=version%3D1.3"),
        "document.querySelector('#split')",
    );
    assert_eq!(browser.ask("document.querySelector('.facts dd').textContent"), "30");
    go(
        &mut browser,
        &place("diff", "lake.before=host!%3Dweb1&lake.after=host%3Dweb1"),
        "document.querySelector('main [role=alert]')",
    );
    go(
        &mut browser,
        &place("query", "lake.sql=SELECT+count(*)+AS+n+FROM+sources"),
        "document.querySelector('#answer tbody td')",
    );
    assert_eq!(browser.text("#answer tbody td"), "3");
    fits(&mut browser);
}
