//! Folded stacks: real files, the output of reli, and that of other programs.

use std::collections::BTreeMap;

use borehole_formats::folded::{self, ExportOptions, Exporter, NameStyle};
use borehole_formats::{Error, Export as _, Position, ReadError, ReadOptions};
use borehole_model::{Context, ProfileSink, Recovery, Sample, Segment, Tables};
use borehole_testkit::peers::speedscope_import;
use borehole_testkit::{Scratch, read_corpus};
use proptest::prelude::*;

use crate::flat::{self, FlatFrame, FlatSample, corpus_names, damaged, play, rbt_samples};
use crate::play::collected;

fn read_with(text: &[u8], options: &ReadOptions) -> Result<(Vec<FlatSample>, Recovery), ReadError> {
    flat::read(&|input, options, tables, sink| folded::import(input, options, tables, sink), text, options)
}

fn read(text: &[u8]) -> (Vec<FlatSample>, Recovery) {
    read_with(text, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn read_error(text: &[u8]) -> Error {
    match read_with(text, &ReadOptions::default()) {
        Err(ReadError::Input(error)) => error,
        other => panic!("expected an error, found {other:?}"),
    }
}

fn write_as(names: NameStyle, samples: &[FlatSample]) -> (Vec<u8>, String) {
    let mut text = Vec::new();
    let mut exporter = Exporter::new(&mut text, ExportOptions { names });
    play(samples, &Segment::default(), &mut exporter).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (text, losses)
}

fn write(samples: &[FlatSample]) -> (Vec<u8>, String) {
    write_as(NameStyle::FunctionFileLine, samples)
}

fn show(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Differences between our text and reli's, and why.
const DIFFERENCES: [(&str, [&str; 2], &str); 2] = [
    ("all_zeros.rbt", [" 1\n", ""], "4096 zero bytes are no sample"),
    (
        "unicode.rbt",
        [
            "semi;colon a;b:3:5;tab\tname /sp ace.php:4;nul\0byte /line\nbreak",
            "semi:colon a:b:3:5;tab name /sp ace.php:4;nul\\x00byte /line break",
        ],
        "a semicolon or a line break in a name would make two frames or lines of it, and terminals obey control characters",
    ),
];

#[test]
fn samples_of_rbt_files_are_written_as_reli_writes_them() {
    let decoded = corpus_names("rbt/expected", ".strict.jsonl");
    let mut compared = 0;
    for name in corpus_names("rbt/expected/conv", ".folded") {
        // Reli drops data after the gzip member.
        if !decoded.contains(&name) || name == "gzip_then_raw.rbt.gz" {
            continue;
        }
        let reli = read_corpus(&format!("rbt/expected/conv/{name}.folded"));
        let ours = write(&rbt_samples(&name)).0;
        match DIFFERENCES.iter().find(|(differing, ..)| *differing == name) {
            None => assert_eq!(show(&ours), show(&reli), "{name}"),
            Some((_, [from, to], why)) => {
                assert_eq!(show(&ours), show(&reli).replace(from, to), "{name}: {why}");
                assert_ne!(ours, reli, "{name} has no difference, but one is listed");
            }
        }
        compared += 1;
    }
    assert!(compared >= 50, "only {compared} files were compared");
}

/// Speedscope splits folded stacks as `flamegraph.pl` does: at the last space and the semicolons.
#[test]
fn another_reader_finds_the_samples_of_each_leaf() {
    for name in ["native.rbt", "multi_segment.rbt", "pid_samples.rbt", "annotations.rbt", "rle_heavy.rbt"] {
        let samples = rbt_samples(name);
        let mut leaves: BTreeMap<String, u64> = BTreeMap::new();
        for sample in &samples {
            *leaves.entry(show(&sample.frames_leaf_first[0].function)).or_default() += sample.count;
        }
        let scratch = Scratch::new();
        let file = scratch.write("profile.folded", &write(&samples).0);
        let Some(found) = speedscope_import(&file) else { return };
        let [profile] = &found.unwrap().profiles[..] else { panic!("{name}: not one profile") };
        let mut shown: BTreeMap<String, f64> = BTreeMap::new();
        for (frame, weight) in profile.self_weights.iter().filter(|(_, weight)| **weight > 0.0) {
            let (function, _place) = frame.rsplit_once(' ').unwrap();
            *shown.entry(function.to_owned()).or_default() += weight;
        }
        let shown: BTreeMap<_, _> =
            shown.iter().map(|(name, weight)| (name.clone(), format!("{weight}"))).collect();
        let expected: BTreeMap<_, _> =
            leaves.iter().map(|(name, count)| (name.clone(), format!("{count}"))).collect();
        assert_eq!(shown, expected, "{name}");
    }
}

#[test]
fn files_of_reli_are_read_and_written_back() {
    for name in corpus_names("rbt/expected/conv", ".folded") {
        let text = read_corpus(&format!("rbt/expected/conv/{name}.folded"));
        if name == "unicode.rbt" {
            // A line break in a path makes two lines, the first of which has no count.
            assert_eq!(read_error(&text).position(), Position::Line(3));
            continue;
        }
        let (samples, recovery) = read(&text);
        assert!(recovery.is_clean(), "{name}: {:?}", recovery.warnings);
        assert_eq!(show(&write(&samples).0), show(&text), "{name}");
    }
}

#[test]
fn a_frame_with_file_and_line_keeps_them() {
    let (samples, recovery) = read(b"<main> /index.php:5;usort <internal>:-1;a;_start :0 12\n");
    let other = |function: &str| FlatFrame { function: function.into(), ..FlatFrame::default() };
    let expected = [
        FlatFrame::php("_start", "", 0),
        other("a"),
        FlatFrame::php("usort", "<internal>", -1),
        FlatFrame::php("<main>", "/index.php", 5),
    ];
    assert_eq!(samples[0].frames_leaf_first, expected);
    assert_eq!((samples[0].count, recovery.samples), (12, 12));
}

#[test]
fn frames_of_other_programs_are_names() {
    let names = "main (app.py:12);block in run - app.rb:3;App::f();java/lang/Thread.run:745_[x];[unknown];a.out`f+0x1";
    let (samples, _) = read(format!("{names} 1\n").as_bytes());
    let frames = samples[0].frames_leaf_first.iter().rev();
    let read: Vec<_> = frames.map(|frame| (show(&frame.function), frame.file.is_none())).collect();
    let expected: Vec<_> = names.split(';').map(|name| (name.to_owned(), true)).collect();
    assert_eq!(read, expected);
}

#[test]
fn annotations_of_async_profiler_are_no_part_of_names() {
    let text = b"[main tid=7];a/B.run_[0];a/B.c_[j];sys_read_[k] 3\n[main tid=7];a/B.run_[j];f 2\nx 1\n";
    let (collect, _) =
        collected(|tables, sink| folded::import(&text[..], &ReadOptions::default(), tables, sink)).unwrap();
    let seen: Vec<_> = collect
        .samples()
        .map(|sample| {
            let names = sample.frames_leaf_first.iter().map(|frame| frame.function.as_str());
            (sample.thread, names.collect::<Vec<_>>())
        })
        .collect();
    let expected =
        [(Some(7), vec!["sys_read", "a/B.c", "a/B.run"]), (Some(7), vec!["f", "a/B.run"]), (None, vec!["x"])];
    assert_eq!(seen, expected);
    let kernel = &collect.samples().next().unwrap().frames_leaf_first[0];
    assert_eq!(kernel.native, Some(("[kernel]".to_owned(), None)));
    assert_eq!(collect.thread_names, [(7, "main".to_owned())]);
}

#[test]
fn lines_that_begin_alike_share_their_callers() {
    let text = b"a;b;c 1\na;b 2\na;b;cc 3\na;bb;c 4\na;b;c 5\n 6\na;b;c;d 7\na 8\nab 9\n;a 10\na; 11\n";
    let (samples, _) = read(text);
    let expected = b"a;b;c 6\na;b 2\na;b;cc 3\na;bb;c 4\n 6\na;b;c;d 7\na 8\nab 9\n;a 10\na; 11\n";
    assert_eq!(show(&write(&samples).0), show(expected));
}

#[test]
fn oddities_are_noted_once() {
    let (samples, recovery) = read(b"a 1.5\nb 2.5\nc 1 7\nd 2 8\n");
    let counts: Vec<_> = samples.iter().map(|sample| sample.count).collect();
    assert_eq!(counts, [2, 3, 7, 8]);
    let messages: Vec<_> = recovery.notes.iter().map(|note| &*note.message).collect();
    assert!(recovery.is_clean());
    let fraction = "fractional counts are rounded (first at line 1)";
    let second = "the second of two counts is used (first at line 3)";
    assert_eq!(messages, [fraction, second]);
}

#[test]
fn a_missing_count_is_an_error_or_read_over() {
    let text = b"a 1\nb\nc 2\n";
    let error = read_error(text);
    assert_eq!(error.to_string(), "expected a stack and a count, found \"b\" (folded, at line 2)");
    let (samples, recovery) = read_with(text, &ReadOptions::lenient()).unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!((recovery.warnings[0].offset, recovery.lost_bytes), (Some(4), 1));
}

#[test]
fn a_cut_off_last_line_is_a_warning() {
    let (samples, recovery) = read(b"a 1\nb;c");
    assert_eq!((samples.len(), recovery.warnings.len()), (1, 1));
}

#[test]
fn a_count_of_zero_is_not_a_sample() {
    assert_eq!(read(b"a 0\n").0, []);
}

#[test]
fn stacks_that_look_alike_are_one_line() {
    let frame =
        |line| FlatFrame { opcode: Some(b"ZEND_ADD".to_vec()), ..FlatFrame::php("f", "/f.php", line) };
    let native = |offset| FlatFrame {
        function: b"s".to_vec(),
        native: Some((b"m.so".to_vec(), Some(offset))),
        ..FlatFrame::default()
    };
    let sample = |leaf, line| FlatSample {
        frames_leaf_first: vec![leaf, frame(line)],
        count: 2,
        process: Some(7),
        labels: vec![(b"k".to_vec(), b"v".to_vec())],
    };
    let samples = [sample(native(1), 3), sample(native(2), 3), sample(native(1), 4)];
    let lost = "annotations dropped: 6, process ids dropped: 6".to_owned();
    let lines = b"f /f.php:3;s m.so:0 4\nf /f.php:4;s m.so:0 2\n".to_vec();
    assert_eq!(write(&samples), (lines, lost.clone()));
    assert_eq!(write_as(NameStyle::Function, &samples), (b"f;s 6\n".to_vec(), lost));
}

#[test]
fn names_cannot_break_a_line() {
    let frame = |function: &str| FlatFrame { function: function.into(), ..FlatFrame::default() };
    let sample = |root, leaf| FlatSample {
        frames_leaf_first: vec![frame(leaf), frame(root)],
        count: 5,
        ..FlatSample::default()
    };
    let (text, losses) = write(&[sample("# a", "b 12"), sample("a;b", "c\nd "), sample("a", "e 1 2")]);
    assert_eq!(show(&text), "_ a;b_12 5\na:b;c d_ 5\na;e 1_2 5\n");
    assert_eq!(losses, "special characters in names dropped: 6");
    assert_eq!(read(&text).0.len(), 3);
}

#[test]
fn huge_counts_saturate_at_the_maximum() {
    let (samples, recovery) = read(b"a 18446744073709551615\na 2\n");
    assert_eq!(recovery.samples, u64::MAX);
    assert_eq!(show(&write(&samples).0), "a 18446744073709551615\n");
}

#[test]
fn damage_never_panics() {
    for name in ["native.rbt", "lineno_negative.rbt", "zero_depth.rbt", "unicode.rbt"] {
        let text = read_corpus(&format!("rbt/expected/conv/{name}.folded"));
        damaged(&text[..text.len().min(1000)], |text| {
            let strict = read_with(text, &ReadOptions::default());
            let (samples, _) = read_with(text, &ReadOptions::lenient()).unwrap();
            if let Ok((strict, _)) = strict {
                assert_eq!(strict, samples);
            }
        });
    }
}

fn frame() -> impl Strategy<Value = FlatFrame> {
    let is_plain = |name: &Vec<u8>| !name.contains(&b';') && !name.starts_with(b"#");
    let named = (flat::name().prop_filter("separators", is_plain), flat::path(), flat::line());
    named.prop_map(|(function, file, line)| FlatFrame {
        function,
        file: Some(file),
        line,
        ..FlatFrame::default()
    })
}

proptest! {
    #[test]
    fn stacks_survive_a_round_trip(stacks in prop::collection::vec((prop::collection::vec(frame(), 0..6), 1..1000u64), 0..8)) {
        let mut samples: Vec<FlatSample> = Vec::new();
        for (frames_leaf_first, count) in stacks {
            match samples.iter_mut().find(|sample| sample.frames_leaf_first == frames_leaf_first) {
                Some(sample) => sample.count += count,
                None => samples.push(FlatSample { frames_leaf_first, count, ..FlatSample::default() }),
            }
        }
        let (text, losses) = write(&samples);
        prop_assert_eq!(losses, "");
        prop_assert_eq!(read(&text).0, samples);
    }

    #[test]
    fn any_bytes_are_read_and_what_is_read_survives(bytes in "([a-c]|;| |\t|\r|\n|[0-9]{1,3}|\\.|#|/|:|\u{e9}|\0){0,60}") {
        let (samples, _) = read_with(bytes.as_bytes(), &ReadOptions::lenient()).unwrap();
        let (text, losses) = write(&samples);
        let (again, _) = read(&text);
        let total = |samples: &[FlatSample]| samples.iter().map(|sample| sample.count).sum::<u64>();
        prop_assert_eq!(total(&again), total(&samples));
        if losses.is_empty() {
            prop_assert_eq!(write(&again).0, text);
        }
    }
}

/// The samples that a reader got from a corpus file.
#[derive(Default)]
struct Told {
    threads: std::collections::BTreeSet<(Option<i64>, Option<u64>)>,
    names: Vec<String>,
    frames: std::collections::BTreeSet<String>,
    values: Vec<i64>,
    units: Vec<String>,
}

impl ProfileSink for Told {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<std::ops::ControlFlow<()>> {
        self.threads.insert((sample.process, sample.thread));
        for frame in at.tables.frames_leaf_first(sample.stack) {
            let frame = at.tables.frame(frame);
            let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
            let file = frame.file.map_or_else(String::new, text);
            self.frames.insert(format!("{} {file} {:?}", text(frame.function), frame.line));
        }
        self.values.resize(sample.values.len(), 0);
        self.values.iter_mut().zip(sample.values).for_each(|(sum, value)| *sum += value);
        self.units = at.segment.value_types.iter().map(ToString::to_string).collect();
        Ok(std::ops::ControlFlow::Continue(()))
    }

    fn thread(
        &mut self,
        at: Context<'_>,
        _: borehole_model::Thread,
        name: borehole_model::StringId,
    ) -> std::io::Result<()> {
        self.names.push(String::from_utf8_lossy(at.tables.string(name)).into_owned());
        Ok(())
    }
}

fn told(name: &str) -> Told {
    let bytes = borehole_testkit::read_corpus(&format!("folded/{name}.txt"));
    let mut told = Told::default();
    let read =
        folded::import(&bytes[..], &ReadOptions::default(), &mut Tables::default(), &mut told).unwrap();
    assert!(read.is_clean(), "{name}: {:?}", read.warnings);
    told
}

#[test]
fn frames_of_py_spy_have_places_and_its_roots_are_processes_and_threads() {
    let one = told("py-spy-one-process");
    assert!(one.frames.contains("leaf app.py Some(4)"), "{:?}", one.frames);
    let told = told("py-spy-threads-subprocesses");
    let threads = [(Some(6476), Some(6476)), (Some(6476), Some(6486)), (Some(6484), Some(6484))];
    assert_eq!(told.threads.iter().copied().collect::<Vec<_>>(), threads);
    assert_eq!(told.names, ["MainThread", "worker one", "MainThread"]);
    assert!(told.frames.iter().all(|frame| !frame.starts_with("process ") && !frame.ends_with("None")));
}

#[test]
fn numbers_of_austin_are_values_with_their_unit() {
    for (name, units) in [
        ("austin-wall", &["wall/microseconds"][..]),
        ("austin-memory", &["memory/bytes"]),
        ("austin-full", &["wall/microseconds", "cpu/microseconds", "memory/bytes"]),
    ] {
        let told = told(name);
        assert_eq!(told.units, units);
        assert!(told.values[0] > 100_000, "{name}: {:?}", told.values);
        assert!(told.frames.iter().any(|frame| frame.starts_with("leaf /app/app.py Some(4)")), "{name}");
        assert!(told.threads.iter().all(|(process, thread)| process.is_some() && thread.is_some()));
    }
}
