//! `borehole lake`, as its users run it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::thread;

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::kills::Killer;
use crate::program::{Ended, corpus, listing, piped, program, run, text, wait_for, wait_until_busy};

fn lake(arguments: &[&str]) -> Ended {
    run(&[&["lake"], arguments].concat())
}

pub(crate) fn lines(bytes: Vec<u8>) -> Vec<String> {
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

fn objects(ended: Ended) -> Vec<Value> {
    lines(ended.done()).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A lake with one trace.
fn with_trace() -> (Scratch, String) {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    lake(&["add", &path, &corpus("rbt/daemon_worker.rbt"), "--service", "shop", "--at", "2026-11-01T12:00Z"])
        .done();
    (scratch, path)
}

#[test]
fn a_trace_is_added_and_asked() {
    let (_scratch, path) = with_trace();
    let again = lake(&["add", &path, &corpus("rbt/daemon_worker.rbt")]);
    assert_eq!(again.code, 0);
    assert!(again.stderr.ends_with("daemon_worker.rbt: already added\n"), "{}", again.stderr);
    let table = lines(
        lake(&["query", &path, "SELECT service, sum(value) AS samples FROM samples GROUP BY service"])
            .quietly(),
    );
    assert_eq!(table, ["service  samples", "shop          30"]);
    let csv = lines(lake(&["query", &path, "SELECT 'a,b' AS \"x\"\"y\", 1.5 AS n", "--csv"]).quietly());
    assert_eq!(csv, ["\"x\"\"y\",n", "\"a,b\",1.5"]);
    let info = lines(lake(&["info", &path]).quietly());
    assert!(info[0].contains("1 input added"), "{info:?}");
    assert_eq!(info[1], "services: shop");
    assert_eq!(
        lines(lake(&["check", &path]).quietly()).last().unwrap().split(": ").last(),
        Some("0 findings")
    );
    let files = lines(lake(&["info", &path, "--files", "samples"]).quietly());
    assert_eq!(files.len(), 1);
    assert!(std::path::Path::new(&path).join(&files[0]).is_file(), "{files:?}");
    let error = lake(&["info", &path, "--files", "nothing"]).failed();
    assert!(error.contains(": expected one of samples, measures,"), "{error}");
}

#[test]
fn its_flame_graph_is_that_of_the_file() {
    let (scratch, path) = with_trace();
    let expected = run(&["convert", &corpus("rbt/daemon_worker.rbt"), "--to", "folded"]).done();
    let sort = |bytes| {
        let mut lines = lines(bytes);
        lines.sort();
        lines
    };
    let of_question =
        lake(&["query", &path, "SELECT stack_id, sum(value) FROM samples GROUP BY 1", "--to", "folded"]);
    let expected = sort(expected);
    assert_eq!(sort(of_question.done()), expected);
    assert_eq!(sort(lake(&["top", &path, "--to", "folded"]).done()), expected);
    let records = String::from_utf8(lake(&["top", &path, "--to", "jsonl"]).done()).unwrap();
    assert!(records.contains("\"start_unix_ns\":1793534400000000000"), "{records}");
    for name in ["flame.svg", "profile.pb.gz", "profile.speedscope.json"] {
        let output = scratch.path(name);
        lake(&["top", &path, "--service", "shop", "-o", text(&output)]).done();
        assert!(fs::metadata(output).unwrap().len() > 100, "{name}");
    }
    let back = run(&["convert", text(&scratch.path("profile.pb.gz")), "--to", "folded"]).done();
    assert_eq!(sort(back), expected);
}

#[test]
fn the_top_functions_are_those_of_the_report() {
    let (_scratch, path) = with_trace();
    let top = objects(lake(&["top", &path, "--json", "--limit", "0"]));
    let report =
        run(&["report", &corpus("rbt/daemon_worker.rbt"), "--json", "--no-line", "--top", "0"]).done();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let samples: u64 = top.iter().map(|row| row["self"].as_u64().unwrap()).sum();
    assert_eq!(Some(samples), report["summary"]["samples"].as_u64().or(Some(30)));
    assert_eq!(samples, 30);
    let nothing = objects(lake(&["top", &path, "--since", "2026-11-02", "--json"]));
    assert_eq!(nothing, [] as [Value; 0]);
    let trend = objects(lake(&["trend", &path, top[0]["function"].as_str().unwrap(), "--json"]));
    assert_eq!((trend.len(), &trend[0]["time"]), (1, &Value::from("2026-11-01T12:00:00Z")));
}

/// The numbers of functions by name, without zeros.
fn numbers_of<'v>(rows: impl IntoIterator<Item = &'v Value>, number: &str) -> BTreeMap<String, i64> {
    let mut numbers: BTreeMap<String, i64> = BTreeMap::new();
    for row in rows {
        let function = row["function"].as_str().unwrap().to_owned();
        *numbers.entry(function).or_default() += row[number].as_i64().unwrap();
    }
    numbers.retain(|_, number| *number != 0);
    numbers
}

#[test]
fn one_value_type_is_added_up_as_in_reports() {
    let (_scratch, path) = with_trace();
    let [cpu, heap] = ["pprof/go-cpu.pb.gz", "pprof/go-heap-in-use.pb.gz"].map(corpus);
    lake(&["add", &path, &cpu, "--service", "go"]).done();
    lake(&["add", &path, &heap, "--service", "heap"]).done();
    for (file, service, value) in [
        (&corpus("rbt/daemon_worker.rbt"), "shop", "samples"),
        (&cpu, "go", "samples"),
        (&cpu, "go", "cpu"),
        (&heap, "heap", "inuse_space"),
        (&heap, "heap", "alloc_objects/count"),
    ] {
        let asked = ["--value", value, "--json"];
        let top = lake(&[&["top", &path, "--service", service, "--limit", "0"][..], &asked].concat());
        let report = run(&[&["report", file, "--no-line", "--all"][..], &asked].concat()).done();
        let report: Value = serde_json::from_slice(&report).unwrap();
        let expected = numbers_of(report["self"]["rows"].as_array().unwrap(), "value");
        assert!(!expected.is_empty(), "{file} {value}");
        assert_eq!(numbers_of(&objects(top), "self"), expected, "{file} {value}");
    }
    let said = lake(&["top", &path, "--json", "--limit", "0"]);
    assert_eq!(said.code, 0);
    let begins = "note: other value types: ";
    assert!(said.stderr.starts_with(begins) && said.stderr.contains("inuse_space/bytes"), "{}", said.stderr);
    assert_eq!(objects(said).iter().map(|row| row["self"].as_i64().unwrap()).sum::<i64>(), 30);
    let of_heap = ["--service", "heap"];
    let said = lake(&[&["top", &path][..], &of_heap].concat()).stderr;
    let begins = "note: values are inuse_space/bytes; other value types: ";
    assert!(said.starts_with(begins) && said.contains("; select one with --value NAME\n"), "{said}");
    let stretches = ["--before", "..2026-11-10", "--after", "2026-11-10.."];
    let error = lake(&[&["diff", &path][..], &stretches].concat()).failed();
    assert_eq!(error, "error: different value types: expected wall on both sides, found cpu on the second\n");
    for question in [&["top", &path][..], &["trend", &path, "main.main"]] {
        let error = lake(&[question, &of_heap, &["--value", "wall"]].concat()).failed();
        let known = "alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes";
        assert_eq!(error, format!("error: unknown value type: expected one of {known}, found wall\n"));
    }
}

#[test]
fn values_of_a_lake_stay_values() {
    let (scratch, path) = with_trace();
    let heap = corpus("pprof/go-heap-in-use.pb.gz");
    lake(&["add", &path, &heap, "--service", "heap"]).done();
    let output = scratch.path("heap.pb.gz");
    lake(&["top", &path, "--value", "inuse_space", "-o", text(&output)]).done();
    let weights = |file: &str| {
        let report = run(&["report", file, "--json", "--no-line", "--all", "--value", "inuse_space"]);
        let report: Value = serde_json::from_slice(&report.done()).unwrap();
        (report["summary"]["unit"].clone(), numbers_of(report["self"]["rows"].as_array().unwrap(), "value"))
    };
    assert_eq!(weights(text(&output)), weights(&heap));
    let trend = objects(lake(&["trend", &path, "main.alloc", "--value", "inuse_space", "--json"]));
    let sum: i64 = weights(&heap).1.values().sum();
    assert_eq!((trend.len(), trend[0]["value"].as_i64()), (1, Some(sum)));
}

#[test]
fn empty_answers_are_noted() {
    let (_scratch, path) = with_trace();
    let questions = [
        &["top", &path][..],
        &["top", &path, "--to", "folded"],
        &["trend", &path, r"App\Http\Kernel::handle", "--json"],
        &["diff", &path, "--before", "..2026-06-01", "--after", "2026-06-01..", "--csv"],
    ];
    for question in questions {
        let said = |more: &[&str]| {
            let ended = lake(&[question, more].concat());
            assert_eq!(ended.code, 0, "{}", ended.stderr);
            ended.stderr
        };
        assert_eq!(said(&[]), "", "{question:?}");
        assert_eq!(said(&["--service", "nobody"]), "note: unknown service nobody; the lake has shop\n");
        for more in [["--service", "shop", "--host", "nobody"], ["--service", "shop", "--label", "a=b"]] {
            assert_eq!(said(&more), "note: no samples match\n", "{question:?} {more:?}");
        }
    }
    let said = lake(&["top", &path, "--since", "2026-11-02", "--json"]).stderr;
    assert_eq!(said, "note: no samples match\n");
    let said = lake(&["trend", &path, "mian"]).stderr;
    assert_eq!(said, "note: unknown function mian; borehole lake top lists function names\n");
}

#[test]
fn a_truncated_list_says_so() {
    let (_scratch, path) = with_trace();
    let stretches = ["--before", "..2026-06-01", "--after", "2026-06-01.."];
    for arguments in [&["top", &path][..], &[&["diff", &path][..], &stretches].concat()[..]] {
        let asked = |more: &[&str]| lake(&[arguments, more].concat());
        let all = lines(asked(&["--csv", "--limit", "0"]).quietly());
        assert!(all.len() > 3, "{all:?}");
        // A diff as a table or as JSON tells in itself how many there are.
        let forms = [&["--csv"][..], &[], &["--json"]];
        for more in forms.into_iter().take(if arguments[0] == "diff" { 1 } else { 3 }) {
            let cut = asked(&[more, &["--limit", "2"]].concat());
            assert_eq!(
                (cut.code, cut.stderr.as_str()),
                (0, "2 shown, and there are more; --limit 0 for all\n")
            );
            let rows = lines(cut.stdout).len() - usize::from(!more.contains(&"--json"));
            assert_eq!(rows, 2, "{more:?}");
        }
        let whole = (all.len() - 1).to_string();
        assert_eq!(lines(asked(&["--csv", "--limit", &whole]).quietly()), all, "no row is omitted");
    }
}

#[test]
fn places_that_cannot_hold_a_lake_are_reported() {
    let scratch = Scratch::new();
    let look = |place: &str| lake(&["info", "--only-look", place]);
    let missing = scratch.path("to/be/made");
    assert_eq!(look(text(&missing)).done(), b"");
    assert!(listing(scratch.folder()).is_empty(), "nothing is created");
    // No user can create anything there, nor inside a file.
    let file = scratch.write("file", b"");
    let within = file.join("lake");
    for (place, why) in
        [("/proc/nowhere/lake", "cannot create folders in /proc: "), (text(&within), "found the file ")]
    {
        let error = look(place).failed();
        assert!(error.starts_with(&format!("error: {place}")) && error.contains(why), "{error}");
    }
}

#[test]
fn mistakes_are_named() {
    let (scratch, path) = with_trace();
    let nowhere = text(&scratch.path("no;where")).to_owned();
    let error = lake(&["query", &nowhere, "SELECT 1"]).failed();
    let hint = format!("hint: run borehole lake add '{nowhere}' FILE... to create it\n");
    assert_eq!(error, format!("error: {nowhere}: no such lake\n{hint}"));
    let file = corpus("rbt/tiny_one.rbt");
    for arguments in [&["query", &file, "SELECT 1"][..], &["add", &file, &file], &["check", &file]] {
        let hint = format!("hint: run borehole lake add LAKE {file} to add it to a lake\n");
        let said = format!("error: {file}: expected a lake folder, found a file\n{hint}");
        assert_eq!(lake(arguments).failed(), said, "{arguments:?}");
    }
    let error = lake(&["query", &path, "SELECT nothing FROM samples"]).failed();
    assert!(error.starts_with("error: ") && error.contains("nothing"), "{error}");
    let stretches = ["--before", "..2026-06-01", "--after", "2026-06-01.."];
    for arguments in
        [&["top", &path][..], &["trend", &path, "main"], &[&["diff", &path][..], &stretches].concat()[..]]
    {
        let error = lake(&[arguments, &["--focus", "a("]].concat()).failed();
        assert_eq!(
            error, "error: cannot use --focus: invalid pattern 'a(': unclosed group\n",
            "{arguments:?}"
        );
    }
    let error = lake(&["query", &path, "SELECT contains_function(stack, 'a(') FROM stacks"]).failed();
    assert_eq!(error, "error: invalid pattern 'a(': unclosed group\n");
    let error = lake(&["query", &path, "DROP TABLE samples"]).failed();
    assert!(error.contains("DDL not supported"), "{error}");
    let error = lake(&["top", "gopher://somewhere/lake"]).failed();
    assert!(error.contains("gopher://somewhere/lake"), "{error}");
    let ended = lake(&["add", &path, "nowhere.rbt", &corpus("rbt/tiny_one.rbt")]);
    assert_eq!(
        (ended.code, ended.stderr.lines().next()),
        (2, Some("error: nowhere.rbt: no such file or directory"))
    );
    assert!(String::from_utf8(ended.stdout).unwrap().contains("tiny_one.rbt: "), "the others are added");
}

#[test]
fn damaged_files_are_added_as_far_as_readable() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let ended = lake(&["add", &path, &corpus("rbt/bitflip_middle.rbt"), "--json"]);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&told["samples"], &told["lost_bytes"]), (&Value::from(18), &Value::from(9)));
    let losses = objects(lake(&["query", &path, "SELECT lost_bytes FROM sources", "--json"]));
    assert_eq!(losses[0]["lost_bytes"], 9);
}

