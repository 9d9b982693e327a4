//! Sessions of pyinstrument, compared with what it says of them.

use std::collections::BTreeMap;

use borehole_formats::{Error, ErrorKind, ReadOptions, pyinstrument};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| pyinstrument::import(bytes, options, tables, sink))
}

#[test]
fn self_times_are_those_of_pyinstrument() {
    let (collect, recovery) =
        read_with(&read_corpus("pyinstrument/shop.pyisession"), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let theirs: BTreeMap<String, i64> =
        serde_json::from_slice(&read_corpus("pyinstrument/shop.self.json")).unwrap();
    let mut ours = BTreeMap::<_, i64>::new();
    for sample in collect.samples() {
        *ours.entry(sample.frames_leaf_first[0].function.clone()).or_default() += sample.values[0];
    }
    ours.retain(|_, time| *time > 0);
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    // Each time is rounded to a nanosecond.
    let most = i64::try_from(collect.samples().count()).unwrap();
    for (name, time) in &theirs {
        assert!((ours[name] - time).abs() <= most, "{name}: {} and {time}", ours[name]);
    }
}

#[test]
fn samples_have_their_thread_times_and_lines() {
    let (collect, _) =
        read_with(&read_corpus("pyinstrument/shop.pyisession"), &ReadOptions::default()).unwrap();
    let [(thread, name)] = &collect.thread_names[..] else { panic!("{:?}", collect.thread_names) };
    assert_eq!(name, "MainThread");
    let segment = &collect.segments[0];
    assert_eq!(segment.period_ns, Some(1_000_000));
    assert!(segment.start_unix_ns.is_some_and(|start| start > 1_700_000_000_000_000_000));
    let mut next_ns = 0;
    for sample in &segment.samples {
        assert_eq!((sample.time_ns, sample.thread), (Some(next_ns), Some(*thread)));
        next_ns += sample.values[0];
    }
    let order = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    let order = order.into_iter().find(|frame| frame.function == "Shop.order").unwrap();
    assert!(order.file.as_deref().is_some_and(|file| file.ends_with("shop.py")));
    assert_eq!(order.line, Some(12));
}

#[test]
fn members_in_another_order_and_further_ones_are_the_same_session() {
    let text =
        br#"{"frame_records":[[["a\u0000a.py\u00001","[await]"],0.25]],"more":{"x":[1]},"start_time":1.5}"#;
    let (collect, _) = read_with(text, &ReadOptions::default()).unwrap();
    assert_eq!(collect.segments[0].start_unix_ns, Some(1_500_000_000));
    let [sample] = &collect.segments[0].samples[..] else { panic!() };
    let names: Vec<_> = sample.frames_leaf_first.iter().map(|frame| &*frame.function).collect();
    assert_eq!((names, &sample.values[..]), (vec!["[await]", "a"], &[250_000_000_i64][..]));
}

#[test]
fn a_session_that_is_cut_off_is_read_up_to_the_cut() {
    let text = br#"{"start_time":1,"frame_records":[[["a"],1.0],[["a","b"],2.0],[["a"]"#;
    let error = read_with(text, &ReadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    let (collect, recovery) = read_with(text, &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.count(), recovery.warnings.len()), (2, 1));
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("pyinstrument/shop.pyisession");
    let bytes = &bytes[..bytes.len().min(3000)];
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(bytes, 3, b"0\"9,\xff", |changed, _| drop(read_with(changed, &ReadOptions::lenient())));
}
