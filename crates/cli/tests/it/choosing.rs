//! Selecting and labelling samples with `convert`.

use std::collections::BTreeMap;

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::program::{corpus, run, text};

/// The samples of a profile after a conversion with these options, as lines of JSON.
fn samples(options: &[&str], inputs: &[&str]) -> Vec<Value> {
    let command = [&["convert", "--to", "jsonl"], inputs, options].concat();
    let ended = run(&command);
    let lines = String::from_utf8(ended.stdout).unwrap();
    let values = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let samples: Vec<_> = values.filter(|line| line["type"] == "sample").collect();
    let is_noted =
        ended.stderr.starts_with("note: no samples match the filters ") && ended.stderr.lines().count() == 1;
    assert!(
        ended.code == 0 && if samples.is_empty() { is_noted } else { ended.stderr.is_empty() },
        "{}",
        ended.stderr
    );
    samples
}

#[test]
fn threads_interpreters_and_states_choose_samples() {
    let file = corpus("tachyon/corpus/09_subinterp.bin");
    let all = samples(&[], &[&file]);
    let count = |keep: &dyn Fn(&Value) -> bool| all.iter().filter(|sample| keep(sample)).count();
    let thread = all[0]["tid"].as_u64().unwrap();
    let interpreter = all.iter().map(|sample| sample["interpreter"].as_u64().unwrap()).max().unwrap();
    let is = |sample: &Value, key: &str, value: u64| sample[key] == value;
    let main = |sample: &Value| sample["status"].as_array().unwrap().contains(&"main_thread".into());
    for (options, expected) in [
        (["--thread", &thread.to_string()], count(&|sample| is(sample, "tid", thread))),
        (
            ["--interpreter", &interpreter.to_string()],
            count(&|sample| is(sample, "interpreter", interpreter)),
        ),
        (["--status", "main_thread"], count(&main)),
    ] {
        let found = samples(&options, &[&file]).len();
        assert!(found == expected && found > 0 && found < all.len(), "{options:?}: {found} of {}", all.len());
    }
    let both = ["--thread", &thread.to_string(), "--interpreter", &interpreter.to_string()];
    let expected = count(&|sample| is(sample, "tid", thread) && is(sample, "interpreter", interpreter));
    assert_eq!(samples(&both, &[&file]).len(), expected);
}

#[test]
fn times_choose_samples_of_python_and_php() {
    for file in ["tachyon/corpus/25_multiline.bin", "rbt/annotations_ts.rbt"].map(corpus) {
        let all = samples(&[], &[&file]).len();
        let span = if file.ends_with("bin") { "0.5" } else { "0.03" };
        let [early, late] = ["--before", "--after"].map(|option| samples(&[option, span], &[&file]).len());
        assert!(early > 0 && late > 0 && early < all && late < all, "{early} and {late} of {all}");
        assert_eq!(early + late, all);
    }
    let ended = run(&["convert", "x", "--to", "folded", "--after", "-1s"]);
    assert_eq!(ended.code, 2);
}

#[test]
fn patterns_choose_samples_by_function_or_file() {
    let file = corpus("tachyon/corpus/25_multiline.bin");
    let folded = |options: &[&str]| {
        let command = [&["convert", &*file, "--to", "folded"], options].concat();
        String::from_utf8(run(&command).done()).unwrap()
    };
    let all = folded(&[]);
    let expected: Vec<_> = all.lines().filter(|line| line.contains("<genexpr>")).collect();
    assert!(!expected.is_empty() && expected.len() < all.lines().count());
    assert_eq!(folded(&["--match", "<genexpr>"]).lines().collect::<Vec<_>>(), expected);
    assert_eq!(
        folded(&["--match", r"multiline\.py:\d"]).lines().count(),
        all.matches("multiline.py").count().min(all.lines().count())
    );
    let ended = run(&["convert", &*file, "--to", "folded", "--match", "("]);
    assert!(ended.code == 2 && ended.stderr.contains("--match"), "{}", ended.stderr);
}

