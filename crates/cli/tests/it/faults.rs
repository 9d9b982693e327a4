//! Planted faults, and the questions that an assistant would ask: whether the culprit is in the short answers, and how long
//! these are beside the same data as JSON.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use borehole_testkit::Scratch;
use serde_json::{Value, json};

use crate::heap_growth::Growing;
use crate::leaks::{LEAKING, heap_of};
use crate::live_python::interpreter;
use crate::program::{corpus, run, text};

/// A planted fault: what is wrong, its inputs, the questions after the inputs, and the culprit's name.
struct Fault {
    name: String,
    inputs: Vec<String>,
    questions: Vec<Vec<String>>,
    culprit: String,
}

impl Fault {
    fn new(name: &str, inputs: &[&str], questions: &[&[&str]], culprit: &str) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        Self {
            name: name.to_owned(),
            inputs: owned(inputs),
            questions: questions.iter().map(|words| owned(words)).collect(),
            culprit: culprit.to_owned(),
        }
    }

    /// The number of questions until an answer names the culprit in its first rows, and the bytes of the answers so far.
    fn asked(&self) -> (usize, usize) {
        let mut bytes = 0;
        for (place, question) in self.questions.iter().enumerate() {
            let answer = run(&[&["query".to_owned()], &*self.inputs, question].concat()).done();
            bytes += answer.len();
            let answer = String::from_utf8(answer).unwrap();
            if answer.lines().take(FIRST_LINES).any(|line| line.contains(&self.culprit)) {
                return (place + 1, bytes);
            }
        }
        panic!("{}: no answer names {}", self.name, self.culprit);
    }

    /// The bytes of the same inputs as JSON, each whole.
    fn json_bytes(&self) -> usize {
        let whole = |input: &String| {
            let is_heap = input.ends_with(".rmem");
            let command: &[&str] = if is_heap { &["heap", "report"] } else { &["report"] };
            let all: &[&str] = if is_heap { &["--json", "--limit", "0"] } else { &["--json", "--all"] };
            run(&[command, &[input], all].concat()).done().len()
        };
        self.inputs.iter().map(whole).sum()
    }
}

/// The title, the names of the columns, and three rows: an answer that is longer has not found the culprit.
const FIRST_LINES: usize = 6;

/// Functions that do nothing wrong, as folded stacks.
fn others() -> String {
    let row = |place: usize| {
        format!("main;handle;module_{};helper_{place};inner_{place} {}\n", place % 40, 1 + place % 5)
    };
    (0..2000).map(row).collect()
}

/// The threads of a pool, of which one does something else than wait for work.
fn pool() -> String {
    let frames = ["worker_loop", "wait_for_job", "resize_image"].map(|name| json!({ "name": name }));
    let profiles: Vec<Value> = (0..16)
        .map(|thread| {
            let leaf = if thread == 7 { 2 } else { 1 };
            let weight = if thread == 7 { 900 } else { 10 };
            json!({
                "type": "sampled", "name": format!("worker (pid 10, tid {})", 100 + thread), "unit": "milliseconds",
                "startValue": 0, "endValue": weight, "samples": [[0, leaf]], "weights": [weight],
            })
        })
        .collect();
    let schema = "https://www.speedscope.app/file-format-schema.json";
    json!({ "$schema": schema, "shared": { "frames": frames }, "profiles": profiles }).to_string()
}

/// The faults of profiles, with their files.
fn of_profiles(scratch: &Scratch) -> Vec<Fault> {
    let file = |name: &str, more: &str| {
        text(&scratch.write(name, format!("{}{more}", others()).as_bytes())).to_owned()
    };
    let before = file("before.folded", "main;handle;encode 400\nmain;handle;parse 400\n");
    let grown = file("grown.folded", "main;handle;encode 4000\nmain;handle;parse 400\n");
    let new =
        file("new.folded", "main;handle;encode 400\nmain;handle;parse 400\nmain;handle;audit;sign 900\n");
    let slow = file("slow.folded", "main;handle;slow_query 7000\n");
    let called = file(
        "called.folded",
        "main;handle;export;format_row;escape 6000\nmain;handle;page;format_row;escape 20\nmain;job;escape 30\n",
    );
    let pool = text(&scratch.write("pool.json", pool().as_bytes())).to_owned();
    let compared = ["changes", "before=before.folded"];
    let changed = |after: &'static str| -> Vec<&'static str> { [&compared[..], &[after]].concat() };
    vec![
        Fault::new("a slow function", &[&slow], &[&["overview"], &["top"]], "slow_query"),
        Fault::new("a caller that calls too much", &[&called], &[&["callers", "function=escape"]], "export"),
        Fault::new("one hot path", &[&called], &[&["paths"]], "export → format_row → escape"),
        Fault::new(
            "a function that became slower",
            &[&before, &grown],
            &[&changed("after=grown.folded")[..]],
            "encode",
        ),
        Fault::new("a new function", &[&before, &new], &[&changed("after=new.folded")[..]], "sign"),
        Fault::new("one busy thread", &[&pool], &[&["by", "by=thread"]], "107"),
        Fault::new(
            "a worker that is stuck",
            &[corpus("trc/tokio/stuck_worker.bin").as_str()],
            &[&["tokio_flags"]],
            "worker",
        ),
    ]
}

