//! Profiles of stackprof, compared with its own reports.

use std::collections::BTreeMap;

use borehole_formats::{Error, ReadOptions, stackprof};
use borehole_model::{Mode, Recovery};
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| stackprof::import(bytes, options, tables, sink))
}

fn read(name: &str) -> (Collect, Recovery) {
    read_with(&read_corpus(&format!("stackprof/{name}.json")), &ReadOptions::default()).unwrap()
}

fn text(name: &str) -> String {
    String::from_utf8(read_corpus(&format!("stackprof/{name}"))).unwrap()
}

#[test]
fn stacks_are_those_of_stackcollapse() {
    for name in ["wall", "object"] {
        let mut theirs = BTreeMap::<_, u64>::new();
        for line in text(&format!("{name}.folded")).lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            *theirs.entry(stack.to_owned()).or_default() += count.parse::<u64>().unwrap();
        }
        let (collect, recovery) = read(name);
        assert!(recovery.is_clean());
        let mut ours = BTreeMap::<_, u64>::new();
        for sample in collect.samples() {
            let frames = sample.frames_leaf_first.iter().rev().map(|frame| frame.function.as_str());
            *ours.entry(frames.collect::<Vec<_>>().join(";")).or_default() += sample.count;
        }
        assert!(ours.len() > 1);
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn methods_of_a_profile_without_stacks_are_those_of_the_report() {
    let report = text("plain.txt");
    let mut theirs = BTreeMap::new();
    for line in report.lines().filter(|line| line.starts_with("   ")) {
        let Some((numbers, name)) = line.rsplit_once("     ") else { continue };
        let own = numbers.split_ascii_whitespace().nth(2).and_then(|own| own.parse::<u64>().ok());
        if let Some(own) = own.filter(|&own| own > 0) {
            theirs.insert(name.to_owned(), own);
        }
    }
    let (collect, recovery) = read("plain");
    let own = collect.samples().map(|sample| (sample.frames_leaf_first[0].function.clone(), sample.count));
    assert_eq!(theirs.len(), 3);
    assert_eq!(own.collect::<BTreeMap<_, _>>(), theirs);
    assert_eq!(
        recovery.notes.iter().map(|note| &*note.message).collect::<Vec<_>>(),
        [
            "no stacks, only methods: take the profile with raw: true to have stacks",
            "1 samples were taken in the garbage collector"
        ]
    );
}

#[test]
fn samples_have_times_a_period_and_the_number_of_objects() {
    let (wall, _) = read("wall");
    let segment = &wall.segments[0];
    assert_eq!((segment.period_ns, segment.mode), (Some(5_000_000), Mode::Wall));
    let times: Vec<_> = wall.samples().map(|sample| sample.time_ns.unwrap()).collect();
    assert!(times.len() == 60 && times.is_sorted());
    assert_eq!(times[59] - times[0], 27_408_484_063_000 - 27_407_892_124_000);
    let (object, _) = read("object");
    assert_eq!(object.segments[0].value_types, [("alloc_objects".to_owned(), "count".to_owned())]);
    assert!(object.samples().all(|sample| sample.values == [10]));
    assert_eq!(read("plain").0.segments[0].mode, Mode::Cpu);
}

#[test]
fn stacks_of_unknown_frames_and_stacks_without_an_end_are_damage() {
    let head = r#"{"mode":"wall","interval":1,"samples":2,"frames":{"9":{"name":"f"}},"raw":"#;
    for (raw, message) in [
        ("[1,9,1,1,8,1]", "unknown frame in a stack"),
        ("[1,9,1,5,9]", "truncated: the last stack does not end"),
    ] {
        let text = format!("{head}{raw}}}");
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap();
        assert_eq!(error.message(), message);
        let (collect, recovery) = read_with(text.as_bytes(), &ReadOptions::lenient()).unwrap();
        assert_eq!((collect.samples().count(), recovery.warnings.len()), (1, 1));
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("stackprof/wall.json");
    let bytes = &bytes[..bytes.len().min(2000)];
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(bytes, 1, &[b'0', b'"', b'9', b',', 0xff], |changed, _| {
        let _ = read_with(changed, &ReadOptions::lenient());
    });
}