#[test]
fn merged_samples_have_their_input_as_label() {
    let files = ["29_subprocesses_31275", "29_subprocesses_31276", "25_multiline"];
    let files = files.map(|name| corpus(&format!("tachyon/corpus/{name}.bin")));
    let inputs: Vec<_> = files.iter().map(String::as_str).collect();
    let merged = samples(&["--label-inputs"], &inputs);
    for file in &files {
        let label = serde_json::json!([["input", file]]);
        let found = merged.iter().filter(|sample| sample["labels"] == label).count();
        assert_eq!(found, samples(&[], &[file]).len(), "{file}");
    }
    // Python gives files of subprocesses such names.
    for (file, process) in files.iter().zip([Some(31_275), Some(31_276), None]) {
        let of_file = merged.iter().filter(|sample| sample["labels"][0][1] == **file);
        assert!(of_file.into_iter().all(|sample| sample["pid"].as_i64() == process), "{file}");
    }
    let report = run(&[&["report", "--by", "input", "--label-inputs"], &inputs[..]].concat()).done();
    assert!(String::from_utf8(report).unwrap().contains("25_multiline.bin"));
}

#[test]
fn sorted_samples_are_in_order_of_time() {
    let files =
        ["05_threads20_none", "09_subinterp"].map(|name| corpus(&format!("tachyon/corpus/{name}.bin")));
    let inputs: Vec<_> = files.iter().map(String::as_str).collect();
    let (mut unsorted, sorted) = (samples(&[], &inputs), samples(&["--sort-by-time"], &inputs));
    let time = |sample: &serde_json::Value| sample["time_ns"].as_i64().unwrap();
    assert!(!unsorted.is_sorted_by_key(time) && sorted.is_sorted_by_key(time));
    unsorted.sort_by_key(time);
    assert!(unsorted == sorted);
    // Threads of a tick have the same time.
    let ticks = sorted.chunk_by(|left, right| time(left) == time(right));
    assert!(ticks.filter(|tick| tick.len() >= 20).count() > 100);
}

/// The frames of a report, with the number of samples that have each as leaf and on the stack.
fn tables(arguments: &[&str]) -> [Value; 2] {
    let command = [&["report", "--json", "--all"], arguments].concat();
    let report: Value = serde_json::from_slice(&run(&command).done()).unwrap();
    let rows = |table: &str| {
        let rows = report[table]["rows"].as_array().unwrap_or_else(|| panic!("{table}: {report}"));
        // A format with a file and a line for every frame has empty ones for frames without.
        let place =
            |row: &Value| (row["file"].as_str().unwrap_or("").to_owned(), row["line"].as_i64().unwrap_or(-1));
        let key = |row: &Value| format!("{} {:?} {}", row["function"], place(row), row["count"]);
        let mut rows: Vec<_> = rows.iter().map(key).collect();
        rows.sort();
        Value::from(rows)
    };
    [rows("self"), rows("total")]
}

#[test]
fn stacks_are_shaped_alike_before_a_conversion_and_in_a_report() {
    let scratch = Scratch::new();
    let file = corpus("rbt/realistic_54k.rbt.gz");
    let cases: [&[&str]; 7] = [
        &["--hide", "^Illuminate"],
        &["--exclude", "PDO::"],
        &["--focus", "::handle"],
        &["--fold-recursion", "--collapse", "[doctrine]=^Doctrine"],
        &["--collapse-libraries"],
        &["--path-map", "/var/www=/srv", "--path-map", "/var/www/app/="],
        &["--match", "Monolog", "--hide", "Symfony", "--exclude", "str_replace"],
    ];
    let plain = tables(&[&file]);
    for options in cases {
        let reported = tables(&[&[&*file], options].concat());
        assert_ne!(reported, plain, "{options:?}");
        let converted = text(&scratch.path(&format!("{}.rbt", options.len()))).to_owned();
        run(&[&["convert", &*file, "-o", &*converted, "--force"], options].concat()).done();
        // For conversions, --match applies to whole stacks, hidden frames included, so it is applied again.
        let again = if options[0] == "--match" { &options[..2] } else { &[] };
        assert_eq!(tables(&[&[&*converted], again].concat()), reported, "{options:?}");
    }
}

