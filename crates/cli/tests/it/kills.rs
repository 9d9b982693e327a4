//! Kills commands at any moment while they write. This must leave the old file or the complete new one, a recording that can
//! be recovered, a database of complete runs, and a target process that runs on.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use borehole_testkit::Scratch;
use borehole_testkit::servers::{DATABASE, DatabaseServer, ServerKind};
use serde_json::Value;

use crate::capture::Busy;
use crate::heap::Waiting;
use crate::program::{corpus, listing, program, run, samples_in, text, wait_for};

/// The number of kills of each command, spread over its running time, unless the environment variable `BOREHOLE_KILLS` says
/// another one.
const KILLS: u32 = 100;

/// The number of kills of each command, a multiple of [`AT_ONCE`].
fn kills() -> u32 {
    std::env::var("BOREHOLE_KILLS")
        .map_or(KILLS, |kills| kills.parse::<u32>().unwrap().next_multiple_of(AT_ONCE))
}

/// The number of recordings that run at once.
const AT_ONCE: u32 = 10;

/// The time of the last kill. Samples are flushed once a second.
const LONGEST_RECORDING: Duration = Duration::from_millis(2500);

/// The program, with its output discarded.
fn start(arguments: &[&str]) -> Child {
    program(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a command repeatedly, at moments spread over its running time.
pub(crate) struct Killer {
    takes: Duration,
    kills: u32,
    begun: u32,
    killed: u32,
}

impl Killer {
    /// Creates one for this many kills of the command that `run` runs.
    pub(crate) fn new(kills: u32, run: impl FnOnce()) -> Self {
        let begin = Instant::now();
        run();
        Self { takes: begin.elapsed(), kills, begun: 0, killed: 0 }
    }

    /// Kills a command that has just been started. Returns whether it was still running.
    pub(crate) fn kill(&mut self, mut child: Child) -> bool {
        let begin = Instant::now();
        thread::sleep(self.takes * self.begun / self.kills);
        let took = begin.elapsed();
        child.kill().unwrap();
        let is_killed = child.wait().unwrap().signal().is_some();
        self.begun += 1;
        self.killed += u32::from(is_killed);
        if !is_killed {
            // The first run may have taken much longer than later ones.
            self.takes = self.takes.min(took);
        }
        is_killed
    }

    /// Whether enough commands were killed while they ran, so that all moments were tried.
    #[track_caller]
    pub(crate) fn check(&self) {
        assert_eq!(self.begun, self.kills);
        assert!(self.killed > self.kills / 4, "only {} were killed before they ended", self.killed);
    }
}

/// Runs the command that begins with `arguments` and writes to the path after them, and kills it repeatedly.
#[track_caller]
fn survives(name: &str, arguments: &[&str]) {
    let scratch = Scratch::new();
    let path = scratch.path(name);
    let whole = [arguments, &["--force", "-o", text(&path)]].concat();
    let mut killer = Killer::new(kills(), || {
        let code = run(&whole).code;
        assert!([0, 3].contains(&code), "{whole:?}: {code}");
    });
    let (old, new) = (b"what was there before".to_vec(), fs::read(&path).unwrap());
    for kill in 0..kills() {
        fs::write(&path, &old).unwrap();
        killer.kill(start(&whole));
        let found = fs::read(&path).unwrap();
        assert!(found == old || found == new, "{whole:?}: {} bytes after {kill} kills", found.len());
        left_of(scratch.folder(), name);
    }
    killer.check();
    let code = run(&whole).code;
    assert!([0, 3].contains(&code), "{whole:?}: {code}");
    assert_eq!(listing(scratch.folder()), [name]);
}

/// Checks that killed programs left nothing beside `name` but journals, and files that the next program removes.
#[track_caller]
fn left_of(folder: &Path, name: &str) {
    for left in listing(folder).iter().filter(|left| *left != name) {
        // A journal is replaced as the output is.
        let is_unfinished =
            left.starts_with(&format!(".{name}")) && left.contains(".borehole-") && left.ends_with(".tmp");
        assert!(is_unfinished || left.starts_with(&format!("{name}.part")), "{left}");
    }
}

#[test]
fn a_killed_conversion_leaves_the_old_file_or_the_new_one() {
    let trace = corpus("rbt/realistic_54k_ts.rbt");
    survives("out.pb.gz", &["convert", &trace]);
    survives("out.speedscope.json", &["convert", &trace]);
    survives("out.svg", &["convert", &trace]);
    survives("out.rbt", &["convert", &trace]);
    survives("out.jsonl", &["convert", &trace]);
    survives("out.perfetto-trace", &["convert", &trace]);
    survives("out.bin", &["convert", &trace, "--to", "tachyon"]);
    survives("out.trc", &["convert", &trace]);
}

#[test]
fn a_killed_recovery_leaves_the_old_file_or_the_new_one() {
    survives("saved.rbt", &["recover", &corpus("rbt/realistic_54k_segmented_corrupt.rbt")]);
}

#[test]
fn a_killed_report_dump_or_diff_leaves_the_old_file_or_the_new_one() {
    let [one, other] = ["rbt/realistic_54k_ts.rbt", "rbt/realistic_54k_cut.rbt"].map(corpus);
    survives("page.html", &["report", &one]);
    survives("dump.jsonl", &["dump", &other]);
    survives("diff.html", &["diff", &one, &other]);
}

#[test]
fn a_killed_analysis_of_a_heap_leaves_the_old_file_or_the_new_one() {
    let heap = corpus("php/heap/8.1.2.rdump");
    survives("heap.json", &["heap", "export", &heap]);
    survives("heap.html", &["heap", "viz", &heap]);
    survives("heap.rmem", &["heap", "export", &heap]);
    survives("heap.hprof", &["heap", "export", &heap]);
    survives("heap.sqlite3", &["heap", "export", &heap]);
}

#[test]
fn killed_recordings_can_be_recovered() {
    let scratch = Scratch::new();
    let paths: Vec<_> = (0..AT_ONCE).map(|place| scratch.path(&format!("{place}.rbt"))).collect();
    let saved = scratch.path("saved.rbt");
    for round in 0..kills() / AT_ONCE {
        let Some(busy) = Busy::start("killed-often") else { return };
        let begin = Instant::now();
        let record =
            |path: &PathBuf| start(&["record", "-p", &busy.id(), "-r", "200", "--force", "-o", text(path)]);
        let running: Vec<_> = paths.iter().map(record).collect();
        for ((place, path), mut child) in (0..).zip(&paths).zip(running) {
            let moment = LONGEST_RECORDING * (place * kills() / AT_ONCE + round) / kills();
            thread::sleep(moment.saturating_sub(begin.elapsed()));
            child.kill().unwrap();
            assert!(!child.wait().unwrap().success());
            if moment < LONGEST_RECORDING * 4 / 5 && !path.exists() {
                continue;
            }
            run(&["recover", "--force", text(path), "-o", text(&saved)]).done();
            let samples = samples_in(&fs::read(&saved).unwrap());
            // On a busy machine, the first samples come late.
            assert!(moment < LONGEST_RECORDING * 4 / 5 || samples > 20, "{samples} after {moment:?}");
        }
    }
}

/// The names of outputs whose formats are complete only at the end.
const COMPLETE_AT_THE_END: [&str; AT_ONCE as usize] = [
    "a.svg",
    "a.jsonl",
    "a.pb.gz",
    "a.perfetto-trace",
    "a.folded",
    "a.speedscope.json",
    "a.trc",
    "a.otlp",
    "a.gecko.json",
    "a.phpspy",
];

#[test]
fn killed_recordings_leave_a_journal_and_the_old_file() {
    let scratches: Vec<_> = COMPLETE_AT_THE_END.iter().map(|name| (Scratch::new(), *name)).collect();
    let record = |busy: &Busy, path: &Path, more: &[&str]| {
        let options = ["record", "-p", &busy.id(), "-r", "200", "--force", "-o", text(path)];
        [&options[..], more].concat().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let journal = |scratch: &Scratch, name: &str| scratch.path(&format!("{name}.part"));
    for round in 0..kills() / AT_ONCE {
        let Some(busy) = Busy::start("killed-at-the-end") else { return };
        let begin = Instant::now();
        // Each format has its turn at each moment.
        let turns = || scratches.iter().cycle().skip(round as usize % scratches.len()).take(scratches.len());
        let running: Vec<_> = turns()
            .map(|(scratch, name)| {
                fs::write(scratch.path(name), "old").unwrap();
                let _ = fs::remove_file(journal(scratch, name));
                let command = record(&busy, &scratch.path(name), &[]);
                start(&command.iter().map(String::as_str).collect::<Vec<_>>())
            })
            .collect();
        for ((place, (scratch, name)), mut child) in (0..).zip(turns()).zip(running) {
            let moment = LONGEST_RECORDING * (place * kills() / AT_ONCE + round) / kills();
            thread::sleep(moment.saturating_sub(begin.elapsed()));
            let journal = journal(scratch, name);
            let recovered = || samples_in(&run(&["recover", text(&journal), "--to", "rbt"]).stdout);
            let is_late = moment >= LONGEST_RECORDING * 4 / 5;
            if is_late {
                // It is flushed while it is written, and complete in what was flushed.
                wait_for(|| (journal.exists() && recovered() > 20).then_some(()));
            }
            child.kill().unwrap();
            assert!(!child.wait().unwrap().success());
            assert_eq!(fs::read(scratch.path(name)).unwrap(), b"old");
            left_of(scratch.folder(), name);
            if is_late {
                run(&["recover", "--force", text(&journal), "-o", text(&scratch.path(name))]).done();
                assert_ne!(fs::read(scratch.path(name)).unwrap(), b"old");
            }
        }
    }
    let Some(busy) = Busy::start("killed-at-the-end") else { return };
    for (scratch, name) in scratches {
        let path = scratch.path(name);
        run(&record(&busy, &path, &["-n", "1"])).done();
        assert_eq!(listing(scratch.folder()), [name]);
        assert_ne!(fs::read(path).unwrap(), b"old");
    }
}

#[test]
fn killed_recordings_leave_whole_segments_and_the_next_one_adds_the_last() {
    let Some(busy) = Busy::start("killed-compressed") else { return };
    let scratch = Scratch::new();
    let folders: Vec<_> = (0..AT_ONCE).map(|place| scratch.path(&format!("{place}/"))).collect();
    let record = |folder: &PathBuf, target: &[&str]| {
        let options = ["record", "-r", "200", "--compress", "--rotate", "500ms", "--threads", "1", "-o"];
        [&options[..], &[text(folder)], target].concat().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for round in 0..3 {
        let begin = Instant::now();
        let started = |folder| {
            program(&record(folder, &["-p", &busy.id()])).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let running: Vec<_> = folders.iter().map(|folder| started(folder).unwrap()).collect();
        for ((place, folder), mut child) in (0..).zip(&folders).zip(running) {
            let moment = LONGEST_RECORDING * (place * 3 + round) / (AT_ONCE * 3);
            thread::sleep(moment.saturating_sub(begin.elapsed()));
            child.kill().unwrap();
            child.wait().unwrap();
            let file = folder.join("worker_0.rbt.gz");
            // It is refused, or samples nothing, but before that it finishes the segment.
            run(&record(folder, &["--", "true"])).failed();
            let left = listing(folder);
            assert!(left.is_empty() || left == ["worker_0.rbt.gz"], "{left:?}");
            if left.is_empty() {
                assert!(moment < LONGEST_RECORDING * 4 / 5);
                continue;
            }
            let plain = Command::new("zcat").arg(&file).output().unwrap();
            assert!(plain.status.success() && plain.stderr.is_empty(), "{plain:?}");
            let samples = samples_in(&plain.stdout);
            assert!(moment < LONGEST_RECORDING * 4 / 5 || samples > 20, "{samples} after {moment:?}");
            run(&["check", text(&file)]).done();
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_killed_capture_releases_the_process_and_leaves_a_complete_file() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    for (command, name) in [("dump", "worker.rdump"), ("capture", "worker.rmem")] {
        let path = scratch.path(name);
        let whole = ["heap", command, "-p", &waiting.id(), "--force", "-o", text(&path)];
        let mut killer = Killer::new(kills(), || drop(run(&whole).done()));
        for _ in 0..kills() {
            fs::write(&path, b"old").unwrap();
            killer.kill(start(&whole));
            if fs::read(&path).unwrap() != b"old" {
                run(&["heap", "info", text(&path)]).done();
            }
            // The kernel releases processes that a killed program had stopped.
            wait_for(|| waiting.is_sleeping().then_some(()));
            left_of(scratch.folder(), name);
        }
        killer.check();
        run(&whole).done();
        assert_eq!(listing(scratch.folder()), [name]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_killed_writer_leaves_whole_runs_in_sqlite() {
    let scratch = Scratch::new();
    leaves_whole_runs(text(&scratch.path("heaps.sqlite3")));
}

#[test]
fn a_killed_writer_leaves_whole_runs_in_postgresql() {
    let Some(server) = DatabaseServer::start(ServerKind::Postgresql) else { return };
    leaves_whole_runs(&server.address(DATABASE));
}

#[test]
fn a_killed_writer_leaves_whole_runs_in_mariadb() {
    let Some(server) = DatabaseServer::start(ServerKind::Mariadb) else { return };
    leaves_whole_runs(&server.address(DATABASE));
}

/// Kills the command that adds a run to `database` repeatedly.
#[track_caller]
fn leaves_whole_runs(database: &str) {
    let heap = corpus("php/heap/8.1.2.rdump");
    let scratch = Scratch::new();
    let graph = scratch.path("heap.rmem");
    run(&["heap", "analyze", &heap, "-o", text(&graph)]).done();
    let whole = ["heap", "export", text(&graph), "-o", database];
    run(&whole).done();
    let mut killer = Killer::new(kills(), || drop(run(&whole).done()));
    let counts = counts(database);
    let [first, second] = &counts[..] else { panic!("{counts:?}") };
    assert!(first.iter().all(|&count| count > 100) && first == second, "{counts:?}");
    let (mut runs, mut begun) = (2, 2);
    for kill in 0..kills() {
        begun += 1;
        let is_killed = killer.kill(start(&whole));
        let found = self::counts(database);
        assert!(found.iter().all(|run| run == first), "{found:?} after {kill} kills");
        // A server may still execute the last commands of killed writers.
        assert!((runs + usize::from(!is_killed)..=begun).contains(&found.len()), "{runs} {begun} {found:?}");
        runs = found.len();
    }
    killer.check();
    run(&whole).done();
    assert!(self::counts(database).len() > runs);
}

/// The numbers of nodes, edges and locations of each run in a database.
#[track_caller]
fn counts(database: &str) -> Vec<[i64; 3]> {
    let count = |table: &str| format!("(SELECT COUNT(*) FROM {table} t WHERE t.run_id = r.run_id)");
    let [nodes, edges, locations] = ["context_nodes", "context_edges", "context_node_locations"].map(count);
    let question = format!("SELECT {nodes} AS nodes, {edges} AS edges, {locations} AS locations FROM runs r");
    let said = String::from_utf8(run(&["heap", "query", database, "--json", &question]).done()).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        ["nodes", "edges", "locations"].map(|what| row[what].as_i64().unwrap())
    };
    said.lines().map(row).collect()
}
