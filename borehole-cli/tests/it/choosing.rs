//! Choosing samples and labelling them, in `convert`.

use serde_json::Value;

use crate::program::{corpus, run};

/// The samples of a profile that was converted with these options, as their lines of JSON.
fn samples(options: &[&str], inputs: &[&str]) -> Vec<Value> {
    let command = [&["convert", "--to", "jsonl"], inputs, options].concat();
    let lines = String::from_utf8(run(&command).quietly()).unwrap();
    let values = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.filter(|line| line["type"] == "sample").collect()
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
        // One may stand exactly there.
        assert!((all..=all + 1).contains(&(early + late)), "{early} and {late} of {all}");
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
fn merged_samples_say_where_they_are_from() {
    let files = ["29_subprocesses_31275", "29_subprocesses_31276", "25_multiline"];
    let files = files.map(|name| corpus(&format!("tachyon/corpus/{name}.bin")));
    let inputs: Vec<_> = files.iter().map(String::as_str).collect();
    let merged = samples(&["--label-inputs"], &inputs);
    for file in &files {
        let label = serde_json::json!([["input", file]]);
        let found = merged.iter().filter(|sample| sample["labels"] == label).count();
        assert_eq!(found, samples(&[], &[file]).len(), "{file}");
    }
    // Python calls the files of subprocesses so.
    for (file, process) in files.iter().zip([Some(31_275), Some(31_276), None]) {
        let of_file = merged.iter().filter(|sample| sample["labels"][0][1] == **file);
        assert!(of_file.into_iter().all(|sample| sample["pid"].as_i64() == process), "{file}");
    }
    let report = run(&[&["report", "--by", "input", "--label-inputs"], &inputs[..]].concat()).done();
    assert!(String::from_utf8(report).unwrap().contains("25_multiline.bin"));
}

#[test]
fn samples_of_all_threads_and_files_come_in_the_order_of_time() {
    let files =
        ["05_threads20_none", "09_subinterp"].map(|name| corpus(&format!("tachyon/corpus/{name}.bin")));
    let inputs: Vec<_> = files.iter().map(String::as_str).collect();
    let (mut unsorted, sorted) = (samples(&[], &inputs), samples(&["--sort-by-time"], &inputs));
    let time = |sample: &serde_json::Value| sample["time_ns"].as_i64().unwrap();
    assert!(!unsorted.is_sorted_by_key(time) && sorted.is_sorted_by_key(time));
    unsorted.sort_by_key(time);
    assert!(unsorted == sorted);
    // The threads of a tick bear one time.
    let ticks = sorted.chunk_by(|left, right| time(left) == time(right));
    assert!(ticks.filter(|tick| tick.len() >= 20).count() > 100);
}
