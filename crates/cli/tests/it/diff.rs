//! Comparing profiles, as users and CI pipelines do.

use std::fs;

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::program::{corpus, run, text};

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&run(&[&["diff", "--json"], arguments].concat()).done()).unwrap()
}

fn row<'j>(diff: &'j Value, function: &str) -> &'j Value {
    diff["functions"]["rows"].as_array().unwrap().iter().find(|row| row["function"] == function).unwrap()
}

#[test]
fn lines_fit_eighty_columns_whatever_the_names() {
    let (one, other) = (corpus("tachyon/corpus/26_realapp_zstd.bin"), corpus("rbt/deep_500.rbt"));
    let mut command = crate::program::program(&["diff", &one, &other]);
    let output = command.env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{}: {line}", line.chars().count());
    }
    assert!(text.contains("(new)") && text.contains("(gone)"), "{text}");
}

#[test]
fn two_runs_of_the_same_program_have_no_mark_and_two_programs_have_many() {
    let [first, second, other] = ["26_realapp_zstd", "27_realapp_none", "02_cpu_zstd"]
        .map(|name| corpus(&format!("tachyon/corpus/{name}.bin")));
    let marked = |diff: &Value| {
        let rows = diff["functions"]["rows"].as_array().unwrap().iter();
        rows.filter(|row| row["self"]["significant"] == true || row["total"]["significant"] == true).count()
    };
    assert_eq!(marked(&json(&["--limit", "0", &first, &second])), 0);
    assert!(marked(&json(&["--limit", "0", &first, &other])) > 20);
}

#[test]
fn a_profile_is_equal_to_itself_in_every_format() {
    let folder = Scratch::new();
    let original = corpus("tachyon/corpus/26_realapp_zstd.bin");
    for name in ["a.rbt", "a.pb.gz", "a.folded", "a.speedscope.json", "a.jsonl", "a.bin"] {
        let copy = folder.path(name);
        run(&["convert", &original, "-o", text(&copy)]).done();
        let diff = json(&["--limit", "0", "--key", "function", &original, text(&copy)]);
        for row in diff["functions"]["rows"].as_array().unwrap() {
            assert_eq!(row["self"]["before"]["samples"], row["self"]["after"]["samples"], "{name}: {row}");
            assert_eq!(row["total"]["change"], 0.0, "{name}: {row}");
        }
    }
}

#[test]
fn a_crossed_threshold_exits_with_1_and_names_the_function() {
    let folder = Scratch::new();
    let before = folder.write("before.folded", b"main;pay;slow 100\nmain;idle 900\n");
    let after = folder.write("after.folded", b"main;pay;slow 200\nmain;idle 800\n");
    let (before, after) = (text(&before), text(&after));
    let ended = run(&["diff", before, after, "--fail-over", "5%"]);
    assert_eq!(
        (ended.code, ended.stderr.trim()),
        (1, "failed: slow (self) grew by 10% of the whole; --fail-over allows 5%")
    );
    assert_eq!(run(&["diff", before, after, "--fail-over", "11%"]).code, 0);
    // In focus it doubled, and functions that shrank never fail the check.
    assert_eq!(run(&["diff", before, after, "--fail-over", "50%", "--focus", "^pay"]).code, 1);
    assert_eq!(run(&["diff", after, before, "--fail-over", "5%", "--focus", "^pay"]).code, 0);
    // Changes within the noise never fail the check.
    let noisy = folder.write("noisy.folded", b"main;pay;slow 11\nmain;idle 89\n");
    let less = folder.write("less.folded", b"main;pay;slow 9\nmain;idle 91\n");
    assert_eq!(run(&["diff", text(&less), text(&noisy), "--fail-over", "1%"]).code, 0);
}

#[test]
fn no_change_is_significant_against_an_empty_profile() {
    let folder = Scratch::new();
    let empty = folder.write("empty.folded", b"");
    let diff = json(&[text(&empty), &corpus("rbt/realistic_54k.rbt.gz")]);
    let rows = diff["functions"]["rows"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["self"]["significant"] == false), "{diff}");
}

#[test]
fn several_inputs_a_side_are_one_side_and_runs_are_compared_by_time() {
    let folder = Scratch::new();
    let trace = corpus("rbt/daemon_worker.rbt");
    let inputs: Vec<_> = (0..4).map(|number| folder.path(&format!("{number}.rbt"))).collect();
    for input in &inputs {
        fs::copy(&trace, input).unwrap();
    }
    let paths: Vec<_> = inputs.iter().map(|path| text(path)).collect();
    let sides = [&["--baseline"], &paths[..], &["--candidate"], &paths[..]].concat();
    let diff = json(&[&sides[..], &["--per", "input"]].concat());
    assert_eq!(
        (&diff["before"]["samples"], &diff["noise"]["between"], &diff["unit"]),
        (&120.into(), &"inputs".into(), &"seconds".into())
    );
    let whole = diff["whole"]["before"]["value"].as_f64().unwrap();
    assert!((whole - 0.30).abs() < 1e-9, "{whole}");
    assert!(row(&diff, "PDO::query")["self"]["change"] == 0.0);
}

