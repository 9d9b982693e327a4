//! A recording in the layout of rbspy.

use std::collections::BTreeMap;

use borehole_formats::{Error, ErrorKind, ReadOptions, rbspy};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| rbspy::import(bytes, options, tables, sink))
}

fn recording() -> Vec<u8> {
    read_corpus("rbspy/shop.rbspy")
}

#[test]
fn stacks_are_those_of_the_lines() {
    let (collect, recovery) = read_with(&recording(), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let mut ours = BTreeMap::<_, u64>::new();
    for sample in collect.samples() {
        // As rbspy's report writes frames.
        let frames = sample.frames_leaf_first.iter().rev().map(|frame| {
            let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("{} - {}{line}", frame.function, frame.file.as_deref().unwrap_or("(unknown)"))
        });
        *ours.entry(frames.collect::<Vec<_>>().join(";")).or_default() += sample.count;
    }
    let order = "<main> - /app/shop.rb:21;order - /app/shop.rb:5";
    let expected = [
        ("(unknown) [c function] - (unknown)".to_owned(), 1),
        (order.to_owned(), 1),
        (
            format!(
                "{order};each [c function] - (unknown);block in order - /app/shop.rb:6;price - /app/shop.rb:9"
            ),
            4,
        ),
        ("<main> - /app/shop.rb:21;wait - /app/shop.rb:14;sleep [c function] - (unknown)".to_owned(), 4),
    ];
    assert_eq!(ours, BTreeMap::from(expected));
}

#[test]
fn samples_have_process_thread_time_and_period() {
    let (collect, _) = read_with(&recording(), &ReadOptions::default()).unwrap();
    assert_eq!(collect.segments[0].period_ns, Some(10_000_000));
    let known = collect.samples().all(|sample| {
        sample.process.is_some_and(|process| process > 0)
            && sample.thread.is_some()
            && sample.time_ns.is_some()
    });
    assert!(known && collect.samples().map(|sample| sample.time_ns).is_sorted());
}

#[test]
fn another_version_is_refused_and_a_wrong_line_is_damage() {
    let error = read_with(b"rbspy09\n{}\n", &ReadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = b"rbspy02\n{}\nwhat\n{\"trace\":[]}\n";
    assert_eq!(read_with(text, &ReadOptions::default()).err().unwrap().kind(), ErrorKind::Malformed);
    let (collect, recovery) = read_with(text, &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.samples().count(), recovery.warnings.len()), (1, 1));
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = recording();
    let bytes = &bytes[..bytes.len().min(2000)];
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(bytes, 1, b"0\"9,\xff", |changed, _| drop(read_with(changed, &ReadOptions::lenient())));
}