#[test]
fn a_full_disk_leaves_the_lake_unchanged() {
    let scratch = Scratch::new();
    let disk = scratch.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=192k", "tmpfs"]).arg(&disk).status().unwrap();
    assert!(mounted.success(), "the test needs root to mount a small disk");
    let path = text(&disk.join("lake")).to_owned();
    let first = lake(&["add", &path, &corpus("rbt/daemon_worker.rbt")]).code;
    let big = scratch.path("big.folded");
    let stacks: String =
        (0..20_000).map(|n| format!("main;f{:x};g{:x} 1\n", n * 7919, n * 104_729)).collect();
    fs::write(&big, stacks).unwrap();
    let ended = lake(&["add", &path, text(&big)]);
    let samples = lake(&["query", &path, "SELECT sum(value) FROM samples", "--csv"]);
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    assert_eq!((first, ended.code), (0, 2), "{}", ended.stderr);
    assert!(ended.stderr.ends_with(": no space left on device\n"), "{}", ended.stderr);
    assert_eq!(lines(samples.done())[1], "30");
}

/// The number of times that a writer is killed.
const KILLS: u32 = 24;

#[test]
fn a_killed_writer_leaves_nothing_visible() {
    let (scratch, path) = with_trace();
    let big = scratch.path("big.folded");
    // A different input each time, so that none is added twice.
    let add = |number: u32| {
        let stacks: String = (0..60_000).map(|n| format!("main;f{};g{number}x{n} 1\n", n % 97)).collect();
        fs::write(&big, stacks).unwrap();
        let mut add = program(&["lake", "add", &path, text(&big), "--service", &format!("s{number}")]);
        add.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let count = || lines(lake(&["query", &path, "SELECT sum(value) FROM samples", "--csv"]).done()).remove(1);
    let of_added = |added: u32| (30 + 60_000 * added).to_string();
    let mut killer = Killer::new(KILLS, || assert!(add(0).wait().unwrap().success()));
    let mut added = 1;
    for kill in 1..=KILLS {
        let is_killed = killer.kill(add(kill));
        let count = count();
        let is_added = count == of_added(added + 1);
        assert!(is_added || (is_killed && count == of_added(added)), "{added}: {count}");
        added += u32::from(is_added);
    }
    killer.check();
    assert_eq!(lake(&["check", &path]).code, 0);
    // Files left behind do no harm.
    lake(&["compact", &path]).done();
    assert!(add(KILLS + 1).wait().unwrap().success());
    assert_eq!(count(), of_added(added + 1));
}

#[test]
fn killed_corrections_are_whole_or_absent() {
    let (scratch, path) = with_trace();
    let add = |service: &str| {
        let stacks: String = (0..20_000).map(|n| format!("main;{service};g{n} 1\n")).collect();
        let file = scratch.write(&format!("{service}.folded"), stacks.as_bytes());
        let at = ["--at", "2026-11-01", "--label", "version=1"];
        lake(&[&["add", &path, text(&file), "--service", service][..], &at].concat()).done();
    };
    add("kept");
    let start = |arguments: &[&str]| {
        let mut command = program(&[&["lake"], arguments].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let counts = || {
        let by_version = "SELECT label(labels, 'version') AS version, CAST(sum(value) AS BIGINT) AS n FROM samples \
                          WHERE service <> 'shop' GROUP BY 1 ORDER BY 1";
        lines(lake(&["query", &path, by_version, "--csv"]).done()).split_off(1)
    };
    add("wrong");
    let relabel = |number: u32| {
        let set = format!("version={}", number + 2);
        start(&["relabel", &path, "--set", &set, "--service", "kept"])
    };
    let mut killer = Killer::new(KILLS, || assert!(relabel(0).wait().unwrap().success()));
    let mut version = 2;
    for kill in 1..=KILLS {
        let is_killed = killer.kill(relabel(kill));
        let found = counts();
        let of = |version: u32| vec!["1,20000".to_owned(), format!("{version},20000")];
        let mut changed = [of(version), of(kill + 2)];
        changed.iter_mut().for_each(|rows| rows.sort());
        assert!(found == changed[1] || (is_killed && found == changed[0]), "{found:?} {changed:?}");
        version = if found == changed[1] { kill + 2 } else { version };
    }
    killer.check();
    let remove = || start(&["remove", &path, "--service", "wrong"]);
    let mut killer = Killer::new(KILLS, || assert!(remove().wait().unwrap().success()));
    add("wrong");
    for _ in 1..=KILLS {
        let is_killed = killer.kill(remove());
        let found = counts();
        let is_removed = found == [format!("{version},20000")];
        assert!(is_removed || (is_killed && found.len() == 2), "{found:?}");
        if is_removed {
            add("wrong");
        }
    }
    assert_eq!(lake(&["check", &path]).code, 0);
    lake(&["compact", &path]).done();
    assert!(remove().wait().unwrap().success());
    assert_eq!(counts(), [format!("{version},20000")]);
}

#[test]
fn percentiles_by_a_field_of_spans_are_the_documented_query() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    lake(&["add", &path, &corpus("trc/tokio/span_start.bin"), "--service", "shop"]).done();
    let docs = fs::read_to_string(borehole_testkit::project_file("docs/lake.md")).unwrap();
    let documented = docs.lines().find(|line| line.contains("approx_percentile_cont")).unwrap();
    // The spans of this trace have no route.
    let rows = objects(lake(&["query", &path, &documented.replace("'route'", "'operation'"), "--json"]));
    let p99: BTreeMap<_, _> =
        rows.iter().map(|row| (row["route"].as_str().unwrap(), row["p99_ns"].as_f64().unwrap())).collect();
    assert_eq!(p99["GetItem"], 5e6);
    // One of ten spans took half a second.
    assert!(p99["PutItem"] > 5e6 && p99["PutItem"] <= 5e8, "{p99:?}");
    assert_eq!(p99.len(), 2);
}

#[test]
fn killed_upgrades_go_on() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let copy = || {
        let copied = Command::new("cp").args(["-rT", &corpus("lake/version-3"), &path]).status().unwrap();
        assert!(copied.success());
    };
    let upgrade = || {
        let mut upgrade = program(&["lake", "upgrade", &path]);
        upgrade.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let sql = "SELECT labels['version'] AS version, CAST(sum(value) AS BIGINT) AS n FROM samples GROUP BY 1 ORDER BY 1";
    copy();
    let mut killer = Killer::new(KILLS, || assert!(upgrade().wait().unwrap().success()));
    let expected = lake(&["query", &path, sql, "--csv"]).done();
    for _ in 0..KILLS {
        fs::remove_dir_all(&path).unwrap();
        copy();
        killer.kill(upgrade());
        let refused = lake(&["query", &path, sql, "--csv"]);
        let is_upgraded = refused.code == 0;
        assert!(is_upgraded || refused.stderr.contains("borehole lake upgrade"), "{}", refused.stderr);
        lake(&["upgrade", &path]).done();
        assert_eq!(lake(&["query", &path, sql, "--csv"]).done(), expected);
        assert_eq!(lake(&["check", &path]).code, 0);
    }
    killer.check();
}

#[test]
fn a_file_counts_once_compressed_or_grown() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let count = || lines(lake(&["query", &path, "SELECT sum(value) FROM samples", "--csv"]).done()).remove(1);
    let stacks = |rows: usize| (0..rows).map(|row| format!("main;f{row} 1\n")).collect::<String>();
    let [file, other] = ["growing.folded", "other.folded"].map(|name| scratch.path(name));
    fs::write(&file, stacks(200)).unwrap();
    // Another file that begins alike.
    fs::write(&other, stacks(150) + "main;other 7\n").unwrap();
    lake(&["add", &path, text(&other), text(&file)]).done();
    assert_eq!(count(), "357");
    let compressed = scratch.path("growing.folded.gz");
    assert!(Command::new("gzip").args(["-k", text(&file)]).status().unwrap().success());
    assert!(lake(&["add", &path, text(&compressed)]).stderr.ends_with(": already added\n"));
    fs::write(&file, stacks(1000)).unwrap();
    let grown = lake(&["add", &path, text(&file)]);
    assert!(grown.stderr.contains("replaces the shorter file"), "{}", grown.stderr);
    assert_eq!(count(), "1157");
    fs::write(&file, stacks(3000)).unwrap();
    fs::remove_file(&compressed).unwrap();
    assert!(Command::new("gzip").args(["-k", text(&file)]).status().unwrap().success());
    fs::write(&file, stacks(2000)).unwrap();
    // Both in one command, the longer one last.
    lake(&["add", &path, text(&file), text(&compressed)]).done();
    assert_eq!(count(), "3157");
    let sources = lines(lake(&["query", &path, "SELECT count(*) FROM sources", "--csv"]).done());
    assert_eq!(sources[1], "2");
    assert!(lake(&["add", &path, text(&compressed)]).stderr.ends_with(": already added\n"));
}

#[test]
fn a_file_without_a_clock_ends_when_it_was_modified() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let trace = scratch.path("trace.rbt");
    fs::copy(corpus("rbt/multi_segment.rbt"), &trace).unwrap();
    let ended = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_793_534_400);
    fs::File::options().write(true).open(&trace).unwrap().set_modified(ended).unwrap();
    lake(&["add", &path, text(&trace)]).done();
    let sql = "SELECT max(time) AS last, min(time) < max(time) AS lasts FROM samples";
    let times = lines(lake(&["query", &path, sql, "--csv"]).done());
    assert_eq!(times[1], "2026-11-01T12:00:00Z,true");
}

