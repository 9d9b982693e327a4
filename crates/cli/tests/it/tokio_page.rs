//! The page of a Tokio trace, as a browser shows it.

use std::fs;
use std::path::{Path, PathBuf};

use borehole_testkit::Scratch;
use serde_json::json;

use crate::browser::Browser;
use crate::program::{corpus, run, wait_for};

const BLOCKED: &str = "trc/in/real_057_blocked.bin.gz";
const STUCK: &str = "trc/tokio/stuck_worker.bin";

/// The program that the page shows first.
const PROGRAM: &str = "JSON.parse(document.getElementById('data').textContent).programs[0]";

const CANVAS: &str = "document.querySelector('#timeline canvas')";

/// The range in view, and the selection.
const SHOWN: &str =
    "[document.querySelector('#range').textContent, document.querySelector('#details').innerText]";

fn page_of(folder: &Scratch, inputs: &[&str]) -> PathBuf {
    let path = folder.path("trace.html");
    let output = path.display().to_string();
    run(&[&["report"], inputs, &["-o", &output]].concat()).done();
    path
}

fn open(name: &str, fragment: &str) -> Option<(Browser, Scratch)> {
    let folder = Scratch::new();
    let path = page_of(&folder, &[&corpus(name)]);
    Some((open_at(&path, fragment)?, folder))
}

/// Opens a page and waits until it is drawn.
fn open_at(path: &Path, fragment: &str) -> Option<Browser> {
    let mut browser = Browser::open_at(path, fragment)?;
    settle(&mut browser);
    Some(browser)
}

/// Waits until everything that is known is drawn.
fn settle(browser: &mut Browser) {
    browser.ask(
        "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))",
    );
}

/// Waits until something is true in the page, and drawn.
#[track_caller]
fn until(browser: &mut Browser, condition: &str) {
    wait_for(|| (browser.ask(condition) == true).then_some(()));
    settle(browser);
}

