//! `report`, compared with counts of our own on the output of reli's converter.

use std::collections::{BTreeMap, BTreeSet};

use borehole_testkit::{Scratch, read_corpus};
use serde_json::Value;

use crate::program::{corpus, run, text};

/// Traces without names that do not fit in folded stacks.
const TRACES: [&str; 8] = [
    "annotations.rbt",
    "checkpoint_1000.rbt",
    "daemon_worker.rbt",
    "deep_500.rbt",
    "gzip_members.rbt.gz",
    "lineno_negative.rbt",
    "rle_heavy.rbt",
    "zero_depth.rbt",
];

/// Samples by frame.
type Counts = BTreeMap<String, u64>;

/// Stacks, root first, and their numbers of samples.
fn stacks(trace: &str) -> Vec<(Vec<String>, u64)> {
    let text = String::from_utf8(read_corpus(&format!("rbt/expected/conv/{trace}.folded"))).unwrap();
    let stack = |line: &str| {
        let (frames, count) = line.rsplit_once(' ').unwrap();
        let frames = frames.split(';').filter(|frame| !frame.is_empty());
        (frames.map(str::to_owned).collect(), count.parse().unwrap())
    };
    text.lines().map(stack).collect()
}

/// Self and total counts, with each frame counted once per sample.
fn counted(stacks: &[(Vec<String>, u64)]) -> [Counts; 2] {
    let [mut by_self, mut by_total] = [Counts::new(), Counts::new()];
    for (frames, count) in stacks {
        if let Some(leaf) = frames.last() {
            *by_self.entry(leaf.clone()).or_default() += count;
        }
        for frame in frames.iter().collect::<BTreeSet<_>>() {
            *by_total.entry(frame.clone()).or_default() += count;
        }
    }
    [by_self, by_total]
}

fn report(options: &[&str]) -> Value {
    serde_json::from_slice(&run(&[&["report", "--json", "--all"], options].concat()).done()).unwrap()
}