#[test]
fn a_recording_goes_into_a_lake() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let script = scratch.write(
        "busy.php",
        b"<?php function spin($t) { while (microtime(true) < $t); } spin(microtime(true) + 1.0);",
    );
    let ended = run(&["record", "--lake", &path, "--service", "cli", "--", "php", text(&script)]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows = objects(lake(&[
        "query",
        &path,
        "SELECT sum(value) AS n, max(time) > min(time) AS timed, min(host) AS host FROM samples \
        JOIN stacks USING (stack_id) WHERE contains_function(stack, '^spin$')",
        "--json",
    ]));
    assert!(rows[0]["n"].as_i64().unwrap() > 10, "{rows:?}");
    assert_eq!(rows[0]["timed"], true);
    assert!(rows[0]["host"].is_string());
    assert_eq!(listing(scratch.folder()), ["busy.php", "lake"]);
}

#[test]
fn a_heap_may_be_added_from_a_pipe() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let heap = fs::read(corpus("php/heap/8.2.36.rdump")).unwrap();
    let ended = piped(&["lake", "add", &path, "-"], &heap);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let again = lake(&["add", &path, &corpus("php/heap/8.2.36.rdump")]);
    assert!(again.stderr.ends_with("already added\n"), "{}", again.stderr);
    let sql = "SELECT count(*) > 0 AS n, (SELECT name FROM sources) AS name FROM heaps WHERE kind = 'class'";
    let rows = objects(lake(&["query", &path, sql, "--json"]));
    assert_eq!((&rows[0]["n"], &rows[0]["name"]), (&Value::from(true), &Value::from("standard input")));
    let error = piped(&["lake", "add", &path, "-"], &heap[..heap.len() / 2]);
    assert!(!error.stderr.contains("/proc/") && error.stderr.contains("standard input"), "{}", error.stderr);
}