/// The start and the end of the range in view.
fn range(browser: &mut Browser) -> (f64, f64) {
    let found = browser
        .ask("(shown => [Number(shown.from), Number(shown.to)])(document.querySelector('#range').dataset)");
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

/// The place of a time in the canvas, as a part of its width; `from` to `to` is in view.
fn part_of(browser: &mut Browser, ns: f64, (from, to): (f64, f64)) -> f64 {
    let width = browser.ask(&format!("{CANVAS}.clientWidth")).as_f64().unwrap();
    let gutter = if width < 600.0 { 64.0 } else { 110.0 };
    (gutter + (ns - from) / (to - from) * (width - gutter)) / width
}

#[test]
fn a_red_flag_leads_to_its_moment_and_back() {
    let Some((mut browser, _folder)) = open(BLOCKED, "") else { return };
    let flags = browser.ask(&format!("{PROGRAM}.flags"));
    let shown = browser.ask("[...document.querySelectorAll('.flags li')].map(flag => flag.textContent)");
    assert_eq!(shown.as_array().unwrap().len(), flags.as_array().unwrap().len());
    let evidence = flags[0]["evidence"].as_str().unwrap();
    assert!(shown[0].as_str().unwrap().contains(evidence), "{shown}");

    browser.click("document.querySelector('.flags a')");
    until(&mut browser, "!!document.querySelector('#details .evidence')");
    let (from, to) = range(&mut browser);
    let time = flags[0]["time_ns"].as_f64().unwrap();
    let whole = browser.ask(&format!("{PROGRAM}.end_ns")).as_f64().unwrap();
    assert!(from < time && time < to && to - from < whole / 4.0, "{from} {time} {to} of {whole}");
    let details = browser.text("#details");
    assert!(details.contains(evidence) && details.contains("Spawned at"), "{details}");

    browser.ask("document.activeElement.blur()");
    browser.key("n");
    until(&mut browser, "location.hash.endsWith('flag=2')");
    assert!(browser.text("#details").contains(flags[1]["evidence"].as_str().unwrap()));
    browser.ask("history.back()");
    until(&mut browser, "location.hash.endsWith('flag=1')");
    assert_eq!(browser.text("#details"), details);
}

#[test]
fn a_click_on_a_poll_shows_its_task_its_stacks_and_who_woke_it() {
    let Some((mut browser, _folder)) = open(BLOCKED, "") else { return };
    // The longest poll with samples whose waker was a task.
    let poll = browser.ask(&format!(
        "(({{ polls, samples, lanes, stacks, texts, places }}) => {{
            const sampled = new Set(samples.poll.filter((_, row) => samples.stack[row] >= 0));
            const found = polls.task.map((_, poll) => poll).filter(poll => polls.woken_ns[poll] >= 0 && sampled.has(poll));
            const poll = found.sort((one, other) => polls.duration_ns[other] - polls.duration_ns[one])[0];
            const stack = stacks[samples.stack[samples.poll.findIndex((of, row) => of === poll && samples.stack[row] >= 0)]];
            return {{ start: polls.start_ns[poll], length: polls.duration_ns[poll], task: polls.task[poll], lane: polls.lane[poll],
                      waker: polls.waker[poll], place: places[polls.place[poll]], leaf: texts[stack.functions[0]] }};
        }})({PROGRAM})"
    ));
    let number = |key: &str| poll[key].as_f64().unwrap();
    let (start, length) = (number("start"), number("length"));
    let view = ((start - 4.0 * length).floor().max(0.0), (start + 5.0 * length).ceil());
    browser.ask(&format!(
        "new Promise(done => {{ addEventListener('hashchange', done, {{ once: true }}); location.hash = 't={}-{}' }})",
        view.0, view.1
    ));
    settle(&mut browser);
    let x = part_of(&mut browser, start + length / 2.0, view);
    let y = browser
        .ask(&format!("(36 + 35 * {} + 15) / {CANVAS}.clientHeight", number("lane")))
        .as_f64()
        .unwrap();
    browser.click_at(CANVAS, x, y);
    settle(&mut browser);
    let details = browser.text("#details");
    let woken = match number("waker") {
        waker if waker > 0.0 => format!("by task {waker}"),
        _ => "from outside any task".to_owned(),
    };
    for text in [
        &*format!("task {}", poll["task"]),
        poll["place"].as_str().unwrap(),
        &woken,
        poll["leaf"].as_str().unwrap(),
    ] {
        assert!(details.contains(text), "{text}: {details}");
    }
    // The task leads to its other polls.
    browser.click("document.querySelector('#details button.link')");
    settle(&mut browser);
    assert!(
        browser.text("#details").contains("Its longest polls in this page"),
        "{}",
        browser.text("#details")
    );
}

#[test]
fn drag_wheel_and_keys_zoom_and_move() {
    let Some((mut browser, _folder)) = open(BLOCKED, "") else { return };
    let end = browser.ask(&format!("{PROGRAM}.end_ns")).as_f64().unwrap();
    let all = browser.text("#range");
    assert_eq!(range(&mut browser), (0.0, end));

    let [left, right] = [0.25, 0.75].map(|part| part_of(&mut browser, end * part, (0.0, end)));
    browser.drag(CANVAS, left, right);
    settle(&mut browser);
    let (from, to) = range(&mut browser);
    assert!((from / end - 0.25).abs() < 0.02 && (to / end - 0.75).abs() < 0.02, "{from} {to} of {end}");

    // The wheel keeps the time below the pointer where it is.
    let quarter = from + (to - from) / 4.0;
    let x = part_of(&mut browser, quarter, (from, to));
    let before = browser.text("#range");
    browser.wheel(CANVAS, x, -200.0);
    until(&mut browser, &format!("document.querySelector('#range').textContent !== {}", json!(before)));
    let near = range(&mut browser);
    assert!(near.1 - near.0 < (to - from) * 0.7, "{near:?}");
    let part = (quarter - near.0) / (near.1 - near.0);
    assert!((part - 0.25).abs() < 0.02, "{part}");

    browser.key("-");
    browser.key("ArrowRight");
    settle(&mut browser);
    let moved = range(&mut browser);
    // Twice as long and a quarter of that later, it begins where it did.
    assert!(moved.0 + moved.1 > near.0 + near.1 && moved.1 - moved.0 > (near.1 - near.0) * 1.5, "{moved:?}");
    // The address holds the range once it stays.
    until(&mut browser, &format!("location.hash === '#t={}-{}'", moved.0.round(), moved.1.round()));
    browser.key("0");
    settle(&mut browser);
    assert_eq!(browser.text("#range"), all);

    browser.key("?");
    settle(&mut browser);
    assert_eq!(browser.ask("document.querySelector('#help').open"), true);
    browser.key("Escape");
    until(&mut browser, "!document.querySelector('#help')");
}