/// Two threads that each hold the lock that the other one waits for, beside one that works.
const DEADLOCK: &str = r#"
import threading, time

accounts, journal = threading.Lock(), threading.Lock()
holding = threading.Barrier(3)

def post_journal():
    with journal:
        pass

def pay_out():
    with accounts:
        holding.wait()
        post_journal()

def lock_accounts():
    with accounts:
        pass

def close_books():
    with journal:
        holding.wait()
        lock_accounts()

def serve():
    while True:
        time.sleep(0.01)

for work in (pay_out, close_books):
    threading.Thread(target=work, daemon=True).start()
holding.wait()
print("ready", flush=True)
serve()
"#;

/// A deadlock, recorded while it lasts. `None` if this machine has no Python to record.
fn deadlock(scratch: &Scratch) -> Option<Fault> {
    let script = scratch.write("bank.py", DEADLOCK.as_bytes());
    let mut command = interpreter()?.command();
    let mut child = command.arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let trace = text(&scratch.path("deadlock")).to_owned();
    run(&["record", "-p", &child.id().to_string(), "-r", "100", "-n", "300", "-o", &trace]).done();
    child.kill().unwrap();
    child.wait().unwrap();
    Some(Fault::new("a deadlock", &[&trace], &[&["paths"]], "close_books → lock_accounts"))
}

/// The faults of heaps: leaks, and a heap that grows. `None` if PHP is skipped.
fn of_heaps(scratch: &Scratch) -> Option<Vec<Fault>> {
    let mut faults = Vec::new();
    for (name, _, path) in LEAKING {
        let heap = heap_of(&format!("leaking/{name}"), scratch)?;
        let kept = scratch.path(&format!("{name}.rmem"));
        std::fs::rename(heap, &kept).unwrap();
        // A table cuts long paths in front, as their ends say more.
        faults.push(Fault::new(name, &[text(&kept)], &[&["heap_findings"]], path));
    }
    let mut growing = Growing::start()?;
    let [first, last] = ["first.rmem", "last.rmem"].map(|name| text(&scratch.path(name)).to_owned());
    growing.capture(&first);
    growing.grow(5000);
    growing.capture(&last);
    let question: &[&str] = &["changes", "before=first.rmem", "after=last.rmem"];
    faults.push(Fault::new("a cache that grows", &[&first, &last], &[question], r"Leak\Cache::$items"));
    Some(faults)
}

#[test]
fn short_answers_name_the_culprit_of_each_planted_fault() {
    let scratch = Scratch::new();
    let mut faults = of_profiles(&scratch);
    let Some(of_heaps) = of_heaps(&scratch) else { return };
    faults.extend(of_heaps);
    let Some(deadlock) = deadlock(&scratch) else { return };
    faults.push(deadlock);
    assert_eq!(faults.len(), 21);
    let (mut questions, mut answers, mut whole) = (0, 0, 0);
    for fault in &faults {
        let (asked, bytes) = fault.asked();
        let json = fault.json_bytes();
        // At three characters a token, as the budget of an assistant's answer counts.
        assert!(bytes <= 3 * 4000 * asked, "{}: {bytes} bytes", fault.name);
        println!("{:<30} {asked} question, {bytes:>6} bytes, as JSON {json:>8}", fault.name);
        (questions, answers, whole) = (questions + asked, answers + bytes, whole + json);
    }
    println!("{questions} questions, {answers} bytes, as JSON {whole}");
    assert!(answers * 5 < whole, "{answers} bytes of answers, {whole} of JSON");
}
