//! Reports on files that py-spy and pyinstrument write during the test, compared with the sums in those files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use borehole_testkit::Scratch;
use borehole_testkit::peers::peer;
use serde_json::Value;

use crate::program::run;

/// Two threads that are busy in functions of their own, by the time they get rather than the time that passes.
const PROGRAM: &str = "\
import threading
import time


def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def short():
    spin(0.2)


def long():
    spin(0.6)


worker = threading.Thread(target=short, name='worker')
worker.start()
long()
worker.join()
";

/// Numbers by text.
type Sums = BTreeMap<String, i64>;

fn report(file: &Path, more: &[&str]) -> Value {
    let shown = run(&[&["report", "--json", "--all", file.to_str().unwrap()], more].concat()).done();
    serde_json::from_slice(&shown).unwrap()
}

/// The self value of each function, by name.
fn own(report: &Value) -> Sums {
    let mut sums = Sums::new();
    for row in report["self"]["rows"].as_array().unwrap() {
        *sums.entry(row["function"].as_str().unwrap().to_owned()).or_default() +=
            row["value"].as_i64().unwrap();
    }
    sums
}

/// The value of each thread, by name.
fn by_thread(report: &Value) -> Sums {
    let rows = report["by"]["rows"].as_array().unwrap().iter();
    let name = |row: &Value| row["name"].as_str().unwrap_or_default().to_owned();
    rows.map(|row| (name(row), row["value"].as_i64().unwrap())).collect()
}

fn nanoseconds(seconds: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "a second of nanoseconds")]
    let rounded = (seconds.as_f64().unwrap() * 1e9).round() as i64;
    rounded
}

/// Whether sums agree, apart from the rounding of each addend.
fn assert_close(ours: &Sums, theirs: &Sums) {
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (name, sum) in theirs {
        assert!((ours[name] - sum).abs() < 10_000, "{name}: {} and {sum}", ours[name]);
    }
}

/// The file that py-spy writes about the program; `None` if the peer is skipped.
///
/// On a busy machine py-spy sometimes sees nothing but the interpreter's start, so it gets a few tries.
fn recorded(folder: &Scratch, format: &str) -> Option<PathBuf> {
    let py_spy = peer("py-spy")?;
    let (program, file) = (folder.write("busy.py", PROGRAM.as_bytes()), folder.path("busy.profile"));
    let options = ["record", "--threads", "--format", format, "--rate", "200", "--output"];
    let (text, program) = (file.to_str().unwrap(), program.to_str().unwrap());
    let record = [&options[..], &[text, "--", "python3", program]].concat();
    let seen = (0..5).any(|_| {
        drop(py_spy.stdout(&record));
        let profile = fs::read_to_string(&file).unwrap();
        ["spin", "worker"].iter().all(|name| profile.contains(name))
    });
    assert!(seen, "py-spy never saw both threads");
    Some(file)
}

#[test]
fn folded_stacks_of_py_spy_have_their_functions_lines_and_threads() {
    let folder = Scratch::new();
    let Some(file) = recorded(&folder, "raw") else { return };
    let (mut all, mut functions, mut workers) = (0, Sums::new(), 0);
    for line in fs::read_to_string(&file).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: i64 = count.parse().unwrap();
        let frames: Vec<_> = stack.split(';').collect();
        all += count;
        workers += if frames[0].ends_with("worker") { count } else { 0 };
        // A thread without a stack is not a function.
        if let Some((function, _)) =
            frames.last().and_then(|leaf| leaf.split_once(" (")).filter(|_| frames.len() > 1)
        {
            *functions.entry(function.to_owned()).or_default() += count;
        }
    }
    let seen = report(&file, &["--by", "thread"]);
    assert_eq!(
        (seen["summary"]["samples"].as_i64(), seen["summary"]["unit"].as_str()),
        (Some(all), Some("count"))
    );
    assert_eq!(own(&seen), functions);
    assert!(functions["spin"] > 0, "{functions:?}");
    assert_eq!(by_thread(&seen)["worker"], workers);
    let spin = seen["self"]["rows"].as_array().unwrap().iter().find(|row| row["function"] == "spin").unwrap();
    assert!(
        spin["file"].as_str().unwrap().ends_with("busy.py")
            && [6, 7, 8].contains(&spin["line"].as_i64().unwrap()),
        "{spin}"
    );
}

#[test]
fn each_thread_of_a_speedscope_file_of_py_spy_keeps_its_time() {
    let folder = Scratch::new();
    let Some(file) = recorded(&folder, "speedscope") else { return };
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let frames = document["shared"]["frames"].as_array().unwrap();
    let (mut threads, mut functions) = (Sums::new(), Sums::new());
    for profile in document["profiles"].as_array().unwrap() {
        let name = profile["name"].as_str().unwrap().split('"').nth(1).unwrap().to_owned();
        let samples = profile["samples"].as_array().unwrap().iter();
        for (stack, weight) in samples.zip(profile["weights"].as_array().unwrap()) {
            *threads.entry(name.clone()).or_default() += nanoseconds(weight);
            if let Some(leaf) = stack.as_array().unwrap().last() {
                let leaf = &frames[usize::try_from(leaf.as_u64().unwrap()).unwrap()];
                *functions.entry(leaf["name"].as_str().unwrap().to_owned()).or_default() +=
                    nanoseconds(weight);
            }
        }
    }
    let seen = report(&file, &["--by", "thread"]);
    assert_eq!(
        (&seen["summary"]["value_type"], &seen["summary"]["unit"]),
        (&"wall".into(), &"nanoseconds".into())
    );
    assert!(threads.len() > 1 && threads["worker"] > 0, "{threads:?}");
    assert_close(&by_thread(&seen), &threads);
    assert_close(&own(&seen), &functions);
}

#[test]
fn events_of_pyinstrument_have_their_durations() {
    let Some(pyinstrument) = peer("pyinstrument") else { return };
    let folder = Scratch::new();
    let program = folder.write("busy.py", PROGRAM.as_bytes());
    let file = folder.path("busy.speedscope.json");
    let options = ["-r", "speedscope", "-o", file.to_str().unwrap(), program.to_str().unwrap()];
    drop(pyinstrument.stdout(&options));
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let frames = document["shared"]["frames"].as_array().unwrap();
    let mut functions = Sums::new();
    for profile in document["profiles"].as_array().unwrap() {
        let (mut open, mut last) = (Vec::<usize>::new(), 0);
        for event in profile["events"].as_array().unwrap() {
            let at = nanoseconds(&event["at"]);
            if let Some(&leaf) = open.last().filter(|_| at > last) {
                let name: &Value = &frames[leaf]["name"];
                *functions.entry(name.as_str().unwrap().to_owned()).or_default() += at - last;
            }
            last = at;
            match event["type"].as_str().unwrap() {
                "O" => open.push(usize::try_from(event["frame"].as_u64().unwrap()).unwrap()),
                _ => drop(open.pop()),
            }
        }
    }
    let seen = report(&file, &[]);
    assert!(functions["spin"] > 0, "{functions:?}");
    assert_close(&own(&seen), &functions);
}