#[test]
fn a_link_leads_to_the_moment() {
    let folder = Scratch::new();
    let path = page_of(&folder, &[&corpus(BLOCKED)]);
    let Some(mut browser) = open_at(&path, "") else { return };
    browser.ask("document.querySelector('#timeline').focus()");
    browser.key("Enter");
    settle(&mut browser);
    let (shown, fragment) = (browser.ask(SHOWN), browser.ask("location.hash"));
    assert!(shown[1].as_str().unwrap().contains("Poll of "), "{shown}");
    let mut other = open_at(&path, fragment.as_str().unwrap()).unwrap();
    assert_eq!(other.ask(SHOWN), shown);
    // A poll that is not there is said to be missing; nonsense shows the whole trace.
    let mut missing = open_at(&path, "#poll=0@7").unwrap();
    assert!(missing.text("#details").contains("not in the page"));
    let mut nonsense = open_at(&path, "#t=9-1&program=99&flag=x").unwrap();
    assert!(nonsense.text("#details").contains("Click a poll"));
}

#[test]
fn a_search_dims_polls_and_filters_rows() {
    let Some((mut browser, _folder)) = open(BLOCKED, "") else { return };
    let rows = "document.querySelectorAll('#tables tbody tr').length";
    let before = browser.ask(rows).as_u64().unwrap();
    let task = browser.ask(&format!("{PROGRAM}.tasks[0].task"));
    let drawn = format!("{CANVAS}.toDataURL()");
    let whole = browser.ask(&drawn);
    browser.key("/");
    for key in format!("task {task}").chars() {
        browser.key(&key.to_string());
    }
    settle(&mut browser);
    assert!(before > 1);
    assert_eq!(browser.ask(rows), 1);
    assert_eq!(browser.ask("document.querySelectorAll('.flags li').length < 8"), true);
    assert_ne!(browser.ask(&drawn), whole);
}

#[test]
fn a_stuck_worker_is_red_to_the_end() {
    let Some((mut browser, _folder)) = open(STUCK, "#flag=1") else { return };
    let details = browser.text("#details");
    assert!(details.contains("stuck-poll (critical)") && details.contains("still running"), "{details}");
    assert!(details.contains("src/stuck.rs:9:9"), "{details}");
    // The middle of its lane near the right edge has the colour of critical polls.
    let pixel = browser.ask(&format!(
        "(({{ polls }}, canvas) => {{
            const scale = canvas.width / canvas.clientWidth, poll = polls.open[0];
            const y = (36 + 35 * polls.lane[poll] + 15) * scale, x = canvas.width - 30 * scale;
            const wanted = document.createElement('canvas').getContext('2d');
            wanted.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--poll-critical');
            wanted.fillRect(0, 0, 1, 1);
            const colour = (paint, x, y) => [...paint.getImageData(x, y, 1, 1).data];
            return [colour(canvas.getContext('2d'), x, y), colour(wanted, 0, 0)];
        }})({PROGRAM}, {CANVAS})"
    ));
    assert_eq!(pixel[0], pixel[1]);
    browser.click("document.querySelector('#theme')");
    settle(&mut browser);
    assert_eq!(browser.ask("document.documentElement.dataset.theme"), "dark");
}

