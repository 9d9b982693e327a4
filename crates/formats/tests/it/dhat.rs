//! Profiles of DHAT, compared with the sums that it prints.

use borehole_formats::{Error, ErrorKind, ReadOptions, dhat};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| dhat::import(bytes, options, tables, sink))
}

/// The numbers of a line of DHAT's own summary, such as `Total:     92,112 bytes in 33 blocks`.
fn said(line: &str) -> Vec<i64> {
    let text = String::from_utf8(read_corpus("dhat/alloc.txt")).unwrap();
    let found = text.lines().find_map(|found| found.strip_prefix(line)).unwrap();
    let words = found.split_ascii_whitespace().map(|word| word.replace(',', ""));
    words.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn sums_are_those_that_dhat_prints() {
    let (collect, recovery) = read_with(&read_corpus("dhat/alloc.json"), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let types = &collect.segments[0].value_types;
    let sum = |kind: &str| -> i64 {
        let column = types.iter().position(|(found, _)| found == kind).unwrap();
        collect.samples().map(|sample| sample.values[column]).sum()
    };
    assert_eq!([sum("alloc_space"), sum("alloc_objects")], said("Total:")[..]);
    assert_eq!([sum("peak_space"), sum("peak_objects")], said("At t-gmax:")[..]);
    assert_eq!([sum("inuse_space"), sum("inuse_objects")], said("At t-end:")[..]);
    assert_eq!([sum("read")], said("Reads:")[..]);
    assert_eq!([sum("written")], said("Writes:")[..]);
}

#[test]
fn frames_have_their_places_from_the_leaf_on() {
    let (collect, _) = read_with(&read_corpus("dhat/alloc.json"), &ReadOptions::default()).unwrap();
    let frames = &collect.samples().next().unwrap().frames_leaf_first;
    let place = |index: usize| (&*frames[index].function, frames[index].file.as_deref(), frames[index].line);
    assert_eq!(frames[0].native.as_ref().unwrap().0, "/usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so");
    assert_eq!(place(1), ("hold", Some("alloc.c"), Some(8)));
    assert_eq!(place(2), ("main", Some("alloc.c"), Some(23)));
    assert_eq!(frames.len(), 3);
}

#[test]
fn another_version_and_unknown_frames_are_errors_that_say_so() {
    let error = |text: &str| read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap();
    let version = error(r#"{"dhatFileVersion":3,"mode":"heap","pps":[],"ftbl":[]}"#);
    assert_eq!(version.kind(), ErrorKind::Unsupported);
    assert_eq!(version.message(), "unsupported version: expected 2, found 3");
    let text = r#"{"dhatFileVersion":2,"mode":"ad-hoc","pps":[{"tb":3,"tbk":1,"fs":[7,0]}],"ftbl":["f"]}"#;
    assert_eq!(error(text).message(), "unknown frame 7 of program point 0");
    let (collect, recovery) = read_with(text.as_bytes(), &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.samples().next().unwrap().values[1], recovery.warnings.len()), (3, 1));
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("dhat/alloc.json");
    let bytes = &bytes[..bytes.len().min(2000)];
    for cut in 0..bytes.len() {
        let _ = read_with(&bytes[..cut], &ReadOptions::lenient());
    }
    each_change(bytes, 1, &[b'0', b'"', b'9', b',', 0xff], |changed, _| {
        let _ = read_with(changed, &ReadOptions::lenient());
    });
}