#[test]
fn processes_and_labels_choose_samples_in_conversions_and_reports() {
    let file = corpus("rbt/annotations_ts.rbt");
    let all = samples(&[], &[&file]);
    let labels: Vec<_> = all.iter().filter_map(|sample| sample["labels"][0].as_array()).collect();
    let (key, value) = (labels[0][0].as_str().unwrap(), labels[0][1].as_str().unwrap());
    let label = format!("{key}={value}");
    let count =
        |samples: &[Value]| -> u64 { samples.iter().map(|sample| sample["count"].as_u64().unwrap()).sum() };
    let expected: Vec<_> = all
        .iter()
        .filter(|sample| sample["labels"].to_string().contains(&format!("[\"{key}\",\"{value}\"]")))
        .cloned()
        .collect();
    let found = samples(&["--label", &label], &[&file]);
    assert!(count(&found) == count(&expected) && count(&found) < count(&all), "{label}: {found:?}");
    let report = run(&["report", "--json", "--label", &label, &file]).done();
    let report: Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["summary"]["samples"].as_u64(), Some(count(&found)), "{report}");
    assert!(samples(&["--process", "1"], &[&file]).is_empty());
    assert!(run(&["convert", "--label", "x", &file]).failed().contains("expected KEY=VALUE, found x"));
}

/// A profile as lines of JSON, with this many samples, one per period.
fn lines(process: u64, period_ns: u64, values: &str, types: &str) -> Vec<u8> {
    let mut lines = String::from("{\"type\":\"file\",\"schema_version\":1,\"format\":\"tachyon\"}\n");
    lines += &format!(
        "{{\"type\":\"segment\",\"index\":0,\"format\":\"tachyon\",\"has_times\":true,\"period_ns\":{period_ns},\"value_types\":{types}}}\n"
    );
    for number in 0..100 {
        let time_ns = number * period_ns;
        lines += &format!(
            "{{\"type\":\"sample\",\"count\":1,\"time_ns\":{time_ns},\"pid\":{process},\"tid\":{process},\"values\":{values},\"frames\":[{{\"function\":\"f{process}\"}}]}}\n"
        );
    }
    lines += "{\"type\":\"end\",\"samples\":100,\"events\":0,\"lost_bytes\":0,\"warnings\":[]}\n";
    lines.into_bytes()
}

/// The time in the output of `report --json`.
fn wall_ns(file: &str) -> Value {
    let report: Value =
        serde_json::from_slice(&run(&["report", "--json", "--value", "wall", file]).done()).unwrap();
    report["summary"]["wall_ns"].clone()
}

/// The sums of all values by kind.
fn value_sums(file: &str) -> BTreeMap<String, i64> {
    let lines = String::from_utf8(run(&["dump", file]).done()).unwrap();
    let (mut kinds, mut sums) = (Vec::new(), BTreeMap::new());
    for line in lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        if line["type"] == "segment" {
            let types = line["value_types"].as_array().into_iter().flatten();
            kinds = types.map(|own| own[0].as_str().unwrap().to_owned()).collect();
        }
        for (kind, value) in kinds.iter().zip(line["values"].as_array().into_iter().flatten()) {
            *sums.entry(kind.clone()).or_default() += value.as_i64().unwrap();
        }
    }
    sums
}

#[test]
fn sorted_samples_of_several_files_keep_the_period_and_the_values_of_their_own() {
    let scratch = Scratch::new();
    let fast = scratch.write("fast.jsonl", &lines(1, 1_000_000, "[5]", "[[\"alloc\",\"bytes\"]]"));
    let slow = scratch
        .write("slow.jsonl", &lines(2, 10_000_000, "[7,9]", "[[\"locks\",\"count\"],[\"pages\",\"count\"]]"));
    for format in ["jsonl", "rbt", "trc", "otlp", "pprof", "speedscope"] {
        let output = scratch.path(&format!("out.{format}"));
        let output = text(&output);
        run(&["convert", text(&fast), text(&slow), "--sort-by-time", "--to", format, "-o", output]).done();
        // An event trace has no periods.
        if format != "trc" {
            assert_eq!(wall_ns(output), 1_100_000_000, "{format}");
        }
        if ["jsonl", "otlp", "pprof"].contains(&format) {
            let sums = value_sums(output);
            let sums: Vec<_> = ["alloc", "locks", "pages"].map(|kind| sums[kind]).to_vec();
            assert_eq!(sums, [500, 700, 900], "{format}");
        }
    }
}

