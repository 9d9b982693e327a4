//! Gzip around segments: detected by content, in members, mixed with raw segments, and damaged.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::build::Trace;
use super::{read, recover, samples};

const F: &str = "f /f.php:3";
const G: &str = "f /f.php:3;g /f.php:5";

pub(super) fn member(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn one() -> Trace {
    Trace::compact().compact_sample(0).end()
}

fn two() -> Trace {
    Trace::compact().compact_sample(1).end()
}

#[test]
fn members_are_detected_by_content() {
    assert_eq!(samples(&member(&one().0)), [F]);
}

#[test]
fn members_and_raw_segments_come_in_any_order() {
    let (one, two) = (one().0, two().0);
    for first in [one.clone(), member(&one)] {
        for second in [two.clone(), member(&two)] {
            assert_eq!(samples(&[&first[..], &second, &first].concat()), [F, G, F]);
        }
    }
}

#[test]
fn a_member_may_begin_where_an_event_would() {
    let unfinished = Trace::compact().compact_sample(0).0;
    assert_eq!(samples(&[&unfinished[..], &member(&two().0)].concat()), [F, G]);
}

#[test]
fn a_segment_may_run_over_several_members() {
    let bytes = one().0;
    for at in 1..bytes.len() {
        assert_eq!(samples(&[member(&bytes[..at]), member(&bytes[at..])].concat()), [F], "{at}");
    }
}

#[test]
fn empty_members_hold_nothing() {
    assert_eq!(read(&member(b"")).lines, [""; 0]);
    assert_eq!(samples(&[member(b""), member(&one().0), member(b"")].concat()), [F]);
}

#[test]
fn only_one_layer_is_removed() {
    let reading = read(&member(&member(&one().0)));
    assert!(reading.failure().0.starts_with("invalid magic"), "{:?}", reading.error);
}

#[test]
fn zeros_after_a_member_are_padding() {
    let reading = read(&[&member(&one().0)[..], &[0; 512]].concat());
    assert!(reading.error.is_none());
    assert_eq!((reading.samples(), reading.warnings()), (vec![F], vec![]));
    assert_eq!(reading.recovery.notes[0].message, "512 zero bytes after a gzip member");
    assert_eq!(read(&[&member(&one().0)[..], &[0; 512], &member(&two().0)].concat()).samples(), [F, G]);
}

#[test]
fn data_of_a_truncated_member_is_used() {
    let many = (0..200).fold(Trace::compact(), |trace, index| trace.compact_sample(index % 2)).end();
    let whole = member(&many.0);
    let mut most = 0;
    for length in 3..whole.len() {
        let reading = read(&whole[..length]);
        assert!(reading.error.is_none(), "{length}: {:?}", reading.error);
        assert!(!reading.recovery.is_clean(), "{length}");
        assert!(reading.recovery.samples >= most, "{length}");
        most = reading.recovery.samples;
    }
    // The last eight bytes are the checksum and the length.
    assert_eq!(most, 200);
}

#[test]
fn a_wrong_member_checksum_is_an_error_after_its_samples() {
    let mut bytes = member(&one().0);
    let at = bytes.len() - 6;
    bytes[at] ^= 1;
    let reading = read(&[&bytes[..], &member(&two().0)].concat());
    assert_eq!(reading.samples(), [F]);
    assert!(
        reading.failure().0.starts_with("invalid gzip member: starts at byte 0x0"),
        "{:?}",
        reading.error
    );
    assert_eq!(recover(&[&bytes[..], &member(&two().0)].concat()).samples(), [F, G]);
}

#[test]
fn the_member_after_a_damaged_one_is_found() {
    let (first, second) = (member(&one().0), member(&two().0));
    for at in 12..first.len() - 8 {
        let mut bytes = [&first[..], &second, &two().0].concat();
        bytes[at] ^= 0x55;
        let found = recover(&bytes);
        assert!(
            found.samples().ends_with(&[G, G]),
            "{at} of {}: {:?} {:?}",
            first.len(),
            found.lines,
            found.recovery
        );
        assert!(!found.recovery.is_clean(), "{at}");
    }
}