fn reported(table: &Value) -> Counts {
    let row = |row: &Value| (row["frame"].as_str().unwrap().to_owned(), row["count"].as_u64().unwrap());
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn self_and_total_are_what_folded_stacks_of_reli_add_up_to() {
    for trace in TRACES {
        let stacks = stacks(trace);
        let report = report(&[&corpus(&format!("rbt/{trace}"))]);
        let [by_self, by_total] = counted(&stacks);
        assert_eq!(reported(&report["self"]), by_self, "{trace}");
        assert_eq!(reported(&report["total"]), by_total, "{trace}");
        let samples: u64 = stacks.iter().map(|(_, count)| count).sum();
        assert_eq!(report["summary"]["samples"], samples, "{trace}");
    }
}

#[test]
fn match_keeps_samples_and_hide_drops_frames_before_counting() {
    let trace = "gzip_members.rbt.gz";
    let file = corpus(&format!("rbt/{trace}"));
    let with = |text: &str| {
        stacks(trace)
            .into_iter()
            .filter(|(frames, _)| frames.iter().any(|frame| frame.contains(text)))
            .collect::<Vec<_>>()
    };
    let matching = with("PDO::query");
    let kept = report(&[&file, "--match", "PDO::query"]);
    assert_eq!([reported(&kept["self"]), reported(&kept["total"])], counted(&matching));
    assert!(kept["summary"]["matched"].as_u64() < kept["summary"]["samples"].as_u64());
    let mut shown = stacks(trace);
    for (frames, _) in &mut shown {
        frames.retain(|frame| !frame.contains("PDO"));
    }
    let hidden = report(&[&file, "--hide", "PDO"]);
    assert_eq!([reported(&hidden["self"]), reported(&hidden["total"])], counted(&shown));
}

#[test]
fn callers_and_callees_are_neighbours_of_matches() {
    let trace = "daemon_worker.rbt";
    let [mut callers, mut callees] = [Counts::new(), Counts::new()];
    for (frames, count) in stacks(trace) {
        for pair in frames.windows(2) {
            if pair[1].contains("UserRepo::find") {
                *callers.entry(pair[0].clone()).or_default() += count;
            }
            if pair[0].contains("UserRepo::find") {
                *callees.entry(pair[1].clone()).or_default() += count;
            }
        }
    }
    assert!(!callers.is_empty() && !callees.is_empty());
    let file = corpus(&format!("rbt/{trace}"));
    let report = report(&[&file, "--callers", "UserRepo::find", "--callees", "UserRepo::find"]);
    assert_eq!(reported(&report["callers"]), callers);
    assert_eq!(reported(&report["callees"]), callees);
}

#[test]
fn samples_are_broken_down_by_process_and_label() {
    let by = |what: &str| {
        let report = report(&[&corpus("rbt/pid_samples.rbt"), "--by", what]);
        let rows = report["by"]["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["count"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(by("pid"), [5, 5, 5, 5]);
    assert_eq!(by("req").iter().sum::<u64>(), 20);
}

#[test]
fn mapped_paths_are_used_in_every_table() {
    let file = corpus("rbt/daemon_worker.rbt");
    let report = report(&[&file, "--by", "file", "--path-map", "/app=/home/me"]);
    let rows = report["by"]["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().filter_map(|row| row["file"].as_str().or(row["name"].as_str())).collect();
    assert!(names.iter().any(|name| name.starts_with("/home/me/")), "{report}");
    assert!(names.iter().all(|name| !name.starts_with("/app/")), "{report}");
}

#[test]
fn the_json_has_a_version_and_the_text_says_what_it_omits() {
    let file = corpus("rbt/realistic_54k.rbt.gz");
    assert_eq!(report(&[&file])["schema_version"], 1);
    let text = String::from_utf8(run(&["report", "--top", "3", &file]).done()).unwrap();
    assert!(text.contains("(3 of 1,538 shown; --all for all)"), "{text}");
}

#[test]
fn a_bad_pattern_is_named_with_its_option() {
    let error = run(&["report", &corpus("rbt/native.rbt"), "--callers", "("]).failed();
    assert_eq!(error, "error: cannot use --callers: invalid pattern '(': unclosed group\n");
}

#[test]
fn no_period_is_shown_for_a_profile_without_one() {
    let ended = run(&["report", &corpus("pprof/go-heap.pb.gz")]);
    assert!(
        ended.stderr.starts_with("trace: 1.66 MiB inuse_space in 28 records, 28 matched\n"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("sampling period"), "{}", ended.stderr);
}

#[test]
fn states_of_python_threads_are_shown_by_function() {
    let report = |name: &str| -> Value {
        let file = corpus(&format!("tachyon/corpus/{name}.bin"));
        let report = run(&["report", "--json", "--all", "--no-line", &file]).done();
        serde_json::from_slice(&report).unwrap()
    };
    for name in ["35_mode_all_contention", "36_mode_all_exceptions", "34_subinterp_native_gc_opcodes"] {
        let file = corpus(&format!("tachyon/corpus/{name}.bin"));
        let dump = String::from_utf8(run(&["dump", "--flat", &file]).done()).unwrap();
        let lines = dump.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let samples: Vec<_> = lines.filter(|line| line["type"] == "sample").collect();
        let report = report(name);
        let rows = report["states"]["rows"].as_array().unwrap();
        assert!(rows.len() > 3, "{name}");
        for row in rows {
            // Without lines, functions of the same name are merged.
            let is_it = |frame: &Value| frame["function"] == row["function"];
            let has = |sample: &&Value| sample["frames"].as_array().unwrap().iter().any(is_it);
            let on_stack: Vec<_> = samples.iter().filter(has).collect();
            assert_eq!(row["count"], on_stack.len(), "{name} {row}");
            for state in ["has_gil", "on_cpu", "gil_requested", "has_exception"] {
                let is_in =
                    |sample: &&&Value| sample["status"].as_array().unwrap().iter().any(|flag| flag == state);
                let share = on_stack.iter().filter(is_in).count() as f64 * 100.0 / on_stack.len() as f64;
                // If the CPU was not observed, nothing is shown about it.
                assert_eq!(row[state].as_f64().unwrap_or(0.0), share, "{name} {state} {row}");
            }
            let collects = |frame: &Value| frame["function"] == "<GC>";
            let in_gc = |sample: &&&Value| sample["frames"].as_array().unwrap().iter().any(collects);
            let share = on_stack.iter().filter(in_gc).count() as f64 * 100.0 / on_stack.len() as f64;
            assert_eq!(row["in_gc"].as_f64(), Some(share), "{name} {row}");
        }
    }
    // This mode does not observe the CPU.
    let wall = report("05_threads20_none");
    assert!(wall["states"]["rows"][0].get("on_cpu").is_none());
    assert_eq!(wall["summary"]["samples_at_depth_limit"], 0);
    assert_eq!(report("03_rec300_none")["summary"]["samples_at_depth_limit"], 1423);
    let text = run(&["report", &corpus("tachyon/corpus/03_rec300_none.bin")]);
    assert!(text.stderr.contains("1,423 samples at the limit of 256 frames"), "{}", text.stderr);
    let text = String::from_utf8(text.done()).unwrap();
    assert!(text.contains("# states of threads") && !text.contains("_sync_coordinator"), "{text}");
}

#[test]
fn pages_and_times_take_the_shapes_of_stacks() {
    let file = corpus("rbt/annotations_ts.rbt");
    let all = report(&[&file]);
    let samples = |options: &[&str]| {
        let json = run(&[&["report", "--json", &file], options].concat()).done();
        let json: Value = serde_json::from_slice(&json).unwrap();
        json["timeline"]["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["samples"].as_u64().unwrap())
            .sum::<u64>()
    };
    let wanted = all["self"]["rows"][0]["frame"].as_str().unwrap();
    let function = wanted.split(' ').next().unwrap().replace('\\', r"\\");
    let matching = report(&[&file, "--match", &function])["summary"]["matched"].as_u64().unwrap();
    assert!(matching < all["summary"]["samples"].as_u64().unwrap());
    assert_eq!(samples(&["--timeline", "--match", &function]), matching);
    assert_eq!(samples(&["--timeline", "--focus", &function]), matching);
    let folder = borehole_testkit::Scratch::new();
    let page = folder.path("page.html");
    let written = |options: &[&str]| {
        let output = ["report", &file, "--force", "-o", page.to_str().unwrap()];
        run(&[&output[..], options].concat()).done();
        std::fs::read_to_string(&page).unwrap()
    };
    let name = wanted.split(' ').next().unwrap().replace('\\', r"\\");
    assert!(written(&[]).contains(&name), "{name}");
    assert!(!written(&["--hide", &format!("^{function}")]).contains(&name), "{name}");
}

#[test]
fn the_profiler_of_python_is_left_out_with_lines_and_without() {
    let file = corpus("tachyon/corpus/02_cpu_zstd.bin");
    let dumped = String::from_utf8(run(&["dump", &file]).done()).unwrap();
    let lines = dumped.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
    for stack in lines.filter(|line| line["type"] == "stack") {
        for frame in stack["frames"].as_array().unwrap() {
            let is_own = frame["file"].as_str().is_some_and(|file| file.ends_with("_sync_coordinator.py"));
            let name = frame["function"].as_str().unwrap().to_owned();
            if is_own {
                own.insert(name)
            } else {
                others.insert(name)
            };
        }
    }
    let own: BTreeSet<_> = own.difference(&others).collect();
    assert!(!own.is_empty());
    for options in [&[][..], &["--no-line"]] {
        let names = reported(&report(&[&[&*file], options].concat())["total"]);
        let function = |name: &String| name.split(' ').next().unwrap().to_owned();
        assert!(names.keys().map(function).all(|name| !own.contains(&name)), "{options:?}: {names:?}");
    }
}

#[test]
fn outputs_without_tables_refuse_table_options() {
    let scratch = borehole_testkit::Scratch::new();
    let page = scratch.path("page.html");
    let trace = corpus("rbt/daemon_worker.rbt");
    let tables = [&["--callers", "f"][..], &["--by", "thread"], &["--last=3"], &["--sections", "self"]];
    for options in tables.into_iter().chain([&["--top", "3"][..], &["--all"]]) {
        let output = ["report", "-o", page.to_str().unwrap(), &trace];
        let refused = run(&[&output[..], options].concat()).failed();
        assert!(refused.contains("cannot be used with"), "{refused}");
        assert!(!page.exists());
    }
    for (view, options) in
        ["--timeline", "--heatmap"].into_iter().flat_map(|view| tables.map(|of| (view, of)))
    {
        let refused = run(&[&["report", view, &trace][..], options].concat()).failed();
        assert!(refused.contains("cannot be used with"), "{refused}");
    }
}

#[test]
fn a_page_of_the_samples_that_were_chosen_is_a_page() {
    let scratch = Scratch::new();
    let threads = corpus("tachyon/corpus/05_threads20_none.bin");
    let lines = String::from_utf8(run(&["dump", &threads]).quietly()).unwrap();
    let sample = lines.lines().find(|line| line.contains("\"tid\":")).unwrap();
    let thread = serde_json::from_str::<Value>(sample).unwrap()["tid"].to_string();
    let roots = scratch.write("roots.folded", b"a;b 0\nc;d 5\n");
    let cases: [&[&str]; 2] = [&[&threads, "--thread", &thread], &[text(&roots)]];
    for arguments in cases {
        let page = scratch.path("page.html");
        run(&[&["report", "--force", "-o", text(&page)], arguments].concat()).done();
        assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!"), "{arguments:?}");
    }
}

#[test]
fn sections_that_need_options_are_refused_without_them() {
    let trace = corpus("rbt/native.rbt");
    let unanswered = [
        ("callers", "--callers"),
        ("callees+by", "--callees"),
        ("tail", "--last"),
        ("by", "--by"),
        (",", "section"),
    ];
    for (section, option) in unanswered {
        let said = run(&["report", &trace, "--sections", section]).failed();
        assert!(said.starts_with(&format!("error: missing {option}: ")), "{said}");
    }
    run(&["report", &trace, "--sections", "self,callers", "--callers", "."]).done();
    // The table of --by is printed even if it is not among the sections; JSON has none.
    let by = run(&["report", &trace, "--by", "pid", "--sections", "callers"]).done();
    assert_eq!(by, run(&["report", &trace, "--by", "pid", "--sections", "by"]).done());
    let json = |sections: &[&str]| run(&[&["report", &trace, "--json"], sections].concat()).done();
    assert_eq!(json(&["--sections", "callers"]), json(&[]));
}

#[test]
fn columns_of_a_timeline_have_their_stated_length() {
    let sample = |thread: u32, seconds: u64| {
        let time_ns = seconds * 1_000_000_000;
        format!(r#"{{"type":"sample","frames":[{{"function":"main"}}],"time_ns":{time_ns},"tid":{thread}}}"#)
    };
    // The thread that began last is stored first.
    let lines = [
        r#"{"type":"segment","format":"jsonl","index":0,"period_us":10000,"has_times":true}"#.to_owned(),
        sample(11, 100),
        sample(11, 101),
        sample(12, 0),
        sample(12, 1),
        r#"{"type":"end","samples":4,"events":0,"lost_bytes":0,"warnings":[]}"#.to_owned(),
    ];
    let scratch = borehole_testkit::Scratch::new();
    let path = scratch.path("threads.jsonl");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let shown = String::from_utf8(run(&["report", "--timeline", path.to_str().unwrap()]).done()).unwrap();
    let head: Vec<_> = shown.lines().next().unwrap().split(' ').collect();
    let [start, end, column] = [2, 4, 6].map(|word| head[word].parse::<f64>().unwrap());
    let bars = shown.lines().nth(1).unwrap().split('|').nth(1).unwrap().chars().count();
    assert!(start < -99.0 && end > 1.0, "{shown}");
    #[expect(clippy::cast_precision_loss, reason = "some dozens")]
    let columns = (end - start) / column - bars as f64;
    assert!(columns.abs() < 0.1, "{shown}");
}