#[test]
fn two_hosts_are_two_programs_of_one_page() {
    let folder = Scratch::new();
    let path = page_of(&folder, &[&corpus("trc/tokio/host0.bin"), &corpus("trc/tokio/host1.bin")]);
    let Some(mut browser) = open_at(&path, "") else { return };
    let names =
        browser.ask("[...document.querySelectorAll('#program option')].map(option => option.textContent)");
    assert_eq!(names.as_array().unwrap().len(), 2, "{names}");
    browser.ask("(select => { select.value = '1'; select.dispatchEvent(new Event('change', { bubbles: true })) })(document.querySelector('#program'))");
    settle(&mut browser);
    assert_eq!(browser.ask("location.hash"), "#program=2");
}

#[test]
fn names_of_a_trace_are_shown_and_not_run() {
    let folder = Scratch::new();
    let image = "<img src=x onerror=window.pwned=1>";
    let script = "</script><script>window.pwned=2</script>";
    let place = format!("{image}\u{202e}gnp.exe");
    let lines = String::from_utf8(run(&["dump", &corpus("trc/tokio/span_start.bin")]).done()).unwrap();
    let names = [
        ("src/a.rs:1:1", &*place),
        ("work:Request", script),
        ("operation", "__proto__"),
        ("GetItem", "\"><svg onload=window.pwned=3>"),
    ];
    let renamed = names.iter().fold(lines, |lines, (old, new)| {
        let old = json!(old).to_string();
        assert!(lines.contains(&old), "{old}");
        lines.replace(&old, &json!(new).to_string())
    });
    let input = folder.path("hostile.jsonl");
    fs::write(&input, renamed).unwrap();
    let path = page_of(&folder, &[&input.display().to_string(), "--title", image]);
    let Some(mut browser) = open_at(&path, "#flag=1") else { return };
    let mut text = String::new();
    let tabs = browser.ask("document.querySelectorAll('[data-tab]').length").as_u64().unwrap();
    for tab in 0..tabs {
        browser.ask(&format!("document.querySelectorAll('[data-tab]')[{tab}].click()"));
        settle(&mut browser);
        text += &browser.text("main");
    }
    assert_eq!(
        browser.ask("[typeof window.pwned, document.scripts.length, document.images.length, performance.getEntriesByType('resource').length]"),
        json!(["undefined", 2, 0, 0])
    );
    for name in [image, script, "\\u{202e}gnp.exe"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(!text.contains('\u{202e}'));
    let refused =
        "try { document.body.innerHTML = '<img src=x onerror=window.pwned=9>' } catch (error) { error.name }";
    assert_eq!(browser.ask(refused), "TypeError");
}

#[test]
fn a_narrow_screen_shows_all_of_it() {
    let Some((mut browser, _folder)) = open(BLOCKED, "") else { return };
    browser.resize(400, 900);
    settle(&mut browser);
    let widths =
        browser.ask("(page => [innerWidth, page.scrollWidth - page.clientWidth])(document.documentElement)");
    assert_eq!(widths, json!([400, 0]), "nothing is wider than the screen");
    let width = browser.ask(&format!("{CANVAS}.clientWidth")).as_u64().unwrap();
    assert!((300..=400).contains(&width), "{width}");
}

#[test]
fn options_that_choose_samples_write_the_flame_graph_of_a_trace() {
    let folder = Scratch::new();
    let path = page_of(&folder, &[&corpus(BLOCKED), "--kind", "all"]);
    let html = fs::read_to_string(path).unwrap();
    assert!(html.contains(r#""kind":"report""#) && !html.contains(r#""kind":"tokio""#));
}