#[test]
fn closed_pipes_are_silent_and_full_outputs_are_named() {
    let (_scratch, path) = with_trace();
    let sql = "SELECT 'main;' || repeat('f', 100) || CAST(n AS VARCHAR), 1 FROM (SELECT unnest(range(0, 20000)) AS n)";
    let mut query = program(&["lake", "query", &path, sql, "--to", "folded"]);
    let mut child = query.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 16];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let full = lake(&["query", &path, sql, "--to", "folded", "-o", "/dev/full"]).failed();
    assert_eq!(full.lines().next(), Some("error: /dev/full: no space left on device"));
}

#[test]
fn queries_can_be_interrupted() {
    let (scratch, path) = with_trace();
    // A query that takes hours, but no memory.
    let sql = "SELECT 'main', CAST(sum(value % 7) AS BIGINT) FROM range(10000000000000)";
    let output = scratch.path("long.folded");
    let stopped = |arguments: &[&str]| {
        let mut query = program(&[&["lake", "query", &path, sql], arguments].concat());
        let mut child = query.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until_busy(&child);
        assert!(child.try_wait().unwrap().is_none(), "the query takes hours");
        // A shell that runs the tests in the background ignores Ctrl-C.
        let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(ended.success());
        child.wait_with_output().unwrap()
    };
    assert_eq!(stopped(&[]).status.signal(), Some(15), "nothing is partly done");
    let ended = Ended::from(stopped(&["-o", text(&output)]));
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "interrupted: nothing was written\n"));
    assert_eq!(listing(scratch.folder()), ["lake"]);
}

