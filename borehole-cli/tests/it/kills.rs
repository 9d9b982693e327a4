//! Commands that write and are killed at any moment: there is the file that was there before or the whole new one, a
//! recording that can be recovered, a database of whole runs, and a process that runs on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use borehole_testkit::Scratch;
use borehole_testkit::servers::{DATABASE, DatabaseServer, ServerKind};
use serde_json::Value;

use crate::capture::Busy;
use crate::heap::Waiting;
use crate::program::{corpus, listing, program, run, samples_in, text, wait_for};

/// How often each command is killed, at moments spread over the time that it takes.
const KILLS: u32 = 100;

/// How many recordings run at once.
const AT_ONCE: u32 = 10;

/// When the last of them is killed. What was sampled is flushed once a second.
const LONGEST_RECORDING: Duration = Duration::from_millis(2500);

/// The program, whose words nobody reads.
fn start(arguments: &[&str]) -> Child {
    program(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Runs the command that `arguments` begin, which writes to what follows them, and kills it a hundred times.
#[track_caller]
fn survives(name: &str, arguments: &[&str]) {
    let scratch = Scratch::new();
    let path = scratch.path(name);
    let whole = [arguments, &["--force", "-o", text(&path)]].concat();
    let begin = Instant::now();
    let code = run(&whole).code;
    let takes = begin.elapsed();
    assert!([0, 3].contains(&code), "{whole:?}: {code}");
    let (old, new) = (b"what was there before".to_vec(), fs::read(&path).unwrap());
    let mut killed = 0;
    for kill in 0..KILLS {
        fs::write(&path, &old).unwrap();
        let mut child = start(&whole);
        thread::sleep(takes * kill / KILLS);
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        let found = fs::read(&path).unwrap();
        assert!(found == old || found == new, "{whole:?}: {} bytes after {kill} of {KILLS}", found.len());
        clear(scratch.folder(), name);
    }
    assert!(killed > KILLS / 4, "{whole:?}: only {killed} were killed before their end");
}

/// What a killed program could not take away bears our name, and begins with a dot.
fn clear(folder: &Path, name: &str) {
    for left in listing(folder).iter().filter(|left| *left != name) {
        assert!(left.starts_with(".borehole-"), "{left}");
        fs::remove_file(folder.join(left)).unwrap();
    }
}

#[test]
fn a_killed_conversion_leaves_the_old_file_or_the_new_one() {
    let trace = corpus("rbt/realistic_54k_ts.rbt");
    survives("out.pb.gz", &["convert", &trace]);
    survives("out.speedscope.json", &["convert", &trace]);
    survives("out.svg", &["convert", &trace]);
    survives("out.rbt", &["convert", &trace]);
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
}

#[test]
fn killed_recordings_can_be_recovered() {
    let Some(busy) = Busy::start("killed-often") else { return };
    let scratch = Scratch::new();
    let paths: Vec<_> = (0..AT_ONCE).map(|place| scratch.path(&format!("{place}.rbt"))).collect();
    let saved = scratch.path("saved.rbt");
    for round in 0..KILLS / AT_ONCE {
        let begin = Instant::now();
        let record =
            |path: &PathBuf| start(&["record", "-p", &busy.id(), "-r", "200", "--force", "-o", text(path)]);
        let running: Vec<_> = paths.iter().map(record).collect();
        for ((place, path), mut child) in (0..).zip(&paths).zip(running) {
            let moment = LONGEST_RECORDING * (place * KILLS / AT_ONCE + round) / KILLS;
            thread::sleep(moment.saturating_sub(begin.elapsed()));
            child.kill().unwrap();
            assert!(!child.wait().unwrap().success());
            if moment < LONGEST_RECORDING * 4 / 5 && !path.exists() {
                continue;
            }
            run(&["recover", "--force", text(path), "-o", text(&saved)]).done();
            let samples = samples_in(&fs::read(&saved).unwrap());
            // On a machine with much else to do the first of them come late.
            assert!(moment < LONGEST_RECORDING * 4 / 5 || samples > 20, "{samples} after {moment:?}");
        }
    }
}

#[test]
fn a_killed_look_at_a_process_lets_it_go_on_and_leaves_the_old_file_or_a_whole_one() {
    let Some(waiting) = Waiting::start("m1_objects") else { return };
    let scratch = Scratch::new();
    for (command, name) in [("dump", "worker.rdump"), ("capture", "worker.rmem")] {
        let path = scratch.path(name);
        let whole = ["heap", command, "-p", &waiting.id(), "--force", "-o", text(&path)];
        let begin = Instant::now();
        run(&whole).done();
        let takes = begin.elapsed();
        let mut killed = 0;
        for kill in 0..KILLS {
            fs::write(&path, b"old").unwrap();
            let mut child = start(&whole);
            thread::sleep(takes * kill / KILLS);
            child.kill().unwrap();
            killed += u32::from(!child.wait().unwrap().success());
            if fs::read(&path).unwrap() != b"old" {
                run(&["heap", "info", text(&path)]).done();
            }
            // The kernel lets go of what a killed program had stopped.
            wait_for(|| waiting.is_sleeping().then_some(()));
            clear(scratch.folder(), name);
        }
        assert!(killed > KILLS / 4, "{whole:?}: only {killed} were killed before their end");
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

/// Kills the command that adds a run to `database` a hundred times.
#[track_caller]
fn leaves_whole_runs(database: &str) {
    let heap = corpus("php/heap/8.1.2.rdump");
    let scratch = Scratch::new();
    let graph = scratch.path("heap.rmem");
    run(&["heap", "analyze", &heap, "-o", text(&graph)]).done();
    let whole = ["heap", "export", text(&graph), "-o", database];
    run(&whole).done();
    let begin = Instant::now();
    run(&whole).done();
    let takes = begin.elapsed();
    let counts = counts(database);
    let [first, second] = &counts[..] else { panic!("{counts:?}") };
    assert!(first.iter().all(|&count| count > 100) && first == second, "{counts:?}");
    let (mut killed, mut runs, mut begun) = (0, 2, 2);
    for kill in 0..KILLS {
        let mut child = start(&whole);
        begun += 1;
        thread::sleep(takes * kill / KILLS);
        child.kill().unwrap();
        let is_killed = !child.wait().unwrap().success();
        killed += u32::from(is_killed);
        let found = self::counts(database);
        assert!(found.iter().all(|run| run == first), "{found:?} after {kill} of {KILLS}");
        // A server may still be at what killed writers told it last.
        assert!((runs + usize::from(!is_killed)..=begun).contains(&found.len()), "{runs} {begun} {found:?}");
        runs = found.len();
    }
    assert!(killed > KILLS / 4, "only {killed} were killed before their end");
    run(&whole).done();
    assert!(self::counts(database).len() > runs);
}

/// How many nodes, edges and locations each run of a database has.
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
