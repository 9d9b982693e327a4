//! Callgrind profiles, read by the real `callgrind_annotate`.

use std::collections::{BTreeMap, BTreeSet};

use borehole_formats::callgrind::Exporter;
use borehole_formats::folded;
use borehole_model::Segment;
use borehole_testkit::Scratch;
use borehole_testkit::peers::peer;

use crate::flat::{FlatFrame, FlatSample, play, rbt_samples};

type Totals = BTreeMap<String, u64>;

const PERIOD: u64 = 10_000_000;

fn write(samples: &[FlatSample], period_ns: Option<u64>) -> String {
    let mut text = Vec::new();
    let mut exporter = Exporter::new(&mut text);
    play(samples, &Segment { period_ns, ..Segment::default() }, &mut exporter).unwrap();
    drop(exporter);
    String::from_utf8(text).unwrap()
}

/// The numbers of `callgrind_annotate` for each function, as `file:function`, and its complaints. Empty if it is skipped.
fn annotate(profile: &str, inclusive: &str) -> Option<(Totals, String)> {
    let annotate = peer("callgrind_annotate")?;
    peer("perl")?;
    let scratch = Scratch::new();
    let path = scratch.write("profile.callgrind", profile.as_bytes());
    let output = annotate
        .command()
        .args(["--threshold=100", "--auto=no", "--show-percs=no", "--show=Samples"])
        .arg(format!("--inclusive={inclusive}"))
        .arg(&path)
        .current_dir(scratch.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    Some((totals(&shown), String::from_utf8(output.stderr).unwrap()))
}

/// The lines after the heading `file:function`: a count with commas, and a name.
fn totals(shown: &str) -> Totals {
    let lines = shown.lines().skip_while(|line| !line.contains("file:function")).skip(2);
    let entry = |line: &str| {
        let (count, name) = line.trim().split_once("  ").expect("two columns");
        // A dot stands for a function without lines of its own.
        let count = if count == "." { "0" } else { count };
        (name.to_owned(), count.replace(',', "").parse().unwrap())
    };
    lines.take_while(|line| !line.is_empty()).map(entry).collect()
}

/// Self and total samples of each function, computed from folded text without code of the exporter.
fn expected(samples: &[FlatSample]) -> (Totals, Totals) {
    let mut text = Vec::new();
    let mut exporter = folded::Exporter::new(&mut text, folded::ExportOptions::default());
    play(samples, &Segment::default(), &mut exporter).unwrap();
    drop(exporter);
    let (mut own, mut total) = (Totals::new(), Totals::new());
    for line in String::from_utf8(text).unwrap().lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        let functions: Vec<_> = stack.split(';').map(function).collect();
        *own.entry(functions.last().unwrap().clone()).or_default() += count;
        for function in functions.into_iter().collect::<BTreeSet<_>>() {
            *total.entry(function).or_default() += count;
        }
    }
    (own, total)
}

/// `FUNCTION FILE:LINE` as `FILE:FUNCTION`.
fn function(frame: &str) -> String {
    if frame.is_empty() {
        return "???:[empty stack]".to_owned();
    }
    let (place, _line) = frame.rsplit_once(':').unwrap();
    let (function, file) = place.split_once(' ').unwrap();
    format!("{}:{function}", if file.is_empty() { "???" } else { file })
}

fn without_zeros(totals: Totals) -> Totals {
    totals.into_iter().filter(|(_, count)| *count > 0).collect()
}

fn sample(root_first: &str, count: u64) -> FlatSample {
    let frame = |text: &str| {
        let (name, line) = text.split_once(':').unwrap();
        FlatFrame::php(name, &format!("/{name}.php"), line.parse().unwrap())
    };
    let frames_leaf_first = root_first.split(';').rev().map(frame).collect();
    FlatSample { frames_leaf_first, count, ..FlatSample::default() }
}

#[test]
fn callgrind_annotate_shows_the_samples_of_real_files() {
    let names = [
        "native.rbt",
        "multi_segment.rbt",
        "pid_samples.rbt",
        "annotations.rbt",
        "zero_depth.rbt",
        "lineno_negative.rbt",
        "daemon_worker.rbt",
        "checkpoint_1000.rbt",
        "rle_heavy.rbt",
    ];
    for name in names {
        let samples = rbt_samples(name);
        let profile = write(&samples, Some(PERIOD));
        let (own, total) = expected(&samples);
        let Some((shown, complaints)) = annotate(&profile, "no") else { return };
        assert_eq!((without_zeros(shown), &*complaints), (own, ""), "{name}");
        let Some((shown, complaints)) = annotate(&profile, "yes") else { return };
        assert_eq!((shown, &*complaints), (total, ""), "{name}");
    }
}