#[test]
fn seconds_since_the_start_are_the_same_whatever_the_samples_were_converted_to() {
    let scratch = Scratch::new();
    let original = corpus("tachyon/corpus/02_cpu_zstd.bin");
    let chosen = |file: &str| {
        ["--before", "--after"].map(|option| {
            let report = run(&["report", "--json", file, option, "0.5"]).done();
            let report: Value = serde_json::from_slice(&report).unwrap();
            report["summary"]["samples"].as_u64().unwrap()
        })
    };
    assert_eq!(chosen(&original), [498, 998]);
    let formats = ["jsonl", "otlp", "rbt", "speedscope", "trc", "gecko", "tachyon"];
    for format in formats {
        let converted = scratch.path(&format!("t.{format}"));
        run(&["convert", &original, "--to", format, "-o", text(&converted)]).done();
        let [before, after] = chosen(text(&converted));
        // A format may count from the first sample, which is a little later than the start.
        assert!(before.abs_diff(498) <= 3 && after.abs_diff(998) <= 3, "{format}: {before}, {after}");
    }
    let foreign = br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"}]},
        "profiles":[{"type":"sampled","name":"x","unit":"seconds","startValue":100,"endValue":101,
        "samples":[[0],[0],[0],[0]],"weights":[0.25,0.25,0.25,0.25]}]}"#;
    let foreign = scratch.write("foreign.speedscope.json", foreign);
    assert_eq!(chosen(text(&foreign)), [2, 2]);
}

#[test]
fn seconds_count_from_the_start_of_profiling_in_every_format() {
    let scratch = Scratch::new();
    let lines = String::from_utf8(lines(1, 10_000_000, "[]", "[]")).unwrap();
    let chosen = |lines: &str, after: &str| {
        let file = scratch.write("began.jsonl", lines.as_bytes());
        samples(&["--after", after], &[text(&file)]).len()
    };
    // One sample every ten milliseconds from 0 on.
    assert_eq!([chosen(&lines, "0.5"), chosen(&lines, "1.5")], [50, 0]);
    let early = lines.replace("\"has_times\":true", "\"has_times\":true,\"began_ns\":-1000000000");
    assert_eq!([chosen(&early, "0.5"), chosen(&early, "1.5")], [100, 50]);
    assert_eq!(chosen(&early.replace("tachyon", "of another program"), "1.5"), 50);
}

#[test]
fn redacting_leaves_no_text_of_the_input_in_warnings_and_types_of_values() {
    let scratch = Scratch::new();
    let folded = scratch.write("secret.folded", b"Acme;pay 5\nAcmeSecretLine without count\nb 3\n");
    let types = "[[\"secret_orders\",\"acmes\"],[\"inuse_space\",\"bytes\"]]";
    let valued = scratch.write("secret.jsonl", &lines(1, 1000, "[5,6]", types));
    for (file, stays) in [(&folded, "\"lost_bytes\":28"), (&valued, "[\"inuse_space\",\"bytes\"]")] {
        let ended = run(&["convert", "--lenient", "--redact", text(file), "--to", "jsonl"]);
        let written = String::from_utf8(ended.stdout).unwrap().to_lowercase();
        assert!(written.contains(stays), "{written}");
        assert!(!written.contains("secret") && !written.contains("acme"), "{written}");
    }
}

/// The times and numbers of the events of a trace, which are no words of the program.
fn facts(dumped: &str) -> Vec<String> {
    let events = dumped.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let events = events.filter(|line| line["type"] == "event");
    let numbers = |event: &serde_json::Value| {
        let fields = event["fields"].as_array().unwrap().iter();
        fields.map(|field| field[1].clone()).filter(serde_json::Value::is_number).collect::<Vec<_>>()
    };
    events.map(|event| format!("{} {:?}", event["time_ns"], numbers(&event))).collect()
}

