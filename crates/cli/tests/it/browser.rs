//! Drives a browser and reads what it shows.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use borehole_testkit::Scratch;
use borehole_testkit::peers::{HEADLESS, peer};
use serde_json::{Value, json};

use crate::program::named_pipe;

/// Chromium with one page, driven by its DevTools protocol over two pipes.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    session: Option<String>,
    last: u64,
    _folder: Scratch,
}

/// Options in addition to [`HEADLESS`].
const FLAGS: [&str; 2] = ["--remote-debugging-pipe", "--window-size=1400,1300"];

impl Browser {
    /// Opens the page in the file at `path`; `None` if the browser is skipped.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        Self::open_at(path, "")
    }

    /// Like [`Browser::open`], with the fragment of a link.
    pub(crate) fn open_at(path: &Path, fragment: &str) -> Option<Self> {
        Self::visit(&format!("file://{}{fragment}", path.display()))
    }

    /// Opens an address; `None` if the browser is skipped.
    pub(crate) fn visit(url: &str) -> Option<Self> {
        let chromium = peer("chromium")?;
        let folder = Scratch::new();
        let [to, from] = ["to", "from"].map(|name| named_pipe(folder.path(name)));
        // The browser reads commands from 3 and answers on 4.
        let program = chromium.command();
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"exec "$@" 3<"$TO" 4>"$FROM""#, "sh"]).arg(program.get_program());
        shell.args(program.get_args()).args(HEADLESS).args(FLAGS);
        shell.arg(format!("--user-data-dir={}", folder.path("profile").display())).arg("about:blank");
        shell.env("TO", &to).env("FROM", &from).stdout(Stdio::null()).stderr(Stdio::null());
        let child = shell.spawn().unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        let mut browser = Self { child, to, from, session: None, last: 0, _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        browser.call("Page.navigate", json!({ "url": url }));
        browser.ask(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))",
        );
        Some(browser)
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// The text of an element.
    #[track_caller]
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let found = self.ask(&format!("document.querySelector({}).textContent", json!(selector)));
        found.as_str().unwrap().to_owned()
    }

    /// Where an element is: left, top, width and height. It is scrolled into view.
    #[track_caller]
    fn place_of(&mut self, element: &str) -> [f64; 4] {
        let found = self.ask(&format!(
            "(found => {{ found.scrollIntoView({{ block: 'center' }}); const box = found.getBoundingClientRect(); \
             return [box.left, box.top, box.width, box.height] }})({element})"
        ));
        [0, 1, 2, 3].map(|at| found[at].as_f64().unwrap())
    }

    /// Presses the mouse in the middle of an element, moves by fractions of its width, and releases.
    #[track_caller]
    pub(crate) fn drag(&mut self, element: &str, from: f64, to: f64) {
        self.drag_in(element, (from, to), 0.5);
    }

    /// Clicks at fractions of an element's width and height.
    #[track_caller]
    pub(crate) fn click_at(&mut self, element: &str, x: f64, y: f64) {
        self.drag_in(element, (x, x), y);
    }

    #[track_caller]
    fn drag_in(&mut self, element: &str, (from, to): (f64, f64), part: f64) {
        let [left, top, width, height] = self.place_of(element);
        let places =
            [("mouseMoved", from), ("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)];
        for (kind, at) in places {
            let parameters = json!({
                "type": kind, "x": left + width * at, "y": top + height * part, "button": "left",
                "buttons": i32::from(kind != "mouseReleased"), "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", parameters);
        }
    }

    /// Turns the wheel at a fraction of an element's width; a negative number turns it away from the user.
    #[track_caller]
    pub(crate) fn wheel(&mut self, element: &str, at: f64, delta: f64) {
        let [left, top, width, height] = self.place_of(element);
        self.call(
            "Input.dispatchMouseEvent",
            json!({
                "type": "mouseWheel", "x": left + width * at, "y": top + height / 2.0, "deltaX": 0, "deltaY": delta,
            }),
        );
    }

    /// A picture of what the page shows: a PNG, in Base64.
    pub(crate) fn picture(&mut self) -> String {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        picture["data"].as_str().unwrap().to_owned()
    }

    /// Gives the page another size, in pixels.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    #[track_caller]
    pub(crate) fn click(&mut self, element: &str) {
        self.drag(element, 0.5, 0.5);
    }

    /// Presses a key, by its name in the browser.
    pub(crate) fn key(&mut self, key: &str) {
        let text = Some(key).filter(|key| key.chars().count() == 1);
        self.call(
            "Input.dispatchKeyEvent",
            json!({ "type": "keyDown", "key": key, "text": text.unwrap_or("") }),
        );
        self.call("Input.dispatchKeyEvent", json!({ "type": "keyUp", "key": key }));
    }

    /// Sends a command and waits for its answer; events in between are skipped.
    #[track_caller]
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut order = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            order["sessionId"] = session.clone().into();
        }
        self.to.write_all(order.to_string().as_bytes()).unwrap();
        self.to.write_all(&[0]).unwrap();
        loop {
            let message = self.message();
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn message(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.from.read_until(0, &mut bytes).expect("the browser runs");
        bytes.pop().expect("the browser runs");
        serde_json::from_slice(&bytes).unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