#[test]
fn results_without_stacks_are_not_written_as_profiles() {
    let (scratch, path) = with_trace();
    let output = scratch.path("changes.folded");
    let stretches = ["--before", "..2026-06-01", "--after", "2026-06-01.."];
    let arguments = [&["diff", &path][..], &stretches, &["-o", text(&output)]].concat();
    assert!(lake(&arguments).failed().contains("expected a name that ends in .svg or .html"));
    assert!(
        lake(&["trend", &path, "main", "--to", "folded"]).failed().contains("unexpected argument '--to'")
    );
    let error = lake(&["query", &path, "SELECT 'x', 2.7", "--to", "folded"]).failed();
    assert!(error.contains("a column of whole numbers") && error.contains("CAST(... AS BIGINT)"), "{error}");
}

#[test]
fn objects_have_a_member_for_each_column() {
    let (_scratch, path) = with_trace();
    let sql = "SELECT a.value, b.value FROM samples a, samples b LIMIT 1";
    let error = lake(&["query", &path, sql, "--json"]).failed();
    assert!(error.contains("found two called value"), "{error}");
    assert_eq!(lines(lake(&["query", &path, sql, "--csv"]).quietly())[0], "value,value");
}

#[test]
fn times_before_1970_are_shown() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let old = scratch.write("old.folded", b"main 1\n");
    lake(&["add", &path, text(&old), "--at", "1969-12-31"]).done();
    let info = String::from_utf8(lake(&["info", &path]).quietly()).unwrap();
    assert!(info.contains("1969-12-31T00:00:00Z 1969-12-31T00:00:00Z"), "{info}");
}

