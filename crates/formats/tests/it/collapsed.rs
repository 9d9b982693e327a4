//! Collapsed stacks, compared with the output of CPython's `replay`.

use std::cmp::Reverse;

use borehole_formats::collapsed::Exporter;
use borehole_formats::{Export as _, ReadOptions, tachyon};
use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};
use borehole_testkit::{corpus_files, read_corpus};
use proptest::proptest;

use crate::play::{PlainSample, PlainSegment, any_samples, named, play};

/// The lines of samples, with their counts.
fn lines(samples: Vec<PlainSample>) -> Vec<(String, u64)> {
    let mut out = Vec::new();
    play(&[PlainSegment { samples, ..PlainSegment::default() }], &mut Exporter::new(&mut out));
    let text = String::from_utf8(out).unwrap();
    let lines = text.lines().map(|line| line.rsplit_once(' ').unwrap());
    lines.map(|(stack, count)| (stack.to_owned(), count.parse().unwrap())).collect()
}

/// A sample of a thread, if it is known, with a function named like a thread or not.
fn on_thread(thread: Option<u64>, function: &str) -> PlainSample {
    PlainSample { frames_leaf_first: vec![named(function)], count: 1, thread, ..PlainSample::default() }
}

#[test]
fn every_file_is_collapsed_as_cpython_does() {
    let files = corpus_files("tachyon/corpus", ".bin");
    assert_eq!(files.len(), 31);
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut out = Vec::new();
        let mut exporter = Exporter::new(&mut out);
        let mut tables = Tables::default();
        tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
        exporter.finish(&tables).unwrap();
        let lost: Vec<_> = exporter.losses().iter().map(|(what, _)| what).collect();
        assert!(lost.contains(&"timestamps") || bytes.len() < 200, "{name}: {lost:?}");
        assert!(!lost.contains(&"thread ids"), "{name}");
        drop(exporter);
        let expected = read_corpus(&format!("tachyon/corpus/expected/{name}.collapsed.txt"));
        assert!(out == expected, "{name}");
    }
}

#[test]
fn frames_with_equal_names_are_one_line() {
    let mut tables = Tables::default();
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out);
    let segment = Segment::default();
    for (function, line) in [(&b"mod"[..], None), (b"mod", Some(0)), (b"caf\xe9", None), (b"caf\xe8", None)] {
        let (file, function) =
            (tables.intern_string(b"a.py").unwrap(), tables.intern_string(function).unwrap());
        let frame = Frame { file: Some(file), line, ..Frame::named(function) };
        let frame = tables.intern_frame(&frame).unwrap();
        let sample =
            Sample { stack: Some(tables.intern_stack(None, frame).unwrap()), count: 5, ..Sample::default() };
        let _ = exporter.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    assert_eq!(String::from_utf8(out).unwrap(), "a.py:caf\u{fffd}:0 10\na.py:mod:0 10\n");
}

proptest! {
    #[test]
    fn lines_are_sorted_by_count_and_then_by_text(mut samples in any_samples()) {
        // Names are written as they are, with the ends of lines in them.
        for frame in samples.iter_mut().flat_map(|sample| &mut sample.frames_leaf_first) {
            frame.function.retain(|char| char != '\n');
            frame.file.iter_mut().for_each(|file| file.retain(|char| char != '\n'));
        }
        let lines = lines(samples);
        let mut sorted = lines.clone();
        sorted.sort_by(|(one, few), (other, many)| (Reverse(few), one).cmp(&(Reverse(many), other)));
        assert_eq!(lines, sorted);
    }
}

/// Lines of a thread begin with it, so those without one are sorted among them by their first function.
#[test]
fn lines_with_and_without_threads_are_sorted_by_text() {
    for known in [[true, true, true], [true, false, true], [false, true, false], [false, false, false]] {
        let names = ["zeta", "alpha", "tid"];
        let samples = (5..).zip(names).zip(known);
        let lines =
            lines(samples.map(|((thread, name), known)| on_thread(known.then_some(thread), name)).collect());
        assert_eq!(lines.len(), 3);
        assert!(lines.is_sorted_by_key(|(text, _)| text), "{lines:?}");
    }
}
