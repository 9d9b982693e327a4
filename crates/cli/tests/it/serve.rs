//! `borehole serve`, `borehole query` and `borehole mcp`, as their users run them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use borehole_testkit::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::program::{corpus, listing, program, run, wait_for};

/// A server that ends with the test.
pub(crate) struct Serving(Child);

impl Serving {
    /// A server of these arguments, and its address.
    pub(crate) fn start(arguments: &[&str]) -> (Self, String) {
        let mut child = program(&[&["serve"], arguments].concat()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        (Self(child), address.trim().to_owned())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_server_prints_its_address_answers_and_ends_when_asked() {
    let (mut serving, address) = Serving::start(&[&corpus("rbt/daemon_worker.rbt"), "--token"]);
    let (host, query) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    assert!(get(host, "/api/v1/inputs").starts_with("HTTP/1.1 403 "));
    let answered = get(host, &format!("/api/v1/inputs{query}"));
    assert!(answered.starts_with("HTTP/1.1 200 ") && answered.contains("daemon_worker.rbt"), "{answered}");
    kill(Pid::from_raw(i32::try_from(serving.0.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(serving.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_query_counts_as_a_report_does() {
    let file = corpus("rbt/daemon_worker.rbt");
    let report: Value =
        serde_json::from_slice(&run(&["report", &file, "--json", "--no-line", "--all"]).done()).unwrap();
    let table: Value =
        serde_json::from_slice(&run(&["query", &file, "top", "limit=1000", "--json"]).done()).unwrap();
    let of_report = report["self"]["rows"].as_array().unwrap().iter();
    let of_report: Vec<_> = of_report.map(|row| (row["function"].clone(), row["count"].clone())).collect();
    let of_table = table["rows"].as_array().unwrap().iter().filter(|row| row[1] != 0);
    let of_table: Vec<_> = of_table.map(|row| (row[5].clone(), row[1].clone())).collect();
    assert!(
        of_report.len() == of_table.len() && of_report.iter().all(|row| of_table.contains(row)),
        "{table}"
    );
    let text = String::from_utf8(run(&["query", &file, "top", "limit=3"]).quietly()).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with('f')).count(), 3, "{text}");
    let wrong = run(&["query", &file, "nothing"]).failed();
    assert!(wrong.contains("no view nothing") && wrong.contains("overview"), "{wrong}");
}

#[test]
fn an_assistant_speaks_over_pipes_in_the_oldest_and_a_newer_protocol() {
    for protocol in ["2024-11-05", "2025-06-18"] {
        let mut command = program(&["mcp", &corpus("rbt/daemon_worker.rbt")]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) =
            (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut ask = |message: Value| {
            writeln!(input, "{message}").unwrap();
            if message["id"].is_null() {
                return Value::Null;
            }
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap()
        };
        let params = json!({ "protocolVersion": protocol, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let begun = ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        assert_eq!(begun["result"]["protocolVersion"], protocol, "{begun}");
        ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        let params = json!({ "name": "top", "arguments": { "input": "daemon_worker.rbt" } });
        let top = ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
        let text = top["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("of 30 samples"), "{text}");
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

/// Sends a request without a body.
pub(crate) fn send(host: &str, method: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let body = &text[text.find("{\"").unwrap_or_else(|| panic!("{text}"))..];
    serde_json::Deserializer::from_str(body).into_iter().next().unwrap().unwrap()
}

#[test]
fn a_recording_is_started_grows_and_is_stopped() {
    let Some(php) = borehole_testkit::peers::peer("php") else { return };
    let mut busy = php.command();
    busy.args(["-r", "function spin() { for ($i = 0; ; $i++) { md5((string) $i); } } spin();"]);
    let mut busy = busy.stdin(Stdio::null()).spawn().unwrap();
    let (_serving, address) = Serving::start(&["--allow-record", "-p", &busy.id().to_string()]);
    let host = address.strip_prefix("http://").unwrap().trim_end_matches('/');
    let begun = send(host, "POST", "/api/v1/recordings?seconds=600&rate=50");
    assert_eq!(begun["recording"]["input"], "recording-1.rbt", "{begun}");
    let total = || {
        let top = send(host, "GET", "/api/v1/inputs/recording-1.rbt/top");
        top["total"].as_i64().filter(|_| top["rows"].to_string().contains("spin"))
    };
    let first = wait_for(total);
    wait_for(|| total().filter(|&total| total > first));
    let stopped = send(host, "DELETE", "/api/v1/recordings/1");
    assert_eq!(stopped["recording"]["id"], 1);
    let listed = wait_for(|| {
        let listed = send(host, "GET", "/api/v1/recordings");
        (listed["recordings"][0]["running"] == false).then_some(listed)
    });
    assert!(listed["recordings"][0]["message"].as_str().unwrap().contains("samples"), "{listed}");
    busy.kill().unwrap();
    busy.wait().unwrap();
}

#[test]
fn a_server_that_ends_removes_what_it_was_given() {
    let scratch = Scratch::new();
    let mut command = program(&["serve", "--allow-upload"]);
    let mut child = command.env("TMPDIR", scratch.folder()).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    assert_eq!(listing(scratch.folder()).len(), 1);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(listing(scratch.folder()), Vec::<String>::new());
}

#[test]
fn several_inputs_are_opened_one_by_one_and_merged_if_asked_to() {
    let files = [corpus("rbt/daemon_worker.rbt"), corpus("rbt/native.rbt")];
    let mut child =
        program(&["open", "--no-browser", &files[0], &files[1]]).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let serving = Serving(child);
    let host = address.trim().strip_prefix("http://").unwrap().trim_end_matches('/');
    assert_eq!(send(host, "GET", "/api/v1/inputs")["inputs"].as_array().unwrap().len(), 2);
    drop(serving);
    let merged = run(&["open", "--no-browser", "--merge", &files[0], &files[1]]).done();
    let merged = String::from_utf8(merged).unwrap();
    fs::remove_file(merged.trim().strip_prefix("file://").unwrap_or_else(|| panic!("{merged}"))).unwrap();
}

/// The number of samples that the shown profile states.
const SAMPLES: &str = "document.querySelector('.facts dd')?.textContent";

/// Waits until an expression has a value.
pub(crate) fn until(browser: &mut Browser, expression: &str, value: &Value) {
    wait_for(|| (browser.ask(expression) == *value).then_some(()));
}

#[test]
fn the_explorer_lists_inputs_shows_one_compares_two_and_keeps_what_is_selected_in_links() {
    let folder = Scratch::new();
    for name in ["26_realapp_zstd.bin", "05_threads20_none.bin"] {
        fs::copy(corpus(&format!("tachyon/corpus/{name}")), folder.path(name)).unwrap();
    }
    let (_serving, address) = Serving::start(&[folder.folder().to_str().unwrap()]);
    let Some(mut browser) = Browser::visit(&address) else { return };
    let inputs = "document.querySelectorAll('#inputs .input').length";
    until(&mut browser, inputs, &json!(2));

    // Keys alone: the next input, which is the first; then a search in it.
    browser.key("j");
    wait_for(|| browser.ask(SAMPLES).as_str().map(str::to_owned));
    let input = |name: &str| {
        format!(
            "[...document.querySelectorAll('#inputs .input')].find(input => input.textContent.includes('{name}'))"
        )
    };
    browser.click(&input("26_realapp"));
    until(&mut browser, SAMPLES, &json!("6,053"));
    browser.key("i");
    until(&mut browser, "borehole.flame.mode", &json!("inverted"));
    assert_eq!(browser.ask("borehole.flame.tree.first[0]"), 6053);

    // Another browser sees the same.
    let link = browser.ask("location.href");
    let mut other = Browser::visit(link.as_str().unwrap()).unwrap();
    until(&mut other, SAMPLES, &json!("6,053"));
    assert_eq!(other.ask("borehole.flame.mode"), "inverted");

    // Questions are answered as `borehole query` answers them.
    let paths = "[...document.querySelectorAll('#views button')].find(button => button.textContent === 'Heaviest paths')";
    until(&mut browser, &format!("!!({paths})"), &json!(true));
    browser.click(paths);
    let rows = "document.querySelectorAll('#panel tbody tr').length";
    let file = folder.path("26_realapp_zstd.bin");
    let asked: Value =
        serde_json::from_slice(&run(&["query", file.to_str().unwrap(), "paths", "--json"]).done()).unwrap();
    until(&mut browser, rows, &json!(asked["rows"].as_array().unwrap().len()));

    // The open input is the side before.
    browser.ask("history.back()");
    until(&mut browser, "document.querySelectorAll('#inputs .compare').length", &json!(1));
    browser.click("document.querySelector('#inputs .compare')");
    until(&mut browser, "document.querySelector('.facts dt')?.textContent", &json!("Samples before"));
    assert_eq!(browser.ask(SAMPLES), "6,053");
    browser.ask("history.back()");
    until(&mut browser, "document.querySelector('.facts dt')?.textContent", &json!("Samples"));

    // An input that appears is listed, whatever its name is.
    fs::copy(corpus("rbt/daemon_worker.rbt"), folder.path("<img src=x onerror=alert(1)>.rbt")).unwrap();
    until(&mut browser, inputs, &json!(3));
    assert_eq!(browser.ask("document.querySelectorAll('img').length"), 0);
    assert!(browser.text("#inputs").contains("<img src=x onerror=alert(1)>.rbt"));
}

#[test]
fn a_flame_chart_shows_threads_in_the_order_of_time_and_finer_when_it_is_zoomed() {
    let (_serving, address) = Serving::start(&[&corpus("tachyon/corpus/05_threads20_none.bin")]);
    let Some(mut browser) = Browser::visit(&address) else { return };
    wait_for(|| {
        browser.key("j");
        browser.ask(SAMPLES).as_str().map(str::to_owned)
    });
    browser.key("t");
    let status = "document.querySelector('#chart-status')?.textContent ?? ''";
    until(&mut browser, &format!("({status}).includes(' lanes')"), &json!(true));
    let coarse = browser.ask(status);
    let lanes = browser.ask("document.querySelectorAll('#chart ~ div tr').length");
    assert_eq!(lanes, 21, "{coarse}");
    // Something is painted below the titles of lanes.
    let painted = "(canvas => new Set(canvas.getContext('2d').getImageData(0, 30, canvas.width, 1).data).size > 8)(document.querySelector('#chart-canvas'))";
    assert_eq!(browser.ask(painted), true);

    // A drag selects time on the whole page.
    browser.drag("document.querySelector('#chart-canvas')", 0.4, 0.6);
    let (some, all) = (browser.ask("borehole.all").as_u64().unwrap(), browser.ask("borehole.model.data.all"));
    assert!(some > 0 && some < all.as_u64().unwrap() / 2, "{some} of {all}");
    // Enter zooms to it. A link leads there, and its calls are finer.
    browser.ask("document.querySelector('#chart').focus()");
    browser.key("Enter");
    wait_for(|| (browser.ask("/chart=-?\\d+-\\d+/.test(location.hash)") == true).then_some(()));
    let (link, range) = (browser.ask("location.href"), browser.ask("borehole.chart.map(Math.round)"));
    let mut other = Browser::visit(link.as_str().unwrap()).unwrap();
    until(&mut other, &format!("({status}).includes(' lanes')"), &json!(true));
    assert_ne!(other.ask(status), coarse);
    assert_eq!(other.ask("borehole.chart"), range);
    assert_eq!(other.ask("borehole.all"), some);
}

/// The pictures of the guide: what the address selects, where `{NAME}` is the id of an input, what is then on the page, and from
/// which element on the picture is.
const PICTURES: [(&str, &str, &str, &str); 4] = [
    ("explorer", "input={26_realapp_zstd.bin}", "borehole.flame.boxes().length > 100", "#views"),
    (
        "flame-chart",
        "input={05_threads20_none.bin}&chart=740000000-860000000",
        "document.querySelectorAll('#chart ~ div tr').length > 20",
        "#chart-title",
    ),
    (
        "side-by-side",
        "before={before.bin}&after={after.bin}&sides=both",
        "borehole.flame.panes.length === 2",
        "h1",
    ),
    (
        "source",
        "input={before.bin}&panel=source:file:/srv/shop/basket.py",
        "document.querySelectorAll('td.heated').length > 10",
        "h1",
    ),
];

/// The largest picture in the repository.
const PICTURE_BYTES: u64 = 150_000;

/// Checks that a picture is in the guide and not too large. `UPDATE_PICTURES` takes it anew, from an element on.
pub(crate) fn pictured(browser: &mut Browser, name: &str, from: &str) {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(format!("docs/images/{name}.png"));
    if std::env::var_os("UPDATE_PICTURES").is_some() {
        browser.ask(&format!(
            "document.querySelector('{from}').scrollIntoView(); new Promise(done => setTimeout(done, 500))"
        ));
        fs::write(&file, decoded(&browser.picture())).unwrap();
    }
    let bytes = fs::metadata(&file).unwrap().len();
    assert!(bytes <= PICTURE_BYTES, "{name}: {bytes} bytes");
    let guide = fs::read_to_string(root.join("docs/serve.md")).unwrap();
    assert!(guide.contains(&format!("(images/{name}.png)")), "{name} is not in the guide");
}

#[test]
fn pictures_of_the_explorer_are_of_views_that_are_there() {
    let folder = Scratch::new();
    for file in [corpus("tachyon/corpus/26_realapp_zstd.bin"), corpus("tachyon/corpus/05_threads20_none.bin")]
    {
        let file = std::path::PathBuf::from(file);
        fs::copy(&file, folder.path(file.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python");
    for name in ["before.bin", "after.bin"] {
        fs::copy(examples.join(name), folder.path(name)).unwrap();
    }
    let sources = examples.to_str().unwrap();
    let (_serving, address) = Serving::start(&[folder.folder().to_str().unwrap(), "--source", sources]);
    let Some(mut browser) = Browser::visit(&address) else { return };
    browser.resize(1280, 720);
    let inputs = browser.ask("fetch('/api/v1/inputs').then(answer => answer.json())");
    for (name, view, shows, from) in PICTURES {
        let inputs = inputs["inputs"].as_array().unwrap().iter();
        let view = inputs.fold(view.to_owned(), |view, input| {
            let [name, id] = ["name", "id"].map(|key| input[key].as_str().unwrap());
            view.replace(&format!("{{{name}}}"), id)
        });
        browser.ask(&format!("location.hash = {}", json!(view)));
        let shown = format!("!!globalThis.borehole && ({shows})");
        until(&mut browser, &shown, &json!(true));
        pictured(&mut browser, name, from);
    }
}

/// The bytes of a text in Base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let value = |digit: u8| DIGITS.iter().position(|&known| known == digit);
    let mut bytes = Vec::new();
    for digits in text.as_bytes().chunks(4) {
        let known: Vec<usize> = digits.iter().map_while(|&digit| value(digit)).collect();
        let bits = (0..4).fold(0, |bits, at| bits << 6 | known.get(at).copied().unwrap_or(0));
        bytes.extend(
            [16, 8, 0].map(|shift| u8::try_from(bits >> shift & 255).unwrap()).iter().take(known.len() - 1),
        );
    }
    bytes
}