#[test]
fn a_redacted_trace_has_its_events_and_none_of_its_words() {
    let scratch = Scratch::new();
    let original = corpus("trc/in/real_057_blocked.bin.gz");
    let redacted = text(&scratch.path("redacted.trc")).to_owned();
    run(&["convert", &original, "--redact", "-o", &redacted]).done();
    let [before, after] = [&original, &redacted]
        .map(|file| run(&["dump", file]).done())
        .map(|dumped| String::from_utf8(dumped).unwrap());
    assert_eq!(facts(&after), facts(&before));
    for word in ["d9_record_new", "item", "src/main", "RequestCompleted", "status_code", "\"vm\""] {
        assert!(before.contains(word), "{word}");
        assert!(!after.contains(word), "{word}");
    }
    for known in ["PollStartEvent", "spawn_loc", "SpanEnter:n", ".rs:93:9", "tokio.poll_coverage"] {
        // New words begin with n.
        let expected = before.replace("SpanEnter:d", "SpanEnter:n").matches(known).count();
        assert_eq!(after.matches(known).count(), expected, "{known}");
    }
    let [before, after] = [&original, &redacted].map(|file| run(&["report", file, "--json"]).done());
    let flags = |report: &[u8]| {
        let report: serde_json::Value = serde_json::from_slice(report).unwrap();
        let flags = report["tokio"]["findings"].as_array().unwrap().iter();
        flags.map(|flag| flag["check"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(flags(&after), flags(&before));
    assert!(!flags(&after).is_empty());
}

#[test]
fn selecting_times_without_timestamps_is_an_error() {
    let scratch = Scratch::new();
    let untimed = corpus("rbt/realistic_54k.rbt.gz");
    let timed = corpus("tachyon/corpus/25_multiline.bin");
    let nothing = text(&scratch.path("nothing.svg")).to_owned();
    let cases: [&[&str]; 5] = [
        &["report", "--top", "0", "--after", "0", &untimed],
        &["report", "--timeline", "--before", "1e9", &untimed],
        &["report", "--after", "0.5", &timed, &untimed],
        &["convert", &untimed, "--after", "0.5", "-o", &nothing],
        &["diff", &untimed, &untimed, "--after", "0.5", "--fail-over", "1%"],
    ];
    for arguments in cases {
        let said = run(arguments).failed();
        let option = if arguments.contains(&"--before") { "--before" } else { "--after" };
        assert!(
            said.contains(&format!("{untimed}: unsupported {option}: input has no timestamps (")),
            "{said}"
        );
    }
    assert!(!std::path::Path::new(&nothing).exists());
    // Samples with times are selected, and the loss of those without is reported.
    let mut mixed = String::from_utf8(lines(1, 1_000_000, "[]", "[]")).unwrap();
    mixed = mixed.replacen("\"time_ns\":99000000,", "", 1);
    let mixed = scratch.write("mixed.jsonl", mixed.as_bytes());
    let ended = run(&["report", "--json", "--after", "0.05", text(&mixed)]);
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((ended.code, &report["summary"]["samples"]), (0, &Value::from(49)), "{}", ended.stderr);
    let note = format!("note: {}: 1 sample without timestamps left out (--after)", text(&mixed));
    assert!(ended.stderr.contains(&note), "{}", ended.stderr);
    // Times are missed only if samples without times would otherwise be selected.
    let two = String::from_utf8(lines(1, 1_000_000, "[]", "[]")).unwrap();
    let two = two.replacen("\"time_ns\":99000000,\"pid\":1,", "\"pid\":8,", 1);
    let two = scratch.write("two.jsonl", two.as_bytes());
    let after = |pid| run(&["report", "--process", pid, "--after", "0.05", text(&two)]);
    let (timed, untimed) = (after("1"), after("8"));
    assert_eq!((timed.code, timed.stderr.contains("note: ")), (0, false), "{}", timed.stderr);
    assert!(untimed.failed().contains("input has no timestamps (1 sample)"));
}

#[test]
fn an_empty_selection_is_noted() {
    let trace = corpus("rbt/native.rbt");
    let ended = run(&["convert", &trace, "--match", "no such function", "--to", "folded"]);
    assert_eq!((ended.code, &*ended.stdout), (0, &b""[..]));
    assert!(ended.stderr.contains("note: no samples match the filters ("), "{}", ended.stderr);
    assert_eq!(run(&["convert", &trace, "--match", ".", "--to", "folded"]).stderr, "");
    let focused = ["--focus", "no such function"];
    for command in [&["convert", &trace, "--to", "folded"][..], &["diff", &trace, &trace]] {
        let said = run(&[command, &focused].concat()).stderr;
        assert!(said.contains("note: no samples match the filters ("), "{command:?}: {said}");
    }
    // Symbols and clocks, which always pass, do not count as a result.
    let trace = corpus("trc/in/real_032_cpu.bin.gz");
    let said = |option: &[&str]| run(&[&["convert", &trace, "--to", "jsonl"], option].concat()).stderr;
    let missed = said(&["--event", "poll*"]);
    assert!(missed.contains("note: no events match the filters ("), "{missed}");
    assert_eq!(said(&["--event", "Poll*"]), "");
    // Missing samples are reported even if there are events; missing events only if they were requested.
    let said = |option: &[&str]| run(&[&["report", &trace, "--kind", "all"], option].concat()).stderr;
    let missed = said(&["--process", "1"]);
    assert!(missed.contains("note: no samples or events match the filters ("), "{missed}");
}