#[test]
fn incomparable_profiles_are_refused_with_a_reason() {
    let trace = corpus("rbt/daemon_worker.rbt");
    let folded = Scratch::new();
    let folded = folded.write("a.folded", b"main 3\n");
    let error = run(&["diff", &trace, text(&folded), "--per", "request"]).failed();
    assert!(error.contains("missing label: expected samples with the label 'request'"), "{error}");
    let error = run(&["diff", &trace, text(&folded), "--per", "time"]).failed();
    assert!(error.contains("missing timestamps"), "{error}");
    // The duration of a side is unknown if only some of its samples have a time.
    let timed = corpus("tachyon/corpus/26_realapp_zstd.bin");
    let sides = ["diff", "--baseline", &timed, text(&folded), "--candidate", &timed, "--per", "time"];
    let error = run(&sides).failed();
    assert!(error.contains("missing timestamps"), "{error}");
    let error = run(&["diff", &trace, &trace, "-o", "x.png"]).failed();
    assert!(error.contains("expected a name that ends in .svg or .html"), "{error}");
    assert!(run(&["diff", &trace]).stderr.contains("2 values required"));
    let error = run(&["diff", "-", "-"]).failed();
    assert!(error.contains("expected standard input once, found it twice"), "{error}");
}

#[test]
fn a_redacted_profile_has_its_numbers_and_none_of_its_names() {
    let folder = Scratch::new();
    let original = corpus("tachyon/corpus/26_realapp_zstd.bin");
    let copies: Vec<_> = [("one", "a.folded"), ("one", "b.folded"), ("another", "c.folded")]
        .into_iter()
        .map(|(key, name)| {
            let copy = folder.path(name);
            run(&["convert", &original, "--redact", "--redact-key", key, "-o", text(&copy)]).done();
            fs::read_to_string(&copy).unwrap()
        })
        .collect();
    assert_eq!(copies[0], copies[1]);
    assert_ne!(copies[0], copies[2]);
    let plain = folder.path("plain.folded");
    run(&["convert", &original, "-o", text(&plain)]).done();
    let plain = fs::read_to_string(&plain).unwrap();
    for name in ["parse", "Unparser", "tokenizer", "realapp", "python"] {
        assert!(plain.contains(name) || name == "realapp" || name == "python", "{name}");
        assert!(!copies[0].contains(name), "{name}");
    }
    let counts = |text: &str| {
        let mut counts: Vec<u64> =
            text.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        counts.sort_unstable();
        counts
    };
    assert_eq!(counts(&plain), counts(&copies[0]));
}

#[test]
fn timelines_and_heat_maps_hold_every_sample() {
    let threads = corpus("tachyon/corpus/05_threads20_none.bin");
    let json: Value =
        serde_json::from_slice(&run(&["report", "--json", "--timeline", "--heatmap", &threads]).done())
            .unwrap();
    let sum = |lists: &Value, key: Option<&str>| -> u64 {
        let lists = lists.as_array().unwrap().iter().map(|list| key.map_or(list, |key| &list[key]));
        lists.flat_map(|list| list.as_array().unwrap()).map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!(sum(&json["timeline"]["threads"], Some("slices")), 17_138);
    assert_eq!(sum(&json["heat_map"]["columns"], None), 17_138);
    let text = String::from_utf8(run(&["report", "--timeline", "--heatmap", &threads]).done()).unwrap();
    assert!(text.contains("(20 of 21 threads shown; --all for all)") && text.contains('█'), "{text}");
    let none = run(&["report", "--timeline", &corpus("rbt/daemon_worker.rbt")]).done();
    assert_eq!(none, b"This profile has no timestamps, so there is no timeline or heat map. Record with --timestamps delta.\n");
}

#[test]
fn stacks_are_shaped_before_they_are_compared() {
    let folder = Scratch::new();
    let before = folder.write("before.folded", b"main;/srv/a/vendor/x.php;leaf 60\nmain;idle 40\n");
    let after = folder.write("after.folded", b"main;/srv/b/vendor/x.php;leaf 50\nmain;idle 50\n");
    let files = [text(&before), text(&after)];
    let functions = |options: &[&str]| -> Vec<String> {
        let diff = json(&[&["--limit", "0"], options, &files].concat());
        let rows = diff["functions"]["rows"].as_array().unwrap().iter();
        rows.map(|row| row["function"].as_str().unwrap().to_owned()).collect()
    };
    let has =
        |options: &[&str], name: &str| functions(options).iter().any(|function| function.contains(name));
    assert!(has(&[], "/srv/a/vendor") && has(&[], "main"));
    assert!(!has(&["--hide", "^main"], "main"));
    assert!(has(&["--collapse", "[lib]=vendor"], "[lib]") && !has(&["--collapse", "[lib]=vendor"], "/srv/a"));
    assert!(!has(&["--exclude", "^idle"], "idle"));
    // Shares in focus are still shares of all samples.
    let focus = json(&["--limit", "0", "--focus", "leaf", files[0], files[1]]);
    assert!((row(&focus, "leaf")["self"]["before"]["value"].as_f64().unwrap() - 0.6).abs() < 1e-9, "{focus}");
}

#[test]
fn a_threshold_is_crossed_in_whatever_format_the_sums_are_held() {
    let folder = Scratch::new();
    let before = folder.write("before.folded", b"slow 1000\nfast 9000\nother 500\n");
    let after = folder.write("after.folded", b"slow 2000\nfast 8000\nother 500\n");
    for format in ["folded", "pprof", "otlp", "speedscope", "rbt", "trc", "gecko", "tachyon"] {
        let [before, after] = [(&before, "before"), (&after, "after")].map(|(file, name)| {
            let copy = folder.path(&format!("{name}.{format}"));
            run(&["convert", text(file), "--to", format, "-o", text(&copy), "--force"]).done();
            text(&copy).to_owned()
        });
        let ended = run(&["diff", &before, &after, "--fail-over", "5%"]);
        assert_eq!(ended.code, 1, "{format}: {}", ended.stderr);
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(!said.contains("stretches of time"), "{format}: {said}");
    }
}
