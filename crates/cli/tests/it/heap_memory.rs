//! How much memory it takes to copy and to analyse a heap.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use borehole_testkit::{Scratch, peers};

use crate::program::{program, text};

/// Objects, arrays and strings of 250 MB.
const LARGE: &str = "
    class Item { public $id; public $tags; public $name; }
    $all = []; $i = 0;
    while (memory_get_usage() < 250 << 20) {
        $item = new Item; $item->id = $i; $item->name = \"item $i \" . md5($i); $item->tags = [$i, \"tag $i\"];
        $all[\"key $i\"] = $item; $i++;
    }
    echo \"ready\\n\"; fgets(STDIN);";

struct Large(Child);

impl Large {
    /// `None` if PHP is skipped.
    fn start() -> Option<Self> {
        let mut command = peers::peer("php")?.command();
        command.args(["-d", "memory_limit=-1", "-r", LARGE]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(Self(child))
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A number of kibibytes in the status of a process; `None` if it has ended.
fn kibibytes(process: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim_matches(|byte: char| !byte.is_ascii_digit()).parse().ok()
}

/// Runs the command, and returns the most memory that it had, in kibibytes, as far as it could be seen.
fn peak(arguments: &[&str]) -> u64 {
    let mut child = program(arguments).stderr(Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    let status = loop {
        peak = kibibytes(child.id(), "VmHWM:").unwrap_or(0).max(peak);
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success(), "{arguments:?}: {status}");
    peak
}

#[test]
fn a_heap_is_copied_and_analysed_with_less_memory_than_it_has() {
    let Some(large) = Large::start() else { return };
    let scratch = Scratch::new();
    let process = large.0.id();
    let resident = kibibytes(process, "VmRSS:").unwrap();
    let (dump, graph) = (scratch.path("large.rdump"), scratch.path("large.rmem"));
    let share =
        |kind, output| peak(&["heap", kind, "-p", &process.to_string(), "-o", text(output)]) * 100 / resident;
    let dumped = share("dump", &dump);
    assert!(dumped <= 60, "{dumped} % of its memory");
    let captured = share("capture", &graph);
    assert!(captured <= 75, "{captured} % of its memory");
}
