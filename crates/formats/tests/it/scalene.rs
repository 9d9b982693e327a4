//! A profile of scalene, compared with the sums that scalene itself adds up by stack of Python code.

use std::collections::BTreeMap;

use borehole_formats::{Error, ErrorKind, Format, ReadOptions, detect, scalene};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::damage::each_change;
use crate::play::{Collect, PlainFrame, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| scalene::import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    collect
}

fn place(frame: &PlainFrame) -> String {
    let (file, line) = (frame.file.as_deref().unwrap_or_default(), frame.line.unwrap_or(0));
    format!("{file} {}:{line};", frame.function)
}

#[test]
fn samples_of_python_code_are_those_that_scalene_counts() {
    let bytes = read_corpus("scalene/shop.json");
    assert_eq!(detect::detect(&bytes), Some(Format::Scalene));
    let collect = read(&bytes);
    let mut ours = BTreeMap::<_, u64>::new();
    for sample in &collect.segments[0].samples {
        // The innermost frame of Python code.
        let python = sample.frames_leaf_first.iter().find(|frame| frame.file.is_some()).unwrap();
        *ours.entry(place(python)).or_default() += sample.count;
    }
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let theirs = document["stacks"].as_array().unwrap().iter().map(|entry| {
        let leaf = entry[0].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        (leaf, entry[1]["count"].as_u64().unwrap())
    });
    let theirs: BTreeMap<_, _> = theirs.collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    // Scalene takes its first sample for the stacks with native code only.
    assert!(ours.iter().all(|(leaf, count)| count - theirs[leaf] <= 1), "{ours:?} {theirs:?}");
    assert!(ours.values().sum::<u64>() > 50);
}

#[test]
fn samples_have_times_threads_and_native_frames() {
    let collect = read(&read_corpus("scalene/shop.json"));
    let [stacks, memory] = &collect.segments[..] else { panic!() };
    assert!(stacks.samples.iter().map(|sample| sample.time_ns.unwrap()).is_sorted());
    assert!(stacks.samples.iter().all(|sample| sample.thread.is_some()));
    let frames = || stacks.samples.iter().flat_map(|sample| &sample.frames_leaf_first);
    let is_interpreter = |frame: &PlainFrame| {
        frame.function == "Py_BytesMain"
            && frame
                .native
                .as_ref()
                .is_some_and(|(module, offset)| module.contains("libpython") && offset.is_some())
    };
    assert!(frames().any(is_interpreter));
    assert!(frames().any(|frame| frame.function == "Shop.order" && frame.line == Some(8)));
    assert_eq!(memory.value_types, [("alloc".to_owned(), "bytes".to_owned())]);
    let leaf = &memory.samples[0].frames_leaf_first[0];
    assert_eq!((&*leaf.function, leaf.line), ("stock", Some(11)));
    assert!(memory.samples[0].values[0] > 40_000_000);
}

#[test]
fn samples_that_the_timeline_lacks_follow_without_a_time() {
    let frame = r#"[{"kind":"py","display_name":"f","filename_or_module":"/a.py","line":2}]"#;
    let text = format!(
        r#"{{"combined_stacks":[[{frame},5]],"combined_stacks_timeline":[{{"t_sec":1.5,"stack_index":0,"count":2}}]}}"#
    );
    let samples: Vec<_> =
        read(text.as_bytes()).samples().map(|sample| (sample.time_ns, sample.count)).collect();
    assert_eq!(samples, [(Some(1_500_000_000), 2), (None, 3)]);
    let wrong = text.replace("\"stack_index\":0", "\"stack_index\":7");
    let error = read_with(wrong.as_bytes(), &ReadOptions::default()).err().unwrap();
    assert_eq!(error.message(), "unknown stack 7 in combined_stacks_timeline");
    let (collect, _) = read_with(wrong.as_bytes(), &ReadOptions::lenient()).unwrap();
    assert_eq!(collect.samples().map(|sample| sample.count).sum::<u64>(), 5);
}

#[test]
fn stacks_without_native_code_are_read_and_sums_by_line_are_refused() {
    let both = [r#"{"count":3,"c_time":0.1}"#, "[3,0.1,0.2,4]"];
    for sums in both {
        let text = format!(r#"{{"stacks":[[["/a.py <module>:2;","/a b.py f:9;"],{sums}]]}}"#);
        let collect = read(text.as_bytes());
        let sample = collect.samples().next().unwrap();
        let frames: Vec<_> = sample.frames_leaf_first.iter().map(place).collect();
        assert_eq!(
            (sample.count, frames),
            (3, vec!["/a b.py f:9;".to_owned(), "/a.py <module>:2;".to_owned()])
        );
    }
    let error = read_with(br#"{"files":{},"stacks":[]}"#, &ReadOptions::default()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("../fuzz/seeds/scalene/shop.json");
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(&bytes, 1, b"0\"9,\xff", |changed, _| drop(read_with(changed, &ReadOptions::lenient())));
}