#[test]
fn recursion_is_counted_once() {
    let samples =
        [sample("main:1;fib:2;fib:3;fib:3;leaf:9", 5), sample("main:1;fib:2;fib:2", 7), sample("main:4", 1)];
    let profile = write(&samples, None);
    let (own, total) = expected(&samples);
    let Some((shown, _)) = annotate(&profile, "no") else { return };
    assert_eq!(without_zeros(shown), own);
    assert_eq!(annotate(&profile, "yes").map(|(shown, _)| shown), Some(total));
}

/// The lines and calls of each function added up, as KCachegrind does for inclusive cost.
fn added_up(profile: &str) -> Totals {
    let mut names: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let (mut file, mut function) = ("", String::new());
    let mut totals = Totals::new();
    for line in profile.lines() {
        if let Some((key @ ("fl" | "fn" | "cfi" | "cfn"), name)) = line.split_once('=') {
            let (number, text) = name.split_once(' ').unwrap_or((name, ""));
            let kind = if key.ends_with("fn") { "function" } else { "file" };
            let name = *names.entry((kind, number)).or_insert(text);
            match key {
                "fl" => file = name,
                "fn" => function = format!("{file}:{name}"),
                _ => {}
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let count: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            *totals.entry(function.clone()).or_default() += count;
        }
    }
    totals
}

#[test]
fn lines_and_calls_add_up_to_the_total_even_in_mutual_recursion() {
    let samples = [
        sample("main:1;f:2;g:3;f:4;g:5;leaf:6", 5),
        sample("main:1;f:2;g:3;f:4", 7),
        sample("main:1;g:2;f:3;f:4;g:5", 11),
        sample("g:1", 13),
    ];
    assert_eq!(added_up(&write(&samples, None)), expected(&samples).1);
    let real = rbt_samples("multi_segment.rbt");
    assert_eq!(added_up(&write(&real, Some(PERIOD))), expected(&real).1);
}

#[test]
fn the_text_is_as_the_format_has_it() {
    let samples = [sample("main:1;f:2", 5), sample("main:1", 2)];
    let expected = format!(
        "# callgrind format\nversion: 1\ncreator: borehole {}\n\
         desc: Calls: not counted by a sampling profiler; 1 stands for at least one\npositions: line\n\
         event: Wall_ns : wall time in nanoseconds\nevents: Samples Wall_ns\nsummary: 7 70000000\n\n\
         fl=(1) /f.php\nfn=(2) f\n2 5 50000000\n\n\
         fl=(3) /main.php\nfn=(4) main\n1 2 20000000\ncfi=(1)\ncfn=(2)\ncalls=1 0\n1 5 50000000\n\n\
         totals: 7 70000000\n",
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(write(&samples, Some(PERIOD)), expected);
}

#[test]
fn without_a_period_there_is_no_time() {
    let profile = write(&[sample("main:1", 2)], None);
    assert!(profile.contains("\nevents: Samples\nsummary: 2\n"), "{profile}");
}

#[test]
fn functions_of_one_name_in_two_files_are_two() {
    let mut second = sample("f:1", 3);
    second.frames_leaf_first[0].file = Some(b"/other.php".to_vec());
    let Some((shown, _)) = annotate(&write(&[sample("f:1", 2), second], None), "no") else { return };
    assert_eq!(shown, [("/f.php:f".to_owned(), 2), ("/other.php:f".to_owned(), 3)].into());
}

#[test]
fn odd_names_do_not_break_the_file() {
    let mut odd = sample("main:1;f:2", 4);
    odd.frames_leaf_first[0].function = b"(anonymous)\nfn=x".to_vec();
    odd.frames_leaf_first[1].function = Vec::new();
    odd.frames_leaf_first[1].file = None;
    let Some((shown, complaints)) = annotate(&write(&[odd], None), "yes") else { return };
    let expected = [("/f.php:(anonymous) fn=x".to_owned(), 4), ("???:???".to_owned(), 4)];
    assert_eq!((shown, &*complaints), (expected.into(), ""));
}

#[test]
fn no_samples_are_a_valid_file() {
    let profile = write(&[], None);
    assert!(profile.ends_with("totals: 0 0\n"), "{profile}");
}