#[test]
fn checking_a_lake_creates_nothing() {
    let (scratch, path) = with_trace();
    let nowhere = scratch.path("nowhere");
    for place in [path.as_str(), text(&nowhere)] {
        assert_eq!(lake(&["info", "--only-look", place]).quietly(), b"");
    }
    assert!(!nowhere.exists());
    let error = lake(&["info", "--only-look", "gopher://somewhere/lake"]).failed();
    assert!(error.contains("gopher://somewhere/lake"), "{error}");
}

#[test]
fn names_in_a_lake_are_escaped_for_terminals() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    let file = scratch.write("esc\x1b[31mred\nx.folded", b"main 1\n");
    let service = "shop\x1b]0;title\x07\u{202e}";
    let added = lake(&["add", &path, text(&file), "--service", service, "--at", "2026-11-01T12:00Z"]).done();
    let info = lake(&["info", &path]).quietly();
    let [added, info] = [added, info].map(|said| String::from_utf8(said).unwrap());
    assert!(!added.contains(['\x1b', '\u{202e}']) && added.lines().count() == 1, "{added:?}");
    assert!(info.contains(r"services: shop\x1b]0;title\x07\u{202e}"), "{info:?}");
}

/// An S3 server with a bucket called `fleet`; it ends with the test.
pub(crate) struct S3 {
    child: std::process::Child,
    pub(crate) address: String,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl S3 {
    pub(crate) fn start() -> Option<Self> {
        let peer = borehole_testkit::peers::peer("s3")?;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = peer.command();
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { child, address: format!("127.0.0.1:{port}") };
        wait_for(|| server.request("PUT /fleet").filter(|answer| answer.contains(" 200 ")));
        Some(server)
    }

    /// The head of the server's answer.
    fn request(&self, what: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let head = format!(
            "{what} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    pub(crate) fn lake(&self, arguments: &[&str]) -> Ended {
        Self::lake_at(&self.address, arguments)
    }

    /// Runs the program with the storage at `address`.
    pub(crate) fn lake_at(address: &str, arguments: &[&str]) -> Ended {
        let mut command = program(&[&["lake"], arguments].concat());
        let_in(&mut command, address);
        command.output().unwrap().into()
    }

    /// Sets a program's credentials for the server.
    pub(crate) fn let_in(&self, command: &mut Command) {
        let_in(command, &self.address);
    }
}

fn let_in(command: &mut Command, address: &str) {
    let endpoint = format!("http://{address}");
    let settings = [
        ("ACCESS_KEY_ID", "someone"),
        ("SECRET_ACCESS_KEY", SECRET),
        ("REGION", "us-east-1"),
        ("ENDPOINT", &endpoint),
    ];
    command.envs(settings.map(|(key, value)| (format!("AWS_{key}"), value))).env("AWS_ALLOW_HTTP", "true");
}

const SECRET: &str = "never to be printed";

/// Uses a lake at `place` as fleets do: two programs add to it at once, one of them twice, and then it is compacted.
pub(crate) fn assert_is_of_use(place: &str, lake: impl Fn(&[&str]) -> Ended + Sync) {
    let [trace, labelled] = ["rbt/daemon_worker.rbt", "rbt/annotations.rbt"].map(corpus);
    thread::scope(|scope| {
        // Both try to create the same commits.
        for (file, service) in [(&trace, "shop"), (&labelled, "a=b/../c")] {
            let lake = &lake;
            scope.spawn(move || {
                lake(&["add", place, file, "--service", service, "--at", "2026-11-01"]).done()
            });
        }
    });
    assert!(lake(&["add", place, &trace]).stderr.ends_with("already added\n"));
    let expected = ["service,sum(samples.value)", "a=b/../c,12", "shop,30"];
    assert_eq!(lines(lake(&["query", place, SERVICES, "--csv"]).quietly()), expected);
    lake(&["compact", place]).done();
    assert_eq!(lines(lake(&["query", place, SERVICES, "--csv"]).quietly()), expected);
    assert_eq!(lake(&["check", place]).code, 0);
}

const SERVICES: &str = "SELECT service, sum(value) FROM samples GROUP BY service ORDER BY service";

#[test]
fn a_lake_may_be_in_s3() {
    let Some(server) = S3::start() else { return };
    assert_is_of_use("s3://fleet/some/lake", |arguments| server.lake(arguments));
    let error = server.lake(&["query", "s3://elsewhere/lake", SERVICES]).failed();
    assert!(
        error.starts_with("error: s3://elsewhere/lake/_lake/states: ") && !error.contains(SECRET),
        "{error}"
    );
}

#[test]
fn other_engines_read_the_files() {
    let Some(duckdb) = borehole_testkit::peers::peer("duckdb") else { return };
    let (_scratch, path) = with_trace();
    lake(&["add", &path, &corpus("rbt/annotations.rbt"), "--service", "a=b", "--at", "2026-11-02"]).done();
    let ours = "SELECT service, sum(value) AS n, array_to_string(stack, ';') AS stack FROM profiles \
                GROUP BY service, stack ORDER BY service, stack, n";
    let theirs = format!(
        "SELECT service, sum(value) AS n, array_to_string(stack, ';') AS stack \
         FROM read_parquet('{path}/samples/**/*.parquet', hive_partitioning = false) \
         JOIN (SELECT DISTINCT ON (stack_id) * FROM read_parquet('{path}/stacks/**/*.parquet')) USING (stack_id) GROUP BY service, stack ORDER BY service, stack, n"
    );
    let expected = objects(lake(&["query", &path, ours, "--json"]));
    let answer = duckdb.command().arg(theirs).output().unwrap();
    let mut rows: Vec<Value> =
        lines(answer.stdout).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.pop().unwrap()["seconds"].is_number());
    assert!(expected.len() > 2);
    assert_eq!(rows, expected);
}

#[test]
fn duckdb_opens_a_lake_by_its_views() {
    let Some(duckdb) = borehole_testkit::peers::peer("duckdb") else { return };
    let (_scratch, path) = with_trace();
    // A second writer writes the same stacks again.
    let again = ["--service", "again", "--at", "2026-11-02", "--label", "version=2", "--from", "rbt"];
    let mut bytes = fs::read(corpus("rbt/annotations.rbt")).unwrap();
    bytes.extend(fs::read(corpus("rbt/daemon_worker.rbt")).unwrap());
    let both = std::path::Path::new(&path).join("both.rbt");
    fs::write(&both, bytes).unwrap();
    lake(&[&["add", &path, text(&both)][..], &again].concat()).done();
    let views = String::from_utf8(lake(&["info", &path, "--duckdb"]).done()).unwrap();
    let sql = "SELECT service, leaf(stack) AS leaf, label(labels, 'version') AS version, CAST(sum(value) AS BIGINT) AS n \
               FROM samples JOIN stacks USING (stack_id) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";
    let expected = objects(lake(&["query", &path, sql, "--json"]));
    let answer = duckdb.command().arg(views).arg(sql).output().unwrap();
    let mut rows: Vec<Value> =
        lines(answer.stdout).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        rows.pop().is_some_and(|last| last["seconds"].is_number()),
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    assert!(expected.len() > 2);
    assert_eq!(rows, expected);
}

#[test]
fn other_programs_read_a_lake_by_a_ducklake_catalog() {
    let Some(ducklake) = borehole_testkit::peers::peer("ducklake") else { return };
    let (scratch, path) = with_trace();
    let more = ["--service", "a=b", "--at", "2026-11-02", "--label", "version=2"];
    lake(&[&["add", &path, &corpus("rbt/annotations.rbt")][..], &more].concat()).done();
    let tables = String::from_utf8(lake(&["info", &path, "--ducklake"]).done()).unwrap();
    let catalog = text(&scratch.path("catalog.ducklake")).to_owned();
    let make = format!("ATTACH 'ducklake:{catalog}' AS lake (DATA_PATH '{path}')");
    assert!(ducklake.command().args([&make, &tables, "SELECT 1"]).output().unwrap().status.success());
    let sql = |prefix: &str| {
        format!(
            "SELECT service, stack[-1] AS leaf, labels['version'] AS version, CAST(sum(value) AS BIGINT) AS n \
             FROM {prefix}samples JOIN {prefix}stacks USING (stack_id) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
    };
    let expected = objects(lake(&["query", &path, &sql(""), "--json"]));
    // A program that is not told which files there are.
    let open = format!("ATTACH 'ducklake:{catalog}' AS lake (READ_ONLY)");
    let answer = ducklake.command().args([open, sql("lake.")]).output().unwrap();
    let mut rows: Vec<Value> =
        lines(answer.stdout).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.pop().is_some(), "{}", String::from_utf8_lossy(&answer.stderr));
    assert!(expected.len() > 2);
    assert_eq!(rows, expected);
}

#[test]
fn help_has_examples() {
    let help = String::from_utf8(lake(&["--help"]).done()).unwrap();
    for command in [
        "add",
        "query",
        "top",
        "diff",
        "trend",
        "info",
        "check",
        "compact",
        "retain",
        "remove",
        "relabel",
        "symbolize",
        "upgrade",
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
    }
    assert!(String::from_utf8(lake(&["query", "--help"]).done()).unwrap().contains("Examples:"));
}

#[test]
fn versions_are_compared_and_grouped() {
    let scratch = Scratch::new();
    let path = text(&scratch.path("lake")).to_owned();
    for (version, stacks) in
        [("1", "main;query 900\nmain;render 100\n"), ("2", "main;query 100\nmain;render 900\n")]
    {
        let file = scratch.write(&format!("{version}.folded"), stacks.as_bytes());
        let label = format!("service.version={version}");
        lake(&["add", &path, text(&file), "--service", "shop", "--label", &label, "--at", "2026-11-01"])
            .done();
    }
    let top = objects(lake(&["top", &path, "--by", "version", "--focus", "query", "--json"]));
    let found = top.iter().map(|row| {
        let number = |name: &str| row[name].as_i64().unwrap();
        (row["version"].as_str().unwrap(), number("value"), number("focused"))
    });
    assert_eq!(found.collect::<Vec<_>>(), [("1", 1000, 900), ("2", 1000, 100)]);
    let of_two = objects(lake(&["top", &path, "--label", "version=2", "--json", "--limit", "0"]));
    assert_eq!((of_two[0]["function"].as_str(), of_two[0]["self"].as_i64()), (Some("render"), Some(900)));
    let versions = ["--before", "version=1", "--after", "version=2", "--fail-over", "5%"];
    let compared = lake(&[&["diff", &path, "--json"][..], &versions].concat());
    assert_eq!(compared.code, 1, "{}", compared.stderr);
    let object: Value = serde_json::from_slice(&compared.stdout).unwrap();
    assert_eq!(object["failed"]["what"], "render (self)");
    let [one, two] = ["1.folded", "2.folded"].map(|name| text(&scratch.path(name)).to_owned());
    let files = run(&["diff", &one, &two, "--json"]).done();
    let files: Value = serde_json::from_slice(&files).unwrap();
    assert_eq!(object["functions"], files["functions"], "as borehole diff has it");
}
